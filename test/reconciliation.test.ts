// The end of a day: what an acquirer is told of it, what it says, and what an operator reads where the two differ. What counts is what the host
// received and what its own books say.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Pool } from 'pg'
import { dayOf } from '../src/clearing/reconciliation/day.ts'
import { encode, type Message } from '../src/connectors/cards/iso8583/codec.ts'
import { exampleDialect } from '../src/connectors/cards/iso8583/dialects.ts'
import { frame } from '../src/connectors/cards/iso8583/framing.ts'
import { answerType, namedDay } from '../src/connectors/cards/iso8583/versions.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { withPool } from './support/database.ts'
import { beginDay, fullDay, shortDay } from './support/day.ts'
import { eventually, sandbox, type TestGateway, visa } from './support/gateway.ts'
import { acquirersFile } from './support/host.ts'
import { startPeer } from './support/peer.ts'
import { commandLine, startProcess } from './support/process.ts'
import { toldHost } from './support/toldHost.ts'

const frameOf = (message: Message): Buffer => {
  const bytes = encode(message, exampleDialect('1987'))
  assert.ok(Buffer.isBuffer(bytes), JSON.stringify(bytes))
  return frame(bytes)
}

const totals: Record<number, string> = {
  74: '0000000002',
  75: '0000000000',
  76: '0000000005',
  77: '0000000003',
  86: '0000000000001900',
  87: '0000000000000000',
  88: '0000000000795201',
  89: '0000000000779501',
  97: 'D0000000000013800',
}
const saidOf = (message: { fields: ReadonlyMap<number, string> }) =>
  Object.fromEntries(Object.keys(totals).map(field => [field, message.fields.get(Number(field))]))

describe('totals by message', () => {
  for (const like of ['1987', '1993'] as const)
    it(`${like}: are told at the end of the day, agree with the books of the host, and leave nothing behind`, async t => {
      const day = await beginDay(like === '1993' ? { like, mac: { algorithm: 'none' } } : { like })
      t.after(day.stop)
      await fullDay(day)
      await eventually(async () => (await openWork(day.gateway)) === 1, 'nothing is open but the day')
      day.end(9)
      await new Promise(resolve => setTimeout(resolve, 600))
      assert.equal(day.host.counters.reconciled.length, 0, 'not before its time')
      day.end()
      await eventually(async () => day.host.counters.reconciled.length > 0, 'it is told')
      await eventually(async () => (await answered(day.gateway)).length === 1, 'its answer is kept')
      const [message] = day.host.counters.reconciled
      assert.equal(message!.type, '0500')
      assert.equal(message!.fields.get(15), day.day.slice(5).replace('-', ''))
      assert.equal(message!.fields.get(50), '978')
      assert.deepEqual(saidOf(message!), totals)
      assert.deepEqual(await answered(day.gateway), [{ day: day.day, balance: 'in', attempts: 1 }])
      assert.deepEqual(await day.cases(), [])
    })
})

describe('a day that does not agree', () => {
  for (const [fault, theirs] of [
    ['missing', 9200],
    ['doubled', 10_800],
    ['otherAmount', 10_001],
    ['foreign', 10_800],
  ] as const)
    it(`${fault}: is a case with what both sides have`, async t => {
      const day = await beginDay({}, { settlementFault: fault })
      t.after(day.stop)
      await shortDay(day)
      const [found] = await eventually(async () => {
        const cases = await day.cases()
        return cases.length > 0 && cases
      }, 'a case')
      assert.deepEqual([found!.kind, found!.subject], ['totalsDiffer', `north ${day.day} TERM0001 EUR`])
      const {
        ours,
        theirs: said,
        lines,
        balance,
      } = found!.details as {
        ours: { debit: object }
        theirs: { debit: { amount: number } }
        lines: { kind: string; amount: number }[]
        balance: string
      }
      assert.deepEqual(ours.debit, { count: 2, amount: 10_000 })
      assert.deepEqual([said.debit.amount, balance], [theirs, 'out'])
      assert.deepEqual(
        lines.map(({ kind, amount }) => `${kind} ${amount}`),
        ['debit 9200', 'debit 800'],
      )
    })

  /** A host that answers totals with these fields alone. */
  const hostSaying = async (
    t: { after(end: () => Promise<void>): void },
    code: string,
    more: readonly (readonly [number, string])[],
  ) => {
    let line: Socket | undefined
    let heard = 0
    const peer = await startPeer((socket, { type, fields }) => {
      line = socket
      if (type === '0510') heard++
      if (type === '0510') return
      const isTotal = type[1] === '5'
      const kept = isTotal ? [7, 11, 12, 13, 15, 32, 41, 42, 50].map(field => [field, fields.get(field)!] as const) : [...fields]
      socket.write(
        frameOf({ type: answerType(type), fields: new Map([...kept, [39, isTotal ? code : '00'], ...(isTotal ? more : [])]) }),
      )
    })
    const day = await beginDay({}, { port: peer.port })
    t.after(async () => {
      await day.stop()
      peer.stop()
    })
    await shortDay(day)
    await eventually(async () => (await answered(day.gateway)).length === 1, 'it is told')
    return { day, say: (message: Message) => line!.write(frameOf(message)), heard: () => heard }
  }
  for (const word of ['3', '0', '2'])
    it(`a host that says ${word} for the day and no totals is not in balance`, async t => {
      const { day } = await hostSaying(t, '00', [[66, word]])
      const [found] = await eventually(async () => (await day.cases()).length > 0 && day.cases(), 'a case')
      assert.deepEqual([found!.kind, found!.details.differs], ['totalsDiffer', ['out of balance']])
    })
  for (const code of ['00', '94'])
    it(`a host that says ${code} and nothing else has not spoken`, async t => {
      const { day } = await hostSaying(t, code, [])
      assert.deepEqual(await answered(day.gateway), [{ day: day.day, balance: null, attempts: 1 }])
    })
  it('stays one when the host says nothing afterwards', async t => {
    const { day, say, heard } = await hostSaying(t, '00', [
      [66, '2'],
      [88, '0000000000009999'],
    ])
    const [open] = await eventually(async () => (await day.cases()).length === 1 && (await day.cases()), 'a case')
    const fields: [number, string][] = [
      [7, '1120020000'],
      [11, '000077'],
      [15, day.day.slice(5).replace('-', '')],
      [41, 'TERM0001'],
      [50, '978'],
    ]
    say({ type: '0500', fields: new Map(fields) })
    await eventually(async () => heard() === 1, 'the first was heard')
    await new Promise(resolve => setTimeout(resolve, 700)) // long enough to be compared, if it were
    say({ type: '0500', fields: new Map([...fields, [11, '000078'], [76, '0000000007']]) })
    await eventually(async () => {
      const { rows } = await day.gateway.pool.query(
        `select 1 from day_totals where theirs::text like '%7%' and not exists (select 1 from due_work where kind = 'compareDay')`,
      )
      return rows.length === 1
    }, 'the second was heard and compared')
    assert.deepEqual(
      (await day.cases()).map(one => one.id),
      [open!.id],
    )
  })
  it('agrees after all when the host corrects itself', async t => {
    const sockets: Socket[] = []
    const peer = await startPeer((socket, message) => {
      sockets.push(socket)
      if (message.type === '0510') return
      const more = message.type.startsWith('05') ? [[66, '2'] as const] : []
      socket.write(frameOf({ type: answerType(message.type), fields: new Map([...message.fields, [39, '00'], ...more]) }))
    })
    const day = await beginDay({}, { port: peer.port })
    t.after(async () => {
      await day.stop()
      peer.stop()
    })
    await shortDay(day)
    await eventually(async () => (await day.cases()).length === 1, 'out of balance, though it says what we say')
    const totals = (amount: string): Message => ({
      type: '0500',
      fields: new Map([
        [7, '1120020000'],
        [11, '000077'],
        [15, day.day.slice(5).replace('-', '')],
        [41, 'TERM0001'],
        [50, '978'],
        [76, '0000000002'],
        [88, amount.padStart(16, '0')],
      ]),
    })
    sockets.at(-1)!.write(frameOf(totals('9999')))
    await eventually(
      async () => JSON.stringify((await day.gateway.pool.query('select theirs from day_totals')).rows).includes('9999'),
      'heard',
    )
    assert.equal((await day.cases()).length, 1)
    sockets.at(-1)!.write(frameOf(totals('10000')))
    await eventually(async () => (await day.cases()).length === 0, 'it is closed')
    const { rows } = await day.gateway.pool.query('select closed_by, reason from operator_cases')
    assert.deepEqual(rows, [{ closed_by: 'gateway', reason: 'the totals agree' }])
  })
})

describe('a day is told once', () => {
  it('and again as 0520 and 0521, in the same words, when no answer comes', async t => {
    const lost = new Set(['0500', '0520'])
    const day = await beginDay({}, { faults: ({ type }) => (lost.delete(type) ? 'answerLost' : undefined) })
    t.after(day.stop)
    await shortDay(day)
    await eventually(async () => (await answered(day.gateway)).length === 1, 'it is answered')
    const told = day.host.counters.reconciled
    assert.deepEqual(
      told.map(({ type }) => type),
      ['0500', '0520', '0521'],
    )
    for (const { fields } of told) assert.deepEqual(fields, told[0]!.fields)
    assert.deepEqual(await day.cases(), [])
  })

  it('by two processes together', async t => {
    const day = await beginDay({})
    const other = await day.gateway.another()
    t.after(async () => {
      await other.stop()
      await day.stop()
    })
    await shortDay(day)
    await eventually(async () => (await waitingDay(day.gateway)) > day.day, 'the next day waits')
    assert.deepEqual(
      day.host.counters.reconciled.map(({ type }) => type),
      ['0500'],
    )
  })

  it('when nothing of it is open any more, with what was answered meanwhile', async t => {
    const gate = { open: false }
    const day = await beginDay({}, { faults: ({ type }) => (!gate.open && type.startsWith('022') ? 'requestLost' : undefined) })
    t.after(day.stop)
    const hold = await day.pay('PA', '50.00')
    await day.refer(hold, 'CP', '50.00')
    await shortDay(day)
    const looked = () =>
      day.gateway.pool.query(`select 1 from due_work where kind = 'cutOver' and attempts > 0 and leased_until is null`)
    await eventually(async () => (await looked()).rowCount === 1, 'the end of the day was looked at')
    assert.equal(day.host.counters.reconciled.length, 0)
    gate.open = true
    await eventually(async () => [...day.host.ledger.entries()].some(({ line }) => line.kind === 'capture'), 'it is captured')
    day.end(13)
    await eventually(async () => (await answered(day.gateway)).length === 1, 'the day is told')
    assert.equal(day.host.counters.reconciled[0]!.fields.get(88), '0000000000015000')
    assert.deepEqual(await day.cases(), [])
  })
})

const waitingDay = async ({ pool }: TestGateway) =>
  (await pool.query(`select details ->> 'day' as day from due_work where kind = 'cutOver'`)).rows[0].day as string
const openWork = async ({ pool }: TestGateway) => Number((await pool.query('select count(*) from due_work')).rows[0].count)
const answered = async ({ pool }: TestGateway) =>
  (await pool.query('select day, balance, attempts from day_totals where answered_at is not null order by day, terminal')).rows

describe('days', () => {
  const rows: [cutOver: string, timeZone: string, at: string, day: string][] = [
    ['24:00', 'UTC', '2026-11-20T23:59:59.999Z', '2026-11-20'],
    ['24:00', 'UTC', '2026-11-21T00:00Z', '2026-11-21'],
    ['23:00', 'UTC', '2026-11-20T22:59:59.999Z', '2026-11-20'],
    ['23:00', 'UTC', '2026-11-20T23:00Z', '2026-11-21'],
    ['23:00', 'UTC', '2026-12-31T23:30Z', '2027-01-01'],
    ['24:00', 'America/Sao_Paulo', '2026-11-21T02:59:59Z', '2026-11-20'],
    ['24:00', 'America/Sao_Paulo', '2026-11-21T03:00Z', '2026-11-21'],
    ['24:00', 'Asia/Tokyo', '2026-11-20T15:00Z', '2026-11-21'],
    // Clocks show 02:30 twice on 2026-10-25 in Berlin: the day ends at the first, and does not begin anew.
    ['02:30', 'Europe/Berlin', '2026-10-25T00:29:59Z', '2026-10-25'],
    ['02:30', 'Europe/Berlin', '2026-10-25T00:30Z', '2026-10-26'],
    ['02:30', 'Europe/Berlin', '2026-10-25T01:15Z', '2026-10-26'],
    // And never on 2026-03-29.
    ['02:30', 'Europe/Berlin', '2026-03-29T00:59:59Z', '2026-03-29'],
    ['02:30', 'Europe/Berlin', '2026-03-29T01:30Z', '2026-03-30'],
  ]
  for (const [cutOver, timeZone, at, day] of rows)
    it(`${at} is of ${day} where days end at ${cutOver} in ${timeZone}`, () =>
      assert.equal(dayOf(Date.parse(at), { cutOver, timeZone }), day))

  it('a day that an answer names without a year is the nearest', () => {
    const at = Date.UTC(2026, 11, 31, 23, 50)
    assert.deepEqual(
      ['0101', '1231', '270101', '0229', '1332', ''].map(digits => namedDay(digits, at)),
      ['2027-01-01', '2026-12-31', '2027-01-01', undefined, undefined, undefined],
    )
  })
})

it('a process that is killed while it tells a day leaves one that says the same again', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-days-'))
  const host = await toldHost()
  const yesterday = new Date(Date.now() - 24 * 3_600_000).toISOString().slice(0, 10)
  const file = acquirersFile(
    { north: [host.port] },
    { answerWithinSeconds: 2, profile: { reconciliation: { by: 'message', afterMinutes: 0 } } },
  )
  const environment = { DATA_DIR: join(folder, 'data'), ACQUIRERS_FILE: file.path }
  let gateway = await startProcess(environment)
  t.after(async () => {
    await gateway.stop()
    host.stop()
    file.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  const pay = (amount: string) =>
    fetch(`${gateway.sandbox.baseUrl}/v1/payments`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${sandbox.accessToken}` },
      body: new URLSearchParams({
        entityId: sandbox.entityId,
        paymentType: 'DB',
        testMode: 'EXTERNAL',
        amount,
        currency: 'EUR',
        ...visa,
      }),
    })
  const inDatabase = <Value>(work: (pool: Pool) => Promise<Value>) => withPool(runningEmbedded(join(folder, 'data'))!, work)
  // The host says that the first is of yesterday: its own day counts, not ours.
  host.tell = ({ fields }) =>
    fields.get(4) === '000000009200' ? { code: '00', more: [[15, yesterday.slice(5).replace('-', '')]] } : '00'
  await pay('92.00')
  await pay('8.00')
  host.tell = () => 'silence'
  await inDatabase(pool =>
    pool.query(`update due_work set due_at = '2000-01-01', details = details || $1 where kind = 'cutOver'`, [
      JSON.stringify({ day: yesterday }),
    ]),
  )
  const told = () => host.received.filter(({ type }) => type.startsWith('05')).map(({ message }) => message)
  await eventually(async () => told().length === 1, 'the day is told')
  await gateway.stop('SIGKILL')
  host.tell = ({ type }) => (type.startsWith('05') ? { code: '00', more: [[66, '1']] } : '00')
  gateway = await startProcess(environment)
  await eventually(async () => told().length > 1, 'it is told again')
  await eventually(
    () => inDatabase(async pool => (await pool.query('select 1 from day_totals where answered_at is not null')).rowCount === 1),
    'it is answered',
  )
  assert.deepEqual(
    told().map(({ type }) => type),
    ['0500', '0520'],
  )
  assert.deepEqual(told()[0]!.fields, told()[1]!.fields)
  assert.deepEqual([told()[0]!.fields.get(76), told()[0]!.fields.get(88)], ['0000000001', '0000000000009200'])

  // What the operator reads, and what a file does.
  const words = ['acquirers', 'reconcile', '--json', '--acquirer', 'north']
  const shown = await commandLine(environment, ...words, '--day', yesterday)
  assert.equal(shown.code, 0, shown.out)
  const { days, differences } = JSON.parse(shown.stdout)
  assert.deepEqual([differences, days.length, days[0].ours.debit, days[0].differs], [0, 1, { count: 1, amount: 9200 }, []])
  const path = join(folder, 'settlement.csv')
  const heading = 'DATE,ACQUIRER,TERMINAL,STAN,RRN,TYPE,AMOUNT,CURRENCY'
  // No day of a year has the number 999: the line is of no payment of ours, whatever today is.
  writeFileSync(path, `${heading}\n${yesterday},423930,TERM0001,000001,699900000001,D,9200,978\nTOTAL,1,9200\n`)
  const read = await commandLine(environment, ...words, '--file', path)
  assert.equal(read.code, 1, read.out)
  assert.deepEqual(
    [JSON.parse(read.stdout).differences, JSON.parse(read.stdout).days[0].missing, JSON.parse(read.stdout).lines[0].outcome],
    [2, 1, 'refused'],
  )
  const status = await commandLine(environment, 'acquirers', 'status')
  assert.deepEqual([status.code, /2 differences with acquirers are open/.test(status.out)], [1, true])
  writeFileSync(path, `${heading}\n${yesterday},423931,TERM0001,000001,699900000001,D,9200,978\nTOTAL,1,9200\n`)
  const wrong = await commandLine(environment, 'acquirers', 'reconcile', '--file', path)
  assert.deepEqual([wrong.code, /Nothing of .* was read: line 2 is of the acquirer 423931/.test(wrong.out)], [1, true])
  const { rows } = await commandLine(environment, 'audit', '--json').then(({ stdout }) => JSON.parse(stdout))
  assert.deepEqual(
    rows
      .filter(({ result }: { result: string }) => result === 'refused')
      .map(({ details }: { details: { what: string } }) => details.what),
    ['settlement'],
  )
  assert.equal((await commandLine(environment, 'acquirers', 'reconcile', '--day', '2026-02-30')).code, 2)
  assert.equal((await commandLine(environment, 'acquirers', 'reconcile', '--acquirer', 'south')).code, 1)
})
