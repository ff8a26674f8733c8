// Rows that no gateway wrote, as a reporting copy may have them: what can be shown of them is, and no page and no file of anybody breaks.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type Clerk, signedIn } from './support/office.ts'

let gateway: TestGateway
let clerks: Clerk[]
before(async () => {
  gateway = await testGateway()
  clerks = [
    await signedIn(gateway, 'finance', [sandbox.merchantId]),
    await signedIn(gateway, 'admin', [readSeed(sandboxSeed).psp.id]),
  ]
  for (let at = 0; at < 3; at++) {
    const { status, text } = await gateway.pay({ merchantTransactionId: `order-number-${at}` })
    assert.equal(status, 200, text)
  }
  await eventually(
    async () => (await gateway.pool.query('select from events where searched is null')).rowCount === 0,
    'payments can be found',
  )
  const { rows } = await gateway.pool.query(
    `select conrelid::regclass as of, conname from pg_constraint where contype in ('c', 'f') and connamespace = 'public'::regnamespace`,
  )
  for (const { of, conname } of rows) await gateway.pool.query(`alter table ${of} drop constraint "${conname}"`).catch(() => {})
})
after(() => gateway.stop())

test('a payment that is no JSON', async () => {
  const { body } = await gateway.pay({ merchantTransactionId: 'number-no-json' })
  const of = { entityId: sandbox.entityId }
  const read = () => gateway.get(`/v1/payments/${body.id}`, of)
  await gateway.pool.query('update answers set body = $2 where payment_id = $1', [body.id, 'Jane Jones'])
  assert.equal((await read()).status, 500)
  await gateway.pool.query('update payments set record = $2 where id = $1', [body.id, 'Jane Jones'])
  assert.equal((await read()).status, 500)
  for (const path of ['/v3/query', '/v1/query'])
    assert.equal((await gateway.get(path, { ...of, merchantTransactionId: 'number-no-json' })).status, 500, path)
  const told = (column: string) =>
    gateway.logged.filter(line => line.includes(`the ${column} of the payment ${body.id} is no JSON object`)).length
  assert.deepEqual([told('body'), told('record')], [1, 3])
  assert.ok(!gateway.logged.some(line => line.includes('Jane')))
  await gateway.pool.query('delete from answers where payment_id = $1', [body.id])
  await gateway.pool.query('delete from payments where id = $1', [body.id])
})

const one = `(select id from payments order by id limit 1)`
const forged: readonly (readonly [what: string, table: string, change: string, where?: string])[] = [
  ['a time without an end', 'searched_payments', `received_at = 'infinity'`],
  ['a time before all', 'searched_payments', `received_at = '-infinity'`],
  ['a time that nobody writes', 'searched_payments', `received_at = '294275-01-01'`],
  ['a result that there is not', 'answers', `result = 'nope'`],
  ['a result with the name of a property', 'answers', `result = 'constructor'`],
  ['an answer at no time', 'answers', `answered_at = 'infinity'`],
  ['no currency', 'payments', `currency = 'EURO'`],
  ['a currency of other letters', 'payments', `currency = '<b>'`],
  ['no currency at all', 'payments', 'currency = null'],
  ['as much as fits', 'payments', 'amount = 9223372036854775807'],
  ['less than nothing', 'payments', 'amount = -9223372036854775808'],
]
for (const [what, table, change] of forged)
  test(what, async () => {
    const key = table === 'payments' ? 'id' : 'payment_id'
    await gateway.pool.query(`create table kept as select * from ${table}`)
    await gateway.pool.query(
      `update ${table} set ${change} where ${key} in (${table === 'payments' && what.startsWith('as much') ? 'select id from payments' : one})`,
    )
    try {
      for (const clerk of clerks) {
        for (const path of ['/office/payments', '/office/overview', '/office/overview/figures?by=day'])
          assert.equal((await clerk.ask(path)).status, 200, path)
        const file = await clerk.ask('/office/payments.csv')
        assert.equal(file.text.trim().split('\r\n').length, 4, `${file.status} ${file.text}`)
        const { text } = await clerk.ask('/office/payments')
        for (let at = 0; at < 3; at++) assert.ok(text.includes(`order-number-${at}`), 'and on the page')
      }
    } finally {
      await gateway.pool.query(`delete from ${table}`)
      await gateway.pool.query(`insert into ${table} select * from kept`)
      await gateway.pool.query('drop table kept')
    }
  })
