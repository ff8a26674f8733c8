// Cells share their key files: a key that one of them has given up stays there as long as another needs it, or cannot be asked.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { bringProofs, type Keys, keepKeys, makeKeys } from '../src/vault/keys.ts'
import { dropProof, readProofs } from '../src/vault/store.ts'
import { databaseUrl } from './support/database.ts'
import { type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { commandLine } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-key-cells-'))
const [sealFile, lookupFile, file] = ['seal', 'lookup', 'cells.json'].map(name => join(folder, name)) as [string, string, string]
const [newest, old, lookup] = [3, 1, 2].map(byte => Buffer.alloc(32, byte))
const both = makeKeys([newest!, old!], lookup!)
const environment = { SEAL_KEY_FILE: sealFile, LOOKUP_KEY_FILE: lookupFile }
const lines = () => readFileSync(sealFile, 'utf8').trim().split('\n')
const hex = (key?: Buffer) => key!.toString('hex')
const oldName = `seal ${testKeys.seal[0]!.id}`
let cells: readonly TestGateway[] = []
const keys = (...words: string[]) => commandLine(environment, 'keys', ...words, '--cells', file)
const isProvedIn = async ({ pool }: TestGateway): Promise<boolean> =>
  (await pool.query('select from key_checks where name = $1', [oldName])).rowCount === 1

function writeCells(...more: readonly object[]): void {
  const given = cells.map(({ connection, baseUrl }, at) => ({
    name: at === 0 ? 'one' : 'two',
    environment: { DATABASE_URL: databaseUrl(connection) },
    gateways: [new URL(baseUrl).host],
  }))
  writeFileSync(file, JSON.stringify({ map: 'cells.map', cells: [...given, ...more] }), { mode: 0o600 })
}

before(async () => {
  writeFileSync(sealFile, `${hex(newest)}\n${hex(old)}\n`, { mode: 0o600 })
  writeFileSync(lookupFile, `${hex(lookup)}\n`, { mode: 0o600 })
  cells = await Promise.all([testGateway(), testGateway()])
  const keep = async (keys: Keys) => {
    for (const { pool } of cells) await inTransaction(pool, db => keepKeys(db, keys, Date.now()))
  }
  for (const { pool } of cells) await inTransaction(pool, db => keepMode(db, 'sandbox', Date.now()))
  await keep(testKeys)
  assert.equal((await cells[1]!.pay({ paymentType: 'PA' })).status, 200)
  for (const cell of cells) await cell.restart(both)
  await keep(both)
  writeCells()
})
after(async () => {
  await Promise.all(cells.map(cell => cell.stop()))
  rmSync(folder, { recursive: true, force: true })
})

test('a cell alone, once it knows that it is one, takes no key out of the files', async () => {
  assert.equal((await commandLine(environment, 'cells', 'map', '--cells', file)).code, 0)
  for (const words of [['retire'], ['add', 'seal'], ['prefer', 'seal']]) {
    const alone = await commandLine({ ...environment, DATABASE_URL: databaseUrl(cells[0]!.connection) }, 'keys', ...words)
    assert.equal(alone.code, 1)
    assert.match(alone.out, /one of several cells, .*--cells FILE. Nothing was changed/)
  }
  assert.deepEqual([lines(), await isProvedIn(cells[0]!)], [[hex(newest), hex(old)], true])
})

test('a new key is one with which no cell has written: an old one is none, though a cell was made since', async () => {
  const [{ pool }, { pool: other }] = cells as [TestGateway, TestGateway]
  await dropProof(pool, oldName)
  const none = await keys('prefer', 'seal')
  assert.deepEqual([none.code, /^There is no new key in /.test(none.out)], [1, true], none.out)
  writeCells({ name: 'gone', environment: { DATABASE_URL: 'postgres://127.0.0.1:9/none' }, gateways: ['127.0.0.1:9'] })
  const silent = await keys('add', 'seal')
  assert.equal(silent.code, 1)
  assert.match(silent.out, /The cell gone does not answer.*\nIt may have written with a key of the file\. Nothing was changed/)
  writeCells()
  assert.deepEqual(lines(), [hex(newest), hex(old)])

  const added = await keys('add', 'seal')
  assert.equal(added.code, 0, added.out)
  const [first, made, last] = lines()
  assert.deepEqual([first, last], [hex(newest), hex(old)])
  assert.equal((await keys('prefer', 'seal')).code, 0)
  assert.deepEqual(lines(), [made, hex(newest), hex(old)])

  writeFileSync(sealFile, `${hex(newest)}\n${hex(old)}\n`)
  const proofs = await readProofs(other)
  await inTransaction(pool, db => bringProofs(db, proofs))
})

test('a key stays in the file that cells share until none needs it and all were asked', async () => {
  const first = await keys('retire')
  assert.equal(first.code, 1, first.out)
  assert.match(first.out, new RegExp(`one:\\n${oldName} is retired[\\s\\S]*two:\\n${oldName} is needed by \\d+ `))
  assert.deepEqual(lines(), [hex(newest), hex(old)])
  assert.deepEqual(await Promise.all(cells.map(isProvedIn)), [false, true])
  const list = await commandLine({ ...environment, DATABASE_URL: databaseUrl(cells[1]!.connection) }, 'keys', 'list')
  assert.equal(list.code, 0, list.out) // as the next start of its gateway

  const sealed = await keys('rewrap')
  assert.equal(sealed.code, 0, sealed.out)
  assert.match(sealed.out, /two:\n[\s\S]*: [1-9]\d* sealed anew/)
  writeCells({ name: 'gone', environment: { DATABASE_URL: 'postgres://127.0.0.1:9/none' }, gateways: ['127.0.0.1:9'] })
  const without = await keys('retire')
  assert.equal(without.code, 1)
  assert.match(without.out, /The cell gone does not answer[\s\S]*Nothing is taken out of the key files/)
  assert.deepEqual(lines(), [hex(newest), hex(old)])

  writeCells()
  const last = await keys('retire')
  assert.equal(last.code, 0, last.out)
  assert.deepEqual(lines(), [hex(newest)])
  assert.equal(readFileSync(`${sealFile}.retired`, 'utf8').trim(), hex(old))
})
