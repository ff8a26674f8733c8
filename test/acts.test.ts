// Acts that no transaction holds together with their row: that they begin is told before anything is done, and what came of them afterwards.

import assert from 'node:assert/strict'
import { after, before, beforeEach, it } from 'node:test'
import type pg from 'pg'
import { tellAndDo } from '../src/audit/act.ts'
import { beginAudit, listAudit } from '../src/audit/chain.ts'
import type { Actor } from '../src/audit/entry.ts'
import { systemClock } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { testKeys } from './support/gateway.ts'

let database: TestDatabase
let pool: pg.Pool
const by: Actor = { kind: 'commandLine', id: 'anna', address: 'office' }
const recorder = { keys: testKeys, clock: systemClock, by }
const act = { action: 'backupMade', subject: 'it', details: { into: '/backups' } } as const

before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 4)
  await beginAudit(pool, testKeys)
})
after(async () => {
  await pool.end()
  await database.drop()
})

let seen = 0
const told = async () =>
  (await listAudit(pool, testKeys, {}, 1000)).rows
    .filter(({ sequence }) => sequence > seen)
    .map(({ action, actor, subject, result, details }) => [action, actor, subject, result, JSON.parse(details)])
beforeEach(async () => {
  seen = (await listAudit(pool, testKeys, {}, 1)).rows[0]?.sequence ?? 0
})

/** Rows of an action are swallowed, as by somebody with the rights of the gateway's role. */
async function swallowing(action: string, work: () => Promise<void>): Promise<void> {
  await pool.query(`create function swallow() returns trigger language plpgsql as $$ begin
      if new.action = '${action}' then return null; end if; return new; end $$;
    create trigger swallow before insert on audit for each row execute function swallow()`)
  await work().finally(() => pool.query('drop function swallow cascade'))
}
const began = ['actBegun', 'anna', 'it', 'done', { act: 'backupMade', into: '/backups' }]

it('one that begins has its row before anything is done, and its end names that row', async () => {
  const value = await tellAndDo(pool, recorder, act, async ({ came }) => {
    assert.deepEqual(await told(), [began])
    came.folder = 'one'
    return 7
  })
  assert.equal(value, 7)
  const end = ['backupMade', 'anna', 'it', 'done', { into: '/backups', folder: 'one', begun: seen + 1 }]
  assert.deepEqual(await told(), [began, end])
})

it('one that fails tells what it did until then, and why it went no further', async () => {
  for (const [error, why] of [
    [new OperatorError('There is no room left.'), 'There is no room left.'],
    [new TypeError('value of somebody'), 'TypeError'],
  ] as const) {
    const failing = tellAndDo(pool, recorder, act, async ({ came }) => {
      came.folder = 'half'
      throw error
    })
    await assert.rejects(failing, error)
    const end = (await told()).at(-1)!
    assert.deepEqual(end.slice(3), [
      'refused',
      { into: '/backups', folder: 'half', why, begun: (end[4] as { begun: number }).begun },
    ])
  }
})

it('one that began is told of to its end, whatever becomes of whoever began it; by somebody who may act no more none begins', async () => {
  let isHere = true
  const ann = { ...recorder, by: { ...by, isStill: async () => isHere } }
  await tellAndDo(pool, ann, act, async () => {
    isHere = false
  })
  assert.deepEqual(
    (await told()).map(([action, actor]) => [action, actor]),
    [
      ['actBegun', 'anna'],
      ['backupMade', 'anna'],
    ],
  )
  let isDone = false
  const late = tellAndDo(pool, ann, act, async () => {
    isDone = true
  })
  await assert.rejects(late, /may act no more/)
  assert.equal(isDone, false)
  assert.equal((await told()).length, 2)
})

it('what cannot be told of does not begin', async () => {
  await swallowing('actBegun', async () => {
    let done = false
    const asked = tellAndDo(pool, recorder, act, async () => {
      done = true
    })
    await assert.rejects(asked, /did not keep the audit as it was written, so nothing was done/)
    assert.equal(done, false)
  })
  assert.deepEqual(await told(), [])
})

it('whose end the audit does not keep is said to be done, with the row that it began', async () => {
  await swallowing('backupMade', async () => {
    const asked = tellAndDo(pool, recorder, act, async () => {})
    await assert.rejects(asked, (error: OperatorError) => {
      assert.match(
        error.message,
        /^It was carried out, but the audit tells only that it began, in row \d+: the row of its end was not kept\./,
      )
      assert.doesNotMatch(error.message, /nothing was done/)
      return error instanceof OperatorError
    })
  })
  // The stranger in the database is told of too.
  assert.deepEqual(
    (await told()).filter(([action]) => action !== 'tamperingFound'),
    [began],
  )
})

it('the last step and the row of its end are one transaction', async () => {
  const broken = new Error('the connection is gone')
  const asked = tellAndDo(pool, recorder, act, ({ end }) =>
    inTransaction(pool, async db => {
      await end(db)
      throw broken
    }),
  )
  await assert.rejects(asked, /row of its end could not be written \(the connection is gone\)/)
  assert.deepEqual(await told(), [began])
})
