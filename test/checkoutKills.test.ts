// The process is killed between an attempt and its answer. The checkout that it leaves lets nobody pay beside an outcome that is not known.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { testPool } from './support/database.ts'
import { type Body, eventually, type Fields, sandbox, visa } from './support/gateway.ts'
import { type Started, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-checkout-kills-'))
const dataDir = join(folder, 'data')
let pool: pg.Pool
let gateway: Started

/** Alone on its own database: what a dead process left is its to settle, at once. */
async function start(): Promise<void> {
  gateway = await startProcess({ DATA_DIR: dataDir })
  pool = testPool(runningEmbedded(dataDir)!, 2)
}
before(start)
after(async () => {
  await pool.end()
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function post(path: string, fields: Fields, headers: Record<string, string>): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${gateway.sandbox.baseUrl}${path}`, {
    method: 'POST',
    headers,
    body: new URLSearchParams(fields),
  })
  return { status: response.status, body: await response.json() }
}
const press = (id: string, fields: Fields = {}) =>
  post(`/v1/checkouts/${id}/payment`, { ...visa, ...fields }, { Accept: 'application/json' })
const payments = async () =>
  (
    await pool.query(
      `select p.brand, a.result, a.approved from payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id order by p.id`,
    )
  ).rows

it('nobody pays beside the attempt that was left; when it is settled another card pays once', async () => {
  const { body } = await post(
    '/v1/checkouts',
    {
      entityId: sandbox.entityId,
      paymentType: 'DB',
      amount: '92.00',
      currency: 'EUR',
      createRegistration: 'true',
      'customParameters[simulateDelay]': '3000',
    },
    { Authorization: `Bearer ${sandbox.accessToken}` },
  )
  const lost = press(body.id).catch(() => 'broken off')
  await eventually(async () => (await payments()).length === 1, 'the attempt is on disk')
  await pool.end()
  await gateway.stop('SIGKILL')
  assert.equal(await lost, 'broken off')
  await start()
  const beside = press(body.id, { paymentBrand: 'MASTER', 'card.number': '5454545454545454' })
  await post('/sandbox/clock', { entityId: sandbox.entityId, advance: '1m' }, { Authorization: `Bearer ${sandbox.accessToken}` })
  await eventually(async () => (await payments())[0]!.result !== null, 'recovery settles what was left')
  await beside
  const [left] = await payments()
  assert.deepEqual([left.result, left.approved], ['timeoutReversed', false])
  await press(body.id, { paymentBrand: 'MASTER', 'card.number': '5454545454545454' })
  const all = await payments()
  assert.deepEqual(
    all.filter(({ approved }) => approved).map(({ brand }) => brand),
    ['MASTER'],
    JSON.stringify(all),
  )
  const { rows } = await pool.query('select usable, count(*)::int as count from registrations group by usable order by usable')
  assert.deepEqual(rows, [
    { usable: false, count: 1 },
    { usable: true, count: 1 },
  ])
})
