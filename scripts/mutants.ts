// Plants the faults of mutants/rooms/ one at a time in a scratch copy and shows which of them no test sees:
// `npm run mutants [-- --parallel=2] [-- part of a name …]`.

import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { mutants } from './mutants/mutants.ts'
import { type Mutant, planted } from './mutants/plant.ts'
import { makeScratch, type Scratch } from './mutants/scratch.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({ allowPositionals: true, options: { parallel: { type: 'string' } } })
const parallel = Number(values.parallel ?? Math.max(1, Math.floor(availableParallelism() / 2)))
const chosen = mutants.filter(({ name }) => positionals.length === 0 || positionals.some(part => name.includes(part)))
if (chosen.length === 0 || !(parallel >= 1)) throw new Error('no fault has such a name, or --parallel is no number above 0')

delete process.env.TEST_DATABASE_URL // databases are dropped here: only on servers of our own
const say = (text: string) => process.stdout.write(`${text}\n`)
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stopping.abort())

const folder = mkdtempSync(join(tmpdir(), 'tollgate-mutants-'))
chmodSync(folder, 0o755) // the database servers that tests start may run as another user
const scratches: Scratch[] = []
try {
  for (let at = 0; at < parallel; at++) {
    const own = join(folder, String(at))
    mkdirSync(own)
    scratches.push(await makeScratch(project, own))
  }

  // A test that fails without any fault would see every fault.
  const usual = new Map<string, number>()
  const red: string[] = []
  await eachIn(scratches, [...new Set(chosen.flatMap(({ tests }) => tests))], async (scratch, test) => {
    const { failed, milliseconds } = await scratch.run([test], 600_000, stopping.signal)
    usual.set(test, milliseconds)
    if (failed !== undefined) red.push(`${test}: ${failed}`)
  })
  if (red.length > 0) throw new Error(`Without any fault these tests fail:\n${red.join('\n')}`)

  const counts: Record<Verdict, number> = { killed: 0, 'survives, as named': 0, SURVIVED: 0, stale: 0 }
  const width = Math.max(...chosen.map(({ name }) => name.length))
  await eachIn(scratches, chosen, async (scratch, mutant) => {
    const most = 60_000 + 3 * mutant.tests.reduce((sum, test) => sum + usual.get(test)!, 0)
    const { verdict, by } = await judge(scratch, mutant, most)
    if (stopping.signal.aborted) return
    counts[verdict]++
    say(`${mutant.name.padEnd(width)}  ${verdict.padEnd(8)}  ${by.slice(0, 100)}`)
  })
  say(
    `\n${Object.entries(counts)
      .map(([verdict, count]) => `${count} ${verdict}`)
      .join(', ')}`,
  )
  process.exitCode = counts.SURVIVED + counts.stale > 0 || stopping.signal.aborted ? 1 : 0
} catch (error) {
  say((error as Error).message)
  process.exitCode = 1
} finally {
  await Promise.all(scratches.map(scratch => scratch.stop()))
  rmSync(folder, { recursive: true, force: true })
}

type Verdict = 'killed' | 'survives, as named' | 'SURVIVED' | 'stale'

async function judge(scratch: Scratch, mutant: Mutant, most: number): Promise<{ verdict: Verdict; by: string }> {
  const sound = scratch.read(mutant.file)
  const faulty = planted(mutant, sound)
  if (faulty === undefined) return { verdict: 'stale', by: `${mutant.file} does not hold its text exactly once` }
  scratch.write(mutant.file, faulty)
  try {
    const { failed } = await scratch.run(mutant.tests, most, stopping.signal)
    if (failed !== undefined) return { verdict: 'killed', by: failed }
    return mutant.survives ? { verdict: 'survives, as named', by: mutant.survives } : { verdict: 'SURVIVED', by: mutant.file }
  } finally {
    scratch.write(mutant.file, sound)
  }
}

/** Takes things one after another, as many at a time as there are scratch copies. */
async function eachIn<Thing>(
  scratches: readonly Scratch[],
  things: readonly Thing[],
  work: (scratch: Scratch, thing: Thing) => Promise<void>,
): Promise<void> {
  const left = [...things]
  await Promise.all(
    scratches.map(async scratch => {
      for (let thing = left.shift(); thing !== undefined && !stopping.signal.aborted; thing = left.shift())
        await work(scratch, thing)
    }),
  )
}
