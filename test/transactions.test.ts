// A transaction at a bank settles one payment. The bank here begins nothing new for an order number that it has seen, as its own documents promise: what
// counts is what it was paid, what it was asked to give back, and which of our payments say that they are paid.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type Body, eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type OrderBank, startOrderBank } from './support/orderBank.ts'
import { makeShopper } from './support/shopper.ts'

let bank: OrderBank
let gateway: TestGateway
let folder: string
before(async () => {
  bank = await startOrderBank()
  folder = mkdtempSync(join(tmpdir(), 'tollgate-transactions-'))
  writeFileSync(join(folder, 'methods.json'), JSON.stringify({ PAYSTAR: bank.method, PAYMOON: bank.method }))
  gateway = await testGateway({ environment: { REDIRECT_METHODS_FILE: join(folder, 'methods.json') } })
})
after(async () => {
  await gateway.stop()
  bank.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  Object.assign(bank, { status: 'WAITING', names: undefined, refunds: [] })
})

let orders = 0
const newOrder = () => `order-000${++orders}`
const begin = async (merchantTransactionId: string, paymentBrand = 'PAYSTAR'): Promise<Body> =>
  (
    await gateway.post('/v1/payments', {
      entityId: sandbox.entityId,
      paymentType: 'DB',
      amount: '92.00',
      currency: 'EUR',
      paymentBrand,
      merchantTransactionId,
      testMode: 'EXTERNAL',
      shopperResultUrl: 'https://shop.example/',
    })
  ).body
const read = async (id: string): Promise<string> =>
  (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body.result.code
async function comeBack({ redirect }: Body): Promise<void> {
  const shopper = makeShopper()
  await shopper.open(redirect.url)
  await shopper.open(redirect.url.replace('/r/', '/r/return/'))
}
const casesOf = async (id: string): Promise<string[]> =>
  (await gateway.pool.query('select kind from operator_cases where subject = $1 order by kind', [id])).rows.map(
    ({ kind }) => kind,
  )
/** As if the payment had been begun by a build that kept no transactions. */
const unclaim = (id: string) => gateway.pool.query('delete from claimed_transactions where payment_id = $1', [id])

describe('a bank that names the same transaction again', () => {
  it('pays the first payment alone, and somebody hears of the second', async () => {
    const order = newOrder()
    const [first, second] = [await begin(order), await begin(order)]
    assert.deepEqual([first.result.code, second.result.code], ['000.200.000', '900.100.200'])
    assert.equal(second.redirect, undefined)
    assert.deepEqual(await casesOf(second.id), ['transactionTaken'])
    bank.status = 'PAID'
    await comeBack(first)
    assert.deepEqual([await read(first.id), await read(second.id)], ['000.100.112', '900.100.200'])
    const refund = (id: string) =>
      gateway.post(`/v1/payments/${id}`, { entityId: sandbox.entityId, paymentType: 'RF', amount: '92.00', currency: 'EUR' })
    await Promise.all([refund(first.id), refund(second.id)])
    assert.equal(bank.refunds.length, 1)
  })
  it('pays one of two that begin together', async () => {
    const order = newOrder()
    const begun = await Promise.all([begin(order), begin(order), begin(order)])
    assert.deepEqual(begun.map(({ result }) => result.code).sort(), ['000.200.000', '900.100.200', '900.100.200'])
  })
  it('may name it to another method: that is another bank', async () => {
    const order = newOrder()
    const [first, second] = [await begin(order), await begin(order, 'PAYMOON')]
    assert.deepEqual([first.result.code, second.result.code], ['000.200.000', '000.200.000'])
  })
})

describe('a payment whose transaction another has', () => {
  it('is not approved by it: somebody decides', async () => {
    const order = newOrder()
    const first = await begin(order)
    const hook = bank.hooks.at(-1)!
    await unclaim(first.id)
    const second = await begin(order)
    bank.status = 'PAID'
    await comeBack(second)
    assert.equal((await fetch(hook, { method: 'POST', body: 'paid' })).status, 200)
    await eventually(async () => (await casesOf(first.id)).length > 0, 'somebody is asked')
    assert.deepEqual([await read(second.id), await read(first.id)], ['000.100.112', '000.200.000'])
    assert.deepEqual(await casesOf(first.id), ['answerUnproven'])
    await gateway.advance('15m')
    assert.equal(await read(first.id), '000.200.000')
    assert.deepEqual(bank.refunds, [])
  })
  it('is not approved by it when recovery asks', async () => {
    const order = newOrder()
    const first = await begin(order)
    const hook = bank.hooks.at(-1)!
    await unclaim(first.id)
    const second = await begin(order)
    bank.status = 'PAID'
    await comeBack(second)
    bank.status = 'what nobody knows'
    const { looks } = bank
    await fetch(hook, { method: 'POST', body: 'paid' })
    await eventually(async () => bank.looks > looks, 'the bank is asked')
    bank.status = 'PAID'
    await eventually(async () => {
      await gateway.advance('15m')
      return (await casesOf(first.id)).includes('answerUnproven')
    }, 'somebody is asked')
    assert.deepEqual([await read(second.id), await read(first.id)], ['000.100.112', '000.200.000'])
  })
  it('gives nothing back of what the other was paid, when it ended and the bank is asked late', async () => {
    const order = newOrder()
    const first = await begin(order)
    const hook = bank.hooks.at(-1)!
    await gateway.advance('31m')
    assert.equal(await read(first.id), '100.395.501')
    await unclaim(first.id)
    const second = await begin(order)
    bank.status = 'PAID'
    await comeBack(second)
    assert.equal(await read(second.id), '000.100.112')
    assert.equal((await fetch(hook, { method: 'POST', body: 'paid' })).status, 200)
    await eventually(async () => {
      await gateway.advance('15m')
      return (await gateway.pool.query('select 1 from due_work where subject_id = $1', [first.id])).rows.length === 0
    }, 'nothing is left to do')
    assert.deepEqual(bank.refunds, [])
    assert.deepEqual([await read(first.id), await read(second.id)], ['100.395.501', '000.100.112'])
    assert.deepEqual(await casesOf(first.id), ['transactionTaken'])
  })
})
