// What there may be so many of is counted before one more is written: of two that come at once, in whichever process, one is the last.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { standardBrands } from '../src/contract/brands.ts'
import { makeToken, tokenByChance, validTokensMost } from '../src/merchants/access/tokens.ts'
import type { Directory } from '../src/merchants/directory.ts'
import { createEndpoint, endpointsMost } from '../src/notifications/endpoints/endpoint.ts'
import type { OfficeParts } from '../src/pages/office/parts.ts'
import { riskRoutes } from '../src/pages/office/risk/routes.ts'
import type { OfficeRequest } from '../src/pages/office/route.ts'
import { personRequestsMost } from '../src/pages/office/route.ts'
import { entriesMost } from '../src/payments/risk/lists/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { lockCounted } from '../src/platform/database/locks.ts'
import { askExport, exportsTogetherMost } from '../src/reporting/exports/export.ts'
import { makeSchedule, schedulesMost } from '../src/reporting/schedules/schedule.ts'
import { filtersMost, saveFilter } from '../src/staff/filters/store.ts'
import { passkeysMost } from '../src/staff/passkeys/passkeys.ts'
import { insertPasskey } from '../src/staff/passkeys/store.ts'
import { addPerson, changeRole, peopleMost } from '../src/staff/people.ts'
import type { SignedIn } from '../src/staff/sessions.ts'
import { findPerson } from '../src/staff/store.ts'
import { endpointParts } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { addStaff, type OfficeReply, signedIn } from './support/office.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

const { merchantId } = sandbox
const fileOf = {
  report: 'settlement',
  every: 'day',
  mode: 'internal',
  host: 'files.example',
  user: 'us',
  hostKey: 'ssh-ed25519 AAAA',
}
const colleagues = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map(end => `${'0'.repeat(30)}${end}`)

type Counted = {
  /** Writes so many. */
  readonly fill: string
  readonly most: number
  /** The statement that writes one more. */
  readonly writes: RegExp
  /** By the first of two, or by the second. */
  add(pool: pg.Pool, which: number): Promise<unknown>
  /** By somebody else, who has a limit of his own. */
  other?(): Promise<unknown>
  readonly count: string
}

const stranger = `${'0'.repeat(30)}b1`
const ask = (pool: pg.Pool, id: string, together: readonly string[]) =>
  askExport(
    { ...partsOf(pool), by: { kind: 'user', id, address: '' } } as unknown as Parameters<typeof askExport>[0],
    together,
    'a.csv',
    [],
    { kind: 'payments', merchants: [], any: [] },
    {},
  )
const partsOf = (pool: pg.Pool) => ({
  ...endpointParts(pool),
  directory: {
    entity: () => ({ kind: 'merchant' }),
    below: () => [{ id: merchantId, kind: 'merchant', name: '' }],
    businessTime: () => systemClock.real(),
  } as unknown as Directory,
  by: { kind: 'commandLine', id: 'test', address: '' } as const,
})
const person = (pool: pg.Pool, which: number) =>
  addPerson(partsOf(pool), { name: `new${which}@office.example`, role: 'viewer', entities: [merchantId] })

const passkeyOf = (which: number) =>
  ({ id: `key${which}`, staffId: stranger, name: '', algorithm: -7, publicKey: Buffer.alloc(1), counter: 0, madeAt: 0 }) as const

const limits: Readonly<Record<string, Counted>> = {
  'endpoints of a merchant': {
    fill: `insert into endpoints (merchant_id, id, kind, channel_id, name, sealed_secrets, state, created_at)
      select '${merchantId}', gen_random_uuid(), case when n < 9 then 'request' else 'cursor' end, gen_random_uuid(), n, '', 'active', now()
        from generate_series(1, $1 + 8) n`,
    most: endpointsMost,
    writes: /^insert into endpoints/,
    add: pool => createEndpoint(partsOf(pool), { merchantId, kind: 'webhook', url: 'https://shop.example/' }),
    count: `select count(*) from endpoints where merchant_id = '${merchantId}' and kind <> 'request'`,
  },
  'schedules of an entity': {
    fill: `insert into report_schedules (owner_id, id, settings, made_at, made_by)
      select '${merchantId}', gen_random_uuid(), '{}', now(), '' from generate_series(1, $1)`,
    most: schedulesMost,
    writes: /^insert into report_schedules/,
    add: pool => makeSchedule(partsOf(pool), merchantId, fileOf),
    other: () => makeSchedule(partsOf(gateway.pool), sandbox.divisionId, fileOf),
    count: `select count(*) from report_schedules where owner_id = '${merchantId}'`,
  },
  'valid tokens of an entity': {
    fill: `insert into access_tokens (token_hash, id, label, entities, legacy, created_at)
      select sha256(n::text::bytea), gen_random_uuid(), 'one', array['${sandbox.lenientEntityId}'::uuid], false, now() from generate_series(1, $1) n`,
    most: validTokensMost,
    writes: /^insert into access_tokens/,
    add: pool =>
      makeToken(pool, partsOf(pool), { sent: tokenByChance(systemRandom), label: 'more', entities: [sandbox.lenientEntityId] }),
    count: `select count(*) from access_tokens where entities && array['${sandbox.lenientEntityId}'::uuid]`,
  },
  'people of an entity': {
    fill: `insert into staff (id, name, role, entities, made_at)
      select gen_random_uuid(), n || '@there.example', 'viewer', array['${merchantId}'::uuid], now() from generate_series(1, $1) n`,
    most: peopleMost,
    writes: /^insert into staff /,
    add: person,
    count: `select count(*) from staff where entities && array['${merchantId}'::uuid]`,
  },
  'exports of colleagues': {
    fill: `insert into exports (id, asked_by, asked_at, ends_at, merchants, name, source, state)
      select gen_random_uuid(), '${colleagues[2]!.slice(0, -1)}' || 3 + n % 4, now(), now(), '{}', 'a.csv', '{}', 'made' from generate_series(1, $1) n`,
    most: exportsTogetherMost,
    writes: /^insert into exports/,
    add: (pool, which) => ask(pool, colleagues[which]!, colleagues),
    other: () => ask(gateway.pool, stranger, [stranger]),
    count: `select count(*) from exports where asked_by <> '${stranger}'`,
  },
  'filters of somebody': {
    fill: `insert into saved_filters (staff_id, name, query) select '${stranger}', n, '' from generate_series(1, $1) n`,
    most: filtersMost,
    writes: /^insert into saved_filters/,
    add: (pool, which) => inTransaction(pool, db => saveFilter(db, stranger, { name: `new ${which}`, query: '' })),
    count: 'select count(*) from saved_filters',
  },
  'passkeys of somebody': {
    fill: `with one as (insert into staff (id, name, role, entities, made_at) values ('${stranger}', 'keys', 'viewer', array['${sandbox.divisionId}'::uuid], now()))
      insert into passkeys (id, staff_id, name, algorithm, public_key, counter, made_at)
      select sha256(n::text::bytea), '${stranger}', n, -7, '', 0, now() from generate_series(1, $1) n`,
    most: passkeysMost,
    writes: /^insert into passkeys/,
    add: (pool, which) => inTransaction(pool, db => insertPasskey(db, passkeyOf(which), passkeysMost)),
    count: 'select count(*) from passkeys',
  },
  'entries of a risk list': {
    fill: `insert into risk_entries (owner_id, kind, value, id, list, shown, reason, added_by, added_at)
      select '${merchantId}', 'customer', n, gen_random_uuid(), 'block', n, 'why', '', now() from generate_series(1, $1) n`,
    most: entriesMost,
    writes: /^insert into risk_entries/,
    async add(pool, which) {
      const route = riskRoutes({ ...partsOf(pool), cardBrands: standardBrands } as unknown as OfficeParts).find(
        ({ method, path }) => method === 'POST' && path === '/risk',
      )!
      const form = { list: 'block', kind: 'customer', value: `new ${which}`, entity: merchantId, reason: 'a reason' }
      const request = { language: 'en', values: new URLSearchParams(form) } as unknown as OfficeRequest
      const signedIn = { entities: [merchantId], name: 'us', by: partsOf(pool).by, may: () => true } as unknown as SignedIn
      return route.answer(request, signedIn, {})
    },
    count: `select count(*) from risk_entries where owner_id = '${merchantId}'`,
  },
}

/** A pool whose connections wait after a statement until they may go on. */
function waitingAfter(pool: pg.Pool, statement: RegExp) {
  const [reached, goes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const client = (db: pg.PoolClient): pg.PoolClient =>
    new Proxy(db, {
      get(target, name) {
        if (name === 'query')
          return async (...given: [string]) => {
            const result = await target.query(...given)
            if (statement.test(given[0])) {
              reached.resolve()
              await goes.promise
            }
            return result
          }
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  return { pool: { connect: async () => client(await pool.connect()) } as unknown as pg.Pool, reached, goes }
}

for (const [what, { fill, most, writes, add, other, count }] of Object.entries(limits))
  test(`${what}: two that come at once are one too many`, async () => {
    const { rows } = await gateway.pool.query(count)
    await gateway.pool.query(fill, [most - 1 - rows[0].count])
    const { pool, reached, goes } = waitingAfter(gateway.pool, writes)
    const first = add(pool, 0).catch(String)
    await Promise.race([reached.promise, first.then(ended => assert.fail(`it was not written: ${JSON.stringify(ended)}`))])
    if (other) assert.ok(await other(), 'nobody else waits')
    const second = add(gateway.pool, 1).catch(String)
    // Whoever does not wait has ended.
    await Promise.race([second, untilWaiting(gateway.pool)])
    goes.resolve()
    await Promise.all([first, second])
    assert.equal((await gateway.pool.query(count)).rows[0].count, most)
  })

test('somebody is not moved to where nobody can be added', async () => {
  const { id } = await addStaff(gateway.pool, 'viewer', [sandbox.divisionId])
  const person = (await findPerson(gateway.pool, 'id', id))!
  const there = await gateway.pool.query(limits['people of an entity']!.count)
  assert.equal(there.rows[0].count, peopleMost)
  assert.ok('refused' in (await changeRole(partsOf(gateway.pool), person, 'viewer', [merchantId])))
  assert.ok(!('refused' in (await changeRole(partsOf(gateway.pool), person, 'support', [sandbox.divisionId]))))
})

test('who adds much at once holds one connection, and is told to come again', async () => {
  const admin = await signedIn(gateway, 'admin', [sandbox.divisionId])
  const forms: [string, string, Record<string, string>][] = [
    ['/office/webhooks', 'endpoints', { entity: merchantId, url: 'https://shop.example/' }],
    ['/office/schedules', 'schedules', { ...fileOf, entity: merchantId }],
    ['/office/staff', 'people', { entity: merchantId, role: 'viewer', name: 'more@office.example' }],
    ['/office/risk', 'risk entries', { list: 'block', kind: 'customer', value: 'more', entity: merchantId, reason: 'a reason' }],
  ]
  const [sent, turns] = [personRequestsMost, 5]
  for (const [path, what, fields] of forms) {
    const holder = await gateway.pool.connect()
    const answered: OfficeReply[] = []
    let waiting = 0
    let all: Promise<unknown> | undefined
    try {
      await holder.query('begin')
      await lockCounted(holder, what, [merchantId])
      all = Promise.all(Array.from({ length: sent }, async () => answered.push(await admin.post(path, fields))))
      await eventually(
        async () => {
          const { rows } = await holder.query(
            `select count(*) from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`,
          )
          waiting = Math.max(waiting, rows[0].count)
          return waiting > 0 && answered.length >= sent - turns
        },
        `${path}: one waits for the lock, and most are refused`,
        20,
      )
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    assert.equal(waiting, 1, `${path}: connections that wait`)
    assert.ok(answered.every(({ status, headers }) => status === 429 && headers.get('retry-after') === '1'))
    await all
  }
  // Whoever sends much writes lines that are bounded, with the address, and wakes nobody.
  const told = gateway.logged.map(line => JSON.parse(line)).filter(({ message }) => / (no turn|failed)$/.test(message))
  assert.ok(told.length >= forms.length * (sent - turns))
  for (const { level, message, address } of told)
    assert.deepEqual([level, message, address], ['warn', 'a caller found no turn', '127.0.0.1'])
})
