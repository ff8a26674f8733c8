// The archive: settled chains leave the database whole, and only those; what is left agrees with what was, and each comes back as it went. Broken off at any
// step, the same command goes on, and no chain is lost or in two places.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type ArchiveParts, eraseArchived, writeArchive } from '../src/archive/archive.ts'
import { recordChargeback } from '../src/clearing/chargebacks/chargebacks.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { openCase } from '../src/payments/cases/cases.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { clockWith, systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { chainTables } from '../src/start/kept.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { databaseUrl } from './support/database.ts'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { signedIn } from './support/office.ts'
import { manyCommands, project } from './support/process.ts'
import { startReceiver } from './support/receiver.ts'

const dayLong = 86_400_000
const isoDay = (at: number) => new Date(at).toISOString().slice(0, 10)
const eur = (amount: string) => ({ amount, currency: 'EUR' })
const entity = { entityId: sandbox.entityId }
const folder = mkdtempSync(join(tmpdir(), 'tollgate-archive-'))
const environment = { SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32), DATA_DIR: folder }
const file = (name: string) => join(folder, name)

let [gateway, commands]: [TestGateway, ReturnType<typeof manyCommands>] = [undefined!, undefined!]
/** When the gateway lives: three years ago at first, a day or two later each time, then now. */
let now = Date.now() - 1100 * dayLong
const begun = now
const cutOff = isoDay(now + 30 * dayLong)
const clock = clockWith(() => now)
const tollgate = (...words: string[]) => commands.run(...words)

const old: Record<string, string> = {}
let young: string

before(async () => {
  gateway = await testGateway({ clock })
  await keepMode(gateway.pool, 'sandbox', Date.now())
  await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
  commands = manyCommands({ ...environment, DATABASE_URL: databaseUrl(gateway.connection) })
  const pay = async (more: Record<string, string> = {}) => {
    const { body } = await gateway.pay(more)
    assert.ok(body.id, JSON.stringify(body))
    return body.id as string
  }
  const refer = async (id: string, paymentType: string, amount: string) => {
    const { body } = await gateway.refer(id, { paymentType, ...eur(amount) })
    assert.match(body.result.code, /^000/, JSON.stringify(body))
    return body.id as string
  }
  old.debit = await pay({ merchantTransactionId: 'old-debit', 'customParameters[note]': 'two\u2028lines' })
  old.captured = await pay({ paymentType: 'PA' })
  old.capture = await refer(old.captured, 'CP', '60.00')
  old.refund = await refer(old.capture, 'RF', '10.00')
  old.reversed = await pay({ paymentType: 'PA' })
  await refer(old.reversed, 'RV', '92.00')
  old.held = await pay({ paymentType: 'PA' }) // nobody captured it
  old.declined = await pay({ amount: '92.00', 'card.number': '4000000000000002' })
  now += 2 * dayLong
  old.charged = await pay()
  await chargeBack(old.charged, 9200)
  // What is still to come of these keeps them here.
  old.waiting = await pay({
    'card.number': '4200000000000018',
    'customParameters[3DS2_enrolled]': 'true',
    shopperResultUrl: 'https://shop.example/',
  })
  old.due = await pay()
  await gateway.pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at) values ('redirectExpiry', $1, $2, now() + '1 day')`,
    [sandbox.merchantId, old.due],
  )
  old.inCase = await pay()
  await openCase(
    gateway.pool,
    { clock, random: systemRandom },
    { kind: 'answerUnproven', merchantId: sandbox.merchantId, subject: old.inCase, details: {} },
  )
  old.youngRefund = await pay()
  old.told = await pay()
  old.broken = await pay()
  await gateway.pool.query(`update journal set amount = amount + 1 where payment_id = $1`, [old.broken])
  old.answered = await pay()
  await gateway.pool.query('update answers set answered_at = now() where payment_id = $1', [old.answered])
  old.large = await pay()
  await gateway.pool.query(`update answers set body = body || repeat(' ', $2) where payment_id = $1`, [old.large, 17 << 20])
  old.kept = await pay()
  await gateway.pool.query(`delete from sealed_cards where payment_id <> $1`, [old.kept])
  now = Date.now()
  await gateway.restart()
  await refer(old.youngRefund, 'RF', '1.00')
  // A shopper never came back: it ends now, though it began long ago.
  await eventually(
    async () => (await gateway.pool.query('select from answers where payment_id = $1', [old.waiting])).rowCount === 1,
    'it ends',
  )
  young = await pay()
  await gateway.pool.query(`update sealed_cards set erase_after = current_date + 1`)
  const receiver = await startReceiver()
  const { id: endpoint } = await addEndpoint(gateway.pool, { url: receiver.url })
  await gateway.pool.query(
    `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, state, emitted_at, due_at)
     values ($1, $2, 0, $2, 0, $3, 2, $3, 'given up', now(), now())`,
    [sandbox.merchantId, endpoint, old.told],
  )
  await allRead()
  await receiver.close()
})
/** As a report of the acquirer says it. */
async function chargeBack(reference: string, amount: number): Promise<void> {
  const database = connect(gateway.connection, clock, () => {})
  const directory = await openDirectory(database, testKeys, clock, () => {})
  const parts = { database, directory, clock, random: systemRandom, keys: testKeys, build: 'test' }
  const line = {
    report: reference,
    line: 1,
    type: 'CB',
    reference,
    amount,
    currency: 'EUR',
    reason: '10.4',
    date: isoDay(now),
  } as const
  assert.equal((await recordChargeback(parts, line)).kind, 'recorded')
  await directory.close()
  await database.close()
}

after(async () => {
  commands.stop()
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const allRead = () =>
  eventually(
    async () => (await gateway.pool.query('select from events where notified is null or searched is null')).rowCount === 0,
    'all events are read',
  )
const unknown = 'Invalid payment data: there is no payment with this id to refund'
const leaves = ['debit', 'captured', 'reversed', 'held', 'declined', 'charged']
const stays = ['large', 'waiting', 'answered', 'due', 'inCase', 'youngRefund', 'told', 'broken', 'kept']
const status = async (id: string) => (await gateway.get(`/v1/payments/${id}`, entity)).status
const uuid = (id: string) => id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
/** Every row of every table that goes with a payment. */
const everything = async (): Promise<Record<string, string[]>> =>
  Object.fromEntries(
    await Promise.all(
      [...new Set(chainTables.filter(({ stays: isLeft }) => !isLeft).map(({ table }) => table))].map(async table => [
        table,
        (await gateway.pool.query(`select to_jsonb(t)::text as row from ${table} t order by 1`)).rows.map(({ row }) => row),
      ]),
    ),
  )
const days = { 'date.from': isoDay(begun), 'date.to': isoDay(begun + 20 * dayLong) }
const aggregations = async () =>
  (await gateway.get('/reports/v1/reconciliations/aggregations', { ...entity, ...days })).body.aggregations as { id: string }[]
const balances = async () =>
  (
    await gateway.pool.query(
      `select mode, currency, account, sum(amount)::bigint as amount from (
         select mode, currency, debit as account, amount from journal where state = 'posted' union all
         select mode, currency, credit, -amount from journal where state = 'posted' union all
         select mode, currency, debit, amount from closing_sums union all select mode, currency, credit, -amount from closing_sums) b
       group by 1, 2, 3 order by 1, 2, 3`,
    )
  ).rows
const findings = async () => (await examine(gateway.pool)).findings.filter(text => !text.includes(old.broken!))

test('every table with rows of a payment is known: what goes, and what does not', async () => {
  const { rows } = await gateway.pool.query<{ name: string }>(
    `select table_name as name from information_schema.columns where table_schema = 'public' and column_name in ('payment_id', 'subject_id') group by 1`,
  )
  // Of a checkout, an event and a registration the archive has nothing to say: their ids are their own.
  const elsewhere = ['archived_payments', 'checkout_attempts', 'registrations']
  const known = [...new Set(chainTables.map(({ table }) => table)), ...elsewhere]
  assert.deepEqual(
    rows.map(({ name }) => name).filter(name => !known.includes(name)),
    [],
  )
})

test('settled chains go, others stay; what is left agrees, and each comes back as it was', async () => {
  const [rows, sums, booked] = [await everything(), await aggregations(), await balances()]
  const written = await tollgate('archive', 'write', file('one.gz'), '--before', cutOff)
  assert.equal(written.code, 0, written.out)
  assert.match(written.out, /^one\.gz: 6 chains, SHA-256 [0-9a-f]{64}\.\nCarry a copy/)
  assert.equal(statSync(file('one.gz')).mode & 0o777, 0o600)
  assert.deepEqual(await everything(), rows, 'nothing has left yet')

  const erased = await tollgate('archive', 'erase', file('one.gz'))
  assert.equal(erased.out, '6 chains with 10 payments of one.gz are out of the database.\n')
  for (const name of leaves) assert.equal(await status(old[name]!), 404, name)
  for (const name of ['capture', 'refund']) assert.equal(await status(old[name]!), 404, name)
  for (const name of stays) assert.equal(await status(old[name]!), 200, name)
  assert.equal(await status(young), 200)
  const none = await gateway.refer(old.debit!, { paymentType: 'RF', ...eur('1.00') })
  assert.deepEqual([none.status, none.body.result.description], [404, unknown])
  assert.equal(
    Number(
      Object.values(await everything())
        .flat()
        .some(row => leaves.some(name => row.includes(uuid(old[name]!)))),
    ),
    0,
  )

  // The books: each account has what it had, and the doctor and the reports say what they said.
  assert.deepEqual(await balances(), booked)
  assert.deepEqual(await findings(), [])
  const doctor = await tollgate('doctor', '--json')
  assert.deepEqual(
    JSON.parse(doctor.stdout).findings.filter((text: string) => /one\.gz/.test(text)),
    [],
  )
  assert.deepEqual(await aggregations(), sums)
  const day = sums[0]!
  const list = await gateway.get(`/reports/v1/reconciliations/aggregations/${day.id}`, entity)
  assert.deepEqual(
    [list.status, list.body.result.description],
    [400, 'invalid or missing parameter: records of this day are archived, only its sums are here'],
  )
  assert.match((await tollgate('report', ...reportWords, '--csv', '--movements')).out, /^Records of \d{4}-\d\d-\d\d are archived/)
  const check = await tollgate('archive', 'check', file('one.gz'))
  assert.deepEqual([check.out, check.code], ['The file agrees with its sums.\n', 0])

  // Whoever looks for one hears where it is.
  assert.match(
    (await tollgate('search', 'find', old.debit!)).out,
    new RegExp(`The payment ${old.debit} is archived, in one\\.gz\\.`),
  )
  const clerk = await signedIn(gateway, 'support', [sandbox.merchantId])
  const page = await clerk.ask(`/office/payments/${sandbox.merchantId}/${old.capture}`)
  assert.equal(page.status, 404)
  assert.match(page.text, /This payment is archived, in one\.gz/)
  assert.equal(
    (await clerk.post('/office/payments', { q: old.debit! })).location,
    `/office/payments/${sandbox.merchantId}/${old.debit}`,
  )
  const shown = JSON.parse((await tollgate('archive', 'show', file('one.gz'), old.refund!)).stdout)
  assert.deepEqual(shown.rows.payments.map(({ payment_type }: { payment_type: string }) => payment_type).sort(), [
    'CP',
    'PA',
    'RF',
  ])

  // Given again, a command does nothing more.
  assert.equal((await tollgate('archive', 'erase', file('one.gz'))).out, erased.out)
  assert.match((await tollgate('archive', 'write', file('one.gz'), '--before', cutOff)).out, /one\.gz is there already/)
  const listed = JSON.parse((await tollgate('archive', 'list', '--json')).stdout).archives
  assert.deepEqual([listed.length, listed[0].chains, listed[0].payments], [1, 6, 10])

  // Back, one after the other, by any payment of the chain.
  const back = await tollgate('archive', 'bring-back', file('one.gz'), old.refund!)
  assert.equal(back.out, `The chain ${old.captured} is back.\n`)
  assert.equal(await status(old.capture!), 200)
  assert.deepEqual([await balances(), await aggregations()], [booked, sums])
  assert.equal((await tollgate('archive', 'check', file('one.gz'))).code, 0)
  assert.match(
    (await tollgate('archive', 'bring-back', file('one.gz'), old.refund!)).out,
    /is in the database: there is nothing to bring back/,
  )
  const refused = await gateway.refer(old.capture!, { paymentType: 'RF', ...eur('50.01') })
  assert.equal(refused.body.result.code, '700.400.200', 'what was given back before counts')
  assert.ok(refused.body.id)
  await allRead()
  for (const name of leaves.filter(one => one !== 'captured'))
    assert.equal((await tollgate('archive', 'bring-back', file('one.gz'), old[name]!)).code, 0)
  for (const name of Object.keys(rows)) {
    const put = (await everything())[name]!.filter(row => !row.includes(uuid(refused.body.id)))
    assert.deepEqual(put, rows[name], name)
  }
  for (const table of ['archived_payments', 'closing_sums'])
    assert.equal((await gateway.pool.query(`select from ${table}`)).rowCount, 0, table)
  assert.match((await tollgate('doctor')).out, /1 findings|findings/)
})

const reportWords = ['--from', isoDay(begun), '--to', isoDay(begun + 20 * dayLong), '--entity', sandbox.merchantId]

test('what happened between writing and taking out stays, and a reversal that waits finds its payment or none, never half', async () => {
  assert.equal((await tollgate('archive', 'write', file('two.gz'), '--before', cutOff)).code, 0)
  await chargeBack(old.debit!, 200)
  await gateway.pool.query(
    `insert into settled_bookings values ($1, $2, 'debit', 'a', '2024-01-01', 'matched', '', 1, '2024-01-01')`, // a file that came late
    [sandbox.merchantId, old.declined],
  )
  const holder = await gateway.pool.connect()
  await holder.query('begin')
  await holder.query('select from payments where id = $1 for update', [old.held])
  const erasing = tollgate('archive', 'erase', file('two.gz'))
  await untilWaiting(gateway.pool, 'order by id for update')
  const reversal = gateway.refer(old.held!, { paymentType: 'RV', ...eur('92.00') })
  await untilWaiting(gateway.pool, 'select 1 from payments where merchant_id = $1 and id = $2 for update')
  await holder.query('commit')
  holder.release()
  assert.equal(
    (await erasing).out,
    '3 chains with 5 payments of two.gz are out of the database.\n2 are in the file and in the database: something happened to them, or they came back.\n',
  )
  assert.equal((await reversal).status, 404)
  assert.equal(await status(old.debit!), 200)
  assert.equal(await status(old.held!), 404)
  assert.deepEqual(await findings(), [])
  assert.equal((await tollgate('archive', 'check', file('two.gz'))).code, 0)
})

test('sums, places and files that were changed are found', async () => {
  const changed = async (statement: string, undo: string) => {
    await gateway.pool.query(statement)
    const [check, doctor] = [await tollgate('archive', 'check', file('two.gz')), await tollgate('doctor', '--json')]
    await gateway.pool.query(undo)
    return [check.out, check.code, JSON.parse(doctor.stdout).findings.join('\n')] as const
  }
  const [sum, code] = await changed(
    `update closing_sums set amount = amount + 1 where credit = 'holds' and debit = 'held'`,
    `update closing_sums set amount = amount - 1 where credit = 'holds' and debit = 'held'`,
  )
  assert.match(sum, /internal EUR held holds: the file booked 18400, its sums say 18401, in hundredths\./)
  assert.equal(code, 1)
  const [, , place] = await changed(
    `update archived_payments set archive_id = (select id from archives where name = 'one.gz') where payment_id = '${old.held}'`,
    `update archived_payments set archive_id = (select id from archives where name = 'two.gz') where payment_id = '${old.held}'`,
  )
  assert.match(place, /two\.gz: 3 chains with 5 payments and 5 lines of the journal were taken out; counted are 2, 4 and 5/)
  const other = file('other.gz')
  writeFileSync(
    other,
    gzipSync(
      gunzipSync(readFileSync(file('two.gz')))
        .toString()
        .replace('"amount": 9200', '"amount": 9300'),
    ),
  )
  for (const words of [
    ['check', other],
    ['erase', other],
    ['bring-back', other, old.held!],
    ['show', other, old.held!],
  ])
    assert.match((await tollgate('archive', ...words)).out, /other\.gz is no archive of this database, or it was changed/)
  for (const strange of ['{"merchant":"x"}', '{"merchant":"x","chain":"y","rows":{"payments":7}}', 'null', 'x'])
    for (const words of [['check'], ['erase'], ['bring-back', old.held!]]) {
      writeFileSync(other, Buffer.concat([readFileSync(file('two.gz')), gzipSync(`${strange}\n`)]))
      const { out } = await tollgate('archive', words[0]!, other, ...words.slice(1))
      assert.match(out, /other\.gz is no (archive of this database, or it was changed|whole archive of payments)/)
      assert.doesNotMatch(out, / at .*\.ts:/)
    }
  writeFileSync(other, gunzipSync(readFileSync(file('two.gz'))).subarray(0, 2000))
  assert.match((await tollgate('archive', 'erase', other)).out, /is no archive/)
  assert.match((await tollgate('archive', 'erase', file('none.gz'))).out, /There is no file .*none\.gz/)
})

test('words that cannot be meant are refused, and nothing is begun', async () => {
  for (const [words, said] of [
    [['write', file('x.gz'), '--before', '2023-1-1'], /--before must be a day/],
    [['write', file('x.gz'), '--before', isoDay(Date.now() + 2 * dayLong)], /--before must be \d{4}-\d\d-\d\d or earlier/],
    [['write', file('x.gz')], /--before/],
    [['show', file('two.gz'), 'abc'], /32 hex characters/],
    [['bring-back', file('two.gz'), 'f'.repeat(32)], /has no payment ffff/],
    [['cancel'], /No archive is under way/],
    [['write', folder, '--before', cutOff], /is there already/],
    [['write', join(folder, 'none', 'x.gz'), '--before', cutOff], /There is no folder .*none/],
    [['show', project, 'f'.repeat(32)], /There is no file/],
  ] as const)
    assert.match((await tollgate('archive', ...words)).out, said)
  assert.equal(existsSync(file('x.gz')), false)
  assert.deepEqual((await gateway.pool.query('select from archives where ended_at is null')).rowCount, 0)
  const parts = { ...archiveParts(), mode: 'live' }
  await assert.rejects(
    writeArchive(parts, file('x.gz'), Date.now() - 549 * dayLong),
    /or earlier: what is younger than 550 days may still be charged back/,
  )
  await parts.close()
})

function archiveParts(): ArchiveParts & { close(): Promise<void> } {
  const database = connect(gateway.connection, systemClock, () => {})
  return {
    database,
    clock: systemClock,
    random: systemRandom,
    keys: testKeys,
    mode: 'sandbox',
    tables: chainTables,
    close: () => database.close(),
  }
}

/** Starts a command and kills it when it waits for a lock that the test holds. */
async function killedAt(lock: string, waitsFor: string, ...words: string[]): Promise<void> {
  const holder = await gateway.pool.connect()
  await holder.query('begin')
  await holder.query(lock)
  const child = spawn(join(project, 'bin/tollgate'), ['archive', ...words], {
    env: { PATH: process.env.PATH, ...environment, DATABASE_URL: databaseUrl(gateway.connection) },
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  await untilWaiting(gateway.pool, waitsFor)
  child.kill('SIGKILL')
  await ended
  await holder.query('rollback')
  holder.release()
  await eventually(
    async () =>
      (
        await gateway.pool.query(
          `select from pg_locks where locktype = 'advisory' and objid = 7065115 and database = (select oid from pg_database where datname = current_database())`,
        )
      ).rowCount === 0,
    'its session is gone',
  )
}

test('killed at each step, the same command goes on, and one command works at a time', async () => {
  now = begun + 5 * dayLong
  await gateway.restart()
  const many = await Promise.all(Array.from({ length: 150 }, () => gateway.pay()))
  await gateway.pool.query('delete from sealed_cards where payment_id = any ($1)', [many.map(({ body }) => body.id)])
  now = Date.now()
  await gateway.restart()
  await allRead()
  const [rows, booked, sums] = [await everything(), await balances(), await aggregations()]
  const write = ['write', file('three.gz'), '--before', cutOff]

  await killedAt('lock table answers', 'with p as materialized', ...write) // while it reads
  assert.equal(existsSync(file('three.gz')), false)
  assert.match(
    (await tollgate('archive', 'write', file('four.gz'), '--before', cutOff)).out,
    /The archive three\.gz with --before .* is not finished/,
  )
  await killedAt('lock table archives in share mode', 'update archives set proof', ...write) // when the file is whole, and the database does not know
  assert.equal(existsSync(file('three.gz')), true)
  // In its place is a file of somebody else: it stays.
  const whole = readFileSync(file('three.gz'))
  writeFileSync(file('three.gz'), readFileSync(file('two.gz')))
  assert.match((await tollgate('archive', ...write)).out, /three\.gz is there already/)
  writeFileSync(file('three.gz'), whole)
  const written = await tollgate('archive', ...write)
  assert.match(written.out, /^three\.gz: 151 chains/)
  assert.match((await tollgate('archive', ...write)).out, /three\.gz is written: take out what it has/)
  assert.deepEqual(await everything(), rows)

  const last = many
    .map(({ body }) => body.id as string)
    .sort()
    .at(-1)
  await killedAt(`select from payments where id = '${last}' for update`, 'order by id for update', 'erase', file('three.gz')) // the first hundred are out
  const { rows: half } = await gateway.pool.query(`select chains from archives where name = 'three.gz'`)
  assert.equal(half[0].chains, 100)
  assert.deepEqual([await balances(), await aggregations(), await findings()], [booked, sums, []])
  assert.match((await tollgate('archive', 'cancel')).out, /100 chains are in three\.gz and not in the database any more/)
  assert.match((await tollgate('archive', 'list')).out, /100 of 151 taken out/)

  const holder = archiveParts()
  await inTransaction(gateway.pool, async db => {
    await db.query('select from payments where id = $1 for update', [last])
    const one = eraseArchived(holder, file('three.gz'))
    one.catch(() => {})
    await untilWaiting(gateway.pool, 'order by id for update')
    assert.match((await tollgate('archive', 'erase', file('three.gz'))).out, /Another command works on an archive/)
    return () => one
  }).then(wait => wait())
  await holder.close()
  assert.match((await tollgate('archive', 'erase', file('three.gz'))).out, /^151 chains with 151 payments of three\.gz/)
  assert.deepEqual([await balances(), await aggregations(), await findings()], [booked, sums, []])
  for (const name of ['two.gz', 'three.gz']) assert.equal((await tollgate('archive', 'check', file(name))).code, 0, name)
  const found = await gateway.get(`/v1/payments/${last}`, entity)
  assert.equal(found.status, 404)
  assert.equal((await gateway.pay(visa)).status, 200)
})

test('given up before anything left, it is as if it had not begun', async () => {
  await allRead()
  const rows = await everything()
  assert.equal((await tollgate('archive', 'write', file('five.gz'), '--before', isoDay(Date.now()))).code, 0)
  assert.equal((await tollgate('archive', 'cancel')).out, 'five.gz is given up.\n')
  assert.deepEqual(await everything(), rows)
  assert.match((await tollgate('archive', 'erase', file('five.gz'))).out, /is no archive of this database/)
})

test('the audit says who archived what', async () => {
  const told = JSON.parse((await tollgate('audit', '--json')).stdout).rows.map(({ action }: { action: string }) => action)
  for (const action of ['archiveWritten', 'archiveErased', 'archivedBroughtBack', 'archiveCancelled'])
    assert.ok(told.includes(action), action)
})
