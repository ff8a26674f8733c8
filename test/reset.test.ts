// `tollgate reset`: what a sandbox begins anew with, and what it never takes away.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { startEmbedded } from '../src/platform/database/embedded.ts'
import { claimFolder } from '../src/platform/database/folder.ts'
import { withPool } from './support/database.ts'
import { payAt, readAt } from './support/payAt.ts'
import { commandLine, project, startProcess } from './support/process.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-reset-'))
const reset = (more: Record<string, string>, ...words: string[]) => commandLine({ DATA_DIR: dataDir, ...more }, 'reset', ...words)
const cluster = join(dataDir, 'postgres')
const sealKey = () => readFileSync(join(dataDir, 'keys/seal.key'), 'utf8')

/** The mode is changed in a database that no gateway runs on, as if it had been made for live mode, or before modes were written. */
async function withMode(statement: string): Promise<void> {
  const claim = claimFolder(dataDir)
  const embedded = await startEmbedded({ dataDir, say: () => {} })
  const { host, port, user, database } = embedded
  await withPool({ host, port, user, database, ssl: false }, pool => pool.query(statement))
  await embedded.stop()
  claim.release()
}

let first: string
before(async () => {
  const gateway = await startProcess({ DATA_DIR: dataDir })
  first = await payAt(gateway)
  const running = await reset({}, '--yes')
  assert.equal(running.code, 1)
  assert.match(running.out, new RegExp(`is in use by another gateway \\(pid ${gateway.child.pid}\\)\\. Stop that one first`))
  assert.equal(await readAt(gateway, first), 200)
  await gateway.stop()
})
after(() => rmSync(dataDir, { recursive: true, force: true }))

it('is refused by name, and nothing is changed then', async () => {
  const key = sealKey()
  const cases: [environment: Record<string, string>, words: string[], code: number, sentence: RegExp][] = [
    [{}, [], 2, /^reset asks on a terminal; elsewhere it needs --yes\. Nothing was changed\.\n$/],
    [
      { DATABASE_URL: 'postgres://127.0.0.1:9/none' },
      ['--yes'],
      1,
      /^DATABASE_URL names a database; only an embedded one is removed/,
    ],
    [{ MODE: 'live' }, ['--yes'], 1, /^MODE=live/],
  ]
  for (const [environment, words, code, sentence] of cases) {
    const told = await reset(environment, ...words)
    assert.equal(told.code, code, told.out)
    assert.match(told.out, sentence)
  }
  assert.ok(existsSync(join(cluster, 'PG_VERSION')) && sealKey() === key)
})

it('a live database is refused whatever the environment says, and one that does not say', async () => {
  await withMode(`update installation set mode = 'live'`)
  const live = await reset({}, '--yes', '--keys')
  assert.deepEqual([live.code, live.out], [1, `The database in ${cluster} belongs to live mode. Nothing was changed.\n`])
  await withMode('delete from installation')
  const silent = await reset({}, '--yes')
  assert.equal(silent.code, 1)
  assert.match(silent.out, /does not say whether it is a sandbox's/)
  const gateway = await startProcess({ DATA_DIR: dataDir }) // which writes it
  assert.equal(await readAt(gateway, first), 200)
  await gateway.stop()
})

it('a database that no gateway has made is refused', async () => {
  const doors = join(cluster, 'pg_hba.conf')
  const ofGateway = readFileSync(doors, 'utf8')
  writeFileSync(doors, 'local all all trust\n')
  rmSync(join(cluster, 'postmaster.opts'))
  const { code, out } = await reset({}, '--yes', '--keys')
  assert.equal(code, 1)
  assert.match(out, /was made by no gateway: it is left as it is.*\n.*Nothing was changed\.\n$/)
  assert.equal(readFileSync(doors, 'utf8'), 'local all all trust\n')
  writeFileSync(doors, ofGateway)
})

it('asks on a terminal', { skip: process.platform !== 'linux' && 'script(1) takes other words elsewhere' }, () => {
  const asked = spawnSync('script', ['-qec', `${join(project, 'bin/tollgate')} reset`, '/dev/null'], {
    env: { PATH: process.env.PATH, DATA_DIR: dataDir },
    input: 'no\n',
    encoding: 'utf8',
  })
  assert.equal(asked.status, 1)
  assert.match(asked.stdout, /Remove .*\/postgres, with all payments in it\? \(yes\/no\)[\s\S]*Nothing was changed\./)
  assert.ok(existsSync(join(cluster, 'PG_VERSION')))
})

it('the next start begins anew, with the keys of before', async () => {
  const key = sealKey()
  writeFileSync(join(dataDir, 'mine.txt'), 'ours')
  mkdirSync(join(dataDir, 'postgres.new-0'), { recursive: true }) // as a run that was killed leaves it
  const { code, out } = await reset({}, '--yes')
  assert.deepEqual([code, out], [0, `The database in ${dataDir} is removed: the next start begins anew.\n`])
  assert.deepEqual(
    readdirSync(dataDir).filter(name => !['postgres.new-0', 'socket'].includes(name)),
    ['keys', 'mine.txt'],
  )
  const gateway = await startProcess({ DATA_DIR: dataDir })
  assert.match(gateway.printed(), /new database/)
  assert.equal(await readAt(gateway, first), 404)
  assert.equal(await readAt(gateway, await payAt(gateway)), 200)
  await gateway.stop()
  assert.equal(sealKey(), key)
  assert.ok(!existsSync(join(dataDir, 'postgres.new-0')))
})

it('--keys takes the keys too, and no others that stand beside them; and there is nothing more to take', async () => {
  const keys = join(dataDir, 'keys')
  for (const name of ['seal.key.new', 'lookup.key.retired', 'live-seal.key', 'seal.key.old'])
    writeFileSync(join(keys, name), 'ours')
  assert.equal((await reset({}, '--yes', '--keys')).code, 0)
  assert.deepEqual(readdirSync(keys).sort(), ['live-seal.key', 'seal.key.old'])
  const gateway = await startProcess({ DATA_DIR: dataDir })
  await gateway.stop()
  for (const name of ['live-seal.key', 'seal.key.old']) rmSync(join(keys, name))
  assert.equal((await reset({}, '--yes', '--keys')).code, 0)
  assert.ok(!existsSync(keys))
  const { code, out } = await reset({}, '--yes')
  assert.deepEqual([code, out], [0, `There is no database in ${dataDir}: the next start makes one.\n`])
})
