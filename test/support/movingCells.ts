// Two cells: gateways on databases of their own with the same keys, and merchants who can go from one to the other.

import type pg from 'pg'
import type { Seed } from '../../src/merchants/seed.ts'
import { announceChange } from '../../src/merchants/store.ts'
import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import { connect } from '../../src/platform/database/connect.ts'
import type { MoveParts, MoveSide } from '../../src/start/moves/move.ts'
import { releaseMerchants } from '../../src/start/moves/putBack.ts'
import { type Body, type Fields, sandbox, type TestGateway, type TestOptions, testGateway, testKeys, visa } from './gateway.ts'

/** A merchant with one channel and a token of its own. */
export type CellMerchant = { readonly id: string; readonly channelId: string; readonly token: string }

export const cellMerchant = (number: number): CellMerchant => ({
  id: `5a11d000000000000000000000e1${String(number).padStart(4, '0')}`,
  channelId: `5a11d000000000000000000000c1${String(number).padStart(4, '0')}`,
  token: `token-of-the-merchant-number-${String(number).padStart(4, '0')}`,
})

/** So many merchants, and the next of them that no test has had yet. */
export function cellMerchants(count: number): { readonly merchants: readonly CellMerchant[]; nextMerchant(): CellMerchant } {
  const merchants = Array.from({ length: count }, (_, at) => cellMerchant(at + 1))
  let free = 0
  return { merchants, nextMerchant: () => merchants[free++]! }
}

export const seedOf = (merchants: readonly CellMerchant[]): Seed => ({
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: '5a11d0000000000000000000000000d1',
      name: 'Sandbox division',
      merchants: merchants.map(({ id, channelId }) => ({
        id,
        name: `Merchant ${id.slice(-4)}`,
        channels: [{ id: channelId, name: 'Shop', settings: { statusReadsWithoutCredentials: true } }],
      })),
    },
  ],
  tokens: merchants.map(({ id, token }) => ({ label: `of ${id.slice(-4)}`, token, entities: [id] })),
})

export function sideOf(name: string, connection: pg.PoolConfig): MoveSide & { close(): Promise<void> } {
  const database = connect(connection, systemClock, () => {})
  const by = { kind: 'commandLine', id: 'tester', address: 'here' } as const
  return {
    name,
    database,
    keys: testKeys,
    clock: systemClock,
    random: systemRandom,
    by,
    channelRefusal: () => undefined,
    close: () => database.close(),
  }
}

export type TestCell = { readonly gateway: TestGateway; readonly side: MoveSide }
export type TestCells = { readonly one: TestCell; readonly two: TestCell; stop(): Promise<void> }

/** The first of the two has all merchants. */
export async function twoCells(
  merchants: readonly CellMerchant[],
  environment: readonly [TestOptions['environment'], TestOptions['environment']] = [{}, {}],
): Promise<TestCells> {
  const [one, two] = await Promise.all([
    testGateway({ seed: seedOf(merchants), ...(environment[0] && { environment: environment[0] }) }),
    testGateway(environment[1] && { environment: environment[1] }),
  ])
  const sides = [sideOf('one', one.connection), sideOf('two', two.connection)] as const
  return {
    one: { gateway: one, side: sides[0] },
    two: { gateway: two, side: sides[1] },
    async stop() {
      await Promise.all(sides.map(side => side.close()))
      await Promise.all([one.stop(), two.stop()])
    },
  }
}

export const moveParts = (cells: TestCells, { id }: CellMerchant, more: Partial<MoveParts> = {}): MoveParts => ({
  source: cells.one.side,
  target: cells.two.side,
  merchantId: id,
  patienceSeconds: 10,
  refusalSeconds: 60,
  tell: () => {},
  ...more,
})

/** The sandbox's merchant is held from the commit on that writes a row which is so. Returns what serves it again. */
export async function holdWhen(pool: pg.Pool, table: string, condition: string): Promise<() => Promise<void>> {
  await pool.query(`create function hold() returns trigger language plpgsql as $$ begin
    insert into merchant_moves (merchant_id, direction, state, here, other, run, put_back_at, changed_at)
    values ('${sandbox.merchantId}', 'leaving', 'stayed', false, '', 0, now(), now()) on conflict do nothing;
    return new; end $$`)
  await pool.query(`create trigger hold after insert on ${table} for each row when (${condition}) execute function hold()`)
  return async () => {
    await pool.query('drop function hold cascade')
    await releaseMerchants(pool, [sandbox.merchantId])
    await announceChange(pool)
  }
}

export type Answer = { readonly status: number; readonly body: Body; readonly retryAfter: string | null }

/** A request of the merchant at a cell. */
export async function ask(
  { gateway }: TestCell,
  { token }: CellMerchant,
  path: string,
  fields?: Fields,
  key?: string,
): Promise<Answer> {
  const response = await fetch(gateway.baseUrl + path, {
    ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
    headers: { Authorization: `Bearer ${token}`, ...(key !== undefined && { 'Idempotency-Key': key }) },
  })
  return { status: response.status, body: await response.json(), retryAfter: response.headers.get('retry-after') }
}

export const payIn = (cell: TestCell, merchant: CellMerchant, fields: Fields = {}, key?: string): Promise<Answer> =>
  ask(
    cell,
    merchant,
    '/v1/payments',
    { entityId: merchant.channelId, paymentType: 'DB', amount: '1.00', currency: 'EUR', ...visa, ...fields },
    key,
  )

export const readIn = (cell: TestCell, merchant: CellMerchant, id: string): Promise<Answer> =>
  ask(cell, merchant, `/v1/payments/${id}?entityId=${merchant.channelId}`)
