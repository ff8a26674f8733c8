// `npm test -- word`: what a word means, and that only that runs, also beside a gateway of this clone and in a shell that holds its settings.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { choose, longFiles, testFiles } from '../scripts/test/choose.ts'
import { withoutSettings } from '../scripts/test/environment.ts'
import { project, type Started, startProcess } from './support/process.ts'
import { readScenarios } from './support/scenario.ts'

const chosen = (word: string) => {
  const { file, pattern } = choose(word, project)
  return pattern === undefined ? file : { file, pattern: new RegExp(pattern) }
}
const [first, second] = readScenarios(join(project, 'test/scenarios/refund.http'))

it('the long ones are there, or nobody would run them', () => {
  const names = new Set(testFiles(project).map(({ name }) => name))
  assert.deepEqual(
    [...longFiles].filter(name => !names.has(name)),
    [],
  )
})

describe('a word', () => {
  for (const [word, file] of [
    ['test/settings.test.ts', 'test/settings.test.ts'],
    ['settings.test.ts', 'test/settings.test.ts'],
    ['settings', 'test/settings.test.ts'],
    ['Handshak', 'test/handshakes.test.ts'],
    ['notificationrac', 'test/notificationRaces.test.ts'],
    ['keys', 'test/keys.test.ts'], // the whole name, though it is a part of others
  ] as const)
    it(`${word} is ${file}`, () => assert.equal(chosen(word), file))

  const full = (title: string, line: number) => `refund.http ${title} (refund.http:${line})`
  for (const word of [
    `refund.http:${second!.line}`,
    `test/scenarios/refund.http:${second!.line + 1}`,
    `refund:${second!.line}`,
    second!.title,
    second!.title.toUpperCase(),
    second!.title.slice(5),
  ])
    it(`${word.slice(0, 40)} is one scenario`, () => {
      const { file, pattern } = chosen(word) as { file: string; pattern: RegExp }
      assert.equal(file, 'test/scenarios.test.ts')
      assert.match(full(second!.title, second!.line), pattern)
      assert.doesNotMatch(full(first!.title, first!.line), pattern)
    })

  it('refund.http is all of its scenarios', () => {
    const { pattern } = chosen('refund.http') as { pattern: RegExp }
    assert.match(full(first!.title, first!.line), pattern)
    assert.doesNotMatch(full(first!.title, first!.line).replace('refund', 'capture'), pattern)
  })

  it('a name of a test is that one', () => {
    const { file, pattern } = chosen('takes the brands of the installation') as { file: string; pattern: RegExp }
    assert.equal(file, 'test/settings.test.ts')
    assert.match('a seed file that cannot be takes the brands of the installation, and its own schema for editors', pattern)
  })

  for (const [word, sentence] of [
    ['notification', /^"notification" may be notificationCommands\.test\.ts, .*: say more of the name\.$/],
    ['setings', /^No test file and no scenario is called "setings"; the nearest are settings\.test\.ts/],
    ['paymets.http', /the nearest are payments\.http/],
    ['refund.http:1000000', undefined],
    ['refud:3', /the nearest are refund\.http/],
    ['zzzzzz', /^No test file and no scenario is called "zzzzzz"\.$/],
  ] as const)
    it(`${word}${sentence === undefined ? ' is the last scenario' : ' is told of in a sentence'}`, () => {
      if (sentence === undefined) assert.ok(choose(word, project).pattern)
      else assert.throws(() => choose(word, project), { message: sentence })
    })
})

it('no setting of a gateway reaches the tests', () => {
  const names = [...readFileSync(join(project, 'src/start/config.ts'), 'utf8').matchAll(/'([A-Z][A-Z_]+[A-Z])'/g)]
    .map(([, name]) => name!)
    .filter(name => name !== 'NODE_OPTIONS') // which is Node's own, and a test's as well
  assert.ok(names.includes('DATABASE_URL') && names.includes('SEED_FILE'))
  const given = Object.fromEntries([...names, 'PGHOST', 'PATH', 'TEST_DATABASE_URL', 'BASE_URL'].map(name => [name, 'given']))
  assert.deepEqual(Object.keys(withoutSettings(given)), ['PATH', 'TEST_DATABASE_URL', 'BASE_URL'])
})

describe('beside a gateway of this clone', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-choice-'))
  let gateway: Started
  before(async () => {
    gateway = await startProcess({ DATA_DIR: dataDir })
  })
  after(async () => {
    await gateway.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  async function npmTest(...words: string[]): Promise<{ code: number; out: string }> {
    const { NODE_TEST_CONTEXT: _, TEST_SERVER: _server, ...environment } = process.env
    const settings = {
      DATA_DIR: dataDir,
      PORT: new URL(gateway.sandbox.baseUrl).port,
      DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
    }
    const child = spawn(process.execPath, ['scripts/test.ts', ...words], {
      cwd: project,
      env: { ...environment, ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let out = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (out += chunk))
    const [code] = await once(child, 'close')
    return { code, out }
  }

  it('one scenario runs alone, and a whole file beside it; the gateway goes on', async () => {
    const { code, out } = await npmTest(`refund:${first!.line}`, 'floating', '--test-reporter=tap')
    assert.equal(code, 0, out)
    const played = [...out.matchAll(/^ *ok \d+ - (.*)$/gm)].map(([, name]) => name!)
    assert.deepEqual(
      played.map(name => /\((refund\.http:\d+)\)$/.exec(name)?.[1] ?? name).sort(),
      [`refund.http:${first!.line}`, 'refund.http', 'each is found, and what is waited for or caught is not'].sort(),
    )
    assert.equal((await fetch(`${gateway.sandbox.baseUrl}/health`)).status, 200)
  })

  it('a word that means nothing runs nothing', async () => {
    const { code, out } = await npmTest('setings')
    assert.equal(code, 2)
    assert.match(out, /^No test file and no scenario is called "setings"; .*\n$/)
  })
})
