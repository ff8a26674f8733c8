// A merchant goes from one cell to another while it is in use: two real gateways on two databases. At no moment two serve it or two tell its endpoints, what
// clients were told is what the books say, and a command that dies at any step is given again.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { findOwners } from '../src/clearing/chargebacks/store.ts'
import { applySeed, type Seed } from '../src/merchants/seed.ts'
import { checkNotifications } from '../src/notifications/deliveries/check.ts'
import { countDeliveries } from '../src/notifications/deliveries/store.ts'
import { openCase } from '../src/payments/cases/cases.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { findContinuation, takeContinuation } from '../src/payments/redirects/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { isElsewhere } from '../src/platform/database/elsewhere.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { sweep } from '../src/platform/retention/erase.ts'
import { channelRefusal } from '../src/start/channelRefusal.ts'
import { allKept } from '../src/start/kept.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { giveUpMove, type MoveParts, type MoveSide, type MoveStep, moveMerchant, moveSteps } from '../src/start/moves/move.ts'
import { pageMost, readPage } from '../src/start/moves/rows.ts'
import { readMove, stepMove, takePlace } from '../src/start/moves/store.ts'
import { movedTables, staysInCell } from '../src/start/moves/tables.ts'
import { keepKeys, makeKeys } from '../src/vault/keys.ts'
import { databaseUrl } from './support/database.ts'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import {
  ask,
  type CellMerchant,
  cellMerchant,
  cellMerchants,
  moveParts,
  payIn,
  readIn,
  seedOf,
  sideOf,
  type TestCell,
  type TestCells,
  twoCells,
} from './support/movingCells.ts'
import { manyCommands, project } from './support/process.ts'
import { opened, startReceiver } from './support/receiver.ts'
import { wireTo } from './support/wire.ts'

const { merchants, nextMerchant } = cellMerchants(58)

let cells: TestCells
before(async () => {
  cells = await twoCells(merchants)
})
after(() => cells.stop())

const ok = '000.100.110'

/** The statuses of a payment in both cells: 200, or 503 where the merchant is served elsewhere, or 403 where nobody knows it. */
const statuses = async (merchant: CellMerchant): Promise<readonly number[]> =>
  (await Promise.all([payIn(cells.one, merchant), payIn(cells.two, merchant)])).map(({ status }) => status)

test('every table goes with its merchant, or stays for a reason', async () => {
  const { pool } = cells.one.gateway
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by 1`,
  )
  const stays = staysInCell.flatMap(([, tables]) => tables.split(' '))
  const moved = await movedTables(pool)
  assert.deepEqual(
    rows.map(({ name }) => name),
    [...moved.map(({ name }) => name), ...stays].sort(),
  )
  assert.deepEqual(
    moved.filter(({ condition }) => condition === ''),
    [],
    'a table that names no merchant must say how it is reached, or stay',
  )
})

test('a merchant goes, is known there at once, and is refused where it was', async () => {
  const merchant = nextMerchant()
  const told = await payIn(cells.one, merchant)
  assert.equal(told.body.result.code, ok)
  assert.deepEqual(await statuses(merchant), [200, 403])
  const { rows } = await moveMerchant(moveParts(cells, merchant))
  assert.ok(rows > 8, `${rows}`)
  const refused = await eventually(async () => {
    const answer = await payIn(cells.one, merchant)
    return answer.status === 503 && answer
  }, 'the old cell refuses it')
  assert.equal(refused.retryAfter, '2')
  assert.equal(
    (
      await eventually(async () => {
        const a = await payIn(cells.two, merchant)
        return a.status === 200 && a
      }, 'the new cell serves it')
    ).body.result.code,
    ok,
  )
  assert.equal((await readIn(cells.two, merchant, told.body.id)).body.result.code, ok)
})

test('rows as large as a merchant can make them go in pages that fit into memory', async () => {
  const merchant = nextMerchant()
  const { body } = await payIn(cells.one, merchant)
  const { pool } = cells.one.gateway
  // As payments of many parameters: a few hundred small ones, then large ones, one of which is no page's size.
  await pool.query(
    `insert into payments select (jsonb_populate_record(p, jsonb_build_object('id', substr(replace(p.id::text, '-', ''), 1, 24) || lpad(to_hex(n), 8, '0'),
              'root_id', null, 'record', left(record, -1) || ',"customParameters":{"x":"' ||
                repeat('x', case when n = 345 then 4500000 when n > 330 then 400000 else 1 end) || '"}}'))).*
       from payments p, generate_series(1, 350) n where p.id = $1`,
    [body.id],
  )
  const payments = (await movedTables(pool)).find(({ name }) => name === 'payments')!
  const pages: number[] = []
  let from: readonly string[] | undefined
  for (let page = await readPage(pool, payments, merchant.id, from); ; page = await readPage(pool, payments, merchant.id, from)) {
    const { rows } = await pool.query<{ bytes: number }>(
      `select coalesce(sum(octet_length(record)), 0)::integer as bytes from payments where merchant_id = $1 and ($2::uuid is null or id > $2) and id <= $3`,
      [merchant.id, from?.[1] ?? null, page.last![1]],
    )
    assert.ok(rows[0]!.bytes <= pageMost.bytes || page.rows === 1, `${page.rows} rows of ${rows[0]!.bytes} bytes`)
    pages.push(page.rows)
    if (page.isLast) break
    from = page.last!
  }
  assert.equal(
    pages.reduce((all, one) => all + one, 0),
    351,
  )
  assert.ok(pages.length < 20 && pages.includes(1) && pages[0]! > 300, pages.join())
  await moveMerchant(moveParts(cells, merchant))
  const { rows } = await cells.two.gateway.pool.query(
    'select count(*)::integer as count, max(octet_length(record)) as most from payments where merchant_id = $1',
    [merchant.id],
  )
  assert.deepEqual([rows[0].count, rows[0].most > 4_500_000], [351, true])
})

describe('a command that was killed is given again', () => {
  for (const step of moveSteps.filter(one => one !== 'examined'))
    test(`after ${step}`, async () => {
      const merchant = nextMerchant()
      await payIn(cells.one, merchant)
      const host = spawn(
        process.execPath,
        [
          `${project}test/support/moveHost.ts`,
          JSON.stringify(cells.one.gateway.connection),
          JSON.stringify(cells.two.gateway.connection),
          merchant.id,
          step,
        ],
        { stdio: 'inherit' },
      )
      assert.deepEqual(await once(host, 'exit'), [null, 'SIGKILL'])
      // Whatever it had done: never two serve the merchant, and who does takes payments.
      await Promise.all(
        [cells.one.gateway, cells.two.gateway].map(({ pool }) => pool.query(`select pg_notify('tollgate_directory', '')`)),
      )
      const isThere = ['arrived', 'moved', 'flipped'].includes(step)
      const isRefused = ['frozen', 'fenced', 'compared', 'handing'].includes(step)
      await eventually(
        async () => {
          const found = await statuses(merchant)
          assert.ok(found.filter(status => status === 200).length <= 1, `${found}`)
          return found[0] === (isThere || isRefused ? 503 : 200) && found[1] === (isThere ? 200 : step === 'begun' ? 403 : 503)
        },
        `served ${isRefused ? 'nowhere' : isThere ? 'there' : 'where it was'}`,
      )
      await moveMerchant(moveParts(cells, merchant))
      await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
    })
})

describe('who interrupts a move leaves no merchant refused', () => {
  for (const [step, sentence] of [
    ['begun', /^It was interrupted\.\none serves the merchant as before\. The same command goes on/],
    ['frozen', /^It was interrupted\.\none serves the merchant as before\./],
    ['compared', /^It was interrupted\.\none serves the merchant as before\./],
  ] as const)
    test(`after ${step}`, async () => {
      const merchant = nextMerchant()
      await payIn(cells.one, merchant)
      const controller = new AbortController()
      const interrupted = { interrupted: controller.signal }
      const tell = (done: MoveStep) => {
        if (done === step) controller.abort()
      }
      await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell, ...interrupted })), { message: sentence })
      await eventually(async () => (await statuses(merchant))[0] === 200, 'it is served where it was')
      await moveMerchant(moveParts(cells, merchant))
      await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
    })
})

test('who interrupts a move when it is handed over has it come to its end', async () => {
  const merchant = nextMerchant()
  const controller = new AbortController()
  const tell = (done: MoveStep) => {
    if (done === 'handing') controller.abort()
  }
  await moveMerchant(moveParts(cells, merchant, { tell, interrupted: controller.signal }))
  await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
})

describe('a move is given up', () => {
  const back = (merchant: CellMerchant) =>
    giveUpMove({ source: cells.one.side, target: cells.two.side, merchantId: merchant.id, tell: () => {} })
  const rowsIn = async (cell: TestCells['one'], { id }: CellMerchant): Promise<number> => {
    const counts = await Promise.all(
      (await movedTables(cell.gateway.pool)).map(({ name, condition }) =>
        cell.gateway.pool.query<{ count: number }>(`select count(*) from ${name} where ${condition}`, [id]),
      ),
    )
    return counts.reduce((all, { rows }) => all + Number(rows[0]!.count), 0)
  }

  for (const step of ['begun', 'copied', 'frozen', 'fenced', 'compared', 'handing'] satisfies MoveStep[])
    test(`after ${step}`, async () => {
      const merchant = nextMerchant()
      await payIn(cells.one, merchant)
      const failed = new Error(`broken after ${step}`)
      const tell = (done: MoveStep) => {
        if (done === step) throw failed
      }
      await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), { message: new RegExp(failed.message) })
      await back(merchant)
      await eventually(async () => (await statuses(merchant)).join() === '200,403', 'it is served where it was')
      assert.equal(await rowsIn(cells.two, merchant), 0)
      await back(merchant) // again: there is nothing left to do
      await moveMerchant(moveParts(cells, merchant))
      await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
      await assert.rejects(back(merchant), /is not on its way out of one/)
      const { pool } = cells.one.gateway
      await assert.rejects(pool.query('update entities set name = name where id = $1', [merchant.id]), { code: 'TG503' })
    })
})

/** Asks until it is served, at whatever cell requests are led to: as a client behind the proxy does, with one key. */
type Route = { cell: TestCells['one'] }

test('under load nothing is lost, doubled, or told by two', async () => {
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  const receiver = await startReceiver()
  const { pool } = cells.one.gateway
  await addEndpoint(pool, { merchantId: merchant.id, url: receiver.url })
  const route: Route = { cell: cells.one }
  const told = new Map<string, string>()
  const others: number[] = []
  let refusals = 0
  let goesOn = true
  const client = async (name: number) => {
    for (let count = 0; goesOn; count++) {
      const key = `client-${name}-${count}`
      const isHeld = count % 3 === 0
      for (;;) {
        const fields = { amount: '2.00', merchantTransactionId: key, paymentType: isHeld ? 'PA' : 'DB' }
        const { status, body } = await payIn(route.cell, merchant, fields, key)
        if (status === 503) {
          refusals++
          await new Promise(resolve => setTimeout(resolve, 40))
          continue
        }
        assert.equal(status, 200, JSON.stringify(body))
        assert.equal(told.has(body.id), false, 'two keys, one payment')
        told.set(body.id, body.result.code)
        break
      }
    }
  }
  const bystander = async () => {
    while (goesOn) {
      const { status } = await payIn(cells.one, other)
      others.push(status)
    }
  }
  const clients = [client(1), client(2), client(3), client(4), bystander()]
  await eventually(async () => told.size > 100, 'load')
  const flip = async () => {
    route.cell = cells.two
  }
  await moveMerchant(moveParts(cells, merchant, { flip }))
  const before = told.size
  await eventually(async () => told.size > before + 100, 'load in the other cell')
  goesOn = false
  await Promise.all(clients)
  const { rows } = await cells.two.gateway.pool.query<{ id: string }>(
    `select replace(id::text, '-', '') as id from payments where merchant_id = $1`,
    [merchant.id],
  )
  assert.deepEqual(rows.map(({ id }) => id).sort(), [...told.keys()].sort())
  for (const [id, code] of [...told].slice(0, 40)) assert.equal((await readIn(cells.two, merchant, id)).body.result.code, code)
  assert.ok(refusals > 0)
  assert.deepEqual(
    others.filter(status => status !== 200),
    [],
  )
  for (const { gateway } of [cells.one, cells.two]) assert.deepEqual((await examine(gateway.pool)).findings, [])
  // Each event came, and the old cell tells nothing after it was left.
  const secret = (await cells.two.gateway.pool.query('select count(*) from deliveries where merchant_id = $1', [merchant.id]))
    .rows[0]
  assert.ok(Number(secret.count) > 0)
  await eventually(async () => {
    const [counted] = await countDeliveries(cells.two.gateway.pool, merchant.id)
    assert.equal(counted!.lost, 0)
    return counted!.emitted === told.size && counted!.acknowledged === told.size
  }, 'all notifications are acknowledged')
  const heard = new Set(receiver.received.map(({ headers }) => headers['x-notification-id'] ?? headers['webhook-id']))
  assert.ok(heard.size >= told.size, `${heard.size} of ${told.size}`)
  const left = await pool.query(
    `select from delivery_attempts a where merchant_id = $1 and not exists (select from merchant_moves where merchant_id = $1 and changed_at >= a.attempted_at)`,
    [merchant.id],
  )
  assert.equal(left.rowCount, 0)
  await receiver.close()
})

test('what a process that has not heard of it writes meets the fence, and others beside it do not', async () => {
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  const held = await payIn(cells.one, merchant, { paymentType: 'PA' })
  await moveMerchant(moveParts(cells, merchant))
  const { pool } = cells.one.gateway
  const fenced = (await movedTables(pool)).filter(({ name, owner }) => owner !== undefined && name !== 'challenge_secrets')
  const { rows } = await pool.query<{ count: number }>('select count(*) from pg_trigger where tgname like $1', [
    `elsewhere_${merchant.id}%`,
  ])
  assert.equal(Number(rows[0]!.count), fenced.length * 2)
  // As if it had not heard.
  await pool.query('update merchant_moves set here = true where merchant_id = $1', [merchant.id])
  await pool.query(`select pg_notify('tollgate_directory', '')`)
  await eventually(
    async () => (await readIn(cells.one, merchant, held.body.id)).status === 200,
    'it thinks that it serves the merchant',
  )
  const capture = { entityId: merchant.channelId, paymentType: 'CP', amount: '1.00', currency: 'EUR' }
  const answers = await Promise.all([
    ...Array.from({ length: 6 }, () => payIn(cells.one, merchant)),
    ask(cells.one, merchant, `/v1/payments/${held.body.id}`, capture),
    ...Array.from({ length: 12 }, () => payIn(cells.one, other)),
  ])
  assert.deepEqual(
    answers.map(({ status, retryAfter }) => `${status} ${retryAfter}`),
    [...Array.from({ length: 7 }, () => '503 2'), ...Array.from({ length: 12 }, () => '200 null')],
  )
  await pool.query('update merchant_moves set here = false where merchant_id = $1', [merchant.id])
  await pool.query(`select pg_notify('tollgate_directory', '')`)
  assert.equal((await ask(cells.two, merchant, `/v1/payments/${held.body.id}`, capture)).body.result.code, ok)
})

test('an answer that comes behind the fence is not stored: its payment is settled in the other cell', async () => {
  const merchant = nextMerchant()
  const slow = payIn(cells.one, merchant, { 'customParameters[simulateDelay]': '4000' })
  await eventually(
    async () =>
      (await cells.one.gateway.pool.query('select from unanswered where merchant_id = $1', [merchant.id])).rowCount === 1,
    'it is under way',
  )
  await moveMerchant(moveParts(cells, merchant, { patienceSeconds: 0 }))
  const told = await slow
  assert.equal(told.body.result.code, '000.200.000')
  // As if the sweep for what processes left behind had come round.
  await cells.two.gateway.pool.query(
    `update unanswered set recorded_at = recorded_at - interval '1 hour' where merchant_id = $1`,
    [merchant.id],
  )
  await cells.two.gateway.restart()
  const ended = await eventually(async () => {
    const { body } = await readIn(cells.two, merchant, told.body.id)
    return body.result.code !== '000.200.000' && body.result.code
  }, 'it is settled')
  assert.notEqual(ended, ok, 'an outcome that nobody knows is reversed')
  assert.deepEqual((await examine(cells.two.gateway.pool)).findings, [])
})

test('an answer that comes when its merchant is forgotten is not stored, and nobody is told of it', async () => {
  const merchant = nextMerchant()
  const slow = payIn(cells.one, merchant, { 'customParameters[simulateDelay]': '5000' })
  const under = 'select from unanswered where merchant_id = $1'
  await eventually(async () => (await cells.one.gateway.pool.query(under, [merchant.id])).rowCount === 1, 'it is under way')
  await moveMerchant(moveParts(cells, merchant, { patienceSeconds: 0 }))
  await forgetMerchant(cells.one.side, cells.two.side, merchant.id)
  assert.equal((await slow).body.result.code, '000.200.000')
  for (const table of ['answers', 'journal', 'events'])
    assert.equal((await cells.one.gateway.pool.query(`select from ${table} where merchant_id = $1`, [merchant.id])).rowCount, 0)
})

/**
 * Tables without the trigger of migration 0071, which would cost each payment as much again: rows are written there in one statement with one that has it, behind one that is there, or by
 * who looks for those that are served here; or it is no harm.
 */
const unguarded: ReadonlySet<string> = new Set(
  'captures challenge_secrets deliveries idempotency_keys journal request_records sealed_cards searched_payments unanswered'.split(
    ' ',
  ),
)

test('nobody writes a row of who is forgotten, or has not come yet, into a table that is not left out for a reason', async () => {
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  const guarded = (await movedTables(cells.one.gateway.pool)).filter(
    ({ name, owner }) => owner !== undefined && !unguarded.has(name),
  )
  assert.ok(guarded.length > 20, `${guarded.length}`)
  const written = async ({ gateway: { pool } }: TestCell, { id }: CellMerchant): Promise<string[]> => {
    const ended = guarded.map(({ name, owner }) =>
      pool.query(`insert into ${name} (${owner}) values ($1)`, [id]).then<string, string>(
        () => 'a row',
        ({ code }: { code: string }) => code,
      ),
    )
    return [...new Set(await Promise.all(ended))]
  }
  const seen: Promise<string[]>[] = []
  const tell = (step: MoveStep) => void (step === 'copied' && seen.push(written(cells.two, merchant)))
  await moveMerchant(moveParts(cells, merchant, { tell }))
  await forgetMerchant(cells.one.side, cells.two.side, merchant.id)
  seen.push(written(cells.one, merchant))
  const refused = await Promise.all(seen)
  assert.ok(refused.length >= 2)
  for (const codes of refused) assert.deepEqual(codes, ['TG503'])
  // Of whom is served there it is only what lacks its other columns.
  for (const codes of await Promise.all([written(cells.one, other), written(cells.two, merchant)]))
    assert.deepEqual(codes, ['23502'])
})

test('a gateway that has not heard denies nothing: what it does not find may be in the other cell', async () => {
  const merchant = nextMerchant()
  const { pool } = cells.one.gateway
  // It believes that the merchant is here, as one to which no news came; the database knows better.
  const put = (here: boolean) =>
    pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at, steps) values ($1, 'leaving', 'forgotten', $2, 'two', 1, now(), 1)
       on conflict (merchant_id) do update set here = excluded.here`,
      [merchant.id, here],
    )
  const { body: made } = await ask(cells.one, merchant, '/v1/checkouts', {
    ...{ entityId: merchant.channelId, amount: '1.00', currency: 'EUR', paymentType: 'DB' },
  })
  await put(false)
  const none = 'e'.repeat(32)
  const session = `/v1/checkouts/${none.toUpperCase()}.${made.id.split('.')[1]}/payment`
  const asked = [
    `/v1/payments/${none}`,
    `/v1/query/${none}`,
    '/v1/query',
    `/v3/query/${none}`,
    session,
    `/v1/registrations/${none}`,
  ]
  const statuses = () =>
    Promise.all(
      asked.map(async path => {
        const more = path.endsWith('y') ? '&merchantTransactionId=order-1' : ''
        const { status } = await fetch(`${cells.one.gateway.baseUrl}${path}?entityId=${merchant.channelId}${more}`, {
          headers: { Authorization: `Bearer ${merchant.token}` },
        })
        return status
      }),
    )
  assert.deepEqual(await statuses(), [503, 503, 503, 503, 503, 503])
  await put(true)
  assert.deepEqual(await statuses(), [404, 400, 400, 400, 400, 404])
  await pool.query('delete from merchant_moves where merchant_id = $1', [merchant.id])
})

test('what somebody changes where a merchant is on its way to is refused, for it would not last', async () => {
  const merchant = nextMerchant()
  await moveMerchant(moveParts(cells, merchant))
  await forgetMerchant(cells.one.side, cells.two.side, merchant.id)
  const changes = [
    `update access_tokens set revoked_at = now() where merchant_id = $1`,
    `update entities set settings = '{}' where merchant_id = $1`,
    `delete from access_tokens where merchant_id = $1`,
  ]
  const ended: Promise<string>[] = []
  const tell = (step: MoveStep) => {
    if (step !== 'copied') return
    for (const text of changes)
      ended.push(
        cells.one.gateway.pool.query(text, [merchant.id]).then(
          ({ rowCount }) => `${rowCount} rows`,
          ({ code }) => code,
        ),
      )
  }
  const back = { source: cells.two.side, target: cells.one.side, tell }
  await moveMerchant(moveParts(cells, merchant, back))
  assert.deepEqual([...new Set(await Promise.all(ended))], ['TG503'])
  await eventually(async () => (await payIn(cells.one, merchant)).status === 200, 'it is back')
})

test('a shopper who comes back to a cell that has not got its merchant yet is not taken further there', async () => {
  const merchant = nextMerchant()
  const { body } = await payIn(cells.one, merchant, {
    ...{ 'card.number': '4200000000000018', 'customParameters[3DS2_enrolled]': 'true' },
    shopperResultUrl: 'https://shop.example/',
  })
  assert.equal(body.result.code, '000.200.000')
  const { work } = cells.two.side.database
  const steps: Promise<string>[] = []
  const tell = (name: MoveStep) => {
    if (name === 'copied')
      steps.push(
        findContinuation(work, merchant.id, body.id)
          .then(found => takeContinuation(work, merchant.id, body.id, 'stale', found!.step, Date.now(), Date.now(), false, ''))
          .then(String, (error: Error) => (isElsewhere(error) ? 'elsewhere' : error.message)),
      )
  }
  await moveMerchant(moveParts(cells, merchant, { tell }))
  assert.deepEqual([...new Set(await Promise.all(steps))], ['elsewhere'])
  assert.ok(await findContinuation(work, merchant.id, body.id), 'it stands where it was')
})

test('two commands at once: one moves, the other one says so', async () => {
  const merchant = nextMerchant()
  const other = sideOf('one', cells.one.gateway.connection)
  const outcomes = await Promise.allSettled([
    moveMerchant(moveParts(cells, merchant)),
    moveMerchant(moveParts(cells, merchant, { source: other })),
  ])
  await other.close()
  const refused = outcomes.flatMap(one => (one.status === 'rejected' ? [(one.reason as Error).message] : []))
  assert.deepEqual(refused, [`Another command is at work on the merchant ${merchant.id}.`])
})

test('a command that was overtaken by another writes nothing any more', async () => {
  const merchant = nextMerchant()
  await payIn(cells.one, merchant)
  // Its connection was lost with its place, and another command has begun: that is a new run in both cells.
  const begun: Promise<unknown>[] = []
  const tell = (step: MoveStep) => {
    if (step !== 'fenced') return
    for (const { gateway } of [cells.one, cells.two])
      begun.push(gateway.pool.query('update merchant_moves set run = run + 1 where merchant_id = $1', [merchant.id]))
  }
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /Another command has gone on with the move/)
  await Promise.all(begun)
  const left = (await readMove(cells.two.gateway.pool, merchant.id))!
  assert.deepEqual(left.state, 'arriving')
  const late = { merchantId: merchant.id, run: left.run - 1 }
  await assert.rejects(
    stepMove(cells.two.gateway.pool, late, [left.state], { state: left.state, here: left.here }, Date.now()),
    /Another command has gone on/,
  )
  await moveMerchant(moveParts(cells, merchant))
  await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
})

describe('a cell that cannot be reached', () => {
  test('the new one, while the merchant is refused: it is served where it was, in bounded time', async () => {
    const merchant = nextMerchant()
    await payIn(cells.one, merchant)
    const wire = await wireTo(cells.two.gateway.connection)
    const target = sideOf('two', wire.connection)
    const tell = (step: MoveStep) => void (step === 'frozen' && wire.silence())
    const parts = moveParts(cells, merchant, { target, tell, refusalSeconds: 3 })
    await assert.rejects(moveMerchant(parts), /longer than 3 seconds.*\n?.*one serves the merchant as before/)
    await eventually(async () => (await payIn(cells.one, merchant)).status === 200, 'it is served')
    await giveUpMove({ source: cells.one.side, target: undefined, merchantId: merchant.id, tell: () => {} })
    await wire.close()
    await target.close()
    await moveMerchant(moveParts(cells, merchant))
    await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
  })

  test('the old one, while it is handed over: the same command goes on', async () => {
    const merchant = nextMerchant()
    await payIn(cells.one, merchant)
    const wire = await wireTo(cells.one.gateway.connection)
    const source = sideOf('one', wire.connection)
    const tell = (step: MoveStep) => void (step === 'arrived' && wire.cut())
    await assert.rejects(moveMerchant(moveParts(cells, merchant, { source, tell })))
    await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served by one cell')
    await wire.close()
    await source.close()
    await moveMerchant(moveParts(cells, merchant))
    assert.equal((await readMove(cells.one.gateway.pool, merchant.id))!.state, 'moved')
  })

  test('a proxy that cannot be led: the merchant has moved, and the same command leads it', async () => {
    const merchant = nextMerchant()
    const flip = async () => {
      throw new Error('the proxy is away')
    }
    await assert.rejects(moveMerchant(moveParts(cells, merchant, { flip })), /the proxy is away/)
    await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
    let flipped = 0
    await moveMerchant(moveParts(cells, merchant, { flip: async () => void flipped++ }))
    assert.equal(flipped, 1)
  })
})

describe('is refused by name, and nothing is begun', () => {
  const merchant = nextMerchant()
  const refused = async (why: RegExp, more: Partial<MoveParts> = {}) => {
    await assert.rejects(moveMerchant(moveParts(cells, merchant, more)), why)
    for (const { gateway } of [cells.one, cells.two]) assert.equal(await readMove(gateway.pool, merchant.id), undefined)
  }
  /** While rows stand that are taken away again. */
  const beside = async (pool: TestGateway['pool'], made: string, why: RegExp, undone: string) => {
    await pool.query(made)
    try {
      await refused(why)
    } finally {
      await pool.query(undone)
    }
  }

  test('other keys', async () => {
    const keys = makeKeys([Buffer.alloc(32, 3)], Buffer.alloc(32, 2))
    const { one, two } = cells
    await inTransaction(one.gateway.pool, db => keepKeys(db, testKeys, Date.now()))
    await refused(/two does not have the keys of one\. Card data in this database is sealed with the key/, {
      target: { ...two.side, keys },
    })
  })

  test('a channel that gateways there do not serve: none would start again', async () => {
    const { one, two } = cells
    const target = { ...two.side, channelRefusal: channelRefusal({ mode: 'live', directories: {} }) }
    const change = (settings: string) =>
      one.gateway.pool.query(`update entities set settings = ${settings} where id = $1`, [merchant.channelId])
    await change(`settings || '{"mode": "live", "threeDSecure": "always"}'`)
    await refused(/^Error: two does not serve the channel Shop \(\w+\): threeDSecure is always, but THREE_D_SECURE_FILE/, {
      target,
    })
    await change(`settings - 'mode' - 'threeDSecure'`)
  })

  test('another mode, another schema', async () => {
    const { pool } = cells.two.gateway
    await keepMode(cells.one.gateway.pool, 'sandbox', Date.now())
    await beside(
      pool,
      `insert into installation (mode, made_at) values ('live', '2020-01-01')`,
      /one belongs to mode sandbox, two to live/,
      'delete from installation',
    )
    await keepMode(pool, 'sandbox', Date.now())
    await beside(
      pool,
      `insert into migrations values ('9999_later.sql', '', '2020-01-01')`,
      /The schemas differ by 9999_later\.sql/,
      `delete from migrations where name = '9999_later.sql'`,
    )
  })

  test('what it shares with others', async () => {
    const [one, two] = [cells.one.gateway.pool, cells.two.gateway.pool]
    const [own, other, division] = [merchant.id, merchants.at(-1)!.id, '5a11d0000000000000000000000000d1']
    const slip = (of: string, number: number) =>
      `insert into slips values ('${of}', gen_random_uuid(), 'itau', '${number}', '', '2030-01-01', 1, 'BRL', '', '', decode('0${number}', 'hex'), '2020-01-01')`
    await beside(
      one,
      `${slip(own, 1)}; ${slip(other, 2)}`,
      /Slips of other merchants stand on its account itau/,
      `delete from slips where account = 'itau'`,
    )
    await one.query(slip(own, 1))
    await beside(
      two,
      `insert into slip_numbers values ('itau', 101)`,
      /two has given out numbers of the account itau/,
      `delete from slip_numbers where account = 'itau'`,
    )
    await one.query(`delete from slips where account = 'itau'`)
    await beside(
      one,
      `insert into capture_files values ('acme', 1, '2020-01-01', 'one', '', '2020-01-01');
       insert into collected_captures values ('${own}', gen_random_uuid(), 'acme', '{}', '2020-01-01', 1, 1)`,
      /1 of its captures are in files that their acquirer has not acknowledged/,
      'delete from collected_captures; delete from capture_files',
    )
    await beside(
      two,
      `update entities set settings = '{"pan": 1}' where id = '${division}'`,
      /The division \w+ has other settings in two/,
      `update entities set settings = '{}' where id = '${division}'`,
    )
    await beside(
      two,
      `insert into entities (id, kind, name, settings, changed_at) values ('5a11d0000000000000000000000000b9', 'psp', 'Other', '{}', '2020-01-01')`,
      /two belongs to another PSP/,
      `delete from entities where id = '5a11d0000000000000000000000000b9'`,
    )
    await beside(
      one,
      `insert into registrations (owner_id, id, channel_id, usable, mode, brand, record, made_at)
       values ('${division}', gen_random_uuid(), '${division}', true, 'internal', 'VISA', '{}', '2020-01-01')`,
      /1 registrations belong to the division or psp/,
      'delete from registrations',
    )
  })

  test('a merchant that the other cell has already, or that nobody has', async () => {
    await refused(/two has something of the merchant \w+ already/, { merchantId: sandbox.merchantId })
    await refused(/one has no merchant ffff/, { merchantId: 'f'.repeat(32) })
  })
})

test('a database that has come to be named like the one of the move is refused by name, and never serves it too', async () => {
  const merchant = nextMerchant()
  await payIn(cells.one, merchant)
  const third = await testGateway({})
  const three = sideOf('two', third.connection)
  const tell = (step: MoveStep) => {
    if (step === 'arrived') throw new Error('interrupted')
  }
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /interrupted/)
  const wrong = /The database that two names is not the one with which the move of the merchant \w+ began/
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { target: three })), wrong)
  await assert.rejects(giveUpMove({ ...moveParts(cells, merchant), target: three }), wrong)
  // Nor one that has a move of its own of this merchant.
  await third.pool.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, move_id, changed_at)
     values ($1, 'arriving', 'arriving', false, 'one', 1, gen_random_uuid(), now())`,
    [merchant.id],
  )
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { target: three })), wrong)
  await assert.rejects(giveUpMove({ ...moveParts(cells, merchant), target: three }), wrong)
  await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there alone')
  assert.equal((await third.pool.query('select from payments where merchant_id = $1', [merchant.id])).rowCount, 0)
  await moveMerchant(moveParts(cells, merchant))
  await third.pool.query(`update merchant_moves set state = 'arrived', here = true where merchant_id = $1`, [merchant.id])
  await assert.rejects(forgetMerchant(cells.one.side, three, merchant.id), /does not say that the merchant \w+ has arrived/)
  await forgetMerchant(cells.one.side, cells.two.side, merchant.id)
  await three.close()
  await third.stop()
})

test('what it has together with others is there as it is when it is handed over', async () => {
  const [merchant, stays, there] = [nextMerchant(), nextMerchant(), cellMerchant(901)]
  const [one, two] = [cells.one.side, cells.two.side]
  const known = { psp: seedOf([]).psp, divisions: [] }
  const seed = (side: MoveSide, given: Seed) =>
    applySeed(side.database.work, testKeys, systemClock, systemRandom, given, { by: side.by })
  const token = (name: string) => `token-of-several-merchants-${name}-Qz9KcXe2VbLy`
  const tokenOf = (name: string, ...of: readonly CellMerchant[]) => ({
    label: name,
    token: token(name),
    entities: of.map(({ id }) => id),
  })
  await seed(two, { ...seedOf([there]), tokens: [tokenOf('both', there)] })
  await seed(one, { ...known, tokens: [tokenOf('revoked', merchant, stays), tokenOf('both', merchant)] })
  const division = seedOf([]).divisions![0]!.id
  const made: Promise<unknown>[] = []
  const tell = (step: MoveStep) => {
    if (step !== 'begun') return
    made.push(seed(one, { ...known, tokens: [tokenOf('later', merchant, stays)] }))
    made.push(one.database.work.query(`update access_tokens set revoked_at = now() where label = 'revoked'`))
    made.push(
      one.database.work.query(
        `insert into risk_entries values ('${division}', 'ip', '10.9.0.0/16', gen_random_uuid(), 'block', 'x', '10.9.0.0/16', null, 'why', 'me', now(), null)`,
      ),
    )
  }
  const source = { ...one, clock: { ...systemClock, sleep: (ms: number) => Promise.all(made).then(() => systemClock.sleep(ms)) } }
  await moveMerchant(moveParts(cells, merchant, { source, tell }))
  const pays = async (cell: TestCells['one'], who: CellMerchant, name: string) =>
    (await payIn(cell, { ...who, token: token(name) })).status
  await eventually(async () => (await pays(cells.two, merchant, 'later')) === 200, 'the token that was made meanwhile')
  assert.deepEqual(await Promise.all([merchant, there].map(who => pays(cells.two, who, 'both'))), [200, 200])
  assert.equal(await pays(cells.two, merchant, 'revoked'), await pays(cells.two, merchant, 'unknown'))
  assert.equal((await two.database.work.query('select from risk_entries where owner_id = $1', [division])).rowCount, 1)
})

test('a division that was changed meanwhile keeps its merchant where it is', async () => {
  const merchant = nextMerchant()
  const { pool } = cells.one.gateway
  const [division] = seedOf([]).divisions!
  const change = (settings: string) => pool.query('update entities set settings = $2 where id = $1', [division!.id, settings])
  const made: Promise<unknown>[] = []
  const tell = (step: MoveStep) => {
    if (step === 'begun') made.push(change('{"pan": 1}'))
  }
  const clock = { ...systemClock, sleep: (ms: number) => Promise.all(made).then(() => systemClock.sleep(ms)) }
  await assert.rejects(
    moveMerchant(moveParts(cells, merchant, { source: { ...cells.one.side, clock }, tell })),
    /The division \w+ has other settings in two.*\n.*one serves the merchant as before/,
  )
  await change('{}')
  await eventually(async () => (await payIn(cells.one, merchant)).status === 200, 'it is served where it was')
})

test('a channel that became one which the other cell does not serve keeps its merchant where it is', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  const made: Promise<unknown>[] = []
  const tell = (step: MoveStep) => {
    if (step === 'begun')
      made.push(
        one.gateway.pool.query(`update entities set settings = settings || '{"threeDSecure": "always"}' where id = $1`, [
          merchant.channelId,
        ]),
      )
  }
  const clock = { ...systemClock, sleep: (ms: number) => Promise.all(made).then(() => systemClock.sleep(ms)) }
  const target: MoveSide = {
    ...two.side,
    channelRefusal: ({ threeDSecure }) => (threeDSecure === 'always' ? 'nobody can be asked' : undefined),
  }
  await assert.rejects(
    moveMerchant(moveParts(cells, merchant, { source: { ...one.side, clock }, target, tell })),
    /two does not serve the channel Shop .*nobody can be asked.*\n.*one serves the merchant as before/,
  )
})

/** A row of each table that payments of a simulator do not write, by its table; a bank account is the merchant's alone. */
// biome-ignore format: a row in a line
const rareRows = ({ id, channelId }: CellMerchant): Readonly<Record<string, string>> => {
  const [at, one, two] = ["'2030-01-01 01:02:03.456789Z'", "'00000000-0000-7000-8000-00000000a001'", "'00000000-0000-7000-8000-00000000a002'"]
  return {
    slips: `insert into slips values ('${id}', ${one}, 'solo', '1', 'é"\\', '2030-01-01', 1, 'BRL', '', '', '\\x00ff', ${at})`,
    slip_numbers: `insert into slip_numbers values ('solo', 101)`,
    slip_orders: `insert into slip_orders values ('${id}', ${one}, ${one}, 'solo', 'entry', ${at}, null, null)`,
    order_files: `insert into order_files values ('${'0'.repeat(32)}', ${one}, 'solo', 1, '2030-01-01', 'one', '\\x00', ${at}, null)`,
    return_files: `insert into return_files values ('${'0'.repeat(32)}', ${one}, decode(repeat('ab', 32), 'hex'), 'solo', 'one', 1, null, null, '\\x00ff', ${at})`,
    transfer_files: `insert into transfer_files values ('solo', 1, ${at}, null)`,
    refund_transfers: `insert into refund_transfers values ('${id}', ${two}, 'solo', '\\xff', ${at}, 1, 1)`,
    receipts: `insert into receipts values ('${id}', ${two}, ${one}, 'solo', 'key', '2030-01-01', null)`,
    collected_captures: `insert into collected_captures values ('${id}', ${two}, 'acme', '{}', ${at}, null, null, null)`,
    owed_files: `insert into owed_files values ('${id}', ${one}, '2030-01-01', 'csv', ${at}, 0, null, 1, ${two}, 'delivered', ${at})`,
    file_pieces: `insert into file_pieces select ${two}, n, decode(repeat('00ff', 5000), 'hex') from generate_series(1, 20) n`,
    report_schedules: `insert into report_schedules values ('${id}', ${one}, '{"a": [1.10, null, "\u00e9"]}', ${at}, 'me', ${at})`,
    registrations: `insert into registrations (owner_id, id, channel_id, usable, mode, brand, record, made_at) values ('${id}', ${one}, '${channelId}', true, 'internal', 'VISA', '{}', ${at})`,
    risk_entries: `insert into risk_entries values ('${id}', 'ip', '10.0.0.0/8', ${one}, 'block', 'x', '10.0.0.0/8', null, 'why', 'me', ${at}, null)`,
    chargeback_lines: `insert into chargeback_lines select '${id}', name, n, ${one} from generate_series(1, 2500) n, unnest(array['b', 'B', 'é', 'a-a', 'a a']) name`,
    staff_orders: `insert into staff_orders values ('${id}', ${one}, ${one}, ${one}, '${channelId}', 'CP', 1, 'EUR', 'why', null, 'once', 'me', ${at}, false)`,
  }
}

test('what was left is forgotten once it is as it was handed over; what has moved comes back as it is', async () => {
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  const [one, two] = [cells.one.gateway.pool, cells.two.gateway.pool]
  const told = await payIn(cells.one, merchant, { paymentType: 'PA' })
  await payIn(cells.one, other)
  const tables = await movedTables(one)
  const rowsOf = async (pool: TestGateway['pool'], { id }: CellMerchant): Promise<string[]> => {
    const found: string[] = []
    for (const { name, condition } of tables)
      for (const { text } of (
        await pool.query<{ text: string }>(`select t::text as text from ${name} t where ${condition}`, [id])
      ).rows)
        found.push(`${name} ${text}`)
    return found.sort()
  }
  const forget = () => forgetMerchant(cells.one.side, cells.two.side, merchant.id)
  await assert.rejects(forget(), /has not moved away from one/)
  const rare = rareRows(merchant)
  for (const text of Object.values(rare)) await one.query(text)
  await moveMerchant(moveParts(cells, merchant))
  const [left, others] = [await rowsOf(one, merchant), await rowsOf(one, other)]
  const named = (rows: readonly string[], name: string) => rows.filter(row => row.startsWith(`${name} `))
  const arrived = await rowsOf(two, merchant)
  for (const name of Object.keys(rare)) {
    assert.ok(named(left, name).length > 0, name)
    if (name !== 'slip_numbers') assert.deepEqual(named(arrived, name), named(left, name), name)
  }
  assert.deepEqual(
    [left, arrived].map(rows => named(rows, 'slip_numbers')),
    [['slip_numbers (solo,101,t)'], ['slip_numbers (solo,101,f)']],
    'one cell gives them out',
  )
  const change = (text: string) =>
    inTransaction(one, async db => {
      await db.query(`select set_config('tollgate.forgets', $1, true)`, [merchant.id])
      await db.query(text, [merchant.id])
    })
  await change(`update payments set received_at = received_at + interval '1 second' where merchant_id = $1`)
  await assert.rejects(forget(), /is not what was handed over: payments \(1 and 1 rows\)\. Nothing is taken away/)
  await change(`update payments set received_at = received_at - interval '1 second' where merchant_id = $1`)
  assert.ok((await forget()) >= left.length - 1, 'all but how far the numbers have come')
  assert.deepEqual(await rowsOf(one, merchant), [])
  assert.deepEqual(await rowsOf(one, other), others)
  assert.deepEqual((await one.query('select from pg_trigger where tgname like $1', [`elsewhere_${merchant.id}%`])).rowCount, 0)
  // And back, by a cell that serves it now.
  await moveMerchant({ ...moveParts(cells, merchant), source: cells.two.side, target: cells.one.side })
  await eventually(async () => (await statuses(merchant)).join() === '200,503', 'it is served where it was at first')
  const capture = { entityId: merchant.channelId, paymentType: 'CP', amount: '1.00', currency: 'EUR' }
  assert.equal((await ask(cells.one, merchant, `/v1/payments/${told.body.id}`, capture)).body.result.code, ok)
  const audits = await Promise.all(
    [one, two].map(pool =>
      pool.query<{ action: string }>('select action from audit where subject = $1 order by sequence', [merchant.id]),
    ),
  )
  assert.deepEqual(
    audits.map(({ rows }) => rows.map(({ action }) => action)),
    [
      ['entityMade', 'merchantLeft', 'actBegun', 'merchantForgotten', 'merchantArrived'].filter(
        action => action !== 'entityMade' || audits[0]!.rows.some(one => one.action === action),
      ),
      ['merchantArrived', 'merchantLeft'],
    ],
  )
})

test('what is told while its merchant leaves is followed by the rest of its chain, there or, after an interruption, here', async () => {
  for (const isInterrupted of [false, true]) {
    const merchant = nextMerchant()
    const { one, two } = cells
    const receiver = await startReceiver()
    const { secret } = await addEndpoint(one.gateway.pool, { merchantId: merchant.id, url: receiver.url })
    let answerFirst: (status: number) => void = () => {}
    receiver.answer = () => new Promise(resolve => (answerFirst = resolve))
    const paid = await payIn(one, merchant)
    const refund = () =>
      ask(one, merchant, `/v1/payments/${paid.body.id}`, {
        entityId: merchant.channelId,
        paymentType: 'RF',
        amount: '0.10',
        currency: 'EUR',
      })
    await refund()
    const isBehind = async () =>
      (await one.gateway.pool.query('select from deliveries where merchant_id = $1 and behind', [merchant.id])).rowCount === 1
    await eventually(isBehind, 'the refund waits behind the payment')
    receiver.answer = () => 200
    const stop = new AbortController()
    const tell = (step: MoveStep) => {
      if (step === 'frozen') answerFirst(200)
      if (step === 'fenced' && isInterrupted) stop.abort()
    }
    const moved = moveMerchant(moveParts(cells, merchant, { tell, interrupted: stop.signal }))
    await (isInterrupted ? assert.rejects(moved, /interrupted/) : moved)
    await eventually(
      async () => receiver.received.some(call => opened(call, secret).payload.paymentType === 'RF'),
      'the refund is told',
      8,
    )
    const { pool } = (isInterrupted ? one : two).gateway
    assert.equal((await checkNotifications(pool, merchant.id)).balanced, true)
    await receiver.close()
  }
})

test("what waits goes along and ends in the new cell, and stands in nobody's way in the old one", async () => {
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  const { one, two } = cells
  const [here, there] = [one.gateway.pool, two.gateway.pool]
  const held = await startReceiver(() => 500)
  const others = await startReceiver()
  held.answer = () => 200
  const { secret } = await addEndpoint(here, { merchantId: merchant.id, url: held.url })
  held.answer = () => 500
  await addEndpoint(here, { merchantId: other.id, url: others.url })
  // A shopper at the issuer, one before the form, a webhook in retry, a payment that is asked about, and a case that somebody decides.
  const away = await payIn(one, merchant, {
    'card.number': '4200000000000018',
    'customParameters[3DS2_enrolled]': 'true',
    shopperResultUrl: 'https://shop.example/back',
  })
  assert.equal(away.body.result.code, '000.200.000')
  const checkout = await ask(one, merchant, '/v1/checkouts', {
    entityId: merchant.channelId,
    amount: '5.00',
    currency: 'EUR',
    paymentType: 'DB',
  })
  const silent = await payIn(one, merchant, { 'customParameters[simulateAnswer]': 'none' })
  const paid = await payIn(one, merchant)
  await eventually(async () => held.received.length > 2, 'the webhook is tried')
  await openCase(
    here,
    { ...one.side, random: systemRandom },
    { kind: 'reportFile', merchantId: merchant.id, subject: 'late', details: {} },
  )
  const page = (cell: TestCells['one'], url: string) =>
    fetch(cell.gateway.baseUrl + new URL(url).pathname, { redirect: 'manual' })
  assert.equal((await page(one, away.body.redirect.url)).status, 200)
  const form = `/v1/checkouts/${checkout.body.id}/payment?entityId=${merchant.channelId}`
  assert.equal((await ask(one, merchant, form)).status, 200)

  await moveMerchant(moveParts(cells, merchant))
  await eventually(async () => (await statuses(merchant)).join() === '503,200', 'it is served there')
  const tried = held.received.length
  held.answer = () => 200
  for (const [cell, status] of [
    [one, 503],
    [two, 200],
  ] as const) {
    assert.equal((await page(cell, away.body.redirect.url)).status, status)
    assert.equal((await page(cell, `http://pay/pay/${checkout.body.id}`)).status, status)
    assert.equal((await ask(cell, merchant, form)).status, status)
  }
  const { rows: cases } = await there.query('select from operator_cases where merchant_id = $1 and closed_at is null', [
    merchant.id,
  ])
  assert.equal(cases.length, 1)
  // As if the pause of the webhook, and the time of the payment that nobody answered, were over.
  await there.query(`update deliveries set due_at = due_at - interval '1 hour' where merchant_id = $1 and state = 'scheduled'`, [
    merchant.id,
  ])
  await there.query(`update due_work set due_at = due_at - interval '1 hour' where merchant_id = $1 and kind = 'recover'`, [
    merchant.id,
  ])
  await eventually(
    async () => (await readIn(two, merchant, silent.body.id)).body.result.code !== '000.200.000',
    'the silent payment is settled',
  )
  await eventually(
    async () => held.received.slice(tried).some(one => opened(one, secret).payload.id === paid.body.id),
    'the webhook comes',
  )

  // An acquirer's report finds each payment in one cell.
  assert.deepEqual(await Promise.all([here, there].map(async pool => (await findOwners(pool, paid.body.id)).length)), [0, 1])
  // In the old cell nothing of it is taken, and nothing fails for it.
  for (const [table, text] of [
    ['due_work', `due_at = due_at - interval '1 hour', leased_until = '2020-01-01'`],
    ['deliveries', `due_at = due_at - interval '1 hour', leased_until = '2020-01-01'`],
    ['events', 'notified = null, searched = null'],
  ])
    await inTransaction(here, async db => {
      await db.query(`select set_config('tollgate.forgets', $1, true)`, [merchant.id])
      await db.query(`update ${table} set ${text} where merchant_id = $1`, [merchant.id])
    })
  await inTransaction(here, async db => {
    await db.query(`select set_config('tollgate.forgets', $1, true)`, [merchant.id])
    await db.query(`insert into unanswered values ($1, gen_random_uuid(), '2020-01-01')`, [merchant.id])
    await db.query(`insert into idempotency_keys values ($1, '', '', gen_random_uuid(), '2020-01-01')`, [merchant.id])
  })
  const before = await here.query('select t::text from due_work t where merchant_id = $1 order by 1', [merchant.id])
  const mark = one.gateway.logged.length
  await one.gateway.restart()
  await payIn(one, other)
  await eventually(async () => others.received.length > 1, 'others are told')
  await sweep(
    { clock: systemClock, database: { work: here } },
    allKept.find(({ kind }) => kind === 'idempotencyKeys')!,
    Date.now(),
  )
  const after = await here.query('select t::text from due_work t where merchant_id = $1 order by 1', [merchant.id])
  assert.deepEqual(after.rows, before.rows)
  assert.equal(
    (await here.query('select from idempotency_keys where merchant_id = $1 and recorded_at < $2', [merchant.id, '2021-01-01']))
      .rowCount,
    1,
  )
  assert.deepEqual(
    one.gateway.logged
      .slice(mark)
      .filter(line => line.includes(merchant.id) || line.includes('TG503') || line.includes('elsewhere')),
    [],
  )
  await Promise.all([held.close(), others.close()])
})

describe('the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-moves-'))
  const file = join(folder, 'cells.json')
  let commands: ReturnType<typeof manyCommands>
  before(async () => {
    const urls = [cells.one, cells.two].map(({ gateway }) => databaseUrl(gateway.connection))
    for (const { gateway } of [cells.one, cells.two]) {
      await keepMode(gateway.pool, 'sandbox', Date.now())
      await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
    }
    const cell = (name: string, DATABASE_URL: string, gateway: string) => ({
      name,
      environment: { DATABASE_URL },
      gateways: [gateway],
    })
    const [first, second] = [cells.one, cells.two].map(({ gateway }) => new URL(gateway.baseUrl).host) as [string, string]
    writeFileSync(
      file,
      JSON.stringify({
        map: join(folder, 'map'),
        cells: [
          cell('one', urls[0]!, first),
          cell('two', urls[1]!, second),
          cell('away', 'postgresql://127.0.0.1:1/none', 'a:1'),
        ],
      }),
      { mode: 0o600 },
    )
    commands = manyCommands({ SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32), DATABASE_URL: urls[0]!, DATA_DIR: folder })
  })
  after(() => {
    commands.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const run = (...words: string[]) => commands.run('merchants', ...words)

  test('moves, leads the proxy, lists, and forgets; a third cell that is away does not matter', async () => {
    const merchant = nextMerchant()
    await payIn(cells.one, merchant)
    const moved = await run('move', merchant.id, '--cells', file, '--to', 'two')
    assert.equal(moved.code, 0, moved.out)
    assert.match(moved.out, /The merchant has moved: \d+ rows, requests were refused for \d+\.\d s\./)
    assert.match(readFileSync(join(folder, 'map'), 'utf8'), new RegExp(`^${merchant.id} two$`, 'm'))
    const { moves } = JSON.parse((await run('moves', '--json')).stdout)
    const own = moves.find((one: { merchantId: string }) => one.merchantId === merchant.id)
    assert.deepEqual(
      { ...own, changedAt: '' },
      { merchantId: merchant.id, direction: 'leaving', state: 'moved', here: false, other: 'two', changedAt: '' },
    )
    assert.match((await run('moves')).stdout, new RegExp(`${merchant.id}  leaving +moved +no +two`))
    const { entities } = JSON.parse((await commands.run('list', '--json')).stdout)
    assert.equal(entities.find(({ id }: { id: string }) => id === merchant.channelId).movedTo, 'two')
    const again = await run('move', merchant.id, '--cells', file, '--to', 'two')
    assert.equal(again.code, 0, again.out)
    const back = await run('move', merchant.id, '--cells', file, '--back')
    assert.deepEqual([back.code, /No cell that answers has the merchant|is not on its way/.test(back.out)], [1, true], back.out)
    const forgot = await run('forget', merchant.id, '--cells', file)
    assert.match(forgot.out, /^one has forgotten the merchant: \d+ rows\.\n$/)
    const never = await run('forget', merchant.id, '--cells', file)
    assert.equal(never.code, 1)
    assert.match(never.out, /No cell that answers holds something.*\nThe cell away does not answer: /)
  })

  for (const signal of ['SIGINT', 'SIGHUP'] as const)
    test(`${signal} leaves the merchant served where it was`, async () => {
      const merchant = nextMerchant()
      await payIn(cells.one, merchant)
      const { code, out } = await signalled(signal, merchant)
      assert.equal(code, 1, out)
      assert.match(out, /It was interrupted\.\none serves the merchant as before/)
      await eventually(async () => (await statuses(merchant))[0] === 200, 'it is served')
    })

  test('a merchant whom a command that was killed has left refused is named until a command goes on', async () => {
    const merchant = nextMerchant()
    const words = ['check', '--cells', file]
    const named = new RegExp(
      `^The merchant ${merchant.id} is refused by one since \\S+: its move from one to two is \\w+, and no command is at it\\.`,
      'm',
    )
    await signalled('SIGKILL', merchant)
    await eventually(async () => named.test((await commands.run('cells', ...words)).out), 'it is named')
    const place = await takePlace(cells.one.side.database.work, merchant.id)
    assert.doesNotMatch((await commands.run('cells', ...words)).out, named, 'a command is at it')
    await place!.giveBack()
    assert.equal((await run('move', merchant.id, '--cells', file, '--back')).code, 0)
    assert.doesNotMatch((await commands.run('cells', ...words)).out, named)
  })

  /** A command that gets the signal as soon as the merchant is refused. */
  async function signalled(
    signal: NodeJS.Signals,
    { id }: CellMerchant,
  ): Promise<{ readonly code: number | null; readonly out: string }> {
    const env = { PATH: process.env.PATH, SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32) }
    const child = spawn(join(project, 'bin/tollgate'), ['merchants', 'move', id, '--cells', file, '--to', 'two'], { env })
    let out = ''
    const more = (piece: Buffer) => {
      const before = out
      out += piece
      if (!before.includes('New requests are refused.') && out.includes('New requests are refused.')) child.kill(signal)
    }
    child.stdout.on('data', more)
    child.stderr.on('data', more)
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, out }
  }

  test('forgets what a cell has of a move that was given up while it was away', async () => {
    const merchant = nextMerchant()
    const tell = (step: MoveStep) => {
      if (step === 'copied') throw new Error('broken')
    }
    await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /broken/)
    const words = ['forget', merchant.id, '--cells', file]
    assert.match((await run(...words)).out, /is on its way from one to two/)
    await giveUpMove({ source: cells.one.side, target: undefined, merchantId: merchant.id, tell: () => {} })
    assert.match((await run(...words)).out, /^two has forgotten the merchant: \d+ rows\.\n$/)
    assert.equal((await run(...words)).code, 1)
    assert.equal((await payIn(cells.one, merchant)).status, 200)
  })

  test('goes by the address of a database too, also one with its password in a file, and names it without that', async () => {
    const address = databaseUrl(cells.two.gateway.connection)
    const secret = new URL(address)
    secret.password = 'gehe1m'
    const path = join(folder, 'address')
    writeFileSync(path, `${secret}\n`, { mode: 0o600 })
    for (const words of [
      ['--to', address],
      ['--to-file', path],
    ]) {
      const merchant = nextMerchant()
      const moved = await run('move', merchant.id, ...words)
      assert.equal(moved.code, 0, moved.out)
      const { other } = (await readMove(cells.one.gateway.pool, merchant.id))!
      assert.match(other, /^[^@]*\/test_\w+$/)
      assert.doesNotMatch(moved.out + other, /gehe1m/)
    }
    assert.match(
      (await run('move', 'f'.repeat(32), '--to-file', `${path}.none`)).out,
      /^--to-file names .*none, which cannot be read/,
    )
  })

  test('says what is wrong with its words', async () => {
    for (const [words, out] of [
      [['move', 'x', '--cells', file, '--to', 'two'], /A merchant is named by the 32 hex characters/],
      [['move', 'f'.repeat(32), '--cells', file], /--to must name the cell/],
      [['move', 'f'.repeat(32), '--to', 'two'], /--cells must name the file of the cells, or --to \(or --to-file\) the address/],
    ] as const) {
      const said = await run(...words)
      assert.match(said.out, out)
      assert.equal(said.code, 2)
    }
    const unknown = await run('move', 'f'.repeat(32), '--cells', file, '--to', 'three')
    assert.match(unknown.out, /There is no cell three: the file names one, two, away/)
    const away = await run('move', merchants.at(-1)!.id, '--cells', file, '--to', 'away')
    assert.deepEqual(
      [away.code, /^The cell away does not answer: The database cannot be reached/.test(away.out)],
      [1, true],
      away.out,
    )
  })
})
