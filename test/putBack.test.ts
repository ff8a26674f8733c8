// A cell whose database is put back to before a merchant left it: it is noticed at the start, nobody is served or worked for until the other cells were asked, and
// what was done in both is named. And a file of cells that names the wrong databases.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { readMap } from '../src/start/cellMap.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { type MoveSide, moveMerchant } from '../src/start/moves/move.ts'
import { watchPutBack } from '../src/start/moves/putBack.ts'
import { readMove } from '../src/start/moves/store.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { databaseUrl, makeDatabase, type TestDatabase, withPool } from './support/database.ts'
import { eventually, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { ask, type CellMerchant, cellMerchants, payIn, seedOf, sideOf, type TestCell } from './support/movingCells.ts'
import { type CommandRun, commandLine, manyCommands } from './support/process.ts'

const { merchants, nextMerchant } = cellMerchants(20)
const seed = seedOf(merchants)

/** A cell whose gateway can be stopped, and whose database can be put back to a copy. */
class PutBackCell implements TestCell {
  gateway!: TestGateway
  side!: MoveSide & { close(): Promise<void> }
  readonly name: string
  readonly database: TestDatabase
  constructor(name: string, database: TestDatabase) {
    this.name = name
    this.database = database
  }
  async start(): Promise<void> {
    const database = { ...this.database, drop: async () => {} }
    const isNew = await withPool(this.database.connection, async pool => {
      await keepMode(pool, 'sandbox', Date.now())
      await inTransaction(pool, db => keepKeys(db, testKeys, Date.now()))
      return (await pool.query('select from entities limit 1')).rowCount === 0
    })
    this.gateway = await testGateway({ database, ...(isNew && this.name === 'one' && { seed }) })
    this.side = sideOf(this.name, database.connection)
  }
  async stop(): Promise<void> {
    await this.side.close()
    await this.gateway.stop()
  }
  private admin(...statements: string[]): Promise<void> {
    return withPool({ ...this.database.connection, database: 'postgres' }, async pool => {
      for (const statement of statements) await pool.query(statement)
    })
  }
  get databaseName(): string {
    return this.database.connection.database!
  }
  async keepCopy(): Promise<void> {
    await this.stop()
    await this.admin(
      `drop database if exists ${this.databaseName}_kept`,
      `create database ${this.databaseName}_kept template ${this.databaseName}`,
    )
    await this.start()
  }
  /** The gateway does not run meanwhile. */
  async putBack(): Promise<void> {
    await this.stop()
    await this.admin(
      `drop database ${this.databaseName} with (force)`,
      `alter database ${this.databaseName}_kept rename to ${this.databaseName}`,
    )
    await this.start()
  }
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-put-back-'))
const file = join(folder, 'cells.json')
const map = join(folder, 'cells.map')
let one: PutBackCell
let two: PutBackCell
let commands: ReturnType<typeof manyCommands>
before(async () => {
  commands = manyCommands()
  one = new PutBackCell('one', await makeDatabase())
  two = new PutBackCell('two', await makeDatabase())
  await Promise.all([one.start(), two.start()])
})
after(async () => {
  await Promise.all([one.stop(), two.stop()])
  commands.stop()
  await Promise.all([one, two].map(({ database }) => database.drop()))
  rmSync(folder, { recursive: true, force: true })
})

const keysOf = { SEAL_KEY: Buffer.alloc(32, 1).toString('hex'), LOOKUP_KEY: Buffer.alloc(32, 2).toString('hex') }

/** The file as gateways stand now. `unreachable`: the database of the second is none. */
function writeCells({ unreachable = false, swapped = false, same = false } = {}): void {
  const urls = [one, two].map(({ database }) => databaseUrl(database.connection))
  if (swapped) urls.reverse()
  if (same) urls[1] = `${urls[0]}&application_name=same`
  if (unreachable) urls[1] = 'postgres://127.0.0.1:9/none'
  const cells = [one, two].map(({ name, gateway }, at) => ({
    name,
    environment: { DATABASE_URL: urls[at], ...keysOf },
    gateways: [new URL(gateway.baseUrl).host],
  }))
  writeFileSync(file, JSON.stringify({ map: 'cells.map', cells }), { mode: 0o600 })
}
const cellsCommand = (...words: string[]): Promise<CommandRun> => commands.run(...words, '--cells', file)
const restored = (...more: string[]) => cellsCommand('cells', 'restored', '--cell', 'one', ...more)
const move = ({ id: merchantId }: CellMerchant, source: PutBackCell = one, target: PutBackCell = two) =>
  moveMerchant({ source: source.side, target: target.side, merchantId, patienceSeconds: 2, refusalSeconds: 60, tell: () => {} })
const refund = (cell: TestCell, merchant: CellMerchant, id: string) =>
  ask(cell, merchant, `/v1/payments/${id}`, { entityId: merchant.channelId, paymentType: 'RF', amount: '50.00', currency: 'EUR' })
const paidIn = async (cell: TestCell, merchant: CellMerchant): Promise<string> => {
  const { status, body } = await payIn(cell, merchant, { amount: '50.00' })
  assert.equal(status, 200, JSON.stringify(body))
  return body.id
}
const refunds = async ({ gateway: { pool } }: TestCell, id: string): Promise<number> =>
  (await pool.query('select from payments where reference_id = $1 and payment_type = $2', [id, 'RF'])).rowCount!

test('a cell that is put back serves nobody until the others were asked, and whoever has left it never', async () => {
  const [gone, staying] = [nextMerchant(), nextMerchant()]
  const id = await paidIn(one, gone)
  writeCells()
  assert.equal((await cellsCommand('cells', 'map')).code, 0)
  await one.keepCopy()
  await move(gone)
  await one.putBack()
  writeCells()
  for (const merchant of [gone, staying]) {
    const { status, retryAfter } = await payIn(one, merchant)
    assert.deepEqual([status, retryAfter !== null], [503, true])
  }
  assert.ok(one.gateway.logged.some(line => line.includes('may have been put back') && line.includes('cells restored')))
  assert.equal((await refund(one, gone, id)).status, 503)
  assert.equal((await refund(two, gone, id)).status, 200)
  const check = await cellsCommand('cells', 'check')
  assert.equal(check.code, 1)
  assert.match(
    check.out,
    new RegExp(`The merchant ${gone.id} has moved from one to two, .*cells restored --cells FILE --cell one`),
  )
  assert.match(check.out, /one was put back, and refuses \d+ merchants/)
  const moved = await cellsCommand('merchants', 'move', staying.id, '--to', 'two')
  assert.match(moved.out, /one was put back, and nobody has asked the other cells .* `tollgate cells restored/)

  const listed = await commands.runIn({ ...keysOf, DATABASE_URL: databaseUrl(one.database.connection) }, 'merchants', 'moves')
  assert.match(listed.out, new RegExp(`${staying.id}  leaving    put back  no`))

  writeCells({ unreachable: true })
  const alone = await restored()
  assert.equal(alone.code, 1)
  assert.match(alone.out, new RegExp(`The merchant ${staying.id} is refused: two could not be asked`))
  assert.equal((await payIn(one, staying)).status, 503)

  writeCells()
  const asked = await restored()
  assert.equal(asked.code, 0, asked.out)
  assert.match(asked.out, new RegExp(`The merchant ${gone.id} is in two: one serves it no more`))
  await eventually(async () => (await payIn(one, staying)).status === 200, 'who stayed is served')
  assert.equal((await refund(one, gone, id)).status, 503)
  assert.deepEqual([await refunds(one, id), await refunds(two, id)], [0, 1])
  const again = await restored()
  assert.deepEqual([again.code, again.out], [0, 'Nobody has left one but by its own word.\n'])
  assert.equal((await cellsCommand('cells', 'map')).code, 0)
  assert.equal((await cellsCommand('cells', 'check')).code, 0)
  // As after any move.
  assert.ok((await forgetMerchant(one.side, two.side, gone.id)) > 0)
  await move(gone, two, one)
  assert.equal((await refund(one, gone, id)).status, 400) // it was paid back already
})

test('due work of a capture whose answer never came is done by the cell that has the merchant alone', async () => {
  const merchant = nextMerchant()
  const { body } = await payIn(one, merchant, { paymentType: 'PA', amount: '80.00' })
  const capture = await ask(one, merchant, `/v1/payments/${body.id}`, {
    entityId: merchant.channelId,
    paymentType: 'CP',
    amount: '80.00',
    currency: 'EUR',
    'customParameters[simulateAnswer]': 'none',
  })
  const answered = async ({ gateway: { pool } }: TestCell): Promise<boolean> =>
    (await pool.query('select from answers where payment_id = $1', [capture.body.id])).rowCount === 1
  assert.equal(await answered(one), false, JSON.stringify(capture.body))
  await one.keepCopy()
  await move(merchant)
  await one.putBack()
  await eventually(() => answered(two), 'the cell that has it repeats the capture')
  await new Promise(resolve => setTimeout(resolve, 3000)) // two attempts are not further apart by then
  assert.equal(await answered(one), false)
  writeCells()
  assert.equal((await restored()).code, 0)
  await new Promise(resolve => setTimeout(resolve, 3000))
  assert.equal(await answered(one), false)
  const report = await commandLine({}, 'doctor', '--cells', file)
  assert.equal(report.code, 0, report.out)
})

test('where it was not noticed and both have served, what was done twice is named until it is forgotten', async () => {
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  const id = await paidIn(one, merchant)
  await one.keepCopy()
  await move(merchant)
  await one.stop()
  // As a disk that is put back under a database: it stands where it stood.
  await withPool({ ...one.database.connection, database: 'postgres' }, async pool => {
    await pool.query(`drop database ${one.databaseName} with (force)`)
    await pool.query(`alter database ${one.databaseName}_kept rename to ${one.databaseName}`)
  })
  await withPool(one.database.connection, pool => pool.query('update installation set stands_on = null'))
  await one.start()
  writeCells()
  assert.equal((await refund(one, merchant, id)).status, 200)
  assert.equal((await refund(two, merchant, id)).status, 200)
  const looked = await commandLine({}, 'doctor', '--cells', file)
  assert.equal(looked.code, 1, looked.out)
  assert.match(
    looked.out,
    new RegExp(`The merchant ${merchant.id} has moved from one to two.*cells restored --cells FILE --cell one`),
  )
  const written = await cellsCommand('cells', 'map')
  assert.equal(written.code, 1)
  assert.match(written.out, /cells restored --cells FILE --cell one/)
  const moved = await cellsCommand('merchants', 'move', merchant.id, '--to', 'two')
  assert.match(moved.out, /two has the merchant .* `tollgate cells restored --cells FILE --cell one` takes it away there/)
  for (const _ of ['once', 'again']) {
    const asked = await restored()
    assert.equal(asked.code, 1, asked.out)
    assert.match(
      asked.out,
      new RegExp(`The payment [0-9a-f]{32} \\(RF 50\\.00 EUR\\) of the merchant ${merchant.id} was made in one, and not by`),
    )
    assert.equal(asked.out.match(/The payment /g)!.length, 1, asked.out)
  }
  assert.equal((await payIn(one, merchant)).status, 503)
  assert.equal((await payIn(one, other)).status, 200)
  await assert.rejects(
    one.gateway.pool.query('update payments set brand = brand where merchant_id = $1', [merchant.id]),
    /is served elsewhere/,
  )
  assert.equal((await readMove(one.side.database.work, merchant.id))!.state, 'moved')
  await forgetMerchant(one.side, two.side, merchant.id)
  assert.equal((await restored()).code, 0)
})

test("who came back after that moment is served by an operator's word alone", async () => {
  const merchant = nextMerchant()
  await paidIn(one, merchant)
  await one.gateway.pool.query(
    `insert into slips values ($1, gen_random_uuid(), 'came back', '1', '', '2030-01-01', 1, 'BRL', '', '', decode('0cb1', 'hex'), '2020-01-01')`,
    [merchant.id],
  )
  await one.gateway.pool.query(`insert into slip_numbers values ('came back', 101)`)
  await one.keepCopy()
  await move(merchant)
  await two.gateway.pool.query(`update slip_numbers set next = 201 where account = 'came back'`)
  await forgetMerchant(one.side, two.side, merchant.id)
  await move(merchant, two, one)
  await one.putBack()
  writeCells()
  const asked = await restored()
  assert.equal(asked.code, 1)
  assert.match(asked.out, new RegExp(`The merchant ${merchant.id} is refused: two has sent it back here after that moment`))
  assert.equal((await payIn(one, merchant)).status, 503)
  assert.equal((await restored('--serve', merchant.id)).code, 0)
  await eventually(async () => (await payIn(one, merchant)).status === 200, 'it is served')
  const numbers = (await one.gateway.pool.query(`select next, elsewhere from slip_numbers where account = 'came back'`)).rows
  assert.deepEqual(numbers, [{ next: 201, elsewhere: false }])
})

test('a process that lives through a fail-over tells it from a database that was put back', async () => {
  const merchant = nextMerchant()
  const { pool } = one.gateway
  const elsewhere = async () => (await pool.query('select from merchant_moves where put_back_at is not null')).rowCount!
  const stands = async (change: string) => pool.query(`update installation set stands_on = ${change}`)
  const ticks: (() => void)[] = []
  const clock = {
    ...systemClock,
    every: (_: number, act: () => void) => ({ cancel: () => {}, unref: () => undefined as never, act: ticks.push(act) }),
  }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const watched = watchPutBack(one.side.database, clock, log)
  await watched
  const line = `regexp_replace(stands_on, '\\S+$', '00000000')`
  await stands(line)
  ticks[0]!()
  await eventually(
    async () => (await pool.query(`select from installation where stands_on like '% 00000000'`)).rowCount === 0,
    'it looks',
  )
  assert.equal(await elsewhere(), 0, 'a standby has taken over')
  await pool.query('update merchant_moves set changed_at = now() where merchant_id = $1', [merchant.id])
  await move(merchant)
  ticks[0]!()
  await new Promise(resolve => setTimeout(resolve, 500))
  const before = await readMove(pool, merchant.id)
  await pool.query(`update merchant_moves set changed_at = '2020-01-01'`)
  await stands(line)
  ticks[0]!()
  await eventually(async () => (await elsewhere()) > 0, 'what it had seen is lost')
  await pool.query('update merchant_moves set changed_at = to_timestamp($1 / 1000.0)', [before!.changedAt])
  writeCells()
  assert.equal((await restored()).code, 0)
})

test('an installation that is no cell notices nothing', async () => {
  const database = await makeDatabase()
  await withPool(database.connection, pool => keepMode(pool, 'sandbox', Date.now()))
  const gateway = await testGateway({ database })
  await gateway.pool.query(`update installation set stands_on = 'another 1 00000001'`)
  await gateway.restart()
  assert.equal((await gateway.pay()).status, 200)
  assert.equal((await gateway.pool.query(`select from merchant_moves`)).rowCount, 0)
  assert.equal((await gateway.pool.query(`select from installation where stands_on like 'another%'`)).rowCount, 0)
  await gateway.stop()
})

test('a file that names the databases of two cells the wrong way round writes no map', async () => {
  let closed = 9
  writeCells()
  assert.equal((await cellsCommand('cells', 'map')).code, 0)
  const before = [...readMap(map)]
  writeCells({ swapped: true })
  for (const name of ['map', 'check']) {
    const { code, out } = await cellsCommand('cells', name)
    assert.equal(code, 1)
    assert.match(
      out,
      /The cell one does not answer: its gateway 127\.0\.0\.1:\d+ works on another database than the file names\./,
    )
  }
  assert.match((await restored()).out, /The cell one does not answer: its gateway .* works on another database/)
  writeCells({ same: true })
  const left = await restored()
  assert.deepEqual([left.code, /The cell two does not answer/.test(left.out)], [1, true], left.out)
  const { code, out } = await cellsCommand('cells', 'map')
  assert.equal(code, 1)
  assert.match(out, /The cell two does not answer: its gateway .* works on another database/)
  assert.deepEqual([...readMap(map)], before)
  // Of gateways that say nothing the databases themselves are compared.
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replaceAll(/"127\.0\.0\.1:\d+"/g, () => `"127.0.0.1:${closed--}"`),
  )
  assert.match(
    (await cellsCommand('cells', 'check')).out,
    /The cell one does not answer: the file names its database for two too/,
  )
})
