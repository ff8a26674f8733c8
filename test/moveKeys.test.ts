// The keys that a merchant's rows are written with, when it moves: the other cell proves them from then on, and nobody goes where a process runs that does not hold them.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { moveMerchant } from '../src/start/moves/move.ts'
import { readMove } from '../src/start/moves/store.ts'
import { bringProofs, keepKeys, makeKeys, namesLacking, tellKeys } from '../src/vault/keys.ts'
import { dropProof, lockKey, readProofs } from '../src/vault/store.ts'
import { databaseUrl, testPool } from './support/database.ts'
import { eventually, type testKeys } from './support/gateway.ts'
import { cellMerchants, moveParts, payIn, type TestCell, type TestCells, twoCells } from './support/movingCells.ts'
import { commandLine } from './support/process.ts'

const { merchants, nextMerchant } = cellMerchants(4)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-move-keys-'))
const place = (name: string) => join(folder, name)
const [oldSeal, oldLookup, newSeal, newLookup] = [1, 2, 3, 4].map(byte => Buffer.alloc(32, byte)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
]
/** What all hold before the new ones are written with, and from then on. */
const [holding, changed] = [
  makeKeys([oldSeal, newSeal], oldLookup, newLookup),
  makeKeys([newSeal, oldSeal], newLookup, oldLookup),
]
const namesOf = ({ lookup, seal }: typeof testKeys) => [`lookup ${lookup[0]!.id}`, `seal ${seal[0]!.id}`]
const [oldNames, newNames] = [namesOf(holding), namesOf(changed)]
const [, seal] = oldNames as [string, string]

let cells: TestCells
const parts = (merchant: Parameters<typeof moveParts>[1], more: Parameters<typeof moveParts>[2] = {}) =>
  moveParts(cells, merchant, {
    source: { ...cells.one.side, keys: changed },
    target: { ...cells.two.side, keys: changed },
    ...more,
  })
const provedIn = async ({ gateway }: TestCell): Promise<string[]> => (await readProofs(gateway.pool)).map(({ name }) => name)
const begin = ({ gateway }: TestCell) => inTransaction(gateway.pool, db => keepKeys(db, changed, Date.now()))

const lines = (name: string) => readFileSync(place(name), 'utf8').trim().split('\n').length
const files = { SEAL_KEY_FILE: place('seal'), LOOKUP_KEY_FILE: place('lookup') }
const inCell = (at: 0 | 1, ...words: string[]) => {
  const { connection } = [cells.one, cells.two][at]!.gateway
  return commandLine({ ...files, DATABASE_URL: databaseUrl(connection) }, 'keys', ...words)
}
type Listed = { readonly kind: string; readonly key: string; readonly given: string; readonly needs: readonly string[] }
const oldKeysIn = async (at: 0 | 1): Promise<Listed[]> => {
  const { stdout, stderr } = await inCell(at, 'list', '--json')
  assert.ok(stdout.startsWith('{'), stdout + stderr)
  return (JSON.parse(stdout) as { keys: Listed[] }).keys.filter(({ kind, key }) => oldNames.includes(`${kind} ${key}`))
}

before(async () => {
  cells = await twoCells(merchants)
  for (const [name, keys] of [
    ['seal', [newSeal, oldSeal]],
    ['lookup', [newLookup, oldLookup]],
  ] as const)
    writeFileSync(place(name), keys.map(key => `${key.toString('hex')}\n`).join(''), { mode: 0o600 })
  const given = [cells.one, cells.two].map(({ side: { name }, gateway: { connection, baseUrl } }) => ({
    name,
    environment: { DATABASE_URL: databaseUrl(connection) },
    gateways: [new URL(baseUrl).host],
  }))
  writeFileSync(place('cells.json'), JSON.stringify({ map: 'cells.map', cells: given }), { mode: 0o600 })
  for (const { gateway } of [cells.one, cells.two]) await keepMode(gateway.pool, 'sandbox', Date.now())
  for (const merchant of merchants) assert.equal((await payIn(cells.one, merchant)).status, 200)
  await cells.one.gateway.restart(holding)
})
after(async () => {
  await cells.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('a move to a cell where a process runs that does not hold the keys is refused by name, whatever the files hold by now', async () => {
  const { one, two } = cells
  const merchant = nextMerchant()
  const why = new RegExp(
    `A gateway or a command that runs in two does not hold the ${newNames.join(' and the ').replaceAll(/(lookup|seal) /g, '$1 key ')}: `,
  )

  // They are begun with while the merchant is on its way: behind the fence it is known.
  let begun: Promise<unknown> = Promise.resolve()
  const tell = (step: string) => {
    if (step === 'copied') begun = begin(one)
  }
  const clock = { ...systemClock, sleep: (ms: number) => begun.then(() => systemClock.sleep(ms)) }
  await assert.rejects(moveMerchant(parts(merchant, { source: { ...one.side, keys: changed, clock }, tell })), error => {
    assert.match(String(error), why)
    assert.match(String(error), /one serves the merchant as before/)
    return true
  })
  await eventually(async () => (await payIn(one, merchant)).status === 200, 'it is served again')
  assert.deepEqual(await provedIn(two), oldNames)

  const later = nextMerchant()
  await assert.rejects(moveMerchant(parts(later)), why)
  for (const { gateway } of [one, two]) assert.equal(await readMove(gateway.pool, later.id), undefined)

  await two.gateway.restart(holding)
  const writtenAt = Date.now() + 60_000 // after whatever the gateways themselves say
  await one.gateway.pool.query('update key_checks set written_at = $1', [new Date(writtenAt)])
  await moveMerchant(parts(merchant))
  for (const { written_at } of await readProofs(two.gateway.pool))
    assert.equal(written_at, writtenAt, 'what came was written then, whoever wrote here')
  await eventually(async () => (await payIn(two, merchant)).status === 200, 'it is served there')
  const since = async () =>
    (await readProofs(two.gateway.pool)).filter(({ name }) => newNames.includes(name)).map(({ made_at }) => made_at !== null)
  assert.deepEqual(await since(), [false, false], 'nobody writes with them there yet')
  const [lookup] = await oldKeysIn(1)
  assert.match(lookup!.needs.join(), /idempotency keys until/, 'for as long as they are kept, from when somebody does')
  await two.gateway.restart(changed)
  assert.deepEqual(await since(), [true, true])
})

test('a cell that never wrote with a key needs it from the moment on when rows come that did: it is no new one there, and stays in the files', async () => {
  const { one, two } = cells
  const merchant = nextMerchant()
  await one.gateway.restart(changed)
  for (const name of oldNames) await dropProof(two.gateway.pool, name) // as in a cell that was made after the change
  await moveMerchant(parts(merchant))
  await forgetMerchant(one.side, two.side, merchant.id)
  assert.deepEqual(await provedIn(two), await provedIn(one))

  assert.deepEqual(
    (await oldKeysIn(1)).map(one => one.given),
    ['older', 'older'],
  )
  const preferred = await commandLine(files, 'keys', 'prefer', 'seal', '--cells', place('cells.json'))
  assert.deepEqual([preferred.code, /^There is no new key in /.test(preferred.out)], [1, true], preferred.out)

  // What is left of it stands behind its fence.
  const first = await inCell(0, 'rewrap')
  assert.match(first.out, /^card numbers: \d+ are of merchants who are served elsewhere: they were left/m)
  assert.equal(first.code, 0, first.out)
  const revoking = await commandLine(files, 'keys', 'retire', '--revoke-tokens', '--cells', place('cells.json'))
  assert.match(revoking.out, /^one:[\s\S]*is of a merchant who is served elsewhere: it was left[\s\S]*^two:/m)
  assert.match(revoking.out, new RegExp(`^one:[\\s\\S]*${seal} is needed by \\d+ card numbers[\\s\\S]*^two:`, 'm'))
  await forgetMerchant(one.side, two.side, merchants[0]!.id)
  const rewrapped = await inCell(0, 'rewrap')
  assert.equal(rewrapped.code, 0, rewrapped.out)
  assert.doesNotMatch(rewrapped.out, /were left/)
  const retired = await commandLine(files, 'keys', 'retire', '--cells', place('cells.json'))
  assert.equal(retired.code, 1, retired.out)
  assert.match(
    retired.out,
    new RegExp(`one:[\\s\\S]*${seal} is retired[\\s\\S]*two:[\\s\\S]*${seal} is needed by \\d+ card numbers`),
  )
  assert.deepEqual([lines('seal'), lines('lookup')], [2, 2])
})

test('a key that somebody is at retiring is taken over when that has ended', async () => {
  const pool = testPool(cells.two.gateway.connection, 2)
  const proofs = (await readProofs(pool)).filter(({ name }) => name === seal)
  const taking = () => inTransaction(pool, db => bringProofs(db, proofs))
  await inTransaction(pool, async db => {
    await lockKey(db, seal)
    await assert.rejects(taking(), new RegExp(`Somebody is at retiring the key ${seal}`))
  })
  assert.deepEqual(await taking(), [])
  await pool.end()
})

test('of more than two seal keys a process tells the newest two: it may hold older ones, and no newer one', async () => {
  const known = { name: 'lookup 0', proof: Buffer.alloc(1) }
  const proof = (id: string, made_at: number) => ({ name: `seal ${id}`, proof: Buffer.alloc(1), made_at })
  const told = (...seals: string[]) => ({
    query: async (text: string) => ({
      rows: /to_regclass/.test(text)
        ? [{ there: true }]
        : /key_checks/.test(text)
          ? [known]
          : [{ told: `aa ${seals.join(',')}` }],
    }),
  })
  const lacking = async (seals: string[], ...proofs: ReturnType<typeof proof>[]) =>
    // biome-ignore lint/suspicious/noExplicitAny: three questions, and what is answered
    namesLacking(told(...seals) as any, proofs)
  const [first, second, third] = [proof('a1', 1), proof('b2', 2), proof('c3', 3)]
  assert.equal(
    tellKeys(makeKeys([newSeal, oldSeal, Buffer.alloc(32, 9)], oldLookup))
      .split(' ')[1]!
      .split(',').length,
    2,
  )
  assert.deepEqual(await lacking(['c3', 'b2'], first, second, third), [])
  assert.deepEqual(await lacking(['b2', 'a1'], first, second, third), ['seal c3'])
  assert.deepEqual(await lacking(['b2'], first, second), ['seal a1'])
})
