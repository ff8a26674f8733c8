// What a merchant who moves has together with others: tokens that each cell may have under another lookup key, and seeds that still name it where it was.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import { appliedText, applySeed, type Seed } from '../src/merchants/seed.ts'
import { readTokens, type TokenRow } from '../src/merchants/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { forgetMerchant } from '../src/start/moves/forget.ts'
import { type MoveStep, moveMerchant } from '../src/start/moves/move.ts'
import { eventually, testKeys } from './support/gateway.ts'
import {
  type CellMerchant,
  cellMerchant,
  cellMerchants,
  moveParts,
  payIn,
  seedOf,
  type TestCell,
  type TestCells,
  twoCells,
} from './support/movingCells.ts'

const { merchants, nextMerchant } = cellMerchants(26)
let cells: TestCells
before(async () => {
  cells = await twoCells(merchants)
})
after(() => cells.stop())

const seed = ({ side }: TestCell, given: Seed, elsewhere: ReadonlySet<string> = new Set()) =>
  applySeed(side.database.work, testKeys, systemClock, systemRandom, given, { by: side.by, elsewhere })
const known = { psp: seedOf([]).psp, divisions: [] }
const tokenFor = (name: string, ...of: readonly CellMerchant[]) => ({
  label: name,
  token: `token-of-several-merchants-${name}-Qz9KcXe2VbLy`,
  entities: of.map(({ id }) => id),
})
/** Tokens by their names, each for what it acts. */
const given = (...rows: readonly (readonly [string, readonly string[]])[]): Seed => ({
  ...known,
  tokens: rows.map(([name, entities]) => ({ ...tokenFor(name), entities: [...entities] })),
})
/** Of all merchants here, but where a test says otherwise. */
const division = '5a11d0000000000000000000000000d1'
const labelled = async ({ gateway }: TestCell, label: string): Promise<TokenRow[]> =>
  (await readTokens(gateway.pool)).filter(one => one.label === label)
const entitiesOf = (...of: readonly CellMerchant[]) => of.map(({ id }) => id).sort()
/** As a use after a change of the lookup key leaves it. */
const hashAnew = ({ gateway }: TestCell, label: string) =>
  gateway.pool.query(`update access_tokens set token_hash = sha256(token_hash), lookup_key = 'ffffffff' where label = $1`, [
    label,
  ])

test('a token that a move brought, and that was hashed anew in one cell since, is the same token', async () => {
  const { one, two } = cells
  const [first, second] = [nextMerchant(), nextMerchant()]
  const [userId, password] = ['5a11d0000000000000000000000000f8', 'Kx93-vbq7-Lm2p'] // what no proxy knows
  await seed(one, { ...known, tokens: [{ label: 'anew', userId, password, entities: [first.id, second.id] }] })
  await moveMerchant(moveParts(cells, first))
  await hashAnew(one, 'anew')
  await moveMerchant(moveParts(cells, second))
  const rows = await labelled(two, 'anew')
  assert.deepEqual(
    rows.map(({ lookupKey, entities }) => [lookupKey, [...entities].sort()]),
    [[testKeys.lookup[0]!.id, entitiesOf(first, second)]],
  )
  for (const who of [first, second])
    await eventually(
      async () => (await payIn(two, { ...who, token: legacyToken(userId!, password!) })).status === 200,
      'it acts for both there',
    )
})

test('two rows of a credential that are one in the other cell end it there when either was revoked, and act for all', async () => {
  const { one, two } = cells
  for (const revoked of [0, 1]) {
    const [first, second, third] = [nextMerchant(), nextMerchant(), nextMerchant()]
    const label = `two rows ${revoked}`
    const [userId, password] = [`5a11d00000000000000000000000070${revoked}`, 'Kx93-vbq7-Lm2p']
    await seed(one, { ...known, tokens: [{ label, userId, password, entities: [first.id, third.id] }] })
    await moveMerchant(moveParts(cells, first))
    // As a move from a third cell brings it that was hashed anew there, beside a seed of this one: by its hash one row is theirs, by its id the other.
    await one.gateway.pool.query(
      `with other as (insert into access_tokens (token_hash, lookup_key, id, label, entities, legacy, created_at)
         select sha256(token_hash), 'ffffffff', id, label, array[$2::uuid, $3::uuid], legacy, created_at from access_tokens where label = $1)
       update access_tokens set id = gen_random_uuid(), merchant_id = null where label = $1`,
      [label, second.id, third.id],
    )
    const theirs = await one.gateway.pool.query<{ id: string }>(
      `select id from access_tokens where label = $1 order by lookup_key = 'ffffffff'`,
      [label],
    )
    assert.equal(theirs.rowCount, 2)
    const which = theirs.rows[revoked]!.id
    await one.gateway.pool.query('update access_tokens set revoked_at = now() where id = $1', [which])
    await moveMerchant(moveParts(cells, third))
    const rows = await labelled(two, label)
    assert.deepEqual(
      rows.map(({ entities, revokedAt }) => [[...entities].sort(), revokedAt !== null]),
      [[entitiesOf(first, second, third), true]],
    )
  }
})

test('a token that a seed keeps from the merchant on its way does not act for it there, nor when it comes back', async () => {
  const { one, two } = cells
  const [first, second] = [nextMerchant(), nextMerchant()]
  const before = given(['whole', [first.id, second.id]], ['partly', [first.id, second.id]], ['above', [division]])
  const after = given(['whole', [second.id]], ['partly', [first.channelId, second.id]], ['above', [second.id]])
  const said = (cell: TestCell, who: CellMerchant, name: string) =>
    payIn(cell, { ...who, token: tokenFor(name).token }).then(({ status }) => status)
  const acts = async (cell: TestCell) =>
    Promise.all(['whole', 'partly', 'above'].map(async name => (await labelled(cell, name)).map(row => [...row.entities].sort())))
  const narrowed = [[[second.id]], [[first.channelId, second.id].sort()], [[second.id]]]
  await seed(one, before)
  await eventually(async () => (await said(one, first, 'whole')) === 200, 'it acts for both')
  const seeded: Promise<unknown>[] = []
  const tell = (step: MoveStep) => void (step === 'begun' && seeded.push(seed(one, after)))
  await moveMerchant(moveParts(cells, first, { tell }))
  await Promise.all(seeded)
  await eventually(async () => (await payIn(two, first)).status === 200, 'it is served there')
  assert.deepEqual([await said(two, first, 'whole'), await said(two, first, 'partly')], [403, 200])
  assert.deepEqual((await acts(two)).slice(1), [narrowed[1], []], 'what acts for nobody there has not come')
  // What stands there from before is what it is where the merchant comes from.
  await forgetMerchant(one.side, two.side, first.id)
  await one.gateway.pool.query(`update access_tokens set entities = $1 where label = any ('{whole,partly,above}')`, [
    [first.id, second.id],
  ])
  await moveMerchant(moveParts(cells, first, { source: two.side, target: one.side }))
  await eventually(async () => (await payIn(one, first)).status === 200, 'it is back')
  assert.deepEqual((await acts(one))[1], narrowed[1])
  assert.deepEqual(
    [await said(one, first, 'partly'), await said(one, second, 'whole'), await said(one, second, 'above')],
    [200, 200, 200],
  )
})

test('a token that is not known where the merchant comes from does not act for it where it stood once', async () => {
  const { one, two } = cells
  const [first, second] = [nextMerchant(), nextMerchant()]
  // As in a third cell, to which the merchant comes by way of another one.
  await two.gateway.pool.query(
    `insert into access_tokens select (jsonb_populate_record(t, jsonb_build_object('id', '${'c3'.repeat(16)}', 'token_hash', '\\x${'c3'.repeat(32)}', 'route_hash', null, 'merchant_id', null, 'label', 'of once', 'entities', $1::uuid[]))).*
       from access_tokens t limit 1`,
    [[first.id, first.channelId, second.id]],
  )
  await moveMerchant(moveParts(cells, first))
  assert.deepEqual(
    (await labelled(two, 'of once')).map(({ entities }) => entities),
    [[second.id]],
  )
  // One that acts for nobody any more is given what a seed says.
  await seed(two, { ...known, tokens: [tokenFor('of nobody', first)] })
  await two.gateway.pool.query(`update access_tokens set entities = '{}', merchant_id = null where label = 'of nobody'`)
  await seed(two, { ...known, tokens: [tokenFor('of nobody', first)] })
  assert.deepEqual(
    (await labelled(two, 'of nobody')).map(({ entities }) => entities),
    [[first.id]],
  )
  await eventually(async () => (await payIn(two, first)).status === 200, 'it is served there')
  assert.ok(one)
})

test('for what is above the merchant alone a token acts where it comes to as where it comes from', async () => {
  const { one, two } = cells
  const merchant = cellMerchant(905)
  const ofItsOwn = '5a11d0000000000000000000000000d2'
  const own = seedOf([merchant])
  const divisions = own.divisions!.map(one => ({ ...one, id: ofItsOwn }))
  await seed(one, { ...own, divisions })
  await seed(one, given(['of its division', [ofItsOwn]]))
  await moveMerchant(moveParts(cells, merchant))
  await forgetMerchant(one.side, two.side, merchant.id)
  await seed(two, given(['of its division', [merchant.channelId]]))
  await moveMerchant(moveParts(cells, merchant, { source: two.side, target: one.side }))
  const rows = await labelled(one, 'of its division')
  assert.deepEqual(
    rows.map(({ entities }) => entities),
    [[merchant.channelId]],
  )
})

test('a seed narrows and widens tokens of a merchant who has left, before and after it is forgotten, and keeps nobody from forgetting', async () => {
  const { one, two } = cells
  const [first, second] = [nextMerchant(), nextMerchant()]
  await seed(
    one,
    given(['to-left', [first.id, second.id]], ['from-above', [division]], ['wider', [first.id]], ['later', [division]]),
  )
  await moveMerchant(moveParts(cells, first))
  // In this cell nothing of the first ones acts any more; the last one is handed over, and stays as it was.
  const wanted = given(['to-left', [first.id]], ['from-above', [first.id]], ['wider', [first.id, second.id]])
  const acts = async () =>
    Promise.all(
      ['to-left', 'from-above', 'wider'].map(async name =>
        (await labelled(one, name)).map(row => [row.merchantId, ...row.entities]),
      ),
    )
  const { left } = await seed(one, wanted)
  assert.deepEqual(
    left.map(text => text.slice(0, 32)),
    [first.id],
  )
  assert.deepEqual(await acts(), [[[null, first.id]], [[null, first.id]], [[first.id, first.id]]])
  await forgetMerchant(one.side, two.side, first.id)
  assert.deepEqual((await seed(one, wanted)).left, [])
  assert.deepEqual((await acts())[2], [[null, second.id, first.id]])
  await seed(one, given(['later', [first.id]]))
  assert.deepEqual(
    (await labelled(one, 'later')).map(({ entities }) => entities),
    [[first.id]],
  )
  const { token } = tokenFor('wider')
  await eventually(async () => (await payIn(one, { ...second, token })).status === 200, 'it acts for the other one')
})

test('a seed over all cells takes from a token where it is known, also what it acts for nobody else there', async () => {
  const { one, two } = cells
  const [first, second] = [nextMerchant(), nextMerchant()]
  await seed(one, { ...known, tokens: [tokenFor('over-cells', first, second)] })
  await moveMerchant(moveParts(cells, first))
  const { token } = tokenFor('over-cells')
  const said = async (cell: TestCell, who: CellMerchant) => (await payIn(cell, { ...who, token })).status
  await eventually(async () => (await said(two, first)) === 200, 'it acts there')
  const narrow = { ...known, tokens: [tokenFor('over-cells', second), tokenFor('of nobody there', second)] }
  await seed(two, narrow, new Set([second.id]))
  await eventually(async () => (await said(two, first)) === 403, 'it does not any more')
  assert.deepEqual([(await labelled(two, 'of nobody there')).length, await said(one, second)], [0, 200])
})

test('so is one that a seed gave another id in each cell, as far as a proxy knows it; whether it acts for others already or not', async () => {
  const { one, two } = cells
  for (const isShared of [true, false]) {
    const [there, moving, stays] = [nextMerchant(), nextMerchant(), nextMerchant()]
    await moveMerchant(moveParts(cells, there))
    const label = `other id ${isShared}`
    const given = (...of: readonly CellMerchant[]) => ({
      ...tokenFor('x', ...of),
      label,
      token: `${label}-Qz9KcXe2VbLyRv4rTz9KcXe2VbLyQhNu8`,
    })
    await seed(two, { ...known, tokens: [given(there)] })
    await seed(one, { ...known, tokens: [isShared ? given(moving, stays) : given(moving)] })
    await hashAnew(one, label)
    const [before] = (await labelled(two, label)) as [TokenRow]
    await one.gateway.pool.query('update access_tokens set revoked_at = now() where label = $1 and not $2', [label, isShared])
    await moveMerchant(moveParts(cells, moving))
    const rows = await labelled(two, label)
    assert.deepEqual(
      rows.map(({ id, hash, entities, revokedAt }) => [id, hash, [...entities].sort(), revokedAt === null]),
      [[before.id, before.hash, entitiesOf(there, moving, ...(isShared ? [stays] : [])), isShared]],
    )
  }
})

test('a seed that still names it is taken, without it: at every start too, before and after it was forgotten', async () => {
  const { one, two } = cells
  const [merchant, other] = [nextMerchant(), nextMerchant()]
  await moveMerchant(moveParts(cells, merchant))
  const of = (name: string): Seed => {
    const { psp, divisions, tokens } = seedOf([merchant, other])
    const named = JSON.stringify(divisions).replaceAll('"Merchant ', `"${name} `)
    return { psp, divisions: JSON.parse(named), tokens: [...tokens!, tokenFor('both', merchant, other)] }
  }
  const names = async ({ gateway }: TestCell) =>
    (
      await gateway.pool.query<{ name: string }>('select name from entities where id = any ($1) order by id', [
        [merchant.id, other.id],
      ])
    ).rows.map(({ name }) => name.split(' ')[0])
  const left = (name: string) =>
    `4 entities and 2 tokens are in place.\nMerchants who are not served here were left out: ${merchant.id} (${name} ${merchant.id.slice(-4)}).`
  assert.equal(appliedText(await seed(one, of('Before'))), left('Before'))
  assert.deepEqual([await names(one), await names(two)], [['Merchant', 'Before'], ['Merchant']])
  await forgetMerchant(one.side, two.side, merchant.id)
  assert.equal(appliedText(await seed(one, of('After'))), left('After'))
  assert.deepEqual([await names(one), await names(two)], [['After'], ['Merchant']])
  assert.deepEqual(
    (await labelled(one, 'both')).map(({ entities, merchantId }) => [entities, merchantId]),
    [[[other.id, merchant.id], null]],
  )
})
