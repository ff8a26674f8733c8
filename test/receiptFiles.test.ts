// Files of receipts on merchants' servers: what is on the server counts, and that every day is owed once, whatever the server does.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { XMLParser } from 'fast-xml-parser'
import { recordReceipt } from '../src/clearing/receipts/receipts.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { applySeed, readSeed } from '../src/merchants/seed.ts'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import type { Egress } from '../src/platform/egress/address.ts'
import { sftpOpener } from '../src/platform/sftp/open.ts'
import { countOwed, oweAgain } from '../src/reporting/owedFiles/store.ts'
import { deliverReceipts, type ReceiptFileParts, receiptSource } from '../src/reporting/receiptFiles/deliver.ts'
import { type Body, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
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
    const second = await receive('20.00', { merchantTransactionId: 'order "2", =1' })
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
    assert.ok(rows[2]!.startsWith(second) && rows[2]!.includes(',"order ""2"", =1",'))
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
    assert.equal(await oweAgain(gateway.pool, sandbox.merchantId, receiptSource, ended, now), 2)
    await work()
    assert.ok(there().includes(`receipts_${sandbox.merchantId}_${ended}.csv`))
    assert.deepEqual([(await counts()).scheduled, await openCases()], [0, 0])
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
