// A bank that two cells share names one transaction to a payment of each. A merchant whose payment it is moves all the same, and only what the bank was paid counts
// for whoever hears of it later.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { moveMerchant } from '../src/start/moves/move.ts'
import { type Body, eventually } from './support/gateway.ts'
import {
  ask,
  type CellMerchant,
  cellMerchants,
  moveParts,
  type TestCell,
  type TestCells,
  twoCells,
} from './support/movingCells.ts'
import { type OrderBank, startOrderBank } from './support/orderBank.ts'
import { makeShopper } from './support/shopper.ts'

const { merchants, nextMerchant } = cellMerchants(5)
let bank: OrderBank
const folder = mkdtempSync(join(tmpdir(), 'tollgate-contested-'))
let cells: TestCells
before(async () => {
  bank = await startOrderBank()
  writeFileSync(join(folder, 'methods.json'), JSON.stringify({ PAYSTAR: bank.method }))
  const environment = { REDIRECT_METHODS_FILE: join(folder, 'methods.json') }
  cells = await twoCells(merchants, [environment, environment])
})
after(async () => {
  await cells.stop()
  bank.stop()
  rmSync(folder, { recursive: true })
})

const begin = async (cell: TestCell, { channelId, ...merchant }: CellMerchant, merchantTransactionId: string): Promise<Body> =>
  (
    await ask(cell, { channelId, ...merchant }, '/v1/payments', {
      ...{ entityId: channelId, paymentType: 'DB', amount: '92.00', currency: 'EUR', paymentBrand: 'PAYSTAR' },
      ...{ testMode: 'EXTERNAL', shopperResultUrl: 'https://shop.example/', merchantTransactionId },
    })
  ).body
/** The shopper comes back, to whichever cell has the merchant by now. */
async function comeBack({ redirect }: Body, { gateway }: TestCell): Promise<void> {
  const shopper = makeShopper()
  const url = gateway.baseUrl + new URL(redirect.url).pathname
  await shopper.open(url)
  await shopper.open(url.replace('/r/', '/r/return/'))
}
const codeOf = async (cell: TestCell, merchant: CellMerchant, { id }: Body): Promise<string> =>
  (await ask(cell, merchant, `/v1/payments/${id}?entityId=${merchant.channelId}`)).body.result.code
const refund = (cell: TestCell, merchant: CellMerchant, { id }: Body) =>
  ask(cell, merchant, `/v1/payments/${id}`, {
    ...{ entityId: merchant.channelId, paymentType: 'RF', amount: '92.00', currency: 'EUR' },
  })
const casesOf = async ({ gateway }: TestCell, { id }: Body): Promise<readonly { kind: string; details: string }[]> =>
  (await gateway.pool.query('select kind, details from operator_cases where subject = $1 order by kind', [id])).rows
const claims = async ({ gateway }: TestCell): Promise<readonly string[]> =>
  (
    await gateway.pool.query(
      `select transaction_id || ' ' || replace(payment_id::text, '-', '') as claim from claimed_transactions order by 1`,
    )
  ).rows.map(({ claim }) => claim)
const moveThere = async (merchant: CellMerchant): Promise<readonly string[]> => {
  const told: string[] = []
  await moveMerchant(moveParts(cells, merchant, { tell: (_, what) => void told.push(what) }))
  await eventually(
    async () => (await ask(cells.two, merchant, `/v1/payments/${'0'.repeat(32)}?entityId=${merchant.channelId}`)).status === 404,
    'it is served there',
  )
  return told
}

it('a merchant moves without a claim that another payment has there, and a case names both', async () => {
  const [stays, goes] = [nextMerchant(), nextMerchant()]
  await moveThere(stays)
  bank.status = 'WAITING'
  const order = 'order-00001'
  const inTwo = await begin(cells.two, stays, order)
  const [paid, own] = [await begin(cells.one, goes, order), await begin(cells.one, goes, 'order-00002')]
  bank.status = 'PAID'
  await comeBack(inTwo, cells.two)
  await comeBack(paid, cells.one)
  const told = await moveThere(goes)
  assert.ok(told.some(what => what.includes(paid.id) && what.includes(inTwo.id) && what.includes(stays.id)))
  const [found, ...others] = await casesOf(cells.two, paid)
  assert.deepEqual([found?.kind, others], ['transactionTaken', []])
  assert.ok(found!.details.includes(inTwo.id))
  assert.deepEqual(await claims(cells.two), [`tx of order-00001 ${inTwo.id}`, `tx of order-00002 ${own.id}`])
  assert.deepEqual(await claims(cells.one), [`tx of order-00001 ${paid.id}`, `tx of order-00002 ${own.id}`])
  // It keeps what it has: paid as it was told, and what the bank would give back is the bank's to say.
  assert.equal(await codeOf(cells.two, goes, paid), '000.100.112')
  assert.equal((await refund(cells.two, goes, paid)).body.result.code, '000.100.112')
  assert.deepEqual(bank.refunds, ['tx of order-00001'])
  // What is its own goes on as always.
  await comeBack(own, cells.two)
  assert.equal(await codeOf(cells.two, goes, own), '000.100.112')
  // Nobody of the old cell has the transaction, also when the merchant is forgotten there.
  await forgetMerchant(cells.one.side, cells.two.side, goes.id)
  assert.deepEqual(await claims(cells.one), [`tx of order-00001 ${paid.id}`])
  const third = await begin(cells.one, nextMerchant(), order)
  assert.equal(third.result.code, '900.100.200')
})

it('what is under way there is approved by nothing, and nothing is given back', async () => {
  const [stays, goes] = [merchants[0]!, nextMerchant()]
  bank.status = 'WAITING'
  bank.refunds = []
  const inTwo = await begin(cells.two, stays, 'order-00003')
  const open = await begin(cells.one, goes, 'order-00003')
  const notice = new URL(bank.hooks.at(-1)!).pathname
  await moveThere(goes)
  bank.status = 'PAID'
  await comeBack(inTwo, cells.two)
  assert.equal((await fetch(cells.two.gateway.baseUrl + notice, { method: 'POST', body: 'paid' })).status, 200)
  await comeBack(open, cells.two)
  await eventually(async () => (await casesOf(cells.two, open)).length > 1, 'somebody is asked')
  assert.deepEqual(
    (await casesOf(cells.two, open)).map(({ kind }) => kind),
    ['answerUnproven', 'transactionTaken'],
  )
  assert.deepEqual([await codeOf(cells.two, stays, inTwo), await codeOf(cells.two, goes, open)], ['000.100.112', '000.200.000'])
  assert.deepEqual(bank.refunds, [])
})

it('a claim that comes there behind the fence ends the move, and the same command goes on', async () => {
  const [stays, goes] = [merchants[0]!, nextMerchant()]
  bank.status = 'WAITING'
  const open = await begin(cells.one, goes, 'order-00004')
  const { pool } = cells.two.gateway
  // As a gateway writes it that was asked a moment before the rows came; this one has them, and refuses.
  const claimThere = () =>
    pool.query(
      `update claimed_transactions set merchant_id = $1, payment_id = $2 where transaction_id = 'tx of order-00004' and merchant_id = $3`,
      [stays.id, '0'.repeat(32), goes.id],
    )
  let claimed: Promise<unknown> | undefined
  const tell = (step: string) => {
    if (step === 'frozen') claimed = claimThere()
  }
  await assert.rejects(moveMerchant(moveParts(cells, goes, { tell })), /claimed_transactions does not become the same in two/)
  await claimed
  await eventually(async () => (await codeOf(cells.one, goes, open)) === '000.200.000', 'it is served where it was')
  await moveThere(goes)
  assert.deepEqual(
    (await casesOf(cells.two, open)).map(({ kind }) => kind),
    ['transactionTaken'],
  )
})

it('a gateway of several cells says which methods give their bank another number than ours', async () => {
  const isSaid = ({ gateway }: TestCell) => gateway.logged.some(line => line.includes('two cells') && line.includes('PAYSTAR:'))
  assert.equal(isSaid(cells.two), false)
  await cells.two.gateway.restart()
  assert.equal(isSaid(cells.two), true)
})
