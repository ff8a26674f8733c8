// Settlement files: written by the host out of its own books, right and wrong, and what an operator reads of them.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { dayAfter } from '../src/clearing/reconciliation/day.ts'
import { importSettlement } from '../src/clearing/reconciliation/settlement.ts'
import { exampleDialect } from '../src/connectors/cards/iso8583/dialects.ts'
import { applySeed, readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { systemRandom } from '../src/platform/clock.ts'
import { connect } from '../src/platform/database/connect.ts'
import { ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import {
  type HostFileLayout,
  hostBookings,
  type SettlementFault,
  settlementText,
} from '../src/sandbox/acquirerHost/settlement.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { type MoveSide, moveMerchant } from '../src/start/moves/move.ts'
import { beginDay, type Day, fullDay } from './support/day.ts'
import { eventually, testGateway, testKeys } from './support/gateway.ts'
import { cellMerchant, holdWhen, payIn, seedOf, sideOf } from './support/movingCells.ts'
import { signedIn } from './support/office.ts'
import { commandLine } from './support/process.ts'

const byFile = { reconciliation: { by: 'file', afterMinutes: 60 } }

/** The file of a day as the host writes it. */
function fileOf({ host, clock, rules, day }: Day, fault?: SettlementFault, layout: HostFileLayout = 'csv', of = day): string {
  return settlementText(hostBookings(host.ledger, rules, clock.real(), fault), of, '423930', layout, fault)
}

/** Reads a file; `dieAt`: the process dies when it has told of so many lines. */
async function readFile(day: Day, text: string, { dieAt, layout = 'csv' }: { dieAt?: number; layout?: HostFileLayout } = {}) {
  const database = connect(day.gateway.connection, day.clock, () => {})
  const told: string[] = []
  try {
    const report = await importSettlement(
      { database, clock: day.clock, random: systemRandom, keys: testKeys },
      {
        name: 'north',
        acquirerId: '423930',
        rules: day.rules,
        layout: exampleDialect(layout === 'csv' ? '1987' : '1987 ebcdic').settlementFile!,
      },
      'file',
      text,
      (at, { kind }) => {
        told.push(`${at} ${kind}`)
        if (told.length === dieAt) throw new Error('died')
      },
    )
    return { told, ...report } as typeof report & { told: string[]; recorded?: number; known?: number; missing?: number }
  } finally {
    await database.close()
  }
}

const kindsOf = async (day: Day) =>
  (await day.cases()).map(({ kind, details }) => `${kind}${details.why ? `: ${details.why}` : ''}`).sort()
const rowsOf = async ({ gateway }: Day, table: string) =>
  Number((await gateway.pool.query(`select count(*) from ${table}`)).rows[0].count)

/** Two debits of a day that is over, and whose file is awaited. */
async function endedDay(t: { after(end: () => Promise<void>): void }): Promise<Day> {
  const day = await beginDay(byFile)
  t.after(day.stop)
  await day.pay('DB', '92.00')
  await day.pay('DB', '8.00')
  day.end(1)
  return day
}

describe('a settlement file', () => {
  for (const layout of ['csv', 'fixed'] as const)
    it(`${layout}: fits all that was booked, once, whatever it is called`, async t => {
      const day = await beginDay(byFile)
      t.after(day.stop)
      await fullDay(day)
      day.end(1)
      const text = fileOf(day, undefined, layout)
      await eventually(async () => (await rowsOf(day, 'taken_back')) === 1, 'the reversal is kept')
      const first = await readFile(day, text, { layout })
      assert.deepEqual([first.recorded, first.missing], [10, 0])
      const second = await readFile(day, text, { layout })
      assert.deepEqual([second.recorded, second.known], [0, 10])
      assert.equal((await readFile(day, `\uFEFF${text}`, { layout })).known, 10)
      if (layout === 'fixed') {
        const filledUp = text.replaceAll(' ', '\0')
        assert.notEqual(filledUp, text)
        assert.equal((await readFile(day, filledUp, { layout })).known, 10)
      }
      assert.deepEqual(await day.cases(), [])
    })

  it('goes on where its import died, and settles nothing twice', async t => {
    const day = await endedDay(t)
    const text = fileOf(day)
    await assert.rejects(readFile(day, text, { dieAt: 1 }), /died/)
    assert.deepEqual([await rowsOf(day, 'settled_bookings'), await rowsOf(day, 'settled_days')], [1, 0])
    assert.deepEqual((await readFile(day, text)).told, ['2 known', '3 recorded'])
    assert.equal(await rowsOf(day, 'settled_bookings'), 2)
  })

  it('is handed in by the office, and by the command is the same file', async t => {
    const day = await endedDay(t)
    const clerk = await signedIn(day.gateway, 'finance', [readSeed(sandboxSeed).psp.id], day.clock)
    const handIn = (bytes: string) => clerk.upload('/office/files', { what: 'settlement:north' }, { name: 'day.csv', bytes })
    assert.match((await handIn(fileOf(day).slice(0, -15))).text, /Nothing of day\.csv was read: /)
    assert.match((await handIn(fileOf(day))).text, /day\.csv is read to its end: 2 recorded, 0 known already/)
    assert.deepEqual((await readFile(day, fileOf(day))).told, ['2 known', '3 known'])
  })
})

describe('a settlement file', () => {
  // What is refused leaves nothing: all of them are of one day.
  let day: Day
  before(async () => {
    day = await endedDay({ after: () => {} })
  })
  after(() => day.stop())

  for (const [what, change, why] of [
    ['that is cut off', (text: string) => text.slice(0, -15), /does not begin with TOTAL/],
    ['whose end says another sum', (text: string) => text.replace('TOTAL,2,10000', 'TOTAL,2,10001'), /together/],
    ['whose end says another number', (text: string) => text.replace('TOTAL,2,', 'TOTAL,3,'), /2 lines/],
    ['of another acquirer', (text: string) => text.replaceAll('423930', '423931'), /of the acquirer 423931, not of 423930/],
    ['with a line that cannot be read', (text: string) => text.replace(',9200,', ',92.OO,'), /no readable amount/],
    ['of several days', (text: string) => text.replace(/\d{4}-\d\d-\d\d/, '2020-01-01'), /several days/],
    ['without a column', (text: string) => text.replace('RRN', 'REF'), /no column RRN/],
    ['that is none', () => 'report,line\n1,2', /./],
    ['that is empty', () => '', /it is empty/],
    ['of a day of long ago', (text: string) => text.replace(/\d{4}-\d\d-\d\d/g, '0001-01-01'), /no readable day/],
    ['of a day that never comes', (text: string) => text.replace(/\d{4}-\d\d-\d\d/g, '9999-12-31'), /no readable day/],
    [
      'with a kind that is none',
      (text: string) => text.replace(',D,', ',constructor,'),
      /of a kind that its layout does not name/,
    ],
  ] as const)
    it(`${what} is refused as a whole`, async () => {
      const report = await readFile(day, change(fileOf(day)))
      assert.ok('broken' in report)
      assert.match(report.broken, why)
      for (const table of ['settled_bookings', 'settled_days', 'clearing_files']) assert.equal(await rowsOf(day, table), 0)
    })
})

describe('what does not fit', () => {
  it('a booking that the file has not is a case, until the next file brings it', async t => {
    const day = await endedDay(t)
    const report = await readFile(day, fileOf(day, 'missing'))
    assert.deepEqual([report.recorded, report.missing], [1, 1])
    const [found] = await day.cases()
    assert.deepEqual([found!.kind, (found!.details.ours as { amount: number }).amount], ['lineMissing', 800])
    // The acquirer counts it to its next day.
    const [heading, , second] = fileOf(day).split('\r\n')
    const next = second!.replace(day.day, dayAfter(day.day))
    assert.equal((await readFile(day, [heading, next, 'TOTAL,1,800'].join('\n'))).recorded, 1)
    assert.deepEqual(await day.cases(), [])
    // And once more, on yet another day: that is no longer the same money.
    const again = next.replace(dayAfter(day.day), dayAfter(day.day, 2))
    assert.deepEqual((await readFile(day, [heading, again, 'TOTAL,1,800'].join('\n'))).told, ['2 refused'])
    assert.deepEqual(await kindsOf(day), ['settlementLine: the booking is settled already, by another line'])
  })

  for (const [fault, why] of [
    ['doubled', 'the booking is settled already, by another line'],
    ['otherAmount', 'the booking is of another amount or currency'],
    ['foreign', 'we have no such booking'],
  ] as const)
    it(`${fault}: is a case with what both sides have`, async t => {
      const day = await endedDay(t)
      await readFile(day, fileOf(day, fault))
      assert.deepEqual(await kindsOf(day), [`settlementLine: ${why}`])
      const { ours, theirs } = (await day.cases())[0]!.details as { ours: { amount: number }[]; theirs: { amount: number } }
      assert.equal(theirs.amount, fault === 'otherAmount' ? 801 : 800)
      assert.deepEqual(
        ours.map(({ amount }) => amount),
        fault === 'foreign' ? [] : [800],
      )
      if (fault !== 'otherAmount') return
      assert.equal((await readFile(day, fileOf(day))).recorded, 1)
      assert.deepEqual(await day.cases(), [], 'a corrected file closes it')
    })

  it('an amount never finds a booking: trace and terminal must fit too', async t => {
    const day = await endedDay(t)
    const text = fileOf(day).replace('TERM0001', 'TERM0009')
    assert.deepEqual((await readFile(day, text)).told, ['2 refused', '3 recorded'])
    assert.deepEqual(await kindsOf(day), ['lineMissing', 'settlementLine: we have no such booking'])
  })

  it('a day whose file does not come is a case, until it comes', async t => {
    const day = await endedDay(t)
    day.end(59)
    assert.deepEqual(await day.cases(), [])
    day.end(61)
    await eventually(async () => (await kindsOf(day)).join() === 'settlementMissing', 'the file is missed')
    await readFile(day, fileOf(day))
    assert.deepEqual(await day.cases(), [])
  })

  it('nothing is missed while the day is open', async t => {
    const day = await beginDay(byFile)
    t.after(day.stop)
    await day.pay('DB', '92.00')
    await day.pay('DB', '8.00')
    assert.equal((await readFile(day, fileOf(day, 'missing'))).missing, undefined)
    assert.deepEqual(await day.cases(), [])
  })
})

describe('where a merchant has left the cell', () => {
  const merchant = cellMerchant(1)
  /** A day with three debits; the second is of a merchant who has moved since. */
  async function movedDay(t: { after(end: () => Promise<void>): void }) {
    const day = await beginDay(byFile)
    t.after(day.stop)
    const other = await testGateway()
    t.after(other.stop)
    await applySeed(day.gateway.pool, testKeys, day.clock, systemRandom, seedOf([merchant]))
    await day.pay('DB', '92.00')
    const one = sideOf('one', day.gateway.connection)
    const two = sideOf('two', other.connection)
    t.after(async () => void (await Promise.all([one.close(), two.close()])))
    const paid = async () =>
      (await payIn({ gateway: day.gateway, side: one }, merchant, { amount: '8.00', testMode: 'EXTERNAL' })).status
    await eventually(async () => (await paid()) === 200, 'the seed is known')
    await day.pay('DB', '7.00')
    const parts = { source: one as MoveSide, target: two as MoveSide, merchantId: merchant.id, tell: () => {} }
    await moveMerchant({ ...parts, patienceSeconds: 2, refusalSeconds: 60 })
    return { day, other: { ...day, gateway: other }, forget: () => forgetMerchant(one, two, merchant.id) }
  }
  const elsewhere = 'settlementLine: the merchant of the booking is served by another cell: hand the file in there too'

  it('its line alone is a case, and the file is read to its end; the other cell settles it', async t => {
    const { day, other, forget } = await movedDay(t)
    day.end(1)
    const text = fileOf(day)
    const report = await readFile(day, text)
    assert.deepEqual([report.told, report.missing], [['2 recorded', '3 refused', '4 recorded'], 0])
    assert.deepEqual([await rowsOf(day, 'settled_bookings'), await rowsOf(day, 'settled_days')], [2, 1])
    assert.deepEqual(await kindsOf(day), [elsewhere])
    assert.deepEqual((await readFile(day, text)).told, ['2 known', '3 refused', '4 known'])
    assert.deepEqual((await readFile(other, text)).told, ['2 refused', '3 recorded', '4 refused'])
    const settled = await other.gateway.pool.query('select merchant_id from settled_bookings')
    assert.deepEqual(
      settled.rows.map(row => row.merchant_id),
      [merchant.id],
    )
    await forget()
    assert.deepEqual((await readFile(day, text)).told, ['2 known', '3 refused', '4 known'])
  })

  it('its bookings are not missed, and the day ends', async t => {
    const { day, other } = await movedDay(t)
    day.end(1)
    const [heading, ...lines] = fileOf(day).split('\r\n')
    const withoutIt = [heading, lines[0], 'TOTAL,1,9200'].join('\n')
    const missed = async ({ gateway }: Day): Promise<number[]> =>
      (await gateway.pool.query(`select details from operator_cases where kind = 'lineMissing'`)).rows.map(
        ({ details }) => JSON.parse(details).ours.amount,
      )
    const report = await readFile(day, withoutIt)
    assert.deepEqual([report.recorded, report.missing], [1, 1])
    assert.deepEqual(await missed(day), [700])
    day.end(61)
    const waits = async () =>
      (await day.gateway.pool.query(`select details ->> 'day' as day from due_work where kind = 'cutOver'`)).rows[0].day
    await eventually(async () => (await waits()) === dayAfter(day.day), 'the next day is awaited')
    // Where it is served they are asked for.
    await readFile(other, withoutIt)
    assert.deepEqual(await missed(other), [800])
  })
})

it('the rest of a file whose merchants come to be held meanwhile is settled when they are served again', async t => {
  const day = await endedDay(t)
  const { pool } = day.gateway
  const release = await holdWhen(pool, 'clearing_lines', 'new.line = 2')
  await assert.rejects(readFile(day, fileOf(day)), ServedElsewhere)
  assert.deepEqual([await rowsOf(day, 'settled_bookings'), await rowsOf(day, 'settled_days')], [1, 0])
  assert.deepEqual(await day.cases(), [])
  await release()
  assert.deepEqual((await readFile(day, fileOf(day))).told, ['2 known', '3 recorded'])
})

it('nothing is called missing while merchants are held', async t => {
  const day = await endedDay(t)
  const text = fileOf(day, 'missing')
  // When the file is settled, and before anybody asks what it has not.
  const release = await holdWhen(day.gateway.pool, 'settled_days', 'true')
  await assert.rejects(readFile(day, text), ServedElsewhere)
  assert.deepEqual(await day.cases(), [])
  await release()
  assert.equal((await readFile(day, text)).missing, 1)
  assert.deepEqual(await kindsOf(day), ['lineMissing'])
})

it('the acquirer host writes the file of a day from its ledger, right or wrong', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-settlement-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const ledger = join(folder, 'ledger.jsonl')
  const day = new Date(Date.now() - 3_600_000).toISOString().slice(0, 10)
  const time = `${day.slice(5).replace('-', '')}120000`
  const line = {
    kind: 'purchase',
    key: `00 000001 ${time} TERM0001`,
    name: `200 000001 ${time} 423935`,
    card: '420000******0000',
    amount: '000000009200',
    currency: '978',
    rrn: '632612000001',
    answer: [[39, '00']],
  }
  writeFileSync(ledger, `${JSON.stringify(line)}\n`)
  const write = (...more: string[]) => commandLine({}, 'acquirer-host', '--ledger', ledger, '--settlement', day, ...more)
  const lines = [`${day},423935,TERM0001,000001,632612000001,D,9200,978`, 'TOTAL,1,9200']
  const heading = 'DATE,ACQUIRER,TERMINAL,STAN,RRN,TYPE,AMOUNT,CURRENCY'
  assert.equal((await write()).stdout, `${[heading, ...lines].join('\r\n')}\r\n`)
  assert.match((await write('--settlement-fault', 'wrongTrailer')).stdout, /TOTAL,1,9201/)
  const fixed = (await write('--profile', '1987 ebcdic')).stdout.split('\r\n')
  assert.deepEqual(
    fixed.slice(0, 3).map(one => one.length),
    [60, 60, 60],
  )
  assert.equal((await write('--settlement-fault', 'none')).code, 2)
})
