// Pages about the entities of somebody, beside merchants with thousands of channels, tokens, webhooks and people: what they read, check and hold is what they
// show and change.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { settingsText } from '../src/merchants/change.ts'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { readBelow, readTokens } from '../src/merchants/store.ts'
import { NotBegun, turnsOfMerchants, turnsOfPeople } from '../src/merchants/turns.ts'
import { listEndpoints } from '../src/notifications/endpoints/store.ts'
import { approvalRoutes } from '../src/pages/office/approvals/routes.ts'
import { auditRoutes } from '../src/pages/office/audit/routes.ts'
import { entityRoutes } from '../src/pages/office/entities/routes.ts'
import type { OfficePage } from '../src/pages/office/frame.ts'
import type { OfficeParts } from '../src/pages/office/parts.ts'
import { peopleRoutes } from '../src/pages/office/people/routes.ts'
import { type OfficeRequest, type OfficeRoute, personRequestsMost } from '../src/pages/office/route.ts'
import { scheduleRoutes } from '../src/pages/office/schedules/routes.ts'
import { webhookRoutes } from '../src/pages/office/webhooks/routes.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import type { Connection, Database } from '../src/platform/database/connect.ts'
import { NoTurn } from '../src/platform/database/errors.ts'
import { countOwed } from '../src/reporting/owedFiles/store.ts'
import { listSchedules } from '../src/reporting/schedules/store.ts'
import type { StaffParts } from '../src/staff/parts.ts'
import { findSignedIn, type SignedIn } from '../src/staff/sessions.ts'
import { countPeople, listStaff } from '../src/staff/store.ts'
import { decode } from './support/entities.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type OfficeReply, signedIn } from './support/office.ts'

const others = 300
let gateway: TestGateway
let directory: Directory
before(async () => {
  gateway = await testGateway()
  await gateway.pool.query(
    `with merchant as (
       insert into entities (id, kind, parent_id, merchant_id, name, settings, changed_at)
       select one.id, 'merchant', $1, one.id, 'Other', '{}', now() from (select gen_random_uuid() as id) one returning id
     ), channels as (
       insert into entities (id, kind, parent_id, merchant_id, name, settings, changed_at)
       select gen_random_uuid(), 'channel', id, id, 'Other ' || n, '{}', now() from merchant, generate_series(1, $2::int) n returning id
     )
     insert into access_tokens (token_hash, id, label, entities, legacy, created_at)
     select sha256(id::text::bytea), gen_random_uuid(), 'other', array[id], false, now() from channels`,
    [sandbox.divisionId, others],
  )
  const other = `select merchant_id, id from entities where kind = 'channel' and (name like 'Other %' or id = '${sandbox.entityId}')`
  await gateway.pool.query(`
    insert into endpoints (merchant_id, id, kind, name, url, sealed_secrets, state, created_at)
      select merchant_id, gen_random_uuid(), 'webhook', 'hook of ' || id, 'https://shop.example/', '', 'active', now() from (${other}) one;
    insert into report_schedules (owner_id, id, settings, made_at, made_by)
      select merchant_id, gen_random_uuid(),
             '{"report":"settlement","every":"day","form":"csv","user":"me","host":"files.example","folder":"."}', now(), '' from (${other}) one;
    insert into owed_files (owner_id, source, day, form, made_at)
      select merchant_id, gen_random_uuid(), '2020-01-02', 'csv', now() from (${other}) one;
    insert into staff (id, name, role, entities, made_at)
      select gen_random_uuid(), id || '@office.example', 'viewer', array[merchant_id], now() from (${other}) one`)
  const database = { directory: gateway.pool, listen: async () => ({ stop: async () => {} }) } as unknown as Database
  directory = await openDirectory(database, testKeys, systemClock, () => {})
})
after(async () => {
  await directory.close()
  await gateway.stop()
})

/** A pool that counts the rows it brings. */
function counting(pool: pg.Pool) {
  let rows = 0
  const counted = <Db extends pg.Pool | pg.PoolClient>(db: Db): Db =>
    new Proxy(db, {
      get(target, name) {
        if (name === 'query')
          return async (...given: [string]) => {
            const result = await target.query(...given)
            rows += result.rows.length
            return result
          }
        if (name === 'connect') return async () => counted((await (target as pg.Pool).connect()) as pg.PoolClient)
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  return { pool: counted(pool), rows: () => rows }
}

/** What somebody who reaches the sandbox's merchant is answered, and what was read for it. */
async function answerOf(
  method: string,
  path: string,
  named: Record<string, string> = {},
  fields: Record<string, string> = {},
  routes: (parts: OfficeParts) => OfficeRoute[] = entityRoutes,
) {
  const { pool, rows } = counting(gateway.pool)
  const checked: unknown[] = []
  const parts = {
    database: { work: pool, searches: pool },
    keys: testKeys,
    clock: systemClock,
    random: systemRandom,
    directory: { ...directory, reload: async () => {} },
    cardBrands: { rows: [] },
    methods: new Map(),
    channelRefusal: (settings: unknown) => void checked.push(settings),
  } as unknown as OfficeParts
  const somebody = {
    entities: [sandbox.merchantId],
    merchants: [sandbox.merchantId],
    by: { kind: 'user', id: '0'.repeat(32), address: '' },
    isWhole: true,
    may: () => true,
    reaches: () => true,
  } as unknown as SignedIn
  const route = routes(parts).find(one => one.method === method && one.path === path)!
  const request = { language: 'en', method, values: new URLSearchParams(fields) } as unknown as OfficeRequest
  const answer = await route.answer(request, somebody, named)
  return { answer, text: JSON.stringify((answer as OfficePage).body), rows: rows(), checked: checked.length }
}
const few = 20

test('the page of an entity reads that one, those above it and its own tokens', async () => {
  const { rows, text } = await answerOf('GET', '/entities/{entity}', { entity: sandbox.entityId })
  assert.match(text, new RegExp(sandbox.entityId))
  assert.ok(rows > 0 && rows <= few, `${rows} rows were read`)
})

test('the list reads those within reach', async () => {
  const { rows, text } = await answerOf('GET', '/entities')
  assert.match(text, new RegExp(sandbox.entityId))
  assert.ok(rows > 0 && rows <= few, `${rows} rows were read`)
})

for (const [path, routes, shown] of [
  ['/webhooks', webhookRoutes, 'hook of'],
  ['/schedules', scheduleRoutes, 'files.example'],
  ['/staff', peopleRoutes, '@office.example'],
  ['/audit', auditRoutes, 'entityMade'],
  ['/approvals', approvalRoutes, ''],
] as const)
  test(`${path} reads what is within reach`, async () => {
    const { rows, text } = await answerOf('GET', path, {}, {}, routes)
    assert.ok(text.includes(shown), text)
    assert.ok(rows <= few, `${rows} rows were read`)
  })

test('somebody who acts for others too is for those who act for all of them', async () => {
  await gateway.pool.query(
    `insert into staff (id, name, role, entities, made_at)
       select gen_random_uuid(), 'both@office.example', 'viewer', array[$1::uuid, id], now() from entities where name = 'Other'`,
    [sandbox.merchantId],
  )
  const { text } = await answerOf('GET', '/staff', {}, {}, peopleRoutes)
  assert.ok(text.includes('@office.example'))
  assert.doesNotMatch(text, /both@office\.example/)
})

const some = [sandbox.merchantId]
for (const [what, ask] of Object.entries<(db: Connection) => Promise<unknown>>({
  'the entities below one': db => readBelow(db, some),
  'the tokens of one': db => readTokens(db, { entities: some }),
  'the people of one': db => listStaff(db, some),
  'how many are at work for one': db => countPeople(db, some),
  'the webhooks of one': db => listEndpoints(db, some, 'webhook'),
  'the schedules of one': db => listSchedules(db, some),
  'the files that one is owed': db => countOwed(db, some),
}))
  test(`${what} are found by an index`, async () => {
    const client = await gateway.pool.connect()
    try {
      await client.query('begin; set local enable_seqscan = off; analyze staff, entities, access_tokens')
      const plans: string[] = []
      await ask({
        async query(text: string, values: unknown[]) {
          const { rows } = await client.query(`explain ${text}`, values)
          plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
          return { rows: [] }
        },
      } as unknown as Connection).catch(() => {})
      assert.equal(plans.length, 1)
      assert.doesNotMatch(plans[0]!, /Seq Scan/)
      assert.match(plans[0]!, /Index Cond/)
    } finally {
      await client.query('rollback')
      client.release()
    }
  })

test('who is signed in is known without a look at the entities of others', async () => {
  const clerk = await signedIn(gateway, 'admin', [sandbox.merchantId])
  const looks: string[] = []
  const watched = new Proxy(directory, {
    get(target, name: keyof Directory) {
      looks.push(name)
      return target[name]
    },
  })
  const parts = { clock: systemClock, keys: testKeys, directory: watched, database: { work: gateway.pool } }
  const found = await findSignedIn(parts as unknown as StaffParts, clerk.cookies.get('tollgate_office')!, '127.0.0.1', false)
  assert.deepEqual(found?.merchants, [sandbox.merchantId])
  assert.ok(found.reaches(sandbox.entityId) && !found.reaches(sandbox.divisionId) && !found.isWhole)
  assert.deepEqual(
    looks.filter(name => name === 'entities' || name === 'channels'),
    [],
  )
  const whole = await signedIn(gateway, 'admin', [directory.lineage(sandbox.divisionId)[1]!])
  const all = await findSignedIn(parts as unknown as StaffParts, whole.cookies.get('tollgate_office')!, '127.0.0.1', false)
  assert.deepEqual([all?.isWhole, all?.merchants.length], [true, 2])
})

test('a save reads and checks the entity and those below it', async () => {
  const { settings, name } = (await gateway.pool.query('select name, settings from entities where id = $1', [sandbox.entityId]))
    .rows[0]
  const given = { name, settings: JSON.stringify({ ...settings, checkoutMinutesMost: 44 }), shown: settingsText({ settings }) }
  const saved = await answerOf('POST', '/entities/{entity}', { entity: sandbox.entityId }, given)
  assert.equal(saved.answer.status, 303)
  assert.equal(saved.checked, 1, 'channels that were checked')
  assert.ok(saved.rows <= few, `${saved.rows} rows were read`)
  const made = await answerOf('POST', '/entities/{entity}/below', { entity: sandbox.merchantId }, { name: 'New' })
  assert.equal(made.answer.status, 303)
  assert.equal(made.checked, 1, 'channels that were checked')
  assert.ok(made.rows <= few, `${made.rows} rows were read`)
})

test('no rule of a merchant leads to the channel of another, whoever writes it, and wherever', async () => {
  const other = directory.channels().find(({ name }) => name === 'Other 1')!
  const save = async (id: string, channels: readonly string[]) => {
    const { rows } = await gateway.pool.query('select name, settings from entities where id = $1', [id])
    const settings = { ...rows[0].settings, channelDispatching: channels.map(channel => ({ channel })) }
    const given = { name: rows[0].name, settings: JSON.stringify(settings), shown: settingsText(rows[0]) }
    const saved = await answerOf('POST', '/entities/{entity}', { entity: id }, given)
    const after = await gateway.pool.query('select settings from entities where id = $1', [id])
    return { ...saved, isSaved: isDeepStrictEqual(after.rows[0].settings, settings) }
  }
  for (const stranger of [other.id, other.merchantId, sandbox.merchantId, '9'.repeat(32)]) {
    const { text, isSaved, answer } = await save(sandbox.merchantId, [sandbox.entityId, stranger])
    assert.ok(!isSaved && answer.status === 400, stranger)
    assert.match(text, /setting-channelDispatching/)
    assert.match(text, /\[1\]\.channel must be a channel of this merchant/)
  }
  // What a group says counts for every merchant below it.
  const { text, isSaved } = await save(sandbox.divisionId, [sandbox.entityId])
  assert.ok(!isSaved)
  assert.match(text, /Other: channelDispatching\[0\]\.channel must be a channel of this merchant/)
  assert.ok((await save(sandbox.merchantId, [sandbox.lenientEntityId])).isSaved)
  assert.ok((await save(sandbox.merchantId, [])).isSaved)
})

test('a token is made by what stands of its entity, and not by the tokens of everybody', async () => {
  const { rows, text } = await answerOf('POST', '/entities/{entity}/tokens', { entity: sandbox.entityId }, { label: 'Made here' })
  assert.match(text, /Made here/)
  assert.ok(rows > 0 && rows <= few, `${rows} rows were read`)
})

test('saves that wait hold no connection, and more than a few of one merchant are told to come again', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const admin = await signedIn(gateway, 'admin', [sandbox.merchantId])
  const shown = decode(/name="shown" value="([^"]*)"/.exec((await admin.ask(path)).text)![1]!)
  const sent = personRequestsMost
  const turns = 5
  const holder = await gateway.pool.connect()
  const answered: OfficeReply[] = []
  let waiting = 0
  let all: Promise<unknown>
  try {
    await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('entities', 0))`)
    const save = async () => answered.push(await admin.post(path, { name: 'Same', settings: shown, shown }))
    all = Promise.all(Array.from({ length: sent }, save))
    await eventually(async () => {
      const { rows } = await holder.query(
        `select count(*) from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`,
      )
      waiting = Math.max(waiting, rows[0].count)
      return waiting > 0 && answered.length >= sent - turns
    }, 'one waits for the lock, and most are refused')
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  assert.equal(waiting, 1, 'connections that wait')
  assert.ok(
    answered.every(
      ({ status, headers, text }) => status === 429 && headers.get('retry-after') === '1' && /Too much at once/.test(text),
    ),
  )
  await all
  assert.deepEqual(
    answered.slice(sent - turns).map(({ status }) => status),
    [303, 303, 303, 303, 303],
  )
})

test('one merchant who sends many keeps no other waiting behind all of them', async () => {
  const inTurn = turnsOfMerchants(systemClock)
  const order: string[] = []
  const change = (merchant: string) => inTurn(`of ${merchant}`, merchant, async () => order.push(merchant))
  await Promise.all(['many', 'many', 'many', 'few'].map(change))
  assert.deepEqual(order, ['many', 'few', 'many', 'many'])
})

test('one who sends many keeps no colleague of the same merchant, and not the PSP, waiting behind all of them; what fails once it has begun is not told as not begun', async () => {
  for (const turns of [turnsOfMerchants, turnsOfPeople]) {
    const inTurn = turns(systemClock)
    const order: string[] = []
    const change = (person: string) => inTurn(person, 'merchant', async () => order.push(person))
    const crowd = await Promise.allSettled([...Array.from({ length: 8 }, () => 'many'), 'few', 'psp'].map(change))
    assert.deepEqual(order, ['many', 'few', 'psp', 'many', 'many', 'many', 'many'])
    const refused = crowd.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
    assert.ok(refused.length === 3 && refused.every(error => error instanceof NotBegun))
    const failing = inTurn('few', 'merchant', async () => {
      throw new NoTurn('a payment is locked')
    })
    await assert.rejects(failing, error => error instanceof NoTurn && !(error instanceof NotBegun))
  }
})
