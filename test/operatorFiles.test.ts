// Files that operators name: whose they are on every step of the way, pipes that nobody would wait for, and JSON that is deeper than anybody writes.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, it } from 'node:test'
import { readSeed } from '../src/merchants/seed.ts'
import { isFile, openFilesMost, readPlainFile, whoGetsAt, whoMayReplace } from '../src/platform/files.ts'
import { parseJson } from '../src/platform/schema.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-files-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const others = 1000

/** A folder of ours with a file in it, and beside it one that everybody may write to. */
function places(): { file: string; open: string } {
  const place = mkdtempSync(join(folder, 'place-'))
  mkdirSync(join(place, 'own'))
  mkdirSync(join(place, 'open'))
  chmodSync(join(place, 'open'), 0o777)
  const file = join(place, 'own', 'file')
  writeFileSync(file, '{}', { mode: 0o600 })
  return { file, open: join(place, 'open') }
}
const link = (target: string, path: string, owner = process.getuid!()): string => {
  symlinkSync(target, path)
  lchownSync(path, owner, owner)
  return path
}

it('nobody else gets at a secret, by a file or a pipe; what a shell hands over is its own', () => {
  const { file, open } = places()
  const pipe = join(open, 'pipe')
  execFileSync('mkfifo', ['-m', '600', pipe])
  assert.match(whoGetsAt(pipe)!, /others may replace, who may write to the folder/)
  assert.equal(whoGetsAt(file), undefined)
  chmodSync(file, 0o644)
  assert.equal(whoGetsAt(file), 'others may read: set its mode to 0600')
  for (const path of ['/dev/stdin', '/dev/fd/0', '/nonexistent/file']) assert.equal(whoGetsAt(path), undefined, path)
})

describe('nobody else may replace a file', { skip: process.getuid?.() !== 0 && 'only root makes files of others' }, () => {
  it('that stands in folders of ours, also by links of ours', () => {
    const { file } = places()
    assert.equal(whoMayReplace(file), undefined)
    assert.equal(whoMayReplace(link(file, `${file}.link`)), undefined)
    assert.equal(whoMayReplace(link('file.link', `${file}.again`)), undefined)
    assert.equal(whoMayReplace(`${link('../own', join(dirname(dirname(file)), 'by-folder'))}/file`), undefined)
    assert.equal(whoMayReplace('/nonexistent/file'), undefined)
  })

  it('is wrong where it, or a link to it, stands below a folder of others, whoever made it', () => {
    const { file, open } = places()
    mkdirSync(join(open, 'inner'))
    writeFileSync(join(open, 'inner/file'), '', { mode: 0o600 })
    assert.match(whoMayReplace(join(open, 'inner/file'))!, new RegExp(`write to the folder ${open}:`)) // of a folder above it
    for (const owner of [0, others]) {
      const path = link(file, join(open, `seed-${owner}.json`), owner)
      assert.match(whoMayReplace(path)!, new RegExp(`others may replace, who may write to the folder ${open}`))
      // One hop further, and by a folder that is a link.
      assert.match(whoMayReplace(link(path, `${file}.${owner}`))!, /others may replace/)
    }
    assert.match(whoMayReplace(`${link(open, `${file}.folder`)}/seed-0.json`)!, /others may replace/)
  })

  it('is wrong where the way leads through a link of another user, in a folder where names are safe', () => {
    const { file, open } = places()
    chmodSync(open, 0o1777)
    const theirs = link(file, join(open, 'theirs'), others)
    assert.match(whoMayReplace(theirs)!, new RegExp(`another user may replace, whose link ${theirs} is`))
    assert.equal(whoMayReplace(link(file, join(open, 'ours'))), undefined)
    assert.match(whoMayReplace(`${link(dirname(file), join(open, 'folder'), others)}/file`)!, /whose link .*\/folder is/)
  })

  it('steps back go where the system goes, and links that go round lead to nothing', () => {
    const { file, open } = places()
    assert.equal(whoMayReplace(`${open}/../own/./file`), undefined)
    mkdirSync(join(open, 'inner'))
    writeFileSync(join(open, 'own'), '')
    link(join(open, 'inner'), `${file}.inner`)
    assert.match(whoMayReplace(`${file}.inner/../own`)!, new RegExp(`write to the folder ${open}`))
    const [here, there] = [`${file}.a`, `${file}.b`]
    link(there, here)
    link(here, there)
    assert.equal(whoMayReplace(here), undefined)
  })

  it('what is only a number of an open file has no name that could be judged', () => {
    const given = execFileSync(process.execPath, ['-e', script], { input: '{}', encoding: 'utf8' })
    assert.match(given, /leads to no file/)
  })
  const script = `import('${new URL('../src/platform/files.ts', import.meta.url)}').then(({ whoMayReplace }) => console.log(whoMayReplace('/dev/stdin')))`
})

it('how many files may be open is what the system says, or nothing', () => {
  const path = join(tmpdir(), `limits-${process.pid}`)
  writeFileSync(path, 'Max processes             96000   96000   processes\nMax open files            256     1024    files\n')
  assert.equal(openFilesMost(path), 256)
  rmSync(path)
  assert.equal(openFilesMost(path), undefined)
})

it('a pipe is no file, and nobody waits for it', () => {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', ['-m', '600', pipe])
  assert.equal(isFile(pipe), false)
  assert.throws(() => readPlainFile(pipe), /is no file/)
  assert.throws(() => readPlainFile(folder), /is no file/)
})

describe('JSON', () => {
  it('that is deeper than a stack is told in a sentence', () => {
    const path = join(folder, 'deep.json')
    for (const text of [
      `{"psp":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
      `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`,
    ]) {
      writeFileSync(path, text)
      assert.throws(() => readSeed(path), /deep\.json: /)
    }
  })
  it('with a key that readers of maps would leave out is refused, wherever it stands', () => {
    for (const key of ['__proto__', '\\u005f_proto__', 'constructor', 'prototype'])
      for (const text of [`{"${key}":1}`, `[{"a":[{"b":{"${key}":{}}}]}]`])
        assert.throws(() => parseJson(text, 'it'), /it holds the key (__proto__|constructor|prototype), which/, text)
    parseJson('{"a":"constructor"}', 'it')
  })
  it('with U+0000 is refused, and with a backslash before a u is not', () => {
    for (const text of ['"\\u0000"', '{"a\\u0000":1}', '["\\\\\\u0000"]'])
      assert.throws(() => parseJson(text, 'it'), /holds the character U\+0000/, text)
    for (const text of ['"\\\\u0000"', '["\\\\\\\\u0000"]', '"\\u0001"']) parseJson(text, 'it')
  })
})
