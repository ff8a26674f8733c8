// What a move believes of the two databases that it is told of: one that was put back to an earlier state, or that others have written in meanwhile, ends no copy of
// a merchant and is given nothing that is another's.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { insertCame } from '../src/clearing/returns/store.ts'
import { applySeed, type Seed } from '../src/merchants/seed.ts'
import { announceChange, lockTree } from '../src/merchants/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { takeNumbers } from '../src/slips/store.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { giveUpMove, moveMerchant } from '../src/start/moves/move.ts'
import { readMove } from '../src/start/moves/store.ts'
import { movedTables } from '../src/start/moves/tables.ts'
import { eventually, type TestGateway, testKeys } from './support/gateway.ts'
import { lockWaiters, untilWaiting } from './support/locks.ts'
import {
  type CellMerchant,
  cellMerchant,
  cellMerchants,
  moveParts,
  payIn,
  seedOf,
  type TestCells,
  twoCells,
} from './support/movingCells.ts'

const { merchants, nextMerchant } = cellMerchants(20)

let cells: TestCells
before(async () => {
  cells = await twoCells(merchants)
})
after(() => cells.stop())

const count = async (pool: TestGateway['pool'], table: string, condition: string): Promise<number> =>
  (await pool.query<{ count: number }>(`select count(*) as count from ${table} where ${condition}`)).rows[0]!.count
const paymentsOf = (pool: TestGateway['pool'], { id }: CellMerchant) => count(pool, 'payments', `merchant_id = '${id}'`)

const wrongDatabase = /The database that two names is not the one with which .* or was put back to before its end/
const notArrived = /two does not say that the merchant \w+ has arrived: nothing is taken away/
const back = (merchant: CellMerchant) => moveParts(cells, merchant, { source: cells.two.side, target: cells.one.side })

/** As a backup of the second cell that has nothing of the merchant, with what it knew of moves. */
async function putBack({ id }: CellMerchant, known: string): Promise<void> {
  const { pool } = cells.two.gateway
  await inTransaction(pool, async db => {
    await db.query(`select set_config('tollgate.forgets', $1, true)`, [id])
    for (const { name, condition } of (await movedTables(db)).toReversed())
      await db.query(`delete from ${name} where ${condition}`, [id])
  })
  await pool.query(`update merchant_moves set ${known} where merchant_id = $1`, [id])
}

test('lists for the risk check that change meanwhile are the same there, or are told where others use them', async () => {
  const [merchant, later] = [cellMerchant(801), cellMerchant(802)]
  const [here, there] = [cells.one.gateway.pool, cells.two.gateway.pool]
  const division = '5a11d0000000000000000000000000d8'
  const { psp, divisions } = seedOf([merchant, later])
  const { database, by } = cells.one.side
  const seed: Seed = { psp, divisions: [{ ...divisions![0]!, id: division }] }
  await applySeed(database.work, testKeys, systemClock, systemRandom, seed, { by })
  const add = (pool: TestGateway['pool'], value: string) =>
    pool.query(
      `insert into risk_entries values ('${division}', 'customer', '${value}', gen_random_uuid(), 'block', 'x', null, null, 'why', 'me', now(), null)`,
    )
  const listed = async (pool: TestGateway['pool']) =>
    (
      await pool.query<{ text: string }>(
        `select concat_ws(' ', value, list) as text from risk_entries where owner_id = '${division}' order by 1`,
      )
    ).rows.map(({ text }) => text)
  const move = async (who: CellMerchant, change: () => Promise<unknown>) => {
    const said: string[] = []
    const made: Promise<unknown>[] = []
    const tell = (step: string, what: string) => {
      said.push(what)
      if (step === 'begun') made.push(change())
    }
    const clock = { ...systemClock, sleep: (ms: number) => Promise.all(made).then(() => systemClock.sleep(ms)) }
    await moveMerchant(moveParts(cells, who, { source: { ...cells.one.side, clock }, tell }))
    return said.join('\n')
  }
  for (const value of ['taken', 'changed', 'kept']) await add(here, value)
  const change = async () => {
    await here.query(`delete from risk_entries where value = 'taken'`)
    await here.query(`update risk_entries set list = 'allow' where value = 'changed'`)
  }
  assert.doesNotMatch(await move(merchant, change), /differ/)
  assert.deepEqual(await listed(here), ['changed allow', 'kept block'])
  assert.deepEqual(await listed(there), ['changed allow', 'kept block'])
  await add(there, 'theirs')
  const said = await move(later, () => here.query(`delete from risk_entries where value = 'changed'`))
  assert.match(said, /2 entries for the risk check of its division or psp differ, and other merchants of two use them: they stay/)
  assert.deepEqual(await listed(there), ['changed allow', 'kept block', 'theirs block'])
})

test('a cell that was put back to before the merchant arrived is not taken for the one that has it', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  await payIn(one, merchant)
  await moveMerchant(moveParts(cells, merchant))
  await forgetMerchant(one.side, two.side, merchant.id)
  await moveMerchant(back(merchant))
  await forgetMerchant(two.side, one.side, merchant.id)
  const left = (await readMove(two.gateway.pool, merchant.id))!
  await payIn(one, merchant)
  await moveMerchant(moveParts(cells, merchant))
  const { run, moveId } = (await readMove(two.gateway.pool, merchant.id))!
  const refused = async (known: string, forgetting: RegExp = notArrived) => {
    await putBack(merchant, known)
    await assert.rejects(forgetMerchant(one.side, two.side, merchant.id), forgetting, known)
    assert.equal(await paymentsOf(one.gateway.pool, merchant), 2)
  }
  const isLeaving = (state: string, of: number) =>
    `direction = 'leaving', state = '${state}', here = false, run = ${of}, move_id = '${left.moveId}'`
  await refused(isLeaving('forgotten', left.run))
  await assert.rejects(moveMerchant(moveParts(cells, merchant)), wrongDatabase)
  // In the midst of this very move, and with a row that says more than there is.
  const isArriving = (state: string, here: boolean, id = `'${moveId}'`) =>
    `direction = 'arriving', state = '${state}', here = ${here}, run = ${run}, move_id = ${id}`
  await refused(isArriving('arriving', false))
  await assert.rejects(moveMerchant(moveParts(cells, merchant)), wrongDatabase)
  await refused(
    isArriving('arrived', true),
    /two does not have what was handed over of the merchant \w+, and has not passed it on/,
  )
  await refused(isLeaving('copying', run + 1), /two does not have what was handed over/)
  // One that passed it on later may have forgotten it.
  await putBack(merchant, isLeaving('forgotten', run + 1))
  assert.ok((await forgetMerchant(one.side, two.side, merchant.id)) > 0)
})

test('a move whose other end was put back to before it began is given up, as long as nothing was handed over', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  const tell = (step: string) => {
    if (step === 'copied') throw new Error('broken')
  }
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /broken/)
  // As after a command that was killed.
  await one.gateway.pool.query(`update merchant_moves set state = 'fenced', here = false where merchant_id = $1`, [merchant.id])
  await putBack(merchant, `direction = 'leaving', state = 'forgotten', here = false, run = 0, move_id = gen_random_uuid()`)
  await assert.rejects(moveMerchant(moveParts(cells, merchant)), wrongDatabase)
  await giveUpMove({ source: one.side, target: two.side, merchantId: merchant.id, tell: () => {} })
  assert.equal((await readMove(one.gateway.pool, merchant.id))!.here, true)
  assert.equal((await readMove(two.gateway.pool, merchant.id))!.state, 'forgotten')
})

test('moves that began before there were ids know each other by what was handed over, and by nothing that is absent', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  await payIn(one, merchant)
  await moveMerchant(moveParts(cells, merchant))
  for (const { gateway } of [one, two])
    await gateway.pool.query('update merchant_moves set move_id = null where merchant_id = $1', [merchant.id])
  const { counted } = (await readMove(one.gateway.pool, merchant.id))!
  const keep = (what: unknown) =>
    two.gateway.pool.query('update merchant_moves set counted = $2 where merchant_id = $1', [
      merchant.id,
      what === null ? null : JSON.stringify(what),
    ])
  for (const other of [null, {}, { ...counted, payments: { rows: 1, hash: '1' } }]) {
    await keep(other)
    await assert.rejects(forgetMerchant(one.side, two.side, merchant.id), notArrived)
    await assert.rejects(moveMerchant(moveParts(cells, merchant)), wrongDatabase)
  }
  await keep(counted)
  await moveMerchant(moveParts(cells, merchant))
  assert.ok((await forgetMerchant(one.side, two.side, merchant.id)) > 0)
})

test('a file of the bank that still comes to the old cell keeps nothing there for good, and is not lost', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  await payIn(one, merchant)
  const { pool } = one.gateway
  const order = `'${'0'.repeat(32)}', gen_random_uuid(), 'files', 1, '2030-01-01', 'one', '\\x00', now(), null`
  await pool.query(
    `insert into slips values ('${merchant.id}', gen_random_uuid(), 'files', '1', '', '2030-01-01', 1, 'BRL', '', '', '\\x01', now())`,
  )
  await pool.query(`insert into order_files values (${order})`)
  await moveMerchant(moveParts(cells, merchant))
  const file = {
    hash: Buffer.alloc(32, 7),
    series: 'slips' as const,
    account: 'files',
    name: 'RET1',
    number: 1,
    sealed: Buffer.from('x'),
    receivedAt: 1,
  }
  await insertCame(pool, { id: 'f'.repeat(32), ...file })
  await pool.query(`update order_files set sealed = null, written_at = now() where account = 'files'`)
  const forget = () => forgetMerchant(one.side, two.side, merchant.id)
  await assert.rejects(forget(), /The file RET1 of a bank came to one and not to two, where the account is: hand it in there/)
  await insertCame(two.gateway.pool, { id: 'e'.repeat(32), ...file })
  assert.ok((await forget()) > 0)
  assert.equal(await count(two.gateway.pool, 'return_files', `account = 'files'`), 1)
  await moveMerchant(back(merchant))
})

test('numbers of an account that the other cell gives out meanwhile are given out by neither again', async () => {
  const [merchant, other] = [nextMerchant(), cellMerchant(901)]
  const { one, two } = cells
  const slip = (pool: TestGateway['pool'], { id }: CellMerchant, number: number) =>
    pool.query(
      `insert into slips values ('${id}', gen_random_uuid(), 'numbers', '${number}', '', '2030-01-01', 1, 'BRL', '', '', decode('0${number % 10}', 'hex'), now())`,
    )
  await slip(one.gateway.pool, merchant, 100)
  await one.gateway.pool.query(`insert into slip_numbers values ('numbers', 701)`)
  const next = async () =>
    (await two.gateway.pool.query<{ next: number }>(`select next from slip_numbers where account = 'numbers'`)).rows[0]?.next
  const whileItGoes = (work: () => Promise<unknown>) => {
    const made: Promise<unknown>[] = []
    const tell = (step: string) => {
      if (step === 'copied') made.push(work())
    }
    const clock = { ...systemClock, sleep: (ms: number) => Promise.all(made).then(() => systemClock.sleep(ms)) }
    return moveMerchant(moveParts(cells, merchant, { source: { ...one.side, clock }, tell }))
  }
  const give = (number: number) =>
    two.gateway.pool.query(
      `insert into slip_numbers values ('numbers', $1) on conflict (account) do update set next = $1, elsewhere = false`,
      [number],
    )
  const taken =
    /two has given out numbers of the account numbers: name it in the SLIPS_FILE of one cell only\.\none serves the merchant as before/
  // Fewer than the cell where it is, or more: its processes may have them in memory, without a slip.
  for (const number of [501, 801]) {
    await assert.rejects(
      whileItGoes(() => give(number)),
      taken,
    )
    assert.equal(await next(), number)
    await giveUpMove(moveParts(cells, merchant))
    assert.equal(await next(), number, 'who gives up sets nothing back')
    await assert.rejects(moveMerchant(moveParts(cells, merchant)), /two has given out numbers of the account numbers/)
    await two.gateway.pool.query(`delete from slip_numbers where account = 'numbers'`)
  }
  await assert.rejects(
    whileItGoes(() => Promise.all([give(901), slip(two.gateway.pool, other, 899)])),
    taken,
  )
  assert.equal(await next(), 901)
  await two.gateway.pool.query(
    `insert into order_files values ('${'0'.repeat(32)}', gen_random_uuid(), 'numbers', 1, '2030-01-01', 'two', '\\x00', now(), null)`,
  )
  await giveUpMove(moveParts(cells, merchant))
  assert.equal(await next(), 901)
  assert.equal(await count(two.gateway.pool, 'order_files', `account = 'numbers'`), 1, 'nor takes a file of others away')
})

test('numbers go on where they were, and are given out by one cell', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  await one.gateway.pool.query(
    `insert into slips values ('${merchant.id}', gen_random_uuid(), 'counted', '7', '', '2030-01-01', 1, 'BRL', '', '', '\\x0c', now())`,
  )
  const take = ({ gateway }: TestCells['one']) => takeNumbers(gateway.pool, 'counted', 100, 1e6)
  const next = async ({ gateway }: TestCells['one']) =>
    (await gateway.pool.query<{ next: number }>(`select next from slip_numbers where account = 'counted'`)).rows[0]?.next
  const forget = async (left: TestCells['one'], other: TestCells['one']) => {
    const before = await next(left)
    await forgetMerchant(left.side, other.side, merchant.id)
    assert.equal(await next(left), before, 'who forgets sets nothing back')
  }
  assert.equal(await take(one), 1)
  await moveMerchant(moveParts(cells, merchant))
  // The old cell takes the account up again, as one does that is started before its file of accounts is changed.
  assert.deepEqual([await take(one), await take(two)], [undefined, 101])
  await forget(one, two)
  assert.deepEqual([await take(one), await take(two)], [undefined, 201])
  await moveMerchant(back(merchant))
  await forget(two, one)
  assert.deepEqual([await take(two), await take(one)], [undefined, 301])
  // One that fails behind the fence, and one that is given up there.
  const tell = (step: string) => {
    if (step === 'compared') throw new Error('broken')
  }
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /broken\none serves the merchant as before/)
  assert.deepEqual([await take(two), await take(one)], [undefined, 401])
  await assert.rejects(
    moveMerchant(
      moveParts(cells, merchant, {
        tell: step => {
          if (step === 'handing') throw new Error('broken')
        },
      }),
    ),
    /broken/,
  )
  assert.deepEqual([await take(two), await take(one)], [undefined, undefined], 'nobody knows yet whose it is')
  await giveUpMove(moveParts(cells, merchant))
  assert.deepEqual([await take(two), await take(one)], [undefined, 501])
  await moveMerchant(moveParts(cells, merchant))
  assert.deepEqual([await take(one), await take(two)], [undefined, 601])
})

test('files of an account that carries refunds alone are forgotten with it, also by a command that is given again', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  const { pool } = one.gateway
  await payIn(one, merchant)
  for (const number of [1, 2]) {
    await pool.query(`insert into transfer_files values ('refunds', ${number}, now(), null)`)
    await pool.query(
      `insert into refund_transfers values ('${merchant.id}', gen_random_uuid(), 'refunds', '\\xff', now(), ${number}, 1)`,
    )
  }
  await pool.query(
    `insert into order_files values ('${'0'.repeat(32)}', gen_random_uuid(), 'refunds', 1, '2030-01-01', 'one', '\\x00', now(), null)`,
  )
  const tables = ['transfer_files', 'order_files', 'refund_transfers']
  const counts = (cell: TestCells['one']) =>
    Promise.all(tables.map(table => count(cell.gateway.pool, table, `account = 'refunds'`)))
  // What was copied is taken away by who gives up, whatever of it has come.
  const tell = (step: string) => {
    if (step === 'copied') throw new Error('broken')
  }
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /broken/)
  assert.deepEqual(await counts(two), [2, 1, 2])
  await two.gateway.pool.query(
    `begin; set local tollgate.forgets = '${merchant.id}'; delete from refund_transfers where account = 'refunds'; commit`,
  )
  await giveUpMove(moveParts(cells, merchant))
  assert.deepEqual(await counts(two), [0, 0, 0])
  await moveMerchant(moveParts(cells, merchant))
  assert.deepEqual(
    [await counts(one), await counts(two)],
    [
      [2, 1, 2],
      [2, 1, 2],
    ],
  )
  // A file that something still refers to stops the command between two steps, as a kill would.
  await pool.query(
    `create function refuse_files() returns trigger language plpgsql as 'begin raise exception ''stopped''; end';
     create trigger refuse_files before delete on transfer_files execute function refuse_files()`,
  )
  await assert.rejects(forgetMerchant(one.side, two.side, merchant.id), /stopped/)
  assert.deepEqual((await counts(one))[2], 0, 'what names the account is gone')
  await pool.query('drop function refuse_files cascade')
  await forgetMerchant(one.side, two.side, merchant.id)
  assert.deepEqual(
    [await counts(one), await counts(two)],
    [
      [0, 0, 0],
      [2, 1, 2],
    ],
  )
})

test('what a cell has of a move that was given up while it was away is forgotten there, where another has all of it', async () => {
  const merchant = nextMerchant()
  const { one, two } = cells
  await payIn(one, merchant)
  const forget = () => forgetMerchant(two.side, one.side, merchant.id)
  const tell = (step: string) => {
    if (step === 'copied') throw new Error('broken')
  }
  await assert.rejects(forget(), /has not moved away from two: there is nothing to forget/)
  await assert.rejects(moveMerchant(moveParts(cells, merchant, { tell })), /broken/)
  await assert.rejects(forget(), /is on its way from one to two: go on with that, or give it up with --back/)
  await giveUpMove({ ...moveParts(cells, merchant), target: undefined })
  assert.equal(await paymentsOf(two.gateway.pool, merchant), 1)
  const served = async (here: boolean) => {
    await one.gateway.pool.query('update merchant_moves set here = $2 where merchant_id = $1', [merchant.id, here])
    await announceChange(one.gateway.pool)
  }
  await served(false)
  await assert.rejects(forget(), /one does not serve the merchant \w+ with all payments that two has: nothing is taken away/)
  await served(true)
  const copy = `begin; set local tollgate.forgets = '${merchant.id}'; insert into payments select (jsonb_populate_record(p, '{"id": "${'e'.repeat(32)}", "root_id": null}')).* from payments p where merchant_id = '${merchant.id}'; commit`
  await two.gateway.pool.query(copy)
  await assert.rejects(forget(), /one does not serve the merchant \w+ with all payments that two has: nothing is taken away/)
  await two.gateway.pool.query(`delete from payments where id = '${'e'.repeat(32)}'`)
  assert.ok((await forget()) > 0)
  assert.deepEqual(
    [await paymentsOf(two.gateway.pool, merchant), (await readMove(two.gateway.pool, merchant.id))!.state],
    [0, 'forgotten'],
  )
  await assert.rejects(forget(), /has not moved away from two: there is nothing to forget/)
  await eventually(async () => (await payIn(one, merchant)).status === 200, 'it is served')
  await moveMerchant(moveParts(cells, merchant))
  assert.equal(await paymentsOf(two.gateway.pool, merchant), 2)
})

test('two opposite moves of merchants with one token both come to their end', async () => {
  const [merchant, stays, other, beside] = [nextMerchant(), nextMerchant(), cellMerchant(902), cellMerchant(903)]
  const { one, two } = cells
  const tokens = (...of: readonly CellMerchant[]) => [
    { label: 'opposite', token: 'token-of-several-merchants-opposite-Qz9KcXe2', entities: of.map(({ id }) => id) },
  ]
  const seed = ({ side }: TestCells['one'], given: Seed) =>
    applySeed(side.database.work, testKeys, systemClock, systemRandom, given, { by: side.by })
  await seed(one, { psp: seedOf([]).psp, divisions: [], tokens: tokens(merchant, stays) })
  await seed(two, { ...seedOf([other, beside]), tokens: tokens(other, beside) })
  // Whoever reads the token in both cells keeps each of the two moves before the end that the other one begins with.
  const readers = await Promise.all([one, two].map(({ gateway }) => gateway.pool.connect()))
  for (const reader of readers) await reader.query(`begin; select from access_tokens where label = 'opposite' for share`)
  const moves = Promise.allSettled([moveMerchant(moveParts(cells, merchant)), moveMerchant(back(other))])
  const waiting = async () => (await Promise.all([one, two].map(({ gateway }) => lockWaiters(gateway.pool)))).flat().length
  await eventually(async () => (await waiting()) >= 2, 'both wait')
  for (const reader of readers) {
    await reader.query('commit')
    reader.release()
  }
  assert.deepEqual(
    (await moves).map(one => (one.status === 'rejected' ? one.reason.message : 'moved')),
    ['moved', 'moved'],
  )
})

test('a PSP that is seeded while a merchant is on its way stays the only one: the move is refused, and nobody has moved', async () => {
  const merchant = nextMerchant()
  const { pool } = cells.two.gateway
  const seeding = await pool.connect()
  await seeding.query('begin')
  await lockTree(seeding)
  await seeding.query(
    `insert into entities (id, kind, name, settings, changed_at) values ('${'b'.repeat(32)}', 'psp', 'Seeded', '{}', now())`,
  )
  const moving = moveMerchant(moveParts(cells, merchant)).then(
    () => 'moved',
    (error: Error) => error.message,
  )
  await untilWaiting(pool, 'pg_advisory_xact_lock')
  await seeding.query('commit')
  seeding.release()
  assert.match(await moving, /^The other cell belongs to another PSP\. An installation has one PSP, not .*\(Seeded\)/)
  assert.equal((await payIn(cells.one, merchant)).status, 200)
  await pool.query(`delete from entities where name = 'Seeded'`)
  await moveMerchant(moveParts(cells, merchant))
})

test('a move that waits too long for what others hold says what to do', async () => {
  const [merchant, stays] = [nextMerchant(), nextMerchant()]
  const { one, two } = cells
  const token = { label: 'held', token: 'token-of-several-merchants-held-Qz9KcXe2Vb', entities: [merchant.id, stays.id] }
  const { side } = one
  await applySeed(
    side.database.work,
    testKeys,
    systemClock,
    systemRandom,
    { psp: seedOf([]).psp, divisions: [], tokens: [token] },
    { by: side.by },
  )
  const holder = await one.gateway.pool.connect()
  await holder.query(`begin; select from access_tokens where label = 'held' for update`)
  const waited = assert.rejects(
    moveMerchant(moveParts(cells, merchant)),
    /Somebody else holds what the merchant has together with others, in one or two \(.*\): give the command again, it goes on\.$/,
  )
  await waited.finally(() => holder.query('commit').then(() => holder.release()))
  await moveMerchant(moveParts(cells, merchant))
  assert.equal((await readMove(two.gateway.pool, merchant.id))!.state, 'arrived')
})

test('more numbers than an account has are none, also of one that has given none yet', async () => {
  const { pool } = cells.one.gateway
  assert.equal(await takeNumbers(pool, 'fresh', 100, 100), undefined)
  assert.equal(await takeNumbers(pool, 'fresh', 99, 100), 1)
  assert.equal(await takeNumbers(pool, 'fresh', 1, 100), undefined)
})
