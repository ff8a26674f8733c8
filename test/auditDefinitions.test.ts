// What somebody with the rights of the gateway's role has put into the database is named by `audit verify` and by a gateway that looks, whatever it is: all that
// Tollgate did not make. What whoever runs an installation may add is not.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { beginAudit, record, verify } from '../src/audit/chain.ts'
import { readDefinitions } from '../src/audit/definitions/store.ts'
import { thisProcess } from '../src/audit/entry.ts'
import { auditWatch } from '../src/audit/watch.ts'
import { clockWith } from '../src/platform/clock.ts'
import { type Connection, inTransaction, makePool } from '../src/platform/database/connect.ts'
import type { Log, LogFields } from '../src/platform/log.ts'
import { makeDatabase, type TestDatabase } from './support/database.ts'
import { testKeys } from './support/gateway.ts'

const recorder = { keys: testKeys, clock: clockWith(() => Date.UTC(2030, 0, 31, 12)) }
let database: TestDatabase
let pool: pg.Pool

before(async () => {
  database = await makeDatabase()
  pool = makePool(database.connection, 4, () => {})
  await beginAudit(pool, testKeys)
})
after(async () => {
  await pool.end()
  await database.drop()
})

const add = (subject: string, by = pool) =>
  inTransaction(by, db =>
    record(db, recorder, [{ actor: thisProcess('commandLine'), action: 'tokenMade', subject, details: {} }]),
  )
const subjects = async (): Promise<string[]> =>
  (await pool.query('select subject from audit order by sequence')).rows.map(({ subject }) => subject)

/** What a command says, and what a gateway that looks tells its log. */
async function told(by = pool): Promise<{ verified: readonly string[]; watched: string[]; warned: string[] }> {
  const [watched, warned]: [string[], string[]] = [[], []]
  const quiet = () => {}
  const log: Log = {
    debug: quiet,
    info: quiet,
    warn: ({ why }: LogFields) => void warned.push(String(why)),
    error: ({ why }: LogFields) => void watched.push(String(why)),
  }
  await auditWatch(by, recorder, log)()
  const { findings } = await verify(by, testKeys)
  return { verified: findings, watched, warned }
}
const whole = { verified: [], watched: [], warned: [] }
const only = (...what: string[]) => ({ verified: what.map(one => `In the database, ${one}.`), watched: what, warned: [] })
const stranger = (what: string) => `the ${what} was not made by Tollgate`
const fenceOf = (id: string, table: string) =>
  `create trigger elsewhere_${id} before insert or update on ${table} for each row when (new.merchant_id = '${id}') execute function refuse_elsewhere('${id}')`
const changed = (what: string) => `the ${what} is not as Tollgate made it`

/** A function that takes the newest rows out as whoever may can, and leaves nothing else behind. Only in sessions that say so. */
async function undoing(): Promise<string> {
  const { rows } = await pool.query<{ text: string }>(`select pg_get_functiondef('refuse_change'::regproc) as text`)
  return `create table kept as select * from audit_head;
    create function takes_out() returns boolean language plpgsql as $undo$ begin
      if current_setting('test.acts', true) is distinct from 'yes' then return true; end if;
      grant update, delete on audit to current_user;
      create or replace function refuse_change() returns trigger language plpgsql as 'begin return null; end';
      delete from audit where sequence > (select sequence from kept);
      update audit_head set sequence = kept.sequence, proof = kept.proof from kept;
      ${rows[0]!.text};
      revoke update, delete on audit from current_user; return true; end $undo$`
}
const undone = 'drop function if exists takes_out cascade; drop table if exists kept cascade'

describe('what runs with a row of the audit', () => {
  it('a constraint that waits for the commit acts before the row is read again, and nothing is done', async () => {
    await add('first')
    await pool.query(`${await undoing()};
      create function act(bigint) returns bigint language plpgsql immutable as $$ begin
        if $1 = 1 then return 1; end if;
        if exists (select from public.audit_head where sequence >= $1) then perform public.takes_out(); return $1; end if; return 1; end $$;
      alter table audit add constraint audit_one exclude using btree (act(sequence) with =) deferrable initially deferred`)
    const acting = makePool({ ...database.connection, options: '-c test.acts=yes' }, 1, () => {})
    const strange = only(
      ...['constraint audit_one of audit', 'function act(bigint)', 'function takes_out()', 'table kept'].map(stranger),
    )
    try {
      assert.deepEqual(await told(), strange)
      await assert.rejects(add('second', acting), /did not keep the audit as it was written/)
      assert.deepEqual(await told(), strange)
    } finally {
      await acting.end()
      await pool.query(`alter table audit drop constraint if exists audit_one; drop function act; ${undone}`)
    }
    assert.deepEqual(await subjects(), ['first'])
    assert.deepEqual(await told(), whole)
  })

  it('a condition of its rows that undoes what is told of is named', async () => {
    await pool.query(`create function fits(text, text) returns boolean language plpgsql as $$ begin
        if $1 = 'tokenRevoked' then update access_tokens set revoked_at = null; end if; return true; end $$;
      alter table audit add constraint audit_fits check (fits(action, subject)) not valid`)
    try {
      assert.deepEqual(await told(), only(stranger('constraint audit_fits of audit'), stranger('function fits(text,text)')))
      await add('third')
    } finally {
      await pool.query('drop function fits cascade')
    }
    const { verified, ...others } = await told()
    assert.deepEqual(others, { watched: [], warned: [] })
    assert.match(verified.join('\n'), /^Row 2 tells that the constraint audit_fits of audit was not made by Tollgate\.$/)
  })
})

describe('what stands elsewhere in the database', () => {
  /** Each thing with what undoes it, and what is said of it. */
  const cases: Record<string, readonly [made: string, undoing: string, ...said: string[]]> = {
    'a view in the place of another table': [
      `alter table log_in_failures rename to true_failures; create view log_in_failures as select * from true_failures;
       create function instead() returns trigger language plpgsql as $$ begin return new; end $$;
       create trigger instead instead of insert on log_in_failures for each row execute function instead()`,
      'drop view log_in_failures; drop function instead; alter table true_failures rename to log_in_failures',
      stranger('function instead()'),
      'the table log_in_failures is gone',
      stranger('table true_failures'),
      stranger('view log_in_failures'),
    ],
    'a condition of another table': [
      'alter table staff add constraint staff_more check (length(name) > 0)',
      'alter table staff drop constraint staff_more',
      stranger('constraint staff_more of staff'),
    ],
    'row security of another table': [
      'alter table staff enable row level security; create policy hide on staff using (false)',
      'drop policy hide on staff; alter table staff disable row level security',
      stranger('policy hide of staff'),
      changed('table staff'),
    ],
    'a rule of another table': [
      'create rule more as on insert to staff do also delete from log_in_failures',
      'drop rule more on staff',
      stranger('rule more of staff'),
    ],
    'another value where none is given': [
      `alter table staff alter column name set default 'eve'`,
      'alter table staff alter column name drop default',
      changed('column name of staff'),
    ],
    'a fence that asks more than who is served': [
      `create trigger elsewhere_${'a'.repeat(32)} before insert on staff for each row when (new.name = 'eve') execute function refuse_elsewhere('x')`,
      `drop trigger elsewhere_${'a'.repeat(32)} on staff`,
      stranger(`trigger elsewhere_${'a'.repeat(32)} of staff`),
    ],
    'a fence around others than it says, or by another column': [
      `create trigger elsewhere_${'a'.repeat(32)} before insert on staff for each row when (new.id = '${'a'.repeat(32)}') execute function refuse_elsewhere('${'a'.repeat(32)}');
       create trigger elsewhere_${'b'.repeat(32)} before insert or update on payments for each row when (new.merchant_id = '${'c'.repeat(32)}') execute function refuse_elsewhere('${'b'.repeat(32)}')`,
      `drop trigger elsewhere_${'a'.repeat(32)} on staff; drop trigger elsewhere_${'b'.repeat(32)} on payments`,
      stranger(`trigger elsewhere_${'a'.repeat(32)} of staff`),
      stranger(`trigger elsewhere_${'b'.repeat(32)} of payments`),
    ],
    'a fence around a merchant who is served here: who never left, who came, who stayed after all': [
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values
         ('${'b'.repeat(32)}', 'arriving', 'arrived', true, 'two', 1, now()), ('${'c'.repeat(32)}', 'leaving', 'stayed', true, 'two', 1, now());
       ${['a', 'b', 'c'].map(digit => fenceOf(digit.repeat(32), 'access_tokens')).join(';')}`,
      `delete from merchant_moves;
       ${['a', 'b', 'c'].map(digit => `drop trigger elsewhere_${digit.repeat(32)} on access_tokens`).join(';')}`,
      ...['a', 'b', 'c'].map(digit => stranger(`trigger elsewhere_${digit.repeat(32)} of access_tokens`)),
    ],
    'an index that calls a function, and one that refuses rows': [
      `create function longer(text) returns text language sql immutable as 'select $1';
       create index staff_longer on staff (longer(name)); create unique index staff_one on staff (name)`,
      'drop index staff_longer, staff_one; drop function longer',
      stranger('function longer(text)'),
      stranger('index staff_longer of staff'),
      stranger('index staff_one of staff'),
    ],
    'indexes that compute, ask for something or have an order of their own, by functions of PostgreSQL alone': [
      `create index staff_small on staff (lower(name)); create index staff_part on staff (role) where 1 / length(name) > 0;
       create index staff_order on staff (name collate "POSIX"); create index staff_pattern on staff (name text_pattern_ops);
       create index staff_more on staff (role) include (name)`,
      'drop index staff_small, staff_part, staff_order, staff_pattern, staff_more',
      ...['more', 'order', 'part', 'pattern', 'small'].map(name => stranger(`index staff_${name} of staff`)),
    ],
    'any index of the tables that the audit is told from': [
      `create index failures_chosen on log_in_failures ((1 / case when subject like '10.%' then 0 else 1 end));
       create index failures_minute on log_in_failures (minute); create index places_time on known_places (seen_at desc);
       create index audit_details on audit (details); create index head_proof on audit_head (proof)`,
      'drop index failures_chosen, failures_minute, places_time, audit_details, head_proof',
      stranger('index audit_details of audit'),
      stranger('index failures_chosen of log_in_failures'),
      stranger('index failures_minute of log_in_failures'),
      stranger('index head_proof of audit_head'),
      stranger('index places_time of known_places'),
    ],
    'an index that has the name of one of ours and guards less': [
      'drop index staff_by_name; create index staff_by_name on staff (name)',
      'drop index staff_by_name; create unique index staff_by_name on staff (name) where removed_at is null',
      changed('index staff_by_name of staff'),
    ],
    'one that is another of ours': [
      'drop index staff_by_name; create unique index staff_by_name on staff (id)',
      'drop index staff_by_name; create unique index staff_by_name on staff (name) where removed_at is null',
      changed('index staff_by_name of staff'),
    ],
    'tables that are published in a way in which rows cannot be changed or taken out': [
      `alter table log_in_failures replica identity nothing; alter table staff replica identity full;
       create publication few for table known_places (seen_at); create publication fewer for table audit_head where (sequence > 0)`,
      `alter table log_in_failures replica identity default; alter table staff replica identity default; drop publication few, fewer`,
      stranger('publication few of known_places'),
      stranger('publication fewer of audit_head'),
      changed('table log_in_failures'),
      changed('table staff'),
    ],
    'functions, operators, casts and types in whatever schema': [
      `create schema other; create type other.mood as enum ('good'); create domain other.word as text;
       create function other.same(text, text) returns boolean language sql as 'select true';
       create operator other.=== (leftarg = text, rightarg = text, function = other.same);
       create function other.as_text(other.mood) returns text language sql as 'select null::text';
       create cast (other.mood as text) with function other.as_text(other.mood)`,
      'drop schema other cascade',
      stranger('cast other.mood as text'),
      stranger('function other.as_text(other.mood)'),
      stranger('function other.same(text,text)'),
      stranger('operator other.===(text,text)'),
      stranger('type other.mood'),
      stranger('type other.word'),
    ],
    'a second copy of a table in another schema': [
      'create schema other; create table other.access_tokens (like access_tokens)',
      'drop schema other cascade',
      stranger('table other.access_tokens'),
    ],
    'a right on one column of the audit, and one of everybody': [
      'grant update (details) on audit to current_user; grant truncate on audit_head to public',
      'revoke update (details) on audit from current_user; revoke truncate on audit_head from public',
      'everybody may change rows of audit_head or take them out',
      'the owner may change rows of audit or take them out',
    ],
  }
  for (const [what, [made, undoing, ...said]] of Object.entries(cases))
    it(`${what}: named while it is there`, async () => {
      const before = await told()
      await pool.query(made)
      const { verified, watched } = await told()
      await pool.query(undoing)
      assert.deepEqual(watched, said)
      assert.deepEqual(verified.slice(0, said.length), only(...said).verified)
      assert.deepEqual(await told(), before)
    })

  it('an index that guards nothing, because rows did not fit when it was made, is not ours; an unfinished twin of one, or a plain one, may stay', async () => {
    const before = await told()
    const person = () =>
      pool.query(`insert into staff (id, name, role, entities, made_at)
        values (gen_random_uuid(), 'anna', 'viewer', array[gen_random_uuid()], now())`)
    await pool.query('drop index staff_by_name')
    await Promise.all([person(), person()])
    const make = (name: string) => pool.query(`create unique index concurrently ${name} on staff (name) where removed_at is null`)
    for (const name of ['staff_by_name', 'staff_by_name_ccnew']) await assert.rejects(make(name), /could not create unique index/)
    await pool.query('update staff set removed_at = now()')
    const unfinished = await told()
    await pool.query('drop index staff_by_name_ccnew; reindex index staff_by_name; delete from staff')
    assert.deepEqual(unfinished.watched, [changed('index staff_by_name of staff')])
    assert.deepEqual(unfinished.verified.slice(0, 1), only(...unfinished.watched).verified)
    assert.deepEqual(await told(), before)
  })

  it('tables of ours in two schemas are named, whichever of them is searched first', async () => {
    const before = await told()
    await pool.query(
      'create schema own; alter table entities set schema own; alter table audit set schema own; alter table audit_head set schema own',
    )
    const moved = makePool({ ...database.connection, options: '-c search_path=own,public' }, 2, () => {})
    const { watched } = await told(moved)
    await moved.end()
    await pool.query(
      'alter table own.entities set schema public; alter table own.audit set schema public; alter table own.audit_head set schema public; drop schema own',
    )
    assert.ok(watched.includes('the table access_tokens is gone'), watched.join('\n'))
    assert.deepEqual(await told(), before)
  })

  it('a function of the name of one of PostgreSQL does not decide where names are looked for', async () => {
    const shown = async (options?: string) => {
      const one = makePool({ ...database.connection, ...(options && { options }) }, 1, () => {})
      const { rows } = await one.query<{ path: string }>(`select current_setting('search_path') as path`)
      await one.end()
      return rows[0]!.path
    }
    await pool.query(`create function public.quote_ident(name) returns text language sql as $$ select 'other'::text $$`)
    try {
      assert.equal(await shown(), 'public, pg_temp')
      assert.equal(await shown('-c search_path=public,pg_catalog'), 'public, pg_temp')
    } finally {
      await pool.query('drop function public.quote_ident(name)')
    }
  })

  it('what whoever runs it may add is not named', async () => {
    const before = await told()
    const id = 'ab'.repeat(16)
    await pool.query(`create index staff_newest on staff (role, made_at desc nulls last); alter table staff set (fillfactor = 80, autovacuum_enabled = false);
      alter table staff alter column name set statistics 500; create publication more for table staff;
      create index audit_pkey_ccnew on audit (recorded_at); grant select on audit, staff to public;
      ${fenceOf(id, 'payments')}; alter table payments disable trigger elsewhere_${id}; create schema bi; create view bi.names as select name from staff`)
    const found = await told()
    await pool.query(`drop index staff_newest, audit_pkey_ccnew; alter table staff reset (fillfactor, autovacuum_enabled); drop publication more;
      revoke select on audit, staff from public; drop trigger elsewhere_${id} on payments; drop schema bi cascade`)
    assert.deepEqual(found, before)
  })

  it('a fence around a merchant who is on his way, has left, is held or forgotten is not named; where he is served again it is', async () => {
    const before = await told()
    const ids = ['1', '2', '3', '4'].map(digit => digit.repeat(32))
    const states = ['frozen', 'moved', 'stayed', 'forgetting']
    const moves = ids.map((id, at) => `('${id}', 'leaving', '${states[at]}', false, 'two', 1, now())`)
    await pool.query(`insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ${moves.join()};
      ${ids.map(id => fenceOf(id, 'payments')).join(';')}`)
    const found = await told()
    await pool.query(`update merchant_moves set here = true where merchant_id = '${ids[2]}'`)
    const served = await told()
    await pool.query(`alter table payments disable trigger elsewhere_${ids[2]}`)
    const off = await told()
    await pool.query(`delete from merchant_moves; ${ids.map(id => `drop trigger elsewhere_${id} on payments`).join(';')}`)
    assert.deepEqual(found, before)
    assert.deepEqual(served.watched, [stranger(`trigger elsewhere_${ids[2]} of payments`)])
    assert.deepEqual(off, before)
  })

  it('where another version has made more, only a part is compared, and that is said', async () => {
    const { verified: before } = await told()
    await pool.query(`insert into migrations (name, checksum, applied_at) values ('9999_later.sql', '', now());
      alter table staff add column later text; create rule more as on insert to staff do also delete from log_in_failures`)
    const { verified, watched, warned } = await told()
    await pool.query(
      `delete from migrations where name = '9999_later.sql'; alter table staff drop column later; drop rule more on staff`,
    )
    const part = 'only a part could be compared with what Tollgate makes: 9999_later.sql is of another version'
    assert.deepEqual([watched, warned], [[stranger('rule more of staff')], [part]])
    assert.deepEqual(verified.slice(0, 2), only(stranger('rule more of staff'), part).verified)
    assert.deepEqual((await told()).verified, before)
  })
})

// That function sees what is there when it is called: of a trigger that is dropped between two calls one would tell nothing, and the trigger would pass for a stranger's.
it('what a trigger is like is asked once for each, so that none is found by half while it is dropped', async () => {
  const plan = await inTransaction(pool, async db => {
    const lines: string[] = []
    const explained = async (text: string, values?: unknown[]) => {
      if (text.includes('pg_get_triggerdef')) {
        const { rows } = await db.query<{ 'QUERY PLAN': string }>(`explain verbose ${text}`, values)
        lines.push(...rows.map(row => row['QUERY PLAN']))
      }
      return db.query(text, values)
    }
    await readDefinitions({ query: explained } as unknown as Connection, { names: [] })
    return lines.join('\n')
  })
  assert.equal(plan.split('pg_get_triggerdef(').length - 1, 1, plan)
})
