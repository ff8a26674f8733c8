// Four eyes: what somebody of the staff ordered is carried out when a colleague approves it, once.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { sweep } from '../src/platform/retention/erase.ts'
import { placeOrder } from '../src/staff/orders/orders.ts'
import type { StaffParts } from '../src/staff/parts.ts'
import type { SignedIn } from '../src/staff/sessions.ts'
import { allKept } from '../src/start/kept.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type Clerk, signedIn, visitor } from './support/office.ts'

let now = Date.now()
const clock = clockWith(() => now)
let gateway: TestGateway
let asker: Clerk
let colleague: Clerk
before(async () => {
  gateway = await testGateway({ clock })
  asker = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
  colleague = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
})
after(() => gateway.stop())

const staffParts = () =>
  ({ clock, random: systemRandom, keys: testKeys, database: { work: gateway.pool } }) as unknown as StaffParts
const actorOf = ({ id }: Pick<Clerk, 'id'>) => ({ by: { kind: 'user', id, address: '127.0.0.1' } }) as unknown as SignedIn
const orderFor = (paymentId: string) => ({
  merchantId: sandbox.merchantId,
  paymentId,
  rootId: paymentId,
  channelId: sandbox.entityId,
  type: 'RF' as const,
  amount: 40_00,
  currency: 'EUR',
  reason: 'came back broken',
  once: paymentId,
})

/** A paid payment and an order to give back a part of it. */
async function ordered(by: Pick<Clerk, 'id'> = asker): Promise<{ paymentId: string; approval: string }> {
  const { body } = await gateway.pay()
  const placed = await placeOrder(staffParts(), actorOf(by), orderFor(body.id), 0)
  assert.ok(typeof placed !== 'string')
  const { id } = placed
  return { paymentId: body.id, approval: `/office/approvals/${sandbox.merchantId}/${id}` }
}
const refundsOf = async (paymentId: string) =>
  (
    await gateway.pool.query(
      `select p.amount, a.approved from payments p join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id where p.payment_type = 'RF' and p.reference_id = $1`,
      [paymentId],
    )
  ).rows

test('nothing is done before a colleague approves, and then once, however often the button is pressed', async () => {
  const { paymentId, approval } = await ordered()
  assert.match((await colleague.ask('/office/approvals')).text, /RF €40\.00[\s\S]*came back broken/)
  assert.deepEqual(await refundsOf(paymentId), [])
  const answers = await Promise.all([1, 2, 3].map(() => colleague.post(`${approval}/approve`)))
  assert.ok(answers.some(({ status }) => status === 303))
  assert.equal((await refundsOf(paymentId)).length, 1)
  assert.equal((await colleague.post(`${approval}/approve`)).status, 404)
  assert.equal((await refundsOf(paymentId)).length, 1)
  const { rows } = await gateway.pool.query(`select actor, action from audit where action like 'approval%' order by sequence`)
  assert.deepEqual(rows, [
    { actor: asker.id, action: 'approvalAsked' },
    { actor: colleague.id, action: 'approvalDecided' },
  ])
})

test('whoever loses the role, is removed or signs out while the order is awaited approves nothing', async () => {
  const boss = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
  for (const [what, change] of [
    ['role', (who: Clerk) => boss.post(`/office/staff/${who.id}/role`, { role: 'viewer', entity: sandbox.merchantId })],
    ['removed', (who: Clerk) => boss.post(`/office/staff/${who.id}/remove`)],
    ['signed out', (who: Clerk) => who.post('/office/sign-out')],
    ['nothing', async () => ({ status: 303 })],
  ] as const) {
    const who = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
    const { paymentId, approval } = await ordered()
    const db = await gateway.pool.connect()
    await db.query('begin')
    await db.query('select from staff_orders where id = $1 for update', [approval.split('/').at(-1)])
    const approving = who.post(`${approval}/approve`)
    const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%staff_orders%'`
    await eventually(async () => (await gateway.pool.query(waits)).rowCount === 1, 'it waits')
    assert.equal((await change(who)).status, 303, what)
    await db.query('commit')
    db.release()
    assert.equal((await approving).status, what === 'nothing' ? 303 : 403, what)
    assert.equal((await refundsOf(paymentId)).length, what === 'nothing' ? 1 : 0, what)
    const decided = await gateway.pool.query(`select from audit where actor = $1 and action = 'approvalDecided'`, [who.id])
    assert.equal(decided.rowCount, what === 'nothing' ? 1 : 0, what)
  }
})

test('who ordered it does not approve it', async () => {
  const { paymentId, approval } = await ordered()
  assert.equal((await asker.post(`${approval}/approve`)).status, 403)
  assert.equal((await asker.post(`${approval}/refuse`)).status, 403)
  assert.deepEqual(await refundsOf(paymentId), [])
  const row = `merchant_id = '${sandbox.merchantId}' and id = '${approval.split('/').at(-1)}'`
  const itself = gateway.pool.query(
    `update staff_orders set decision = 'approved', decided_by = asked_by, decided_at = asked_at where ${row}`,
  )
  await assert.rejects(itself, /check/)
})

test('what somebody asked for in another cell is approved by nobody here, who might be the same person; it may be refused', async () => {
  const { paymentId, approval } = await ordered({ id: '5a11d0000000000000000000000000aa' })
  const answer = await colleague.post(`${approval}/approve`)
  assert.equal(answer.status, 403)
  assert.match(answer.text, /ordered before the merchant came here, by somebody who is not known here/)
  assert.equal((await colleague.post(`${approval}/refuse`)).status, 303)
  assert.deepEqual(await refundsOf(paymentId), [])
})

test('what was approved in the other cell before is carried out here by pressing again', async () => {
  const { paymentId, approval } = await ordered({ id: '5a11d0000000000000000000000000aa' })
  await gateway.pool.query(
    `update staff_orders set decision = 'approved', decided_by = '5a11d0000000000000000000000000ab', decided_at = asked_at where id = $1`,
    [approval.split('/').at(-1)],
  )
  assert.equal((await colleague.post(`${approval}/approve`)).status, 303)
  assert.equal((await refundsOf(paymentId)).length, 1)
})

test('what the developer of a sandbox asked for is approved by somebody of the staff', async () => {
  const { paymentId, approval } = await ordered({ id: 'sandbox' })
  assert.equal((await colleague.post(`${approval}/approve`)).status, 303)
  assert.equal((await refundsOf(paymentId)).length, 1)
})

test('what may still be approved comes before what is over, and the rest is a page away', async () => {
  const { paymentId } = await ordered()
  await gateway.pool.query(
    `insert into staff_orders (merchant_id, id, payment_id, root_id, channel_id, type, amount, currency, reason, once, asked_by, asked_at, waits, outcome)
     select merchant_id, gen_random_uuid(), payment_id, root_id, channel_id, type, amount, currency, 'flood', n::text, asked_by, asked_at + interval '1 second', true, 'done'
       from staff_orders, generate_series(1, 220) n where payment_id = $1`,
    [paymentId],
  )
  const first = (await colleague.ask('/office/approvals')).text
  assert.match(first, /\/approve"[\s\S]*flood/)
  const next = /href="(\/office\/approvals\?page=2)"/.exec(first)![1]!
  assert.match((await colleague.ask(next)).text, /flood/)
  assert.doesNotMatch((await colleague.ask('/office/approvals?page=9e9')).text, /rel="next"/)
  await gateway.pool.query(`delete from staff_orders where reason = 'flood'`)
})

test('what was refused, or waited for more than a day, is not carried out', async () => {
  const refused = await ordered()
  assert.equal((await colleague.post(`${refused.approval}/refuse`)).status, 303)
  assert.equal((await colleague.post(`${refused.approval}/approve`)).status, 404)
  const late = await ordered()
  now += 24 * 3_600_000 + 1
  const next = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
  assert.equal((await next.post(`${late.approval}/approve`)).status, 404)
  assert.match((await next.ask('/office/approvals')).text, /nobody approved it in time/)
  assert.deepEqual([...(await refundsOf(refused.paymentId)), ...(await refundsOf(late.paymentId))], [])
})

test('after a crash between approval and outcome it is carried out by pressing again, once', async () => {
  const approver = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
  const { paymentId, approval } = await ordered()
  const id = approval.split('/').at(-1)
  await approver.post(`${approval}/approve`)
  // As if the process had died before it wrote down what became of it.
  await gateway.pool.query('update staff_orders set outcome = null where id = $1', [id])
  assert.match((await approver.ask('/office/approvals')).text, new RegExp(`${approval}/approve`))
  assert.equal((await approver.post(`${approval}/approve`)).status, 303)
  assert.equal((await refundsOf(paymentId)).length, 1)
})

test('who made the link by which a colleague set the factors approves nothing of theirs, nor they of his', async () => {
  const boss = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
  const puppet = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
  await gateway.pool.query('update staff set factors_by = $1 where id = $2', [boss.id, puppet.id])
  for (const [from, to] of [
    [boss, puppet],
    [puppet, boss],
  ] as const) {
    const { paymentId, approval } = await ordered(from)
    assert.equal((await to.post(`${approval}/approve`)).status, 403)
    assert.deepEqual(await refundsOf(paymentId), [])
  }
})

test('nor when the colleague was dismissed, whose links let nobody in either', async () => {
  const boss = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
  const puppet = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
  const other = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
  await gateway.pool.query('update staff set factors_by = $1 where id = $2', [boss.id, puppet.id])
  const { paymentId, approval } = await ordered(puppet)
  const added = await puppet.post('/office/staff', { name: 'next@shop.example', role: 'admin', entity: sandbox.merchantId })
  const link = /\/office\/invitation\/[A-Za-z0-9_-]{43}/.exec(added.text)![0]
  assert.equal((await puppet.ask(link)).status, 200)
  assert.ok((await boss.post(`/office/staff/${puppet.id}/remove`)).status < 400)
  assert.equal((await boss.post(`${approval}/approve`)).status, 403)
  assert.deepEqual(await refundsOf(paymentId), [])
  assert.equal((await visitor(gateway).ask(link)).status, 410)
  assert.equal((await other.post(`${approval}/approve`)).status, 303)
  assert.equal((await refundsOf(paymentId)).length, 1)
})

test('a form gives one order: nothing else comes with its name, nor the same much later', async () => {
  const paymentId = (await gateway.pay()).body.id
  const [mine, other] = [actorOf(asker), actorOf(colleague)]
  const order = { ...orderFor(paymentId), amount: 1 }
  const first = await placeOrder(staffParts(), mine, order, undefined)
  assert.ok(typeof first !== 'string' && !first.waits)
  assert.equal(((await placeOrder(staffParts(), mine, order, undefined)) as typeof first).id, first.id)
  for (const more of [
    { amount: 40_00 },
    { type: 'CP' as const },
    { type: 'transfer' as const, details: {} },
    { currency: 'USD' },
  ])
    assert.equal(await placeOrder(staffParts(), mine, { ...order, ...more }, 10), 'used')
  assert.equal(await placeOrder(staffParts(), other, order, undefined), 'used')
  now += 24 * 3_600_000 + 1
  assert.equal(await placeOrder(staffParts(), mine, order, undefined), 'used')
})

const orderDetails = allKept.find(({ kind }) => kind === 'orderDetails')!

test('bank data of an order that nobody decided in time are forgotten', async () => {
  const paymentId = (await gateway.pay()).body.id
  await placeOrder(staffParts(), actorOf(asker), { ...orderFor(paymentId), type: 'transfer', details: { holder: 'Eva' } }, 0)
  const kept = async () => (await gateway.pool.query('select from staff_orders where sealed is not null')).rowCount
  await sweep(staffParts(), orderDetails, now)
  assert.equal(await kept(), 1)
  now += 24 * 3_600_000 + 1
  await sweep(staffParts(), orderDetails, now)
  assert.equal(await kept(), 0)
})

test('many decisions at a time keep nobody waiting, who decides or who does something else', async () => {
  const [first, second] = [
    await signedIn(gateway, 'finance', [sandbox.merchantId], clock),
    await signedIn(gateway, 'finance', [sandbox.merchantId], clock),
  ]
  const orders = await Promise.all(Array.from({ length: 8 }, () => ordered(first)))
  await Promise.all(orders.map(() => second.ask('/office/account'))) // connections that are open already
  const [decided, others] = await Promise.all([
    Promise.all(orders.map(({ approval }) => second.post(`${approval}/refuse`))),
    Promise.all(orders.map(() => first.ask('/office/account'))),
  ])
  assert.deepEqual([...new Set(decided.map(({ status }) => status))], [303])
  assert.deepEqual([...new Set(others.map(({ status }) => status))], [200])
})
