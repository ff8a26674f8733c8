// Seeds that name a merchant who is served by another cell, at a start and by hand.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { applySeed } from '../src/merchants/seed.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { moveMerchant } from '../src/start/moves/move.ts'
import { databaseUrl } from './support/database.ts'
import { testKeys } from './support/gateway.ts'
import { cellMerchant, cellMerchants, moveParts, payIn, seedOf, type TestCells, twoCells } from './support/movingCells.ts'
import { commandLine, startProcess } from './support/process.ts'

const { merchants, nextMerchant } = cellMerchants(4)

let cells: TestCells
before(async () => {
  cells = await twoCells(merchants)
})
after(() => cells.stop())

test('a seed leaves out who is served elsewhere, at a start too, and says so: all else of it is applied', async () => {
  const [merchant, stays, comes] = [nextMerchant(), nextMerchant(), cellMerchant(902)]
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-seed-'))
  const file = join(folder, 'seed.json')
  const given = seedOf([merchant, stays, comes])
  const both = 'token-of-who-left-and-who-stays-Qz9KcXe2VbLy'
  // The first has no label: those behind it are named by their place in the file, whoever is left out.
  const tokens = [...given.tokens!, { token: both, entities: [merchant.id, stays.id] }].map(({ token, entities }) => ({
    token,
    entities,
  }))
  writeFileSync(file, JSON.stringify({ ...given, tokens }), { mode: 0o600 })
  const environment = {
    DATABASE_URL: databaseUrl(cells.one.gateway.connection),
    DATA_DIR: join(folder, 'data'),
    SEAL_KEY: '01'.repeat(32),
    LOOKUP_KEY: '02'.repeat(32),
  }
  const rows = async (table: string) =>
    (await cells.one.gateway.pool.query(`select from ${table} where merchant_id = $1`, [merchant.id])).rowCount
  const startAndPay = async () => {
    const started = await startProcess({ ...environment, SEED_FILE: file })
    const { baseUrl } = started.sandbox
    const there = { ...cells.one, gateway: { ...cells.one.gateway, baseUrl } }
    const lines = started.printed().match(/.*not served here.*/g)
    const asked = [merchant, stays, comes, { ...stays, token: both }]
    const statuses = await Promise.all(asked.map(async one => (await payIn(there, one)).status))
    await started.stop()
    return { lines, statuses }
  }
  try {
    await moveMerchant(moveParts(cells, merchant))
    const named = `${merchant.id} (Merchant ${merchant.id.slice(-4)})`
    const served = {
      lines: [`Merchants of SEED_FILE who are not served here were left out: ${named}.`],
      statuses: [503, 200, 200, 200],
    }
    assert.deepEqual(await startAndPay(), served)
    const labels = async () =>
      (
        await cells.one.gateway.pool.query<{ label: string }>(
          `select label from access_tokens where label like 'token _' order by label`,
        )
      ).rows.map(({ label }) => label)
    assert.deepEqual(await labels(), ['token 2', 'token 3', 'token 4'])
    await forgetMerchant(cells.one.side, cells.two.side, merchant.id)
    assert.deepEqual(await startAndPay(), { ...served, statuses: [403, 200, 200, 200] })
    assert.deepEqual([await rows('entities'), await rows('access_tokens')], [0, 0], 'nothing of it is made anew')
    assert.deepEqual(await labels(), ['token 2', 'token 3', 'token 4'])
    const { code, out } = await commandLine(environment, 'seed', file)
    assert.match(out, new RegExp(`were left out: ${named.replace(/[()]/g, '.')}`))
    assert.equal(code, 1)
    assert.equal((await payIn(cells.two, merchant)).status, 200)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a seed that names a merchant who has left by a token alone is taken without it', async () => {
  const [merchant, stays] = [nextMerchant(), cellMerchant(904)]
  for (const { gateway } of [cells.one, cells.two]) await keepMode(gateway.pool, 'sandbox', Date.now())
  await moveMerchant(moveParts(cells, merchant))
  const seed = seedOf([stays])
  const tokens = [...seed.tokens!, ...seedOf([merchant]).tokens!]
  await applySeed(cells.one.gateway.pool, testKeys, systemClock, systemRandom, { ...seed, tokens })
  assert.equal((await cells.one.gateway.pool.query('select from entities where id = $1', [stays.id])).rowCount, 1)
})

test('a seed that meets a merchant in the moment of its move changes nothing, and says so', async () => {
  const [merchant, stays] = [nextMerchant(), cellMerchant(903)]
  const { pool } = cells.one.gateway
  // The fence, without the row that a seed reads before: as one that comes between.
  await pool.query(
    `create trigger elsewhere_${merchant.id} before insert or update on entities for each row when (new.merchant_id = '${merchant.id}')
       execute function refuse_elsewhere('${merchant.id}')`,
  )
  const seed = applySeed(pool, testKeys, systemClock, systemRandom, seedOf([stays, merchant]))
  await assert.rejects(seed, { message: 'A merchant of the seed moves at this moment: give it again. Nothing was changed.' })
  await pool.query(`drop trigger elsewhere_${merchant.id} on entities`)
  assert.equal((await pool.query('select from entities where id = $1', [stays.id])).rowCount, 0)
})
