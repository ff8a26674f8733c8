// A cell whose database is put back to before a merchant left it: it is noticed at the start, nobody is served or worked for until the other cells were asked, and
// what was done in both is named. And a file of cells that names the wrong databases.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { readFileHold, writeFileHold } from '../src/platform/database/fileHold.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { readMap } from '../src/start/cellMap.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { type MoveSide, moveMerchant } from '../src/start/moves/move.ts'
import { watchPutBack } from '../src/start/moves/putBack.ts'
import { settleRestored } from '../src/start/moves/restored.ts'
import { readMove } from '../src/start/moves/store.ts'
import { keepKeys, makeKeys } from '../src/vault/keys.ts'
import { databaseUrl, keepCopy, makeDatabase, putBack, type TestDatabase, withPool } from './support/database.ts'
import { eventually, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { ask, type CellMerchant, cellMerchants, payIn, seedOf, sideOf, type TestCell } from './support/movingCells.ts'
import { type CommandRun, commandLine, manyCommands } from './support/process.ts'
import { boleto } from './support/slips.ts'

const { merchants, nextMerchant } = cellMerchants(24)
const seed = seedOf(merchants)

/** A cell whose gateway can be stopped, and whose database can be put back to a copy. */
class PutBackCell implements TestCell {
  gateway!: TestGateway
  side!: MoveSide & { close(): Promise<void> }
  readonly name: string
  readonly database: TestDatabase
  /** Of its SLIPS_FILE; undefined = those for show. */
  accounts: readonly string[] | undefined
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
    const environment = this.accounts && { SLIPS_FILE: slipsFile(this.accounts) }
    this.gateway = await testGateway({
      database,
      ...(environment && { environment }),
      ...(isNew && this.name === 'one' && { seed }),
    })
    this.side = sideOf(this.name, database.connection)
  }
  async stop(): Promise<void> {
    await this.side.close()
    await this.gateway.stop()
  }
  async restart(accounts: readonly string[]): Promise<void> {
    await this.stop()
    this.accounts = accounts
    await this.start()
  }
  async keepCopy(): Promise<void> {
    await this.stop()
    await keepCopy(this.database.connection)
    await this.start()
  }
  /** The gateway does not run meanwhile. */
  async putBack(): Promise<void> {
    await this.stop()
    await putBack(this.database.connection)
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

/** A file of accounts at a bank, each with a brand of its own name, as ACC_A. */
function slipsFile(accounts: readonly string[]): string {
  const path = join(folder, `slips ${accounts.join(' ')}.json`)
  const beneficiary = {
    name: 'Loja',
    taxId: '11222333000181',
    street: 'Rua Um 1',
    city: 'Santos',
    state: 'SP',
    postcode: '01310100',
  }
  const banks = accounts.map((name, at) => ({
    ...{ name, brand: brandOf(name), bank: '341', modes: ['internal', 'external'], agency: '0057', wallet: '110' },
    ...{ account: String(12345 + at), accountDigit: '7', beneficiary },
  }))
  writeFileSync(path, JSON.stringify({ banks, chains: [] }), { mode: 0o600 })
  return path
}
const brandOf = (account: string): string => account.toUpperCase().replace('-', '_')
/** `account number`, or the code of whatever else was answered. */
async function issueIn(cell: TestCell, merchant: CellMerchant, account: string): Promise<string> {
  const { body } = await ask(cell, merchant, '/v1/payments', {
    ...boleto,
    entityId: merchant.channelId,
    paymentBrand: brandOf(account),
  })
  return body.resultDetails ? `${account} ${body.resultDetails.acquirerTxId1}` : body.result.code
}
async function issueFive(cell: TestCell, merchant: CellMerchant, accounts: readonly string[]): Promise<string[]> {
  const issued: string[] = []
  for (const account of accounts) for (let at = 0; at < 5; at++) issued.push(await issueIn(cell, merchant, account))
  return issued
}
/** Each is a slip, and none has the number of another. */
function assertAllApart(slips: readonly string[]): void {
  for (const slip of slips) assert.match(slip, /^acc-. \d{8}$/)
  assert.equal(new Set(slips).size, slips.length, slips.join(', '))
}

const keysOf = { SEAL_KEY: Buffer.alloc(32, 1).toString('hex'), LOOKUP_KEY: Buffer.alloc(32, 2).toString('hex') }

/** The file as gateways stand now. `unreachable`: the database of the second is none. */
function writeCells({ unreachable = false, swapped = false, same = false } = {}): void {
  const urls = [one, two].map(({ database }) => databaseUrl(database.connection))
  if (swapped) urls.reverse()
  if (same) urls[1] = `${urls[0]}&connect_timeout=9`
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

test("a reference of an acquirer is looked for in all cells, or is nobody's", async () => {
  const [held, other] = [nextMerchant(), nextMerchant()]
  await move(other)
  const known = async (cell: PutBackCell, merchant: CellMerchant): Promise<string> => {
    const id = await paidIn(cell, merchant)
    const more = ',"acquirer":"north","hostReference":"H77"}'
    await cell.gateway.pool.query('update answers set reply = left(reply, length(reply) - 1) || $2 where payment_id = $1', [
      id,
      more,
    ])
    return id
  }
  const id = await known(one, held)
  await known(two, other)
  const csv = join(folder, 'chargebacks.csv')
  const rows = ['R,1,CB,north,H77,1.00,EUR,,2026-01-02', `R,2,CB,,${id},1.00,EUR,,2026-01-02`]
  writeFileSync(csv, ['report,line,type,acquirer,reference,amount,currency,reason,date', ...rows, ''].join('\n'))
  const imported = async () => {
    const { out, code } = await cellsCommand('chargebacks', 'import', csv)
    const booked = [one, two].map(async ({ gateway: { pool } }) =>
      Number((await pool.query(`select count(*) from payments where payment_type = 'CB'`)).rows[0].count),
    )
    return { out, code, booked: await Promise.all(booked) }
  }
  // While it is served by none, in a move.
  writeCells()
  const frozen = (here: boolean) =>
    one.gateway.pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'frozen', $2, 'two', 1, now())
       on conflict (merchant_id) do update set here = $2`,
      [held.id, here],
    )
  await frozen(false)
  const onItsWay = await imported()
  assert.match(onItsWay.out, /line 2 {2}refused {2}several payments have this reference/)
  assert.deepEqual([onItsWay.code, onItsWay.booked], [1, [0, 0]])
  await two.gateway.pool.query(`update answers set reply = replace(reply, 'H77', 'H78') where reply like '%H77%'`)
  assert.match((await imported()).out, /line 2 {2}refused {2}no cell serves its merchant in this moment: give the file again/)
  await two.gateway.pool.query(`update answers set reply = replace(reply, 'H78', 'H77') where reply like '%H78%'`)
  await frozen(true)
  await one.gateway.pool.query('delete from merchant_moves where merchant_id = $1', [held.id])
  // While it is held.
  await one.keepCopy()
  await one.putBack()
  writeCells()
  const isHeld = await imported()
  assert.match(isHeld.out, /line 2 {2}refused {2}it is not known whose it is, and one does not answer/)
  assert.match(isHeld.out, /line 3 {2}refused {2}there is no such payment, and one does not answer/)
  assert.match(isHeld.out, /The cell one does not answer: it was put back, .*cells restored --cells FILE --cell one/)
  assert.deepEqual([isHeld.code, isHeld.booked], [1, [0, 0]])

  // Nor is whoever is held put into another cell, or anybody into this one.
  const file = join(folder, 'seed.json')
  writeFileSync(file, JSON.stringify(seedOf([held])))
  rmSync(map, { force: true })
  const seeded = await cellsCommand('seed', file, '--cell', 'two')
  assert.deepEqual(
    await Promise.all(
      [one, two].map(
        async ({ gateway: { pool } }) => (await pool.query('select from entities where id = $1', [held.id])).rowCount,
      ),
    ),
    [1, 0],
    seeded.out,
  )
  const moved = await cellsCommand('merchants', 'move', other.id, '--to', 'one')
  assert.equal(moved.code, 1)
  assert.match(
    moved.out,
    /^one was put back, .* `tollgate cells restored --cells FILE --cell one` does\. Nobody moves there before\.$/m,
  )
  assert.equal((await payIn(two, other)).status, 200)

  assert.equal((await restored()).code, 0)
  const after = await imported()
  assert.match(after.out, /line 2 {2}refused {2}several payments have this reference/)
  assert.match(after.out, /line 3 {2}recorded/)
  assert.deepEqual(after.booked, [1, 0])
})

test('a cell whose database takes no writes is asked nothing', async () => {
  const databaseName = one.database.connection.database
  const set = (value: string) =>
    withPool({ ...one.database.connection, database: 'postgres' }, pool =>
      pool.query(`alter database ${databaseName} ${value}`).then(() => {}),
    )
  writeCells()
  assert.equal((await cellsCommand('cells', 'map')).code, 0)
  const before = [...readMap(map)]
  await set('set default_transaction_read_only = on')
  try {
    const silence = /^The cell one does not answer: its database takes no writes: it is a standby, or was set to be read only\.$/m
    for (const words of [
      ['cells', 'restored', '--cell', 'one'],
      ['cells', 'restored', '--cell', 'two'],
      ['cells', 'check'],
      ['cells', 'map'],
    ]) {
      const { code, out } = await cellsCommand(...words)
      assert.equal(code, 1)
      assert.match(out, silence)
      assert.doesNotMatch(out, /\n {4}at /)
    }
  } finally {
    await set('reset default_transaction_read_only')
  }
  assert.deepEqual([...readMap(map)], before)
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
  await putBack(one.database.connection)
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
  const [merchant, gone, staying] = [nextMerchant(), nextMerchant(), nextMerchant()]
  await paidIn(one, merchant)
  await one.restart(['acc-a'])
  const issued = await issueFive(one, merchant, ['acc-a'])
  one.accounts = []
  await one.keepCopy()
  await move(merchant)
  await move(gone)
  await two.restart(['acc-a', 'acc-b'])
  issued.push(...(await issueFive(two, merchant, ['acc-a', 'acc-b'])))
  await forgetMerchant(one.side, two.side, merchant.id)
  await two.restart([])
  await move(merchant, two, one)
  await forgetMerchant(two.side, one.side, merchant.id)
  one.accounts = ['acc-a', 'acc-b']
  await one.putBack()
  writeCells()
  const refused = async (id: string, why: RegExp) => {
    const { code, out } = await restored('--serve', merchant.id, id)
    assert.equal(code, 1)
    assert.match(out, why)
    assert.equal((await payIn(one, merchant)).status, 503, 'nothing is done')
  }
  await refused(gone.id, new RegExp(`The merchant ${gone.id} is in two`))
  const asked = await restored()
  assert.equal(asked.code, 1)
  assert.match(asked.out, new RegExp(`The merchant ${merchant.id} is refused: two has sent it back here after that moment`))
  assert.equal((await payIn(one, merchant)).status, 503)

  writeCells({ unreachable: true })
  const alone = await restored('--serve', merchant.id)
  assert.equal(alone.code, 1)
  assert.match(alone.out, new RegExp(`The merchant ${merchant.id} is refused: two could not be asked`))
  assert.equal((await payIn(one, merchant)).status, 503)
  writeCells()
  await refused('nonsense', /There is no merchant nonsense in one/)
  await refused(staying.id, new RegExp(`The merchant ${staying.id} is not held in one`))
  await refused(gone.id, new RegExp(`The merchant ${gone.id} is not held in one`))
  assert.equal((await restored('--serve', merchant.id)).code, 0)
  await eventually(async () => (await payIn(one, merchant)).status === 200, 'it is served')
  assertAllApart([...issued, ...(await issueFive(one, merchant, ['acc-a', 'acc-b']))])
  const stayed = await one.gateway.pool.query(`select from audit where action = 'merchantStayed' and subject = $1`, [merchant.id])
  assert.equal(stayed.rowCount, 1)
})

test('who was on its way at that moment, and came back after it, is served without a fence', async () => {
  const merchant = nextMerchant()
  await paidIn(one, merchant)
  const tell = (step: string) => {
    if (step === 'fenced') throw new Error('broken')
  }
  const order = { source: one.side, target: two.side, merchantId: merchant.id, patienceSeconds: 2, refusalSeconds: 60, tell }
  await assert.rejects(moveMerchant(order), /broken\none serves the merchant as before/)
  // As while it was fenced.
  const onItsWay = async (is: boolean) => {
    const values = [merchant.id, is ? 'fenced' : 'copying', !is]
    await one.gateway.pool.query('update merchant_moves set state = $2, here = $3 where merchant_id = $1', values)
    await one.gateway.pool.query(`alter table payments ${is ? 'enable' : 'disable'} trigger elsewhere_${merchant.id}`)
  }
  await onItsWay(true)
  await one.keepCopy()
  await onItsWay(false)
  await move(merchant)
  await forgetMerchant(one.side, two.side, merchant.id)
  await move(merchant, two, one)
  await one.putBack()
  writeCells()
  const asked = await restored()
  assert.equal(asked.code, 1)
  assert.match(asked.out, new RegExp(`The merchant ${merchant.id} is refused: two has sent it back here after that moment`))
  const served = await restored('--serve', merchant.id)
  assert.equal(served.code, 0, served.out)
  await eventually(async () => (await payIn(one, merchant)).status === 200, 'it is served')
})

test('who comes back to a cell that was put back meanwhile gets numbers that nobody has given', async () => {
  const merchant = nextMerchant()
  await one.restart(['acc-c'])
  const issued = await issueFive(one, merchant, ['acc-c'])
  one.accounts = []
  await one.keepCopy()
  await move(merchant)
  await two.restart(['acc-c'])
  issued.push(...(await issueFive(two, merchant, ['acc-c'])))
  one.accounts = ['acc-c']
  await one.putBack()
  writeCells()
  assert.equal((await restored()).code, 0)
  await forgetMerchant(one.side, two.side, merchant.id)
  await two.restart([])
  await move(merchant, two, one)
  await eventually(async () => (await payIn(one, merchant)).status === 200, 'it is served')
  assertAllApart([...issued, ...(await issueFive(one, merchant, ['acc-c']))])
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
  await move(merchant)
  ticks[0]!()
  await new Promise(resolve => setTimeout(resolve, 500))
  await pool.query('update merchant_moves set steps = steps - 1 where merchant_id = $1', [merchant.id])
  await stands(line)
  ticks[0]!()
  await eventually(async () => (await elsewhere()) > 0, 'what it had seen is lost')
  writeCells()
  assert.equal((await restored()).code, 0)
})

test('a map tells several cells that they are, and nobody who has not their keys or whom a file names alone', async () => {
  writeCells()
  const { cells } = JSON.parse(readFileSync(file, 'utf8'))
  const stranger = await makeDatabase()
  await withPool(stranger.connection, async pool => {
    await keepMode(pool, 'sandbox', Date.now())
    await inTransaction(pool, db => keepKeys(db, makeKeys([Buffer.alloc(32, 3)], Buffer.alloc(32, 4)), Date.now()))
  })
  const knows = ({ connection }: TestDatabase) =>
    withPool(connection, async pool => (await pool.query('select in_cells as known from installation')).rows[0].known as boolean)
  const own = join(folder, 'others.json')
  const mapOf = async (...named: unknown[]) => {
    writeFileSync(own, JSON.stringify({ map: 'others.map', cells: named }), { mode: 0o600 })
    const { out } = await commands.run('cells', 'map', '--cells', own)
    assert.match(out, /others\.map (is written|stands)/)
  }
  const mistyped = {
    name: 'three',
    gateways: ['127.0.0.1:9'],
    environment: { ...cells[0].environment, DATABASE_URL: databaseUrl(stranger.connection) },
  }
  await mapOf(cells[0])
  assert.equal(await knows(one.database), false, 'a file of one cell')
  await mapOf(cells[0], mistyped)
  assert.deepEqual([await knows(one.database), await knows(stranger)], [false, false], 'neither is known to be right')
  const away = { ...mistyped, environment: { ...mistyped.environment, DATABASE_URL: 'postgres://127.0.0.1:9/none' } }
  await mapOf(cells[0], away)
  assert.equal(await knows(one.database), true, 'no other cell answers')
  await mapOf(...cells, mistyped)
  assert.deepEqual([await knows(one.database), await knows(two.database), await knows(stranger)], [true, true, false])
  appendFileSync(join(folder, 'others.map'), `${'e7'.repeat(16)} ${cells[1].name}\n`)
  await mapOf(cells[0])
  assert.equal(await knows(one.database), true, 'the map has lines of another, which the file has forgotten')
  const { out } = await commands.run('cells', 'map', '--cells', own, '--without', cells[1].name)
  assert.doesNotMatch(out, /The map leads to/)
  assert.equal(await knows(one.database), false, 'it is said to be gone')
  await stranger.drop()
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

test('a file that names the databases of two cells the wrong way round writes no map, and moves nobody', async () => {
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
  const movesBefore = (await one.gateway.pool.query('select from merchant_moves')).rowCount
  const move = await cellsCommand('merchants', 'move', merchants.at(-1)!.id, '--to', 'two')
  assert.equal(move.code, 1)
  assert.match(
    move.out,
    /No cell that answers has the merchant .*\nThe cell one does not answer: its gateway .* works on another database/,
  )
  assert.equal((await one.gateway.pool.query('select from merchant_moves')).rowCount, movesBefore)
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

test('a cell of which no gateway answers is named, and no merchant changes hands with it', async () => {
  const [merchant, gone] = [nextMerchant(), nextMerchant()]
  await move(gone)
  writeCells()
  assert.equal((await cellsCommand('cells', 'map')).code, 0)
  const silent = 'none of its gateways says which database it works on: start one, and ask from its network'
  for (const cell of [one, two]) {
    writeCells()
    writeFileSync(file, readFileSync(file, 'utf8').replace(new URL(cell.gateway.baseUrl).host, '127.0.0.1:9'))
    const { code, out } = await cellsCommand('cells', 'check')
    assert.equal(code, 1)
    assert.match(out, new RegExp(`^The cell ${cell.name} serves nobody, as far as can be told: ${silent}\\.\n1 findings`))
    for (const words of [
      ['merchants', 'move', merchant.id, '--to', 'two'],
      ['merchants', 'forget', gone.id],
      ['cells', 'restored', '--cell', 'one'],
    ]) {
      const refused = await cellsCommand(...words)
      assert.equal(refused.code, 1)
      assert.match(refused.out, new RegExp(`The cell ${cell.name} does not answer: ${silent}`))
    }
    assert.equal((await commandLine({}, 'doctor', '--cells', file)).code, 0, 'what changes no hands goes on')
  }
  assert.equal((await payIn(one, merchant)).status, 200)
})

test('who had left at that moment, and came back after it, is named; and served where anything of it is there', async () => {
  const [left, half, forgotten] = [nextMerchant(), nextMerchant(), nextMerchant()]
  for (const merchant of [left, half, forgotten]) {
    await paidIn(one, merchant)
    await move(merchant)
  }
  await forgetMerchant(one.side, two.side, forgotten.id)
  const isHalfForgotten = (is: boolean) =>
    one.gateway.pool.query('update merchant_moves set state = $2 where merchant_id = $1', [half.id, is ? 'forgetting' : 'moved'])
  await isHalfForgotten(true)
  await one.keepCopy()
  await isHalfForgotten(false)
  for (const merchant of [left, half]) await forgetMerchant(one.side, two.side, merchant.id)
  for (const merchant of [left, half, forgotten]) await move(merchant, two, one)
  await one.putBack()
  writeCells()
  const asked = await restored()
  assert.equal(asked.code, 1)
  const refused = (id: string) => `The merchant ${id} is refused: two has sent it back here after that moment`
  assert.match(asked.out, new RegExp(`${refused(left.id)}, and what was paid in between is there alone`))
  for (const { id } of [half, forgotten]) {
    assert.match(asked.out, new RegExp(`${refused(id)}, when nothing of it was here: restore one to after that`))
    const nothing = await restored('--serve', id)
    assert.equal(nothing.code, 1)
    assert.match(nothing.out, /^(There is no merchant|Nothing of the merchant)/)
  }
  const served = await restored('--serve', left.id)
  assert.equal(served.code, 1, 'one of three is decided')
  assert.doesNotMatch(served.out, new RegExp(left.id))
  await eventually(async () => (await payIn(one, left)).status === 200, 'it is served')
  assert.equal((await one.gateway.pool.query('select from payments where merchant_id = $1', [forgotten.id])).rowCount, 0)
  // Where its rows are.
  const there = await cellsCommand('cells', 'restored', '--cell', 'two', '--serve', half.id, forgotten.id)
  assert.equal(there.code, 0, there.out)
  for (const merchant of [half, forgotten]) {
    await eventually(async () => (await payIn(two, merchant)).status === 200, 'it is served')
    assert.notEqual((await payIn(one, merchant)).status, 200)
  }
  assert.equal((await restored()).code, 0)
})

test('who came to a cell after the moment to which it was put back is named by all who ask', async () => {
  const [merchant, onItsWay] = [nextMerchant(), nextMerchant()]
  for (const each of [merchant, onItsWay]) await paidIn(one, each)
  const arriving = { source: one.side, target: two.side, merchantId: onItsWay.id, patienceSeconds: 2, refusalSeconds: 60 }
  const tell = (step: string) => {
    if (step === 'copied') throw new Error('broken')
  }
  await assert.rejects(moveMerchant({ ...arriving, tell }))
  await two.keepCopy()
  await move(merchant)
  await move(onItsWay)
  writeCells()
  const before = await cellsCommand('cells', 'check')
  assert.doesNotMatch(before.out, new RegExp(`${merchant.id} is served by no cell|${onItsWay.id} is served by no cell`))
  await two.putBack()
  writeCells()
  const lost = (id: string) =>
    new RegExp(
      `The merchant ${id} is served by no cell: one has handed it over to two, which does not have it: restore two to after that, or serve what one had`,
    )
  const restoredTwo = await cellsCommand('cells', 'restored', '--cell', 'two')
  assert.equal(restoredTwo.code, 1)
  assert.match(restoredTwo.out, lost(merchant.id))
  assert.match(
    restoredTwo.out,
    new RegExp(`${onItsWay.id} is refused: one has handed it over .* restore two to after that, or serve`),
  )
  const byWord = await cellsCommand('cells', 'restored', '--cell', 'two', '--serve', onItsWay.id)
  assert.match(byWord.out, /^Of the merchant .* a part was copied to two, and no more/)
  for (const asked of [await cellsCommand('cells', 'map'), await cellsCommand('cells', 'check')]) {
    assert.equal(asked.code, 1)
    for (const { id } of [merchant, onItsWay]) assert.match(asked.out, lost(id))
  }
  for (const cell of [one, two]) assert.notEqual((await payIn(cell, merchant)).status, 200)
  writeCells({ unreachable: true })
  assert.doesNotMatch((await cellsCommand('cells', 'check')).out, /is served by no cell/)
  const both = ['--serve', merchant.id, onItsWay.id]
  assert.match((await restored(...both)).out, /is not held in one, and two could not be asked/)
  assert.equal((await payIn(one, merchant)).status, 503)
  writeCells()
  const served = await restored(...both)
  assert.equal(served.code, 0, served.out)
  for (const { id } of [merchant, onItsWay])
    assert.match(
      served.out,
      new RegExp(`The merchant ${id} is served by one as it was when it left: what two did for it is lost`),
    )
  for (const each of [merchant, onItsWay]) {
    await eventually(async () => (await payIn(one, each)).status === 200, 'it is served')
    assert.notEqual((await payIn(two, each)).status, 200)
  }
  assert.match((await restored('--serve', merchant.id)).out, /is not held in one/)
  assert.equal((await cellsCommand('cells', 'restored', '--cell', 'two')).code, 0)
  assert.equal((await cellsCommand('cells', 'map')).code, 0)
  for (const each of [merchant, onItsWay]) await move(each) // as any other
  assert.equal((await payIn(two, onItsWay)).status, 200)
})

test('who was handed over to a cell that is lost is served where it was, with numbers of slips that nobody has', async () => {
  const merchant = nextMerchant()
  await one.restart(['acc-d'])
  const issued = await issueFive(one, merchant, ['acc-d'])
  await writeFileHold(one.side.database.work, { held: false, released: [], after: null })
  await one.side.database.work.query(
    `insert into refund_transfers (merchant_id, payment_id, account, ordered_at) values ($1, $1, 'acc-d', now())`,
    [merchant.id],
  )
  const skip = (count: number) =>
    commands.runIn(
      { ...keysOf, DATABASE_URL: databaseUrl(one.database.connection), SLIPS_FILE: slipsFile(['acc-d']) },
      ...['slips', 'skip', 'acc-d', String(count)],
    )
  await one.restart([])
  await two.keepCopy()
  const order = { source: one.side, target: two.side, merchantId: merchant.id, patienceSeconds: 2, refusalSeconds: 60 }
  writeCells()
  for (const broken of ['handing', 'arrived']) {
    const tell = (step: string) => {
      if (step === broken) throw new Error('broken')
    }
    await assert.rejects(moveMerchant({ ...order, tell }), /two may have taken over/)
    assert.match((await restored('--serve', merchant.id)).out, /is not held in one\./, 'two may have it, or has it')
  }
  await two.restart(['acc-d'])
  issued.push(...(await issueFive(two, merchant, ['acc-d'])))
  two.accounts = []
  await two.putBack()
  writeCells()
  assert.equal((await cellsCommand('cells', 'restored', '--cell', 'two')).code, 0)
  const stuck = await cellsCommand('merchants', 'move', merchant.id, '--to', 'two')
  assert.match(
    stuck.out,
    new RegExp(`If that is lost, .tollgate cells restored --cells FILE --cell one --serve ${merchant.id}. serves`),
  )
  const asked = { own: one.side, others: [two.side], silent: ['three'], mapped: new Map(), serve: [merchant.id] }
  await assert.rejects(settleRestored(asked), /is not held in one, and three could not be asked\.$/)
  const skipped = await skip(100)
  assert.deepEqual(
    [skipped.code, skipped.out],
    [0, 'acc-d goes on behind 105, where its numbers are given out: another cell does.\n'],
  )
  const served = await restored('--serve', merchant.id)
  assert.equal(served.code, 0, served.out)
  assert.equal((await readFileHold(one.side.database.work)).held, true, 'the other cell may have sent what is open here')
  assert.ok(
    (await readMove(one.side.database.work, merchant.id))!.run > 1_000_000,
    'no backup of the other cell that turns up later has the word',
  )
  assert.match(served.out, /Slips that two has issued since .* their numbers must be passed over .*, of acc-d\./)
  await one.restart(['acc-d'])
  assertAllApart([...issued, ...(await issueFive(one, merchant, ['acc-d']))])
  await one.restart([])
})
