// `tollgate upgrade-database`: the embedded database moves to the server of another major version, whole or not at all. The same server plays both
// here; `npm run upgrade-database` does it with one of an older major version.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { tellOfDatabase } from '../src/cli/open.ts'
import { findBinaries } from '../src/platform/database/embedded/binaries.ts'
import { startEmbedded } from '../src/platform/database/embedded.ts'
import { claimFolder } from '../src/platform/database/folder.ts'
import { upgradeCluster } from '../src/platform/database/upgrade/upgrade.ts'
import { readConfig } from '../src/start/config.ts'
import { withPool } from './support/database.ts'
import { payAt, readAt } from './support/payAt.ts'
import { commandLine, project, startProcess } from './support/process.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-upgrade-'))
const cluster = join(dataDir, 'postgres')
const from = findBinaries()
const to = { ...from, major: String(Number(from.major) + 1) }
const tell = async (pool: pg.Pool) =>
  void (await tellOfDatabase(pool, readConfig({ DATA_DIR: dataDir }, project).keys(), { action: 'databaseUpgraded' }))
const upgrade = () => upgradeCluster({ dataDir, from, to, user: undefined, strict: false, say() {}, tell })

/** Statements on the database while no gateway runs. */
async function withServer(...statements: string[]): Promise<Record<string, unknown>[]> {
  const claim = claimFolder(dataDir)
  const server = await startEmbedded({ dataDir, say() {}, fast: true })
  const { host, port, user, database } = server
  try {
    return await withPool({ host, port, user, database, ssl: false }, async pool => {
      let last: Record<string, unknown>[] = []
      for (const statement of statements) last = (await pool.query(statement)).rows
      return last
    })
  } finally {
    await server.stop()
    claim.release()
  }
}

const ids: string[] = []
before(async () => {
  const gateway = await startProcess({ DATA_DIR: dataDir })
  for (let count = 0; count < 5; count++) ids.push(await payAt(gateway))
  await assert.rejects(upgrade(), /is in use by another gateway/)
  await gateway.stop()
  await withServer(
    'create table wide (text text)',
    `insert into challenge_secrets (merchant_id, payment_id, sealed, erase_after) values (gen_random_uuid(), gen_random_uuid(), 'x', '2126-01-01')`,
  )
})
after(() => rmSync(dataDir, { recursive: true, force: true }))

it('is refused by name where there is nothing to move, and nothing is changed', async () => {
  const none = mkdtempSync(join(tmpdir(), 'tollgate-upgrade-none-'))
  const order = { dataDir, from, to, user: undefined, strict: false, say() {}, async tell() {} }
  const cases: [order: Partial<typeof order>, sentence: RegExp][] = [
    [{ dataDir: none }, /There is no database in/],
    [{ to: from }, /is of PostgreSQL 18 already/],
    [{ from: { ...from, major: '16' } }, /is of PostgreSQL 18, and the package given is 16/],
    [{ to: { ...from, major: '15' } }, /is of PostgreSQL 18, which is newer than ours, 15/],
  ]
  for (const [different, sentence] of cases) await assert.rejects(upgradeCluster({ ...order, ...different }), sentence)
  mkdirSync(`${cluster}-18`)
  await assert.rejects(upgrade(), /postgres-18 is there already/)
  rmSync(`${cluster}-18`, { recursive: true })
  const words = await commandLine({ DATA_DIR: dataDir }, 'upgrade-database', none)
  assert.deepEqual([words.code, /is no package of PostgreSQL: `npm install/.test(words.out)], [2, true])
  rmSync(none, { recursive: true })
})

it('a table that no migration made stands in the way, by name, and the folder is as it was', async () => {
  await assert.rejects(upgrade(), /The tables of the database are not those of its migrations/)
  assert.ok(existsSync(join(cluster, 'PG_VERSION')) && !existsSync(join(dataDir, 'postgres.upgrading')))
})

it('a gateway names the version that it cannot read, and does not start beside what was broken off', async () => {
  writeFileSync(join(cluster, 'PG_VERSION'), '17\n')
  await assert.rejects(
    startProcess({ DATA_DIR: dataDir }),
    /is of PostgreSQL 17, and this program brings 18: move it with `bin\/tollgate upgrade-database`/,
  )
  writeFileSync(join(cluster, 'PG_VERSION'), '18\n')
  mkdirSync(join(dataDir, 'postgres.upgrading'))
  await assert.rejects(startProcess({ DATA_DIR: dataDir }), /`bin\/tollgate upgrade-database` has not come to its end in/)
})

it('every row is moved and compared, from wherever an earlier run was broken off, and the old files are kept', async () => {
  await withServerUnfinished()
  renameSync(cluster, `${cluster}-18`) // between the two renames
  const { kept, tables, rows } = await upgrade()
  assert.equal(kept, `${cluster}-18`)
  assert.ok(tables > 40 && rows > 15, `${tables} ${rows}`)
  assert.ok(existsSync(join(kept, 'PG_VERSION')))
  assert.deepEqual(
    readdirSync(dataDir).filter(name => name.startsWith('postgres.')),
    ['postgres.log'],
  )
  assert.deepEqual(await withServer('select count(*) as rows from challenge_secrets'), [{ rows: 0 }])
  const unsampled = `select relpersistence as kind, reloptions[1] as option, (select sum(attstattarget) from pg_attribute where attrelid = c.oid and attnum > 0) as target
                       from pg_class c where relname = 'challenge_secrets'`
  assert.deepEqual(await withServer(unsampled), [{ kind: 'u', option: 'autovacuum_enabled=false', target: 0 }])
  await assert.rejects(withServer(writingOf(movedAway)), /the merchant 5a11d0+e9 is served elsewhere/)
  for (const merchantId of [returned, '5a11d0000000000000000000000000e3']) await withServer(writingOf(merchantId))
  const gateway = await startProcess({ DATA_DIR: dataDir })
  for (const id of [...ids, await payAt(gateway)]) assert.equal(await readAt(gateway, id), 200)
  for (const words of [['doctor'], ['audit', 'verify']]) {
    const { code, out } = await commandLine({ DATA_DIR: dataDir }, ...words)
    assert.equal(code, 0, out)
  }
  const told = await commandLine({ DATA_DIR: dataDir }, 'audit', '--action', 'databaseUpgraded')
  assert.match(told.out, /commandLine/)
  await gateway.stop()
})

it('a cell that was put back, and that no gateway has noticed, is put back behind the upgrade too', async () => {
  for (const [where, status] of [
    ['stands_on', 200],
    [`regexp_replace(stands_on, '\\S+$', '00000000')`, 503],
  ] as const) {
    rmSync(`${cluster}-18`, { recursive: true })
    await withServer(`update installation set in_cells = true, stands_on = ${where}`)
    await upgrade()
    const gateway = await startProcess({ DATA_DIR: dataDir })
    assert.equal(await readAt(gateway, ids[0]!), status)
    await gateway.stop()
  }
})

const [movedAway, returned] = ['5a11d0000000000000000000000000e9', '5a11d0000000000000000000000000e2'] as const
const writingOf = (merchantId: string): string =>
  `insert into challenge_secrets (merchant_id, payment_id, sealed, erase_after) values ('${merchantId}', gen_random_uuid(), 'x', '2126-01-01')`

/** The foreign table goes, and with it what the test before left. */
async function withServerUnfinished(): Promise<void> {
  rmSync(join(dataDir, 'postgres.upgrading'), { recursive: true })
  const fence = (merchantId: string) =>
    `create trigger elsewhere_${merchantId} before insert or update on challenge_secrets for each row when (new.merchant_id = '${merchantId}')
     execute function refuse_elsewhere('${merchantId}')`
  const off = `alter table challenge_secrets disable trigger elsewhere_${returned}`
  const left = `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ('${movedAway}', 'leaving', 'moved', false, 'two', 1, now())`
  await withServer('drop table wide', left, fence(movedAway), fence(returned), off)
  mkdirSync(join(dataDir, 'postgres.upgrading/postgres'), { recursive: true })
  writeFileSync(join(dataDir, 'postgres.upgrading/postgres/PG_VERSION'), readFileSync(join(cluster, 'PG_VERSION')))
}
