// bin/tollgate on machines that are not prepared: without packages, without the Node that they bring, with an old one on PATH. Node and npm are
// stand-ins that say what they are and how they were called.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { project } from './support/process.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-bin-'))
after(() => rmSync(root, { recursive: true, force: true }))

/** What the shell needs, and no Node that this machine may have beside it. */
const tools = join(root, 'tools')
mkdirSync(tools)
for (const name of ['sh', 'readlink', 'dirname', 'mkdir', 'cp'])
  symlinkSync(execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), join(tools, name))

/** A folder with a Node that says its version, or how it was called. */
function nodeIn(folder: string, version: string): string {
  mkdirSync(folder, { recursive: true })
  const script = `#!/bin/sh\n[ "$1" = --version ] && echo ${version} || echo ${version} "$@"\n`
  writeFileSync(join(folder, 'node'), script, { mode: 0o755 })
  return folder
}

/** A clone with packages, or without; `run` calls its command line through a link with these folders on PATH. */
function clone(installed: boolean) {
  const folder = mkdtempSync(join(root, 'clone-'))
  mkdirSync(join(folder, 'bin'))
  copyFileSync(join(project, 'bin/tollgate'), join(folder, 'bin/tollgate'))
  symlinkSync(join(folder, 'bin/tollgate'), join(folder, 'link'))
  if (installed) mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  if (installed) writeFileSync(join(folder, 'node_modules/.package-lock.json'), '{}')
  const run = (...folders: string[]) =>
    spawnSync('/bin/sh', [join(folder, 'link'), 'list', 'two words'], {
      env: { PATH: [...folders, tools].join(':') },
      encoding: 'utf8',
    })
  return { folder, run }
}

const old = nodeIn(join(root, 'old'), 'v20.20.2')
const ancient = nodeIn(join(root, 'ancient'), 'v9.11.2')

test('the Node that the packages bring comes first', () => {
  const { folder, run } = clone(true)
  nodeIn(join(folder, 'node_modules/.bin'), 'v24.0.1')
  assert.equal(
    run(nodeIn(join(root, 'newer'), 'v26.0.0')).stdout,
    `v24.0.1 --disable-sigusr1 --min-semi-space-size=16 ${folder}/src/cli/main.ts list two words\n`,
  )
})

test('without it the first on PATH that is new enough, wherever it stands', () => {
  const { folder, run } = clone(true)
  for (const version of ['v24.0.0', 'v26.1.0', 'v30.0.0', 'v100.2.0'])
    assert.equal(
      run(ancient, old, nodeIn(join(root, 'a b'), version)).stdout,
      `${version} --disable-sigusr1 --min-semi-space-size=16 ${folder}/src/cli/main.ts list two words\n`,
    )
})

test('only older ones, or none: told in a sentence', () => {
  const { run } = clone(true)
  for (const version of ['v18.0.0', 'v20.20.2', 'v23.11.0']) {
    const { status, stdout, stderr } = run(nodeIn(join(root, 'some'), version))
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, new RegExp(`^Tollgate needs Node 24 or later, and this machine's is ${version}\\. Install .*\n$`))
  }
})

test('without packages they are installed first, by any Node that can', () => {
  const { folder, run } = clone(false)
  const { status, stderr } = run(ancient)
  assert.equal(status, 1)
  assert.match(stderr, /^Tollgate needs Node 20 or later to install its packages, and this machine's is v9\.11\.2\. .*\n$/)
  assert.equal(run(ancient, old).stdout, `v20.20.2 ${folder}/scripts/setup.mjs run\n`) // and then there is still no newer one

  // With the real set-up and a stand-in for npm, which brings a Node along.
  mkdirSync(join(folder, 'scripts'))
  copyFileSync(join(project, 'scripts/setup.mjs'), join(folder, 'scripts/setup.mjs'))
  writeFileSync(join(folder, 'package-lock.json'), '{"packages": {}}')
  const npm = join(root, 'npm')
  nodeIn(npm, 'v20.20.2')
  writeFileSync(join(npm, 'node'), `#!/bin/sh\n[ "$1" = --version ] && echo v20.20.2 || exec '${process.execPath}' "$@"\n`)
  const brings = `mkdir -p node_modules/.bin; cp ${join(old, 'node')} node_modules/.bin/node; echo '{"packages":{}}' > node_modules/.package-lock.json`
  writeFileSync(join(npm, 'npm'), `#!/bin/sh\necho "$@" >> calls\n${brings}\n`, { mode: 0o755 })
  const first = run(npm)
  assert.equal(first.stdout, `v20.20.2 --disable-sigusr1 --min-semi-space-size=16 ${folder}/src/cli/main.ts list two words\n`)
  assert.match(first.stderr, /^Installing the locked packages \(npm ci --omit=dev\) \.\.\.\n$/)
  assert.match(readFileSync(join(folder, 'calls'), 'utf8'), /^ci --omit=dev .*\n$/)
  rmSync(join(folder, 'calls'))
  const second = run(npm)
  assert.deepEqual([second.stdout, second.stderr, existsSync(join(folder, 'calls'))], [first.stdout, '', false])
})
