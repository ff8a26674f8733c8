// The shops of docs/first-hour.md, as they stand there: each sells through the form, reads the status and hears of it. A language that this
// machine cannot run is left out, and the test says what is missing.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { addEndpoint } from './support/endpoints.ts'
import { freePort } from './support/freePort.ts'
import { eventually, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

const page = readFileSync(new URL('../docs/first-hour.md', import.meta.url), 'utf8')

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

type Program = {
  readonly name: string
  readonly fence: string
  readonly file: string
  command(file: string, port: number): readonly [string, ...string[]]
  /** What has to run for it, and what is missing where it does not. */
  readonly needs: readonly [missing: string, program: string, ...words: string[]]
}
const programs: readonly Program[] = [
  {
    name: 'Node.js',
    fence: 'js',
    file: 'shop.mjs',
    command: file => [process.execPath, file],
    needs: ['Node.js', process.execPath, '--version'],
  },
  {
    name: 'Python',
    fence: 'python',
    file: 'shop.py',
    command: file => ['python3', file],
    needs: ['python3 with the package cryptography', 'python3', '-c', 'import cryptography'],
  },
  {
    name: 'PHP',
    fence: 'php',
    file: 'shop.php',
    command: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
    needs: ['php with openssl', 'php', '-r', 'exit(function_exists("openssl_decrypt") ? 0 : 1);'],
  },
]

for (const { name, fence, file, command, needs } of programs)
  test(`the shop in ${name}`, async t => {
    const [missing, program, ...words] = needs
    if (spawnSync(program, words, { stdio: 'ignore', timeout: 120_000 }).status !== 0)
      return t.skip(`${missing} is missing on this machine`)
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-first-hour-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const source = new RegExp(`\`\`\`${fence}\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!
    writeFileSync(join(folder, file), source.replace('/tmp/tollgate-first-hour.json', join(folder, 'orders.json')))
    const port = await freePort()
    const secret = 'ab'.repeat(32)
    const [start, ...rest] = command(join(folder, file), port)
    const shop = spawn(start, rest, {
      env: {
        ...process.env,
        BASE_URL: gateway.baseUrl,
        ENTITY_ID: sandbox.entityId,
        ACCESS_TOKEN: sandbox.accessToken,
        SECRET: secret,
        PORT: String(port),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    t.after(() => shop.kill('SIGKILL'))
    let said = ''
    shop.stdout.on('data', chunk => {
      said += chunk
    })
    const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()

    const selling = await eventually(() => get('/').catch(() => undefined), `${name} listens`, 60)
    const id = decodeURIComponent(/paymentWidgets\.js\?checkoutId=([^"]+)"/.exec(selling)![1]!)
    assert.match(
      selling,
      new RegExp(`<form action="http://127.0.0.1:${port}/thanks" class="paymentWidgets" data-brands="VISA MASTER PAYPAL">`),
    )
    await addEndpoint(gateway.pool, { url: `http://127.0.0.1:${port}/notifications`, secret })

    assert.match(await get(`/thanks?id=${encodeURIComponent(id)}`), /^Not paid: 000\.200\.000/)
    const answer = await fetch(`${gateway.baseUrl}/v1/checkouts/${id}/payment`, {
      method: 'POST',
      headers: { Accept: 'application/json' },
      body: new URLSearchParams(visa),
    })
    assert.equal(((await answer.json()) as { result: { code: string } }).result.code, '000.100.110')
    const paid = await get(`/thanks?id=${encodeURIComponent(id)}&resourcePath=/v1/payments/1`)
    const [, number] = /^Paid: (\S+)$/.exec(paid) ?? assert.fail(paid)
    assert.equal(await get(`/thanks?id=${encodeURIComponent(id)}`), paid, 'a page that is loaded again')
    assert.equal(await get(`/thanks?id=${'0'.repeat(32)}.x`), 'There is no such order')
    await eventually(async () => said.includes(`PAYMENT: ${number} 000.100.110`), `${name} hears of the payment: ${said}`)
    const forged = {
      method: 'POST',
      headers: { 'X-Initialization-Vector': '00'.repeat(12), 'X-Authentication-Tag': '00'.repeat(16) },
      body: 'AB',
    }
    assert.equal((await fetch(`http://127.0.0.1:${port}/notifications`, forged)).status, 400)
  })
