// Refunds of receipts: ordered with the refund, written into files for the bank, and ended by what the bank says. The bank of these tests reads and writes columns
// as FEBRABAN's sheet numbers them, and knows no table of ours.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { LineResult } from '../src/clearing/import.ts'
import { recordReceipt } from '../src/clearing/receipts/receipts.ts'
import { BrokenReturn } from '../src/clearing/returns/rows.ts'
import { importTransferReturn, isTransferReturn, readTransferReturn } from '../src/clearing/transfers/transferReturn.ts'
import { type TransferFileParts, transferFile } from '../src/clearing/transfers/write.ts'
import { type BankSlipAccount, readSlipsFile } from '../src/connectors/slips/accounts.ts'
import { isWorkingDay } from '../src/connectors/slips/workingDays.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { readBankDetails } from '../src/payments/transfers/bankDetails.ts'
import { findTransfer, findTransfers, type TransferRow } from '../src/payments/transfers/store.ts'
import { endByHand, enterDetails, settleTransfer } from '../src/payments/transfers/transfer.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database, inTransaction } from '../src/platform/database/connect.ts'
import { ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import { readFileHold } from '../src/platform/database/fileHold.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { sweep } from '../src/platform/retention/erase.ts'
import { allKept } from '../src/start/kept.ts'
import { reasonsToStay } from '../src/start/moves/check.ts'
import { watchPutBack } from '../src/start/moves/putBack.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { databaseUrl, keepCopy, makeDatabase, putBack, type TestDatabase, withPool } from './support/database.ts'
import {
  type Body,
  eventually,
  type Fields,
  type Reply,
  sandbox,
  type TestGateway,
  testGateway,
  testKeys,
} from './support/gateway.ts'
import { holdWhen } from './support/movingCells.ts'
import { signedIn } from './support/office.ts'
import { manyCommands } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-transfers-'))
const files = join(folder, 'out')
const slips = JSON.parse(readFileSync(new URL('../seeds/slips.json', import.meta.url), 'utf8'))
delete slips.$schema
slips.banks[0].transfers = { folder: files, agreement: '987654', everyMinutes: 1440 }
const slipsFile = join(folder, 'slips.json')
writeFileSync(slipsFile, JSON.stringify(slips))
const accounts = readSlipsFile(JSON.stringify(slips), 'test')
const account = accounts.get('itau-demo') as BankSlipAccount

let gateway: TestGateway
let database: Database
let parts: TransferFileParts
const bankDetails = allKept.find(({ kind }) => kind === 'bankDetails')!
before(() => begin())
/** `named`: a database that is there already. */
async function begin(named?: TestDatabase): Promise<void> {
  gateway = await testGateway({ environment: { SLIPS_FILE: slipsFile }, ...(named && { database: named }) })
  database = connect(gateway.connection, systemClock, () => {})
  const directory = await openDirectory(database, testKeys, systemClock, () => {})
  parts = {
    database,
    directory,
    keys: testKeys,
    clock: systemClock,
    random: systemRandom,
    build: 'test',
    slipAccounts: accounts,
    log: { info() {} },
  } as unknown as TransferFileParts
}
async function end(): Promise<void> {
  await parts.directory.close()
  await database.close()
  await gateway.stop()
}
after(async () => {
  await end()
  rmSync(folder, { recursive: true })
})
beforeEach(() => mkdirSync(files, { recursive: true }))

const memo = 'João da Silva; 111.444.777-35; Itaú; 1234; 56789-0'
const elsewhere = 'Ana Lima; 11.222.333/0001-81; Bradesco; 4321-x; 98765-P'

async function receipt(
  amount = '100.00',
  brand = 'BOLETO',
  testMode = 'EXTERNAL',
  entityId: string = sandbox.entityId,
): Promise<string> {
  const fields: Fields = {
    entityId,
    paymentType: 'PA',
    paymentBrand: brand,
    amount,
    currency: brand === 'OXXO' ? 'MXN' : 'BRL',
    testMode,
    shopperResultUrl: 'https://shop.example/done',
    merchantTransactionId: 'order-0042',
    'customer.givenName': 'João',
    'customer.surname': 'da Silva',
    'customer.merchantCustomerId': 'customer-1',
    'customer.email': 'joao@example.com',
    'customer.ip': '192.0.2.1',
    'billing.street1': 'Rua São José 12',
    'billing.city': 'São Paulo',
    'billing.state': 'SP',
    'billing.postcode': '01310100',
    'billing.country': 'BR',
    'customParameters[CUSTOM_CPF_number]': '11144477735',
  }
  const { body } = await gateway.post('/v1/payments', fields)
  const said = await recordReceipt(parts, {
    account: brand === 'OXXO' ? 'oxxo-demo' : 'itau-demo',
    number: body.resultDetails.acquirerTxId1,
    key: body.id,
    amount: Math.round(Number(amount) * 100),
    currency: fields.currency!,
    paidOn: body.resultDetails.DueDate,
  })
  assert.equal(said.kind, 'recorded')
  return said.kind === 'recorded' ? said.payment.id : ''
}
const refund = (id: string, amount: string, more: Fields = { merchantMemo: memo }): Promise<Reply> =>
  gateway.refer(id, { paymentType: 'RF', amount, currency: 'BRL', ...more })
async function ordered(amount = '100.00', more: Fields = { merchantMemo: memo }): Promise<{ rc: string; rf: string }> {
  const rc = await receipt(amount)
  const { status, body } = await refund(rc, amount, more)
  assert.deepEqual([status, body.result.code], [200, '000.200.000'])
  return { rc, rf: body.id }
}
const readBack = async (id: string): Promise<Body> =>
  (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body
const resultOf = async (id: string): Promise<string> => (await readBack(id)).result.code
const write = (own = parts) =>
  transferFile(own, { details: { account: 'itau-demo' } } as unknown as Parameters<typeof transferFile>[1])
const written = () => readdirSync(files).sort()
const openCases = async (kind: string, subject: string): Promise<number> =>
  (
    await gateway.pool.query('select 1 from operator_cases where kind = $1 and subject like $2 and closed_at is null', [
      kind,
      `%${subject}%`,
    ])
  ).rowCount!
const booksAgree = async () => assert.deepEqual((await examine(gateway.pool)).findings, [])

/** An order as the bank reads it. */
type AtBank = {
  readonly own: string
  readonly bank: string
  readonly amount: string
  readonly rowA: string
  readonly rowB: string
}

/** Columns from 1, both inclusive. */
const columns = (row: string, first: number, last: number) => row.slice(first - 1, last)

function atBank(name: string): AtBank[] {
  const text = readFileSync(join(files, name), 'latin1')
  assert.match(text, /^[\x20-\x7e\r\n]*$/)
  const rows = text.split('\r\n')
  assert.equal(rows.pop(), '')
  for (const row of rows) assert.equal(row.length, 240)
  const [first, last] = [rows[0]!, rows.at(-1)!]
  assert.deepEqual(
    [columns(first, 1, 8), columns(first, 143, 143), columns(first, 53, 71)],
    ['34100000', '1', '00057 0000000123457'],
  )
  assert.equal(columns(first, 33, 52).trim(), '987654')
  assert.deepEqual([columns(last, 4, 8), Number(columns(last, 24, 29))], ['99999', rows.length])
  const orders: AtBank[] = []
  let [lots, inLot, sum, sequence] = [0, 0, 0, 0]
  for (const [at, row] of rows.entries()) {
    inLot++
    const type = columns(row, 8, 8)
    if (type === '1') {
      ;[inLot, sum, sequence] = [1, 0, 0]
      assert.deepEqual([Number(columns(row, 4, 7)), columns(row, 9, 11)], [++lots, 'C20'])
    } else if (type === '3') {
      assert.deepEqual([Number(columns(row, 4, 7)), Number(columns(row, 9, 13))], [lots, ++sequence])
      if (columns(row, 14, 14) !== 'A') continue
      sum += Number(columns(row, 120, 134))
      const [own, bank, amount] = [columns(row, 74, 93).trim(), columns(row, 21, 23), columns(row, 120, 134)]
      orders.push({ own, bank, amount, rowA: row, rowB: rows[at + 1]! })
    } else if (type === '5') assert.deepEqual([Number(columns(row, 18, 23)), Number(columns(row, 24, 41))], [inLot, sum])
  }
  assert.equal(Number(columns(last, 18, 23)), lots)
  return orders
}

/** What the bank says of some orders: the order, ten characters, and what it does to the row. */
type Word = readonly [order: AtBank, occurrences: string, change?: (row: string) => string]
const put = (row: string, first: number, text: string) => row.slice(0, first - 1) + text + row.slice(first - 1 + text.length)

let returns = 0
function returnOf(words: readonly Word[], more = ''): Buffer {
  const head = (type: string, lot: string, rest = '') => `341${lot}${type}${rest}`.padEnd(240)
  const first = put(
    put(put(head('0', '0000'), 53, '00057'), 59, '0000000123457'),
    143,
    `2${'22112026'}101010${String(++returns).padStart(6, '0')}`,
  )
  const details = words.map(([{ rowA }, occurrences, change = (row: string) => row], at) =>
    change(
      put(
        put(put(put(put(rowA, 4, '0001'), 9, String(at + 1).padStart(5, '0')), 155, '23112026'), 163, columns(rowA, 120, 134)),
        231,
        occurrences.padEnd(10),
      ),
    ),
  )
  const sum = details.reduce((total, row) => total + Number(columns(row, 120, 134)), 0)
  const rows = [
    first,
    put(head('1', '0001', 'C20410461'), 18, '2'),
    ...details,
    put(put(head('5', '0001'), 18, String(details.length + 2).padStart(6, '0')), 24, String(sum).padStart(18, '0')),
    put(head('9', '9999'), 18, `000001${String(details.length + 4).padStart(6, '0')}`),
  ]
  return Buffer.from(rows.map(row => `${row}\r\n`).join('') + more, 'latin1')
}

async function tellUs(bytes: Buffer): Promise<LineResult[]> {
  const results: LineResult[] = []
  assert.ok(isTransferReturn(bytes))
  const report = await importTransferReturn(parts, account, 'return', bytes, (_, result) => results.push(result))
  assert.ok(!('broken' in report), JSON.stringify(report))
  return results
}
const newest = async (): Promise<AtBank[]> => {
  await write()
  return atBank(written().at(-1)!)
}

describe('a refund of a receipt', () => {
  it('is pending, keeps the bank details from everybody, and takes up what it refunds', async () => {
    const rc = await receipt('100.00')
    const { status, body, text } = await refund(rc, '60.00')
    assert.deepEqual([status, body.result.code, body.paymentType, body.referencedId], [200, '000.200.000', 'RF', rc])
    assert.equal(body.redirect, undefined)
    assert.equal(body.resultDetails.ExtendedDescription, 'The transfer is ordered')
    assert.deepEqual((await readBack(body.id)).resultDetails, body.resultDetails)
    const { rows } = await gateway.pool.query(
      `select string_agg(t::text, ' ') as all from (select p::text from payments p union all select a::text from answers a union all
         select r::text from refund_transfers r union all select e::text from events e union all select c::text from operator_cases c) t`,
    )
    assert.doesNotMatch(rows[0].all + text + gateway.logged.join(), /\b56789\b|111\.444|merchantMemo.{0,9}Jo/)
    const above = await refund(rc, '40.01')
    assert.deepEqual([above.status, above.body.result.code], [400, '700.400.200'])
    assert.equal((await refund(rc, '40.00')).status, 200)
    assert.equal((await refund(rc, '0.01')).body.result.code, '700.400.200')
    await booksAgree()
  })

  it('of a slip itself, of another merchant, or in another currency is refused, and orders nothing', async () => {
    const rc = await receipt('10.00')
    const before = (await findTransfers(gateway.pool, true, 1000)).length
    const wrong = await gateway.refer(rc, { paymentType: 'RF', amount: '10.00', currency: 'EUR', merchantMemo: memo })
    assert.equal(wrong.status, 400)
    const slip = (await readBack(rc)).referencedId
    assert.equal((await refund(slip, '10.00')).body.result.code, '700.400.520')
    assert.equal((await findTransfers(gateway.pool, true, 1000)).length, before)
  })

  it('that comes twice with one key is ordered once', async () => {
    const rc = await receipt('10.00')
    const send = () =>
      gateway.refer(
        rc,
        { paymentType: 'RF', amount: '5.00', currency: 'BRL', merchantMemo: memo },
        { 'Idempotency-Key': `once ${rc}`.replace(' ', '-') },
      )
    const [one, two] = await Promise.all([send(), send()])
    assert.equal(one.body.id, two.body.id)
    const { rowCount } = await gateway.pool.query(
      'select 1 from refund_transfers t join payments p on p.merchant_id = t.merchant_id and p.id = t.payment_id where p.reference_id = $1',
      [rc],
    )
    assert.equal(rowCount, 1)
  })

  it('is left alone by recovery, also after a start', async () => {
    const { rf } = await ordered('11.00')
    await gateway.restart()
    const { rowCount } = await gateway.pool.query(
      `select 1 from due_work where subject_id = $1 union all select 1 from unanswered where payment_id = $1`,
      [rf],
    )
    assert.equal(rowCount, 0)
    assert.equal(await resultOf(rf), '000.200.000')
  })
})

describe('a file of transfers', () => {
  it('says what goes where, in lots for the bank itself and for others, on a day on which banks work', async () => {
    await write() // what other tests have left
    const first = await ordered('12.34')
    const second = await ordered('5.00', { merchantMemo: elsewhere })
    const orders = await newest()
    assert.equal(statSync(join(files, written().at(-1)!)).mode & 0o777, 0o600)
    assert.deepEqual(
      orders.map(({ bank, amount }) => [bank, amount]),
      [
        ['341', '000000000001234'],
        ['237', '000000000000500'],
      ],
    )
    const [own, other] = orders
    assert.equal(columns(own!.rowA, 18, 43), '00034101234 0000000567890 ')
    assert.equal(columns(own!.rowA, 44, 73).trim(), 'JOAO DA SILVA')
    assert.equal(columns(own!.rowB, 14, 32), `B   ${'1'}00011144477735`)
    assert.equal(columns(other!.rowA, 18, 43), '01823704321X000000098765P ')
    assert.equal(columns(other!.rowB, 18, 32), '211222333000181')
    const day = columns(own!.rowA, 94, 101).replace(/(..)(..)(....)/, '$3-$2-$1')
    assert.ok(isWorkingDay(day, 'BR'), day)
    assert.deepEqual([await resultOf(first.rf), await resultOf(second.rf)], ['000.200.000', '000.200.000'])
    const count = written().length
    await write()
    assert.equal(written().length, count, 'nothing goes twice')
  })

  it('holds nothing of the simulator, and no tests where the account is a live one', async () => {
    await write()
    const count = written().length
    assert.equal((await refund(await receipt('6.00', 'BOLETO', 'INTERNAL'), '6.00')).status, 200)
    await write()
    assert.equal(written().length, count)
    await ordered('7.00')
    const live = new Map([['itau-demo', { ...account, modes: ['external', 'live'] as const }]])
    await write({ ...parts, slipAccounts: live })
    assert.equal(written().length, count)
    assert.equal((await newest()).length, 1)
  })

  it('that could not be put on disk keeps its number, and the next one follows it', async () => {
    await write()
    const count = written().length
    await ordered('1.11')
    const { transfers: _, ...rest } = account
    const lost = new Map([['itau-demo', { ...rest, transfers: { ...account.transfers!, folder: join(folder, 'gone') } }]])
    await assert.rejects(write({ ...parts, slipAccounts: lost }))
    await ordered('2.22')
    await write()
    const added = written().slice(count)
    assert.deepEqual(
      added.map(name => atBank(name).map(({ amount }) => Number(amount))),
      [[111], [222]],
    )
    const numbers = written().map(name => Number(/(\d{6})\.rem$/.exec(name)![1]))
    assert.deepEqual(
      numbers,
      numbers.map((_, at) => at + 1),
    )
  })

  it('and its twin by another process at the same time hold each order once', async () => {
    await write()
    const count = written().length
    for (const amount of ['3.01', '3.02', '3.03']) await ordered(amount)
    await Promise.allSettled([write(), write(), write()])
    await write()
    const amounts = written()
      .slice(count)
      .flatMap(name => atBank(name).map(({ amount }) => Number(amount)))
    assert.deepEqual(amounts.sort(), [301, 302, 303])
  })
})

describe("a bank's return", () => {
  it('that says paid ends the refund well; said again it changes nothing', async () => {
    await write()
    const { rc, rf } = await ordered('20.00')
    const [order] = await newest()
    const bytes = returnOf([[order!, '00']])
    assert.deepEqual(
      (await tellUs(bytes)).map(({ kind }) => kind),
      ['recorded'],
    )
    const body = await readBack(rf)
    assert.deepEqual(
      [body.result.code, body.resultDetails.AcquirerResponse, body.resultDetails.ExtendedDescription],
      ['000.100.112', '00', 'Transferred on 2026-11-23'],
    )
    assert.deepEqual(
      (await tellUs(bytes)).map(({ kind }) => kind),
      ['known'],
    )
    assert.deepEqual(
      (await tellUs(returnOf([[order!, '00']]))).map(({ kind }) => kind),
      ['known'],
    )
    const { rows } = await gateway.pool.query('select sequence, action from events where payment_id = $1 order by sequence', [rf])
    assert.equal(rows.length, 2)
    assert.equal((await refund(rc, '0.01')).body.result.code, '700.400.200')
    await booksAgree()
  })

  it('that refuses ends it badly, and the money can be refunded again', async () => {
    await write()
    const { rc, rf } = await ordered('21.00')
    const [order] = await newest()
    await tellUs(returnOf([[order!, 'ALAN']]))
    const body = await readBack(rf)
    assert.deepEqual([body.result.code, body.resultDetails.AcquirerResponse], ['100.200.103', 'AL AN'])
    assert.equal((await refund(rc, '21.00')).status, 200)
    await booksAgree()
  })

  it('that only takes the order in leaves it pending', async () => {
    await write()
    const { rf } = await ordered('22.00')
    const [order] = await newest()
    await tellUs(returnOf([[order!, 'BD']]))
    assert.equal(await resultOf(rf), '000.200.000')
    await tellUs(returnOf([[order!, '00']]))
    assert.equal(await resultOf(rf), '000.100.112')
  })

  it('that fits nothing, or can mean two things, is a case for somebody, and moves nothing', async () => {
    await write()
    const { rf } = await ordered('23.00')
    const [order] = await newest()
    const cases: readonly (readonly [what: string, occurrences: string, change: (row: string) => string])[] = [
      ['we have ordered no such transfer', '00', row => put(row, 74, 'RF999999000001')],
      ['we have ordered no such transfer', '00', row => put(row, 74, 'anything else '.padEnd(20))],
      ['the transfer is of another amount', '00', row => put(row, 120, '000000000002301')],
      ['another amount was paid than was ordered', '00', row => put(row, 163, '000000000000001')],
      ['what the bank says of it can mean more than one thing', '00AL', row => row],
      ['what the bank says of it can mean more than one thing', 'ZA', row => row],
      ['what the bank says of it can mean more than one thing', '', row => row],
    ]
    for (const [why, occurrences, change] of cases) {
      const [result] = await tellUs(returnOf([[order!, occurrences, change]]))
      assert.equal(result!.kind === 'refused' && result!.why, why, occurrences)
    }
    assert.equal(await resultOf(rf), '000.200.000')
    assert.equal(await openCases('transferLine', order!.own), 1)
    await tellUs(returnOf([[order!, '00']]))
    assert.equal(await openCases('transferLine', order!.own), 0)
    const [late] = await tellUs(returnOf([[order!, 'AN']]))
    assert.equal(late!.kind === 'refused' && late!.why, 'the refund has ended otherwise before')
    assert.equal(await resultOf(rf), '000.100.112')
    assert.equal(await openCases('transferLine', order!.own), 1)
    await booksAgree()
  })

  it('in which any byte is another counts for nothing, is a question, or says something else that can be stored', async () => {
    await write()
    await ordered('23.00')
    const [order] = await newest()
    const whole = returnOf([[order!, '00']])
    const read = (at: number, byte: number) => {
      const bytes = Buffer.from(whole)
      bytes[at] = byte
      try {
        const steps = readTransferReturn(bytes, account, '')
        for (let next = steps.next(); ; next = steps.next()) if (next.done) return { ...next.value, lines: [...next.value.lines] }
      } catch (error) {
        assert.ok(error instanceof BrokenReturn, `${at} ${byte}: ${error}`)
        return error.message
      }
    }
    for (let at = 0; at < whole.length; at++) {
      if (at % 242 >= 240) continue
      for (const letter of ['X', 'e', '-', '.', 'ÿ', '9', '0']) read(at, letter.charCodeAt(0))
      assert.deepEqual(read(at, 0), read(at, 32))
      assert.match(JSON.stringify(read(at, 27)), new RegExp(`line ${Math.floor(at / 242) + 1} has byte 27`))
    }
  })

  it('about a merchant who has left is a case, and the rest goes on; while merchants are held it waits', async () => {
    await write()
    const [first, second] = [await ordered('24.00'), await ordered('25.00')]
    const [one, two] = await newest()
    const { merchantId } = sandbox
    const bytes = returnOf([
      [one!, '00'],
      [two!, '00'],
    ])
    await gateway.pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
      [merchantId],
    )
    // As the fence does.
    await gateway.pool.query(
      `create trigger fence before insert or update or delete on answers for each row execute function refuse_elsewhere('${merchantId}')`,
    )
    assert.deepEqual(
      (await tellUs(bytes)).map(result => result.kind === 'refused' && result.why),
      ['we have ordered no such transfer', 'we have ordered no such transfer'],
    )
    await gateway.pool.query('drop trigger fence on answers')
    await gateway.pool.query('delete from merchant_moves')
    const release = await holdWhen(gateway.pool, 'clearing_lines', 'new.line = 3')
    const later = returnOf([
      [one!, '00'],
      [two!, '00'],
    ])
    await assert.rejects(tellUs(later), ServedElsewhere)
    await release()
    await eventually(async () => (await resultOf(first.rf)) === '000.100.112', 'it is served again')
    assert.equal(await resultOf(second.rf), '000.200.000')
    assert.equal(await openCases('transferLine', two!.own), 1) // that of before
    await tellUs(later)
    assert.equal(await resultOf(second.rf), '000.100.112')
    assert.deepEqual([await openCases('transferLine', one!.own), await openCases('transferLine', two!.own)], [0, 0])
    await booksAgree()
  })

  it('that is not whole, or of another account, counts for nothing', async () => {
    await write()
    const { rf } = await ordered('24.00')
    const [order] = await newest()
    const whole = returnOf([[order!, '00']]).toString('latin1')
    const rows = whole.split('\r\n')
    const broken: readonly (readonly [text: string, why: RegExp])[] = [
      [rows.slice(0, 4).join('\r\n'), /its end is missing/],
      [[...rows.slice(0, 2), ...rows.slice(3)].join('\r\n'), /the lot has 2 lines, its end says 3/],
      [[...rows.slice(0, 3), ...rows.slice(2)].join('\r\n'), /out of order/],
      [whole.replaceAll('0000000123457', '0000000123467'), /of another account/],
      [whole.replaceAll('341', '237'), /of bank 237/],
      [whole.replace('222112026', '122112026'), /no return/],
      [`\ufeff${whole}`, /byte-order mark/],
      [put(whole, whole.indexOf('34199999') + 24, '000009'), /its end says 9/],
    ]
    for (const [text, why] of broken) {
      const report = await importTransferReturn(
        parts,
        account,
        'x',
        Buffer.from(text, text.startsWith('\ufeff') ? 'utf8' : 'latin1'),
        () => {},
      )
      assert.match('broken' in report ? report.broken : 'read', why)
    }
    assert.equal(await resultOf(rf), '000.200.000')
  })
})

describe('where the money went', () => {
  it('is erased half a year later, of ended refunds alone, and of none whose file has to be made yet', async () => {
    await write()
    const ended = await ordered('41.00')
    await tellUs(returnOf([[(await newest())[0]!, '00']]))
    const open = await ordered('42.00')
    const unwritten = await ordered('43.00')
    const { transfers: _, ...rest } = account
    const lost = new Map([['itau-demo', { ...rest, transfers: { ...account.transfers!, folder: join(folder, 'gone') } }]])
    await endByHand(parts, (await findTransfer(gateway.pool, open.rf))!, true, 'Paid')
    const reopened = await ordered('44.00')
    await assert.rejects(write({ ...parts, slipAccounts: lost }))
    const inFile = (await findTransfer(gateway.pool, unwritten.rf))!
    assert.equal(await endByHand(parts, inFile, false, 'The bank knows nothing of it'), 'inFile')
    assert.equal(await resultOf(unwritten.rf), '000.200.000')
    await inTransaction(gateway.pool, db => settleTransfer(parts, db, inFile, { paid: true, text: 'Paid' }))
    await gateway.pool.query('update refund_transfers set ordered_at = $1 where payment_id = any ($2)', [
      new Date(Date.now() - 181 * 86_400_000),
      [ended.rf, open.rf, unwritten.rf, reopened.rf],
    ])
    await sweep(parts, bankDetails, parts.clock.real())
    const sealed = async (id: string) => (await findTransfer(gateway.pool, id))!.sealed !== null
    assert.deepEqual(await Promise.all([ended.rf, open.rf, unwritten.rf, reopened.rf].map(sealed)), [false, false, true, true])
    const recent = await ordered('45.00')
    await endByHand(parts, (await findTransfer(gateway.pool, recent.rf))!, true, 'Paid')
    await sweep(parts, bankDetails, parts.clock.real())
    assert.equal(await sealed(recent.rf), true)
    await write()
  })
})

describe('what nobody can read', () => {
  const enter = (row: TransferRow, text: string) =>
    inTransaction(gateway.pool, db => enterDetails(parts, db, row, readBankDetails(text, 'BRL')!, 'somebody'))

  it('waits for somebody who enters it, goes with the next file, and cannot be changed then', async () => {
    await write()
    const broken = `A B;1;001${' '.repeat(2020)}x\u2028y;1;1-1`
    for (const more of [{}, { merchantMemo: 'to the account that you know' }, { merchantMemo: broken }] as Fields[]) {
      const { rf } = await ordered('30.00', more)
      assert.equal((await readBack(rf)).resultDetails.ExtendedDescription, 'The transfer waits for bank details')
      assert.equal(await openCases('transferDetails', rf), 1)
      const count = written().length
      await write()
      assert.equal(written().length, count)
      const row = (await findTransfer(gateway.pool, rf))!
      assert.equal(await enter(row, elsewhere), true)
      assert.equal(await openCases('transferDetails', rf), 0)
      assert.equal(await enter(row, memo), true, 'until it is in a file')
      const [order] = await newest()
      assert.equal(order!.bank, '341')
      assert.equal(await enter(row, elsewhere), false)
    }
  })

  it('is entered in the back office: mistakes stand beside their fields, the chain says what became of it, nobody reads it again', async () => {
    await write()
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId])
    const { rc, rf } = await ordered('33.00', {})
    const page = `/office/payments/${sandbox.merchantId}/${rf}`
    const path = `${page}/transfer`
    const details = { holder: 'Ana Lima', taxId: '11.222.333/0001-81', bank: 'Itaú', agency: '1234', account: '98765-0' }
    const sent = { ...details, reason: 'the shopper wrote', confirmed: 'yes', once: 'ef'.repeat(16) }
    assert.match((await clerk.ask(page)).text, /The transfer waits for bank data[\s\S]*name="taxId"/)
    const wrongs: [string, Fields][] = [
      ['holder', { holder: '12345' }],
      ['taxId', { taxId: '111.444.777-36' }],
      ['bank', { bank: '237 Itaú' }],
      ['bank', { bank: `341${' '.repeat(100)}Itaú` }],
      ['bank', { bank: `341 Itaú\u2028x` }],
      ['agency', { agency: '' }],
      ['account', { account: '567890' }],
      ['reason', { reason: ' ' }],
    ]
    for (const [name, more] of wrongs) {
      const refused = await clerk.post(path, { ...sent, ...more })
      assert.equal(refused.status, 400)
      assert.deepEqual(
        [...refused.text.matchAll(/id="(\w+)-wrong"/g)].map(([, wrong]) => wrong),
        [name],
      )
      assert.match(refused.text, new RegExp(`name="${name}"[^>]*aria-describedby="[^"]*${name}-wrong"[^>]*aria-invalid="true"`))
    }
    const { confirmed: _, ...unconfirmed } = sent
    assert.equal((await clerk.post(path, unconfirmed)).status, 400)
    assert.equal((await findTransfer(gateway.pool, rf))!.sealed, null)
    assert.equal((await clerk.post(`/office/payments/${sandbox.merchantId}/${rc}/transfer`, sent)).status, 400, 'no order')
    assert.equal((await clerk.post(path, sent)).location, `${page}?done=transfer`)
    const entered = await clerk.ask(page)
    assert.match(entered.text, /The transfer goes with the next file of itau-demo/)
    assert.doesNotMatch(entered.text, /Ana Lima|11\.?222\.?333|\b98765\b/)
    assert.equal(await openCases('transferDetails', rf), 0)
    const { rows } = await gateway.pool.query(
      `select actor, details from audit where action = 'transferEntered' and subject = $1`,
      [rf],
    )
    assert.deepEqual(rows, [{ actor: clerk.id, details: '{"reason":"the shopper wrote"}' }])
    // Corrected by another form; the first one comes once more, late.
    const corrected = { ...sent, account: '11223-3', once: 'fe'.repeat(16) }
    assert.equal((await clerk.post(path, corrected)).location, `${page}?done=transfer`)
    assert.equal((await clerk.post(path, sent)).location, `${page}?done=transfer`)
    const [order] = await newest()
    assert.equal(order!.bank, '341')
    assert.match(order!.rowA, /11223/)
    assert.match((await clerk.ask(page)).text, /In file \d+ of itau-demo, order 1/)
    assert.equal((await clerk.post(path, sent)).status, 400, 'the bank has it')
    await tellUs(returnOf([[order!, '00']]))
    const chain = await clerk.ask(`/office/payments/${sandbox.merchantId}/${rc}`)
    assert.match(chain.text, />Transferred</)
  })

  it('waits for a colleague from the same sum on as refunds do, who sees where the money would go', async () => {
    const setting = (more: object) =>
      gateway.pool.query('update entities set settings = settings || $2 where id = $1', [sandbox.entityId, more])
    const [asker, colleague] = [
      await signedIn(gateway, 'finance', [sandbox.merchantId]),
      await signedIn(gateway, 'finance', [sandbox.merchantId]),
    ]
    const { rf } = await ordered('36.00')
    const before = (await findTransfer(gateway.pool, rf))!.sealed
    await setting({ approvalFrom: 3600 })
    await gateway.restart()
    const path = `/office/payments/${sandbox.merchantId}/${rf}/transfer`
    const details = { holder: 'Eva Mal', taxId: '11.222.333/0001-81', bank: 'Itaú', agency: '4321', account: '56789-0' }
    const sent = { ...details, reason: 'another account, card 4200000000000000', confirmed: 'yes', once: 'ab'.repeat(16) }
    // A small order of another kind, with the name of the form that comes next.
    const small = { amount: '0.01', reason: 'another', confirmed: 'yes', once: sent.once }
    await asker.post(`/office/payments/${sandbox.merchantId}/${rf}/capture`, small)
    assert.equal((await asker.post(path, sent)).location, '/office/approvals')
    assert.deepEqual((await findTransfer(gateway.pool, rf))!.sealed, before)
    const page = (await colleague.ask('/office/approvals')).text
    assert.match(page, /Eva Mal[\s\S]*56789-0/)
    assert.doesNotMatch(
      (await (await signedIn(gateway, 'support', [sandbox.merchantId])).ask('/office/approvals')).text,
      /\b56789\b/,
    )
    assert.match(page, /card 420000…0000/)
    const approve = /\/office\/approvals\/[0-9a-f]{32}\/[0-9a-f]{32}\/approve/.exec(page)![0]
    assert.equal((await asker.post(approve)).status, 403)
    const presses = await Promise.all([colleague.post(approve), colleague.post(approve), colleague.post(approve)])
    assert.ok(presses.some(({ status }) => status === 303))
    assert.ok(
      presses.every(({ status }) => status === 303 || status === 404),
      'carried out by another press',
    )
    const { rows } = await gateway.pool.query(`select details from audit where action = 'transferEntered' and subject = $1`, [rf])
    assert.deepEqual(
      rows.map(({ details }) => JSON.parse(details)),
      [{ reason: 'another account, card 420000…0000', replaced: true }],
    )
    assert.equal((await gateway.pool.query('select from staff_orders where sealed is not null')).rowCount, 0)
    const [order] = await newest()
    assert.equal(order!.bank, '341')
    assert.match(order!.rowA, /56789/)
    await gateway.pool.query(`update entities set settings = settings - 'approvalFrom' where id = $1`, [sandbox.entityId])
    await gateway.restart()
    await tellUs(returnOf([[order!, '00']]))
  })

  it('is an account that passes for a card number: it is read, sealed and named in no case, on strict channels and lenient ones', async () => {
    for (const [at, entityId] of [sandbox.entityId, sandbox.lenientEntityId].entries()) {
      const rc = await receipt('36.00', 'OXXO', 'EXTERNAL', entityId)
      const memo = 'Juan Perez; 646180054111658752'
      const fields = { entityId, paymentType: 'RF', amount: `${10 + at}.00`, currency: 'MXN' }
      const { status, body } = await gateway.post(`/v1/payments/${rc}`, { ...fields, merchantMemo: memo })
      assert.deepEqual([status, body.result.code], [200, '000.200.000'])
      const row = (await findTransfer(gateway.pool, body.id))!
      assert.notEqual(row.sealed, null)
      assert.equal(await openCases('transferDetails', body.id), 0)
      await endByHand(parts, row, true, 'Paid by SPEI')
    }
  })

  it('is an account that no file of the bank could carry: it waits, and the file of others goes', async () => {
    await write()
    const { rf } = await ordered('34.00', { merchantMemo: 'Ana López; 032180000118359719' })
    await ordered('35.00')
    assert.equal(await openCases('transferDetails', rf), 1)
    assert.deepEqual(
      (await newest()).map(({ amount }) => Number(amount)),
      [3500],
    )
    await endByHand(parts, (await findTransfer(gateway.pool, rf))!, false, 'Not in Brazil')
  })

  it('ends by hand, as that of a store slip does; then no file takes it, and nothing ends it otherwise', async () => {
    await write()
    const rc = await receipt('100.00', 'OXXO')
    const { body } = await gateway.refer(rc, { paymentType: 'RF', amount: '100.00', currency: 'MXN' })
    const row = (await findTransfer(gateway.pool, body.id))!
    assert.equal(await endByHand(parts, row, true, 'Paid by SPEI'), 'ended')
    const ended = await readBack(body.id)
    assert.deepEqual([ended.result.code, ended.resultDetails.ExtendedDescription], ['000.100.112', 'Paid by SPEI'])
    assert.equal(await openCases('transferDetails', body.id), 0)
    assert.equal(await endByHand(parts, row, true, 'Paid by SPEI'), 'ended')
    assert.equal(await endByHand(parts, row, false, 'Refused'), 'otherwise')
    const { rf } = await ordered('31.00')
    assert.equal(
      await endByHand(parts, (await findTransfer(gateway.pool, rf))!, false, 'The shopper wants it otherwise'),
      'ended',
    )
    const count = written().length
    await write()
    assert.equal(written().length, count)
    await booksAgree()
  })
})

describe('returns about transfers', () => {
  const readFile = (bytes: Buffer, more?: { sameNumber: boolean }) =>
    importTransferReturn(parts, account, 'return', bytes, () => {}, more)

  it('are counted apart from those about slips: a number that is left out is a case until its file comes', async () => {
    await write()
    await ordered('35.00')
    const [order] = await newest()
    const [before, between, last] = [0, 1, 2].map(() => returnOf([[order!, 'BD']])) as [Buffer, Buffer, Buffer]
    await readFile(before)
    const report = await readFile(last)
    assert.deepEqual('missing' in report && report.missing, [returns - 1])
    assert.equal(await openCases('returnMissing', `itau-demo transfers ${returns - 1}`), 1)
    await readFile(between)
    assert.equal(await openCases('returnMissing', `itau-demo transfers ${returns - 1}`), 0)
    const slips = `insert into return_files (merchant_id, id, hash, account, name, number, received_at)
      values ($1, gen_random_uuid(), $2, 'itau-demo', 'RET', $3, now())`
    for (const number of [returns + 1, returns + 2])
      await gateway.pool.query(slips, ['0'.repeat(32), Buffer.alloc(32, number), number])
    returns++
    const next = await readFile(returnOf([[order!, 'BD']]))
    assert.deepEqual('missing' in next && next.missing, [returns - 1])
  })

  it('that have the number of another are refused, until somebody has seen that it is right', async () => {
    await write()
    const { rf } = await ordered('36.00')
    const [order] = await newest()
    await readFile(returnOf([[order!, 'BD']]))
    returns--
    const other = returnOf([[order!, '00']])
    assert.deepEqual(await readFile(other), { broken: `its number, ${returns}, is that of return, which has other bytes` })
    assert.equal(await resultOf(rf), '000.200.000')
    assert.ok('recorded' in (await readFile(other, { sameNumber: true })))
    assert.equal(await resultOf(rf), '000.100.112')
  })

  it('about what others have ordered are a case for each line of each file', async () => {
    await write()
    await ordered('37.00')
    const [order] = await newest()
    const before = await openCases('transferLine', ' line ')
    const named = (name: string) => (row: string) => put(row, 74, name.padEnd(20))
    for (const name of ['', 'SALARIES'])
      for (const _ of ['one file', 'another'])
        await tellUs(
          returnOf([
            [order!, '00', named(name)],
            [order!, '00', named(name)],
          ]),
        )
    assert.equal((await openCases('transferLine', ' line ')) - before, 8)
  })
})

describe('a file of a gateway of before', () => {
  it('names its orders by their places, and is answered so; no file of today is', async () => {
    await write()
    const { transfers: _, ...rest } = account
    const gone = new Map([['itau-demo', { ...rest, transfers: { ...account.transfers!, folder: join(folder, 'gone') } }]])
    const before = await ordered('41.00')
    await assert.rejects(write({ ...parts, slipAccounts: gone }))
    await gateway.pool.query('update transfer_files set by_place = default where written_at is null')
    const [old] = await newest()
    assert.match(old!.own, /^RF\d{12}$/)
    assert.equal((await tellUs(returnOf([[old!, '00']])))[0]!.kind, 'recorded')
    assert.equal(await resultOf(before.rf), '000.100.112')
    const today = await ordered('42.00')
    const [own] = await newest()
    assert.match(own!.own, /^RF[0-9A-Z]{18}$/)
    const place = `RF${written().at(-1)!.slice(-10, -4)}000001`
    const [result] = await tellUs(returnOf([[own!, '00', row => put(row, 74, place.padEnd(20))]]))
    assert.equal(result!.kind === 'refused' && result!.why, 'we have ordered no such transfer')
    assert.equal(await resultOf(today.rf), '000.200.000')
    for (const strange of ['RFZZZZZZZZZZZZZZZZZZ', 'RF000000000000000000'])
      assert.equal((await tellUs(returnOf([[own!, '00', row => put(row, 74, strange)]])))[0]!.kind, 'refused', strange)
  })
})

describe('a database that was put back', () => {
  let named: TestDatabase
  let commands: ReturnType<typeof manyCommands>
  before(async () => {
    await end()
    named = await makeDatabase()
    await withPool(named.connection, async pool => {
      await keepMode(pool, 'sandbox', Date.now())
      await inTransaction(pool, db => keepKeys(db, testKeys, Date.now()))
    })
    commands = manyCommands({
      DATABASE_URL: databaseUrl(named.connection),
      SLIPS_FILE: slipsFile,
      SEAL_KEY: '01'.repeat(32),
      LOOKUP_KEY: '02'.repeat(32),
    })
    for (const name of written()) rmSync(join(files, name))
    await begin({ ...named, drop: async () => {} })
  })
  after(async () => {
    commands.stop()
    await end()
    await named.drop()
    await begin()
  })
  const release = (behind: string) => commands.run('transfers', 'release', 'itau-demo', '--behind', behind)
  const held = () => readFileHold(gateway.pool)
  async function whileStopped(work: typeof keepCopy): Promise<void> {
    await end()
    await work(named.connection)
    await begin({ ...named, drop: async () => {} })
  }

  it('writes no files until somebody has said what the bank has, and no word of the bank about an old file ends another refund', async () => {
    const [first] = [await ordered('50.00'), await write()]
    const [waiting, taken, open] = [await ordered('60.00'), await ordered('61.00'), await ordered('62.00')]
    await whileStopped(keepCopy)
    await ordered('50.00')
    const sent = await newest()
    assert.equal(sent.length, 4)
    for (const name of written()) rmSync(join(files, name))
    await whileStopped(putBack)
    assert.equal(await openCases('transfersHeld', 'itau-demo'), 1, 'a start tells of it')
    const fresh = await ordered('50.00')
    await write()
    assert.deepEqual(written(), [])

    const words = sent.map(order => [order, order.amount.endsWith('6100') ? 'BD' : order.amount.endsWith('6200') ? 'AL' : '00'])
    const said = await tellUs(returnOf(words as unknown as Word[]))
    assert.deepEqual(
      said.map(one => (one.kind === 'refused' ? one.why : one.kind)),
      [
        'recorded',
        'it is in a file that this database knows nothing of: release no files of transfers before it has ended',
        'recorded',
        'we have ordered no such transfer',
      ],
    )
    const ends = await Promise.all([first, waiting, taken, open, fresh].map(({ rf }) => resultOf(rf)))
    assert.deepEqual(ends, ['000.200.000', '000.100.112', '000.200.000', '100.200.103', '000.200.000'])
    assert.equal((await tellUs(returnOf([[sent[1]!, '00']])))[0]!.kind, 'recorded')

    const staysFor = /^Its transfers wait until somebody says what the bank has: `tollgate transfers release itau-demo`/
    const stays = async () =>
      (await reasonsToStay(gateway.pool, sandbox.merchantId)).filter(reason => staysFor.test(reason)).length
    assert.equal(await stays(), 1, 'another cell would send them again')
    assert.match((await release('0')).stderr, /^The last file of itau-demo that this database knows is 1: /)
    assert.match((await release('10002')).stderr, /^The last file of itau-demo/)
    assert.match(
      (await commands.run('transfers', 'release', 'oxxo-demo', '--behind', '2')).stderr,
      /^SLIPS_FILE has no bank account/,
    )
    const released = await release('2')
    assert.deepEqual([released.code, released.out], [0, 'itau-demo goes on with file 3, for which 1 refunds wait.\n'])
    assert.equal((await release('2')).stderr, 'No files of transfers of itau-demo wait to be released.\n')
    assert.equal(await openCases('transfersHeld', 'itau-demo'), 0)
    assert.equal(await stays(), 0)
    const [next, ...others] = await newest()
    assert.deepEqual([written(), others], [['transfers-itau-demo-000003.rem'], []])
    const list = JSON.parse((await commands.run('transfers', 'list', '--all', '--json')).stdout).transfers
    assert.equal(list.find(({ refundId }: Body) => refundId === fresh.rf).reference, next!.own)
    await tellUs(returnOf([[next!, '00']]))
    assert.equal(await resultOf(fresh.rf), '000.100.112')
    await booksAgree()
  })

  it('takes what was in a file that was not on disk into the next', async () => {
    const { transfers: _, ...rest } = account
    const gone = new Map([['itau-demo', { ...rest, transfers: { ...account.transfers!, folder: join(folder, 'gone') } }]])
    const numbered = await ordered('70.00')
    await assert.rejects(write({ ...parts, slipAccounts: gone }))
    const list = async () => JSON.parse((await commands.run('transfers', 'list', '--json')).stdout).transfers as Body[]
    const found = (await list()).find(({ refundId }) => refundId === numbered.rf)!
    assert.deepEqual([found.waitsFor, typeof found.file], ['the next file', 'number'], 'nobody has it yet')
    const said = (row: string) => put(put(row, 74, found.reference.padEnd(20)), 120, '7000'.padStart(15, '0'))
    const [result] = await tellUs(returnOf([[atBank(written().at(-1)!)[0]!, 'BD', said]]))
    assert.match(result!.kind === 'refused' ? result!.why : '', /^it is in a file that this database knows nothing of/)
    await gateway.pool.query(`update installation set stands_on = 'another 1 00000001'`)
    const count = written().length
    await write()
    assert.equal(written().length, count, 'before anybody has looked, too')
    await end()
    await begin({ ...named, drop: async () => {} })
    await write()
    assert.equal(written().length, count)
    assert.equal((await release('9')).code, 0)
    assert.deepEqual(
      (await newest()).map(({ amount }) => Number(amount)),
      [7000],
    )
    assert.deepEqual(written().slice(count), ['transfers-itau-demo-000010.rem'])
  })

  it('is told from a fail-over by a process that lives, which knows how far the files were', async () => {
    const ticks: (() => void)[] = []
    const every = (_: number, act: () => void) => ({ cancel: () => {}, at: ticks.push(act) })
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    await watchPutBack(database, { ...systemClock, every } as never, log)
    const look = async (what: () => Promise<boolean>) => {
      ticks[0]!()
      await eventually(what, 'it looks')
    }
    const failOver = async () => {
      await gateway.pool.query(`update installation set stands_on = regexp_replace(stands_on, '\\S+$', '00000000')`)
      const known = `select from installation where stands_on not like '% 00000000'`
      await look(async () => (await gateway.pool.query(known)).rowCount === 1)
    }
    const before = await held()
    await gateway.pool.query(`insert into transfer_files values ('moved', 7, now(), now())`)
    await failOver()
    assert.deepEqual(await held(), before, 'a standby has taken over')
    await gateway.pool.query(`delete from transfer_files where account = 'moved'`)
    await failOver()
    assert.deepEqual(await held(), before, 'a merchant who left was forgotten')
    const last = Number(written().at(-1)!.slice(-10, -4))
    await gateway.pool.query('update refund_transfers set sequence = null, line = null where sequence = $1', [last])
    await gateway.pool.query('delete from transfer_files where sequence = $1', [last])
    await look(async () => (await held()).released.length === 0)
    assert.deepEqual(await held(), { held: true, released: [], after: null })
  })
})
