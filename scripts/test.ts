// Runs all tests against one throw-away PostgreSQL server, or those that are named: `npm test -- settings "a heading of a scenario" refund:12`.
// It works beside a gateway of the same clone, and beside other runs. Without names it runs all but the long ones, with `--long` those.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../src/platform/cacheFolder.ts'
import { startTestServer } from '../test/support/database.ts'
import { type Choice, ChoiceError, choose, longFiles, testFiles } from './test/choose.ts'
import { withoutSettings } from './test/environment.ts'
import { inMemory } from './test/inMemory.ts'

const project = fileURLToPath(new URL('..', import.meta.url))

const asked = process.argv.slice(2)
const isLong = asked.includes('--long')
const options = asked.filter(word => word.startsWith('-') && word !== '--long')
const words = asked.filter(word => !word.startsWith('-'))
try {
  const choices = words.length > 0 ? words.map(word => choose(word, project)) : ofLength(isLong)
  process.exitCode = await run(choices)
} catch (error) {
  if (!(error instanceof ChoiceError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}

function ofLength(wanted: boolean): Choice[] {
  const files = testFiles(project).filter(({ name }) => longFiles.has(name) === wanted)
  return files.map(({ choice }) => choice)
}

/** Whole files in one run, single tests in another: a pattern would hold for all files of its run. */
async function run(choices: readonly Choice[]): Promise<number> {
  const folder = inMemory()
  if (folder) process.env.TMPDIR = folder.path
  const server = await startTestServer({ forProcesses: choices.length > 1 })
  // Most of what a file of tests loads, others have loaded before it.
  const compiled = cacheFolder('compiled')
  const env = {
    ...withoutSettings(process.env),
    ...(compiled && { NODE_COMPILE_CACHE: compiled }),
    TEST_SERVER: JSON.stringify(server.connection),
    ...(server.cluster && { TEST_CLUSTER: server.cluster }),
  }
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  let worst = 0
  for (const some of [choices.filter(({ pattern }) => !pattern), choices.filter(({ pattern }) => pattern)]) {
    if (some.length === 0 || stopping.signal.aborted) continue
    const patterns = some.flatMap(({ pattern }) => (pattern === undefined ? [] : [`--test-name-pattern=${pattern}`]))
    const files = new Set(some.map(({ file }) => file))
    const words = [
      '--test',
      '--min-semi-space-size=16',
      '--test-concurrency=6',
      '--test-timeout=900000',
      `--import=${new URL('test/limit.ts', import.meta.url)}`,
      ...patterns,
      ...options,
      ...files,
    ]
    const tests = spawn(process.execPath, ['--disable-sigusr1', ...words], {
      cwd: project,
      stdio: 'inherit',
      env,
      signal: stopping.signal,
    })
    worst = Math.max(
      worst,
      await new Promise<number>(resolve => tests.on('error', () => {}).once('exit', code => resolve(code ?? 1))),
    )
  }
  await server.stop()
  folder?.remove()
  return stopping.signal.aborted ? 1 : worst
}
