// Banks, wallets and shops that say nothing when they are called: whoever is not asked of them waits for none, and they are tried again one by one.

import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { systemRandom } from '../src/platform/clock.ts'
import { hearSilences } from '../src/platform/due/silence.ts'
import { addDue, type Wanted } from '../src/platform/due/store.ts'
import type { Simulators } from '../src/sandbox/serve.ts'
import { makeDatabase, testPool } from './support/database.ts'
import { lookAtDue, noShares, rooms } from './support/due.ts'
import { eventually, type TestGateway, testGateway } from './support/gateway.ts'
import { cellMerchants, seedOf } from './support/movingCells.ts'
import { patientClock } from './support/patientClock.ts'
import { testSimulators } from './support/simulators.ts'

const payments = 30
const shareOfSide = 8

const ahead = 0
let elapsed = 0
const clock = { ...patientClock(() => Date.now() + ahead, 15_000), elapsed: () => elapsed }
const { merchants } = cellMerchants(3)
let gateway: TestGateway
let simulators: Simulators
let bank: http.Server
let isSilent = false
let asked = 0

/** The bank of the sandbox, which says nothing to other servers when it is silent. */
function startBank(): http.Server {
  return http.createServer((request, response) => {
    if (isSilent) {
      asked++
      return
    }
    const { host, pathname, search } = new URL(simulators.url + request.url!)
    const headers = { ...request.headers, host }
    const [hostname, port] = host.split(':') as [string, string]
    const passed = http.request({ hostname, port, path: pathname + search, method: request.method, headers }, answer => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    request.pipe(passed.on('error', () => response.destroy()))
  })
}

before(async () => {
  simulators = await testSimulators(() => gateway)
  bank = startBank()
  await new Promise<void>(resolve => bank.listen(0, '127.0.0.1', resolve))
  const simulatorsUrl = `http://127.0.0.1:${(bank.address() as AddressInfo).port}`
  gateway = await testGateway({ clock, seed: seedOf(merchants), simulatorsUrl })
})
after(async () => {
  clock.endDeadlines(Number.POSITIVE_INFINITY)
  await gateway.stop()
  bank.closeAllConnections()
  bank.close()
  await simulators.stop()
})

const leaveBank = async ({ token, channelId }: (typeof merchants)[number]): Promise<string> => {
  const fields = { paymentBrand: 'SOFORTUEBERWEISUNG', shopperResultUrl: 'https://shop.example/r', 'bankAccount.country': 'DE' }
  const body = new URLSearchParams({ entityId: channelId, paymentType: 'DB', amount: '1.00', currency: 'EUR', ...fields })
  const answer = await fetch(`${gateway.baseUrl}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body,
  })
  const said = (await answer.json()) as { id: string; redirect?: object }
  assert.ok(said.redirect, JSON.stringify(said))
  return said.id
}

/** Work about money is done that calls nobody, or another bank. */
async function isDone(side: string): Promise<void> {
  const subject = systemRandom.uuid()
  await addDue(gateway.pool, 'redirectExpiry', merchants[2]!.id, subject, clock.real(), {}, side)
  const left = async () => (await gateway.pool.query('select from due_work where subject_id = $1', [subject])).rowCount
  await eventually(async () => (await left()) === 0, `what calls ${side || 'nobody'} is done`)
}
const roundsGoBy = async () => {
  for (let round = 0; round < 2; round++) for (const side of ['', 'other.example']) await isDone(side)
}
const isAsked = (times: number) => eventually(async () => asked >= times, `it is asked ${times} times`)

test('what is done about money waits for no bank that says nothing; it is tried by one payment, and all are asked when it speaks', async () => {
  for (let count = 0; count < payments / 2; count++) for (const merchant of merchants.slice(0, 2)) await leaveBank(merchant)
  const sides = async () =>
    (await gateway.pool.query(`select distinct side from due_work where kind = 'redirectExpiry' order by 1`)).rows.map(
      ({ side }) => side,
    )
  const side = `127.0.0.1:${(bank.address() as AddressInfo).port}`
  assert.deepEqual(await sides(), [side], 'work says whom it calls when it is written')
  // Half of them as a gateway of the version before writes them.
  await gateway.pool.query(`update due_work set side = '' where merchant_id = $1`, [merchants[0]!.id])
  isSilent = true
  await gateway.pool.query(`update continuations set deadline = now() - interval '1 hour'`)
  await gateway.pool.query(`update due_work set due_at = now() - interval '1 hour' where kind = 'redirectExpiry'`)
  await isAsked(shareOfSide)
  await roundsGoBy()
  assert.equal(asked, shareOfSide, 'it has a share of the places')
  assert.deepEqual(await sides(), [side], 'what did not say whom it calls does')

  clock.endDeadlines(15_000)
  const underWay = 'select from due_work where leased_until is not null'
  await eventually(async () => (await gateway.pool.query(underWay)).rowCount === 0, 'they have ended')
  await roundsGoBy()
  assert.equal(asked, shareOfSide, 'who has said nothing is not asked')
  const { rows } = await gateway.pool.query(
    `select attempts, due_at < now() as due from due_work where kind = 'redirectExpiry' and attempts = 0`,
  )
  assert.equal(rows.length, payments - shareOfSide, 'what waits waits as it was')
  assert.equal((await gateway.pool.query('select from answers')).rowCount, 0, 'nothing is guessed')

  elapsed += 30_000
  await isAsked(shareOfSide + 1)
  await roundsGoBy()
  assert.equal(asked, shareOfSide + 1, 'one tries')
  clock.endDeadlines(15_000)
  await eventually(async () => (await gateway.pool.query(underWay)).rowCount === 0, 'it has ended')
  await roundsGoBy()
  assert.equal(asked, shareOfSide + 1, 'and it is not asked again at once')

  isSilent = false
  elapsed += 30_000
  const answered = payments - shareOfSide - 1
  await eventually(async () => (await gateway.pool.query('select from answers')).rowCount === answered, 'all others are asked')
})

test('a side is left alone after three silences in a row, for longer each time, and forgotten when it speaks', () => {
  let now = 0
  const silences = hearSilences({ elapsed: () => now })
  const rooms = () => [...silences.rooms()]
  const note = (...ends: boolean[]) => {
    for (const wasSilent of ends) silences.note('a', wasSilent)
  }
  note(true, true, false, true, true)
  assert.deepEqual(rooms(), [])
  note(true)
  assert.deepEqual(rooms(), [['a', 0]])
  for (const rest of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    now += rest - 1
    assert.deepEqual(rooms(), [['a', 0]], `for ${rest} ms`)
    now += 1
    assert.deepEqual(rooms(), [['a', 1]])
    note(true)
  }
  note(false)
  assert.deepEqual(rooms(), [])
})

test('what is found of each side is bounded by its room, and nothing is read that waits for others', async () => {
  const database = await makeDatabase()
  const pool = testPool(database.connection, 2)
  const merchant = '5a11d0000000000000000000000000e1'
  const now = Date.now()
  try {
    await pool.query(
      `insert into due_work (kind, merchant_id, subject_id, due_at, side)
       select kind, $1, gen_random_uuid(), $2::timestamptz - n * interval '1 second', 'silent.example'
         from generate_series(1, 3000) as n, unnest(array['recover', 'redirectExpiry']) as kind`,
      [merchant, new Date(now)],
    )
    for (const side of ['', 'bank.example', 'wallet.example'])
      await addDue(pool, 'recover', merchant, systemRandom.uuid(), now, {}, side)
    await pool.query('analyze due_work')
    const kinds = ['recover', 'reverse', 'redirectExpiry']
    const wanted = { kinds, limit: 20, merchants: rooms(20), ...noShares }
    const take = async (more: Pick<Wanted, 'taking' | 'sides'>) => {
      const { items, read } = await lookAtDue(pool, now, { ...wanted, ...more })
      return { sides: items.map(({ side }) => side).sort(), read }
    }
    const own = await take({ taking: 'own', sides: rooms(20) })
    assert.deepEqual(own.sides, [''])
    assert.ok(own.read < 20, `${own.read} rows`)
    const resting = await take({ taking: 'sides', sides: rooms(8, ['silent.example', 0]) })
    assert.deepEqual(resting.sides, ['bank.example', 'wallet.example'])
    assert.ok(resting.read < 40, `${resting.read} rows`)
    const one = await take({ taking: 'sides', sides: rooms(8, ['silent.example', 1], ['bank.example', -1]) })
    assert.deepEqual(one.sides, ['silent.example', 'wallet.example'])
    const full = await take({ taking: 'sides', sides: rooms(8) })
    assert.equal(full.sides.filter(side => side === 'silent.example').length, 8)
    assert.deepEqual(full.sides.slice(0, 1).concat(full.sides.slice(-1)), ['bank.example', 'wallet.example'])
  } finally {
    await pool.end()
    await database.drop()
  }
})
