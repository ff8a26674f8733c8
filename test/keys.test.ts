// The keys of an installation: whoever comes with others, or with none, is refused and changes nothing.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { inTransaction } from '../src/platform/database/connect.ts'
import { keepKeys, makeKeys } from '../src/vault/keys.ts'
import { readProofs } from '../src/vault/store.ts'
import { databaseUrl, makeDatabase, type TestDatabase, withPool } from './support/database.ts'
import { commandLine, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-keys-'))
after(() => rmSync(folder, { recursive: true, force: true }))

describe('the database of a live gateway', () => {
  let database: TestDatabase
  let live: Record<string, string>
  const key = (name: string, digit: string) => {
    const path = join(folder, name)
    writeFileSync(path, hash('sha256', `a key for tests, ${digit}`), { mode: 0o600 })
    return path
  }
  before(async () => {
    database = await makeDatabase()
    live = {
      MODE: 'live',
      TRUSTED_PROXY: '127.0.0.1',
      PUBLIC_URL: 'https://pay.example',
      DATABASE_URL: databaseUrl(database.connection),
      DATA_DIR: join(folder, 'live'),
      SEAL_KEY_FILE: key('seal.key', 'a'),
      LOOKUP_KEY_FILE: key('lookup.key', 'b'),
    }
    await startAndStop()
  })
  after(() => database.drop())

  const startAndStop = async () => void (await (await startProcess(live)).stop())
  const contents = () =>
    withPool(database.connection, async pool => {
      const tables = ['key_checks', 'entities', 'access_tokens', 'migrations']
      const rows = []
      for (const table of tables) rows.push((await pool.query(`select * from ${table} order by 1`)).rows)
      return rows
    })

  const strangers: readonly (readonly [what: string, change: Record<string, string>])[] = [
    ['another lookup key', { LOOKUP_KEY_FILE: key('other-lookup.key', 'c') }],
    ['another seal key', { SEAL_KEY_FILE: key('other-seal.key', 'c') }],
    ['no keys, as a sandbox', { MODE: '', SEAL_KEY_FILE: '', LOOKUP_KEY_FILE: '', DATA_DIR: join(folder, 'sandbox') }],
  ]
  for (const [what, change] of strangers) {
    it(`is left as it is by a command with ${what}, which ends with a sentence`, async () => {
      const before = await contents()
      const { code, out } = await commandLine({ ...live, ...change }, 'list')
      assert.equal(code, 1)
      assert.match(out, /key|belongs to live mode/)
      assert.doesNotMatch(out, /\n\s+at /)
      assert.deepEqual(await contents(), before)
      await startAndStop()
    })

    it(`is left as it is by a gateway with ${what}`, async () => {
      const before = await contents()
      mkdirSync(join(folder, 'sandbox'), { recursive: true })
      await assert.rejects(
        startProcess({ ...live, ...change }),
        /it ended with 1:\nTollgate cannot start\.\n.*(key|belongs to live mode)/,
      )
      assert.deepEqual(await contents(), before)
      assert.ok(!existsSync(join(folder, 'sandbox', 'keys')), 'it made keys that belong to nothing')
      await startAndStop()
    })
  }

  it('is not made by a command: a database that no gateway has used is refused', async () => {
    const empty = await makeDatabase()
    const { code, out } = await commandLine({ ...live, DATABASE_URL: databaseUrl(empty.connection) }, 'list')
    assert.equal(code, 1)
    assert.match(out, /^No gateway has used this database yet/)
    assert.deepEqual(await withPool(empty.connection, readProofs), [])
    await empty.drop()
  })
})

it('of two gateways that begin at once with different keys one is refused, and the other starts again', async () => {
  const database = await makeDatabase()
  await withPool({ ...database.connection, max: 2 }, async pool => {
    const both = [makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 9)), makeKeys([Buffer.alloc(32, 2)], Buffer.alloc(32, 9))]
    const keep = (at: number) => inTransaction(pool, db => keepKeys(db, both[at]!, Date.now()))
    const began = await Promise.allSettled([keep(0), keep(1)])
    assert.deepEqual(began.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    await keep(began.findIndex(({ status }) => status === 'fulfilled'))
  })
  await database.drop()
})
