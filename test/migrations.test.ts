// Migrations as they are sent, one statement at a time, and what they make of a database that was in use.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { it } from 'node:test'
import { migrate, statementsOf } from '../src/platform/database/migrate.ts'
import { makeDatabase, testPool } from './support/database.ts'

it('a file is cut between its statements, and nowhere else', () => {
  const sql = `-- first; of two
create table a (b text default 'x;''y' check (b <> '--')); -- why; because
create function "c;d"() returns int language plpgsql as $$ begin; return 1; end $$;
do $body$ select '$$;' $body$;;
`
  assert.deepEqual(statementsOf(sql), [
    `create table a (b text default 'x;''y' check (b <> '--'))`,
    'create function "c;d"() returns int language plpgsql as $$ begin; return 1; end $$',
    `do $body$ select '$$;' $body$`,
  ])
})

it('what the planner had sampled of sealed records goes, their rows and the fences around merchants stay', async () => {
  const database = await makeDatabase()
  const pool = testPool(database.connection, 2)
  const sampled = async () =>
    (
      await pool.query<{ place: string }>(
        `select tablename || '.' || attname as place from pg_stats
          where (tablename = 'challenge_secrets' and histogram_bounds::text like '%5ec2e7%') or (tablename = 'pending_answers' and attname in ('sealed', 'payment_id'))
             or (tablename = 'due_work' and attname in ('details', 'kind')) order by 1`,
      )
    ).rows.map(({ place }) => place)
  try {
    await pool.query('drop schema public cascade')
    await pool.query('create schema public')
    const before = readdirSync(new URL('../migrations/', import.meta.url)).filter(name => /^\d{4}_/.test(name) && name < '0053')
    await migrate(pool, '2026-01-01T00:00:00Z', new Set(before))
    for (const insert of [
      `into challenge_secrets (merchant_id, payment_id, sealed, erase_after) select gen_random_uuid(), gen_random_uuid(), decode('5ec2e7', 'hex') || n::text::bytea, now()`,
      `into pending_answers (merchant_id, payment_id, sealed) select gen_random_uuid(), gen_random_uuid(), n::text::bytea`,
      `into due_work (kind, merchant_id, subject_id, due_at, details) select 'recover', gen_random_uuid(), gen_random_uuid(), now(), jsonb_build_object('sealed', n)`,
    ])
      await pool.query(`insert ${insert} from generate_series(1, 40) as n`)
    await pool.query(`create trigger elsewhere_1 before insert on challenge_secrets for each row
      when (new.merchant_id = '5a11d0000000000000000000000000e1') execute function refuse_elsewhere('1')`)
    await pool.query('analyze')
    const kept = ['due_work.kind', 'pending_answers.payment_id']
    assert.deepEqual(await sampled(), ['challenge_secrets.sealed', 'due_work.details', ...kept, 'pending_answers.sealed'])
    await migrate(pool, '2026-01-02T00:00:00Z')
    assert.deepEqual(await sampled(), kept)
    await pool.query('analyze')
    assert.deepEqual(await sampled(), kept)
    const { rows } = await pool.query(
      `select (select count(*) from challenge_secrets) as rows, relpersistence, reloptions,
              (select count(*) from pg_trigger where tgrelid = c.oid and not tgisinternal) as fences
         from pg_class c where oid = 'challenge_secrets'::regclass`,
    )
    assert.deepEqual(rows, [{ rows: 40, relpersistence: 'u', reloptions: ['autovacuum_enabled=false'], fences: 1 }])
  } finally {
    await pool.end()
    await database.drop()
  }
})
