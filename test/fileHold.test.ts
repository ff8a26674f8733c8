// Capture files and order files behind a database that was put back: what the copy holds is in files that the acquirer and the bank have had since. What counts is
// what lies in their folders.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { importAcknowledgement } from '../src/clearing/captures/acknowledge.ts'
import { type CaptureParts, captureFile } from '../src/clearing/captures/write.ts'
import { bookingsOfDay } from '../src/clearing/reconciliation/bookings.ts'
import { dayAfter, dayOf } from '../src/clearing/reconciliation/day.ts'
import { subjectOf } from '../src/clearing/reconciliation/store.ts'
import { type OrderFileParts, orderFile } from '../src/clearing/remittance/write.ts'
import { dialectOf } from '../src/connectors/cards/iso8583/dialects.ts'
import { readSlipsFile } from '../src/connectors/slips/accounts.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database, inTransaction } from '../src/platform/database/connect.ts'
import { readFileHold, writeFileHold } from '../src/platform/database/fileHold.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { statementsOf } from '../src/platform/database/migrate.ts'
import { takeCaptures } from '../src/sandbox/acquirerHost/captures.ts'
import { readOrders } from '../src/sandbox/slipBank/orders.ts'
import { reasonsToStay } from '../src/start/moves/check.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { databaseUrl, keepCopy, makeDatabase, putBack, type TestDatabase, withPool } from './support/database.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile, type TestHost, testHost } from './support/host.ts'
import { manyCommands } from './support/process.ts'
import { boleto } from './support/slips.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-held-'))
const [captured, remitted] = [join(folder, 'captures'), join(folder, 'orders')]
for (const one of [captured, remitted]) mkdirSync(one)
const captures = { by: 'file', folder: captured, everyMinutes: 1440 }
const slips = JSON.parse(readFileSync(new URL('../seeds/slips.json', import.meta.url), 'utf8'))
delete slips.$schema
slips.banks[0].remittance = { layout: 'cnab240', folder: remitted }
const slipsFile = join(folder, 'slips.json')
writeFileSync(slipsFile, JSON.stringify(slips))

let named: TestDatabase
let host: TestHost
let file: AcquirersFile
let gateway: TestGateway
let database: Database
let commands: ReturnType<typeof manyCommands>
const dialect = dialectOf({
  like: '1987',
  captures: { ...captures, separator: ',', fileName: 'captures-{acquirer}-{sequence}.csv' },
} as never)

before(async () => {
  named = await makeDatabase()
  await withPool(named.connection, async pool => {
    await keepMode(pool, 'sandbox', Date.now())
    await inTransaction(pool, db => keepKeys(db, testKeys, Date.now()))
  })
  host = await testHost({ dialect })
  file = acquirersFile({ north: [host.port] }, { profile: { captures } })
  commands = manyCommands({
    DATABASE_URL: databaseUrl(named.connection),
    SLIPS_FILE: slipsFile,
    ACQUIRERS_FILE: file.path,
    SEAL_KEY: '01'.repeat(32),
    LOOKUP_KEY: '02'.repeat(32),
  })
  await begin()
})
after(async () => {
  commands.stop()
  await end()
  await named.drop()
  await host.stop()
  file.remove()
  rmSync(folder, { recursive: true })
})

async function begin(): Promise<void> {
  const environment = { SLIPS_FILE: slipsFile, ACQUIRERS_FILE: file.path }
  gateway = await testGateway({ environment, database: { ...named, drop: async () => {} } })
  database = connect(gateway.connection, systemClock, () => {})
}
async function end(): Promise<void> {
  await database.close()
  await gateway.stop()
}
async function whileStopped(work: typeof keepCopy): Promise<void> {
  await end()
  await work(named.connection)
  await begin()
}

const parts = () => ({
  database,
  clock: systemClock,
  random: systemRandom,
  keys: testKeys,
  log: { info() {} },
  acquirers: new Map([['north', { options: { name: 'north', account: { acquirerId: '423930' }, dialect } }]]),
  slipAccounts: readSlipsFile(JSON.stringify(slips), 'test'),
})
const writeCaptures = (folder = captured) => {
  const own = { ...dialect, captures: { ...dialect.captures, folder } }
  const acquirers = new Map([['north', { options: { name: 'north', account: { acquirerId: '423930' }, dialect: own } }]])
  return captureFile({ ...parts(), acquirers } as unknown as CaptureParts, { details: { acquirer: 'north' } } as never)
}
const writeOrders = () => orderFile(parts() as unknown as OrderFileParts, { details: { account: 'itau-demo' } } as never)
const filesIn = (folder: string) => readdirSync(folder).sort()
const read = (name: string) => readFileSync(join(captured, name), 'utf8')
/** Of the captures of a file, in minor units. */
const amountsIn = (name: string) =>
  read(name)
    .split('\r\n')
    .slice(1, -2)
    .map(row => Number(row.split(',')[7]))
const openCases = async (kind: string) =>
  (
    await gateway.pool.query('select subject from operator_cases where kind = $1 and closed_at is null order by subject', [kind])
  ).rows.map(({ subject }) => subject as string)

async function capture(amount: string): Promise<string> {
  const hold = await gateway.pay({ paymentType: 'PA', amount, testMode: 'EXTERNAL', ...visa })
  return (await gateway.refer(hold.body.id, { paymentType: 'CP', amount, currency: 'EUR' })).body.id
}
const resultOf = async (id: string) => (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body.result.code
const rules = { name: 'north', acquirerId: '423930', rules: dialect.captures }
/** What became of each line, or why nothing counts. */
async function acknowledge(text: string): Promise<string[]> {
  const told: string[] = []
  const report = await importAcknowledgement(parts() as never, rules, 'said', text, (_, result) =>
    told.push(result.kind === 'refused' ? result.why : result.kind),
  )
  assert.ok(!('broken' in report), JSON.stringify(report))
  return told
}
const bookedAmounts = async () => {
  const today = dayOf(Date.now(), dialect.reconciliation)
  const days = [dayAfter(today, -1), today]
  const found = await Promise.all(days.map(day => bookingsOfDay(gateway.pool, 'north', day, dialect.reconciliation)))
  return found.flat().map(({ amount }) => amount)
}
const waitingCaptures = async () =>
  JSON.parse((await commands.run('acquirers', 'captures', '--acquirer', 'north', '--waiting', '--json')).stdout).captures as {
    captureId: string
    trace: string
    reference: string
    amount: string
    file: number | null
  }[]
const accept = (id: string) => commands.run('acquirers', 'accept', id, '--reason', 'they say so')
const release = (behind: string) => commands.run('acquirers', 'release', 'north', '--behind', behind)

describe('capture files of a database that was put back', () => {
  it('wait until somebody has said what the acquirer has, and carry nothing that it has', async () => {
    await capture('5.00')
    await writeCaptures()
    assert.deepEqual(await acknowledge(takeCaptures(host.ledger, read('captures-north-000001.csv'), '423930')), ['recorded'])
    const [taken, rejected, silent] = [await capture('6.00'), await capture('7.00'), await capture('8.00')]
    await whileStopped(keepCopy)
    await capture('9.00')
    await writeCaptures()
    assert.deepEqual(amountsIn('captures-north-000002.csv'), [600, 700, 800, 900])
    const rows = takeCaptures(host.ledger, read('captures-north-000002.csv'), '423930').split('\r\n')
    const [head, first, second, third, fourth] = rows as [string, string, string, string, string]
    const said = [head, first, second.replace('ACCEPTED', 'REJECTED'), fourth, 'TOTAL,3', ''].join('\r\n')
    await whileStopped(putBack)
    assert.deepEqual(await openCases('capturesHeld'), ['north'], 'a start tells of it')
    const fresh = await capture('10.00')
    await writeCaptures()
    assert.equal(filesIn(captured).length, 2)
    assert.deepEqual(await bookedAmounts(), [500])

    const told = await acknowledge(said)
    assert.match(told[1]!, /^the acquirer rejects it/)
    assert.deepEqual([told[0], told[2]], ['recorded', 'the file has no such capture'])
    assert.equal((await openCases('captureLine')).length, 2)
    const again = await acknowledge(said.replace('TOTAL,', 'TOTAL, '))
    assert.deepEqual([again[0], again[2]], ['known', 'the file has no such capture'])
    assert.deepEqual(await openCases('captureUnacknowledged'), [])
    assert.deepEqual((await bookedAmounts()).sort(), [500, 600], 'what it has counts with it')

    const staysFor = /^Its captures wait until somebody says what the acquirer has: `tollgate acquirers release north`/
    const stays = async () => (await reasonsToStay(gateway.pool, sandbox.merchantId)).filter(one => staysFor.test(one)).length
    assert.equal(await stays(), 1, 'another cell would send them again')
    const waiting = await waitingCaptures()
    assert.deepEqual(
      waiting.map(({ captureId, amount }) => [captureId, amount]),
      [
        [silent, '8.00'],
        [fresh, '10.00'],
      ],
    )
    assert.ok(third.includes(`,${waiting[0]!.trace},${waiting[0]!.reference}`), 'as the acquirer names it')
    assert.match((await accept(taken)).stderr, /waits for no file/)
    assert.match((await accept('f'.repeat(32))).stderr, /^There is no capture/)
    assert.equal((await accept(silent)).code, 0)
    assert.deepEqual(
      (await waitingCaptures()).map(({ captureId }) => captureId),
      [fresh],
    )

    assert.match((await release('0')).stderr, /^The last file of north that this database knows is 1: /)
    assert.match((await release('10002')).stderr, /^The last file of north/)
    assert.match((await commands.run('acquirers', 'release', 'south', '--behind', '2')).stderr, /^There is no acquirer south/)
    const released = await release('2')
    assert.deepEqual([released.code, released.out], [0, 'north goes on with file 3, for which 1 captures wait.\n'])
    assert.equal((await release('2')).stderr, 'No capture files of north wait to be released.\n')
    assert.deepEqual([await openCases('capturesHeld'), await stays()], [[], 0])
    await writeOrders()
    assert.deepEqual([await openCases('ordersHeld'), filesIn(remitted)], [['itau-demo'], []], 'other files wait on')
    assert.match((await accept(fresh)).stderr, /goes into the next file/)
    await writeCaptures()
    assert.deepEqual([filesIn(captured).length, amountsIn('captures-north-000003.csv')], [3, [1000]])
    const corrected = [head, second, 'TOTAL,1', ''].join('\r\n')
    assert.deepEqual(await acknowledge(corrected), ['recorded'], 'what was found so is found again')
    for (const id of [taken, rejected, silent, fresh]) assert.equal(await resultOf(id), '000.100.112')
    assert.deepEqual((await examine(gateway.pool)).findings, [])
    const { rows: audited } = await gateway.pool.query(`select action from audit where action like 'capture%' order by sequence`)
    assert.deepEqual(
      audited.map(({ action }) => action),
      ['captureAccepted', 'capturesReleased'],
    )
  })

  it('take what was in one that was not on disk into the next, but for what the acquirer has', async () => {
    const [has, lacks] = [await capture('11.00'), await capture('12.00')]
    await assert.rejects(writeCaptures('/nowhere/at/all'), /ENOENT/)
    assert.deepEqual(
      (await waitingCaptures()).map(({ captureId, file }) => [captureId, file]),
      [
        [has, 4],
        [lacks, 4],
      ],
      'nobody has it yet',
    )
    await gateway.pool.query(`update installation set stands_on = 'another 1 00000001'`)
    await writeCaptures()
    assert.equal(filesIn(captured).length, 3, 'before anybody has looked, too')
    await end()
    await begin()
    await writeCaptures()
    assert.equal(filesIn(captured).length, 3)
    const { trace, reference } = (await waitingCaptures())[0]!
    const said = `ACKNOWLEDGEMENT,423930,7\r\nACCEPTED,3,${trace},${reference},\r\nTOTAL,1\r\n`
    assert.deepEqual(await acknowledge(said), ['recorded'])
    assert.equal((await release('9')).code, 0)
    await writeCaptures()
    assert.deepEqual(filesIn(captured).slice(3), ['captures-north-000010.csv'])
    assert.deepEqual(amountsIn('captures-north-000010.csv'), [1200])
  })

  it('that wait for nobody take no word about a file that is not known', async () => {
    const id = await capture('13.00')
    const { trace, reference } = (await waitingCaptures())[0]!
    const said = `ACKNOWLEDGEMENT,423930,400\r\nACCEPTED,1,${trace},${reference},\r\nTOTAL,1\r\n`
    assert.deepEqual(await acknowledge(said), ['the file has no such capture'])
    await writeCaptures()
    assert.deepEqual(amountsIn('captures-north-000011.csv'), [1300])
    assert.match((await accept(id)).stderr, /waits for no file/)
  })
})

describe('order files of a database that was put back', () => {
  const issue = async () => {
    const { status, body } = await gateway.post('/v1/payments', { ...boleto, testMode: 'EXTERNAL' })
    assert.equal(status, 200, JSON.stringify(body))
    return body.resultDetails.acquirerTxId1 as string
  }
  const releaseOrders = (behind: number) => commands.run('slips', 'release', 'itau-demo', '--behind', String(behind))
  const numbersIn = (name: string) =>
    readOrders(readFileSync(join(remitted, name), 'latin1'), '341', 'cnab240').titles.map(({ number }) => number)
  const lastOf = (names: readonly string[]) => Number(names.at(-1)!.slice(-10, -4))

  it('wait until somebody has said what the bank has, and go on behind it', async () => {
    await writeFileHold(gateway.pool, { held: false, released: [], after: null })
    await issue()
    await writeOrders()
    const known = lastOf(filesIn(remitted))
    await whileStopped(keepCopy)
    const waiting = await issue()
    await writeOrders()
    // The gateway may be writing them itself.
    const had = await eventually(async () => {
      const files = filesIn(remitted)
      return lastOf(files) > known && files
    }, 'the order is written')
    await whileStopped(putBack)
    assert.deepEqual(await openCases('ordersHeld'), ['itau-demo'], 'a start tells of it')
    const [fresh, more] = [await issue(), await issue()]
    assert.equal(fresh, waiting, 'the same number comes again: see slips skip')
    await writeOrders()
    assert.deepEqual(filesIn(remitted), had)
    const staysFor = /^Its orders wait until somebody says what the bank has: `tollgate slips release itau-demo`/
    const stays = async () => (await reasonsToStay(gateway.pool, sandbox.merchantId)).filter(one => staysFor.test(one)).length
    assert.equal(await stays(), 1)
    assert.match((await releaseOrders(known - 1)).stderr, /^The last file of itau-demo that this database knows/)
    assert.match((await releaseOrders(known + 10_001)).stderr, /^The last file of itau-demo that this database knows/)
    assert.match((await commands.run('slips', 'release', 'oxxo-demo', '--behind', '2')).stderr, /^SLIPS_FILE has no bank/)
    const behind = lastOf(had)
    const released = await releaseOrders(behind)
    assert.deepEqual(
      [released.code, released.out],
      [0, `itau-demo goes on with file ${behind + 1}, for which 2 orders of slips wait.\n`],
    )
    assert.match((await releaseOrders(behind)).stderr, /^No order files of itau-demo wait to be released/)
    assert.deepEqual([await openCases('ordersHeld'), await stays()], [[], 0])
    await writeOrders()
    const [next, ...others] = filesIn(remitted).filter(name => !had.includes(name))
    assert.deepEqual([lastOf([next!]), others], [behind + 1, []])
    const numbers = numbersIn(next!)
    assert.equal(numbers.length, 2)
    for (const [at, number] of [fresh, more].entries()) assert.ok(numbers[at]!.includes(number))
    assert.equal((await gateway.pool.query(`select from audit where action = 'ordersReleased'`)).rowCount, 1)
  })

  it('take what was in one that was not on disk into the next', async () => {
    await issue()
    rmSync(remitted, { recursive: true })
    await assert.rejects(writeOrders(), /ENOENT/)
    mkdirSync(remitted)
    await gateway.pool.query(`update installation set stands_on = 'another 1 00000001'`)
    await writeOrders()
    assert.deepEqual(filesIn(remitted), [], 'before anybody has looked, too')
    await end()
    await begin()
    await writeOrders()
    assert.deepEqual(filesIn(remitted), [])
    assert.equal((await readFileHold(gateway.pool)).held, true)
    assert.equal((await releaseOrders(40)).code, 0)
    await writeOrders()
    assert.deepEqual(filesIn(remitted), ['itau-demo-000041.rem'])
    assert.equal(numbersIn('itau-demo-000041.rem').length, 1)
  })
})

it('whose files of transfers were released before there were others stays released', async () => {
  const migration = readFileSync(new URL('../migrations/0052_file_hold.sql', import.meta.url), 'utf8')
  const client = await gateway.pool.connect()
  try {
    await client.query(
      'create temporary table installation as select true as transfers_held, $1::text[] as transfers_released, null as transfers_held_after',
      [['itau-1', 'çaixa']],
    )
    for (const statement of statementsOf(migration)) await client.query(statement)
    const { rows } = await client.query('select files_released as released from pg_temp.installation')
    assert.deepEqual(
      rows[0].released,
      ['itau-1', 'çaixa'].map(name => subjectOf('transfers', name)),
    )
  } finally {
    client.release(true)
  }
})
