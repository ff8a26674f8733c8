// Migrations as they are sent: one statement at a time.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { statementsOf } from '../src/platform/database/migrate.ts'

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
