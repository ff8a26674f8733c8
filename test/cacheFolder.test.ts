// What is kept beside the program for all starts: nobody else can put anything into it, whatever umask a start has, and where somebody could it is not used.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { cacheFolder } from '../src/platform/cacheFolder.ts'
import { project } from './support/process.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-cache-'))
after(() => rmSync(root, { recursive: true, force: true }))

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

test('a folder that is made is for us alone, and so are those above it', () => {
  const before = process.umask(0)
  const folder = cacheFolder('kept', join(root, 'made/cache'))
  process.umask(before)
  assert.equal(folder, join(root, 'made/cache/kept'))
  assert.deepEqual([folder, join(root, 'made/cache'), join(root, 'made')].map(modeOf), ['700', '700', '700'])
  assert.equal(cacheFolder('kept', join(root, 'made/cache')), folder, 'the next time too')
})

test('one that others may enter, or change the name of, is not used: something may stand there already', () => {
  const cache = join(root, 'lax')
  const folder = cacheFolder('kept', cache)!
  for (const mode of [0o777, 0o775, 0o755, 0o701]) {
    chmodSync(folder, mode)
    assert.equal(cacheFolder('kept', cache), undefined, mode.toString(8))
  }
  chmodSync(folder, 0o700)
  chmodSync(cache, 0o777)
  assert.equal(cacheFolder('kept', cache), undefined)
  chmodSync(cache, 0o755)
  assert.equal(cacheFolder('kept', cache), folder)
  writeFileSync(join(root, 'file'), '')
  assert.equal(cacheFolder('kept', join(root, 'file')), undefined, 'one that cannot be made')
})

test('starts and commands keep what they compile there, and nowhere where others may write', () => {
  const program = join(root, 'program')
  for (const name of ['bin', 'src', 'package.json', 'package-lock.json', 'seeds'])
    cpSync(join(project, name), join(program, name), { recursive: true, verbatimSymlinks: true })
  mkdirSync(join(program, 'node_modules/.bin'), { recursive: true })
  for (const name of readdirSync(join(project, 'node_modules')).filter(name => !/^\.(bin|cache)$/.test(name)))
    symlinkSync(join(project, 'node_modules', name), join(program, 'node_modules', name))
  symlinkSync(process.execPath, join(program, 'node_modules/.bin/node'))
  const cache = join(program, 'node_modules/.cache')
  const kept = () => readdirSync(cache, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()).length
  const starts = [
    ['bin/tollgate --version', /^tollgate \d+\.\d+\.\d+/],
    ['exec node_modules/.bin/node src/main.ts', /MODE must be/],
  ] as const
  for (const [line, output] of starts) {
    const run = (umask: string) => {
      const env = { PATH: process.env.PATH, MODE: 'neither' }
      const { stdout, stderr } = spawnSync('/bin/sh', ['-c', `umask ${umask}; ${line}`], { cwd: program, env, encoding: 'utf8' })
      assert.match(stdout + stderr, output)
    }
    run('000')
    assert.deepEqual([cache, join(cache, 'compiled')].map(modeOf), ['700', '700'], line)
    assert.ok(kept() > 5, `${line} has kept ${kept()}`)
    rmSync(join(cache, 'compiled'), { recursive: true })
    mkdirSync(join(cache, 'compiled'))
    chmodSync(join(cache, 'compiled'), 0o777)
    run('022')
    assert.equal(kept(), 0, line)
    rmSync(cache, { recursive: true })
  }
})
