// Records of requests in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import type { MaskedRequest } from './record.ts'

/** Of requests of which nobody knows whose they are. */
export const unknownMerchant = '0'.repeat(32)
export const merchantOf = ({ caller }: Pick<MaskedRequest, 'caller'>): string => caller?.merchantId ?? unknownMerchant

export type RequestRow = {
  readonly merchantId: string
  readonly id: string
  readonly recordedAt: number
  readonly method: string
  readonly path: string
  readonly status: number
  readonly milliseconds: number
  readonly number: string
  readonly entityId: string | null
  readonly tokenId: string | null
  readonly paymentId: string | null
  readonly result: string | null
  /** JSON of a RequestContent. */
  readonly content: string
}

const columns = `merchant_id as "merchantId", id, recorded_at as "recordedAt", method, path, status, milliseconds, number, entity_id as "entityId",
  token_id as "tokenId", payment_id as "paymentId", result, content`

export async function insertRequests(db: Connection, rows: readonly (MaskedRequest & { readonly id: string })[]): Promise<void> {
  await db.query({
    name: 'insert requests',
    text: `insert into request_records (merchant_id, id, recorded_at, method, path, status, milliseconds, number, entity_id, token_id, payment_id, result, content)
           select given.* from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::smallint[], $7::integer[], $8::text[],
                                $9::uuid[], $10::uuid[], $11::uuid[], $12::text[], $13::text[]) as given (merchant_id)
            where ${servedHere('given.merchant_id')}`,
    values: [
      rows.map(merchantOf),
      rows.map(({ id }) => id),
      rows.map(({ at }) => timeParameter(at)),
      rows.map(({ method }) => method),
      rows.map(({ path }) => path),
      rows.map(({ status }) => status),
      rows.map(({ milliseconds }) => milliseconds),
      rows.map(({ number }) => number),
      rows.map(({ caller }) => caller?.entityId ?? null),
      rows.map(({ caller }) => caller?.tokenId ?? null),
      rows.map(({ paymentId }) => paymentId ?? null),
      rows.map(({ result }) => result ?? null),
      rows.map(({ content }) => JSON.stringify(content)),
    ],
  })
}

export type RequestFilter = {
  /** Absent: of all merchants, and of nobody. */
  readonly merchantIds?: readonly string[]
  readonly paymentId?: string
  readonly failed?: boolean
  /** Of a record: only what was written after it, or before it. */
  readonly after?: string
  readonly before?: string
}

/** The newest first. */
export async function findRequests(
  db: Connection,
  { merchantIds, paymentId, failed, after, before }: RequestFilter,
  limit: number,
): Promise<RequestRow[]> {
  const { rows } = await db.query<RequestRow>(
    `select ${columns} from request_records
      where ($1::uuid[] is null or merchant_id = any ($1)) and ($2::uuid is null or payment_id = $2) and (not $3 or status >= 400)
        and ($4::uuid is null or (recorded_at, id) > ($5::timestamptz, $4)) and ($6::uuid is null or (recorded_at, id) < ($7::timestamptz, $6))
      order by recorded_at desc, id desc limit $8`,
    [merchantIds ?? null, paymentId ?? null, failed === true, ...placeOf(after), ...placeOf(before), limit],
  )
  return rows
}

/** An id begins with the time of its record. */
const placeOf = (id: string | undefined): [string | null, string | null] =>
  id === undefined ? [null, null] : [id, timeParameter(Number.parseInt(id.slice(0, 12), 16))]

/** Leaves the newest of a merchant. */
export async function eraseBeyond(db: Connection, merchantId: string, most: number): Promise<void> {
  await db.query(
    `delete from request_records where merchant_id = $1 and ${servedHere()}
        and id < (select id from request_records where merchant_id = $1 order by id desc offset $2 limit 1)`,
    [merchantId, most - 1],
  )
}
