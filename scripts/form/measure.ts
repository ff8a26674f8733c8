// Measures the payment form on a shop's page: bytes that travel, and milliseconds from the shop's address to the first paint of the form and until
// it can be paid with. Every run is a new browser profile without a cache, on this machine. `npm run measure:form [-- runs]`.

import { launchBrowser } from '../../test/support/chromium.ts'
import { testGateway } from '../../test/support/gateway.ts'
import { makeCheckout, shopPage, startShop } from '../../test/support/shop.ts'

const runs = Number(process.argv[2] ?? 15)
const [gateway, browser, shop] = await Promise.all([testGateway(), launchBrowser({ isolated: true }), startShop()])
const { id } = await makeCheckout(gateway, { createRegistration: 'true' })
const url = shop.page(shopPage(gateway, { id, options: '{ onReady: () => { window.ready = performance.now() } }' }))
const paints: number[] = []
const readies: number[] = []
const weights = new Map<string, number>()

for (let run = 0; run < runs; run++) {
  const context = await browser.newContext({ locale: 'en-US' })
  const page = await context.newPage()
  page.on('requestfinished', async request => {
    if (!request.url().startsWith(gateway.baseUrl)) return
    const { responseBodySize } = await request.sizes()
    weights.set(new URL(request.url()).pathname.split('/').at(-1)!.replace(id, 'the frame'), responseBodySize)
  })
  await page.goto(url)
  await page.waitForFunction('window.ready')
  const frame = page.frames()[1]!
  await frame.waitForFunction(`performance.getEntriesByName('first-contentful-paint').length > 0`)
  const begun = (await page.evaluate('performance.timeOrigin')) as number
  paints.push(
    ((await frame.evaluate(
      `performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime`,
    )) as number) - begun,
  )
  readies.push((await page.evaluate('window.ready')) as number)
  await context.close()
}

const median = (numbers: number[]): number => Math.round(numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!)
const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`
for (const [name, bytes] of weights) process.stdout.write(`${name}: ${kilobytes(bytes)}\n`)
process.stdout.write(`together: ${kilobytes([...weights.values()].reduce((a, b) => a + b, 0))}, compressed as they travel\n`)
process.stdout.write(`first paint of the form: ${median(paints)} ms, ready to pay: ${median(readies)} ms (medians of ${runs})\n`)
await browser.close()
shop.stop()
await gateway.stop()
