// Capture files: what an acquirer gets instead of a 0220 each, when processes die or work at the same time, and what it says of them. What counts is what
// is in the folder and in the books of the host.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type pg from 'pg'
import { importAcknowledgement } from '../src/clearing/captures/acknowledge.ts'
import { captureText } from '../src/clearing/captures/captureFile.ts'
import { type CaptureParts, captureFile } from '../src/clearing/captures/write.ts'
import { lineText } from '../src/cli/files.ts'
import { type CollectedLine, collectedColumns } from '../src/connectors/cards/iso8583/collected.ts'
import { dialectOf } from '../src/connectors/cards/iso8583/dialects.ts'
import { profileSchema } from '../src/connectors/cards/iso8583/profile.ts'
import { systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { errorText, OperatorError } from '../src/platform/errors.ts'
import { read } from '../src/platform/schema.ts'
import { type CaptureFault, takeCaptures } from '../src/sandbox/acquirerHost/captures.ts'
import { openLedger } from '../src/sandbox/acquirerHost/ledger.ts'
import { withPool } from './support/database.ts'
import { beginDay, type Day } from './support/day.ts'
import { eventually, sandbox, testKeys, visa } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'
import { holdWhen } from './support/movingCells.ts'
import { commandLine, startProcess } from './support/process.ts'

type Test = { after(end: () => Promise<void> | void): void }
type Captures = Day & {
  readonly folder: string
  readonly database: Database
  readonly parts: CaptureParts
  capture(amount: string, part?: string): Promise<string>
  /** The writer, as due work runs it. */
  write(parts?: CaptureParts): Promise<unknown>
  files(): string[]
  text(at?: number): string
}

async function begin(t: Test, more: object = {}, profile: object = {}): Promise<Captures> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-captures-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const given = { ...profile, captures: { by: 'file', folder, everyMinutes: 1440, ...more } }
  const day = await beginDay(given)
  t.after(day.stop)
  const database = connect(day.gateway.connection, day.clock, () => {})
  t.after(() => database.close())
  const dialect = dialectOf(read(profileSchema, { reconciliation: { ...day.rules }, ...given }, 'test'))
  const options = { name: 'north', account: { acquirerId: '423930' }, dialect }
  const parts = {
    database,
    clock: day.clock,
    random: systemRandom,
    log: { info() {} },
    acquirers: new Map([['north', { options }]]),
  } as unknown as CaptureParts
  const files = () => readdirSync(folder).sort()
  return {
    ...day,
    folder,
    database,
    parts,
    files,
    text: (at = 0) => readFileSync(join(folder, files()[at]!), 'utf8'),
    write: (own = parts) => captureFile(own, { details: { acquirer: 'north' } } as unknown as Parameters<typeof captureFile>[1]),
    async capture(amount, part = amount) {
      const hold = await day.pay('PA', amount)
      await day.refer(hold, 'CP', part)
      return hold
    },
  }
}

const booked = ({ host }: Day) =>
  [...host.ledger.entries()].filter(({ line }) => line.kind === 'capture').map(({ line }) => Number(line.amount))

const acknowledge = (one: Captures, text: string, tell: (at: number, result: { kind: string }) => void = () => {}) =>
  importAcknowledgement(
    { database: one.database, clock: one.clock, random: systemRandom, keys: testKeys },
    { name: 'north', acquirerId: '423930', rules: one.parts.acquirers.get('north')!.options.dialect.captures },
    'acknowledgement',
    text,
    tell,
  )

/** What each file holds, and that every capture is in exactly one of them. */
function amountsOf(one: Captures): number[][] {
  return one.files().map((name, at) => {
    const rows = readFileSync(join(one.folder, name), 'utf8')
      .split('\r\n')
      .map(row => row.split(','))
    assert.deepEqual(rows[0]!.slice(0, 3), ['CAPTURES', '423930', String(at + 1)])
    assert.equal(rows.at(-1)!.join(), '')
    const amounts = rows.slice(1, -2).map(row => Number(row[7]))
    assert.deepEqual(rows.at(-2), ['TOTAL', String(amounts.length), String(amounts.reduce((sum, amount) => sum + amount, 0))])
    return amounts
  })
}

describe('a capture file', () => {
  it('goes out at its time, is booked by the host, and the day agrees with both', async t => {
    const one = await begin(t, { everyMinutes: 60 })
    const hold = await one.capture('50.00', '40.00')
    await one.capture('9.00')
    await one.pay('DB', '8.00')
    assert.deepEqual(booked(one), [], 'nothing was sent')
    assert.deepEqual(one.files(), [])
    one.end(-30)
    await eventually(async () => one.files().length === 1 && !one.files()[0]!.startsWith('.'), 'the file')
    assert.deepEqual(one.files(), ['captures-north-000001.csv'])
    assert.equal(statSync(join(one.folder, one.files()[0]!)).mode & 0o777, 0o600)
    assert.equal(one.text().split('\r\n')[0], `CAPTURES,423930,1,${one.day}`)
    assert.doesNotMatch(one.text(), /\d{13}|\*/, 'no card number')
    assert.deepEqual(amountsOf(one), [[4000, 900]])
    const said = takeCaptures(one.host.ledger, one.text(), '423930')
    assert.deepEqual(booked(one), [4000, 900])
    const held = () => [...one.host.ledger.entries()].find(({ line }) => line.kind === 'hold')!.held
    await eventually(async () => held() === 0n, 'the rest is released')
    const told: string[] = []
    assert.ok(!('broken' in (await acknowledge(one, said, (at, { kind }) => told.push(`${at} ${kind}`)))))
    assert.deepEqual(told, ['2 recorded', '3 recorded'])
    // The refund names the capture of the file.
    await one.refer(hold, 'RF', '15.00')
    const refund = [...one.host.ledger.entries()].at(-1)!
    assert.deepEqual([refund.line.kind, refund.line.amount], ['credit', '000000001500'])
    assert.equal(
      refund.line.original,
      [...one.host.ledger.entries()].find(({ line }) => line.amount === '000000004000')!.line.name,
    )
    one.end()
    await eventually(
      async () => (await one.gateway.pool.query('select 1 from day_totals where answered_at is not null')).rowCount === 1,
      'the day',
    )
    assert.deepEqual(one.host.counters.reconciled[0]!.fields.get(88), '0000000000005700')
    assert.deepEqual(await one.cases(), [])
  })

  it('counts in the day of the file, not in that of the capture; what is in no file counts nowhere', async t => {
    const one = await begin(t)
    await one.capture('50.00')
    await one.pay('DB', '8.00')
    one.end()
    await eventually(async () => one.host.counters.reconciled.length === 1, 'the day is told')
    assert.equal(one.host.counters.reconciled[0]!.fields.get(88), '0000000000000800')
    await one.write()
    assert.notEqual(one.text().split('\r\n')[0], `CAPTURES,423930,1,${one.day}`)
    takeCaptures(one.host.ledger, one.text(), '423930')
    one.end(24 * 60 + 11)
    await eventually(async () => one.host.counters.reconciled.length === 2, 'the next day is told')
    assert.equal(one.host.counters.reconciled[1]!.fields.get(88), '0000000000005000')
    assert.deepEqual(await one.cases(), [])
  })

  it('an interval without captures makes none, and takes no number', async t => {
    const one = await begin(t)
    await one.write()
    assert.deepEqual(one.files(), [])
    await one.capture('5.00')
    await one.write()
    await one.write()
    await one.capture('6.00')
    await one.write()
    assert.deepEqual(amountsOf(one), [[500], [600]])
  })

  it('what may have been sent before the profile changed is repeated, and in no file', async t => {
    const one = await begin(t)
    await one.capture('5.00')
    // As it stands when a 0220 was sent by a process that died.
    for (const statement of [
      'delete from collected_captures',
      "delete from answers a using payments p where p.id = a.payment_id and p.payment_type = 'CP'",
      "update payments set record = replace(record, ',\"capture\":\"file\"', '') where payment_type = 'CP'",
      "insert into due_work (kind, merchant_id, subject_id, due_at) select 'recover', merchant_id, id, now() from payments where payment_type = 'CP'",
    ])
      assert.notEqual((await one.gateway.pool.query(statement)).rowCount, 0, statement)
    await eventually(async () => booked(one).length === 1, 'the host has it by message')
    await one.write()
    assert.deepEqual(one.files(), [])
  })

  it('a capture whose process died before its answer is collected by recovery, once', async t => {
    const one = await begin(t)
    await one.capture('5.00', '4.00')
    for (const statement of [
      'delete from collected_captures',
      "delete from answers a using payments p where p.id = a.payment_id and p.payment_type = 'CP'",
      "insert into due_work (kind, merchant_id, subject_id, due_at) select 'recover', merchant_id, id, now() from payments where payment_type = 'CP'",
    ])
      assert.notEqual((await one.gateway.pool.query(statement)).rowCount, 0, statement)
    const collected = async () => (await one.gateway.pool.query('select 1 from collected_captures')).rowCount === 1
    await eventually(collected, 'it is collected')
    await one.write()
    assert.deepEqual([amountsOf(one), booked(one)], [[[400]], []])
  })
})

it('no value shifts a column', () => {
  const { captures } = dialectOf({ like: '1987' })
  const line = Object.fromEntries(collectedColumns.map(name => [name, '1'])) as CollectedLine
  const text = captureText('423930', 1, '2026-11-20', [{ ...line, merchantId: 'A,"B' }], captures)
  assert.equal(text.split('\r\n')[1], `CAPTURE,1,"A,""B"${',1'.repeat(11)}`)
})

/** A pool that dies before its nth statement. */
function dying(pool: pg.Pool, after: number): { pool: pg.Pool; died(): boolean } {
  let left = after
  const die = () => {
    if (left-- <= 0) throw new Error('died')
  }
  const watch = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get(at, name) {
        const value = Reflect.get(at, name) as unknown
        if (name === 'query')
          return async (...given: unknown[]) => {
            if (given[0] !== 'rollback') die()
            return (value as (...given: unknown[]) => unknown).apply(at, given)
          }
        if (name === 'connect') return async () => watch((await (at as unknown as pg.Pool).connect()) as object)
        return typeof value === 'function' ? value.bind(at) : value
      },
    })
  return { pool: watch(pool), died: () => left < 0 }
}

describe('a process that dies', () => {
  it('before any statement: each capture is in exactly one file, and no number is left out', async t => {
    const one = await begin(t)
    let [deaths, count] = [0, 0]
    for (let after = 0; ; after++) {
      await one.capture(`${++count}.00`)
      const { pool, died } = dying(one.database.work, after)
      await one.write({ ...one.parts, database: { work: pool } }).catch(() => {})
      await one.write()
      assert.deepEqual(
        amountsOf(one).flat(),
        Array.from({ length: count }, (_, at) => (at + 1) * 100),
      )
      if (!died()) break
      deaths++
    }
    assert.ok(deaths >= 9, String(deaths))
  })

  it('between the number and the disk: the same bytes are written, whatever was captured since', async t => {
    const one = await begin(t)
    await one.capture('5.00')
    // The folder is gone: everything is written down, and nothing is on disk.
    const gone = { ...one.parts, acquirers: new Map([['north', elsewhere(one, '/nowhere/at/all')]]) } as CaptureParts
    await assert.rejects(one.write(gone), /ENOENT/)
    const { rows } = await one.gateway.pool.query('select content from capture_files where written_at is null')
    await one.capture('6.00')
    await one.write()
    assert.equal(one.text(), rows[0].content)
    assert.deepEqual(amountsOf(one), [[500], [600]])
  })

  it('after the rename: the file stays as it is, and is not written again', async t => {
    const one = await begin(t)
    await one.capture('5.00')
    await one.write()
    const path = join(one.folder, one.files()[0]!)
    const { ino } = statSync(path)
    await one.gateway.pool.query('update capture_files set written_at = null')
    await one.write()
    assert.equal(statSync(path).ino, ino)
    const { rows } = await one.gateway.pool.query('select written_at is not null as written from capture_files')
    assert.deepEqual(rows, [{ written: true }])
  })

  for (const [step, files] of [
    ['writeFileSync before', 0],
    ['writeFileSync after', 0],
    ['renameSync before', 0],
    ['renameSync after', 1],
    ['fsyncSync before', 0],
    ['fsyncSync before 2', 1],
    ['fsyncSync after 2', 1],
  ] as const)
    it(`by kill -9, ${step}: the next one writes the same bytes, once`, async t => {
      const one = await begin(t)
      await one.capture('5.00')
      assert.equal(await killedAt(one, step), 'SIGKILL')
      const whole = () => one.files().filter(name => !name.startsWith('.'))
      assert.equal(whole().length, files)
      const { rows } = await one.gateway.pool.query('select content, written_at from capture_files')
      assert.deepEqual([rows.length, rows[0].written_at], [1, null])
      await one.capture('6.00')
      await one.write()
      assert.deepEqual(whole(), ['captures-north-000001.csv', 'captures-north-000002.csv'])
      assert.equal(readFileSync(join(one.folder, whole()[0]!), 'utf8'), rows[0].content)
      takeCaptures(one.host.ledger, readFileSync(join(one.folder, whole()[0]!), 'utf8'), '423930')
      takeCaptures(one.host.ledger, readFileSync(join(one.folder, whole()[1]!), 'utf8'), '423930')
      assert.deepEqual(booked(one), [500, 600])
    })

  it("writes over nobody's file", async t => {
    const one = await begin(t)
    const path = join(one.folder, 'captures-north-000001.csv')
    writeFileSync(path, 'of another')
    await one.capture('5.00')
    await assert.rejects(one.write(), /is not ours/)
    assert.equal(readFileSync(path, 'utf8'), 'of another')
    rmSync(path)
    await one.write()
    assert.deepEqual(amountsOf(one), [[500]])
  })

  it('two and more at the same time write one file', async t => {
    const one = await begin(t)
    for (let round = 1; round <= 5; round++) {
      await one.capture('5.00')
      await Promise.all([one.write(), one.write(), one.write(), one.write()])
      assert.deepEqual(
        amountsOf(one),
        Array.from({ length: round }, () => [500]),
      )
    }
  })
})

/** A writer of its own, which is killed before or after its call of something that goes to disk. How it ended. */
async function killedAt({ gateway, folder }: Captures, step: string): Promise<NodeJS.Signals | null> {
  const [name, when, call = 1] = step.split(' ')
  const source = (path: string) => JSON.stringify(new URL(`../src/${path}`, import.meta.url).href)
  const program = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const kill = () => process.kill(process.pid, 'SIGKILL')
    const real = fs.${name}
    let calls = 0
    fs.${name} = (...given) => {
      const isHere = ++calls === ${call}
      if (isHere && ${when === 'before'}) kill()
      const value = real(...given)
      if (isHere) kill()
      return value
    }
    syncBuiltinESMExports()
    const { captureFile } = await import(${source('clearing/captures/write.ts')})
    const { connect } = await import(${source('platform/database/connect.ts')})
    const { dialectOf } = await import(${source('connectors/cards/iso8583/dialects.ts')})
    const { systemClock, systemRandom } = await import(${source('platform/clock.ts')})
    const dialect = dialectOf({ like: '1987', captures: ${JSON.stringify({ by: 'file', folder, everyMinutes: 60, separator: ',', fileName: 'captures-{acquirer}-{sequence}.csv' })} })
    const database = connect(${JSON.stringify(gateway.connection)}, systemClock, () => {})
    const acquirers = new Map([['north', { options: { name: 'north', account: { acquirerId: '423930' }, dialect } }]])
    await captureFile({ database, clock: systemClock, random: systemRandom, log: { info() {} }, acquirers }, { details: { acquirer: 'north' } })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'inherit', 'inherit'] })
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  return signal
}

function elsewhere(one: Captures, folder: string): { options: object } {
  const { options } = one.parts.acquirers.get('north')!
  return { options: { ...options, dialect: { ...options.dialect, captures: { ...options.dialect.captures, folder } } } }
}

describe('an acknowledgement', () => {
  async function acknowledged(t: Test, fault?: CaptureFault): Promise<Captures & { said: string }> {
    const one = await begin(t)
    await one.capture('5.00')
    await one.capture('6.00')
    await one.write()
    return { ...one, said: takeCaptures(one.host.ledger, one.text(), '423930', ',', fault) }
  }
  const outcomes = async (one: Captures) =>
    (await one.gateway.pool.query('select outcome from collected_captures order by line')).rows.map(({ outcome }) => outcome)

  it('marks what is accepted, however often it is read', async t => {
    const one = await acknowledged(t)
    for (const known of [0, 2]) {
      const report = await acknowledge(one, one.said)
      assert.deepEqual('broken' in report || [report.known, report.missing], [known, 0])
    }
    assert.deepEqual(await outcomes(one), ['accepted', 'accepted'])
    assert.deepEqual(await one.cases(), [])
  })

  for (const [fault, kind, marked, ours] of [
    ['rejects', 'captureLine', ['accepted', 'rejected'], '600'],
    ['leavesOut', 'captureUnacknowledged', ['accepted', null], '600'],
    ['foreign', 'captureLine', ['accepted', 'accepted'], undefined],
  ] as const)
    it(`${fault}: is a case with what both sides have`, async t => {
      const one = await acknowledged(t, fault)
      await acknowledge(one, one.said)
      assert.deepEqual(await outcomes(one), marked)
      const cases = await one.cases()
      assert.deepEqual(
        cases.map(found => found.kind),
        [kind],
      )
      const details = cases[0]!.details as { ours: { amount: string } | null; theirs: { trace: string } | null }
      assert.equal(details.ours?.amount, ours)
      assert.equal(details.theirs === null, fault === 'leavesOut')
      if (fault === 'foreign') return
      await acknowledge(one, takeCaptures(one.host.ledger, one.text(), '423930'))
      assert.deepEqual([await outcomes(one), await one.cases()], [['accepted', 'accepted'], []], 'a corrected one closes it')
    })

  it('of a merchant who has left says what it said before; what it says anew is a case, and the rest goes on', async t => {
    const one = await acknowledged(t, 'rejects')
    await acknowledge(one, one.said)
    const corrected = takeCaptures(one.host.ledger, one.text(), '423930')
    const { pool } = one.gateway
    const { merchantId } = sandbox
    await pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
      [merchantId],
    )
    await pool.query(
      `create trigger fence before insert or update or delete on collected_captures for each row execute function refuse_elsewhere('${merchantId}')`,
    )
    const told: string[] = []
    const report = await acknowledge(one, corrected, (at, { kind }) => told.push(`${at} ${kind}`))
    assert.deepEqual([told, 'broken' in report || report.missing], [['2 known', '3 refused'], 0])
    assert.deepEqual(await outcomes(one), ['accepted', 'rejected'])
  })

  it('whose merchants come to be held goes on when they are served again', async t => {
    const one = await acknowledged(t)
    const release = await holdWhen(one.gateway.pool, 'clearing_lines', 'new.line = 2')
    await assert.rejects(acknowledge(one, one.said), ServedElsewhere)
    assert.deepEqual([await outcomes(one), await one.cases()], [['accepted', null], []])
    await release()
    await acknowledge(one, one.said)
    assert.deepEqual([await outcomes(one), await one.cases()], [['accepted', 'accepted'], []])
  })

  it('that is cut off, of another acquirer, or none is refused as a whole', async t => {
    const one = await acknowledged(t)
    const whole = one.said
    for (const text of [
      takeCaptures(one.host.ledger, one.text(), '423930', ',', 'truncated'),
      whole.replace('423930', '423931'),
      whole.replace('ACCEPTED', 'constructor'),
      whole.replace(/^ACCEPTED(,1,.*?)\r?$/m, 'REJECTED$1,a\0b'),
      whole.replace(/^ACCEPTED(,1,.*?)\r?$/m, 'REJECTED$1,a\x1b[2J'),
      whole.replace(/^ACCEPTED,2/m, 'ACCEPTED,1'),
      'a,b',
      '',
    ])
      assert.ok('broken' in (await acknowledge(one, text)), text)
    assert.deepEqual(await outcomes(one), [null, null])
  })

  it('what it says is shown on a terminal without what a terminal would obey', () =>
    assert.equal(
      lineText({ line: 1, outcome: 'refused', text: 'x\rline 9\x1b[2J' }),
      'line 1  refused  x\\u000dline 9\\u001b[2J\n',
    ))
  it('and so is what stops a command, with names of files in it', () =>
    assert.equal(
      errorText(new OperatorError('Nothing of \x1b[2J.csv was read.\nAgain.')),
      'Nothing of \\u001b[2J.csv was read.\nAgain.',
    ))

  for (const [what, change] of [
    ['trace', (text: string) => text.replace(/^(ACCEPTED,2),\d{6}/m, '$1,424242')],
    ['reference', (text: string) => text.replace(/^(ACCEPTED,2,\d{6}),\d+/m, '$1,NOBODYS00001')],
    ['file', (text: string) => text.replace('423930,1', '423930,2')],
  ] as const)
    it(`of another ${what} accepts nothing`, async t => {
      const one = await acknowledged(t)
      await acknowledge(one, change(one.said))
      assert.deepEqual(await outcomes(one), what === 'file' ? [null, null] : ['accepted', null])
      assert.ok((await one.cases()).every(({ kind }) => kind.startsWith('capture')))
      assert.equal((await one.cases()).length, 2)
    })

  it('what was accepted is not rejected afterwards: somebody has to ask', async t => {
    const one = await acknowledged(t)
    await acknowledge(one, one.said)
    await acknowledge(one, one.said.replace('ACCEPTED,2', 'REJECTED,2'))
    assert.deepEqual(await outcomes(one), ['accepted', 'accepted'])
    assert.deepEqual(
      (await one.cases()).map(({ details }) => details.why),
      ['it was accepted before'],
    )
  })
})

it('an operator has a file booked, reads what the acquirer says of it, and sees what is left', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-captured-'))
  const [ledger, captured] = [join(folder, 'ledger.jsonl'), join(folder, 'captures')]
  mkdirSync(captured)
  const host = await testHost({ ledger: openLedger(ledger) })
  const captures = { by: 'file', folder: captured, everyMinutes: 60 }
  const file = acquirersFile({ north: [host.port] }, { profile: { captures } })
  const environment = { DATA_DIR: join(folder, 'data'), ACQUIRERS_FILE: file.path }
  const gateway = await startProcess(environment)
  t.after(async () => {
    await gateway.stop()
    await host.stop()
    file.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  const post = async (path: string, values: Record<string, string>) => {
    const answer = await fetch(`${gateway.sandbox.baseUrl}/v1/payments${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${sandbox.accessToken}` },
      body: new URLSearchParams({ entityId: sandbox.entityId, currency: 'EUR', ...values }),
    })
    return (await answer.json()) as { id: string; result: { code: string }; resultDetails?: Record<string, string> }
  }
  for (const amount of ['5.00', '6.00']) {
    const { id } = await post('', { paymentType: 'PA', amount, testMode: 'EXTERNAL', ...visa })
    const { result, resultDetails } = await post(`/${id}`, { paymentType: 'CP', amount })
    assert.deepEqual([result.code, resultDetails?.AcquirerResponse], ['000.100.112', undefined])
  }
  const words = ['acquirers', 'captures', '--json', '--acquirer', 'north']
  const waiting = JSON.parse((await commandLine(environment, ...words)).stdout)
  assert.deepEqual([waiting.waiting[0].captures, waiting.files], [2, []])
  await withPool(runningEmbedded(join(folder, 'data'))!, pool =>
    pool.query(`update due_work set due_at = '2000-01-01' where kind = 'captureFile'`),
  )
  const path = join(captured, 'captures-north-000001.csv')
  await eventually(async () => existsSync(path), 'the file')
  const said = await commandLine(
    {},
    'acquirer-host',
    '--acquirers',
    file.path,
    '--ledger',
    ledger,
    '--captures',
    path,
    '--capture-fault',
    'rejects',
  )
  assert.equal(said.code, 0, said.out)
  const acknowledgement = join(folder, 'said.csv')
  writeFileSync(acknowledgement, said.stdout)
  const read = await commandLine(environment, ...words, '--acknowledge', acknowledgement)
  const { lines, files, missing } = JSON.parse(read.stdout)
  assert.deepEqual([read.code, missing], [1, 0])
  assert.deepEqual(
    lines.map((line: { outcome: string; text: string }) => [line.outcome, /EXPIRED/.test(line.text)]),
    [
      ['recorded', false],
      ['refused', true],
    ],
  )
  assert.deepEqual(
    [waiting.waiting, lines, files].map(([one]) => Object.keys(one).sort().join(' ')),
    ['acquirer captures oldestAt', 'line outcome text', 'accepted acquirer captures day madeAt name rejected sequence writtenAt'],
  )
  assert.deepEqual([files[0].sequence, files[0].captures, files[0].accepted, files[0].rejected], [1, 2, 1, 1])
  assert.match((await commandLine(environment, 'cases', 'list')).out, /captureLine/)
  const wrong = await commandLine(environment, ...words, '--acknowledge', path)
  assert.deepEqual([wrong.code, /no heading of an acknowledgement/.test(wrong.out)], [1, true])
})
