// When scripts/setup.mjs calls npm, with what, and when it keeps its hands off. npm is a stand-in that writes down how it
// was called and what the real one writes down about node_modules.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { processIdentity } from '../src/platform/database/running.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
after(() => rmSync(root, { recursive: true, force: true }))

const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'].join(' ')
const firstRun = `ci --omit=dev ${quiet}`
const firstAll = `ci --include=dev ${quiet}`
const moreRun = `install --no-save --omit=dev ${quiet}`
const moreAll = `install --no-save --include=dev ${quiet}`

test('a folder without packages gets those it is asked for, once', () => {
  check('run on an empty folder', clone(), ['run', firstRun], ['run'])
  check('all on an empty folder', clone(), ['all', firstAll], ['all'])
  check('run is part of all', clone(), ['all', firstAll], ['run'], ['all'])
  check('all adds to run', clone(), ['run', firstRun], ['all', moreAll], ['run'], ['all'])
})

test('a new version is installed, and the tools stay', () => {
  const run = clone()
  check('before', run, ['run', firstRun])
  lock(run, { one: '1.0.1' })
  check('run', run, ['run', moreRun], ['run'])

  const all = clone()
  check('before', all, ['all', firstAll])
  lock(all, { one: '1.0.1' })
  check('run where the tools are', all, ['run', moreAll], ['all'])
  lock(all, { one: '1.0.1', tool: '2.0.1' })
  check('a new tool is nothing to run', all, ['run'], ['all', moreAll], ['run'])
})

test('what was installed by hand counts', () => {
  const whole = clone()
  npm(whole, 'ci')
  check('npm ci', whole, ['run'], ['all'])
  const part = clone()
  npm(part, 'ci', '--omit=dev')
  check('npm ci --omit=dev', part, ['run'], ['all', moreAll])
  const pruned = clone()
  check('before', pruned, ['all', firstAll])
  npm(pruned, 'prune', '--omit=dev')
  check('npm prune --omit=dev', pruned, ['run'], ['all', moreAll])
  const lean = clone()
  npm(lean, 'ci', '--omit=optional')
  check('npm ci --omit=optional', lean, ['run'])
})

test('what an interrupted npm left is not taken for an installation', () => {
  const folder = clone()
  mkdirSync(join(folder, 'node_modules/one'), { recursive: true })
  check('the first time', folder, ['run', firstRun])
  const installed = readFileSync(join(folder, 'node_modules/.package-lock.json'))
  lock(folder, { one: '1.0.1' })
  assert.equal(setup(folder, 'run', { KILLED: '1' }).status, 1)
  lock(folder, {})
  writeFileSync(join(folder, 'node_modules/.package-lock.json'), installed)
  rmSync(join(folder, 'calls'))
  check('later, back at the old versions', folder, ['run', moreRun], ['run'])
})

test('when npm fails it says what was tried and what is needed, and tries again the next time', () => {
  const folder = clone()
  const { status, stderr } = setup(folder, 'run', { FAILING: '1' })
  assert.equal(status, 1)
  assert.match(stderr, /`npm ci --omit=dev/)
  assert.match(stderr, /network/)
  rmSync(join(folder, 'calls'))
  check('the next time', folder, ['run', firstRun])
  const bad = setup(folder, 'everything')
  assert.equal(bad.status, 1)
  assert.match(bad.stderr, /run\|all/)
})

test('npm that ends well without the locked versions is not believed', () => {
  const { status, stderr } = setup(clone(), 'run', { OTHER: '1' })
  assert.equal(status, 1)
  assert.match(stderr, /\bone\b/)
})

test('beside a running gateway of this clone the tools are added, and nothing that it runs on is changed', () => {
  const folder = clone()
  check('before', folder, ['run', firstRun])
  const mark = join(folder, `node_modules/.tollgate-running-${process.pid}`)
  writeFileSync(mark, `${processIdentity(process.pid)}\n`)
  check('nothing to do', folder, ['run'])
  check('for the tests', folder, ['all', moreAll], ['all'], ['run'])
  lock(folder, { tool: '2.0.1' })
  check('a new tool', folder, ['run'], ['all', moreAll])
  lock(folder, { one: '1.0.1', tool: '2.0.1' })
  for (const set of ['run', 'all']) {
    const { status, stderr } = setup(folder, set)
    assert.equal(status, 1)
    assert.match(stderr, new RegExp(`gateway of this folder is running \\(pid ${process.pid}\\)`))
    assert.equal(existsSync(join(folder, 'calls')), false)
  }
  writeFileSync(mark, 'an earlier process with this pid\n')
  check('it has ended', folder, ['all', moreAll])
  assert.equal(existsSync(mark), false)
})

test('two at once: the second waits and finds it done', async () => {
  const folder = clone()
  const both = ['run', 'run'].map(set =>
    spawn(process.execPath, [join(folder, 'scripts/setup.mjs'), set], { env: environment(folder, { SLOW: '1' }) }),
  )
  const ends = await Promise.all(both.map(one => once(one, 'exit')))
  assert.deepEqual(ends, [
    [0, null],
    [0, null],
  ])
  assert.deepEqual(calls(folder), [firstRun])
  writeFileSync(join(folder, '.tollgate-setup.lock'), '4194305\nalive\n')
  check('the lock of a dead one is no hindrance', folder, ['all', moreAll])
  assert.deepEqual(readdirSync(folder).sort(), ['bin', 'node_modules', 'package-lock.json', 'package.json', 'scripts'])
})

/** Calls set-up step by step; npm is called in those steps that name its arguments, and the others print nothing. */
function check(name: string, folder: string, ...steps: [set: string, call?: string][]): void {
  for (const [set, call] of steps) {
    const { status, stdout, stderr } = setup(folder, set)
    assert.equal(status, 0, `${name}: ${set}: ${stderr}`)
    assert.deepEqual(calls(folder), call === undefined ? [] : [call], `${name}: ${set}`)
    if (call === undefined) assert.equal(stdout + stderr, '', `${name}: ${set}`)
    else assert.match(stderr, /^Installing the locked packages/)
  }
}

function setup(folder: string, set: string, variables: Record<string, string> = {}) {
  const script = join(folder, 'scripts/setup.mjs')
  return spawnSync(process.execPath, [script, set], { encoding: 'utf8', env: environment(folder, variables) })
}

function npm(folder: string, ...args: string[]): void {
  assert.equal(spawnSync('npm', args, { cwd: folder, env: environment(folder, {}) }).status, 0)
  rmSync(join(folder, 'calls'))
}

function environment(folder: string, variables: Record<string, string>) {
  return { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, ...variables }
}

/** How npm was called since the last look. */
function calls(folder: string): string[] {
  const file = join(folder, 'calls')
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  rmSync(file)
  return lines
}

function clone(): string {
  const folder = mkdtempSync(join(root, 'clone-'))
  for (const name of ['bin', 'scripts']) mkdirSync(join(folder, name))
  copyFileSync(new URL('../scripts/setup.mjs', import.meta.url), join(folder, 'scripts/setup.mjs'))
  writeFileSync(join(folder, 'package.json'), '{ "name": "clone" }')
  writeFileSync(join(folder, 'bin/npm'), `#!${process.execPath}\n(${standIn})()\n`, { mode: 0o755 })
  lock(folder, {})
  return folder
}

/** Two packages to run, a tool, one that may be left out, one for another machine. */
function lock(folder: string, versions: Record<string, string>): void {
  const packages = {
    '': { name: 'clone' },
    'node_modules/one': { version: '1.0.0', integrity: 'sha512-one' },
    'node_modules/two': { version: '1.0.0' },
    'node_modules/tool': { version: '2.0.0', dev: true },
    'node_modules/maybe': { version: '3.0.0', optional: true, os: [process.platform] },
    'node_modules/elsewhere': { version: '3.0.0', optional: true, os: ['elsewhere'] },
  }
  for (const [name, version] of Object.entries(versions))
    Object.assign(packages[`node_modules/${name}` as keyof typeof packages], { version })
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }))
}

/** Becomes the text of a script, so it stands alone. */
async function standIn(): Promise<void> {
  const fs = await import('node:fs')
  const { env, argv } = process
  fs.appendFileSync('calls', `${argv.slice(2).join(' ')}\n`)
  if (env.FAILING) process.exit(1)
  if (env.KILLED) process.kill(process.pid, 'SIGKILL')
  if (env.SLOW) await new Promise(resolve => setTimeout(resolve, 500))
  const { packages } = JSON.parse(fs.readFileSync('package-lock.json', 'utf8'))
  const installed = Object.entries<{ dev?: boolean; optional?: boolean; os?: string[]; version: string }>(packages).filter(
    ([path, { dev, optional, os }]) =>
      path !== '' &&
      !(dev && argv.includes('--omit=dev')) &&
      !(optional && argv.includes('--omit=optional')) &&
      (os === undefined || os.includes(process.platform)),
  )
  if (env.OTHER) for (const [, one] of installed) one.version = '0.0.1'
  fs.mkdirSync('node_modules', { recursive: true })
  fs.writeFileSync('node_modules/.package-lock.json', JSON.stringify({ packages: Object.fromEntries(installed) }))
}
