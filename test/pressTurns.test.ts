// Who presses Pay for the first time waits for nobody who presses again what was declined.

import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { isMarked } from '../src/vault/marks.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'

let gateway: TestGateway
let ahead = 0
before(async () => {
  gateway = await testGateway({ clock: { ...systemClock, elapsed: () => systemClock.elapsed() + ahead } })
})
after(() => gateway.stop())

const create = async (): Promise<string> =>
  (await gateway.post('/v1/checkouts', { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR' })).body
    .id

const press = (id: string, number: string) =>
  gateway.post(
    `/v1/checkouts/${id}/payment`,
    {
      paymentBrand: 'VISA',
      'card.number': number,
      'card.holder': 'Jane Jones',
      'card.expiryMonth': '05',
      'card.expiryYear': '2034',
      'card.cvv': '123',
      shopperResultUrl: 'https://shop.example/result',
    },
    { Accept: 'application/json', Authorization: '' },
  )
const [declined, good] = ['4000000000000002', '4200000000000000']
const idOf = (wireId: string): string => wireId.slice(0, 32).toLowerCase()

it('however many of those wait', async () => {
  const tried = await Promise.all(Array.from({ length: 10 }, create))
  for (const id of tried) assert.equal((await press(id, declined)).body.result.code, '800.100.152')
  // What a process remembers of presses by itself is over.
  ahead += 60_000
  const held = await Promise.all([create(), create(), create()])
  const fresh = await create()
  for (const id of [...held, fresh]) assert.ok(isMarked(testKeys, idOf(id), { signs: 8, encoding: 'hex' }))
  const order: string[] = []
  const all: Promise<unknown>[] = []
  const begin = (id: string, number: string) => all.push(press(id, number).then(() => order.push(id)))
  await inTransaction(gateway.pool, async db => {
    await db.query('select 1 from checkouts where id = any($1) for update', [held.map(idOf)])
    for (const id of held) begin(id, good)
    const waiting = `select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await eventually(async () => (await gateway.pool.query(waiting)).rows[0].count === held.length, 'all places are taken')
    for (const id of tried) begin(id, declined)
    await systemClock.sleep(500)
    begin(fresh, good)
    await systemClock.sleep(300)
  })
  await Promise.all(all)
  assert.ok(order.indexOf(fresh) < held.length + 4, `${order.indexOf(fresh)} of ${order.length}`)
})
