// Takes the picture of the payment form that the README shows: docs/form.png. `npm run screenshot`.

import { fileURLToPath } from 'node:url'
import { launchBrowser } from '../../test/support/chromium.ts'
import { testGateway } from '../../test/support/gateway.ts'
import { goodCard, makeCheckout, shopPage, startShop, typeCard, visitShop } from '../../test/support/shop.ts'

const [gateway, browser, shop] = await Promise.all([testGateway(), launchBrowser({ isolated: true }), startShop()])
const head = `<style>
  body { margin: 0; padding: 28px 24px; background: #f3f5f8; font-family: system-ui, sans-serif; color: #18212d; }
  h1 { max-width: 34.5rem; margin: 0 auto 18px; font-size: 20px; display: flex; justify-content: space-between; }
  h1::after { content: "€92.00"; }
</style>`
const { id } = await makeCheckout(gateway, { createRegistration: 'true' })
const html = shopPage(gateway, { id, brands: 'VISA MASTER AMEX PAYPAL SOFORTUEBERWEISUNG', head }).replace(
  '<h1>Shop',
  '<h1>Corner Shop',
)
const { page, form } = await visitShop(browser, shop.page(html), { viewport: { width: 640, height: 700 } })
await form.locator('html.ready').waitFor()
await typeCard(form, { ...goodCard, holder: '' })
await form.locator('#cardHolder').focus()
const { height } = (await page.locator('body').boundingBox())!
await page.setViewportSize({ width: 640, height: Math.ceil(height) })
await page.screenshot({ path: fileURLToPath(new URL('../../docs/form.png', import.meta.url)) })
await browser.close()
shop.stop()
await gateway.stop()
