// Retention: everything that is kept for a time goes when it is over and not a millisecond sooner, nothing grows that nobody has thought of, and what is
// erased beside running gateways, by several at a time or by one that is killed, is erased once and counted.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { checkNotifications } from '../src/notifications/deliveries/check.ts'
import { clockWith, idAt, systemClock } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { measureRetention, startErasing, sweep } from '../src/platform/retention/erase.ts'
import { type Kept, withDays } from '../src/platform/retention/kept.ts'
import { takeSweep } from '../src/platform/retention/store.ts'
import { allKept, stays } from '../src/start/kept.ts'
import { cardRetentionDays } from '../src/vault/cards.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { databaseUrl } from './support/database.ts'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { manyCommands, project } from './support/process.ts'
import { startReceiver } from './support/receiver.ts'

const day = 86_400_000
const kept = (kind: string): Kept => allKept.find(one => one.kind === kind)!
const keys = { SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32) } // those of the test gateway
const folder = mkdtempSync(join(tmpdir(), 'tollgate-erase-'))

let gateway: TestGateway
let environment: Record<string, string>
before(async () => {
  gateway = await testGateway()
  // What a process writes at its first start: commands look for it.
  await keepMode(gateway.pool, 'sandbox', Date.now())
  await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
  environment = { ...keys, DATABASE_URL: databaseUrl(gateway.connection), DATA_DIR: folder }
})
after(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Erases what is over at a moment. */
const sweepAt = (kind: string, at: number) => sweep({ clock: systemClock, database: { work: gateway.pool } }, kept(kind), at)
const count = async (text: string, values: unknown[] = []): Promise<number> =>
  (await gateway.pool.query(text, values)).rowCount ?? 0

test('every table ends by a rule, or stays for a reason', async () => {
  const { rows } = await gateway.pool.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by 1`,
  )
  const whole = allKept.filter(({ forgets }) => forgets === undefined)
  const named = [...whole.map(({ table }) => table), ...stays.flatMap(([, tables]) => tables.split(' '))]
  assert.deepEqual(
    rows.map(({ name }) => name),
    named.sort(),
  )
})

test('each kind is found by what its rows say: columns, keys and conditions are there', async () => {
  for (const one of allKept) {
    const { rows } = await gateway.pool.query<{ key: string }>(
      `select string_agg(a.attname, ', ' order by at) as key from pg_index i cross join unnest(i.indkey::smallint[]) with ordinality as k (num, at)
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.num where i.indrelid = $1::regclass and i.indisprimary`,
      [one.table],
    )
    assert.equal(one.key.replace('position', '"position"').replaceAll('"', ''), rows[0]!.key, one.kind)
  }
})

describe('goes when its time is over, and not before', () => {
  const merchant = sandbox.merchantId
  // What is put into the table: $1 is the time, $2 an id that begins with it. What the time is of is the row's to say.
  // biome-ignore format: one line a kind
  const made: Record<string, readonly string[]> = {
    idempotencyKeys: [`insert into idempotency_keys values ('${merchant}', decode($2::text, 'hex'), '', cast($2::text as uuid), $1)`],
    shopperLinks: [`insert into redirects values ('${merchant}', cast($2::text as uuid), decode($2::text, 'hex'), decode($2::text, 'hex'), null, $1)`],
    pendingAnswers: [
      `insert into answers select '${merchant}', $2::text::uuid, 'succeeded', true, '{}', '{}', $1::timestamptz`,
      `insert into pending_answers select '${merchant}', $2::text::uuid, '' where $1::timestamptz is not null`,
      `insert into pending_answers select '${merchant}', overlay($2::text placing 'f' from 32)::uuid, '' where $1::timestamptz is not null`], // which nobody has answered
    riskAttempts: [`insert into risk_attempts values ('${merchant}', 'ip', '', $1, $2, 1, 'EUR')`],
    challengeSecrets: [`insert into challenge_secrets values ('${merchant}', $2, '', $1)`],
    registrationHashes: [ // of the card, which an older version left, and of a request
      `insert into registrations (owner_id, id, channel_id, usable, mode, brand, record, fingerprint, key_fingerprint, made_at)
       select '${merchant}', $2::uuid, '${merchant}', true, 'internal', 'VISA', '{}', case when n = 0 then ''::bytea end, case when n > 0 then ''::bytea end, $1::timestamptz
         from (select count(*) as n from registrations where fingerprint is not null) as before`],
    requestRecords: [`insert into request_records values ('${merchant}', $2, $1, 'POST', '/', 200, 1, '', null, null, null, null, '{}')`],
    owedFiles: [
      `insert into owed_files select '${merchant}', $2::uuid, '2020-01-01', 'csv', $1, 1, 'no', 1, $2::uuid, 'givenUp', $1::timestamptz`,
      `insert into file_pieces select $2::uuid, 0, '' where $1::timestamptz is not null`],
    bankFiles: [`insert into return_files (merchant_id, id, hash, account, name, number, sealed, received_at)
                 values ('${'0'.repeat(32)}', cast($2::text as uuid), decode(repeat($2::text, 2), 'hex'), 'itau', 'one', 0, '', $1)`],
    staffSessions: [`insert into staff_sessions values (decode($2::text, 'hex'), cast($2::text as uuid), null, $1, $1, $1, '', '')`],
    staffLinks: [`insert into staff_links values (decode($2, 'hex'), null, null, $1)`],
    signInAttempts: [`insert into sign_in_attempts values ($2, $1, 1)`],
    knownPlaces: [`insert into known_places values (decode($2, 'hex'), $1)`],
    passkeyChallenges: [`insert into answered_challenges values (decode($2, 'hex'), $1)`],
  }
  const elsewhere = ['cards', 'bankDetails', 'deliveries', 'orderDetails'] // below, and in the tests of transfers and approvals

  test('all kinds are here', () => {
    assert.deepEqual([...Object.keys(made), ...elsewhere].sort(), allKept.map(({ kind }) => kind).sort())
  })

  for (const [kind, statements] of Object.entries(made))
    test(kind, async () => {
      const { table, days, where = 'true', forgets } = kept(kind)
      const at = Date.now() + 3 * day // the gateway erases too, by its own clock
      const left = () => count(`select from ${table} where ${where}`)
      const had = await left()
      const all = await count(`select from ${table}`)
      const unanswered = kind === 'pendingAnswers' ? 2 : 0
      for (const moment of [at, at - 1])
        for (const statement of statements) await gateway.pool.query(statement, [new Date(moment), idAt(moment)])
      assert.equal(await sweepAt(kind, at - 1 + days * day), had)
      assert.equal(await left(), 2 + unanswered)
      assert.equal(await sweepAt(kind, at + days * day), 1)
      assert.equal(await left(), 1 + unanswered)
      if (forgets !== undefined) assert.equal(await count(`select from ${table}`), all + 2)
      if (kind === 'owedFiles') assert.equal(await count('select from file_pieces'), 1)
    })
})

describe('sealed cards', () => {
  const lastDay = async (id: string): Promise<string> =>
    (await gateway.pool.query('select erase_after::text as day from sealed_cards where payment_id = $1', [id])).rows[0].day

  test('a card is kept through its last day', async () => {
    const { body } = await gateway.pay()
    const lastMoment = Date.parse(`${await lastDay(body.id)}T23:59:59.999Z`)
    assert.equal(Math.floor((lastMoment - Date.now()) / day), cardRetentionDays)
    assert.equal(await sweepAt('cards', lastMoment), 0)
    assert.equal(await sweepAt('cards', lastMoment + 1), 1)
  })

  test('it goes by the time of its merchant, soon after a start', async () => {
    const { body } = await gateway.pay()
    const cards = () => count('select 1 from sealed_cards where payment_id = $1', [body.id])
    const elsewhere = sandbox.merchantId.replace(/.$/, '2')
    await gateway.pool.query(
      `insert into entities (id, kind, parent_id, merchant_id, name, settings, changed_at, clock_offset_ms)
       select $2, kind, parent_id, $2, 'another', '{}', changed_at, 0 from entities where id = $1`,
      [sandbox.merchantId, elsewhere],
    )
    await gateway.pool.query(
      'insert into sealed_cards select $2, payment_id, sealed, erase_after from sealed_cards where payment_id = $1',
      [body.id, elsewhere],
    )
    await gateway.advance(`${cardRetentionDays + 1}d`)
    assert.equal(await cards(), 2)
    await gateway.restart()
    // The merchant's own card is gone, that of a merchant whose time was not moved is still there.
    await eventually(async () => (await cards()) === 1, 'it is erased')
    const { rows } = await gateway.pool.query('select merchant_id as id from sealed_cards where payment_id = $1', [body.id])
    assert.equal(String(rows[0].id).replaceAll('-', ''), elsewhere)
  })
})

test('an order is paid once as long as its key is kept, and the key is not kept longer', async () => {
  const fields = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
  const pay = async () => (await gateway.post('/v1/payments', fields, { 'Idempotency-Key': 'first' })).body.id
  const first = await pay()
  await sweepAt('idempotencyKeys', Date.now() + 3 * day - 60_000)
  assert.equal(await pay(), first)
  assert.equal(await sweepAt('idempotencyKeys', Date.now() + 3 * day + 1), 1)
  assert.notEqual(await pay(), first)
})

test('notifications that are over are counted further, none is called lost, and what is still tried stays', async () => {
  const receiver = await startReceiver()
  const silent = await startReceiver()
  try {
    const told = await addEndpoint(gateway.pool, { url: receiver.url })
    await addEndpoint(gateway.pool, { url: silent.url })
    silent.answer = () => 500
    const sums = async () =>
      (await checkNotifications(gateway.pool)).endpoints.map(({ emitted, acknowledged, scheduled, givenUp, balanced }) => ({
        emitted, acknowledged, scheduled, givenUp, balanced,
      })) // biome-ignore format: names in a row
    await gateway.pay()
    await gateway.pay()
    await eventually(async () => (await sums())[0]?.acknowledged === 2, 'both are told')
    const counted = await sums()
    assert.deepEqual(counted[0], { emitted: 2, acknowledged: 2, scheduled: 0, givenUp: 0, balanced: true })
    assert.deepEqual(counted[1], { emitted: 2, acknowledged: 0, scheduled: 2, givenUp: 0, balanced: true })
    const { rows } = await gateway.pool.query<{ at: number }>(
      `select max(emitted_at) as at from deliveries where state = 'acknowledged'`,
    )
    const last = Number(rows[0]!.at) + 90 * day
    await sweepAt('deliveries', last)
    assert.ok((await count(`select from deliveries where state = 'acknowledged'`)) >= 1, 'the last is not older than itself')
    await sweepAt('deliveries', last + 1)
    assert.equal(await count(`select from deliveries where state = 'acknowledged'`), 0)
    assert.equal(await count('select from delivery_attempts a where a.endpoint_id = $1', [told.id]), 0)
    assert.equal(await count('select from deliveries'), 2, 'what is still tried stays')
    assert.deepEqual(await sums(), counted)
    const giveUp = (which: string) =>
      gateway.pool.query(
        `update deliveries set state = 'given up', settled_at = emitted_at where position = (select ${which}(position) from deliveries)`,
      )
    await giveUp('max')
    assert.deepEqual(
      [await sweepAt('deliveries', last + 1), await count('select from deliveries')],
      [1, 1],
      'beside one that is over too',
    )
    await giveUp('min')
    assert.equal(await sweepAt('deliveries', last + 1), 1)
    assert.deepEqual((await sums())[1], { emitted: 2, acknowledged: 0, scheduled: 0, givenUp: 2, balanced: true })
  } finally {
    await receiver.close()
    await silent.close()
  }
})

describe('many rows', () => {
  const fill = (rows: number) =>
    gateway.pool.query(
      `insert into risk_attempts select '${sandbox.merchantId}', 'email', '', '2020-01-01'::timestamptz + one * interval '1 ms',
                                        md5(one::text)::uuid, 1, 'EUR' from generate_series(1, $1) as one`,
      [rows],
    )
  const left = () => count(`select from risk_attempts where kind = 'email'`)
  const erased = async () =>
    Number((await gateway.pool.query(`select erased from sweeps where kind = 'riskAttempts'`)).rows[0]?.erased ?? 0)

  test('are erased once by processes that are at it together, and counted as many as they were', async () => {
    await takeSweep(gateway.pool, 'riskAttempts', Date.now(), Date.now())
    const counted = await erased()
    await fill(5500)
    const sums = await Promise.all([1, 2, 3].map(() => sweepAt('riskAttempts', Date.now())))
    assert.equal(
      sums.reduce((sum, one) => sum! + one!, 0),
      5500,
    )
    assert.deepEqual([await left(), (await erased()) - counted], [0, 5500])
  })

  test('are erased by the next process when one is killed in between', async () => {
    const counted = await erased()
    await fill(60_000)
    const child = spawn(join(project, 'bin/tollgate'), ['retention', '--run'], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
      stdio: 'ignore',
    })
    // Whoever looks holds the row that every step counts in: it goes no further once some are erased.
    const holder = await gateway.pool.connect()
    const held = async () => {
      await holder.query('begin')
      const { rows } = await holder.query(`select erased from sweeps where kind = 'riskAttempts' for update`)
      if (Number(rows[0].erased) > counted) return true
      await holder.query('rollback')
      return false
    }
    await eventually(held, 'some are erased')
    child.kill('SIGKILL')
    await once(child, 'exit')
    await holder.query('rollback')
    holder.release()
    const ended = `select 1 from pg_stat_activity where datname = current_database() and query like '%risk_attempts%' and state <> 'idle' and pid <> pg_backend_pid()`
    await eventually(async () => (await count(ended)) === 0, 'its last step is over')
    const rest = await left()
    assert.ok(rest > 0, 'it was killed before its end')
    assert.equal((await erased()) - counted + rest, 60_000)
    const commands = manyCommands(environment)
    const audited = async (action: string) => JSON.parse((await commands.run('audit', '--json', '--action', action)).stdout).rows
    try {
      // Whoever is killed has left the row that it began, by whom.
      const tested = 'endpointTested' // by what this test made before
      const begun = (await audited('actBegun')).filter((row: { details: { act: string } }) => row.details.act !== tested)
      assert.deepEqual(
        begun.map((row: { actorKind: string; details: object }) => [row.actorKind, row.details]),
        [['commandLine', { act: 'erasedByHand' }]],
      )
      assert.deepEqual(await audited('erasedByHand'), [])
      const { code, out } = await commands.run('retention', '--run', '--json')
      assert.equal(code, 0, out)
      const one = JSON.parse(out).kinds.find(({ kind }: { kind: string }) => kind === 'riskAttempts')
      assert.deepEqual([one.days, one.rows, one.erased], [8, await count('select from risk_attempts'), counted + 60_000])
      assert.ok(Date.now() - Date.parse(one.sweptAt) < 60_000)
      assert.match((await commands.run('retention')).stdout, /^kind +days +rows[^\n]*\n(?:[^\n]*\n)*riskAttempts +8 /)
      const [{ details }] = await audited('erasedByHand')
      assert.deepEqual([details.riskAttempts, details.begun > begun[0].sequence], [rest, true])
      const wrong = manyCommands({ ...environment, RETENTION_DAYS: 'deliveries=3' })
      assert.match(
        (await wrong.run('retention', '--run')).stderr,
        /^RETENTION_DAYS must give deliveries 31 to 3650 days, not 3: /,
      )
      wrong.stop()
    } finally {
      commands.stop()
    }
  })
})

test('nothing is erased by a clock that is not trusted, and each kind when it is', async () => {
  await gateway.pool.query(
    `insert into sign_in_attempts values ('doubtful', '2020-01-01', 1) on conflict do nothing; update sweeps set taken_at = '2000-01-01'`,
  )
  const there = () => count(`select from sign_in_attempts where subject = 'doubtful'`)
  let trusted = false
  let rounds = 0
  const timers: (() => void)[] = []
  const clock = {
    ...systemClock,
    after: (_: number, act: () => void) => {
      timers.push(act)
      rounds++
      const timer = { cancel() {}, unref: () => timer }
      return timer
    },
  }
  const log = { debug() {}, info() {}, warn: (fields: object) => assert.fail(JSON.stringify(fields)), error() {} }
  const parts = { clock, log, database: { work: gateway.pool }, retention: [kept('signInAttempts')] }
  const erasing = startErasing(parts, { isTrusted: () => trusted, time: async () => Date.now() })
  timers.shift()!()
  await eventually(async () => rounds === 2, 'a round is over')
  assert.equal(await there(), 1)
  trusted = true
  timers.shift()!()
  await eventually(async () => rounds === 3, 'another round is over')
  assert.equal(await there(), 0)
  // In the rhythm of its kind: another process, or this one, was at it a moment ago.
  await gateway.pool.query(`insert into sign_in_attempts values ('doubtful', '2020-01-01', 1)`)
  timers.shift()!()
  await eventually(async () => rounds === 4, 'a third round is over')
  assert.equal(await there(), 1)
  await erasing.stop()
})

test('what was noted by a clock that was ahead keeps nobody from erasing, and is told', async () => {
  const now = Date.now()
  await gateway.pool.query(
    `insert into sweeps (kind, taken_at, swept_at) values ('signInAttempts', $1, $1)
     on conflict (kind) do update set taken_at = $1, swept_at = $1`,
    [new Date(now + 401 * day)],
  )
  const noted = async () =>
    (await gateway.pool.query(`select taken_at as taken, swept_at as swept from sweeps where kind = 'signInAttempts'`)).rows[0]
  assert.deepEqual(await takeSweep(gateway.pool, 'signInAttempts', now, now - 3_600_000), { wasAhead: true })
  assert.equal(await takeSweep(gateway.pool, 'signInAttempts', now, now - 3_600_000), undefined)
  await sweepAt('signInAttempts', now)
  assert.deepEqual(await noted(), { taken: now, swept: now })
  // Another process, whose clock is ahead of ours by as much as is trusted, was at it a moment ago.
  assert.equal(await takeSweep(gateway.pool, 'signInAttempts', now - 60_000, now - 3_600_000), undefined)
  await sweepAt('signInAttempts', now - 60_000)
  assert.deepEqual(await noted(), { taken: now, swept: now })
  assert.deepEqual(await takeSweep(gateway.pool, 'signInAttempts', now - 60_001, now - 3_600_000), { wasAhead: true })
})

test('figures tell how many rows went, how long ago, and how old the oldest can be', async () => {
  const now = Date.now()
  await gateway.pool.query(
    `insert into sweeps (kind, taken_at, swept_at, erased) values ('bankFiles', $1, $1, 7)
     on conflict (kind) do update set swept_at = excluded.swept_at, erased = 7`,
    [new Date(now - 90_000)],
  )
  const measure = measureRetention({ clock: clockWith(() => now), database: { work: gateway.pool }, retention: allKept })
  await measure.measure()
  const values = measure.figures.map(({ name, read }) => [name, read().find(([{ kind }]) => kind === 'bankFiles')?.[1]])
  assert.deepEqual(values, [
    ['tollgate_erased_rows_total', 7],
    ['tollgate_erased_age_seconds', 90],
    ['tollgate_kept_age_seconds', 400 * 86_400 + 90],
  ])
})

describe('the setting', () => {
  const rules = (text: string) => {
    const said: string[] = []
    const days = withDays(allKept, text, rule => said.push(rule))
    return { said, days: (kind: string) => days.find(one => one.kind === kind)!.days }
  }

  test('gives some kinds other days, and leaves the others', () => {
    const { said, days } = rules('deliveries=31, bankDetails=3650\nrequestRecords=1')
    assert.deepEqual([said, days('deliveries'), days('bankDetails'), days('requestRecords')], [[], 31, 3650, 1])
    assert.deepEqual([days('shopperLinks'), rules('').days('deliveries')], [30, 90])
  })

  test('names all that cannot be, and why', () => {
    // biome-ignore format: one line a case
    assert.deepEqual(rules('deliveries=30,bankDetails=3651,riskAttempts=9,requests=3,deliverys=40,cards 400').said, [
      `must give deliveries 31 to 3650 days, not 30: ${kept('deliveries').why.slice(0, -1)}`,
      `must give bankDetails 30 to 3650 days, not 3651: ${kept('bankDetails').why.slice(0, -1)}`,
      `cannot change riskAttempts: ${kept('riskAttempts').why.slice(0, -1)}`,
      `names requests, which is none of ${allKept.flatMap(({ kind, range }) => range ? [kind] : []).join(', ')}`,
      `names deliverys, which is none of ${allKept.flatMap(({ kind, range }) => range ? [kind] : []).join(', ')}: did you mean deliveries?`,
      'must be kinds and days, for example deliveries=365,requestRecords=30, not "cards"',
      'must be kinds and days, for example deliveries=365,requestRecords=30, not "400"',
    ])
  })
})
