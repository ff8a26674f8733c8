// Files of receipts and scheduled reports on the servers of others: what is on the server counts, and that every period is owed once, whatever the server does.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { XMLParser } from 'fast-xml-parser'
import { recordChargeback } from '../src/clearing/chargebacks/chargebacks.ts'
import { recordReceipt } from '../src/clearing/receipts/receipts.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { applySeed, readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import type { Egress } from '../src/platform/egress/address.ts'
import { sftpOpener } from '../src/platform/sftp/open.ts'
import { keepContent, keptFile } from '../src/reporting/owedFiles/keep.ts'
import { periodAfter, periodOf } from '../src/reporting/owedFiles/period.ts'
import {
  addPiece,
  beginFile,
  beginPut,
  countOwed,
  dropOwed,
  findOwed,
  insertOwed,
  isPutBy,
  keepFile,
  oweAgain,
} from '../src/reporting/owedFiles/store.ts'
import { deliverReceipts, type ReceiptFileParts, receiptSource, retryReceipts } from '../src/reporting/receiptFiles/deliver.ts'
import { reportContent } from '../src/reporting/schedules/content.ts'
import { deliverScheduled, reportFileName } from '../src/reporting/schedules/deliver.ts'
import { makeSchedule, type ReportSchedule, stopSchedule } from '../src/reporting/schedules/schedule.ts'
import { type Body, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { signedIn } from './support/office.ts'
import { keyPair, type SftpTestServer, startSftpServer } from './support/sftpServer.ts'

const dayMilliseconds = 86_400_000
let now = Date.UTC(2030, 5, 10, 12)
const clock = clockWith(() => now++)
const ours = keyPair()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-receipts-'))
const inbox = join(folder, 'in')
const egress: Egress = { allow: new BlockList(), httpsOnly: false, standardPortsOnly: false }
egress.allow.addSubnet('127.0.0.0', 8, 'ipv4')

let gateway: TestGateway
let database: Database
let server: SftpTestServer
let parts: ReceiptFileParts & Parameters<typeof recordReceipt>[0]
let day = '2030-06-10'
before(async () => {
  server = await startSftpServer(folder, ours.public)
  gateway = await testGateway({ clock })
  database = connect(gateway.connection, clock, () => {})
  await setReceiptFiles({})
  const directory = await openDirectory(database, testKeys, clock, () => {})
  parts = {
    database,
    directory,
    clock,
    random: systemRandom,
    build: 'test',
    methods: new Map([['BOLETO', { code: 'PP' }]]),
    sandbox: true,
    sftp: sftpOpener(clock, ours.private, egress, async () => []),
    log: { warn() {}, info() {} },
  } as unknown as typeof parts
})
after(async () => {
  await parts.directory.close()
  await database.close()
  await gateway.stop()
  await server.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  rmSync(inbox, { recursive: true, force: true })
  mkdirSync(inbox)
  server.faults.clear()
})

/** The merchant of the sandbox wants files. */
async function setReceiptFiles(more: object): Promise<void> {
  const seed = JSON.parse(readFileSync(new URL('../seeds/sandbox.json', import.meta.url), 'utf8'))
  const receiptFiles = {
    host: '127.0.0.1',
    port: server.port,
    user: 'us',
    hostKey: server.hostKey,
    folder: '/in',
    forms: ['csv', 'xml'],
    ...more,
  }
  Object.assign(seed.divisions[0].merchants[0].settings, { receiptFiles })
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed))
  await applySeed(gateway.pool, testKeys, clock, systemRandom, readSeed(join(folder, 'seed.json')))
  await parts?.directory.reload()
}

async function receive(amount: string, more: Record<string, string> = {}): Promise<string> {
  const { body } = await gateway.post('/v1/payments', {
    entityId: sandbox.entityId,
    paymentType: 'PA',
    paymentBrand: 'BOLETO',
    amount,
    currency: 'BRL',
    shopperResultUrl: 'https://shop.example/done',
    merchantTransactionId: 'order-0042',
    'customer.givenName': 'Ana',
    'customer.surname': 'Lima',
    'customer.merchantCustomerId': 'customer-1',
    'customer.email': 'ana@example.com',
    'customer.ip': '192.0.2.1',
    'billing.street1': 'Rua 1',
    'billing.city': 'Rio',
    'billing.state': 'RJ',
    'billing.postcode': '01310100',
    'billing.country': 'BR',
    'customParameters[CUSTOM_CPF_number]': '11144477735',
    ...more,
  })
  const { DueDate, acquirerTxId1 } = body.resultDetails
  const receipt = { account: 'itau-demo', number: acquirerTxId1, key: body.id, currency: 'BRL', paidOn: DueDate }
  const said = await recordReceipt(parts, { ...receipt, amount: Math.round(Number(amount) * 100) + 5 })
  return said.kind === 'recorded' ? said.payment.id : ''
}

/** The day ends, and the work is done as due work does it. */
async function endDay(): Promise<void> {
  now = Date.parse(day) + dayMilliseconds + 15 * 60_000
  await work()
}
async function work(): Promise<number> {
  const ended = await deliverReceipts(parts, { merchantId: sandbox.merchantId, details: { day } } as never)
  assert.ok(ended !== 'done')
  day = (ended.details as { day: string }).day
  return ended.again - now
}
const there = () => readdirSync(inbox).sort()
const text = (form: string, of: string) => readFileSync(join(inbox, `receipts_${sandbox.merchantId}_${of}.${form}`), 'utf8')
const counts = async (): Promise<Body> => (await countOwed(gateway.pool))[0]
const openCases = async () =>
  (await gateway.pool.query(`select details from operator_cases where kind = 'receiptFile' and closed_at is null`)).rowCount

describe("a day's receipts", () => {
  it('go to the merchant when the day is over: as CSV, and as the XML of the query', async () => {
    const ended = day
    const first = await receive('10.00')
    const second = await receive('20.00', { merchantTransactionId: '@SUM(1+1)*2, "x";' })
    now = Date.parse(ended) + dayMilliseconds + 15 * 60_000 - 60_000
    await work()
    assert.deepEqual(there(), [], 'the day may have receipts yet')
    await endDay()
    assert.deepEqual(
      there(),
      ['csv', 'xml'].map(form => `receipts_${sandbox.merchantId}_${ended}.${form}`),
    )
    const rows = text('csv', ended).split('\r\n')
    assert.equal(
      rows[0],
      'id,slipId,merchantTransactionId,merchantInvoiceId,entityId,paymentBrand,amount,currency,paidOn,creditedOn,timestamp,testMode,duplicate,late,overpaid,underpaid',
    )
    assert.match(
      rows[1]!,
      new RegExp(
        `^${first},[0-9a-f]{32},order-0042,,${sandbox.entityId},BOLETO,10.05,BRL,2030-06-13,,2030-06-10 12:\\d\\d:\\d\\d\\+0000,INTERNAL,,,0.05,$`,
      ),
    )
    assert.ok(rows[2]!.startsWith(second) && rows[2]!.includes(`,"'@SUM(1+1)*2, ""x"";",`))
    assert.equal(rows.length, 4)
    const { Result } = new XMLParser({ ignoreAttributes: false, attributeNamePrefix: '@', parseTagValue: false }).parse(
      text('xml', ended),
    ).Response
    assert.equal(Result['@count'], '2')
    assert.deepEqual(
      Result.Transaction.map((one: Body) => [one.Identification.UniqueID, one.Processing['@code'], one.Payment.Clearing.Amount]),
      [
        [first, 'PP.RC.90.00', '10.05'],
        [second, 'PP.RC.90.00', '20.05'],
      ],
    )
    assert.deepEqual(await counts(), {
      ownerId: sandbox.merchantId,
      source: receiptSource,
      made: 2,
      delivered: 2,
      scheduled: 0,
      givenUp: 0,
      oldest: null,
      failure: null,
    })
  })

  it('are a file also when there are none, each day one, also of days on which nothing ran', async () => {
    const from = day
    now = Date.parse(day) + 3 * dayMilliseconds + 20 * 60_000
    await work()
    assert.equal(there().length, 6)
    assert.equal(text('csv', from).split('\r\n').length, 2)
    await work()
    assert.equal(there().length, 6)
  })
})

describe('a server that', () => {
  it('breaks off gets the same bytes later, whole or not at all, and nothing twice', async () => {
    const ended = day
    now = Date.parse(ended) + 1000
    await receive('30.00')
    for (const [operation, fault] of [
      ['write', 'cut'],
      ['rename', 'cut'],
    ] as const) {
      server.faults.set(operation, fault)
      await (operation === 'write' ? endDay() : work())
      assert.ok(there().every(name => name.endsWith('.tmp')))
      assert.equal((await counts()).scheduled, 2)
    }
    await work()
    assert.deepEqual(
      there(),
      ['csv', 'xml'].map(form => `receipts_${sandbox.merchantId}_${ended}.${form}`),
    )
    const { delivered, scheduled, givenUp, made } = await counts()
    assert.deepEqual([scheduled, givenUp, made], [0, 0, delivered])
  })

  it('has another file under the name keeps it, and gets the others', async () => {
    const ended = day
    const taken = join(inbox, `receipts_${sandbox.merchantId}_${ended}.csv`)
    writeFileSync(taken, 'theirs')
    await endDay()
    assert.equal(readFileSync(taken, 'utf8'), 'theirs')
    assert.ok(existsSync(join(inbox, `receipts_${sandbox.merchantId}_${ended}.xml`)))
    assert.match((await counts()).failure, /is there already, and is not ours/)
    rmSync(taken)
    await work()
    assert.equal((await counts()).scheduled, 0)
    assert.match(readFileSync(taken, 'utf8'), /^id,/)
  })

  it('shows another key gets nothing, and somebody is told at once; not again and again, and no longer when it is mended', async () => {
    await setReceiptFiles({ hostKey: keyPair().public.trim().split(' ').slice(0, 2).join(' ') })
    await endDay()
    const pause = await work()
    assert.deepEqual([there().length, await openCases()], [0, 2])
    assert.match((await counts()).failure, /another host key/)
    assert.ok(pause >= 3 * 60_000 && pause <= 4 * 60_000, 'the second pause is of four minutes')
    await setReceiptFiles({})
    await work()
    assert.deepEqual([there().length, await openCases()], [2, 0])
  })

  it('refuses in words that no database can say counts as one that refuses, and is given up', async () => {
    server.odd.set('OPEN', (channel, id) => channel.status(id, 4, 'no\0room'))
    await endDay()
    assert.match((await counts()).failure, /no\ufffdroom/)
    const before = await counts()
    now += 7 * dayMilliseconds + 60_000
    await work()
    assert.equal((await counts()).givenUp - before.givenUp, 2)
    server.odd.clear()
    assert.equal(await oweAgain(gateway.pool, sandbox.merchantId, receiptSource, '2030-01-01', now), 2)
    await work()
    assert.deepEqual([(await counts()).scheduled, await openCases()], [0, 0])
  })

  it('stays away for more than a week is given up, with a case; what is owed again is delivered', async () => {
    const ended = day
    await setReceiptFiles({ port: 1 })
    await endDay()
    now += 7 * dayMilliseconds + 60_000
    const before = await counts()
    await work()
    const after = await counts()
    assert.deepEqual([after.givenUp - before.givenUp, await openCases()], [2, 2])
    assert.equal(after.made, after.delivered + after.scheduled + after.givenUp)
    await setReceiptFiles({})
    assert.equal(await retryReceipts({ ...parts, keys: testKeys }, sandbox.merchantId, ended), 2)
    // The gateway's own worker has no key to log in with.
    await gateway.pool.query(`delete from due_work where kind = 'receiptFiles'`)
    const { rows: told } = await gateway.pool.query(
      `select replace(entity_id::text, '-', '') as entity, details::jsonb as details from audit where action = 'filesOwedAgain'`,
    )
    assert.deepEqual(told, [{ entity: sandbox.merchantId, details: { from: ended, count: 2 } }])
    await work()
    assert.ok(there().includes(`receipts_${sandbox.merchantId}_${ended}.csv`))
    assert.deepEqual([(await counts()).scheduled, await openCases()], [0, 0])
  })

  it('is given up, and delivered, together with what its case says', async () => {
    const fails = (of: string) =>
      gateway.pool.query(`create function fail() returns trigger language plpgsql as $$ begin raise exception 'no cases now'; end $$;
        create trigger fails before ${of} on operator_cases for each row execute function fail()`)
    const standing = async () => {
      const { scheduled, givenUp, delivered } = await counts()
      return { scheduled, givenUp, delivered, cases: await openCases() }
    }
    await setReceiptFiles({ port: 1 })
    await endDay()
    const owed = await standing()
    now += 7 * dayMilliseconds + 60_000
    await fails('insert')
    await assert.rejects(work(), /no cases now/)
    const { givenUp, cases } = await standing()
    assert.deepEqual([givenUp, cases], [owed.givenUp, 0])
    await gateway.pool.query('drop function fail cascade')
    await work()
    assert.equal((await standing()).givenUp, owed.givenUp + owed.scheduled)
    assert.equal(await openCases(), owed.scheduled)
    await setReceiptFiles({})
    await oweAgain(gateway.pool, sandbox.merchantId, receiptSource, '2030-01-01', now)
    await fails('update')
    await assert.rejects(work(), /no cases now/)
    assert.equal(await openCases(), owed.scheduled)
    assert.equal((await standing()).delivered, owed.delivered)
    await gateway.pool.query('drop function fail cascade')
    await work()
    const { delivered, ...open } = await standing()
    assert.deepEqual(open, { scheduled: 0, givenUp: 0, cases: 0 })
    assert.ok(delivered > owed.delivered)
  })

  it('that another delivered meanwhile has no case', async () => {
    server.odd.set('OPEN', (channel, id) => {
      const delivered = `
        with delivered as (update owed_files set outcome = 'delivered', ended_at = now() where outcome is null returning file_id)
        delete from file_pieces where file_id in (select file_id from delivered)`
      gateway.pool.query(delivered).then(() => channel.status(id, 4, 'no room'), assert.ifError)
    })
    await setReceiptFiles({ port: 1 })
    await endDay()
    await setReceiptFiles({})
    now += 7 * dayMilliseconds + 60_000 // it was the last attempt
    await work()
    server.odd.clear()
    assert.equal(await openCases(), 0)
    await work()
    assert.deepEqual([(await counts()).scheduled, (await counts()).givenUp, await openCases()], [0, 0, 0])
  })

  it('is on an address where nobody is called for a merchant is not called', async () => {
    await setReceiptFiles({ host: '169.254.169.254' })
    const asked = server.asked.length
    await endDay()
    assert.match((await counts()).failure, /the host resolves to a private or special address/)
    assert.equal(server.asked.length, asked)
    await setReceiptFiles({})
    await work()
  })
})

describe('a scheduled report', () => {
  const office = () => ({ ...parts, keys: testKeys, by: { kind: 'user', id: 'somebody', address: '127.0.0.1' } as const })
  const place = () => ({ host: '127.0.0.1', port: server.port, user: 'us', hostKey: server.hostKey, folder: '/in' })
  const made = async (more: object, owner = sandbox.merchantId): Promise<ReportSchedule> => {
    const schedule = await makeSchedule(office(), owner, {
      report: 'transactions',
      every: 'day',
      mode: 'internal',
      ...place(),
      ...more,
    })
    assert.ok(!('refused' in schedule), JSON.stringify(schedule))
    // The gateway's own worker, which has no key to log in with, leaves alone what is not due: it was not before, nor is it when a period ends.
    await gateway.pool.query(`update due_work set due_at = '2099-01-01' where subject_id = $1`, [schedule.id])
    return schedule
  }
  /** As due work does it, from the period that its row has come to. */
  const workOn = async ({ ownerId, id }: ReportSchedule, gatewayParts = { ...parts, keys: testKeys }) => {
    const { rows } = await gateway.pool.query('select details from due_work where subject_id = $1', [id])
    if (rows.length === 0) return 'done'
    const ended = await deliverScheduled(gatewayParts, { merchantId: ownerId, subjectId: id, details: rows[0].details } as never)
    if (ended !== 'done')
      await gateway.pool.query('update due_work set details = details || $2 where subject_id = $1', [
        id,
        JSON.stringify(ended.details),
      ])
    return ended
  }
  const lines = (schedule: ReportSchedule, of: string) =>
    readFileSync(join(inbox, reportFileName(schedule, of)), 'utf8')
      .split('\r\n')
      .slice(0, -1)
  const countsOf = async ({ id }: ReportSchedule) => (await countOwed(gateway.pool)).find(({ source }) => source === id)
  const over = (every: 'day' | 'week' | 'month', of: string) => Date.parse(periodAfter(every, of)) + 15 * 60_000
  before(() => {
    now = Date.UTC(2031, 0, 26, 12)
  })

  it('periods are days, weeks from Monday on and months, through ends of years', () => {
    const at = (day: string) => Date.parse(`${day}T12:00:00Z`)
    const named = (every: 'day' | 'week' | 'month', day: string) => [
      periodOf(every, at(day)),
      periodAfter(every, periodOf(every, at(day))),
    ]
    assert.deepEqual(named('day', '2031-12-31'), ['2031-12-31', '2032-01-01'])
    assert.deepEqual(named('week', '2032-01-01'), ['2031-12-29', '2032-01-05'])
    assert.deepEqual(named('week', '2032-01-04'), ['2031-12-29', '2032-01-05'])
    assert.deepEqual(named('week', '2032-01-05'), ['2032-01-05', '2032-01-12'])
    assert.deepEqual(named('month', '2032-02-29'), ['2032-02-01', '2032-03-01'])
    assert.deepEqual(named('month', '2031-12-31'), ['2031-12-01', '2032-01-01'])
  })

  it('has every transaction of its period and none of another, and comes once, also when two processes are at it', async () => {
    const schedule = await made({})
    const ended = periodOf('day', now)
    now = Date.parse(ended) + dayMilliseconds - 60_000
    const last = (await gateway.pay({ amount: '12.34' })).body.id
    const refund = (await gateway.refer(last, { paymentType: 'RF', amount: '2.34', currency: 'EUR' })).body.id
    now = Date.parse(ended) + dayMilliseconds
    const next = (await gateway.pay({ amount: '1.00' })).body.id
    // At the very moments at which an hour and the day end.
    for (const [id, hours] of [
      [last, 23],
      [next, 24],
    ] as const)
      await gateway.pool.query('update payments set received_at = $2 where id = $1', [
        id,
        new Date(Date.parse(ended) + hours * 3_600_000),
      ])
    now = over('day', ended) - 60_000
    await workOn(schedule)
    assert.deepEqual(there(), [], 'the day may have payments yet')
    now = over('day', ended)
    await Promise.allSettled([workOn(schedule), workOn(schedule)])
    await workOn(schedule)
    const [heading, ...rows] = lines(schedule, ended)
    assert.match(heading!, /^paymentId,rootId,merchantId,/)
    assert.deepEqual(
      rows.map(row => row.split(',')[0]),
      [last, refund],
    )
    assert.ok(!rows.some(row => row.includes(next)))
    assert.deepEqual(there(), [reportFileName(schedule, ended)])
    const { made: files, delivered, scheduled, givenUp } = (await countsOf(schedule))!
    assert.deepEqual([files, delivered, scheduled, givenUp], [1, 1, 0, 0])
    assert.equal((await gateway.pool.query('select from file_pieces')).rowCount, 0, 'nothing is kept of what was delivered')
    assert.ok(await stopSchedule(office(), schedule.ownerId, schedule.id))
  })

  it('that was made is the same file whenever it is tried again, whatever is booked meanwhile', async () => {
    const schedule = await made({ report: 'settlement', form: 'json' })
    const ended = periodOf('day', now)
    await gateway.pay({ amount: '40.00' })
    now = over('day', ended)
    server.faults.set('rename', 'cut')
    await workOn(schedule)
    assert.ok(there().every(name => name.endsWith('.tmp')))
    await gateway.pool.query(`update journal set amount = amount + 1 where booked_at >= $1`, [ended])
    now += 10 * 60_000
    await workOn(schedule)
    const rows = JSON.parse(readFileSync(join(inbox, reportFileName(schedule, ended)), 'utf8'))
    await gateway.pool.query(`update journal set amount = amount - 1 where booked_at >= $1`, [ended])
    assert.deepEqual(
      rows.map((row: Body) => [row.merchantId, row.date, row.currency, row.reconciliationType, row.credit]),
      [[sandbox.merchantId, ended, 'EUR', 'SETTLED', '41.00']],
    )
    await stopSchedule(office(), schedule.ownerId, schedule.id)
  })

  /** A file is put so far that the server has been given all of it, and says so only when it is let. */
  async function halfPut() {
    const schedule = await made({})
    const ended = periodOf('day', now)
    now = over('day', ended)
    let answer = () => {}
    const { promise: isWritten, resolve: written } = Promise.withResolvers<void>()
    server.odd.set('WRITE', (channel, ...asked) => {
      server.odd.delete('WRITE')
      answer = () => (channel.emit as (event: string, ...given: unknown[]) => void)('WRITE', ...asked)
      written()
    })
    const slow = workOn(schedule)
    await isWritten
    const goes = () => {
      answer()
      return slow
    }
    return { schedule, name: reportFileName(schedule, ended), goes }
  }

  it('that another process puts meanwhile is left to that one, and nothing lies beside it', async () => {
    const { schedule, name, goes } = await halfPut()
    await workOn(schedule)
    assert.deepEqual(there(), [name])
    const bytes = readFileSync(join(inbox, name))
    await goes()
    assert.deepEqual(there(), [name])
    assert.ok(readFileSync(join(inbox, name)).equals(bytes))
    const { rows } = await gateway.pool.query('select outcome, attempts, failure from owed_files where source = $1', [
      schedule.id,
    ])
    assert.deepEqual(rows, [{ outcome: 'delivered', attempts: 1, failure: null }])
    assert.ok(await stopSchedule(office(), schedule.ownerId, schedule.id))
  })

  it('that is ended while it is put does not appear', async () => {
    const { schedule, goes } = await halfPut()
    assert.ok(await stopSchedule(office(), schedule.ownerId, schedule.id))
    assert.equal(there().length, 1)
    await goes()
    assert.deepEqual(there(), [])
    assert.equal((await countsOf(schedule))!.givenUp, 1)
  })

  it('that is ended owes nothing more, and nothing of it is kept', async () => {
    const schedule = await made({})
    const ended = periodOf('day', now)
    now = over('day', ended)
    server.faults.set('rename', 'cut')
    await workOn(schedule)
    assert.equal((await gateway.pool.query('select from file_pieces')).rowCount, 1)
    assert.ok(await stopSchedule(office(), schedule.ownerId, schedule.id))
    const { made: files, scheduled, givenUp, failure } = (await countsOf(schedule))!
    assert.deepEqual([files, scheduled, givenUp, failure], [1, 0, 1, 'the schedule was ended'])
    assert.equal((await gateway.pool.query('select from file_pieces')).rowCount, 0)
    assert.equal(await stopSchedule(office(), schedule.ownerId, schedule.id), false)
  })

  it('of a PSP is of all its merchants; chargebacks and their reversals are a report of their own', async () => {
    const psp = '5a11d0000000000000000000000000a0'
    const { body } = await gateway.pay({ amount: '92.00' })
    const said = { report: 'r', reference: body.id, currency: 'EUR', date: '2031-01-30' } as const
    await recordChargeback(office(), { ...said, line: 1, type: 'CB', amount: 9200, reason: '10.4' })
    await recordChargeback(office(), { ...said, line: 2, type: 'CR', amount: 2000, reason: '' })
    const schedule = await made({ report: 'chargebacks', every: 'month' }, psp)
    now = over('month', '2031-01-01')
    await workOn(schedule)
    const rows = lines(schedule, '2031-01-01').map(row => row.split(','))
    const [type, amount] = ['reconciliationType', 'amount'].map(name => rows[0]!.indexOf(name)) as [number, number]
    assert.deepEqual(
      rows.slice(1).map(row => [row[0], row[type], row[amount]]),
      [
        [sandbox.merchantId, 'CHARGEBACK', '-92.00'],
        [sandbox.merchantId, 'CHARGEBACK REVERSAL', '20.00'],
      ],
    )
    await stopSchedule(office(), schedule.ownerId, schedule.id)
  })

  it('that is too large for a file is told like any other failure', async () => {
    const of = {
      ownerId: sandbox.merchantId,
      report: 'transactions',
      form: 'csv',
      mode: 'internal',
      every: 'month',
      day: '2031-01-01',
    } as const
    const records = async (bytesMost?: number) => {
      let sum = 0
      for await (const { records } of reportContent({ ...parts, keys: testKeys }, of, bytesMost)) sum += records
      return sum
    }
    await assert.rejects(records(300), /has more than 300 bytes/)
    assert.ok((await records()) > 0)
  })

  it('whose server stays away is given up with a case, is seen in the office, and is tried again when somebody says so', async () => {
    const schedule = await made({ every: 'week', port: 1 })
    const ended = periodOf('week', now)
    now = over('week', ended)
    await workOn(schedule)
    now += 7 * dayMilliseconds + 60_000
    await workOn(schedule)
    const given = (await countsOf(schedule))!
    assert.deepEqual([given.made, given.delivered, given.givenUp], [2, 0, 1])
    assert.equal(given.made, given.delivered + given.scheduled + given.givenUp)
    const { rows } = await gateway.pool.query(
      `select subject from operator_cases where kind = 'reportFile' and closed_at is null`,
    )
    assert.deepEqual(rows, [{ subject: reportFileName(schedule, ended) }])
    const admin = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
    const page = await admin.ask('/office/schedules')
    assert.ok(page.text.includes('us@127.0.0.1:/in') && page.text.includes('ECONNREFUSED'), page.text)
    // What is asked for again is due at once: as if another process were at it.
    await gateway.pool.query('update due_work set leased_until = $2 where subject_id = $1', [schedule.id, new Date(now + 60_000)])
    assert.equal((await admin.post(`/office/schedules/${schedule.ownerId}/${schedule.id}/again`)).location, '/office/schedules')
    await gateway.pool.query(`update report_schedules set settings = settings || $2 where id = $1`, [
      schedule.id,
      { port: server.port },
    ])
    await workOn(schedule)
    assert.ok(there().includes(reportFileName(schedule, ended)))
    assert.equal((await countsOf(schedule))!.givenUp, 0)
    assert.equal(
      (await gateway.pool.query(`select from operator_cases where kind = 'reportFile' and closed_at is null`)).rowCount,
      0,
    )
    assert.equal((await admin.post(`/office/schedules/${schedule.ownerId}/${schedule.id}/end`)).location, '/office/schedules')
    assert.equal(await workOn(schedule), 'done')
    const after = (await countsOf(schedule))!
    assert.deepEqual([after.scheduled, after.made], [0, after.delivered + after.givenUp])
    const told = await gateway.pool.query(`select action from audit where subject = $1 order by sequence`, [schedule.id])
    assert.deepEqual(
      told.rows.map(({ action }) => action),
      ['scheduleMade', 'filesOwedAgain', 'scheduleEnded'],
    )
  })

  it('is made in the office by its form, which names what is wrong, and only for those within reach', async () => {
    const admin = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
    const fields = { entity: sandbox.merchantId, report: 'settlement', every: 'month', form: 'csv', mode: 'internal' }
    const where = {
      host: 'sftp.shop.example',
      port: '2222',
      user: 'tollgate',
      hostKey: server.hostKey,
      folder: '/in/4539578763621487',
    }
    const wrong = await admin.post('/office/schedules', { ...fields, ...where, hostKey: 'abc', port: '99999' })
    assert.equal(wrong.status, 400)
    assert.ok(
      wrong.text.includes('port must be') &&
        wrong.text.includes('hostKey must be') &&
        wrong.text.includes('value="sftp.shop.example"'),
    )
    const number = '4539578763621486'
    for (const [name, value] of [
      ['user', `u${number}`],
      ['user', 'cvv 942'],
      ['folder', '/in/4539 5787 6362 1486'],
      ['host', `${number}.shop.example`],
    ] as const) {
      const refused = await admin.post('/office/schedules', { ...fields, ...where, [name]: value })
      assert.equal(refused.status, 400)
      assert.ok(refused.text.includes(`${name} must not hold a card number or a CVV`), name)
    }
    assert.equal((await gateway.pool.query('select from report_schedules where ended_at is null')).rowCount, 0)
    assert.equal((await admin.post('/office/schedules', { ...fields, ...where, entity: sandbox.divisionId })).status, 404)
    const theirs = async (more: Record<string, string> = {}) => admin.post('/office/schedules', { ...fields, ...where, ...more })
    const unnamed = async (more: Record<string, string> = {}) => {
      const refused = await theirs(more)
      assert.deepEqual([refused.status, refused.text.includes('Only the staff of the PSP names a server')], [400, true])
    }
    // One key opens the servers of all merchants, and of banks.
    await unnamed()
    const staff = await signedIn(gateway, 'admin', [readSeed(sandboxSeed).psp.id], clock)
    assert.equal((await staff.post('/office/schedules', { ...fields, ...where })).location, '/office/schedules')
    for (const more of [{ folder: '/' }, { user: 'other' }, { port: '22' }, { host: 'bank.example' }]) await unnamed(more)
    assert.equal((await theirs({ every: 'week' })).location, '/office/schedules')
    await gateway.pool.query(
      `update report_schedules set ended_at = now() where ended_at is null and settings ->> 'every' = 'week'`,
    )
    const { rows } = await gateway.pool.query(
      `select s.settings, s.id, w.details from report_schedules s join due_work w on w.subject_id = s.id where s.ended_at is null`,
    )
    assert.deepEqual(
      rows.map(({ settings: { host, port, folder }, details }) => [host, port, folder, details.day]),
      [['sftp.shop.example', 2222, '/in/4539578763621487', periodOf('month', now)]],
    )
    const viewer = await signedIn(gateway, 'developer', [sandbox.merchantId], clock)
    assert.ok(!(await viewer.ask('/office/schedules')).text.includes('/end"'))
  })
})

describe('what is kept of a file', () => {
  const ownerId = sandbox.merchantId
  const source = '1'.repeat(32)
  const owed = async () => (await findOwed(gateway.pool, ownerId, source))[0]!
  const stands = async () => (await gateway.pool.query('select from file_pieces')).rowCount!
  const parts = (count: number, meanwhile: (number: number) => Promise<unknown> = async () => {}) =>
    (async function* () {
      for (let number = 0; number < count; number++) {
        await meanwhile(number)
        yield { text: String(number).repeat(100_000), records: 10 }
      }
    })()
  const keep = async (content: Parameters<typeof keepContent>[2]) =>
    keepContent({ database, clock, random: systemRandom }, await owed(), content)
  beforeEach(async () => {
    await gateway.pool.query('delete from file_pieces')
    await gateway.pool.query('delete from owed_files where source = $1', [source])
    await insertOwed(gateway.pool, ownerId, source, ['2031-03-01'], ['csv'], now)
  })

  it('is written while it is made, and read as it is needed', async () => {
    const seen: number[] = []
    const kept = await keep(() => parts(8, async () => seen.push(await stands())))
    assert.deepEqual(seen, [0, 0, 0, 1, 1, 1, 2, 2], 'no more than a piece is held')
    assert.deepEqual([kept!.records, (await owed()).fileId, (await owed()).records], [80, kept!.fileId, 80])
    assert.deepEqual(await keep(() => assert.fail('it is made once')), kept)
    let asked = 0
    const counting = { query: (...of: Parameters<typeof gateway.pool.query>) => asked++ + 1 && gateway.pool.query(...of) }
    const file = await keptFile(counting as never, kept!.fileId)
    assert.ok(!Buffer.isBuffer(file))
    assert.deepEqual([file.length, asked], [800_000, 1])
    const pieces: Buffer[] = []
    for await (const piece of file.pieces()) {
      pieces.push(piece)
      assert.equal(asked, 1 + pieces.length)
    }
    assert.equal(
      Buffer.concat(pieces).toString(),
      Array.from({ length: 8 }, (_, number) => String(number).repeat(100_000)).join(''),
    )
  })

  it('is nothing when it cannot be made', async () => {
    const cannot = async (number: number) => assert.ok(number < 5, 'too large')
    await assert.rejects(
      keep(() => parts(8, cannot)),
      /too large/,
    )
    assert.equal(await stands(), 0)
    assert.equal((await keep(() => parts(1)))!.records, 10)
  })

  it('is of one process, and of a file that is owed', async () => {
    const other = '2'.repeat(32)
    const at5 = (meanwhile: () => Promise<unknown>) => keep(() => parts(8, async number => number === 5 && meanwhile()))
    assert.equal(await at5(async () => beginFile(gateway.pool, await owed(), other)), undefined)
    assert.equal(await stands(), 0, 'who was slower leaves nothing')
    assert.ok(await addPiece(gateway.pool, await owed(), other, 0, Buffer.from('a')))
    assert.ok(!(await addPiece(gateway.pool, await owed(), '3'.repeat(32), 0, Buffer.from('a'))))
    // That one was killed: what it has left is gone with the next beginning.
    const kept = await at5(async () => assert.equal(await keepFile(gateway.pool, await owed(), other, 1), false))
    assert.equal((await owed()).fileId, kept!.fileId)
    assert.equal((await gateway.pool.query('select from file_pieces where file_id <> $1', [kept!.fileId])).rowCount, 0)
    assert.equal(await beginFile(gateway.pool, await owed(), other), false, 'it is made')
  })

  it('is put by the attempt that began last, as long as it is owed', async () => {
    const [first, second] = ['2', '3'].map(digit => digit.repeat(32)) as [string, string]
    const isOf = async (id: string) => isPutBy(gateway.pool, await owed(), id)
    assert.deepEqual(await beginPut(gateway.pool, await owed(), first), { before: null })
    assert.deepEqual([await isOf(first), await isOf(second)], [true, false])
    assert.deepEqual(await beginPut(gateway.pool, await owed(), second), { before: first })
    assert.deepEqual([await isOf(first), await isOf(second)], [false, true])
    const file = await owed()
    await dropOwed(gateway.pool, ownerId, source, 'ended', now)
    assert.deepEqual([await isPutBy(gateway.pool, file, second), await beginPut(gateway.pool, file, first)], [false, undefined])
  })

  it('ends with what is owed', async () => {
    const ended = () => dropOwed(gateway.pool, ownerId, source, 'ended', now)
    assert.equal(await keep(() => parts(8, async number => number === 5 && ended())), undefined)
    assert.equal(await stands(), 0)
  })
})
