// Files of acquirers: read once whatever they are called, line by line, on from where an import died; what fits nothing waits for somebody to decide.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { chargebackReports } from '../src/clearing/chargebacks/chargebacks.ts'
import { importFile, type LineResult } from '../src/clearing/import.ts'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { closeCase } from '../src/payments/cases/cases.ts'
import { findCases } from '../src/payments/cases/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { type TestGateway, testGateway, testKeys } from './support/gateway.ts'

let gateway: TestGateway
let database: Database
let directory: Directory
before(async () => {
  gateway = await testGateway()
  database = connect(gateway.connection, systemClock, () => {})
  directory = await openDirectory(database, testKeys, systemClock, () => {})
})
after(async () => {
  await directory.close()
  await database.close()
  await gateway.stop()
})

const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
const lineOf = (report: string, line: number, reference: string) => `${report},${line},CB,,${reference},92.00,EUR,10.4,2031-03-04`
const parts = () => ({ database, directory, clock: systemClock, random: systemRandom, keys: testKeys, build: 'test' })

/** `dieAt`: the process dies when it has told of so many lines. */
async function read(name: string, text: string, dieAt?: number) {
  const told: string[] = []
  const tell = (at: number, result: LineResult) => {
    told.push(`${at} ${result.kind}`)
    if (told.length === dieAt) throw new Error('died')
  }
  const report = await importFile(parts(), chargebackReports, name, text, tell)
  return { ...report!, told }
}
const payments = async () =>
  Number((await gateway.pool.query(`select count(*) from payments where payment_type = 'CB'`)).rows[0].count)
const open = async () => (await findCases(gateway.pool, false, 100)).map(({ subject }) => subject)

describe('a file', () => {
  it('goes on where an import of it died, and is counted once, whatever it is called', async () => {
    const ids = [(await gateway.pay()).body.id, (await gateway.pay()).body.id, (await gateway.pay()).body.id]
    const text = [heading, ...ids.map((id, at) => lineOf('north', at + 1, id))].join('\n')
    await assert.rejects(read('one.csv', text, 2), /died/)
    assert.equal(await payments(), 2)
    const { rows } = await gateway.pool.query('select lines, finished_at from clearing_files')
    assert.deepEqual([rows.length, rows[0].lines, rows[0].finished_at], [1, 3, null])
    const second = await read('one.csv', text)
    assert.deepEqual([second.again, second.told], [false, ['2 known', '3 known', '4 recorded']])
    const third = await read('another name.csv', text)
    assert.deepEqual([third.again, third.recorded, third.known], [true, 0, 3])
    assert.equal(await payments(), 3)
    const audited = await gateway.pool.query(`select details from audit where action = 'fileImported'`)
    assert.deepEqual(
      audited.rows.map(({ details }) => JSON.parse(details)),
      [{ kind: 'chargebackReport', name: 'one.csv', recorded: 1, known: 2, noted: 0, refused: 0 }],
    )
    assert.deepEqual(await open(), [])
  })

  it('is read by two at once without anything being recorded twice', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, async () => (await gateway.pay()).body.id as string))
    const text = [heading, ...ids.map((id, at) => lineOf('twice', at + 1, id))].join('\n')
    const before = await payments()
    const [one, other] = await Promise.all([read('a', text), read('b', text)])
    assert.equal(one.recorded + other.recorded, 5)
    assert.equal(one.refused + other.refused, 0)
    assert.equal((await payments()) - before, 5)
  })

  it('of another kind leaves no trace', async () => {
    const files = async () => (await gateway.pool.query('select 1 from clearing_files')).rowCount
    const before = await files()
    assert.equal(await importFile(parts(), chargebackReports, 'x', 'a,b,c\n1,2,3', () => {}), undefined)
    assert.equal(await files(), before)
  })
})

describe('what fits no payment', () => {
  it('is one case for an operator, however often it comes, and is closed when it fits', async () => {
    const before = await payments()
    const unknown = 'f'.repeat(32)
    const text = [heading, lineOf('south', 1, unknown), 'south,2,XX,,nonsense,1,EUR,,2031-03-04'].join('\n')
    for (const name of ['first', 'again']) assert.equal((await read(name, text)).refused, 2)
    assert.equal((await read('longer', `${text}\n${lineOf('south', 3, unknown)}`)).refused, 3)
    const subjects = await open()
    assert.deepEqual(subjects.filter(subject => subject.startsWith('south')).sort(), ['south line 1', 'south line 3'])
    assert.equal(subjects.length, 4) // the unreadable line stands in two files, and is a case of each
    assert.equal(await payments(), before)
    // The acquirer sends the line again, with the right reference.
    const { body } = await gateway.pay()
    assert.equal((await read('corrected', [heading, lineOf('south', 1, body.id)].join('\n'))).recorded, 1)
    assert.ok(!(await open()).includes('south line 1'))
    const [closed] = (await findCases(gateway.pool, true, 100)).filter(({ subject }) => subject === 'south line 1')
    assert.deepEqual([closed!.closedBy, closed!.reason], ['gateway', 'the line came again and was recorded'])
  })

  it('and cannot even be read is one case for the file, which says how much of it that is', async () => {
    const before = await open()
    const { body } = await gateway.pay()
    const text = [heading, lineOf('west', 1, body.id), ...Array(300).fill('x'), 'west,2,XX,,nonsense,1,EUR,,2031-03-04'].join(
      '\n',
    )
    const report = await read('nonsense.csv', text)
    assert.deepEqual([report.recorded, report.refused, report.told[1]], [1, 301, '3 refused'])
    const cases = (await findCases(gateway.pool, false, 400)).filter(({ subject }) => !before.includes(subject))
    assert.deepEqual(
      cases.map(({ kind, details }) => [kind, JSON.parse(details)]),
      [['clearingLine', { file: 'nonsense.csv', line: 3, why: 'has 1 columns, the heading has 9', unreadable: 301 }]],
    )
    // A process that died before the first of them was stored leaves the case to whoever goes on.
    const another = `${text}\nx`
    await assert.rejects(read('died.csv', another, 1), /died/)
    await read('died.csv', another)
    assert.equal((await open()).length, before.length + 2)
    await read('again.csv', another)
    assert.equal((await open()).length, before.length + 2)
  })

  it('is closed once, by somebody, with a reason that the audit keeps', async () => {
    const [first] = await findCases(gateway.pool, false, 1)
    const by = { ...parts(), by: { kind: 'user', id: 'ann', address: 'here' } as const }
    const [one, other] = await Promise.all([
      closeCase(by, first!.id, 'ann', 'the acquirer withdrew it'),
      closeCase(by, first!.id, 'bob', 'me too'),
    ])
    assert.equal([one, other].filter(closed => closed !== undefined).length, 1)
    assert.ok(!(await open()).includes(first!.subject))
    const { rows } = await gateway.pool.query(`select actor, entity_id, details from audit where action = 'caseClosed'`)
    assert.equal(rows.length, 1)
    assert.deepEqual([JSON.parse(rows[0].details).about, rows[0].entity_id], [first!.subject, null])
  })
})
