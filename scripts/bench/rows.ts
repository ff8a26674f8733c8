// Rows as long as those of payments, in tables with the columns and indexes of `payments`: what the limits write.

import type pg from 'pg'
import { systemRandom, timeOrderedId } from '../../src/platform/clock.ts'

const columns = {
  merchant_id: 'uuid',
  id: 'uuid',
  channel_id: 'uuid',
  payment_type: 'text',
  brand: 'text',
  amount: 'bigint',
  currency: 'text',
  mode: 'text',
  connector: 'text',
  merchant_transaction_id: 'text',
  received_at: 'timestamptz',
  recorded_at: 'timestamptz',
  record: 'text',
} as const

export const rowColumns = Object.keys(columns).join(', ')
export const rowTypes: readonly string[] = Object.values(columns)

const merchantId = '0'.repeat(32)

/** The values of a row, in the order of the columns. */
export function rowOf(merchantTransactionId: string, record: string): unknown[] {
  const now = Date.now()
  const at = new Date(now).toISOString()
  const id = timeOrderedId(now, systemRandom)
  return [merchantId, id, merchantId, 'DB', 'VISA', 9200, 'EUR', 'internal', 'simulator', merchantTransactionId, at, at, record]
}

/** Empty tables like those of the gateway, in a schema of their own. */
export async function makeTables(client: pg.Client, tables: Readonly<Record<string, 'payments' | 'events'>>): Promise<void> {
  await client.query('create schema if not exists bench')
  for (const [name, like] of Object.entries(tables)) await client.query(`create table bench.${name} (like ${like} including all)`)
}
