// A shopper who is at the issuer or at the wallet while the merchant moves comes back to the new cell, and pays once.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import type { Simulators } from '../src/sandbox/serve.ts'
import { simulatorCredentials } from '../src/sandbox/wallet/paypal.ts'
import { moveMerchant } from '../src/start/moves/move.ts'
import type { Fields } from './support/gateway.ts'
import { cellMerchants, moveParts, payIn, readIn, type TestCells, twoCells } from './support/movingCells.ts'
import { makeShopper } from './support/shopper.ts'
import { testSimulators } from './support/simulators.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-shoppers-'))
const { merchants, nextMerchant } = cellMerchants(3)
let cells: TestCells
/** Whose simulators are the world outside of both cells. */
let world: Simulators
before(async () => {
  world = await testSimulators()
  const WALLET_FILE = join(folder, 'wallet.json')
  const external = {
    endpoint: `${world.url}/wallet/nvp`,
    checkout: `${world.url}/wallet/checkout`,
    credentials: { default: simulatorCredentials },
  }
  writeFileSync(WALLET_FILE, JSON.stringify({ external }), { mode: 0o600 })
  cells = await twoCells(merchants, [{ WALLET_FILE }, { WALLET_FILE }])
})
after(async () => {
  await Promise.all([cells.stop(), world.stop()])
  rmSync(folder, { recursive: true, force: true })
})

const shop = 'https://shop.example/back'
const challenged: Fields = { 'card.number': '4200000000000018', 'customParameters[3DS2_enrolled]': 'true' }
const without = ['number', 'cvv', 'holder', 'expiryMonth', 'expiryYear'].map(name => [`card.${name}`, ''])
const wallet: Fields = { paymentBrand: 'PAYPAL', testMode: 'EXTERNAL', ...Object.fromEntries(without) }

/** As by the proxy before both: addresses of the first cell lead to the second now. */
const movedTo = (url: string): string =>
  url.startsWith(cells.one.gateway.baseUrl) ? url.replace(cells.one.gateway.baseUrl, cells.two.gateway.baseUrl) : url

for (const [where, fields, auto, code] of [
  ['at the issuer', challenged, 'approve', '000.100.110'],
  ['at the issuer, who declines', challenged, 'decline', '100.380.401'],
  ['at the wallet', wallet, 'verified', '000.100.112'],
] as const)
  it(where, async () => {
    const merchant = nextMerchant()
    const shopper = makeShopper('en', movedTo)
    const { body } = await payIn(cells.one, merchant, { ...fields, shopperResultUrl: shop })
    assert.equal(body.result.code, '000.200.000', JSON.stringify(body))
    await moveMerchant(moveParts(cells, merchant))
    const there = await shopper.walk(`${body.redirect.url}?auto=${auto}`, 'http://127.0.0.1')
    const seen = auto === 'verified' ? await shopper.press(there, 'agree', 'http://127.0.0.1', { buyer: auto }) : there
    assert.equal(seen.location?.startsWith(shop), true, seen.text)
    const back = await readIn(cells.two, merchant, body.id)
    assert.equal(back.body.result.code, code, JSON.stringify(back.body))
    // Whoever goes back in his browser pays nothing again.
    await shopper.open(there.url)
    await shopper.open(body.redirect.url)
    const posted = await cells.two.gateway.pool.query(`select from journal where payment_id = $1`, [body.id])
    assert.equal(posted.rowCount, code.startsWith('000') ? 1 : 0)
  })
