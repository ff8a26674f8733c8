// Commands work on the database that is meant: not on the one that a copied folder came from, and not on one that another program has made otherwise.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Pool } from 'pg'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { withPool } from './support/database.ts'
import { manyCommands, project, type Started, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-meant-'))
const [dataDir, copy] = [join(folder, 'data'), join(folder, 'copy')]
let gateway: Started
before(async () => {
  gateway = await startProcess({ DATA_DIR: dataDir })
})
const commands = manyCommands({ DATA_DIR: dataDir })
const { run, runIn } = commands
after(async () => {
  commands.stop()
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})
const inDatabase = <Value>(work: (pool: Pool) => Promise<Value>) => withPool(runningEmbedded(dataDir)!, work)
const validTokens = () =>
  inDatabase(async pool => (await pool.query('select id from access_tokens where revoked_at is null order by id')).rows)
const audited = () => inDatabase(async pool => Number((await pool.query('select count(*) from audit')).rows[0].count))

it('a copy of the folder of a running gateway is no way into the original', async () => {
  cpSync(dataDir, copy, { recursive: true, filter: path => !/\.s\.PGSQL|\.alive$/.test(path) }) // neither sockets nor pipes
  const [before_, rows] = [await validTokens(), await audited()]
  assert.ok(before_.length > 0)
  for (const words of [['revoke', before_[0].id], ['list'], ['backup', join(folder, 'backup')]]) {
    const { code, out } = await runIn({ DATA_DIR: copy }, ...words)
    assert.equal(code, 1)
    assert.match(out, new RegExp(`^No gateway is running on ${copy}: start it`))
  }
  assert.deepEqual([await validTokens(), await audited()], [before_, rows])
  // Whoever comes by a link means the folder itself.
  assert.equal((await runIn({ DATA_DIR: join(folder, '..', folder.split('/').at(-1)!, 'data') }, 'list')).code, 0)
})

it('a server that has taken the place of another is not taken for it', async () => {
  const control = join(copy, 'postgres/global/pg_control')
  const bytes = readFileSync(control)
  bytes.writeBigUInt64LE(bytes.readBigUInt64LE() + 1n)
  writeFileSync(control, bytes)
  const file = join(copy, 'postgres/postmaster.pid')
  writeFileSync(file, readFileSync(file, 'utf8').replace(join(dataDir, 'postgres'), join(copy, 'postgres')))
  const { code, out } = await runIn({ DATA_DIR: copy }, 'list')
  assert.deepEqual([code, out], [1, `No gateway is running on ${copy}: start it, or name its database in DATABASE_URL.\n`])
})

it('a table that somebody else holds is told of in a sentence', async () => {
  await inDatabase(async pool => {
    const holder = await pool.connect()
    await holder.query('begin; lock table entities')
    const { code, out } = await run('list')
    await holder.query('rollback')
    holder.release()
    assert.equal(code, 1)
    assert.match(
      out,
      /^The database was kept waiting for too long: canceling statement due to lock timeout\. [^\n]*: try again when it has ended\.\n$/,
    )
  })
})

it('a pipe is not waited for where a file is read', async () => {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const { code, out } = await run('chargebacks', 'import', pipe)
  assert.deepEqual([code, out], [1, `${pipe} cannot be read: ${pipe} is no file\n`])
})

it('a backup goes into a folder, and not to the keys', async () => {
  const keys = join(dataDir, 'keys')
  const standing = readdirSync(keys)
  const link = join(folder, 'link')
  symlinkSync(keys, link)
  for (const [place, wanted, sentence] of [
    ['', 2, /^Name a folder for the backup/],
    [join(keys, 'seal.key'), 1, /^\S+ is no folder\.\n$/],
    [keys, 1, /^\S+ is where the keys are: /],
    [join(keys, 'made'), 1, /^\S+ is where the keys are: /],
    [link, 1, /^\S+ is where the keys are: /],
    [join(link, 'not', 'yet'), 1, /^\S+ is where the keys are: /],
  ] as const) {
    const { code, out } = await run('backup', place)
    assert.deepEqual([code, sentence.test(out)], [wanted, true], out)
  }
  assert.deepEqual(readdirSync(keys), standing)
})

describe('on a database that another build has made', () => {
  const seed = join(project, 'seeds/sandbox.json')
  const writing = [
    ['seed', seed],
    ['retention', '--run'],
    ['revoke', '0'.repeat(32)],
    ['keys', 'rewrap'],
    ['returns', 'import', seed, '--account', 'itau-demo'],
    ['chargebacks', 'import', seed],
    ['archive', 'cancel'],
    ['staff', 'remove', 'somebody@example.com'],
  ]
  const reading = [['list'], ['retention'], ['doctor'], ['archive', 'list'], ['merchants', 'moves'], ['cases', 'list']]

  const refusesWriting = async (sentence: RegExp) => {
    const rows = await audited()
    for (const words of writing) {
      const { code, out } = await run(...words)
      assert.deepEqual([code, sentence.test(out)], [1, true], `${words.join(' ')}: ${out}`)
    }
    assert.equal(await audited(), rows)
  }

  it('that is newer, nothing is written, and what is read is said to be of another', async () => {
    await inDatabase(pool => pool.query(`insert into migrations values ('0099_future.sql', 'x', '2026-01-01')`))
    const sentence = /^The database is newer than this program: it knows 0099_future\.sql\. Use the commands/
    await refusesWriting(sentence)
    for (const words of reading) {
      const { code, stderr } = await run(...words)
      assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
      assert.match(stderr, sentence)
    }
    // It is what one goes back to.
    assert.equal((await run('backup', join(folder, 'before'))).code, 0)
    await inDatabase(pool => pool.query(`delete from migrations where name = '0099_future.sql'`))
    assert.equal((await run('list')).stderr, '')
  })

  it('that is older, the same, and what is not there is told in a sentence', async () => {
    const { rows } = await inDatabase(pool => pool.query(`delete from migrations where name > '0042' returning *`))
    await inDatabase(pool => pool.query('alter table merchant_moves rename column move_id to later'))
    const sentence =
      /^The database is older than this program: it lacks 0042_\w+\.sql, .*Start a gateway of this build on it first/
    await refusesWriting(sentence)
    const { code, out } = await run('merchants', 'moves')
    assert.equal(code, 1)
    assert.match(
      out,
      /^The database is older .*\nWhat the command needs is not in this database: column "move_id" does not exist\.\n$/,
    )
    assert.match((await run('cases', 'list')).stderr, sentence)
    const cells = join(folder, 'cells.json')
    const cell = { environment: { DATA_DIR: dataDir }, gateways: ['127.0.0.1:1'] }
    writeFileSync(cells, JSON.stringify({ map: join(folder, 'cells.map'), cells: [{ name: 'one', ...cell }] }), { mode: 0o600 })
    const over = await run('merchants', 'moves', '--cells', cells)
    assert.match(over.out, /^one:\nThe cell one does not answer: The database is older than this program: it lacks 0042_/)
    await inDatabase(pool => pool.query('alter table merchant_moves rename column later to move_id'))
    for (const row of rows)
      await inDatabase(pool =>
        pool.query('insert into migrations values ($1, $2, $3)', [row.name, row.checksum, new Date(row.applied_at)]),
      )
    assert.equal((await run('merchants', 'moves')).code, 0)
  })
})
