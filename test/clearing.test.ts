// Files of acquirers: read once whatever they are called, line by line, on from where an import died; what fits nothing waits for somebody to decide.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Actor, thisProcess } from '../src/audit/entry.ts'
import { chargebackReports } from '../src/clearing/chargebacks/chargebacks.ts'
import { importFile, type LineResult } from '../src/clearing/import.ts'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { closeCase } from '../src/payments/cases/cases.ts'
import { findCases } from '../src/payments/cases/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database, inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { databaseUrl } from './support/database.ts'
import { eventually, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { project } from './support/process.ts'

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
type ImportRow = Record<'sequence' | 'action' | 'actor' | 'actorKind' | 'result' | 'details', string>
const rowsOfImports = async () =>
  (
    await gateway.pool.query<ImportRow>(
      `select *, actor_kind as "actorKind" from audit where action = 'fileImported' or details like '{"act":"fileImported"%' order by sequence`,
    )
  ).rows
const importRows = async (after = 0) =>
  (await rowsOfImports()).slice(after).map(({ action, result, details }) => [action, result, JSON.parse(details)])
const rowOf = async (action: string) => Number((await rowsOfImports()).findLast(row => row.action === action)?.sequence)
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
    const file = { kind: 'chargebackReport', name: 'one.csv' }
    const begun = await rowOf('actBegun')
    // What a gateway by itself reads again is told of when something came of it, however often it reads it.
    assert.deepEqual(await importRows(), [
      ['actBegun', 'done', { act: 'fileImported', ...file }],
      ['fileImported', 'refused', { ...file, recorded: 2, known: 0, noted: 0, refused: 0, why: 'Error', begun }],
      ['fileImported', 'done', { ...file, recorded: 1, known: 2, noted: 0, refused: 0 }],
    ])
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

describe('whoever hands a file in', () => {
  const keys = { SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32) } // those of the test gateway
  const ann = { kind: 'user', id: 'ann', address: 'here' } as const
  const handIn = (name: string, text: string, by: Actor | undefined) =>
    importFile({ ...parts(), ...(by && { by }) }, chargebackReports, name, text, () => {})
  const file = { kind: 'chargebackReport', name: 'east.csv' }

  it('hands it in to its end, also when dismissed half way; who is dismissed before hands none in', async () => {
    const ids = [(await gateway.pay()).body.id, (await gateway.pay()).body.id]
    const text = [heading, ...ids.map((id, at) => lineOf('left', at + 1, id))].join('\n')
    const [before, told] = [await payments(), (await rowsOfImports()).length]
    let asked = 0
    const leaving = { ...ann, isStill: async () => ++asked === 1 }
    const report = await handIn('left.csv', text, leaving)
    assert.deepEqual([report?.recorded, report?.refused, (await payments()) - before], [2, 0, 2])
    const rows = (await rowsOfImports()).slice(told).map(({ action, actor, result }) => [action, actor, result])
    assert.deepEqual(rows, [
      ['actBegun', 'ann', 'done'],
      ['fileImported', 'ann', 'done'],
    ])
    const next = [heading, lineOf('late', 1, (await gateway.pay()).body.id)].join('\n')
    await assert.rejects(handIn('late.csv', next, leaving), /may act no more/)
    assert.deepEqual([(await payments()) - before, (await rowsOfImports()).length - told], [2, 2])
  })

  it('has a row before anything of it is recorded, also when the process is killed half way', async () => {
    await keepMode(gateway.pool, 'sandbox', Date.now())
    await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
    const ids = [(await gateway.pay()).body.id, (await gateway.pay()).body.id]
    const text = [heading, ...ids.map((id, at) => lineOf('killed', at + 1, id))].join('\n')
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-clearing-'))
    writeFileSync(join(folder, 'killed.csv'), text)
    const [before, told] = [await payments(), (await rowsOfImports()).length]
    // The second line waits for its payment.
    const holder = await gateway.pool.connect()
    await holder.query('begin')
    await holder.query('select from payments where id = $1 for update', [ids[1]])
    const child = spawn(join(project, 'bin/tollgate'), ['chargebacks', 'import', join(folder, 'killed.csv')], {
      env: { PATH: process.env.PATH, ...keys, DATABASE_URL: databaseUrl(gateway.connection), DATA_DIR: folder },
      stdio: 'ignore',
    })
    const exit = once(child, 'exit')
    try {
      await eventually(async () => (await payments()) > before, 'the first line is recorded')
      child.kill('SIGKILL')
      await exit
    } finally {
      await holder.query('rollback')
      holder.release()
      rmSync(folder, { recursive: true, force: true })
    }
    assert.equal(await payments(), before + 1)
    const [begun, ...others] = (await rowsOfImports()).slice(told)
    assert.deepEqual([begun?.action, begun?.actor, others.length], ['actBegun', thisProcess('commandLine').id, 0])
    // Who goes on has a row of what was left, and no more.
    await handIn('killed.csv', text, ann)
    const [, end] = await importRows(told + 1)
    assert.deepEqual([end![1], end![2].recorded, end![2].known], ['done', 1, 1])
    assert.equal((await rowsOfImports()).at(-1)!.actor, 'ann')
  })

  it('and once more has a row of the lines that fit by now, and so has a gateway by itself', async () => {
    for (const by of [ann, undefined]) {
      const { body: pa } = await gateway.pay({ paymentType: 'PA' })
      const text = [heading, lineOf(`fits-${by?.id}`, 1, pa.id)].join('\n')
      await handIn('east.csv', text, by)
      const told = (await rowsOfImports()).length
      await handIn('east.csv', text, undefined)
      assert.deepEqual(await importRows(told), [], 'a gateway that reads again, and nothing comes of it')
      await gateway.refer(pa.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
      await handIn('east.csv', text, by)
      const counts = { recorded: 1, known: 0, noted: 0, refused: 0 }
      const begun = by && (await rowOf('actBegun'))
      assert.deepEqual(await importRows(told), [
        ...(by ? [['actBegun', 'done', { act: 'fileImported', ...file }]] : []),
        ['fileImported', 'done', { ...file, ...counts, ...(by && { begun }) }],
      ])
      const { actor, actorKind } = (await rowsOfImports()).at(-1)!
      assert.deepEqual([actorKind, actor], by ? ['user', 'ann'] : ['gateway', thisProcess('gateway').id])
    }
  })

  it('of nothing that can be told of has nothing recorded', async () => {
    const { body } = await gateway.pay()
    const before = await payments()
    await gateway.pool.query(`create function swallow() returns trigger language plpgsql as $$ begin
        if new.action = 'actBegun' then return null; end if; return new; end $$;
      create trigger swallow before insert on audit for each row execute function swallow()`)
    const text = [heading, lineOf('untold', 1, body.id)].join('\n')
    await assert
      .rejects(handIn('untold.csv', text, ann), /did not keep the audit as it was written/)
      .finally(() => gateway.pool.query('drop function swallow cascade'))
    assert.equal(await payments(), before)
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
