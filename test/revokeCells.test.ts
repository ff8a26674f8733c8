// A token that is revoked in all cells, some of which found it under another lookup key last: it ends in each, or what may be it is named.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { beginAudit } from '../src/audit/chain.ts'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { applySeed, type SeedToken } from '../src/merchants/seed.ts'
import { readTokens, type TokenRow } from '../src/merchants/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { type Keys, keepKeys, makeKeys } from '../src/vault/keys.ts'
import { databaseUrl, makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { manyCommands } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-revoke-cells-'))
const file = join(folder, 'cells.json')
const [seal, old, fresh] = [1, 2, 3].map(byte => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
const [before_, changed] = [makeKeys([seal], old), makeKeys([seal], fresh, old)]
const entities = ['5a11d0000000000000000000000000a0']
const password: SeedToken = { label: 'shops', userId: '5a11d0000000000000000000000000f7', password: 'Kx93-vbq7-Lm2p', entities }

const environment = (at: number) => ({
  DATABASE_URL: databaseUrl(databases[at]!.connection),
  SEAL_KEY: seal.toString('hex'),
  LOOKUP_KEY: [fresh, old].map(key => key.toString('hex')).join(','),
})

let databases: readonly TestDatabase[] = []
let pools: readonly pg.Pool[] = []
const commands = manyCommands()
const names = ['one', 'two']

before(async () => {
  databases = await Promise.all(names.map(() => makeDatabase()))
  pools = databases.map(({ connection }) => testPool(connection, 2))
  for (const pool of pools) {
    await inTransaction(pool, db => keepKeys(db, before_, Date.now()))
    await keepMode(pool, 'sandbox', Date.now())
    await beginAudit(pool, before_)
    await inTransaction(pool, db => keepKeys(db, changed, Date.now()))
  }
  const cells = names.map((name, at) => ({ name, environment: environment(at), gateways: [`127.0.0.1:${at + 1}`] }))
  writeFileSync(file, JSON.stringify({ map: 'cells.map', cells }), { mode: 0o600 })
})
after(async () => {
  await commands.stop()
  await Promise.all(pools.map(pool => pool.end()))
  await Promise.all(databases.map(database => database.drop()))
  rmSync(folder, { recursive: true, force: true })
})

/** In each cell with its own id, under the key of before until it was used there. */
async function seeded(token: SeedToken, ...keys: readonly Keys[]): Promise<TokenRow[]> {
  const psp = { id: entities[0]!, name: 'P' }
  for (const [at, own] of keys.entries()) await applySeed(pools[at]!, own, systemClock, systemRandom, { psp, tokens: [token] })
  const rows = await Promise.all(pools.map(pool => readTokens(pool)))
  return rows.map(tokens => tokens.find(({ label, revokedAt }) => label === token.label && revokedAt === null)!)
}
const revoke = ({ id }: TokenRow) => commands.run('revoke', id, '--cells', file)
const validIn = async (at: number, label: string): Promise<number> =>
  (await readTokens(pools[at]!)).filter(one => one.label === label && one.revokedAt === null).length

test('a user id with password of another lookup key in a cell is named there, and ends when that is said', async () => {
  for (const [first, second] of [
    [changed, before_],
    [before_, changed],
  ] as const) {
    const [one, two] = (await seeded(password, first, second)) as [TokenRow, TokenRow]
    const said = await revoke(one)
    assert.equal(said.code, 1, said.out)
    assert.equal(
      said.stdout,
      `one: Token ${one.id} is revoked.\ntwo: Token ${two.id} (shops) may be the same, under another lookup key: if it is, \`tollgate revoke ${two.id} --cells FILE\` revokes it.\n`,
    )
    assert.deepEqual([await validIn(0, 'shops'), await validIn(1, 'shops')], [0, 1])
    const again = await revoke(two)
    assert.deepEqual([again.code, again.stdout], [0, `two: Token ${two.id} is revoked.\n`], again.out)
    assert.deepEqual((await revoke(one)).code, 0)
    for (const pool of pools) await pool.query('delete from access_tokens')
  }
})

test('so is a second one of the same cell, as a move leaves it', async () => {
  const [one] = (await seeded(password, before_)) as [TokenRow]
  const [two] = (await Promise.all([seeded({ ...password, password: 'Kx93-vbq7-Lm2q' }, changed)]))[0]!
  assert.ok(one && two)
  const rows = (await readTokens(pools[0]!)).filter(({ label }) => label === 'shops')
  assert.equal(rows.length, 2)
  const said = await revoke(one)
  assert.equal(said.code, 1)
  assert.match(
    said.stdout,
    new RegExp(
      `one: Token ${one.id} is revoked\\.\none: Token ${rows.find(({ id }) => id !== one.id)!.id} \\(shops\\) may be the same`,
    ),
  )
  for (const pool of pools) await pool.query('delete from access_tokens')
})

/** One credential with a row under each key, as a move leaves it; what each acts for. */
async function twice(): Promise<{ old: TokenRow; fresh: TokenRow }> {
  const other = '5a11d0000000000000000000000000a1'
  const divisions = [{ id: other, name: 'D', merchants: [] }]
  const made = async (keys: Keys, acts: string[]): Promise<TokenRow> => {
    const seed = { psp: { id: entities[0]!, name: 'P' }, divisions, tokens: [{ ...password, entities: acts }] }
    await applySeed(pools[1]!, keys, systemClock, systemRandom, seed)
    return (await readTokens(pools[1]!)).find(({ lookupKey }) => lookupKey === keys.lookup[0]!.id)!
  }
  // With both keys a seed would find the first.
  return { old: await made(before_, [...entities, other]), fresh: await made(makeKeys([seal], fresh), entities) }
}
const sent = legacyToken('5a11d0000000000000000000000000f7', 'Kx93-vbq7-Lm2p')

const rowsOf = async (label: string): Promise<TokenRow[]> => (await readTokens(pools[1]!)).filter(one => one.label === label)

/** Asks as a gateway that begins does. */
async function asked<Value>(work: (directory: Directory) => Value): Promise<Value> {
  const database = connect(databases[1]!.connection, systemClock, () => {})
  const directory = await openDirectory(database, changed, systemClock, assert.fail)
  try {
    return work(directory)
  } finally {
    await eventually(async () => (await readTokens(pools[1]!)).length === 1, 'one row is left')
    await directory.close()
    await database.close()
  }
}

test('a credential with a row under each key acts for what both say, and is one row from its next use on', async () => {
  const { fresh: row, old } = await twice()
  assert.deepEqual(await asked(directory => directory.token(sent)?.entities.toSorted()), old.entities.toSorted())
  const [left] = await rowsOf('shops')
  assert.deepEqual(
    [left!.id, left!.lookupKey, left!.revokedAt, left!.entities.toSorted()],
    [row.id, changed.lookup[0]!.id, null, old.entities.toSorted()],
  )
  await pools[1]!.query('delete from access_tokens')
})

test('whichever of its rows is revoked ends it, and the older one is needed until it is one row', async () => {
  for (const ended of ['old', 'fresh'] as const) {
    const rows = await twice()
    const other = rows[ended === 'old' ? 'fresh' : 'old']
    const said = await commands.runIn(environment(1), 'revoke', rows[ended].id)
    const named = `Token ${other.id} (shops) may be the same, under another lookup key: if it is, \`tollgate revoke ${other.id}\` revokes it.`
    assert.deepEqual([said.code, said.stdout.split('\n')[1]], [1, named])
    const retired = await commands.runIn(environment(1), 'keys', 'retire', '--revoke-tokens')
    if (ended === 'old')
      assert.match(retired.out, new RegExp(`is needed by what was revoked under it and token ${other.id} \\(shops\\) may be`))
    assert.deepEqual(await asked(directory => [directory.token(sent), directory.revokedToken(sent)]), [undefined, rows.fresh.id])
    assert.notEqual((await rowsOf('shops'))[0]!.revokedAt, null)
    await pools[1]!.query('delete from access_tokens')
  }
})

test('one that may have been used under the newest key is not revoked as unused', async () => {
  const { old: row } = await twice()
  const retired = await commands.runIn(environment(1), 'keys', 'retire', '--revoke-tokens')
  assert.match(retired.out, new RegExp(`Token ${row.id} \\(shops\\) may be one that was used`))
  assert.equal(await validIn(1, 'shops'), 2)
  await pools[1]!.query('delete from access_tokens')
})

test('a seed makes one row of it, and says for what it acts', async () => {
  await twice()
  const tokens = [{ ...password, label: 'renamed', entities }]
  await applySeed(pools[1]!, changed, systemClock, systemRandom, { psp: { id: entities[0]!, name: 'P' }, tokens })
  const rows = await readTokens(pools[1]!)
  assert.deepEqual(
    rows.map(row => [row.label, row.entities]),
    [['renamed', entities]],
  )
  await pools[1]!.query('delete from access_tokens')
})

test('what can be told from it is not named: by a hash under the same key, by that of a proxy, by its label, by whom it acts for', async () => {
  const token = { label: 'shops', token: 'Rv4rTz9KcXe2VbLyQhNu8GpJs6DfAo3Zk', entities }
  const [one, two] = (await seeded(token, changed, before_)) as [TokenRow, TokenRow]
  assert.notEqual(one.lookupKey, two.lookupKey)
  const others: SeedToken[] = [
    { ...token, token: 'Qw4rTz9KcXe2VbLyQhNu8GpJs6DfAo3Zk' },
    { ...password, label: 'another' },
    { ...password, password: 'Kx93-vbq7-Lm2r' },
  ]
  const psp = { id: entities[0]!, name: 'P' }
  for (const pool of pools) await applySeed(pool, changed, systemClock, systemRandom, { psp, tokens: others })
  const said = await revoke(one)
  assert.deepEqual(
    [said.code, said.stdout],
    [0, `one: Token ${one.id} is revoked.\ntwo: Token ${two.id} is revoked.\n`],
    said.out,
  )
  assert.deepEqual([await validIn(0, 'shops'), await validIn(1, 'shops'), await validIn(1, 'another')], [2, 2, 1])

  // Two that only a proxy's hash tells apart.
  for (const pool of pools) await pool.query('delete from access_tokens')
  const [alone] = (await seeded(token, changed)) as [TokenRow]
  await applySeed(pools[1]!, before_, systemClock, systemRandom, { psp, tokens: [others[0]!] })
  const told = await revoke(alone)
  assert.deepEqual([told.code, told.stdout], [0, `one: Token ${alone.id} is revoked.\n`], told.out)
})
