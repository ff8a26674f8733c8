// The data folder and the PostgreSQL in it: who may have them, and that what was written is found again, however it ended.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  lchownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import { chooseAccount, start } from '../src/platform/database/embedded/account.ts'
import { binariesIn, findBinaries } from '../src/platform/database/embedded/binaries.ts'
import { type EmbeddedDatabase, startEmbedded } from '../src/platform/database/embedded.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { claimFolder, FolderError } from '../src/platform/database/folder.ts'
import { kernelOf } from '../src/platform/database/lockFile.ts'
import { isSameProcess, processIdentity, processPlace } from '../src/platform/database/running.ts'
import { project } from './support/process.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'tollgate-test-')))
const isRoot = process.getuid?.() === 0
after(() => rmSync(root, { recursive: true, force: true }))

test('the first start makes the database, the second finds what the first one wrote', async () => {
  const dataDir = join(root, 'first')
  await withDatabase(dataDir, async (db, said) => {
    assert.equal(db.created, true)
    assert.match(said.join(), /Making a database/)
    assert.equal(db.host, join(dataDir, 'socket'))
    await query(db, 'create table notes (text text)')
    await query(db, `insert into notes values ('kept')`)
    assert.deepEqual(await query(db, 'show listen_addresses'), [{ listen_addresses: '' }])
    assert.deepEqual(await query(db, 'show data_checksums'), [{ data_checksums: 'on' }])
    assert.deepEqual(await query(db, 'show server_encoding'), [{ server_encoding: 'UTF8' }])
  })
  await withDatabase(dataDir, async (db, said) => {
    assert.equal(db.created, false)
    assert.deepEqual(said, [])
    assert.deepEqual(await query(db, 'select text from notes'), [{ text: 'kept' }])
    await Promise.all([db.stop(), db.stop()])
    await db.stop()
  })
  assert.deepEqual(readdirSync(dataDir).sort(), ['postgres', 'postgres.log'])
  assert.equal(statSync(join(dataDir, 'postgres')).mode & 0o777, 0o700)
  assert.equal(statSync(dataDir).mode & 0o777, isRoot ? 0o701 : 0o700) // root's server has another user, who passes and cannot look
})

test("the gateway's role reads no files, runs no programs, makes no roles, and no other role is let in", async () => {
  const dataDir = join(root, 'attacked')
  await withDatabase(
    dataDir,
    async db => {
      for (const attack of [
        `select pg_read_file('/etc/passwd')`,
        `copy (select 1) to program 'true'`,
        `create role intruder superuser`,
        `alter role ${db.user} superuser`,
        'create database other',
        `set session authorization tollgate`,
      ])
        await assert.rejects(query(db, attack), { code: '42501' }, attack)
      await assert.rejects(query({ ...db, user: 'tollgate' }, 'select 1'), { code: '28000' })
      await assert.rejects(query({ ...db, database: 'postgres' }, 'select 1'), { code: '28000' })
    },
    false,
  )
})

test('a cluster of the time before, whose role was a superuser, passes to the role with its tables', async () => {
  const dataDir = join(root, 'before')
  await withDatabase(dataDir, db => query(db, 'create table notes (text text)').then(() => undefined))
  const claim = claimFolder(dataDir)
  const server = await startEmbeddedAsBefore(dataDir)
  const old = { ...server, user: 'tollgate' }
  for (const statement of [
    'alter table notes owner to tollgate',
    'alter database tollgate owner to tollgate',
    'reassign owned by gateway to tollgate',
    'drop owned by gateway',
    'drop role gateway',
  ])
    await query(old, statement).catch(error => assert.match(statement, /^(reassign|drop owned)/, String(error)))
  await server.stop()
  claim.release()
  await withDatabase(dataDir, async db => {
    assert.equal(db.user, 'gateway')
    await query(db, `insert into notes values ('kept')`)
    await query(db, 'alter table notes add column more text')
    assert.equal(db.created, false)
  })
})

test('a server started by root holds no ability of root', { skip: !isRoot && 'only root has abilities' }, async () => {
  const open = mkdtempSync(join(tmpdir(), 'tollgate-open-'))
  chmodSync(open, 0o755)
  const claim = claimFolder(join(open, 'data'))
  const db = await startEmbedded({ dataDir: join(open, 'data'), say() {}, strict: true, fast: true, user: 'daemon' })
  const status = readFileSync(`/proc/${postmasterPid(join(open, 'data'))}/status`, 'utf8')
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) assert.match(status, new RegExp(`^${set}:\\s+0+$`, 'm'))
  assert.doesNotMatch(status, /^Uid:\s+0/m)
  await db.stop()
  claim.release()
  rmSync(open, { recursive: true })
})

test('live mode refuses folders that only an ability of root passes', {
  skip: !isRoot && 'only root has abilities',
}, async () => {
  const dataDir = join(root, 'closed-to-others')
  const claim = claimFolder(dataDir)
  await assert.rejects(
    startEmbedded({ dataDir, say() {}, strict: true, fast: true, user: 'daemon' }),
    hasMessage(`cannot reach ${root}`, 'chmod o+x'),
  )
  claim.release()
})

const ofRoot = { skip: !isRoot && 'only root can give files to others' }
const nobody = 65534

/** A file of root's that others would like to have or to change. */
const makeVictim = (name: string): { path: string; isUntouched(): boolean } => {
  const path = join(root, `${name}.victim`)
  writeFileSync(path, 'secret\n', { mode: 0o600 })
  return { path, isUntouched: () => readFileSync(path, 'utf8') === 'secret\n' && statSync(path).uid === 0 }
}

test('root takes no folder that others could put links into', ofRoot, async () => {
  const dataDir = join(root, 'of-others')
  const log = makeVictim('log')
  mkdirSync(dataDir)
  symlinkSync(log.path, join(dataDir, 'postgres.log'))
  for (const [uid, mode, sentence] of [
    [1000, 0o700, 'another user may change'],
    [0, 0o770, 'others may change: chmod go-w'],
    [0, 0o757, 'others may change: chmod go-w'],
  ] as const) {
    chownSync(dataDir, uid, 0)
    chmodSync(dataDir, mode)
    await assert.rejects(
      withDatabase(dataDir, async () => {}),
      hasMessage(dataDir, sentence),
    )
  }
  chmodSync(dataDir, 0o700)
  await assert.rejects(
    withDatabase(dataDir, async () => {}),
    hasMessage('postgres.log is no file of its own'),
  )
  assert.ok(log.isUntouched())
})

test('root takes no folder that others could put another in the place of, and makes and opens none there', ofRoot, () => {
  const shared = join(root, 'shared')
  mkdirSync(join(shared, 'inner/data'), { recursive: true, mode: 0o700 })
  chmodSync(shared, 0o777)
  for (const path of [join(shared, 'inner/data'), join(shared, 'none/data')])
    assert.throws(() => claimFolder(path), hasMessage(`DATA_DIR names ${path}`, `may write to the folder ${shared}`))
  assert.deepEqual(readdirSync(shared), ['inner'])
  // Where the sticky bit keeps names, a link is still whose it is.
  chmodSync(shared, 0o1777)
  const victim = join(root, 'closed')
  mkdirSync(victim, { mode: 0o700 })
  for (const [name, uid] of [
    ['theirs', nobody],
    ['ours', 0],
  ] as const) {
    symlinkSync(victim, join(shared, name))
    lchownSync(join(shared, name), uid, 0)
  }
  for (const path of [join(shared, 'theirs'), join(shared, 'theirs/data')]) {
    assert.throws(() => claimFolder(path), hasMessage('another user may replace, whose link'))
    assert.throws(() => runningEmbedded(path), hasMessage('another user may replace, whose link'))
  }
  assert.deepEqual([statSync(victim).mode & 0o777, readdirSync(victim)], [0o700, []])
  for (const path of [join(shared, 'ours/data'), join(shared, 'new'), join(shared, 'inner/data')]) claimFolder(path).release()
})

test("root works in another user's clone, whose program it runs, and in no folder of a third one there", ofRoot, async () => {
  const clone = join(root, 'clone')
  mkdirSync(join(clone, 'src/platform'), { recursive: true })
  for (const name of ['files.ts', 'errors.ts'])
    copyFileSync(join(project, 'src/platform', name), join(clone, 'src/platform', name))
  chownSync(clone, nobody, 0)
  chmodSync(clone, 0o775)
  const { whoMayPlace }: typeof import('../src/platform/files.ts') = await import(join(clone, 'src/platform/files.ts'))
  const inClone = (path: string, strict = false) => whoMayPlace(join(clone, path), { strict })
  mkdirSync(join(clone, 'data'))
  for (const [uid, mode, refused] of [
    [0, 0o700, undefined],
    [nobody, 0o755, undefined],
    [nobody, 0o775, /^others may change/],
    [1000, 0o755, /^another user may change/],
  ] as const) {
    chownSync(join(clone, 'data'), uid, 0)
    chmodSync(join(clone, 'data'), mode)
    const who = inClone('data')
    assert.ok(refused ? refused.test(who ?? '') : who === undefined, who)
    assert.match(inClone('data', true) ?? '', /^another user may replace, whose folder/, 'in live mode')
  }
  chmodSync(join(clone, 'data'), 0o777)
  assert.match(inClone('data/below') ?? '', /^another user may replace/)
  assert.equal(inClone('new/data'), undefined)
  assert.match(whoMayPlace(`${clone}/../clone/new`, { strict: false }) ?? '', /whose folder/, 'a way that leads out of it')
})

test("a command asks no file that the server's user put in the place of the server's own", ofRoot, () => {
  const cluster = join(root, 'asked/postgres')
  const pidFile = join(cluster, 'postmaster.pid')
  mkdirSync(cluster, { recursive: true })
  chownSync(cluster, nobody, 0)
  writeFileSync(join(root, 'asked.pid'), `1\n${cluster}\n0\n5432\n/tmp/theirs\n`)
  const asked = () => runningEmbedded(join(root, 'asked'))
  assert.equal(asked(), undefined)
  symlinkSync(join(root, 'asked.pid'), pidFile)
  assert.throws(asked, hasMessage('postmaster.pid is no file of its own', 'if it is your own link', 'mount it here'))
  rmSync(pidFile)
  execFileSync('mkfifo', [pidFile])
  assert.throws(asked, hasMessage('postmaster.pid is no file of its own', 'Look at it, and remove it.'))
  rmSync(pidFile)
  writeFileSync(pidFile, readFileSync(join(root, 'asked.pid')))
  assert.throws(asked, hasMessage('postmaster.pid is no file of its own'), "root's own, which another has moved there")
  chownSync(pidFile, nobody, 0)
  assert.equal((asked() as { host: string }).host, '/tmp/theirs')
})

for (const name of ['postmaster.pid', 'pg_hba.conf', 'PG_VERSION']) {
  test(`${name} is neither written nor read through what the server's user put there`, ofRoot, async () => {
    const dataDir = join(root, `planted-${name}`)
    await withDatabase(dataDir, async () => {})
    const path = join(dataDir, 'postgres', name)
    const victim = makeVictim(name)
    const plants: readonly (() => void)[] = [
      () => symlinkSync(victim.path, path),
      () => linkSync(victim.path, path),
      () => execFileSync('mkfifo', [path]),
    ]
    for (const plant of plants) {
      rmSync(path, { force: true })
      plant()
      lchownSync(path, plant === plants[1] ? 0 : nobody, 0) // a second name of a file keeps the owner of the file
      await assert.rejects(
        withDatabase(dataDir, async () => {}),
        hasMessage(`${name} is no file of its own`),
      )
      assert.ok(victim.isUntouched(), `${plant}`)
    }
  })
}

test("live mode gives root's database to a user whom no other program runs as", ofRoot, async () => {
  const open = mkdtempSync(join(tmpdir(), 'tollgate-open-'))
  chmodSync(open, 0o755)
  const dataDir = join(open, 'data')
  const claim = claimFolder(dataDir)
  const start = (user?: string) => startEmbedded({ dataDir, say() {}, strict: true, fast: true, ...(user && { user }) })
  await assert.rejects(start('nobody'), hasMessage('EMBEDDED_USER', 'useradd'))
  await assert.rejects(start('no-such-user'), hasMessage('EMBEDDED_USER', 'no-such-user'))
  await assert.rejects(start('root'), hasMessage('EMBEDDED_USER', 'root'))
  const db = await start('daemon')
  const { uid } = statSync(join(dataDir, 'postgres'))
  assert.notEqual(uid, nobody)
  assert.equal(statSync(`/proc/${postmasterPid(dataDir)}`).uid, uid)
  await db.stop()
  // Who has it keeps it until it is handed over.
  await assert.rejects(start('bin'), hasMessage('chown -R bin'))
  claim.release()
  rmSync(open, { recursive: true })
})

test('nobody reaches the server over TCP or speaks TLS to it, whatever its own settings say', async () => {
  const dataDir = join(root, 'first')
  const settings = join(dataDir, 'postgres/postgresql.auto.conf')
  await withDatabase(dataDir, async db => {
    await assert.rejects(query(db, `alter system set listen_addresses = '*'`), { code: '42501' })
  })
  const before = readFileSync(settings, 'utf8')
  writeFileSync(settings, `${before}listen_addresses = '*'\nssl = on\n`) // as a hand in its folder would
  await withDatabase(dataDir, async db => {
    assert.deepEqual(await query(db, 'show listen_addresses'), [{ listen_addresses: '' }])
    assert.deepEqual(await query(db, 'show ssl'), [{ ssl: 'off' }])
    assert.deepEqual(listeningPorts(postmasterPid(dataDir)), [])
  })
  writeFileSync(settings, before)
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  assert.deepEqual(listeningPorts(process.pid), [(listener.address() as AddressInfo).port], 'a listener would be seen')
  listener.close()
})

test('outside tests a commit is on the disk', async () => {
  await withDatabase(
    join(root, 'first'),
    async db => {
      assert.deepEqual(await query(db, 'show fsync'), [{ fsync: 'on' }])
      assert.deepEqual(await query(db, 'show synchronous_commit'), [{ synchronous_commit: 'on' }])
    },
    false,
  )
})

test('the server a killed gateway left is stopped, and its data found', async () => {
  const dataDir = join(root, 'first')
  const gateway = runScript(`
    claimFolder(${JSON.stringify(dataDir)})
    await startEmbedded({ dataDir: ${JSON.stringify(dataDir)}, say() {}, fast: true })
    console.log('started')
    setInterval(() => {}, 1000)`)
  assert.equal(await firstLine(gateway), 'started')
  const orphan = postmasterPid(dataDir)
  gateway.kill('SIGKILL')
  await once(gateway, 'exit')
  assert.notEqual(processIdentity(orphan), undefined, 'the server outlives its gateway')
  await withDatabase(dataDir, async (db, said) => {
    assert.equal(processIdentity(orphan), undefined)
    assert.match(said.join(), new RegExp(`pid ${orphan}\\b`))
    assert.deepEqual(await query(db, 'select text from notes'), [{ text: 'kept' }])
  })
})

test('a server that ends by itself is told, and a pid that is somebody else’s now is left alone', async () => {
  const dataDir = join(root, 'first')
  await withDatabase(dataDir, async db => {
    process.kill(postmasterPid(dataDir), 'SIGKILL')
    assert.match(await db.exited, /ready to accept connections/)
  })
  const stranger = spawn('sleep', ['60'])
  const pidFile = join(dataDir, 'postgres/postmaster.pid')
  writeFileSync(pidFile, readFileSync(pidFile, 'utf8').replace(/^\d+/, String(stranger.pid)))
  await withDatabase(dataDir, async db => {
    assert.deepEqual(await query(db, 'select text from notes'), [{ text: 'kept' }])
  })
  assert.equal(stranger.exitCode ?? stranger.signalCode, null)
  stranger.kill()
})

test('a database that no gateway made, and a server that none started, are left as they are', async t => {
  const dataDir = join(root, 'foreign')
  await withDatabase(dataDir, async () => {})
  const cluster = join(dataDir, 'postgres')
  const [doors, told, pidFile] = ['pg_hba.conf', 'postmaster.opts', 'postmaster.pid'].map(name => join(cluster, name)) as [
    string,
    string,
    string,
  ]
  const ofGateway = readFileSync(doors, 'utf8')
  const isRefused = async (sentence: string) => {
    const before = [readdirSync(dataDir), readFileSync(doors, 'utf8'), unless(() => readFileSync(pidFile, 'utf8'), '')]
    await assert.rejects(
      withDatabase(dataDir, async () => {}),
      hasMessage(cluster, sentence),
    )
    assert.deepEqual([readdirSync(dataDir), readFileSync(doors, 'utf8'), unless(() => readFileSync(pidFile, 'utf8'), '')], before)
  }
  const ofAnother = 'local all all trust\n'
  writeFileSync(doors, ofAnother)
  const server = await startByHand(dataDir)
  t.after(() => server.kill('SIGKILL'))
  assert.doesNotMatch(readFileSync(told, 'utf8'), /unix_socket_directories="/)
  await isRefused('was made by no gateway')
  writeFileSync(doors, ofGateway)
  await isRefused(`no gateway has started runs on ${cluster} (pid ${server.pid})`)
  const linked = join(root, 'linked')
  mkdirSync(linked)
  symlinkSync(cluster, join(linked, 'postgres'))
  await assert.rejects(
    withDatabase(linked, async () => {}),
    hasMessage('no gateway has started', String(server.pid)),
  )
  assert.match(readFileSync(pidFile, 'utf8'), new RegExp(`^${server.pid}\n`))
  assert.equal(server.exitCode ?? server.signalCode, null)
  server.kill('SIGINT')
  await once(server, 'exit')
  writeFileSync(doors, ofAnother)
  await isRefused('was made by no gateway')
  writeFileSync(doors, `# ${ofGateway}`)
  await isRefused('put the line "# Written by Tollgate:" into that file')
  writeFileSync(doors, `${ofAnother}# Written by Tollgate:`)
  await withDatabase(dataDir, async db => assert.equal(db.created, false))
  assert.equal(readFileSync(doors, 'utf8'), ofGateway)
})

test('a server whose files are of another version is not stopped', async () => {
  const dataDir = join(root, 'first')
  await withDatabase(dataDir, async db => {
    const version = join(dataDir, 'postgres/PG_VERSION')
    const ours = readFileSync(version, 'utf8')
    writeFileSync(version, '15\n')
    await assert.rejects(startEmbedded({ dataDir, say() {}, fast: true }), hasMessage('is of PostgreSQL 15'))
    writeFileSync(version, ours)
    assert.deepEqual(await query(db, 'select text from notes'), [{ text: 'kept' }])
  })
})

test('a server that cannot be seen from here keeps its files: it would end at the pid of another', async () => {
  const dataDir = join(root, 'unseen')
  await withDatabase(dataDir, async () => {})
  const pidFile = join(dataDir, 'postgres/postmaster.pid')
  const theirs = `4194305\n${join(dataDir, 'postgres')}\n0\n5432\n${join(dataDir, 'socket')}\n`
  writeFileSync(pidFile, theirs)
  if (isRoot) chownSync(pidFile, statSync(join(dataDir, 'postgres')).uid, 0)
  mkdirSync(join(dataDir, 'socket'), { mode: 0o700 })
  const listener = createServer().listen(join(dataDir, 'socket/.s.PGSQL.5432'))
  await once(listener, 'listening')
  await assert.rejects(
    withDatabase(dataDir, async () => {}),
    hasMessage(`Another database server is running on ${dataDir}`),
  )
  assert.equal(readFileSync(pidFile, 'utf8'), theirs)
  listener.close()
  await withDatabase(dataDir, async db => assert.deepEqual(await query(db, 'select 1 as one'), [{ one: 1 }]))
})

test('a start that failed says why, and leaves nothing running', async () => {
  const dataDir = join(root, 'broken')
  mkdirSync(join(dataDir, 'postgres'), { recursive: true })
  await assert.rejects(
    withDatabase(dataDir, async () => {}),
    hasMessage('holds no database'),
  )
  rmSync(join(dataDir, 'postgres'), { recursive: true })
  mkdirSync(join(dataDir, 'postgres.new-interrupted'))
  await withDatabase(dataDir, async () => {})
  assert.deepEqual(readdirSync(dataDir).sort(), ['postgres', 'postgres.log'])
  rmSync(join(dataDir, 'postgres/global/pg_control'))
  await assert.rejects(
    withDatabase(dataDir, async () => {}),
    hasMessage('could not find the database system'),
  )
  assert.equal(existsSync(join(dataDir, 'postgres/postmaster.pid')), false)
})

test('a path too long for a socket gets a private folder among the temporary files', async () => {
  const dataDir = join(root, 'long'.repeat(25))
  let host = ''
  await withDatabase(dataDir, async db => {
    host = db.host
    assert.equal(host.startsWith(join(realpathSync(tmpdir()), 'tollgate-')), true)
    assert.equal(statSync(host).mode & 0o777, 0o700)
  })
  assert.equal(existsSync(host), false)
  writeFileSync(host, '')
  await assert.rejects(
    withDatabase(dataDir, async () => {}),
    hasMessage(host),
  )
  rmSync(host)
})

test('the database is started only by who holds the folder', async () => {
  await assert.rejects(startEmbedded({ dataDir: root, say() {} }), /claimed/)
})

test('a folder has one holder: the second is told who', async () => {
  const dataDir = join(root, 'held')
  const claim = claimFolder(dataDir)
  assert.throws(() => claimFolder(dataDir), hasMessage(dataDir, `pid ${process.pid}`))
  const other = runScript(claimAndTell(dataDir))
  assert.match(await firstLine(other), new RegExp(`in use by another gateway \\(pid ${process.pid}\\)`))
  claim.release()
  claim.release()
  claimFolder(dataDir).release()
  assert.deepEqual(readdirSync(dataDir), [])
})

test('the lock of a dead holder is taken over', () => {
  const dataDir = join(root, 'stale')
  mkdirSync(dataDir)
  const stale = {
    'a pid that nobody has': '4194305\nalive\n',
    'a pid given to another process': '1\nearlier-boot/1\n',
    'a cut off file': '',
  }
  for (const [name, text] of Object.entries(stale)) {
    writeFileSync(join(dataDir, 'gateway.lock'), text)
    const claim = claimFolder(dataDir)
    assert.match(readFileSync(join(dataDir, 'gateway.lock'), 'utf8'), new RegExp(`^${process.pid}\n`), name)
    claim.release()
  }
  // The one who was replacing a dead one's lock died too.
  for (const lock of ['gateway.lock', 'gateway.lock.next']) writeFileSync(join(dataDir, lock), '4194305\nalive\n')
  claimFolder(dataDir).release()
  assert.deepEqual(readdirSync(dataDir), [])
})

const onlyLinux = { skip: process.platform !== 'linux' && 'only Linux has PID namespaces' }
const elsewhere = [String(process.pid), processIdentity(process.pid)!, 'another-boot pid:[4026532999]'] as const

/** A lock of a holder with this sign of life, and no sign. */
function lockOf(dataDir: string, lines: readonly string[], name = 'gateway.lock') {
  mkdirSync(dataDir, { recursive: true })
  const [lock, sign] = [join(dataDir, name), join(dataDir, `${name}.theirs.alive`)]
  writeFileSync(lock, `${[...lines, 'gateway.lock.theirs.alive'].join('\n')}\n`)
  return { lock, sign }
}
const openPipe = (sign: string): number => {
  execFileSync('mkfifo', [sign])
  return openSync(sign, constants.O_RDONLY | constants.O_NONBLOCK)
}

/** A refusal changes nothing. → its sentence. */
function refusal(dataDir: string, from = 0): string {
  const before = folderOf(dataDir).slice(from)
  let sentence = ''
  assert.throws(
    () => claimFolder(dataDir),
    (error: Error) => {
      sentence = error.message
      return hasMessage(dataDir, 'another gateway')(error)
    },
  )
  assert.deepEqual(folderOf(dataDir).slice(from), before)
  return sentence
}
const folderOf = (dataDir: string) =>
  ['.', ...readdirSync(dataDir)].map(name => {
    const path = join(dataDir, name)
    return [name, statSync(path).mtimeMs, statSync(path).isFile() && readFileSync(path, 'utf8')]
  })

test('who cannot be seen from here is dead when nobody has its sign of life open, and at no silence', onlyLinux, () => {
  const dataDir = join(root, 'elsewhere')
  const boot = processIdentity(process.pid)!.split('/')[0]
  for (const place of [elsewhere[2], `${boot} pid:[4026532999]`, 'another-machine pid:[4026531836]']) {
    // Its pid and identity may be those of a process here, or of none.
    for (const identity of [elsewhere.slice(0, 2), ['4194305', `${boot}/1`]]) {
      const { lock, sign } = lockOf(dataDir, [...identity, place, kernelOf(root)])
      const handle = openPipe(sign)
      for (const before of [0, 86_400_000, -86_400_000]) {
        utimesSync(lock, new Date(), new Date(Date.now() - before))
        const sentence = refusal(dataDir)
        assert.match(sentence, new RegExp(`of another container \\(pid ${identity[0]} there\\)`))
        assert.doesNotMatch(sentence, /remove/)
      }
      closeSync(handle)
      claimFolder(dataDir).release()
      assert.deepEqual(readdirSync(dataDir), [])
    }
  }
})

test('where nothing shows whether a holder lives an operator says that it is dead', onlyLinux, () => {
  const dataDir = join(root, 'unknown')
  const dead = (sign: string) => closeSync(openPipe(sign))
  const unknown: [string, kernel: string, (sign: string) => void][] = [
    ['another machine, or this one before it was started again', 'another-boot 41', dead],
    ['another file system', 'disk 1', dead],
    ['a system that does not tell', '', dead],
    ['a sign that somebody took away', kernelOf(root), () => {}],
    ['a place where no pipe can be made', kernelOf(root), sign => writeFileSync(sign, '')],
  ]
  for (const [name, kernel, makeSign] of unknown) {
    const { lock, sign } = lockOf(dataDir, [...elsewhere, kernel])
    makeSign(sign)
    utimesSync(lock, 0, 0)
    const sentence = refusal(dataDir)
    for (const part of [`it last wrote to ${lock} at 1970-01-01T00:00:00.000Z`, `remove ${lock} and start again`])
      assert.ok(sentence.includes(part), `${name}: ${sentence}`)
    rmSync(lock)
    claimFolder(dataDir).release()
    assert.deepEqual(readdirSync(dataDir), [], name)
  }
  // Another that was replacing a dead one's lock died too.
  for (const [kernel, isKnown] of [
    ['another-boot 41', false],
    [kernelOf(root), true],
  ] as const) {
    writeFileSync(lockOf(dataDir, []).lock, '4194305\nalive\n')
    const { lock, sign } = lockOf(dataDir, [...elsewhere, kernel], 'gateway.lock.next')
    dead(join(dataDir, 'gateway.lock.theirs.alive'))
    if (!isKnown) {
      assert.ok(refusal(dataDir, 1).includes(`remove ${lock} and start again`)) // a dead one's lock was to be replaced
      rmSync(lock)
    }
    claimFolder(dataDir).release()
    assert.deepEqual(readdirSync(dataDir), [], sign)
  }
  assert.match(kernelOf(root), /^disk /)
  const boot = processIdentity(process.pid)!.split('/')[0]
  assert.equal(kernelOf('/proc'), `${boot} ${statSync('/proc').dev}`, 'what is no disk may be of many machines')
  assert.equal(kernelOf(join(root, 'nowhere')), '')
})

const hasNamespaces =
  process.platform === 'linux' &&
  spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true'], { stdio: 'ignore' }).status === 0

test('a container that stands still is taken for no dead one, nor is its server, and one that was killed is followed at once', {
  skip: !hasNamespaces && 'it needs unshare, and root',
}, async t => {
  const dataDir = join(root, 'contained')
  await withDatabase(dataDir, async db => void (await query(db, `create table notes as select 'kept' as text`)))
  const gateway = `${scriptOf(`
    claimFolder(${JSON.stringify(dataDir)})
    await startEmbedded({ dataDir: ${JSON.stringify(dataDir)}, say() {}, fast: true })
    console.log('started')
    setInterval(() => {}, 1000)`)}`
  const words = ['--pid', '--fork', '--mount-proc', 'sh', '-c', '"$0" --input-type=module -e "$1" & wait; sleep 600']
  const container = spawn('unshare', [...words, process.execPath, gateway], { stdio: ['ignore', 'pipe', 'inherit'] })
  const inside = () => descendantsOf(container.pid!)
  t.after(() => signalAll(inside(), 'SIGKILL'))
  assert.equal(await firstLine(container), 'started')
  const all = inside()
  assert.match(refusal(dataDir), /of another container/)
  signalAll(all, 'SIGSTOP')
  utimesSync(join(dataDir, 'gateway.lock'), 0, 0)
  assert.match(refusal(dataDir), /of another container/)
  rmSync(join(dataDir, 'gateway.lock'))
  assert.match(refusal(dataDir), /of another container/)
  signalAll(all, 'SIGCONT')
  await until(() => existsSync(join(dataDir, 'gateway.lock')))
  const node = all.find(pid => linkOf(`/proc/${pid}/exe`) === realpathSync(process.execPath))!
  process.kill(node, 'SIGKILL')
  await untilDead([node])
  assert.match(refusal(dataDir), /or by the database server that it left/)
  const first = all.find(pid => parentOf(String(pid)) === container.pid)!
  process.kill(first, 'SIGKILL') // with it goes the whole namespace
  await once(container, 'exit')
  await untilDead(all)
  await withDatabase(dataDir, async db => assert.deepEqual(await query(db, 'select text from notes'), [{ text: 'kept' }]))
})

test(
  'whose lock was taken away is followed when he is dead here, also while his server lives, and not before',
  onlyLinux,
  async t => {
    const dataDir = join(root, 'unlocked')
    await withDatabase(dataDir, async db => void (await query(db, `create table notes as select 'kept' as text`)))
    const gateway = runScript(
      `claimFolder(${JSON.stringify(dataDir)})
     await startEmbedded({ dataDir: ${JSON.stringify(dataDir)}, say() {}, fast: true })
     console.log('started')
     setInterval(() => {}, 1000)`,
    )
    assert.equal(await firstLine(gateway), 'started')
    const servers = descendantsOf(gateway.pid!)
    t.after(() => signalAll([gateway.pid!, ...servers], 'SIGKILL'))
    gateway.kill('SIGSTOP')
    rmSync(join(dataDir, 'gateway.lock'))
    assert.match(refusal(dataDir), new RegExp(`in use by another gateway \\(pid ${gateway.pid}\\)`))
    gateway.kill('SIGKILL')
    await untilDead([gateway.pid!])
    assert.ok(servers.some(pid => existsSync(`/proc/${pid}`)))
    // Of a release that wrote the pid alone, and of another place, nobody here knows who he was.
    const sign = readdirSync(dataDir).find(name => name.endsWith('.alive'))!
    const written = /(?<=^gateway\.lock\.\d+-[\w-]+)\.[^,]+,[^,]+(?=\.alive$)/
    let last = sign
    for (const name of [sign.replace(written, ''), sign.replace(/,[^,]+\.alive$/, ',another-boot%20pid.alive')]) {
      renameSync(join(dataDir, last), join(dataDir, name))
      last = name
      assert.match(refusal(dataDir), new RegExp(`of another container \\(pid ${gateway.pid} there\\), or by the database server`))
    }
    renameSync(join(dataDir, last), join(dataDir, sign))
    await withDatabase(dataDir, async db => assert.deepEqual(await query(db, 'select text from notes'), [{ text: 'kept' }]))
    await untilDead(servers)
  },
)

test('what died with its machine, or at its place, is known to be dead at once', onlyLinux, () => {
  const dataDir = join(root, 'restarted')
  for (const identity of [
    [String(process.pid), 'earlier-boot/1'],
    ['4194305', elsewhere[1]],
  ]) {
    lockOf(dataDir, [...identity, processPlace(), kernelOf(root)])
    claimFolder(dataDir).release()
  }
  const place = processPlace()
  if (place.endsWith('pid:[4026531836]') && existsSync('/etc/machine-id'))
    assert.ok(place.startsWith(readFileSync('/etc/machine-id', 'utf8').trim()), 'it is the same after a restart')
})

test('a holder shows that it lives, and puts back a lock that somebody took away', async () => {
  const held = join(root, 'shown')
  const claim = claimFolder(held)
  const lock = join(held, 'gateway.lock')
  const [text, names] = [readFileSync(lock, 'utf8'), readdirSync(held)]
  utimesSync(lock, 0, 0)
  await until(() => statSync(lock).mtimeMs > 0)
  assert.equal(readFileSync(lock, 'utf8'), text)
  rmSync(lock)
  assert.throws(() => claimFolder(held), hasMessage(held, `this process (pid ${process.pid})`)) // also before it is there again: its holder may stand still
  await until(() => existsSync(lock))
  assert.deepEqual([readFileSync(lock, 'utf8'), readdirSync(held)], [text, names])
  claim.release()
  assert.deepEqual(readdirSync(held), [])
})

test('who has lost the folder ends at once with its server, and leaves the files of the other as they are', async () => {
  const ways: { [name: string]: (lock: string) => unknown } = {
    taken: lock => writeFileSync(lock, `${elsewhere.join('\n')}\n`),
    'taken and left': async lock => {
      // As seen from a machine to which the pipe says nothing.
      for (const name of readdirSync(dirname(lock))) if (name.startsWith('gateway.lock')) rmSync(join(dirname(lock), name))
      const other = runScript(`claimFolder(${JSON.stringify(dirname(lock))}).release()`)
      assert.deepEqual(await once(other, 'exit'), [0, null])
      assert.equal(existsSync(lock), false)
    },
  }
  for (const [name, lose] of Object.entries(ways)) {
    const dataDir = join(root, `lost, ${name}`)
    const loser = runScript(
      `claimFolder(${JSON.stringify(dataDir)})
       await startEmbedded({ dataDir: ${JSON.stringify(dataDir)}, say() {}, fast: true })
       console.log('started')
       process.on('SIGTERM', () => {})
       setInterval(() => {}, 1000)`,
      'pipe',
    )
    const [told, end] = [loser.stderr!.toArray(), once(loser, 'exit')]
    const late = setTimeout(() => loser.kill('SIGKILL'), 60_000)
    assert.equal(await firstLine(loser), 'started')
    const session = new pg.Client(runningEmbedded(dataDir)!)
    session.on('error', () => {})
    await session.connect()
    // It looks at nothing else meanwhile, not at the end of its server either.
    const busy = `do $$ begin while clock_timestamp() < now() + interval '90 seconds' loop perform 1; end loop; end $$`
    session.query(busy).catch(() => {})
    const [control, pidFile] = ['global/pg_control', 'postmaster.pid'].map(file => join(dataDir, 'postgres', file))
    const servers = descendantsOf(loser.pid!)
    assert.ok(servers.length > 5)
    const before = [readFileSync(control!), readFileSync(pidFile!, 'utf8')]
    await lose(join(dataDir, 'gateway.lock'))
    assert.deepEqual(await end, [1, null], name)
    clearTimeout(late)
    await untilDead(servers)
    assert.match(String(await told), /another gateway's by now, or was meanwhile/)
    assert.deepEqual([readFileSync(control!), readFileSync(pidFile!, 'utf8')], before)
    assert.ok(existsSync(join(dataDir, 'socket/.s.PGSQL.5432')))
    assert.doesNotMatch(readFileSync(join(dataDir, 'postgres.log'), 'utf8').split('ready to accept').at(-1)!, /shutdown|shutting/)
  }
})

test('of eight starters at the same instant one takes over the lock of a dead holder', async () => {
  const dataDir = join(root, 'raced')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'gateway.lock'), '4194305\nalive\n')
  const at = Date.now() + 2500
  const script = `await new Promise(resolve => setTimeout(resolve, ${at} - Date.now() - 20))
    while (Date.now() < ${at});${claimAndTell(dataDir)}`
  const starters = Array.from({ length: 8 }, () => runScript(script))
  const answers = await Promise.all(starters.map(firstLine))
  assert.equal(answers.filter(answer => answer === 'mine').length, 1, answers.join('\n'))
  assert.equal(answers.filter(answer => answer.includes('in use by another gateway')).length, 7, answers.join('\n'))
  for (const starter of starters) starter.kill('SIGKILL')
})

test('what cannot be the folder is said plainly', () => {
  const file = join(root, 'file')
  writeFileSync(file, '')
  assert.throws(() => claimFolder(file), hasMessage(file, 'is not a folder'))
  assert.throws(() => claimFolder(join(file, 'below')), hasMessage(file, 'is not a folder'))
})

test('a folder that cannot be written to is said plainly', { skip: isRoot && 'root may write everywhere' }, () => {
  const folder = join(root, 'closed')
  mkdirSync(folder)
  chmodSync(folder, 0o500)
  assert.throws(() => claimFolder(folder), hasMessage(folder, 'is not writable'))
  assert.throws(() => claimFolder(join(folder, 'below')), hasMessage(folder, 'cannot be made'))
})

test('a process is the same only with its identity', () => {
  const own = processIdentity(process.pid)
  assert.ok(own)
  assert.equal(processIdentity(process.pid), own)
  assert.equal(isSameProcess(process.pid, own), true)
  assert.equal(isSameProcess(process.pid, 'another'), own === 'alive')
  for (const nobody of [0, -1, Number.NaN, 4194305]) assert.equal(processIdentity(nobody), undefined)
})

test('where no pipe can be made the start says what that means', async () => {
  const dataDir = join(root, 'no-pipe')
  const path = process.env.PATH
  process.env.PATH = root // nothing is found there
  const claim = claimFolder(dataDir)
  process.env.PATH = path
  const told: string[] = []
  const db = await startEmbedded({ dataDir, say: text => told.push(text), fast: true })
  await db.stop()
  claim.release()
  assert.match(told[0]!, /^No named pipe can be made in .*no-pipe \(mkfifo\)/)
  await withDatabase(dataDir, async (_, said) => assert.ok(!said.some(text => text.includes('mkfifo'))))
})

async function withDatabase(
  dataDir: string,
  use: (db: EmbeddedDatabase, said: string[]) => Promise<void>,
  fast = true,
): Promise<void> {
  const claim = claimFolder(dataDir)
  try {
    const said: string[] = []
    const db = await startEmbedded({ dataDir, say: text => said.push(text), fast })
    try {
      await use(db, said)
    } finally {
      await db.stop()
    }
  } finally {
    claim.release()
  }
}

async function query({ host, port, user, database }: EmbeddedDatabase, text: string): Promise<unknown[]> {
  const client = new pg.Client({ host, port, user, database, ssl: false })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** As an operator starts a server of his own. */
async function startByHand(dataDir: string): Promise<ChildProcess> {
  const [cluster, sockets] = [join(dataDir, 'postgres'), join(dataDir, 'sockets')]
  const binaries = findBinaries()
  const account = chooseAccount(dataDir, cluster, binaries, { strict: false, user: undefined })
  mkdirSync(sockets, { mode: 0o700 })
  if (isRoot) chownSync(sockets, account.uid, account.gid)
  const settings = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${sockets}`]
  const server = start(binaries.postgres, ['-D', cluster, ...settings], account, { stdio: 'ignore' })
  for (const until = Date.now() + 30_000; Date.now() < until; await new Promise(resolve => setTimeout(resolve, 50)))
    if (/^ready/m.test(unless(() => readFileSync(join(cluster, 'postmaster.pid'), 'utf8'), ''))) return server
  throw new Error('the server is not ready')
}

/** As the version before started it: everybody on the socket is let in. */
async function startEmbeddedAsBefore(dataDir: string): Promise<EmbeddedDatabase> {
  const db = await startEmbedded({ dataDir, say() {}, fast: true })
  writeFileSync(join(dataDir, 'postgres/pg_hba.conf'), 'local all all trust\n')
  process.kill(postmasterPid(dataDir), 'SIGHUP') // reads it again
  for (const until = Date.now() + 10_000; Date.now() < until; ) {
    if (
      await query({ ...db, user: 'tollgate' }, 'select 1').then(
        () => true,
        () => false,
      )
    )
      return db
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error('the server did not read its doors again')
}

function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0])
}

/** Runs lines of a small script in a process of its own, with what this file tests imported. */
const runScript = (lines: string, stderr: 'inherit' | 'pipe' = 'inherit'): ChildProcess =>
  spawn(process.execPath, ['--input-type=module', '-e', scriptOf(lines)], { stdio: ['ignore', 'pipe', stderr] })

function scriptOf(lines: string): string {
  const imports = ['embedded', 'folder'].map(
    name => `await import('${new URL(`../src/platform/database/${name}.ts`, import.meta.url)}')`,
  )
  return `const { claimFolder, startEmbedded } = { ...${imports.join(', ...')} }\n${lines}`
}

/** Once it is true; what is not within half a minute never is. */
async function until(isTrue: () => boolean): Promise<void> {
  for (const end = Date.now() + 30_000; !isTrue(); await new Promise(resolve => setTimeout(resolve, 50)))
    assert.ok(Date.now() < end, 'it does not come')
}
const untilDead = (pids: readonly number[]) => until(() => pids.every(pid => processIdentity(pid) === undefined))

function descendantsOf(above: number): number[] {
  const children = readdirSync('/proc').filter(name => /^\d+$/.test(name) && parentOf(name) === above)
  return children.flatMap(name => [Number(name), ...descendantsOf(Number(name))])
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) unless(() => process.kill(pid, signal), false)
}

/** Claims the folder and holds it until killed, or says why not. */
function claimAndTell(dataDir: string): string {
  return `
    try {
      claimFolder(${JSON.stringify(dataDir)})
      console.log('mine')
      setInterval(() => {}, 1000)
    } catch (error) {
      console.log(error.message)
    }`
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [chunk] = await once(child.stdout!, 'data')
  return String(chunk).trim()
}

function hasMessage(...parts: string[]): (error: Error) => boolean {
  return error => error instanceof FolderError && parts.every(part => error.message.includes(part))
}

/** TCP ports on which a process and its children listen; on other systems than Linux nobody looks. */
function listeningPorts(pid: number): number[] {
  if (process.platform !== 'linux') return []
  const children = readdirSync('/proc').filter(name => /^\d+$/.test(name) && parentOf(name) === pid)
  const sockets = [String(pid), ...children].flatMap(one =>
    unless(() => readdirSync(`/proc/${one}/fd`), []).map(
      handle => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${one}/fd/${handle}`))?.[1],
    ),
  )
  return ['tcp', 'tcp6']
    .flatMap(name => readFileSync(`/proc/net/${name}`, 'utf8').trim().split('\n').slice(1))
    .map(line => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === '0A' && sockets.includes(inode))
    .map(([, local]) => Number.parseInt(local!.split(':')[1]!, 16))
}

const unless = <Value>(look: () => Value, gone: Value): Value => {
  try {
    return look()
  } catch {
    return gone
  }
}
const linkOf = (path: string) => unless(() => readlinkSync(path), '')
const parentOf = (pid: string) => unless(() => Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]), 0)

test('a package makes no link outside of itself', () => {
  const root = mkdtempSync(join(tmpdir(), 'tollgate-package-'))
  try {
    mkdirSync(join(root, 'package/native'), { recursive: true })
    writeFileSync(join(root, 'package/native/pg-symlinks.json'), JSON.stringify([{ source: 'native/a', target: '../outside' }]))
    assert.throws(() => binariesIn(join(root, 'package')), /names \.\.\/outside, which is outside of the package/)
    assert.equal(existsSync(join(root, 'outside')), false)
  } finally {
    rmSync(root, { recursive: true })
  }
})
