// `tollgate backup` and `tollgate restore`: a copy of a gateway that works becomes the database of any moment since, or of none.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { removeOldBackups } from '../src/platform/database/backup/take.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { withPool } from './support/database.ts'
import { eventually, visa } from './support/gateway.ts'
import { commandLine, manyCommands, project, runningOn, type Started, startProcess } from './support/process.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-backup-'))
const dataDir = join(root, 'data')
const backupDir = join(root, 'backups')
const environment = { DATA_DIR: dataDir, BACKUP_DIR: backupDir }

/** → its id, once it is answered as approved. */
async function pay({ sandbox: { baseUrl, entityId, accessToken } }: Started): Promise<string> {
  const answer = await fetch(`${baseUrl}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${accessToken}` },
    body: new URLSearchParams({ entityId, amount: '1.00', currency: 'EUR', paymentType: 'DB', ...visa }),
  })
  const { id, result } = (await answer.json()) as { id: string; result: { code: string } }
  assert.equal(result.code, '000.100.110')
  return id
}
const read = async ({ sandbox: { baseUrl, entityId, accessToken } }: Started, id: string) =>
  (await fetch(`${baseUrl}/v1/payments/${id}?entityId=${entityId}`, { headers: { Authorization: `Bearer ${accessToken}` } }))
    .status

/** A folder for a restore, with the keys, which are no part of a backup. */
function emptyFolder(name: string): string {
  const folder = join(root, name)
  mkdirSync(folder, { mode: 0o700 })
  cpSync(join(dataDir, 'keys'), join(folder, 'keys'), { recursive: true })
  return folder
}
const restore = (folder: string, from: string, ...words: string[]) => commandLine({ DATA_DIR: folder }, 'restore', from, ...words)

/** A command that is killed as soon as something holds. */
async function killed(more: Record<string, string>, words: readonly string[], holds: () => boolean): Promise<void> {
  const child = spawn(join(project, 'bin/tollgate'), words, { env: { PATH: process.env.PATH, ...more }, stdio: 'ignore' })
  const ended = once(child, 'exit')
  while (!holds() && child.exitCode === null) await new Promise(setImmediate)
  child.kill('SIGKILL')
  assert.deepEqual(await ended, [null, 'SIGKILL'], `${words[0]} was too fast`)
}

let base: string
let before_: string[]
let [a, b, moment] = ['', '', '']

before(async () => {
  const gateway = await startProcess(environment)
  // The backup is made while payments are.
  const during: string[] = []
  let paying = true
  const payers = Array.from({ length: 4 }, async () => {
    while (paying) during.push(await pay(gateway))
  })
  await eventually(async () => during.length > 20, 'some payments are made')
  const made = await commandLine(environment, 'backup')
  before_ = [...during]
  paying = false
  await Promise.all(payers)
  assert.equal(made.code, 0, made.out)
  assert.match(made.out, /base-\d{8}T\d{6}Z: \d+ MB\.\nThe keys are not in it, and without them it cannot be restored/)
  base = join(backupDir, readdirSync(backupDir).find(name => name.startsWith('base-'))!)
  const connection = runningEmbedded(dataDir)!
  const clock = () =>
    withPool(connection, async pool => (await pool.query('select clock_timestamp() as at')).rows[0].at as number)
  a = await pay(gateway)
  moment = new Date((await clock()) + 1).toISOString()
  await eventually(async () => (await clock()) > Date.parse(moment), 'the moment is over')
  b = await pay(gateway)
  const running = await restore(dataDir, backupDir)
  assert.equal(running.code, 1)
  assert.match(running.out, new RegExp(`is in use by another gateway \\(pid ${gateway.child.pid}\\)`))
  await gateway.stop()
})
after(() => rmSync(root, { recursive: true, force: true }))

it('a moment between two payments has the one and not the other, and the books agree', async () => {
  const folder = emptyFolder('moment')
  const restored = await restore(folder, backupDir, '--to', moment)
  assert.equal(restored.code, 0, restored.out)
  assert.match(restored.out, /The backup of \S+ is restored in \S+\. Start the gateway, look at it with `bin\/tollgate doctor`/)
  const gateway = await startProcess({ DATA_DIR: folder })
  assert.deepEqual(await Promise.all([a, b].map(id => read(gateway, id))), [200, 404])
  for (const id of before_) assert.equal(await read(gateway, id), 200)
  const doctor = await commandLine({ DATA_DIR: folder }, 'doctor')
  assert.match(doctor.out, /The books agree with the operations\./)
  assert.equal(doctor.code, 0)
  assert.equal(await read(gateway, await pay(gateway)), 200)

  // A backup that is killed is none, and the next one clears it away.
  const other = join(root, 'other')
  await killed({ DATA_DIR: folder }, ['backup', other], () => existsSync(other) && readdirSync(other).length > 0)
  assert.match(readdirSync(other).join(), /^base-\w+\.unfinished$/)
  const refused = await restore(emptyFolder('none'), other)
  assert.match(refused.out, /is no backup, or one that was broken off/)
  const again = await commandLine({ DATA_DIR: folder }, 'backup', other)
  assert.equal(again.code, 0, again.out)
  assert.match(readdirSync(other).join(), /^base-\w+$/)
  await gateway.stop()
  // It has a history of its own by now, and no archive.
  assert.equal((await restore(join(root, 'none'), other)).code, 0)
})

it('without a moment all that was written is there', async () => {
  const folder = emptyFolder('all')
  const restored = await restore(folder, base)
  assert.equal(restored.code, 0, restored.out)
  const gateway = await startProcess({ DATA_DIR: folder })
  assert.deepEqual(await Promise.all([a, b].map(id => read(gateway, id))), [200, 200])
  await gateway.stop()
})

it('a table that no log is written of is left out: its rows are secrets of minutes', () => {
  const [manifest] = readFileSync(join(base, 'manifest'), 'utf8').split('\n')
  const paths = Object.keys((JSON.parse(manifest!) as { files: object }).files)
  const begun = paths.filter(path => path.endsWith('_init')).map(path => path.slice(0, -'_init'.length))
  assert.ok(begun.length > 0)
  assert.deepEqual(
    paths.filter(path => begun.includes(path)),
    [],
  )
})

describe('a restore is refused, and leaves the folder as it was,', () => {
  const folder = join(root, 'refused')
  let commands: ReturnType<typeof manyCommands>
  before(() => {
    emptyFolder('refused')
    commands = manyCommands({ DATA_DIR: folder })
  })
  after(() => commands.stop())
  const left = () => readdirSync(folder).filter(name => !['postgres.log', 'socket'].includes(name))
  const file = () => join(base, 'data/global/pg_control')
  const segments = () => readdirSync(join(backupDir, 'wal')).filter(name => /^[0-9A-F]{24}\.gz$/.test(name))
  const lastTaken = () =>
    readdirSync(join(base, 'data/pg_wal'))
      .filter(name => /^[0-9A-F]{24}$/.test(name))
      .sort()
      .at(-1)!
  const changed = (path: string, change: (text: Buffer) => Buffer | string) => () => {
    const bytes = readFileSync(path)
    writeFileSync(path, change(bytes))
    return () => writeFileSync(path, bytes)
  }
  const moved = (path: string) => () => {
    renameSync(path, join(root, 'aside'))
    return () => renameSync(join(root, 'aside'), path)
  }
  const added = (path: string, text: string) => () => {
    writeFileSync(path, text)
    return () => rmSync(path)
  }
  const manifest = () => join(base, 'manifest')
  const cases: [what: string, spoil: (folder: string) => () => () => void, words: string[], sentence: RegExp][] = [
    [
      'a byte of a file',
      () => changed(file(), bytes => Buffer.concat([bytes.subarray(0, 99), Buffer.from([bytes[99]! ^ 1]), bytes.subarray(100)])),
      [],
      /was altered: global\/pg_control is not as it was written/,
    ],
    [
      'a file that is cut short',
      () => changed(file(), bytes => bytes.subarray(0, 512)),
      [],
      /was altered: global\/pg_control is not/,
    ],
    ['a file that is missing', () => moved(file()), [], /is incomplete: global\/pg_control is missing/],
    ['a file more', () => added(join(base, 'data/global/1'), ''), [], /was altered: global\/1 does not belong to it/],
    [
      'another manifest',
      () => changed(manifest(), text => String(text).replace('"build":"', '"build":"a')),
      [],
      /The manifest of .* was altered/,
    ],
    ['no manifest', () => moved(manifest()), [], /is no backup, or one that was broken off/],
    [
      'another major version',
      () => changed(manifest(), text => String(text).replace('"PostgreSQL 18,', '"PostgreSQL 17,')),
      [],
      /is of PostgreSQL 17, .*; this program brings PostgreSQL 18/,
    ],
    [
      'other keys',
      folder => changed(join(folder, 'keys/lookup.key'), () => 'ab'.repeat(32)),
      [],
      /The lookup key is not the one that this database was written with/,
    ],
    ['no keys', folder => moved(join(folder, 'keys/seal.key')), [], /seal\.key is missing: bring back the one/],
    [
      'another mode',
      () => changed(manifest(), text => String(text).replace('"mode":"sandbox"', '"mode":"live"')),
      [],
      /belongs to live mode/,
    ],
    ['a folder that is not empty', folder => added(join(folder, 'mine.txt'), 'ours'), [], /is not empty \(mine\.txt\)/],
    [
      'a gap in the archive',
      () => added(join(backupDir, 'wal', `${lastTaken().slice(0, 16)}000000FF.gz`), ''),
      [],
      /has a gap before [0-9A-F]{16}000000FF: what came after it is lost/,
    ],
    [
      'a piece that cannot be read',
      () => changed(join(backupDir, 'wal', segments().at(-1)!), bytes => bytes.subarray(0, bytes.length / 2)),
      [],
      /could not be recovered[\s\S]*unexpected end of file/,
    ],
    [
      'a moment before the backup',
      () => () => () => {},
      ['--to', '2026-01-01T00:00Z'],
      /No backup in .* is from before 2026-01-01/,
    ],
    ['a moment after the archive', () => () => () => {}, ['--to', '2126-01-01T00:00Z'], /The archive ends before 2126-01-01/],
    [
      'no archive for a moment',
      () => moved(join(backupDir, 'wal')),
      ['--to', '2126-01-01T00:00Z'],
      /There is no archive beside .*without --to/,
    ],
  ]
  for (const [what, spoil, words, sentence] of cases)
    it(what, async () => {
      const undo = spoil(folder)()
      const standing = left()
      const told = await commands.run('restore', what === 'no manifest' ? base : backupDir, ...words)
      const remains = left()
      undo()
      assert.match(told.out, sentence)
      assert.deepEqual([told.code, remains], [1, standing])
    })
})

it('a restore that is killed leaves nothing that starts, and is begun anew', async () => {
  const folder = emptyFolder('killed')
  const draft = join(folder, 'postgres.restoring')
  const steps: [what: string, reached: () => boolean][] = [
    ['it copies', () => existsSync(join(draft, 'postgres/base'))],
    ['its server recovers', () => existsSync(join(draft, 'postgres/postmaster.pid'))],
  ]
  for (const [what, reached] of steps) {
    await killed({ DATA_DIR: folder }, ['restore', backupDir], reached)
    assert.ok(!existsSync(join(folder, 'postgres')), what)
    await assert.rejects(
      startProcess({ DATA_DIR: folder }),
      /`bin\/tollgate restore` has not come to its end in .*: give the command again, which begins anew\. Nothing was started/,
    )
  }
  const restored = await restore(folder, backupDir)
  assert.equal(restored.code, 0, restored.out)
  assert.deepEqual(runningOn(draft), [])
  const gateway = await startProcess({ DATA_DIR: folder })
  assert.equal(await read(gateway, b), 200)
  await gateway.stop()
})

it('--keep removes what is older, with the archive that only that needed', async () => {
  const later = join(backupDir, 'base-20990101T000000Z')
  cpSync(base, later, { recursive: true })
  const wal = () =>
    readdirSync(join(backupDir, 'wal'))
      .filter(name => name.endsWith('.gz'))
      .sort()
  const {
    wal: [from],
  } = JSON.parse(readFileSync(join(later, 'manifest'), 'utf8').split('\n')[0]!) as { wal: string[] }
  assert.ok(wal()[0]! < from!)
  assert.deepEqual(removeOldBackups(backupDir, 2), [])
  assert.deepEqual(removeOldBackups(backupDir, 1), [basename(base)])
  assert.deepEqual(readdirSync(backupDir).sort(), [basename(later), 'wal'])
  assert.ok(wal()[0]! >= from! && wal().length > 1)
  const folder = emptyFolder('kept')
  assert.equal((await restore(folder, backupDir)).code, 0)
})
