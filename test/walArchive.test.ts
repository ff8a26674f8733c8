// The archive in BACKUP_DIR: each database has a folder of its own there, root gives away nothing but that folder, and what the archive does not take is seen.

import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import { restoreBackup } from '../src/platform/database/backup/restore.ts'
import { takeBackup } from '../src/platform/database/backup/take.ts'
import { systemIdentifier } from '../src/platform/database/embedded/place.ts'
import { startEmbedded } from '../src/platform/database/embedded.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { claimFolder } from '../src/platform/database/folder.ts'
import { eventually } from './support/gateway.ts'
import { payAt, readAt } from './support/payAt.ts'
import { commandLine, type Started, startProcess } from './support/process.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-archive-'))
after(() => rmSync(root, { recursive: true, force: true }))
const isRoot = process.getuid?.() === 0

describe('a database that takes the place of another', () => {
  const [dataDir, backupDir] = [join(root, 'data'), join(root, 'backups')]
  let environment: Record<string, string>
  let metricsPort: number
  const wal = join(backupDir, 'wal')
  let gateway: Started
  let [first, second] = ['', '']
  const bases = () => readdirSync(backupDir).filter(name => name.startsWith('base-'))
  const restored = async (name: string, from: string) => {
    const folder = join(root, name)
    mkdirSync(folder, { mode: 0o700 })
    cpSync(join(dataDir, 'keys'), join(folder, 'keys'), { recursive: true })
    const told = await commandLine({ DATA_DIR: folder }, 'restore', from)
    assert.equal(told.code, 0, told.out)
    const started = await startProcess({ DATA_DIR: folder })
    const statuses = await Promise.all([first, second].map(id => readAt(started, id)))
    await started.stop()
    return statuses
  }
  /** Backups are named by the second in which they begin. */
  const makeBackup = async (...words: string[]) => {
    await new Promise(resolve => setTimeout(resolve, 1000 - (Date.now() % 1000)))
    return commandLine(environment, 'backup', ...words)
  }
  const backup = async (...words: string[]) => {
    const told = await makeBackup(...words)
    assert.equal(told.code, 0, told.out)
  }
  before(async () => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await new Promise(ready => server.once('listening', ready))
    metricsPort = (server.address() as AddressInfo).port
    await new Promise(done => server.close(done))
    environment = { DATA_DIR: dataDir, BACKUP_DIR: backupDir, METRICS_PORT: String(metricsPort) }
    gateway = await startProcess(environment)
    await backup()
    first = await payAt(gateway)
    await gateway.stop()
    const reset = await commandLine(environment, 'reset', '--yes')
    assert.equal(reset.code, 0, reset.out)
    gateway = await startProcess(environment)
    await backup()
    second = await payAt(gateway)
    await backup()
  })
  after(() => gateway.stop())

  it('is not the reason for which the backups of the other go, as long as its own is not kept whole', async () => {
    const archive = join(wal, systemIdentifier(join(dataDir, 'postgres')))
    const last = readdirSync(archive)
      .filter(name => /^\w{24}\.gz$/.test(name))
      .sort()
      .at(-1)!
    const next = `${last.slice(0, 16)}${(Number.parseInt(last.slice(16, 24), 16) + 1).toString(16).toUpperCase().padStart(8, '0')}.gz`
    writeFileSync(join(archive, next), 'another')
    const before = bases()
    const told = await makeBackup('--keep', '1')
    assert.equal(told.code, 1)
    assert.match(told.out, /leads to its own end and no further: .* does not take \w{24}\. .*No older backup was removed/)
    assert.deepEqual(
      before.filter(name => !bases().includes(name)),
      [],
    )
    const behind = async () =>
      Number(/^tollgate_wal_behind (\d+)$/m.exec(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text())?.[1])
    assert.ok((await behind()) >= 1)
    rmSync(join(archive, next))
    // It is tried again each minute; a server that starts tries at once.
    await gateway.stop()
    gateway = await startProcess(environment)
    await eventually(async () => (await behind()) === 0, 'the archive takes what waited', 30)
    await gateway.stop()
    for (const name of bases().filter(name => !before.includes(name))) rmSync(join(backupDir, name), { recursive: true })
  })

  it('has an archive of its own, and both can be restored with all that was written since', async () => {
    const [old] = bases().sort()
    assert.deepEqual(await restored('new', backupDir), [404, 200])
    assert.deepEqual(await restored('old', join(backupDir, old!)), [200, 404])
  })

  it('is restored from an archive in which programs of before put the pieces of the other under its names', async () => {
    const ours = systemIdentifier(join(dataDir, 'postgres'))
    const [theirs, ...more] = readdirSync(wal).filter(name => name !== ours)
    assert.ok(theirs !== undefined && more.length === 0)
    const mixed = join(root, 'mixed')
    cpSync(backupDir, mixed, { recursive: true })
    const pieces = (folder: string) => readdirSync(join(wal, folder)).filter(name => /^\w{24}\.gz$/.test(name))
    for (const name of pieces(ours)) cpSync(join(wal, theirs, pieces(theirs)[0]!), join(mixed, 'wal', name))
    for (const folder of [ours, theirs]) rmSync(join(mixed, 'wal', folder), { recursive: true })
    assert.deepEqual(await restored('mixedNew', mixed), [404, 200])
  })

  it('is restored from an archive of before with what was written since', async () => {
    const before = join(root, 'before')
    cpSync(backupDir, before, { recursive: true })
    for (const folder of readdirSync(wal).sort()) {
      cpSync(join(wal, folder), join(before, 'wal'), { recursive: true, force: true })
      rmSync(join(before, 'wal', folder), { recursive: true })
    }
    // Of the first of its backups, which is older than the payment.
    const [, own] = readdirSync(before)
      .filter(name => name.startsWith('base-'))
      .sort()
    assert.deepEqual(await restored('beforeNew', join(before, own!)), [404, 200])
  })
})

describe('root gives away nothing but the folder of the archive,', { skip: !isRoot && 'only root gives folders away' }, () => {
  // Others may pass to it, as the server's user must.
  const open = mkdtempSync(join(tmpdir(), 'tollgate-open-'))
  const [dataDir, backupDir, roots] = [join(open, 'data'), join(open, 'place/backups'), join(open, 'roots')]
  const place = join(open, 'place')
  const wal = join(backupDir, 'wal')
  const games = 5
  const owner = (path: string) => statSync(path).uid
  const start = async (strict = false, into = backupDir): Promise<void> => {
    const claim = claimFolder(dataDir)
    try {
      const server = await startEmbedded({ dataDir, backupDir: into, say() {}, fast: true, strict, user: 'daemon' })
      await server.stop()
    } finally {
      claim.release()
    }
  }
  before(async () => {
    for (const folder of [open, place, backupDir, roots]) {
      mkdirSync(folder, { recursive: true })
      chmodSync(folder, 0o755)
    }
    await start()
  })
  after(() => rmSync(open, { recursive: true, force: true }))

  it('and keeps the folder above it, which programs of before gave away too', async () => {
    chownSync(wal, games, games)
    await start()
    const [archive] = readdirSync(wal)
    assert.deepEqual([owner(wal), statSync(wal).mode & 0o777, owner(join(wal, archive!))], [0, 0o711, 1])
  })

  for (const [place, pathOf] of [
    ['it', () => join(wal, readdirSync(wal)[0]!)],
    ['the folder above it', () => wal],
  ] as const)
    it(`and nothing that a link in the place of ${place} leads to`, async () => {
      const path = pathOf()
      const aside = join(open, 'aside')
      renameSync(path, aside)
      symlinkSync(roots, path)
      await assert.rejects(start(), /is no folder of its own: somebody may have put a link there/)
      assert.equal(owner(roots), 0)
      rmSync(path)
      renameSync(aside, path)
      await start()
    })

  it("and writes and reads nothing that links of the server's user lead to", async () => {
    const cluster = join(dataDir, 'postgres')
    const identifier = systemIdentifier(cluster)
    writeFileSync(join(open, 'secret'), 'TOPSECRET', { mode: 0o600 })
    writeFileSync(join(cluster, 'pg_wal/evil.sh.history'), '')
    mkdirSync(join(roots, 'archive_status'), { recursive: true })
    writeFileSync(join(roots, 'evil.sh.history'), '')
    for (const [name, target] of [
      ['pg_wal/archive_status', roots],
      ['pg_wal', roots],
      ['global/pg_control', join(open, 'secret')],
      ['global', roots],
    ] as const) {
      const path = join(cluster, name)
      const aside = join(open, 'aside')
      renameSync(path, aside)
      symlinkSync(target, path)
      await assert.rejects(start(), new RegExp(`${path} is no file of its own, .* if it is your own link .* mount it here`))
      assert.deepEqual(readdirSync(roots, { recursive: true }).sort(), ['archive_status', 'evil.sh.history'])
      assert.deepEqual(readdirSync(wal), [identifier])
      rmSync(path)
      renameSync(aside, path)
    }
    await start()
    rmSync(join(cluster, 'pg_wal/evil.sh.history'))
  })

  it("lets the server's user pass the folder that it makes for it, or says who cannot", async () => {
    const [made, above] = [join(open, 'made/backups'), join(open, 'made')]
    await start(true, made)
    const [archive] = readdirSync(join(made, 'wal'))
    assert.ok(
      readdirSync(join(made, 'wal', archive!)).some(name => /^\w{24}\.gz$/.test(name)),
      'a stop archives the last piece',
    )
    for (const folder of [made, above]) {
      assert.equal(statSync(folder).mode & 0o777, 0o711)
      chmodSync(folder, 0o700)
      await assert.rejects(start(true, made), new RegExp(`User daemon.* cannot reach ${made}/.*chmod o\\+x ${folder}\\)`))
      chmodSync(folder, 0o711)
    }
  })

  it("lets the server's user pass the folder that a restore makes, in live mode too", async () => {
    const [restored, kept] = [join(open, 'restored'), join(open, 'kept')]
    const seals = () => ['00']
    const claim = claimFolder(dataDir)
    const server = await startEmbedded({ dataDir, say() {}, user: 'daemon' })
    await takeBackup({
      ...{
        connection: runningEmbedded(dataDir)!,
        cluster: join(dataDir, 'postgres'),
        backupDir: kept,
        clock: systemClock,
        seals,
      },
      about: { mode: 'live', build: '', keys: {} },
    })
    await server.stop()
    claim.release()
    const order = { from: kept, to: undefined, user: 'daemon', strict: true, seals, compare() {}, say() {} }
    await restoreBackup({ ...order, dataDir: restored, async examine() {} })
    assert.deepEqual([statSync(restored).mode & 0o777, owner(join(restored, 'postgres'))], [0o701, 1])
  })

  for (const [what, spoil, sentence] of [
    ['that others may write to', () => chmodSync(backupDir, 0o777), /BACKUP_DIR names .*, which others may change: chmod go-w/],
    ['of another user', () => chownSync(backupDir, games, games), /BACKUP_DIR names .*, which another user may change/],
    ['beside which others may put another', () => chmodSync(place, 0o777), /BACKUP_DIR names .*, which others may replace/],
  ] as const)
    it(`and takes no BACKUP_DIR ${what}`, async () => {
      spoil()
      await assert.rejects(start(), sentence)
      chownSync(backupDir, 0, 0)
      for (const folder of [place, backupDir]) chmodSync(folder, 0o755)
      await start(true)
    })
})
