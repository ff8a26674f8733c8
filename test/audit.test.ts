// The audit: it only grows, whoever writes at the same time; what was changed, taken out, moved or cut off is found; and an attacker who fails
// to log in by the thousand does not fill it.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import { after, before, beforeEach, describe, it } from 'node:test'
import type pg from 'pg'
import { beginAudit, listAudit, record, verify } from '../src/audit/chain.ts'
import { type Actor, type AuditEntry, thisProcess } from '../src/audit/entry.ts'
import { limitFailures, startTelling, tellFailures } from '../src/audit/failures.ts'
import { auditWatch } from '../src/audit/watch.ts'
import { type Clock, clockWith, systemClock } from '../src/platform/clock.ts'
import { connect, inTransaction } from '../src/platform/database/connect.ts'
import type { Log, LogFields } from '../src/platform/log.ts'
import { type Keys, makeKeys } from '../src/vault/keys.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually, testKeys } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'

let now = Date.UTC(2030, 0, 31, 12)
const recorder = { keys: testKeys, clock: clockWith(() => now) }
let database: TestDatabase
let pool: pg.Pool

before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 8)
})
after(async () => {
  await pool.end()
  await database.drop()
})

const actor: Actor = { kind: 'commandLine', id: 'anna', address: 'office' }
const entityId = '5a11d0000000000000000000000000e1'
const entry = (number: number): AuditEntry => ({
  actor,
  action: 'tokenRevoked',
  entityId,
  subject: `token ${number}`,
  details: { number },
})
const add = (...entries: AuditEntry[]) => inTransaction(pool, db => record(db, recorder, entries))
const all = async () => (await listAudit(pool, testKeys, {}, 1_000_000)).rows
const found = async (expected?: string) => (await verify(pool, testKeys, expected)).findings

/** What the owner of the tables can do who gives himself the rights. */
const tamper = (statement: string) =>
  inTransaction(pool, async db => {
    // In the order of whoever writes: of two who wait for each other one is thrown out.
    await db.query('lock table audit_head in access exclusive mode; lock table audit in access exclusive mode')
    await db.query('grant update, delete, truncate on audit, audit_head to current_user')
    await db.query('alter table audit disable trigger audit_grows; alter table audit_head disable trigger audit_head_stays')
    await db.query(statement)
    await db.query(
      'alter table audit enable always trigger audit_grows; alter table audit_head enable always trigger audit_head_stays',
    )
    await db.query(
      'revoke update, delete, truncate on audit from current_user; revoke delete, truncate on audit_head from current_user',
    )
  })

/** As in a new installation. */
const anew = async () => {
  await tamper('delete from audit; delete from audit_head; insert into audit_head (sequence) values (0)')
  await beginAudit(pool, testKeys)
}

beforeEach(async () => {
  await anew()
  await tamper('delete from log_in_failures')
  await add(entry(1), entry(2))
  await add(entry(3), entry(4), entry(5))
})

describe('the table', () => {
  it('keeps who, what, for whom, from where and how it ended', async () => {
    const [row] = await all()
    const { hash, ...kept } = row!
    assert.deepEqual(kept, {
      sequence: 1,
      recordedAt: now,
      actorKind: 'commandLine',
      actor: 'anna',
      address: 'office',
      action: 'tokenRevoked',
      entityId,
      subject: 'token 1',
      result: 'done',
      details: '{"number":1}',
    })
    assert.equal(hash.length, 32)
  })

  it('refuses to change or forget a row, even for its owner', async () => {
    for (const statement of [
      `update audit set actor = 'somebody else' where sequence = 2`,
      'delete from audit where sequence = 2',
      'truncate audit',
      'delete from audit_head',
      'truncate audit_head',
    ]) {
      await assert.rejects(pool.query(statement), /never changed or taken out|permission denied/, statement)
    }
    await inTransaction(pool, async db => {
      await db.query('set local session_replication_role = replica') // triggers that are not "always" rest then
      await assert.rejects(db.query('delete from audit'), /never changed|permission denied/)
    }).catch(() => {})
    assert.equal((await all()).length, 5)
    assert.deepEqual(await found(), [])
  })

  it('gives a role that only owns it no right to change a row', async t => {
    const { rows } = await pool.query<{ superuser: boolean; rights: string[] }>(
      `select (select rolsuper from pg_roles where rolname = current_user) as superuser,
              array(select right_name from unnest(array['update', 'delete', 'truncate', 'insert']) right_name
                     where has_table_privilege('audit', right_name)) as rights`,
    )
    if (rows[0]!.superuser) return t.skip('this server has a superuser alone')
    assert.deepEqual(rows[0]!.rights, ['insert'])
  })
  it('has no gap after a transaction that failed, and tells nothing of it', async () => {
    await assert.rejects(
      inTransaction(pool, async db => {
        await record(db, recorder, [entry(6)])
        throw new Error('what was to be told of did not happen')
      }),
    )
    await add(entry(7))
    assert.deepEqual((await all()).map(({ sequence, subject }) => `${sequence} ${subject}`).slice(-2), ['5 token 5', '6 token 7'])
    assert.deepEqual(await found(), [])
  })

  it('writers at the same time stand in a row', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, at) => add(entry(100 + at), entry(200 + at))))
    const rows = await all()
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      rows.map((_, at) => at + 1),
    )
    assert.equal(rows.length, 125)
    assert.deepEqual(await found(), [])
  })

  it('holds a bounded row, however much there is to tell', async () => {
    await add({
      actor: { ...actor, id: 'x'.repeat(10_000) },
      action: 'entityChanged',
      details: { settings: 'y'.repeat(100_000) },
    })
    const row = (await all()).at(-1)!
    assert.equal(row.actor.length, 255)
    const { settings } = JSON.parse(row.details)
    assert.equal(
      settings,
      `${'y'.repeat(64)}… (100000 characters, SHA-256 ${createHash('sha256').update('y'.repeat(100_000)).digest('hex').slice(0, 32)})`,
    )
    assert.deepEqual(await found(), [])
  })

  it('hides nothing behind something longer: a value is told by its beginning, its length and its hash, and what needs more rows has them', async () => {
    const told = async (details: Readonly<Record<string, unknown>>) => {
      const before = (await all()).length
      await add({ actor, action: 'entityChanged', details })
      assert.deepEqual(await found(), [])
      const texts = (await all()).slice(before).map(row => row.details)
      for (const text of texts) assert.ok(text.length <= 4000, `${text.length}`)
      return texts.map(text => JSON.parse(text))
    }
    const bankAccount = [{ number: 'DE00' }, { number: 'DE11' }]
    const [one, ...more] = await told({ shopLogo: [null, 'z'.repeat(60_000)], bankAccount })
    assert.deepEqual([one.bankAccount, more], [bankAccount, []])
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`s${at}`, ['a'.repeat(100), 'b'.repeat(100)]]))
    const rows = await told({ kind: 'channel', settings: { ...many, bankAccount }, last: 1 })
    assert.deepEqual(
      rows.map(({ part }) => part),
      rows.map((_, at) => `${at + 1} of ${rows.length}`),
    )
    assert.deepEqual(Object.assign({}, ...rows.map(({ settings }) => settings)), { ...many, bankAccount })
    assert.deepEqual([rows[0].kind, rows.at(-1).last], ['channel', 1])
    const list = Array.from({ length: 2000 }, (_, at) => `item ${at}`)
    const [long] = await told({ list, bankAccount })
    assert.deepEqual([long.bankAccount, long.list.begins.slice(0, 10)], [bankAccount, '["item 0",'])
    assert.match(long.list.tooLong, new RegExp(`^\\(${JSON.stringify(list).length} characters, SHA-256 [0-9a-f]{32}\\)$`))
    const [card] = await told({ reason: `${'x'.repeat(55)} 4111 1111 1111 1111 ${'x'.repeat(300)}` })
    assert.ok(card.reason.includes('411111…1111'), card.reason)
    const endless = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`s${at}`, 'a'.repeat(200)]))
    const [only, ...none] = await told(endless)
    assert.deepEqual([none, only.begins.slice(0, 5)], [[], '{"s0"'])
    assert.match(only.names.begins, /^\["s0","s1"/)
  })
})

const forged = (sequence: number) => `insert into audit
  select ${sequence}, recorded_at, actor_kind, 'somebody else', address, action, entity_id, subject, result, details, hash from audit where sequence = 5`

describe('what was tampered with stays so, whatever is written afterwards', () => {
  const cases: Record<string, [statement: string, next: number, ...findings: RegExp[]]> = {
    'the last rows cut off and the head set back': [
      'delete from audit where sequence > 3; update audit_head set sequence = 3',
      4,
      /^Row 4 tells that the end after row 3 was not the one/,
    ],
    'all rows gone and the head as in the beginning': [
      'delete from audit; update audit_head set sequence = 0, proof = null',
      1,
      /^Row 1 tells that the end after row 0 was not the one/,
    ],
    'all rows gone and the head left': [
      'delete from audit',
      6,
      /^Rows 1 to 5 are missing\.$/,
      /^Row 6 tells that the end after row 5/,
    ],
    'no head': ['delete from audit_head', 6, /^Row 6 tells that the end after row 0/],
    'a row in the place of the next': [forged(6), 7, /^Row 6 is not as it was written/, /^Row 7 tells that the end after row 5/],
    'a row far away': [
      forged(900),
      901,
      /^Rows 6 to 899 are missing\.$/,
      /^Row 900 is not/,
      /^Row 901 tells that the end after row 5/,
    ],
  }
  for (const [name, [statement, next, ...findings]] of Object.entries(cases)) {
    it(name, async () => {
      await tamper(statement)
      await add(entry(6))
      const rows = (await all()).filter(({ sequence }) => sequence >= next)
      assert.deepEqual(
        rows.map(({ sequence, action, actorKind }) => [sequence, action, actorKind]),
        [
          [next, 'tamperingFound', 'gateway'],
          [next + 1, 'tokenRevoked', 'commandLine'],
        ],
      )
      await add(entry(7))
      const seen = await found()
      for (const finding of findings)
        assert.ok(
          seen.some(one => finding.test(one)),
          `${finding} is not among\n${seen.join('\n')}`,
        )
    })
  }
})

it('an audit in which nothing was written is whole only as this installation began it', async () => {
  await anew()
  assert.deepEqual(await found(), [])
  assert.equal((await verify(pool, makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 9)))).findings.length, 1)
  await add(entry(1))
  assert.deepEqual(await found(), [])
})

describe('verify finds', () => {
  const swap = `update audit set sequence = -sequence where false; alter table audit drop constraint audit_sequence_check;
    update audit set sequence = -3 where sequence = 3; update audit set sequence = 3 where sequence = 4; update audit set sequence = 4 where sequence = -3;
    alter table audit add check (sequence > 0)`
  const cases: Record<string, [statement: string, ...findings: string[]]> = {
    'another actor': [`update audit set actor = 'bert' where sequence = 2`, 'Row 2 is not as it was written, or not where.'],
    'another time': [
      `update audit set recorded_at = recorded_at + interval '1 millisecond' where sequence = 2`,
      'Row 2 is not as it was written, or not where.',
    ],
    'a time below what is written': [
      `update audit set recorded_at = recorded_at + interval '1 microsecond' where sequence = 2`,
      'Row 2 is not as it was written, or not where.',
    ],
    'other details': [`update audit set details = '{}' where sequence = 5`, 'Row 5 is not as it was written, or not where.'],
    'a row that is gone': [
      'delete from audit where sequence = 3',
      'Rows 3 to 3 are missing.',
      'Row 4 is not as it was written, or not where.',
    ],
    'the first rows gone': [
      'delete from audit where sequence <= 2',
      'Rows 1 to 2 are missing.',
      'Row 3 is not as it was written, or not where.',
    ],
    'rows in another order': [
      swap,
      'Row 3 is not as it was written, or not where.',
      'Row 4 is not as it was written, or not where.',
      'Row 5 is not as it was written, or not where.',
    ],
    'the last rows cut off': ['delete from audit where sequence > 3', 'Rows 4 to 5 are missing at the end.'],
    'the last rows cut off and the head set back': [
      `delete from audit where sequence > 3; update audit_head set sequence = 3, proof = (select hash from audit where sequence = 3)`,
      'The head of the chain was not written by this installation.',
    ],
    'all rows gone': ['delete from audit', 'Rows 1 to 5 are missing at the end.'],
    'all rows gone and the head as in the beginning': [
      'delete from audit; update audit_head set sequence = 0, proof = null',
      'The head of the chain was not written by this installation.',
    ],
    'a row beyond the end': [forged(900), '1 rows stand beyond the end, from 900 on: this installation did not write them.'],
    'no head': ['delete from audit_head', 'The head of the chain is gone.'],
  }
  for (const [name, [statement, ...findings]] of Object.entries(cases)) {
    it(name, async () => {
      await tamper(statement)
      assert.deepEqual(await found(), findings)
      await tamper('insert into audit_head (sequence) values (0) on conflict do nothing')
    })
  }

  it('is told where all of it is under a lookup key that was retired: whoever has that could have written it', async () => {
    const seal = Buffer.alloc(32, 1)
    const [old, newer] = [makeKeys([seal], Buffer.alloc(32, 8)), makeKeys([seal], Buffer.alloc(32, 9))]
    const ours = { ...newer, retired: old.lookup }
    await tamper('delete from audit; delete from audit_head; insert into audit_head (sequence) values (0)')
    await beginAudit(pool, old)
    const write = (keys: Keys) => inTransaction(pool, db => record(db, { ...recorder, keys }, [entry(1), entry(2)]))
    const findings = async () => (await verify(pool, ours)).findings
    await write(old)
    assert.match((await findings()).join(), /^The head of the chain is under a lookup key that was retired/)
    await write({ ...newer, lookup: [...newer.lookup, ...old.lookup] })
    assert.deepEqual(await findings(), [], 'rows from before stay under it')
    assert.equal((await verify(pool, newer)).findings.length, 2)
    await write(makeKeys([seal], Buffer.alloc(32, 7)))
    assert.match((await findings()).join(), /The head of the chain was not written by this installation/)
  })

  it('a chain that was written anew with another key', async () => {
    await tamper('delete from audit; update audit_head set sequence = 0, proof = null')
    const forger = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 9))
    await inTransaction(pool, db => record(db, { ...recorder, keys: forger }, [entry(1), entry(2)]))
    assert.equal((await found()).length, 4)
  })

  it('a chain that was set back as a whole, by a head that was noted before', async () => {
    const { head } = await verify(pool, testKeys)
    await add(entry(6))
    assert.deepEqual(await found(head), [])
    const { head: newer } = await verify(pool, testKeys)
    // A backup of before brings rows and head that fit each other.
    await anew()
    await add(...[1, 2, 3, 4, 5].map(entry))
    assert.deepEqual(await found(), [])
    assert.deepEqual(await found(newer), [`The chain does not hold ${newer}.`])
  })
})

describe('log-ins that failed', () => {
  /** However slow the machine is, nobody's patience with the database ends. */
  const patient = { ...systemClock, elapsed: () => 0 }
  const fail = async (attempts: readonly { address: string; credential: string }[]) => {
    const failures = limitFailures(pool, { keys: testKeys, clock: patient }, error => assert.fail(error))
    for (let at = 0; at < attempts.length; at += 100)
      await Promise.all(attempts.slice(at, at + 100).map(attempt => failures.count(attempt, now)))
  }
  /** One look of a process, as it has one every five seconds. */
  const lookOf = (failures: ReturnType<typeof limitFailures>, onError: (error: Error) => void) => async () => {
    let look = () => {}
    const every: Clock['every'] = (_, act) => {
      look = act
      return { cancel() {}, unref: assert.fail }
    }
    const telling = startTelling(pool, failures, { ...recorder, clock: { ...recorder.clock, every } }, onError)
    look()
    await telling.stop()
  }
  const told = async () =>
    (await listAudit(pool, testKeys, { action: 'logInFailed' }, 10_000)).rows.map(row => ({
      ...row,
      details: JSON.parse(row.details),
    }))

  it('leave a place to the next from there that a failing database did not keep, who waits no more than the first', async () => {
    const moment = Date.now()
    let errors = 0
    const failures = limitFailures(pool, { keys: testKeys, clock: patient }, () => errors++)
    const [token, user] = ['9'.repeat(32), 'c'.repeat(16)]
    const waits = (address: string) =>
      failures.mustWait(token, address, () => ({ address, credential: 'd'.repeat(16), user }), moment)
    await pool.query('alter table known_places rename to elsewhere')
    assert.equal(waits('192.0.2.7'), false)
    await eventually(async () => errors === 1, 'it was not kept')
    await pool.query('alter table elsewhere rename to known_places')
    for (let at = 0; at < 70; at++) await failures.count({ address: `198.51.100.${at}`, credential: `${at}`, user }, moment)
    assert.deepEqual(['192.0.2.7', '192.0.2.8'].map(waits), [false, true])
    const kept = () => pool.query('select 1 from known_places where token_id = $1', [token])
    await eventually(async () => (await kept()).rowCount === 1, 'it is kept')
    await pool.query('delete from log_in_failures; delete from known_places')
  })

  it('of others shut out no password where it came from before: at any process, and after any start', async () => {
    const moment = Date.now() // places are kept by the time of the machine
    const limits = () => limitFailures(pool, { keys: testKeys, clock: patient }, error => assert.fail(error))
    const [token, user] = ['b'.repeat(32), 'c'.repeat(16)]
    const waits = (at: ReturnType<typeof limits>, address: string) =>
      at.mustWait(token, address, () => ({ address, credential: 'd'.repeat(16), user }), moment)
    const stored = async (since = 0) =>
      (await pool.query('select 1 from known_places where seen_at >= $1', [new Date(since)])).rowCount
    const [one, other] = [limits(), limits()]
    for (const address of ['192.0.2.7', '2001:db8:1:2::7']) assert.equal(waits(one, address), false)
    await eventually(async () => (await stored()) === 2, 'it is kept')
    for (let at = 0; at < 70; at++)
      for (const each of [one, other])
        await each.count({ address: `198.51.100.${at}`, credential: `${at}`.padEnd(16, 'e'), user }, moment)
    assert.equal(waits(one, '192.0.2.7'), false)
    assert.equal(waits(other, '192.0.2.7'), true, 'it has not heard of it')
    await other.learn(moment)
    for (const address of ['192.0.2.7', '2001:db8:1:2::8']) assert.equal(waits(other, address), false)
    for (const address of ['192.0.2.8', '2001:db8:1:3::7']) assert.equal(waits(other, address), true)
    assert.equal(
      other.mustWait('a'.repeat(32), '192.0.2.7', () => ({ address: '192.0.2.7', credential: 'd'.repeat(16), user }), moment),
      true,
    )
    const { rows } = await pool.query('select hash::text from known_places')
    for (const written of ['192.0.2.7', Buffer.from('192.0.2.7').toString('hex')])
      assert.ok(!JSON.stringify(rows).includes(written))
    // What came later than the first look is found by the next, and nothing is written twice.
    assert.equal(waits(limits(), '192.0.2.9'), false)
    await eventually(async () => (await stored()) === 3, 'it is kept')
    assert.equal(waits(limits(), '192.0.2.9'), false)
    await other.learn(moment)
    assert.equal(waits(other, '192.0.2.9'), false)
    // Another token of the same network has a place of its own.
    const neighbour = (at: ReturnType<typeof limits>) =>
      at.mustWait('a'.repeat(32), '192.0.2.9', () => ({ address: '192.0.2.9', credential: 'd'.repeat(16), user }), moment)
    assert.equal(neighbour(limits()), false)
    await eventually(async () => (await stored()) === 4, 'it is kept beside the other')
    await other.learn(moment)
    assert.equal(neighbour(other), false)
    // Who comes with a password of his own from many networks pushes out nobody else's.
    const stranger = limits()
    const comeFrom = (first: number, end: number) => {
      for (let at = first; at < end; at++)
        stranger.mustWait('f'.repeat(32), `2001:db8:9:${at.toString(16)}::1`, () => ({ address: '', credential: '' }), moment)
    }
    const knowsOthers = async () => {
      const fresh = limits()
      await fresh.learn(moment)
      await fresh.count({ address: '198.51.100.1', credential: 'e'.repeat(16), user }, moment)
      const known = ['192.0.2.7', '2001:db8:1:2::8', '192.0.2.9', '192.0.2.8'].map(address => waits(fresh, address))
      assert.deepEqual(known, [false, false, false, true])
    }
    comeFrom(0, 500)
    await eventually(async () => (await stored()) === 4 + 500, 'as many as one token may have are kept')
    await knowsOthers()
    // And fills no table: the places of one moment beyond the newest go together.
    const again = Date.now()
    comeFrom(500, 700)
    await eventually(async () => (await stored(again))! >= 200 && (await stored())! <= 4 + 500, 'its newest are kept')
    await knowsOthers()
    await pool.query('delete from log_in_failures; delete from known_places')
  })

  it('of others push out nothing that is used up, and what is used up at one process is so at all', async () => {
    const moment = Date.now()
    const limits = () => limitFailures(pool, { keys: testKeys, clock: patient }, error => assert.fail(error))
    const [one, other] = [limits(), limits()]
    const [token, user] = ['7'.repeat(32), 'c'.repeat(16)]
    const waits = (at: ReturnType<typeof limits>, address: string, of = user) =>
      at.mustWait(token, address, () => ({ address, credential: 'd'.repeat(16), user: of }), moment)
    for (let at = 0; at < 60; at++) await one.count({ address: `198.51.100.${at}`, credential: `${at}`, user }, moment)
    for (let at = 0; at < 59; at++) await one.count({ address: `198.51.100.${at}`, credential: `${at}`, user: 'almost' }, moment)
    assert.deepEqual([waits(one, '192.0.2.1'), waits(other, '192.0.2.2')], [true, false], 'the other has not heard of it')
    await other.learnUsedUp(moment)
    assert.deepEqual([waits(other, '192.0.2.3'), waits(other, '192.0.2.4', 'almost')], [true, false])
    // Of an address that is used up nothing is written, and these are many.
    const flood = (at: number) => one.count({ address: '203.0.113.9', credential: `f${at}`, user: `f${at}` }, moment)
    for (let at = 0; at < 60_000; at += 500) await Promise.all(Array.from({ length: 500 }, (_, more) => flood(at + more)))
    assert.equal(waits(one, '192.0.2.5'), true)
    // Nor does anybody who may write to the table shut out a user.
    await pool.query(`update log_in_failures set proof = '\\x00' where kind = 'user'`)
    const third = limits()
    await third.learnUsedUp(moment)
    assert.equal(waits(third, '192.0.2.6'), false)
    await pool.query('delete from log_in_failures; delete from known_places')
  })

  it('that cannot be told of keep no process from learning where passwords come from', async () => {
    const moment = Date.now()
    const limits = () => limitFailures(pool, { keys: testKeys, clock: patient }, error => assert.fail(error))
    const [one, other] = [limits(), limits()]
    const [token, user, address] = ['8'.repeat(32), 'c'.repeat(16), '192.0.2.7']
    const waits = (at: ReturnType<typeof limits>) =>
      at.mustWait(token, address, () => ({ address, credential: 'd'.repeat(16), user }), moment)
    for (let at = 0; at < 70; at++)
      await other.count({ address: `198.51.100.${at}`, credential: `${at}`.padEnd(16, 'e'), user }, moment)
    assert.equal(waits(one), false)
    const kept = () => pool.query('select 1 from known_places where token_id = $1', [token])
    await eventually(async () => (await kept()).rowCount === 1, 'it is kept')
    assert.equal(waits(other), true)
    const failed: string[] = []
    const look = lookOf(other, error => failed.push(error.message))
    await pool.query('alter table log_in_failures rename to elsewhere')
    await look()
    await pool.query('alter table elsewhere rename to log_in_failures')
    assert.deepEqual(failed, Array(2).fill('relation "log_in_failures" does not exist'))
    assert.equal(waits(other), false)
    await pool.query('delete from log_in_failures; delete from known_places')
  })

  it('let no right guess in from where a minute is used up, nor when that of everybody is: not where the password came before', async () => {
    const moment = Date.now()
    const at = limitFailures(pool, { keys: testKeys, clock: patient }, error => assert.fail(error))
    const [token, user] = ['b'.repeat(32), 'c'.repeat(16)]
    const waits = (address: string) => at.mustWait(token, address, () => ({ address, credential: 'd'.repeat(16), user }), moment)
    const fail = async (address: string, count: number) => {
      for (let each = 0; each < count; each += 100)
        await Promise.all(
          Array.from({ length: 100 }, (_, more) =>
            at.count({ address, credential: (each + more).toString(16).padStart(16, 'e') }, moment),
          ),
        )
    }
    assert.equal(waits('192.0.2.7'), false)
    await fail('192.0.2.8', 300)
    assert.deepEqual(['192.0.2.7', '192.0.2.8', '192.0.2.9'].map(waits), [false, true, false])
    // One network has used up its own alone, however much comes from there.
    await fail('192.0.2.8', 15_000)
    assert.equal(waits('192.0.2.10'), false)
    assert.equal((await pool.query(`select failures from log_in_failures where kind = 'all'`)).rows[0].failures, 300)
    for (let network = 0; network < 39; network++) await fail(`198.51.100.${network}`, 300)
    assert.deepEqual(['192.0.2.7', '192.0.2.10', '192.0.2.11'].map(waits), [false, false, true])
    await pool.query('delete from log_in_failures; delete from known_places')
  })

  it('are told once when their minute is over, with address, credential and count', async () => {
    const token = 'a'.repeat(32)
    await fail([
      ...Array(7).fill({ address: '192.0.2.1', credential: '0123456789abcdef' }),
      ...Array(2).fill({ address: '192.0.2.2', credential: token }),
    ])
    await tellFailures(pool, recorder)
    assert.deepEqual(await told(), [])
    now += 60_000
    await Promise.all([1, 2, 3].map(() => tellFailures(pool, recorder))) // of several processes one tells
    const minute = new Date(now - 60_000).toISOString()
    assert.deepEqual(
      (await told()).map(({ actorKind, actor, address, result, details }) => [actorKind, actor, address, result, details]),
      [
        ['stranger', '0123456789abcdef', '192.0.2.1', 'refused', { minute, failures: 7 }],
        ['token', token, '192.0.2.2', 'refused', { minute, failures: 2 }],
      ],
    )
    assert.deepEqual(await found(), [])
    assert.equal((await pool.query('select 1 from log_in_failures')).rowCount, 0)
  })

  it('that the database alone tells of are nobody’s', async () => {
    const token = 'b'.repeat(32)
    await pool.query(`insert into log_in_failures values ($1, 'credential', $2, 9999, '\\x00')`, [
      new Date(now),
      `192.0.2.3 ${token}`,
    ])
    await fail([{ address: '192.0.2.4', credential: '0123456789abcdef' }])
    now += 60_000
    await tellFailures(pool, recorder)
    const { rows } = await pool.query('select actor from audit where actor = $1 or details like $2', [token, '%9999%'])
    assert.deepEqual(rows, [])
    assert.deepEqual(
      (await told()).map(({ address }) => address),
      ['192.0.2.4'],
    )
    assert.match((await found()).join(), /^Row 7 tells that 1 failed attempts were not counted by this installation\.$/)
  })

  it('are limited by what the process counted itself while the database is away', async () => {
    const away = testPool({ host: '127.0.0.1', port: 1 }, 1)
    let errors = 0
    const failures = limitFailures(away, { keys: testKeys, clock: systemClock }, () => errors++)
    const attempt = { address: '192.0.2.9', credential: '0123456789abcdef' }
    const tooMany = await Promise.all(Array.from({ length: 32 }, () => failures.count(attempt, now)))
    assert.equal(tooMany.indexOf(true), 30)
    assert.equal(errors, 32)
    await away.end()
  })

  it('that the database does not take in time are told of when it does, of their own minute', async () => {
    let errors = 0
    const failures = limitFailures(pool, { keys: testKeys, clock: patient }, () => errors++)
    const attempt = { address: '192.0.2.9', credential: '0123456789abcdef' }
    const sixTimes = () => Promise.all(Array.from({ length: 6 }, () => failures.count(attempt, now)))
    await pool.query('alter table log_in_failures rename to elsewhere')
    await sixTimes()
    await assert.rejects(failures.writeLate(), 'it is kept for as long as need be')
    await pool.query('alter table elsewhere rename to log_in_failures')
    assert.equal(errors, 6)
    const minute = new Date(now - (now % 60_000)).toISOString()
    now += 60_000
    await sixTimes()
    // What is written at the stop is not written by the look.
    let late = 0
    await lookOf({ ...failures, writeLate: () => (late++ === 0 ? failures.writeLate() : Promise.resolve()) }, assert.ifError)()
    assert.equal(late, 2)
    const written = 'select from log_in_failures where minute = $1 union all select from audit where details like $2'
    assert.ok((await pool.query(written, [minute, `%${minute}%`])).rowCount! > 0, 'a look some seconds later writes it')
    await failures.writeLate() // nothing a second time
    now += 60_000
    await tellFailures(pool, recorder)
    assert.deepEqual(
      (await told()).map(({ actor, address, details }) => [actor, address, details]),
      [minute, new Date(Date.parse(minute) + 60_000).toISOString()].map(minute => [
        '0123456789abcdef',
        '192.0.2.9',
        { minute, failures: 6 },
      ]),
    )
  })

  it('that the database does not take fill no memory: beyond an end the rest of a minute is one sum', async () => {
    let elapsed = 0
    let errors = 0
    const failures = limitFailures(pool, { keys: testKeys, clock: { ...systemClock, elapsed: () => elapsed } }, () => errors++)
    const holder = await pool.connect()
    await holder.query('begin; lock table log_in_failures in access exclusive mode')
    // Six counts each, but that of everybody is one.
    const counting = Array.from({ length: 2200 }, (_, at) => {
      const mark = at.toString(16).padStart(4, '0')
      const [credential, user] = [mark.padStart(16, 'c'), mark.padStart(16, 'd')]
      return failures.count({ address: `2001:db8:${mark}::1`, credential, user }, now)
    })
    await untilWaiting(pool, 'log_in_failures')
    elapsed = 3000
    await holder.query('commit')
    holder.release()
    await Promise.all(counting)
    await Promise.all([failures.writeLate(), failures.writeLate()]) // each is written by one of them
    // The first hundred and twenty-eight stood there when the database came back; nobody had the patience for the others.
    const batch = 128
    assert.equal(errors, 2200 - batch)
    const kept = await pool.query<{ count: number; failures: number }>(
      `select count(*)::int as count, (sum(failures) filter (where kind = 'credential'))::int as failures from log_in_failures`,
    )
    assert.deepEqual(kept.rows, [{ count: batch * 5 + 10_001, failures: 2200 }])
    now += 60_000
    await tellFailures(pool, recorder)
    const all = (await told()).map(({ actor, details }) => [actor, details.failures as number] as const)
    assert.equal(all.length, 21)
    assert.equal(
      all.reduce((sum, [, failures]) => sum + failures, 0),
      2200,
    )
  })

  it('of thousands of addresses and credentials fill neither table: twenty rows and a sum', async () => {
    const attempts = Array.from({ length: 14_000 }, (_, at) => ({
      address: `198.51.${at % 250}.${at % 200}`,
      credential: at.toString(16).padStart(16, '0'),
    }))
    await fail(attempts)
    const { rows } = await pool.query<{ count: number; most: number }>(
      'select count(*), max(failures) as most from log_in_failures',
    )
    assert.ok(rows[0]!.count <= 3 * 12_000 + 1, `${rows[0]!.count} rows`)
    now += 60_000
    await tellFailures(pool, recorder)
    const rowsTold = await told()
    assert.equal(rowsTold.length, 21)
    const { actor, details } = rowsTold.at(-1)!
    assert.equal(actor, 'several')
    assert.deepEqual([details.failures + 20, details.more], [12_000, true])
  })
})

describe('a trigger, a rule or another table in its place', () => {
  const strangers = (...made: string[]) => made.map(one => `In the database, ${one}.`)
  const trigger = (name: string, when: string, body: string, table = 'audit') =>
    `create function ${name}() returns trigger language plpgsql as $$ begin ${body} end $$;
     create trigger ${name} ${when} on ${table} for each row execute function ${name}()`
  const swallow = trigger(
    'swallow',
    'before insert',
    `if new.action = 'tokenMade' then perform set_config('swallowed.row', 'yes', true); return null; end if; return new;`,
  )
  const keepHead = trigger(
    'keep_head',
    'before update',
    `if current_setting('swallowed.row', true) = 'yes' then return null; end if; return new;`,
    'audit_head',
  )
  const byTrigger = (name: string, table = 'audit') => `the trigger ${name} of ${table} was not made by Tollgate`
  const byFunction = (name: string) => `the function ${name}() was not made by Tollgate`
  const rests = 'the trigger audit_grows of audit is not as Tollgate made it'
  const secret: AuditEntry = { ...entry(6), action: 'tokenMade' }
  const clean = async () => {
    await pool.query(`drop function if exists swallow, keep_head, change_row, take_out, turn_head cascade`)
    await pool.query('drop rule if exists instead on audit; drop policy if exists hide on audit')
  }
  beforeEach(clean)
  after(clean)

  const cases: Record<string, [made: string, ...findings: string[]]> = {
    'a row and its move of the head swallowed': [
      `${swallow};${keepHead}`,
      byFunction('keep_head'),
      byFunction('swallow'),
      byTrigger('keep_head', 'audit_head'),
      byTrigger('swallow'),
    ],
    'a row swallowed': [swallow, byFunction('swallow'), byTrigger('swallow')],
    'a row changed': [
      trigger('change_row', 'before insert', `new.actor := 'somebody else'; return new;`),
      byFunction('change_row'),
      byTrigger('change_row'),
    ],
    'a row taken out behind the insert': [
      `alter table audit disable trigger audit_grows; grant delete on audit to current_user;
       ${trigger('take_out', 'after insert', 'delete from audit where sequence = new.sequence; return null;')}`,
      byFunction('take_out'),
      'the owner may change rows of audit or take them out',
      rests,
      byTrigger('take_out'),
    ],
    'another head': [
      trigger('turn_head', 'before update', 'new.sequence := old.sequence; return new;', 'audit_head'),
      byFunction('turn_head'),
      byTrigger('turn_head', 'audit_head'),
    ],
    'nothing, by a rule': [
      'create rule instead as on insert to audit do instead nothing',
      'the rule instead of audit was not made by Tollgate',
    ],
  }
  for (const [what, [made, ...findings]] of Object.entries(cases))
    it(`${what}: nothing is done, and verify names it`, async () => {
      await pool.query(made)
      await assert.rejects(add(secret), /did not keep the audit as it was written/)
      assert.deepEqual(await found(), strangers(...findings))
      await tamper('select 1') // the triggers of ours stand again
      await clean()
      assert.deepEqual(await found(), [])
      assert.equal((await all()).length, 5)
    })

  it('what it lets pass is written, and tells of it for ever', async () => {
    await pool.query(`${swallow};${keepHead}`)
    await add(entry(6))
    await clean()
    assert.deepEqual(await found(), [
      `Row 6 tells that ${byTrigger('keep_head', 'audit_head')}.`,
      `Row 7 tells that ${byTrigger('swallow')}.`,
    ])
  })

  const staff = `insert into staff (id, name, role, entities, made_at) values (gen_random_uuid(), 'eve', 'admin', array[gen_random_uuid()], now())`
  /** Somebody is added, and told of, by the connections of a gateway: what was told, and how it went. */
  const addStaff = async () => {
    const { work, close } = connect(database.connection, systemClock, () => {})
    try {
      await inTransaction(work, async db => {
        await db.query(staff)
        await record(db, recorder, [entry(7)])
      })
    } finally {
      await close()
    }
  }

  it('a temporary table takes no row that the other one should have', async () => {
    const hide = trigger(
      'hide',
      'before insert',
      `create temp table audit (like public.audit including defaults) on commit drop;
       create temp table audit_head (like public.audit_head including defaults) on commit drop;
       insert into pg_temp.audit select * from public.audit; insert into pg_temp.audit_head select * from public.audit_head;
       create trigger audit_grows before update or delete or truncate on pg_temp.audit for each statement execute function public.refuse_change();
       alter table pg_temp.audit enable always trigger audit_grows;
       create trigger audit_head_stays before delete or truncate on pg_temp.audit_head for each statement execute function public.refuse_change();
       alter table pg_temp.audit_head enable always trigger audit_head_stays; return new;`,
      'staff',
    )
    try {
      await pool.query(hide)
      const { length } = await all()
      await addStaff()
      assert.equal((await all()).length, length + 1, 'it stands where all read it')
      assert.deepEqual(await found(), strangers(byFunction('hide'), byTrigger('hide', 'staff')))
    } finally {
      await pool.query(`drop function if exists hide cascade; delete from staff`)
    }
    assert.deepEqual(await found(), [])
  })

  it('what undoes a row at the commit is named while it is there, and so is what it leaves behind', async () => {
    const made = await makeDatabase()
    const own = testPool(made.connection, 10)
    const findings = async () => (await verify(own, testKeys)).findings
    try {
      await inTransaction(own, async db => {
        await beginAudit(db, testKeys)
        await record(db, recorder, [entry(1)])
      })
      const { rows: functions } = await own.query(`select pg_get_functiondef('refuse_change'::regproc) as text`)
      await own.query(`create or replace function refuse_change() returns trigger language plpgsql as $$ begin return null; end $$;
        create table kept as select * from audit_head;
        create function undo() returns trigger language plpgsql as $$ begin
          if tg_argv[0] = 'later' then set constraints undo deferred; insert into kept select * from audit_head; return null; end if;
          grant delete, update on audit to current_user;
          delete from audit where sequence > (select min(sequence) from kept);
          update audit_head set sequence = kept.sequence, proof = kept.proof from kept where kept.sequence = 1; return null; end $$;
        create constraint trigger later after insert on staff deferrable initially deferred for each row execute function undo('later');
        create constraint trigger undo after insert on kept deferrable initially deferred for each row execute function undo('now')`)
      await inTransaction(own, async db => {
        await db.query(staff)
        await record(db, recorder, [entry(2)])
      })
      const hollow = 'In the database, the function refuse_change() is not as Tollgate made it.'
      const open = 'In the database, the owner may change rows of audit or take them out.'
      assert.deepEqual(await findings(), [
        hollow,
        ...strangers(byFunction('undo')),
        open,
        ...strangers('the table kept was not made by Tollgate', byTrigger('later', 'staff')),
      ])
      await own.query('drop function undo cascade; drop table kept')
      assert.deepEqual(await findings(), [hollow, open])
      await own.query(`${functions[0].text}; revoke delete, update on audit from current_user`)
      await own.query('create rule more as on insert to staff do also delete from log_in_failures')
      assert.deepEqual(await findings(), ['In the database, the rule more of staff was not made by Tollgate.'])
      await own.query('drop rule more on staff; alter function refuse_change set search_path = public')
      assert.deepEqual(await findings(), [hollow])
    } finally {
      await own.end()
      await made.drop()
    }
  })

  it('a policy and a trigger of ours that rests are named', async () => {
    await pool.query('create policy hide on audit using (false); alter table audit disable trigger audit_grows')
    assert.deepEqual(await found(), strangers('the policy hide of audit was not made by Tollgate', rests))
    await pool.query('alter table audit enable trigger audit_grows') // as the trigger of a table that others may put to rest
    assert.ok((await found()).includes(strangers(rests)[0]!))
    await pool.query('drop trigger audit_grows on audit')
    assert.ok((await found()).includes('In the database, the trigger audit_grows of audit is gone.'))
    await pool.query(`create trigger audit_grows before update or delete or truncate on audit for each statement execute function refuse_change();
      alter table audit enable always trigger audit_grows; drop policy hide on audit`)
    assert.deepEqual(await found(), [])
  })

  it('a view in the place of the table shows other rows to nobody', async () => {
    const forge = `select sequence, recorded_at, actor_kind, case when sequence = 2 then 'forged' else actor end as actor, address, action, entity_id,
        subject, result, details, hash from true_audit where sequence <> 3`
    await pool.query('alter table audit rename to true_audit')
    try {
      // What verify asks is answered with the truth, whatever else with what suits the forger.
      await pool.query(`create view audit as
        select * from true_audit where current_query() ilike '%where sequence > $1 order by sequence limit $2%'
        union all select * from (${forge}) as forged where current_query() not ilike '%where sequence > $1 order by sequence limit $2%'`)
      const { rows, doubtful, findings } = await listAudit(pool, testKeys, { actor: 'anna' }, 100)
      assert.deepEqual([rows.map(({ sequence }) => sequence), doubtful.size], [[1, 2, 3, 4, 5], 0])
      assert.ok(findings.includes('In the database, the table audit is gone.'), findings.join('\n'))
      await pool.query(`create or replace view audit as ${forge}`)
      const deceived = await listAudit(pool, testKeys, {}, 100)
      assert.deepEqual([[...deceived.doubtful], deceived.rows.find(({ sequence }) => sequence === 2)!.actor], [[2, 4], 'forged'])
      assert.ok(deceived.findings.includes('Row 2 is not as it was written, or not where.'))
    } finally {
      await pool.query('drop view if exists audit; alter table true_audit rename to audit')
    }
    assert.deepEqual(await found(), [])
  })

  it('a table below it is named', async () => {
    await pool.query('create table more_audit () inherits (audit)')
    assert.deepEqual(
      await found(),
      strangers('the table below more_audit of audit was not made by Tollgate', 'the table more_audit was not made by Tollgate'),
    )
    await pool.query('drop table more_audit')
  })
})

describe('the list', () => {
  it('is of the newest rows that fit, and shows a time that is none', async () => {
    const numbers = async (filter: object, limit = 100) =>
      (await listAudit(pool, testKeys, filter, limit)).rows.map(({ sequence }) => sequence)
    now += 1000
    await add({ ...entry(6), actor: { ...actor, id: 'bert' } }, { ...entry(7), action: 'tokenMade', entityId: undefined })
    assert.deepEqual(await numbers({}, 3), [5, 6, 7])
    assert.deepEqual(await numbers({}, 0), [])
    assert.deepEqual(await numbers({ since: now }), [6, 7])
    assert.deepEqual(await numbers({ actor: 'bert' }), [6])
    assert.deepEqual(await numbers({ action: 'tokenMade' }), [7])
    assert.deepEqual(await numbers({ entities: [entityId] }, 2), [5, 6])
    await tamper(`update audit set recorded_at = 'infinity' where sequence = 6`)
    const { rows, doubtful } = await listAudit(pool, testKeys, { since: now }, 100)
    assert.deepEqual([rows.map(({ sequence }) => sequence), [...doubtful]], [[6, 7], [6]])
  })
})

it('holds no card number that somebody wrote, and every id as it is', async () => {
  const id = '4200000000000000'.padEnd(32, '0')
  const reason = 'card 4111 1111 1111 1111, cvv 123, card 5018 7643 3217'
  await add({ ...entry(1), details: { reason, names: ['4200000000000000.csv'], id } })
  const { rows } = await pool.query('select details from audit order by sequence desc limit 1')
  assert.deepEqual(JSON.parse(rows[0].details), {
    reason: 'card 411111…1111, cvv …, card …3217',
    names: ['420000…0000.csv'],
    id,
  })
})

describe('a page of it', () => {
  it('follows the newest rows alone, and the older ones page by page; what is forged there is named', async () => {
    const page = async (rows: number, before?: number) => {
      const { rows: found, doubtful, findings, first } = await listAudit(pool, testKeys, {}, 100, { rows, before })
      return { found: found.map(({ sequence }) => sequence), doubtful: [...doubtful], findings, first }
    }
    const whole = { doubtful: [], findings: [] }
    await add(...[1, 2, 3, 4, 5, 6, 7].map(entry))
    const { rows } = await listAudit(pool, testKeys, {}, 100)
    const all = rows.map(({ sequence }) => sequence)
    const last = all.at(-1)!
    assert.deepEqual(await page(3), { found: all.slice(-3), first: last - 2, ...whole })
    assert.deepEqual(await page(2, last - 2), { found: [last - 4, last - 3], first: last - 4, ...whole })
    assert.deepEqual(
      (await page(100, 3)).found,
      all.filter(one => one < 3),
    )
    await tamper(`update audit set actor = 'forged' where sequence = ${last - 1}`)
    const { doubtful, findings } = await page(3)
    assert.deepEqual([doubtful, findings], [[last - 1], [`Row ${last - 1} is not as it was written, or not where.`]])
    await tamper(`delete from audit where sequence = ${last}`)
    assert.ok((await page(3)).findings.includes(`Rows ${last} to ${last} are missing at the end.`))
  })
})

describe('the memory of a gateway', () => {
  const told: string[] = []
  const tell = ({ why, head }: LogFields, message: string) => void told.push(`${message}: ${why ?? head}`)
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell }
  beforeEach(() => void told.splice(0))

  it('knows better when rows and head of an earlier moment were put back', async () => {
    const kept = (await pool.query('select sequence, proof from audit_head')).rows[0]
    const look = auditWatch(pool, recorder, log)
    await look()
    await add(entry(6), entry(7))
    const { head } = await verify(pool, testKeys)
    await look()
    assert.deepEqual(told.at(-1), `the head of the audit: ${head}`)
    await look()
    assert.equal(told.length, 2) // nothing is new
    await tamper(
      `delete from audit where sequence > 5; update audit_head set sequence = ${kept.sequence}, proof = '\\x${kept.proof.toString('hex')}'`,
    )
    assert.deepEqual(await found(), []) // as before: they fit each other
    await look()
    const gone = 'row 7, which the gateway had seen, is gone or another one'
    assert.deepEqual(await found(), [`Row 6 tells that ${gone}.`])
    assert.ok(told.includes(`somebody has tampered with the audit: ${gone}`), told.join('\n'))
    told.splice(0)
    await look()
    assert.deepEqual(
      told.filter(line => line.includes('tampered')),
      [],
    )
  })

  it('knows a row by what it says, also when others were written after it', async () => {
    const kept = (await pool.query('select sequence, proof from audit_head')).rows[0]
    const look = auditWatch(pool, recorder, log)
    await add(entry(6))
    await look()
    await tamper(
      `delete from audit where sequence > 5; update audit_head set sequence = ${kept.sequence}, proof = '\\x${kept.proof.toString('hex')}'`,
    )
    await add(entry(60), entry(70))
    await look()
    assert.match((await found()).join(), /^Row 8 tells that row 6, which the gateway had seen, is gone or another one\.$/)
  })

  it('tells the log of a trigger that stands there', async () => {
    await pool.query(`create trigger more before update on audit_head for each statement execute function refuse_change()`)
    await auditWatch(pool, recorder, log)()
    await pool.query('drop trigger more on audit_head')
    assert.match(told.join('\n'), /tampered with the audit: the trigger more of audit_head was not made by Tollgate/)
  })
})

it('the command line names the machine and its user', () => {
  const { kind, id, address } = thisProcess('commandLine')
  assert.equal(kind, 'commandLine')
  assert.ok(id.length > 0 && address.length > 0)
})

it('whom the environment says to be behind a process stands after its user, bounded, as what it says', t => {
  const before = process.env.SUDO_USER
  t.after(() => {
    if (before === undefined) delete process.env.SUDO_USER
    else process.env.SUDO_USER = before
  })
  const user = userInfo().username
  delete process.env.SUDO_USER
  assert.equal(thisProcess('commandLine').id, user)
  for (const [claim, told] of [
    ['anna', 'anna'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), 'x'.repeat(64)],
    [`${'x'.repeat(300)} as ${user}`, 'x'.repeat(64)],
    ['paid 4200000000000000', 'paid 420000…0000'],
    [`${'x'.repeat(54)} 4200 0000 0000 0000`, `${'x'.repeat(54)} 420000…00`],
  ] as const) {
    process.env.SUDO_USER = claim
    assert.equal(thisProcess('commandLine').id, `${user} (SUDO_USER: ${told})`)
  }
})
