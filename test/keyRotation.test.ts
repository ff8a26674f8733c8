// Both keys are changed under a running installation: what the old ones sealed and hashed is found, sealed and hashed anew, and the old ones retire.

import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import type pg from 'pg'
import { inTransaction, writingPool } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { sealedPlaces } from '../src/start/sealed.ts'
import { type Keys, keepKeys, makeKeys, readKeysInUse, tellKeys, writerOf, writtenWith } from '../src/vault/keys.ts'
import { dropProof, lockKey, readProofs } from '../src/vault/store.ts'
import { databaseUrl, makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually, sandbox, testGateway, testKeys, visa } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { manyCommands, type Started, startProcess } from './support/process.ts'
import { makeShopper } from './support/shopper.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-rotation-'))
const [oldSeal, newSeal, oldLookup, newLookup, strange] = ['a', 'c', 'b', 'd', 'e'].map(digit => digit.repeat(64)) as [
  string, string, string, string, string,
] // biome-ignore format: names beside digits
const idOf = (kind: 'seal' | 'lookup', key: string) => makeKeys([Buffer.from(key, 'hex')], Buffer.from(key, 'hex'))[kind][0]!.id

const used = 'used-after-the-change-of-the-key'
const unused = 'never-used-after-the-change-of-the-key'

let database: TestDatabase
let pool: pg.Pool
const commands = manyCommands()
const running: Started[] = []

const environment = (seal: string, lookup: string, more: Record<string, string> = {}) => ({
  DATABASE_URL: databaseUrl(database.connection),
  DATA_DIR: join(folder, `${seal.slice(0, 1)}${lookup.slice(0, 1)}`),
  SEAL_KEY: seal,
  LOOKUP_KEY: lookup,
  EGRESS_ALLOW: '',
  ...more,
})
const before_ = () => environment(oldSeal, oldLookup)
const between = () => environment(`${oldSeal},${newSeal}`, `${oldLookup},${newLookup}`)
const during = () => environment(`${newSeal},${oldSeal}`, `${newLookup},${oldLookup}`)
const afterwards = () => environment(newSeal, newLookup)

async function start(settings: Record<string, string>): Promise<Started> {
  const started = await startProcess(settings)
  running.push(started)
  return started
}
const stopAll = async () => {
  for (const one of running.splice(0)) await one.stop()
}

before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 2)
})
after(async () => {
  commands.stop()
  await stopAll()
  await pool.end()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

// biome-ignore lint/suspicious/noExplicitAny: an answer of the interface, looked at field by field
type Reply = { readonly status: number; readonly body: any }

async function post(
  gateway: Started,
  path: string,
  fields: Record<string, string>,
  { key, token = sandbox.accessToken }: { key?: string; token?: string } = {},
): Promise<Reply> {
  const response = await fetch(`${gateway.sandbox.baseUrl}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, ...(key !== undefined && { 'Idempotency-Key': key }) },
    body: new URLSearchParams({ entityId: sandbox.entityId, currency: 'EUR', amount: '92.00', ...fields }),
  })
  return { status: response.status, body: await response.json() }
}
const pay = (gateway: Started, fields: Record<string, string> = {}, more = {}) =>
  post(gateway, '/v1/payments', { ...visa, paymentType: 'PA', ...fields }, more)
const capture = (gateway: Started, id: string) => post(gateway, `/v1/payments/${id}`, { paymentType: 'CP' })

const count = async (text: string, values: unknown[] = []): Promise<number> => (await pool.query(text, values)).rows.length
const keyOf = (column: string) => `encode(substring(${column} from 2 for 4), 'hex')`

// Columns of bytes that are hashes, proofs of keys or files. All others hold sealed records.
const hashes = [
  'access_tokens.route_hash', 'access_tokens.token_hash', 'answered_challenges.hash', 'archives.proof', 'audit.hash', 'audit_head.proof', 'checkout_attempts.form', 'checkouts.fingerprint',
  'clearing_files.hash', 'clearing_lines.hash', // of a file's bytes, and of its line's
  'file_pieces.content', // files themselves: nothing stands in them that other tables do not have in clear
  'idempotency_keys.fingerprint', 'idempotency_keys.key_hash', 'key_checks.proof', 'known_places.hash', 'log_in_failures.proof',
  'passkeys.public_key', // which is no secret
  'recovery_codes.hash',
  'redirects.notice_hash', 'redirects.page_hash', 'redirects.session_hash', 'registrations.fingerprint', 'registrations.key_fingerprint',
  'return_files.hash', 'risk_attempts.subject', 'searched_payments.email_hash', 'settled_bookings.hash',
  'settled_days.hash', // of a file's bytes
  'slips.link_hash', 'staff_links.hash', 'staff_sessions.hash',
] // biome-ignore format: one list

it('every column of sealed records is counted and sealed anew', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns where table_schema = 'public' and data_type = 'bytea' order by 1`,
  )
  const sealed = sealedPlaces.map(({ table, sealed }) => `${table}.${sealed}`)
  assert.deepEqual(
    rows.map(({ name }) => name).filter(name => !sealed.includes(name)),
    hashes,
  )
})

it('no column of sealed records is sampled for the planner: its statistics would keep them when they are erased', async () => {
  const columns = sealedPlaces.map(({ table, sealed }) => `${table}.${/^decode\((\w+)/.exec(sealed)?.[1] ?? sealed}`)
  const { rows } = await pool.query<{ name: string; target: number; rows: number }>(
    `select attrelid::regclass || '.' || attname as name, attstattarget as target,
            (select count(*) from pg_stats where tablename = attrelid::regclass::text and pg_stats.attname = a.attname) as rows
       from pg_attribute a where attrelid::regclass || '.' || attname = any ($1) order by 1`,
    [columns],
  )
  assert.deepEqual(
    rows,
    columns.toSorted().map(name => ({ name, target: 0, rows: 0 })),
  )
})

describe('a change of both keys', () => {
  const made: {
    early: string
    late: string
    registration?: string
    checkout?: string
    away?: { id: string; redirect: { url: string } }
  } = { early: '', late: '' }
  const order = { paymentType: 'DB', merchantTransactionId: 'order-0001' }

  it('begins with what the old keys sealed and hashed', async () => {
    const seed = join(folder, 'tokens.json')
    const tokens = [used, unused].map(token => ({ label: token.slice(0, 6), token, entities: [sandbox.merchantId] }))
    writeFileSync(seed, JSON.stringify({ psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' }, tokens }))
    const gateway = await start({ ...before_(), SEED_FILE: seed })
    const customer = { 'customer.email': 'jane@example.org', 'customer.givenName': 'J', 'customer.surname': 'J' }
    made.early = (await pay(gateway, customer)).body.id
    await eventually(
      async () => (await count('select 1 from searched_payments where email_hash is not null')) > 0,
      'it is searchable',
    )
    made.late = (await pay(gateway)).body.id
    made.registration = (await pay(gateway, { createRegistration: 'true' })).body.registrationId
    made.checkout = (
      await post(gateway, '/v1/checkouts', { paymentType: 'DB', 'customer.givenName': 'J', 'customer.surname': 'J' })
    ).body.id
    const first = await pay(gateway, { ...order, notificationUrl: 'https://shop.example/told' }, { key: 'twin-1' })
    assert.equal(first.status, 200)
    const away = {
      'customParameters[3DS2_enrolled]': 'true',
      'card.number': '4200000000000018',
      shopperResultUrl: 'https://shop.example/back',
    }
    made.away = (await pay(gateway, { ...away, paymentType: 'DB' })).body
    await eventually(async () => (await count('select 1 from endpoints')) > 0, 'an endpoint for the notificationUrl')
    await stopAll()
  })

  it('is refused by the command line until a gateway writes with the new key', async () => {
    const { code, out } = await commands.runIn(environment(`${newSeal},${oldSeal}`, oldLookup), 'keys', 'rewrap')
    assert.equal(code, 1)
    assert.match(out, /No gateway has written with the key seal [0-9a-f]{8} yet/)
    const many = environment(oldSeal, `${strange},${newLookup},${oldLookup}`)
    await assert.rejects(startProcess(many), /A gateway takes one lookup key, or two while it is changed/)
  })

  it('is not begun by a command: it writes with the key of the gateways that run, whatever stands first in its file', async () => {
    const gateway = await start(before_())
    const proofs = await pool.query('select name from key_checks order by name')
    const { code, stdout, out } = await commands.runIn(during(), 'token', 'create', '--entity', sandbox.merchantId)
    assert.equal(code, 0, out)
    const isKnown = async () => (await pay(gateway, {}, { token: stdout.trim() })).status === 200
    await eventually(isKnown, 'the token is known to the gateway')
    const made = ['endpoints', 'create', '--entity', sandbox.merchantId, '--url', 'http://127.0.0.1:8099/told']
    assert.equal((await commands.runIn({ ...during(), EGRESS_ALLOW: '127.0.0.0/8' }, ...made)).code, 0)
    assert.equal(await count(`select 1 from endpoints where ${keyOf('sealed_secrets')} <> $1`, [idOf('seal', oldSeal)]), 0)
    const listed = await commands.runIn(during(), 'keys', 'list')
    assert.match(listed.out, new RegExp(`lookup +${idOf('lookup', newLookup)} +next`))
    assert.match((await commands.runIn(during(), 'keys', 'retire', '--revoke-tokens')).out, /^No older key is left\.\n$/)
    assert.equal((await commands.runIn(before_(), 'audit', 'verify')).code, 0)
    assert.deepEqual((await pool.query('select name from key_checks order by name')).rows, proofs.rows)
    await pool.query(
      `delete from endpoints where url = 'http://127.0.0.1:8099/told'; delete from access_tokens where label = 'token'`,
    )
    await stopAll()
  })

  it('is refused to a gateway while another runs that does not hold the new key: it would not find what is written with it', async () => {
    await start(before_())
    const proofs = await pool.query('select name from key_checks order by name')
    const [seal, lookup] = [environment(`${newSeal},${oldSeal}`, oldLookup), environment(oldSeal, `${newLookup},${oldLookup}`)]
    await assert.rejects(startProcess(seal), new RegExp(`does not hold the seal key ${idOf('seal', newSeal)}`))
    await assert.rejects(startProcess(lookup), new RegExp(`does not hold the lookup key ${idOf('lookup', newLookup)}`))
    assert.deepEqual((await pool.query('select name from key_checks order by name')).rows, proofs.rows)
    await stopAll()
    await start(between())
    await start(during())
    await stopAll()
  })

  it('finds tokens, idempotency keys, shoppers and cards of before', async () => {
    const gateway = await start(during())
    assert.equal((await pay(gateway, {}, { token: used })).status, 200)
    const rehashed = `select 1 from access_tokens where label = 'used-a' and lookup_key = $1`
    await eventually(() => count(rehashed, [idOf('lookup', newLookup)]).then(Boolean), 'the used token is hashed anew')
    assert.equal((await pay(gateway, {}, { token: used })).status, 200)
    const fields = { ...order, notificationUrl: 'https://shop.example/told' }
    const twin = await pay(gateway, fields, { key: 'twin-1' })
    assert.equal(twin.status, 200)
    assert.equal((await pay(gateway, { ...fields, amount: '93.00' }, { key: 'twin-1' })).status, 400, 'another body')
    assert.equal(await count(`select 1 from payments where merchant_transaction_id = 'order-0001'`), 1, 'the order is paid once')
    assert.equal((await capture(gateway, made.early)).status, 200)
    const page = `${gateway.sandbox.baseUrl}/r/${made.away!.redirect.url.split('/').at(-1)}`
    const seen = await makeShopper().walk(`${page}?auto=approve`, gateway.sandbox.baseUrl)
    assert.ok(seen.location?.startsWith('https://shop.example/back'), seen.text)
  })

  it('pays an order once, whichever of the processes of before, between and after the change the twins reach', async () => {
    const gateways = [running[0]!, await start(between())]
    for (let at = 0; at < 25; at++) {
      const fields = { paymentType: 'DB', merchantTransactionId: `race-${String(at).padStart(4, '0')}` }
      const twins = await Promise.all(gateways.map(gateway => pay(gateway, fields, { key: `race-${at}` })))
      assert.deepEqual(
        twins.map(({ status }) => status),
        [200, 200],
      )
      assert.equal(twins[0]!.body.id, twins[1]!.body.id)
    }
    assert.equal(await count(`select 1 from payments where merchant_transaction_id like 'race-%'`), 25)
    const listed = await commands.runIn(during(), 'keys', 'list')
    assert.match(listed.out, new RegExp(`seal +${idOf('seal', oldSeal)} +older .*that runs and writes with it`))
    assert.match(listed.out, new RegExp(`lookup +${idOf('lookup', oldLookup)} +older .*that runs and writes with it`))
    await running.pop()!.stop()
    assert.doesNotMatch((await commands.runIn(during(), 'keys', 'list')).out, /that runs and writes/)
  })

  it('lists what needs which key, and seals it anew while the gateway runs', async () => {
    const listed = await commands.runIn(during(), 'keys', 'list')
    assert.match(listed.out, new RegExp(`seal +${idOf('seal', oldSeal)} +older .*card numbers.*secrets of endpoints`))
    assert.match(listed.out, new RegExp(`lookup +${idOf('lookup', oldLookup)} +older .*1 access tokens, idempotency keys until`))
    const refused = await commands.runIn(during(), 'keys', 'retire')
    assert.equal(refused.code, 1)
    assert.match(refused.out, new RegExp(`seal ${idOf('seal', oldSeal)} is needed by`))
    const { code, out } = await commands.runIn(during(), 'keys', 'rewrap')
    assert.equal(code, 0, out)
    assert.match(out, /card numbers: [1-9]\d* sealed anew/)
    assert.match(out, /secrets of endpoints: 1 sealed anew/)
    assert.match(out, /checkouts: 1 sealed anew/)
    for (const [table, column] of [
      ['sealed_cards', 'sealed'],
      ['continuations', 'sealed'],
      ['challenge_secrets', 'sealed'],
      ['endpoints', 'sealed_secrets'],
      ['checkouts', 'sealed'],
    ] as const)
      assert.equal(await count(`select 1 from ${table} where ${keyOf(column)} <> $1`, [idOf('seal', newSeal)]), 0, table)
    assert.match((await commands.runIn(during(), 'keys', 'rewrap')).out, /card numbers: 0 sealed anew/)
  })

  it('leaves a record that does not open, names it, and keeps its key', async () => {
    const wrong = Buffer.concat([Buffer.from(`01${idOf('seal', oldSeal)}`, 'hex'), Buffer.alloc(120)])
    const { rows } = await pool.query(`update sealed_cards set sealed = $1 where payment_id = $2 returning sealed`, [
      wrong,
      made.early,
    ])
    assert.equal(rows.length, 1)
    const { code, out } = await commands.runIn(during(), 'keys', 'rewrap')
    assert.equal(code, 1)
    assert.match(out, new RegExp(`record of ${sandbox.merchantId} ${made.early} does not open`))
    assert.match((await commands.runIn(during(), 'keys', 'retire')).out, /is needed by 1 card numbers/)
    await pool.query('delete from sealed_cards where payment_id = $1', [made.early])
  })

  it('retires the old keys when nothing needs them', async () => {
    const sealRetired = await commands.runIn(during(), 'keys', 'retire')
    assert.match(sealRetired.out, new RegExp(`seal ${idOf('seal', oldSeal)} is retired`))
    assert.match(
      sealRetired.out,
      new RegExp(`lookup ${idOf('lookup', oldLookup)} is needed by 1 access tokens, idempotency keys`),
    )
    await assert.rejects(startProcess(environment(newSeal, newLookup)), /The lookup key is not the one/)
    assert.match(
      (await commands.runIn(during(), 'keys', 'retire', '--revoke-tokens')).out,
      /\(never-\) is revoked[\s\S]*idempotency keys until/,
    )
    const seeded = await start({ ...during(), SEED_FILE: join(folder, 'tokens.json') })
    assert.equal((await pay(seeded, {}, { token: unused })).status, 403, 'a seed file does not revive it under its new hash')
    assert.equal((await pay(seeded, {}, { token: used })).status, 200)
    // Three days later.
    await pool.query(`update key_checks set made_at = made_at - interval '73 hours'`)
    const late = new RegExp(`lookup ${idOf('lookup', oldLookup)} is needed by idempotency keys until`)
    assert.match((await commands.runIn(during(), 'keys', 'retire')).out, late, 'the last that wrote with it ended just now')
    await pool.query(`update key_checks set written_at = written_at - interval '73 hours'`)
    const needed = new RegExp(`lookup ${idOf('lookup', oldLookup)} is needed by 1 e-mail addresses of the search`)
    assert.match((await commands.runIn(during(), 'keys', 'retire')).out, needed)
    assert.equal((await commands.runIn(during(), 'search', 'rebuild')).code, 0)
    const { code, out } = await commands.runIn(during(), 'keys', 'retire')
    assert.equal(code, 0, out)
    assert.match(out, new RegExp(`lookup ${idOf('lookup', oldLookup)} is retired`))
    assert.match((await commands.runIn(during(), 'keys', 'retire')).out, /No older key is left/)
  })

  it('ends without the old keys: what they sealed and hashed is served under the new ones', async () => {
    await stopAll()
    const gateway = await start(afterwards())
    assert.equal((await capture(gateway, made.late)).status, 200)
    const again = await post(gateway, `/v1/registrations/${made.registration}/payments`, { paymentType: 'PA' })
    assert.deepEqual(
      [again.status, again.body.card?.last4Digits],
      [200, '0000'],
      'a card that was registered under the old keys pays',
    )
    const pressed = await fetch(`${gateway.sandbox.baseUrl}/v1/checkouts/${made.checkout}/payment`, {
      method: 'POST',
      headers: { Accept: 'application/json' },
      body: new URLSearchParams(visa),
    })
    assert.equal(pressed.status, 200, 'a checkout of before is paid')
    assert.equal((await pay(gateway, {}, { token: used })).status, 200)
    assert.equal((await pay(gateway, {}, { token: unused })).status, 403)
    const told = await commands.runIn(afterwards(), 'audit', '--json')
    for (const action of ['sealedAnew', 'keyRetired', 'tokenRevoked']) assert.match(told.out, new RegExp(`"${action}"`))
    // The record of before is whole under the keys of before, which a command may still be given.
    const verified = await commands.runIn(environment(newSeal, `${newLookup},${oldLookup}`), 'audit', 'verify')
    assert.equal(verified.code, 0, verified.out)
    await stopAll()
    await assert.rejects(startProcess(before_()), /key/)
  })
})

describe('who writes with a key', () => {
  let database: TestDatabase
  let pool: pg.Pool
  const [seal, lookup] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const [ofBefore, between, ofAfter] = [
    makeKeys([seal], lookup),
    makeKeys([seal, Buffer.alloc(32, 7)], lookup, Buffer.alloc(32, 8)),
    makeKeys([Buffer.alloc(32, 7), seal], Buffer.alloc(32, 8), lookup),
  ]
  const keep = (keys: Keys) => inTransaction(pool, db => keepKeys(db, keys, Date.now()))
  /** A session of a process with these keys begins, does what is asked, and ends. */
  async function within<Value>(keys: Keys, work: () => Promise<Value>): Promise<Value> {
    const writing = writingPool(database.connection, 1, writerOf(keys))
    try {
      await writing.query('select 1')
      return await work()
    } finally {
      await writing.end()
    }
  }
  const begins = (keys: Keys) => within(keys, async () => 'admitted').catch((error: Error) => error.message)

  let ofRetire: Record<string, string>
  const hex = (at: number) => Buffer.alloc(32, at).toString('hex')

  before(async () => {
    database = await makeDatabase()
    pool = testPool(database.connection, 3)
    ofRetire = {
      ...{ DATABASE_URL: databaseUrl(database.connection), DATA_DIR: join(folder, 'writers') },
      ...{ SEAL_KEY: `${hex(7)},${hex(1)}`, LOOKUP_KEY: `${hex(8)},${hex(2)}` },
    }
    await keep(ofBefore)
    await keepMode(pool, 'sandbox', Date.now())
  })
  after(async () => {
    await pool.end()
    await database.drop()
  })

  it('is seen by who begins to write with another, which all must hold', async () => {
    await within(ofBefore, () => assert.rejects(keep(ofAfter), /does not hold the lookup key/))
    assert.match(await begins(ofAfter), /^Nothing is written with the key lookup [0-9a-f]{8} any more/) // nobody has proved it
    await within(between, () => keep(ofAfter))
    assert.deepEqual(await Promise.all([ofBefore, between, ofAfter].map(begins)), [
      `The lookup key is not the one that this database was written with (${ofAfter.lookup[0]!.id}).`,
      'admitted',
      'admitted',
    ])
  })

  it('is seen by who retires it, and who begins meanwhile waits for that', async () => {
    const retire = () => commands.runIn(ofRetire, 'keys', 'retire')
    const old = `seal ${ofBefore.seal[0]!.id}`
    const refused = await within(between, retire)
    assert.deepEqual([refused.code, refused.out.includes(`${old} is needed by a gateway or a command that runs`)], [1, true])
    const holder = await pool.connect()
    await holder.query(`set idle_in_transaction_session_timeout = '20s'; begin; lock table sealed_cards in access exclusive mode`)
    const retiring = retire()
    await untilWaiting(pool, 'sealed_cards')
    const waiting = begins(between)
    await untilWaiting(pool, 'pg_advisory_xact_lock_shared')
    await holder.query('commit')
    holder.release()
    assert.match((await retiring).out, new RegExp(`${old} is retired`))
    assert.match(await waiting, new RegExp(`^Nothing is written with the key ${old} any more`))
    await keep(between)
  })

  it('is not kept waiting while what needs its key is counted, and is named; nor stands the count still in a transaction', async () => {
    await within(between, async () => {
      await keep(between)
      const holder = await pool.connect()
      await holder.query(
        `set idle_in_transaction_session_timeout = '20s'; begin; lock table sealed_cards in access exclusive mode`,
      )
      const retiring = commands.runIn(ofRetire, 'keys', 'retire')
      await untilWaiting(pool, 'sealed_cards')
      try {
        assert.equal(await begins(between), 'admitted')
        const { rows } = await pool.query(`select query from pg_stat_activity
          where datname = current_database() and application_name like 'tollgate %' and state like 'idle in transaction%'`)
        assert.deepEqual(rows, [])
      } finally {
        await holder.query('rollback')
        holder.release()
      }
      const { code, out } = await retiring
      assert.deepEqual(
        [code, out.includes(`seal ${ofBefore.seal[0]!.id} is needed by a gateway or a command that runs`)],
        [1, true],
      )
    })
  })

  it('keeps the proof of its key until nothing needs it: a command that is killed while it counts leaves all as it was', async () => {
    const proofs = await readProofs(pool)
    const holder = await pool.connect()
    await holder.query(`set idle_in_transaction_session_timeout = '20s'; begin; lock table sealed_cards in access exclusive mode`)
    const killed = manyCommands()
    const retiring = killed.runIn(ofRetire, 'keys', 'retire')
    await untilWaiting(pool, 'sealed_cards')
    assert.deepEqual(await readProofs(pool), proofs)
    killed.stop()
    await holder.query('rollback')
    holder.release()
    await retiring.catch(() => {})
    await eventually(async () => (await begins(between)) === 'admitted', 'the key is written with again')
    assert.deepEqual(await readProofs(pool), proofs)
  })

  it('does not wait longer than some seconds for who holds a lock and stands still, whose session ends', async () => {
    for (const lock of [
      (db: pg.PoolClient) => keepKeys(db, between, Date.now()),
      (db: pg.PoolClient) => lockKey(db, writtenWith(between)[1]!),
    ]) {
      const still = await pool.connect()
      still.on('error', () => {}) // its session is ended
      await still.query('begin')
      await lock(still)
      assert.equal(await begins(between), 'admitted')
      await assert.rejects(still.query('commit'))
      still.release(true)
    }
    const counting = await pool.connect()
    await counting.query('begin')
    await lockKey(counting, writtenWith(between)[1]!)
    await counting.query('set local idle_in_transaction_session_timeout = 0')
    assert.match(await begins(between), /lock timeout/)
    await counting.query('rollback')
    counting.release()
  })

  it('waits for who decides about a key at that moment, and goes by it', async () => {
    const names = writtenWith(ofBefore)
    for (const retires of [false, true]) {
      const holder = await pool.connect()
      await holder.query('begin')
      for (const name of names) await lockKey(holder, name)
      const waiting = begins(between)
      await untilWaiting(pool, 'pg_advisory_xact_lock_shared')
      assert.equal(await begins(ofAfter), 'admitted', 'who writes with another does not wait')
      if (retires) for (const name of names) await dropProof(holder, name)
      await holder.query('commit')
      holder.release()
      assert.match(
        await waiting,
        retires ? /^Nothing is written with the key lookup [0-9a-f]{8} any more: it was retired/ : /^admitted$/,
      )
    }
    const newest = makeKeys([Buffer.alloc(32, 9), Buffer.alloc(32, 7)], Buffer.alloc(32, 8))
    const holder = await pool.connect()
    await holder.query('begin')
    await keepKeys(holder, newest, Date.now())
    const waiting = begins(ofAfter)
    await untilWaiting(pool, 'lock table key_checks')
    await holder.query('commit')
    holder.release()
    assert.match(await waiting, /which is not among the seal keys given/)
  })
})

test('a gateway that stands still in the midst of its start keeps no other from its database, and does not start', async () => {
  const [database, dataDir] = [await makeDatabase(), mkdtempSync(join(tmpdir(), 'tollgate-still-'))]
  const pool = testPool(database.connection, 2)
  const settings = { ...before_(), DATABASE_URL: databaseUrl(database.connection) }
  const gateway = await startProcess({ ...settings, DATA_DIR: join(dataDir, 'one') })
  const holder = await pool.connect()
  let still: ChildProcess | undefined
  try {
    await holder.query('begin; lock table installation in share mode')
    const starting = startProcess({ ...settings, DATA_DIR: join(dataDir, 'other') }, child => {
      still = child
    }).then(
      () => 'started',
      (error: Error) => error.message,
    )
    await untilWaiting(pool, 'insert into installation')
    still!.kill('SIGSTOP')
    await holder.query('commit')
    await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'tollgate %'`,
    )
    await eventually(async () => (await pay(gateway)).status === 200, 'it is paid in new sessions', 20)
    still!.kill('SIGCONT')
    assert.match(await starting, /it ended with 1:\nTollgate cannot start\.\nThe database gave up this start: .*start it again\./)
  } finally {
    holder.release(true)
    still?.kill('SIGKILL')
    await gateway.stop()
    await pool.end()
    await database.drop()
    rmSync(dataDir, { recursive: true })
  }
})

test('a gateway whose key another proves or retires while it is away from its database writes nothing more', async () => {
  const gateway = await testGateway()
  try {
    assert.equal((await gateway.pay({ paymentType: 'PA' })).status, 200)
    await gateway.pool.query(`delete from key_checks where name like 'seal %'`)
    await gateway.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'tollgate %'`,
    )
    assert.notEqual((await gateway.pay({ paymentType: 'PA' })).status, 200)
    assert.equal((await gateway.pool.query('select from payments')).rowCount, 1)
  } finally {
    await gateway.stop()
  }
})

test('the keys of a gateway are seen also where its connections go through a pooler that adds from where they came', async () => {
  const database = await makeDatabase()
  const pool = testPool(database.connection, 1)
  const pooled = testPool(
    { ...database.connection, application_name: `tollgate notices ${tellKeys(testKeys)} - 127.0.0.1:35950` },
    1,
  )
  try {
    await pooled.query('select 1')
    const told = { lookup: testKeys.lookup.map(({ id }) => id), seal: testKeys.seal.map(({ id }) => id) }
    assert.deepEqual(await readKeysInUse(pool), [told])
  } finally {
    await pooled.end()
    await pool.end()
    await database.drop()
  }
})

test('a worker that takes the place of a dead one writes with the keys of the others, whatever the files say by now', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-workers-'))
  const [file, database] = [join(folder, 'lookup'), await makeDatabase()]
  writeFileSync(file, `${oldLookup}\n`, { mode: 0o600 })
  const pool = testPool(database.connection, 1)
  const gateway = await startProcess({
    ...{ DATA_DIR: join(folder, 'data'), DATABASE_URL: databaseUrl(database.connection), WORKERS: '2' },
    ...{ SEAL_KEY: oldSeal, LOOKUP_KEY_FILE: file },
  })
  try {
    const [before] = await readKeysInUse(pool)
    writeFileSync(file, `${newLookup}\n${oldLookup}\n`, { mode: 0o600 })
    const sessions = async () =>
      (
        await pool.query<{ pid: number; told: string }>(`select pid, application_name as told from pg_stat_activity
        where datname = current_database() and application_name like 'tollgate notices%'`)
      ).rows
    const old = await sessions()
    assert.equal(old.length, 3) // the primary tells it too
    const workers = () =>
      readFileSync(`/proc/${gateway.child.pid}/task/${gateway.child.pid}/children`, 'utf8')
        .trim()
        .split(' ')
        .map(Number)
        .filter(pid => readFileSync(`/proc/${pid}/environ`, 'utf8').includes('NODE_UNIQUE_ID='))
    // Their first process stands still, so that none takes their place while the key is asked for.
    process.kill(gateway.child.pid!, 'SIGSTOP')
    for (const pid of workers()) process.kill(pid, 'SIGKILL')
    await eventually(async () => (await sessions()).length === 1, 'the workers are gone')
    await assert.rejects(
      inTransaction(pool, db =>
        keepKeys(
          db,
          makeKeys([Buffer.from(oldSeal, 'hex')], Buffer.from(newLookup, 'hex'), Buffer.from(oldLookup, 'hex')),
          Date.now(),
        ),
      ),
      /does not hold the lookup key/,
    )
    process.kill(gateway.child.pid!, 'SIGCONT')
    await eventually(async () => {
      const now = await sessions()
      return now.length === 3 && now.filter(({ pid }) => !old.some(one => one.pid === pid)).length === 2
    }, 'others listen')
    for (const { lookup } of await readKeysInUse(pool)) assert.equal(lookup[0], before!.lookup[0], 'it writes with the same key')
  } finally {
    await gateway.stop()
    await pool.end()
    await database.drop()
    rmSync(folder, { recursive: true })
  }
})
