// Log lines: only named fields, bounded, and nothing in them that a caller, a server or a parser put there.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type Clock, clockWith, type Timer } from '../src/platform/clock.ts'
import type { LogFields } from '../src/platform/log.ts'
import { makeLog, scrub } from '../src/platform/log.ts'
import { project } from './support/process.ts'

const card = '4539578763621486'
let now = 0
function logged(write: (log: ReturnType<typeof makeLog>) => void): { line: string; fields: Record<string, unknown> }[] {
  const lines: string[] = []
  write(
    makeLog(
      'debug',
      { write: (line: string) => void lines.push(line) },
      clockWith(() => now),
    ),
  )
  return lines.map(line => ({ line, fields: JSON.parse(line) }))
}
const lineOf = (fields: object) => logged(log => log.warn(fields as LogFields, 'something'))[0]!

describe('a line', () => {
  it('has named fields only', () => {
    const { fields } = lineOf({ ndc: 'abc', password: 'secret', why: 'it broke' })
    assert.deepEqual(Object.keys(fields).sort(), ['level', 'msg', 'ndc', 'time', 'why'])
  })

  it('is bounded, whatever is put into it', () => {
    const long = 'x'.repeat(100_000)
    const { line } = lineOf({ why: long, route: long, names: Array(5000).fill(long), address: long, ndc: long, result: long })
    assert.ok(line.length < 5000, `${line.length}`)
  })

  const quoted: Record<string, [given: string, written: string]> = {
    'a value that the database quotes': [
      'invalid input syntax for type uuid: "Xmarker-7"',
      'invalid input syntax for type uuid: "…"',
    ],
    'the text that a parser quotes': [
      `Unexpected token 'X', "Xmarker"... is not valid JSON`,
      `Unexpected token '…', "…"... is not valid JSON`,
    ],
    'a quotation that does not end': ['no such thing: "Xmarker and more', 'no such thing: "…"'],
    'names of our own tables stay': ['relation "payments" misses "Xmarker"', 'relation "payments" misses "…"'],
    'an apostrophe quotes nothing': [
      "the acquirer's line is down, and so's the host",
      "the acquirer's line is down, and so's the host",
    ],
    'a card number in the open': [`the host said ${card} is bad`, 'the host said [card number] is bad'],
  }
  for (const [name, [given, written]] of Object.entries(quoted))
    it(name, () => assert.equal(lineOf({ why: given }).fields.why, written))

  it('shows the row of a parameter, not what a caller put in brackets', () => {
    const { fields } = lineOf({
      names: [`customParameters[${card}]`, 'cart.items[3].name', 'billing.city'],
    })
    assert.deepEqual(fields.names, ['customParameters[…]', 'cart.items[…].name', 'billing.city'])
  })
})

it('card numbers are masked with spaces, dots and hyphens between', () => {
  for (const between of ['', ' ', '.', '-']) {
    const text = `a ${card.match(/.{4}/g)!.join(between)} b`
    assert.equal(scrub(text), 'a [card number] b', text)
  }
  assert.equal(scrub('4539578763621487'), '4539578763621487')
  assert.equal(scrub('R 4539578763621486 cvv: 942'), 'R [card number] cvv: [code]')
  assert.equal(scrub('R 4539578763621486=34052011942 is.'), 'R [card number]=[code] is.')
  // Some groups of a number read as a month and a year, or as what stands behind a word for a code.
  for (const text of ['4539-5787-6362-1486', 'cvv: 4539 5787 6362 1486', 'cvc 4539-5787-6362-1486'])
    assert.equal(scrub(`R ${text} is.`), `R ${text.replace(/4539.*/, '[card number]')} is.`)
  assert.equal(scrub('4038-5317-1254-6987'), '[card number]')
  assert.equal(scrub('R 4539578763621486 0534 942 is.'), 'R [card number] 0534 [code] is.')
  assert.equal(scrub('the cvv 942 of order 943'), 'the cvv [code] of order 943')
})

it('our own ids stand whole, whatever digits are among them, and what a caller put before them does not', () => {
  const own = `01a${card}afaa104915a2d8`.padEnd(32, '0').slice(0, 32)
  const written: string[] = []
  const log = makeLog('info', { write: line => void written.push(line) })
  log.info({ paymentId: own, ndc: `${own}_${own}`, tokenId: own, entityId: own }, 'told')
  const { paymentId, ndc, tokenId, entityId } = JSON.parse(written[0]!)
  assert.deepEqual([paymentId, tokenId], [own, own])
  for (const one of [ndc, entityId]) assert.match(one, /^01a\[card number\]/)
  assert.ok(ndc.endsWith(`_${own}`))
})

it('no digits of a card number stand where a text is cut', () => {
  for (const [name, most] of [
    ['wire', 1500],
    ['why', 2000],
  ] as const)
    for (let before = most - 18; before < most; before++) {
      const { fields } = lineOf({ [name]: `${`"${'x'.repeat(before - 4)}" `}: ${card}` })
      assert.doesNotMatch(JSON.stringify(fields), /\d{5}/, `${name} after ${before}`)
    }
})

it('strangers cannot flood the log: 300 lines of one message in a minute, then their sum', () => {
  const lines = logged(log => {
    for (let at = 0; at < 1000; at++) log.warn({ address: '192.0.2.1', status: 403 }, 'a caller was turned away')
    log.warn({ paymentId: 'a' }, 'the outcome is unknown')
    now += 60_000
    log.warn({ address: '192.0.2.1', status: 403 }, 'a caller was turned away')
  }).map(({ fields }) => `${fields.msg} ${fields.attempt ?? ''}`.trim())
  assert.deepEqual(lines.slice(299), [
    'a caller was turned away',
    'the outcome is unknown',
    'so many lines were left out: a caller was turned away 700',
    'a caller was turned away',
  ])
})

describe('the sum of a flood is told', () => {
  const refusals = (log: ReturnType<typeof makeLog>, count: number) => {
    for (let at = 0; at < count; at++) log.warn({ address: '192.0.2.1', status: 403 }, 'turned away')
  }

  it('at the end of its minute, though nobody comes again, and once', () => {
    const due: { at: number; act: () => void }[] = []
    const timer: Timer = { cancel: () => {}, unref: () => timer }
    const after: Clock['after'] = (milliseconds, act) => {
      due.push({ at: now + milliseconds, act })
      return timer
    }
    const written: string[] = []
    const log = makeLog(
      'info',
      { write: line => void written.push(JSON.parse(line).attempt) },
      { ...clockWith(() => now), after },
    )
    const sums = () => written.filter(attempt => attempt !== undefined)
    now = 90_000
    refusals(log, 300)
    assert.equal(due.length, 0, 'none was left out')
    refusals(log, 120)
    assert.deepEqual([due.map(({ at }) => at), sums()], [[120_000], []])
    now = 120_000
    due[0]!.act()
    assert.deepEqual(sums(), [120])
    // One that comes before a late clock is told of first, and its minute is not ended by that clock.
    refusals(log, 301)
    now = 180_000
    refusals(log, 302)
    assert.deepEqual(sums(), [120, 1])
    due[1]!.act()
    assert.deepEqual(sums(), [120, 1])
    due[2]!.act()
    assert.deepEqual(sums(), [120, 1, 2])
  })

  for (const [name, end] of [
    ['at the end of the process', ''],
    ['at an end by hand', 'process.exit(0)'],
    ['when what was written before is on its way', "log.info({}, 'more'); process.exit(0)"],
  ] as const)
    it(name, async () => {
      const script = `import { makeLog } from './src/platform/log.ts'
        const log = makeLog('info')
        const write = count => { for (let at = 0; at < count; at++) log.warn({ address: '192.0.2.1' }, 'turned away') }
        write(420)
        for (let at = 0; at < 300; at++) log.warn({ address: '192.0.2.1' }, 'of these no more')
        setTimeout(() => { ${end} }, 50)`
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        cwd: project,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let text = ''
      for await (const piece of child.stderr!) text += piece
      const lines = text.trim().split('\n')
      assert.deepEqual(
        lines.filter(line => line.includes('left out')).map(line => [JSON.parse(line).attempt, JSON.parse(line).msg]),
        [[120, 'so many lines were left out: turned away']],
      )
      assert.equal(lines.length, 601 + Number(end.includes('more')))
    })
})

describe('a log that nobody reads', () => {
  const write = (lines: number, then: string, stderr: 'pipe' | number = 'pipe'): ChildProcess =>
    spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { outliveReaders } from './src/platform/errors.ts'
         import { makeLog } from './src/platform/log.ts'
         outliveReaders()
         const log = makeLog('info')
         for (let line = 0; line < ${lines}; line++) log.info({ why: 'x'.repeat(280) }, 'line')
         ${then}`,
      ],
      { cwd: project, stdio: ['pipe', 'ignore', stderr] },
    )

  it('keeps no process from ending, nor from what it does at its end', async () => {
    const child = write(3000, `process.on('exit', () => (process.exitCode = 3)); setTimeout(() => process.exit(2), 100)`)
    const late = setTimeout(() => child.kill('SIGKILL'), 30_000)
    assert.deepEqual(await once(child, 'exit'), [3, null])
    clearTimeout(late)
  })

  for (const lines of [0, 3])
    it(`or whose disk is full, keeps no process from ending, ${lines === 0 ? 'at its first line' : 'after some'}`, async () => {
      const full = openSync('/dev/full', 'w')
      const child = write(lines, `setTimeout(() => { log.info({}, 'last'); process.exit(2) }, 100)`, full)
      closeSync(full)
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
      assert.deepEqual(await once(child, 'exit'), [2, null])
      clearTimeout(late)
    })

  it('is bounded, and what found no room is told when there is some again', async () => {
    const count = 20_000
    const child = write(
      count,
      `process.stdin.once('data', () => { log.info({}, 'more'); setTimeout(() => process.exit(0), 500) }); setTimeout(() => process.exit(0), 8000)`,
    )
    let text = ''
    let told: number[] = []
    for await (const piece of child.stderr!) {
      text += piece
      const found = text.matchAll(/"attempt":(\d+),"msg":"so many lines were left out: nobody read the log"/g)
      told = [...found].map(([, count]) => Number(count))
      if (told.length === 1) child.stdin!.write('more')
    }
    const there = text.split('"msg":"line"').length - 1
    assert.deepEqual([told.length, there + told[0]!], [1, count])
    assert.ok(there * 300 < 5_000_000, `${there} lines waited`)
  })
})
