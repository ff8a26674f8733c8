// What the processes of a cell make of a database that stands elsewhere: a standby that has taken over, or what was put back. Their clocks differ, they look at
// different moments, and one that begins meanwhile knows nothing of what was before.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { clockWith } from '../src/platform/clock.ts'
import { holdFiles, isHeld, readFileHold, writeFileHold } from '../src/platform/database/fileHold.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { watchPutBack } from '../src/start/moves/putBack.ts'
import { settleRestored } from '../src/start/moves/restored.ts'
import { type Move, putMove, readMove, stepMove } from '../src/start/moves/store.ts'
import { makeDatabase, type TestDatabase } from './support/database.ts'
import { sandbox, testGateway } from './support/gateway.ts'
import { sideOf } from './support/movingCells.ts'

let named: TestDatabase
let side: ReturnType<typeof sideOf>
/** Where the server stands that all processes of a test are on. */
let server: string
before(async () => {
  named = await makeDatabase()
  // One that runs would look by itself, and find the database elsewhere than the tests say.
  await (await testGateway({ database: { ...named, drop: async () => {} } })).stop()
  side = sideOf('one', named.connection)
  await keepMode(side.database.work, 'sandbox', Date.now())
})
after(async () => {
  await side.close()
  await named.drop()
})
beforeEach(async () => {
  server = 'cluster database 00000001'
  await side.database.work.query('delete from merchant_moves')
  await side.database.work.query('update installation set in_cells = true, stands_on = $1', [server])
  await side.database.work.query('delete from transfer_files')
  await writeFileHold(side.database.work, { held: false, released: [], after: null })
})

type Meanwhile = (text: string) => Promise<void> | void

/** A process that looks when it is told to. `meanwhile`: happens before a statement of it. */
async function beginProcess({ ahead = 0, meanwhile = (() => {}) as Meanwhile } = {}) {
  const { work } = side.database
  const says = async (text: string, values: unknown[] | undefined, query: (text: string, values?: unknown[]) => unknown) => {
    await process.meanwhile(text)
    if (text.includes('pg_control_system')) return { rows: [{ stands: server }] }
    return query(text, values)
  }
  const on = (connection: pg.PoolClient) =>
    new Proxy(connection, {
      get: (target, name) =>
        name === 'query'
          ? (text: string, values?: unknown[]) => says(text, values, (...asked) => target.query(...asked))
          : name === 'release'
            ? (error?: Error) => {
                looks++
                target.release(error)
              }
            : Reflect.get(target, name),
    })
  const pool = {
    connect: async () => on(await work.connect()),
    query: (text: string, values?: unknown[]) => says(text, values, (...asked) => work.query(...asked)),
  } as unknown as pg.Pool
  let looks = 0
  let tick = () => {}
  let paused = 0
  const logged: string[] = []
  const clock = {
    ...clockWith(() => Date.now() + ahead),
    elapsed: () => performance.now() + paused,
    every(_: number, act: () => void) {
      tick = act
      return { cancel() {}, unref: () => undefined as never }
    },
  }
  const process = {
    meanwhile,
    logged,
    /** It did nothing for so long. */
    pause(milliseconds: number) {
      paused += milliseconds
    },
    /** Resolves when it has come to an end, whatever it was. */
    async look() {
      const ended = looks
      tick()
      for (let tries = 0; looks === ended && tries < 1000; tries++) await new Promise(resolve => setTimeout(resolve, 10))
      await new Promise(resolve => setTimeout(resolve, 50))
    },
  }
  const tell = (_: unknown, line: string) => void logged.push(line)
  await watchPutBack({ work: pool }, clock, { debug() {}, info() {}, warn: tell, error: tell })
  return process
}

const held = async (): Promise<number> =>
  (await side.database.work.query('select from merchant_moves where put_back_at is not null')).rowCount!
const failOver = () => {
  server = server.replace(/\d+$/, line => String(Number(line) + 1).padStart(8, '0'))
}
const merchantId = sandbox.merchantId
const leaving = { merchantId, direction: 'leaving', state: 'copying', here: true, other: 'two', run: 1, moveId: null } as const
const putLeaving = (more: Partial<Pick<Move, 'merchantId' | 'run'>> = {}, at = Date.now()) =>
  putMove(side.database.work, undefined, { ...leaving, ...more }, at)

test('whom a process has held that began during a fail-over is served again by one that lived through it, whatever their clocks say', async () => {
  for (const ahead of [-4000, 0, 100, 4000]) {
    const lived = await beginProcess({ ahead })
    failOver()
    await beginProcess()
    assert.ok((await held()) > 0, 'a new one cannot know')
    await lived.look()
    assert.equal(await held(), 0, `${ahead} ms ahead`)
  }
})

test('a step that is lost is known, however a later one is dated', async () => {
  await putLeaving({ merchantId: '5a11d000000000000000000000aa0001' }, Date.now() + 120_000)
  await putLeaving()
  const lived = await beginProcess()
  await side.database.work.query('delete from merchant_moves where merchant_id = $1', [merchantId])
  failOver()
  await lived.look()
  assert.ok((await held()) > 0)
})

test('a database that has the beginning of a move and not its next step is no standby', async () => {
  const { work } = side.database
  await putLeaving()
  await work.query('create table kept_moves as table merchant_moves')
  await stepMove(work, leaving, ['copying'], { state: 'frozen', here: false }, Date.now())
  const lived = await beginProcess()
  await work.query('delete from merchant_moves')
  await work.query('insert into merchant_moves table kept_moves')
  await work.query('drop table kept_moves')
  failOver()
  await lived.look()
  assert.equal((await readMove(work, merchantId))?.here, false)
})

test('a step that is lost is known where the database stands as before', async () => {
  await putLeaving()
  const lived = await beginProcess()
  await side.database.work.query('delete from merchant_moves')
  await lived.look()
  assert.equal((await readMove(side.database.work, merchantId))?.here, false)
})

test('steps of one merchant are not taken for those that another one has lost', async () => {
  await putLeaving()
  const lived = await beginProcess()
  await side.database.work.query('delete from merchant_moves where merchant_id = $1', [merchantId])
  const other = { ...leaving, merchantId: '5a11d000000000000000000000aa0002' }
  await putLeaving(other)
  await stepMove(side.database.work, other, ['copying'], { state: 'frozen', here: false }, Date.now())
  failOver()
  await lived.look()
  assert.ok((await held()) > 0)
})

test('whoever is first, a fail-over that one process has lived through holds nobody', async () => {
  for (const newIsFirst of [true, false]) {
    const lived = await beginProcess()
    failOver()
    let first: Promise<unknown> | undefined
    const meanwhile: Meanwhile = async text => {
      if (!text.includes('for update') || first) return
      first = newIsFirst ? beginProcess() : lived.look()
      await first
    }
    if (newIsFirst) lived.meanwhile = meanwhile
    await (newIsFirst ? lived.look() : beginProcess({ meanwhile }))
    await lived.look()
    assert.ok(first)
    assert.equal(await held(), 0, String(newIsFirst))
  }
})

test('a look that fails on the way forgets nothing of what was seen before', async () => {
  const lived = await beginProcess()
  lived.meanwhile = text => {
    if (text.includes('pg_control_system')) throw new Error('Connection terminated unexpectedly')
  }
  await lived.look()
  failOver()
  await beginProcess()
  assert.ok((await held()) > 0)
  lived.meanwhile = () => {}
  await lived.look()
  assert.equal(await held(), 0)
})

test('two fail-overs between two looks are as one', async () => {
  const lived = await beginProcess()
  failOver()
  await beginProcess()
  failOver()
  await lived.look()
  assert.equal(await held(), 0)
})

test('who began where merchants were held already knows nothing about them, and serves nobody again', async () => {
  failOver()
  const began = await beginProcess()
  const all = await held()
  assert.ok(all > 0)
  failOver()
  await began.look()
  assert.equal(await held(), all)
})

test('who began where merchants were held knows of no step before, also where the next database does not hold them', async () => {
  for (const isFirst of [true, false]) {
    await side.database.work.query('delete from merchant_moves')
    failOver()
    const began = await beginProcess()
    const all = await held()
    assert.ok(all > 0)
    // Put back once more, to before anybody was held.
    const older = server
    await side.database.work.query('delete from merchant_moves')
    failOver()
    await side.database.work.query('update installation set stands_on = $1', [isFirst ? older : server])
    await began.look()
    assert.equal(await held(), all, isFirst ? 'it is first' : 'another one took it for a standby')
    assert.equal(began.logged.filter(line => line.startsWith(`${all} merchants are refused`)).length, 2)
  }
})

test('one merchant who was held is enough to know nothing of what the next database is', async () => {
  await putLeaving({ merchantId: '5a11d000000000000000000000aa0003' })
  await side.database.work.query('update merchant_moves set here = false, put_back_at = now()')
  const began = await beginProcess()
  assert.equal(await held(), 1)
  failOver()
  await began.look()
  assert.ok((await held()) > 1)
})

test('a hold that an operator has ended is no step that is lost', async () => {
  failOver()
  const began = await beginProcess()
  assert.ok((await held()) > 0)
  await settleRestored({ own: side, others: [], silent: [], mapped: new Map(), serve: [] })
  await began.look()
  assert.equal(await held(), 0)
  failOver()
  await began.look()
  assert.equal(await held(), 0, 'from then on it has lived')
})

test('who has not looked for long serves nobody again, whether it stood still or heard nothing', async () => {
  for (const [milliseconds, isLate] of [
    [110_000, false],
    [120_000, true],
  ] as const) {
    await side.database.work.query('delete from merchant_moves')
    const [asleep, cutOff, alone] = [await beginProcess(), await beginProcess(), await beginProcess()]
    cutOff.meanwhile = text => {
      if (text.includes('pg_control_system')) throw new Error('Connection terminated unexpectedly')
    }
    for (const one of [asleep, cutOff, alone]) one.pause(milliseconds)
    await cutOff.look()
    cutOff.meanwhile = () => {}
    failOver()
    if (isLate) await alone.look()
    else await beginProcess()
    const all = await held()
    assert.ok(all > 0)
    for (const one of [asleep, cutOff]) {
      await one.look()
      assert.equal(await held(), isLate ? all : 0, `${milliseconds} ms`)
    }
    assert.deepEqual(
      asleep.logged.map(line => line.replace(/:.*/, '')),
      isLate
        ? [`${all} merchants are refused, because the database may have been put back`]
        : [`${all} merchants are served again`],
    )
  }
})

test('another server under a process is no standby of it', async () => {
  const lived = await beginProcess()
  server = 'other database 00000001'
  await lived.look()
  assert.ok((await held()) > 0)
})

test('behind a database that was put back trace numbers begin far behind those that it knows, once; behind a fail-over they go on', async () => {
  const { work } = side.database
  await work.query(`insert into trace_numbers (acquirer_id, blocks) values ('1', 10)`)
  const blocks = async () =>
    (await work.query<{ blocks: number }>(`select blocks from trace_numbers where acquirer_id = '1'`)).rows[0]!.blocks
  const lived = await beginProcess()
  failOver()
  await lived.look()
  assert.equal(await blocks(), 10)
  server = 'other database 00000001'
  for (const one of [lived, await beginProcess(), lived]) await one.look()
  assert.equal(await blocks(), 243)
  await work.query(`delete from trace_numbers where acquirer_id = '1'`)
})

test('two processes that have seen different steps serve nobody whose step is lost, whoever is first', async () => {
  for (const firstKnows of [true, false]) {
    await side.database.work.query('delete from merchant_moves')
    const early = await beginProcess()
    await putLeaving()
    const late = await beginProcess()
    await side.database.work.query('delete from merchant_moves where merchant_id = $1', [merchantId])
    failOver()
    await beginProcess()
    for (const one of firstKnows ? [late, early] : [early, late]) await one.look()
    assert.equal((await readMove(side.database.work, merchantId))?.here, false, String(firstKnows))
  }
})

test('where the role may not ask nothing is noticed, and nothing stands in the way', async () => {
  const denied = Object.assign(new pg.DatabaseError('permission denied for function pg_control_system', 0, 'error'), {
    code: '42501',
  })
  failOver()
  const meanwhile: Meanwhile = text => {
    if (text.includes('pg_control_system')) throw denied
  }
  await beginProcess({ meanwhile })
  assert.equal(await held(), 0)
})

test('who has seen a move holds a database that does not know that it is of a cell', async () => {
  await putLeaving()
  const lived = await beginProcess()
  await side.database.work.query('delete from merchant_moves')
  await side.database.work.query('update installation set in_cells = false')
  failOver()
  await lived.look()
  assert.equal((await readMove(side.database.work, merchantId))?.here, false)
})

test('whom an operator has asked about and who stays held is served again by no process', async () => {
  const lived = await beginProcess()
  failOver()
  await beginProcess()
  const all = await held()
  const { held: kept } = await settleRestored({ own: side, others: [], silent: ['two'], mapped: new Map(), serve: [] })
  assert.equal(kept.length, all)
  await lived.look()
  assert.equal(await held(), all)
  const { served } = await settleRestored({ own: side, others: [], silent: [], mapped: new Map(), serve: [] })
  assert.deepEqual([served.length, await held()], [all, 0], 'there is no other cell')
})

test('a move goes no step further while its merchant is held, and what was read before takes no hold away', async () => {
  const { work } = side.database
  await putLeaving()
  const move = (await readMove(work, merchantId))!
  failOver()
  await beginProcess()
  await assert.rejects(stepMove(work, move, ['copying'], { state: 'frozen', here: false }, Date.now()), /has gone on/)
  await assert.rejects(putMove(work, move, { ...move, run: 2 }, Date.now()), /has gone on/)
  assert.equal((await readMove(work, merchantId))!.here, false)
  await putMove(work, (await readMove(work, merchantId))!, { ...move, run: 2 }, Date.now())
  assert.equal((await readMove(work, merchantId))!.here, true)
})

describe('files', () => {
  /** Of the subjects `a` and `b`, those whose files wait. */
  const waiting = async () => {
    const hold = await readFileHold(side.database.work)
    return ['a', 'b'].filter(subject => isHeld(hold, subject)).join('')
  }
  const release = async (subject: string) => {
    const hold = await readFileHold(side.database.work)
    await writeFileHold(side.database.work, { ...hold, released: [...hold.released, subject] })
  }

  test('that a process has held that began during a fail-over go on by one that lived through it, as they were', async () => {
    for (const before of ['', 'b']) {
      if (before) await holdFiles(side.database.work)
      if (before) await release('a')
      const lived = await beginProcess()
      failOver()
      const began = await beginProcess()
      assert.equal(await waiting(), 'ab', 'a new one cannot know')
      await began.look()
      assert.equal(await waiting(), 'ab', 'nor when it looks again')
      await lived.look()
      assert.equal(await waiting(), before)
      await began.look()
      assert.equal(await waiting(), before)
    }
  })

  // biome-ignore format: a table
  const kinds: readonly (readonly [files: string, file: string, lines: string, line: string])[] = [
    ['transfer_files', "values ('a', $1, now(), now())", 'refund_transfers', "(merchant_id, payment_id, account, ordered_at, sequence, line) values ($1, $1, 'a', now(), 1, 1)"],
    ['capture_files', "values ('a', $1, now(), '', '', now(), now())", 'collected_captures', "(merchant_id, payment_id, acquirer, said, collected_at, sequence, line) values ($1, $1, 'a', '{}', now(), 1, 1)"],
    ['order_files', "select $2, gen_random_uuid(), 'a', $1, now(), '', null, now(), now()", 'slip_orders', "(merchant_id, payment_id, slip_id, account, kind, ordered_at, sequence, line) values ($1, $1, $1, 'a', 'entry', now(), 1, 1)"],
  ]
  for (const [files, file, lines, line] of kinds) {
    const insertFile = (sequence: number) =>
      side.database.work.query(`insert into ${files} ${file}`, file.includes('$2') ? [sequence, merchantId] : [sequence])
    const beginFiles = async () => {
      await writeFileHold(side.database.work, { held: false, released: [], after: null })
      await insertFile(1)
      await side.database.work.query(`insert into ${lines} ${line}`, [merchantId])
    }
    const clear = async () => {
      // As who forgets: of a merchant who has left nobody else takes anything away.
      await side.database.work.query(
        `begin; set local tollgate.forgets = '${merchantId}'; delete from ${lines}; delete from ${files}; commit`,
      )
    }

    test(`wait on where somebody has seen that some are lost, whoever looks first: ${files}`, async () => {
      for (const firstKnows of [true, false]) {
        await beginFiles()
        const early = await beginProcess()
        await insertFile(2)
        const late = await beginProcess()
        await side.database.work.query(`delete from ${files} where sequence = 2`)
        failOver()
        await beginProcess()
        for (const one of firstKnows ? [late, early, late] : [early, late, early]) await one.look()
        assert.equal(await waiting(), 'ab', String(firstKnows))
        await clear()
      }
    })

    test(`wait on where one who stood still has seen that some are lost: ${files}`, async () => {
      await beginFiles()
      const early = await beginProcess()
      await insertFile(2)
      const late = await beginProcess()
      await side.database.work.query(`delete from ${files} where sequence = 2`)
      failOver()
      await beginProcess()
      late.pause(120_000)
      for (const one of [late, early]) await one.look()
      assert.equal(await waiting(), 'ab')
      await clear()
    })

    test(`go on behind a fail-over that has lost none: ${files}`, async () => {
      await beginFiles()
      await insertFile(2)
      const lived = await beginProcess()
      failOver()
      await lived.look()
      assert.equal(await waiting(), '')
      await clear()
    })

    test(`that were forgotten with a merchant who has left are not lost: ${files}`, async () => {
      if (files === 'capture_files') return // they stay in the cell
      await beginFiles()
      await side.database.work.query(
        `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
        [merchantId],
      )
      const lived = await beginProcess()
      await clear()
      failOver()
      await lived.look()
      assert.equal(await waiting(), '')
    })
  }

  test('wait on where an operator has served a merchant of a lost cell again, whoever has lived', async () => {
    const lived = await beginProcess()
    await holdFiles(side.database.work)
    failOver()
    await beginProcess()
    await lived.look()
    assert.equal(await waiting(), 'ab')
  })

  test('wait on behind two fail-overs by one who lived through the second alone, and go on by who lived through both', async () => {
    const both = await beginProcess()
    failOver()
    const second = await beginProcess()
    failOver()
    await beginProcess()
    await second.look()
    assert.equal(await waiting(), 'ab')
    await both.look()
    assert.equal(await waiting(), '')
  })

  test('of another server wait for somebody, whoever has seen the one before', async () => {
    const lived = await beginProcess()
    server = 'other database 00000001'
    await lived.look()
    assert.deepEqual(await readFileHold(side.database.work), { held: true, released: [], after: null })
  })
})
