// `tollgate backup` and `tollgate restore`: a copy of a gateway that works becomes the database of any moment since, or of none.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { sealsOf } from '../src/cli/backup.ts'
import { systemClock } from '../src/platform/clock.ts'
import { type Manifest, readManifest, type Seals, writeManifest } from '../src/platform/database/backup/manifest.ts'
import { removeOldBackups, takeBackup } from '../src/platform/database/backup/take.ts'
import { systemIdentifier } from '../src/platform/database/embedded/place.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { readConfig } from '../src/start/config.ts'
import { withPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { payAt, readAt } from './support/payAt.ts'
import { commandLine, manyCommands, project, runningOn, startProcess } from './support/process.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-backup-'))
const dataDir = join(root, 'data')
const backupDir = join(root, 'backups')
const environment = { DATA_DIR: dataDir, BACKUP_DIR: backupDir }
/** The archive of the cluster that is in dataDir. */
const archive = () => join(backupDir, 'wal', systemIdentifier(join(dataDir, 'postgres')))

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
  while (!holds() && child.exitCode === null) await new Promise(resolve => setTimeout(resolve, 1))
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
    while (paying) during.push(await payAt(gateway))
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
  a = await payAt(gateway)
  moment = new Date((await clock()) + 1).toISOString()
  await eventually(async () => (await clock()) > Date.parse(moment), 'the moment is over')
  b = await payAt(gateway)
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
  assert.match(
    restored.out,
    new RegExp(
      `The backup of \\S+ is restored in \\S+, as all stood at ${moment}\\. Start the gateway, look at it with \`bin/tollgate doctor\``,
    ),
  )
  const gateway = await startProcess({ DATA_DIR: folder })
  assert.deepEqual(await Promise.all([a, b].map(id => readAt(gateway, id))), [200, 404])
  for (const id of before_) assert.equal(await readAt(gateway, id), 200)
  const doctor = await commandLine({ DATA_DIR: folder }, 'doctor')
  assert.match(doctor.out, /The books agree with the operations\./)
  assert.equal(doctor.code, 0)
  assert.equal(await readAt(gateway, await payAt(gateway)), 200)

  // A backup that is killed is none, and the next one clears it away.
  const other = join(root, 'other')
  await killed({ DATA_DIR: folder }, ['backup', other], () => existsSync(other) && readdirSync(other).length > 0)
  assert.match(readdirSync(other).join(), /^base-\w+\.unfinished$/)
  const refused = await restore(emptyFolder('none'), other)
  assert.match(refused.out, /is no backup, or one that was broken off/)
  writeFileSync(join(folder, 'postgres/pg_hba.conf'), 'local all all trust\n') // an operator's own, in the place of ours
  const again = await commandLine({ DATA_DIR: folder }, 'backup', other)
  assert.equal(again.code, 0, again.out)
  assert.match(readdirSync(other).join(), /^base-\w+$/)
  // Nor is one that fails, whose room the archive needs.
  const failing = join(root, 'failing')
  const order = {
    ...{ connection: runningEmbedded(folder)!, cluster: join(folder, 'postgres'), backupDir: failing, clock: systemClock },
    about: { mode: 'sandbox', build: '', keys: {} },
    seals() {
      assert.equal(readdirSync(failing).length, 1)
      throw new Error('no room is left')
    },
  } as const
  await assert.rejects(takeBackup(order), /no room is left/)
  assert.deepEqual(readdirSync(failing), [])
  await gateway.stop()
  // It has a history of its own by now, and no archive.
  const ofOther = await restore(join(root, 'none'), other)
  assert.equal(ofOther.code, 0, ofOther.out)
  const next = await startProcess({ DATA_DIR: join(root, 'none') })
  assert.equal(await readAt(next, a), 200)
  await next.stop()
})

it('without a moment all that was written is there', async () => {
  const folder = emptyFolder('all')
  const restored = await restore(folder, base)
  assert.equal(restored.code, 0, restored.out)
  // Before a gateway gives out numbers that shoppers have.
  const skipped = await commandLine({ DATA_DIR: folder }, 'slips', 'skip', 'oxxo-demo', '5000')
  assert.deepEqual([skipped.code, skipped.out], [0, 'oxxo-demo goes on behind 5000.\n'])
  assert.deepEqual([existsSync(join(folder, 'gateway.lock')), runningOn(folder)], [false, []])
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const child = spawn(join(project, 'bin/tollgate'), ['slips', 'skip', 'nobody', '1'], {
      env: { PATH: process.env.PATH, DATA_DIR: folder },
      stdio: 'ignore',
    })
    const ended = once(child, 'exit')
    await eventually(async () => runningOn(folder).length > 0, 'its server runs')
    child.kill(signal)
    assert.deepEqual(await ended, [1, null])
    assert.deepEqual(runningOn(folder), [], `${signal} leaves no server behind`)
  }
  const gateway = await startProcess({ DATA_DIR: folder })
  const again = await commandLine({ DATA_DIR: folder }, 'slips', 'skip', 'oxxo-demo', '1')
  assert.equal(again.out, 'oxxo-demo goes on behind 5001.\n')
  assert.deepEqual(await Promise.all([a, b].map(id => readAt(gateway, id))), [200, 200])
  // It tells itself that it was put back, and the backup of itself that it was under way.
  const told = JSON.parse((await commandLine({ DATA_DIR: folder }, 'audit', '--json')).stdout) as {
    rows: TracedRow[]
    findings: string[]
  }
  const rows = told.rows.filter(({ action }) => ['actBegun', 'databaseRestored'].includes(action))
  assert.deepEqual(rows.map(({ actorKind, details: { act, from } }) => [actorKind, act ?? from]).slice(-1), [
    ['commandLine', base],
  ])
  assert.ok(rows.some(({ details }) => details.act === 'backupMade'))
  assert.deepEqual(told.findings, [])
  await gateway.stop()
})

type TracedRow = { action: string; actorKind: string; details: { act?: string; from?: string } }

it('what is not there is no backup, in a sentence', async () => {
  const { code, stderr } = await restore(emptyFolder('of-nothing'), join(root, 'no-backup'))
  assert.deepEqual([code, stderr], [1, `There is no backup ${join(root, 'no-backup')}. Nothing was restored.\n`])
})

it('numbers of slips are passed over in a database, and none is made for that', async () => {
  const folder = join(root, 'nothing')
  const { code, out } = await commandLine({ DATA_DIR: folder }, 'slips', 'skip', 'oxxo-demo', '5000')
  assert.deepEqual([code, existsSync(folder)], [1, false])
  assert.match(out, /^No gateway is running on /)
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
  const segments = () => readdirSync(archive()).filter(name => /^[0-9A-F]{24}\.gz$/.test(name))
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
  const added = (path: string, text: string | Buffer) => () => {
    writeFileSync(path, text)
    const { uid, gid } = statSync(dirname(path))
    chownSync(path, uid, gid)
    return () => rmSync(path)
  }
  const linked = (path: string) => () => {
    renameSync(path, join(root, 'aside'))
    symlinkSync(join(root, 'aside'), path)
    return () => renameSync(join(root, 'aside'), path)
  }
  const piped = (path: string) => () => {
    execFileSync('mkfifo', [path])
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
    ['a link in the place of a file', () => linked(file()), [], /global\/pg_control is no file of its own/],
    [
      'a pipe in the place of a history',
      () => piped(join(archive(), '00000002.history.gz')),
      [],
      /history\.gz is no file of its own/,
    ],
    [
      'a link in the place of a piece',
      () => linked(join(archive(), segments().at(-1)!)),
      [],
      /[0-9A-F]{24}\.gz is no file of its own/,
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
      () => added(join(archive(), `${lastTaken().slice(0, 16)}000000FF.gz`), ''),
      [],
      /has a gap before [0-9A-F]{16}000000FF: what came after it is lost/,
    ],
    [
      'a gap in the archive after another restore',
      () => {
        const [high, low] = [lastTaken().slice(8, 16), lastTaken().slice(22)]
        const undo = [
          added(
            join(archive(), '00000002.history.gz'),
            gzipSync(`1\t${Number.parseInt(high, 16).toString(16)}/${low}000028\tmoved\n`),
          ),
          added(join(archive(), `00000002${high}000000FE.gz`), ''),
        ].map(act => act())
        return () => () => {
          for (const one of undo) one()
        }
      },
      [],
      /has a gap before 00000002[0-9A-F]{8}000000FE: what came after it is lost/,
    ],
    [
      'a piece that cannot be read',
      () => changed(join(archive(), segments().at(-1)!), bytes => bytes.subarray(0, bytes.length / 2)),
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
  assert.equal(await readAt(gateway, b), 200)
  await gateway.stop()
})

describe('--keep', () => {
  let seals: Seals
  before(() => {
    seals = sealsOf(readConfig({ DATA_DIR: dataDir }, project).keys())
  })
  const copied = (name: string, change: (manifest: Manifest) => Partial<Manifest> = () => ({})) => {
    const folder = join(backupDir, name)
    cpSync(base, folder, { recursive: true })
    const { manifest } = readManifest(base)
    rmSync(join(folder, 'manifest'))
    writeManifest(folder, { ...manifest, ...change(manifest) }, seals)
    return folder
  }
  const left = () => readdirSync(backupDir).sort()
  const later = ({ endedAt }: Manifest) => ({ endedAt: endedAt + 1 })

  it('keeps what ended last, whatever its name is, and always the one just made', () => {
    const named = copied('base-20310101T000000Z')
    const newest = copied('base-20200101T000000Z', later)
    assert.deepEqual(removeOldBackups(backupDir, 2, newest, seals), [basename(base)]) // of two that ended at once the first by name
    renameSync(named, base)
    assert.deepEqual(removeOldBackups(backupDir, 1, base, seals), [basename(newest)])
    assert.deepEqual(left(), [basename(base), 'wal'])
  })

  it('neither counts nor removes what is no backup of ours', () => {
    const altered = copied('base-20310101T000000Z', later)
    writeFileSync(join(altered, 'manifest'), readFileSync(join(altered, 'manifest'), 'utf8').replace('"build":"', '"build":"a'))
    const broken = join(backupDir, 'base-20310101T000001Z')
    mkdirSync(broken)
    assert.deepEqual(removeOldBackups(backupDir, 1, base, seals), [])
    assert.deepEqual(
      left(),
      [base, altered, broken, 'wal'].map(path => basename(path)),
    )
    for (const folder of [altered, broken]) rmSync(folder, { recursive: true })
  })

  it('removes what is older, with the archive that only that needed', async () => {
    const newest = copied('base-20990101T000000Z', later)
    const wal = () =>
      readdirSync(archive())
        .filter(name => name.endsWith('.gz'))
        .sort()
    const [from] = readManifest(newest).manifest.wal
    writeFileSync(join(archive(), `${from.slice(0, 8)}${'0'.repeat(16)}.gz`), '')
    assert.deepEqual(removeOldBackups(backupDir, 1, newest, seals), [basename(base)])
    assert.deepEqual(left(), [basename(newest), 'wal'])
    assert.ok(wal()[0]! >= from && wal().length > 1)
    const folder = emptyFolder('kept')
    assert.equal((await restore(folder, backupDir)).code, 0)
  })
})
