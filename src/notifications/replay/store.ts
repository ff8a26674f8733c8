// What a replay sends again: read in steps, of bounded cost each, without a lock.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'

export type ReplayFilter = {
  readonly notificationId?: string
  readonly paymentId?: string
  readonly from?: number
  readonly to?: number
  /** Business time of the event: since inclusive, until exclusive. */
  readonly since?: number
  readonly until?: number
  readonly state?: 'scheduled' | 'acknowledged' | 'given up'
}

export type ReplayTarget = {
  readonly paymentId: string
  readonly eventSequence: number
  readonly rootId: string
  readonly url: string | null
  /** Absent when the endpoint was never told. */
  readonly sequence: number | null
}

/** What one step of a replay found, the oldest first, and where it came to: absent when there is nothing behind it. */
export type ReplayStep<Place> = { readonly found: readonly ReplayTarget[]; readonly cameTo: Place | undefined }

/** An event, in the order of their key. */
export type ReplayPlace = { readonly paymentId: string; readonly sequence: number }

type Replayed = Pick<Endpoint, 'merchantId' | 'id' | 'channelId' | 'types' | 'kind'>

// The first delivery of an event, by the indexes that name it: a replay, when the first one was erased or there was none. With limits, so that it is looked up for
// each row, and never joined with all there are.
const firstTold = (merchant: string, payment: string, sequence: string): string => `
  select * from (
    (select * from deliveries one where one.merchant_id = ${merchant} and one.endpoint_id = $2 and one.payment_id = ${payment}
        and one.event_sequence = ${sequence} and not one.replay limit 1)
    union all
    (select * from deliveries one where one.merchant_id = ${merchant} and one.endpoint_id = $2 and one.payment_id = ${payment}
        and one.event_sequence = ${sequence} and one.replay order by one.position limit 1)) told order by told.replay, told.position limit 1`

const isReplayed = `ev.notified = 'done' and ($3::uuid is null or ev.channel_id = $3) and ev.type = any ($4)
        and ($5::timestamptz is null or ev.occurred_at >= $5) and ($6::timestamptz is null or ev.occurred_at < $6)
        and ($7::uuid is null or d.notification_id = $7) and ($8::text is null or d.state = $8) and ($9 <> 'request' or d.url is not null)`
const valuesOfReplay = ({ merchantId, id, channelId, types, kind }: Replayed, filter: ReplayFilter): unknown[] => [
  merchantId,
  id,
  channelId,
  types,
  filter.since === undefined ? null : timeParameter(filter.since),
  filter.until === undefined ? null : timeParameter(filter.until),
  filter.notificationId ?? null,
  filter.state ?? null,
  kind,
]
const targetColumns = `ev.payment_id as "paymentId", ev.sequence as "eventSequence", ev.root_id as "rootId", d.url, d.sequence`

/** Of the next deliveries of an endpoint, behind a position, those that were the first of their event. It reads so many, whatever it finds. */
export async function findTold(
  db: Connection,
  endpoint: Replayed,
  filter: ReplayFilter,
  after: number,
  upTo: number,
  limit: number,
): Promise<ReplayStep<number>> {
  const { rows } = await db.query<ReplayTarget & { cameTo: number | null }>(
    `with step as materialized (
       select * from deliveries where merchant_id = $1 and endpoint_id = $2 and position > $10 and position <= $11 order by position limit $12)
     select (select max(position) from step) as "cameTo", found.* from (values (1)) one left join (
       select ${targetColumns}, d.position
         from step d cross join lateral (
           select * from events where merchant_id = d.merchant_id and payment_id = d.payment_id and sequence = d.event_sequence limit 1) ev
        where ${isReplayed}
          and (not d.replay or d.position = (select first.position from (${firstTold('d.merchant_id', 'd.payment_id', 'd.event_sequence')}) first))) found on true
      order by found.position`,
    [...valuesOfReplay(endpoint, filter), after, upTo, limit],
  )
  return { found: rows.filter(({ paymentId }) => paymentId !== null), cameTo: rows[0]!.cameTo ?? undefined }
}

/**
 * Of the next events behind a place those that an endpoint was never told; of one payment, when the filter names it, also those that it was. It reads so
 * many, whatever it finds.
 */
export async function findEvents(
  db: Connection,
  endpoint: Replayed,
  filter: ReplayFilter,
  after: ReplayPlace,
  limit: number,
): Promise<ReplayStep<ReplayPlace>> {
  const { paymentId } = filter
  const { rows } = await db.query<ReplayTarget & { lastPayment: string | null; lastSequence: number }>(
    `with step as materialized (
       select * from events where merchant_id = $1 and (payment_id, sequence) > ($10, $11) ${paymentId === undefined ? '' : 'and payment_id = $15'}
        order by payment_id, sequence limit $12),
     last as (select payment_id, sequence from step order by payment_id desc, sequence desc limit 1)
     select last.payment_id as "lastPayment", last.sequence as "lastSequence", found.* from (values (1)) one left join last on true left join (
       select ${targetColumns}, d.position, ev.recorded_at
         from step ev left join lateral (${firstTold('ev.merchant_id', 'ev.payment_id', 'ev.sequence')}) d on true
        where ${isReplayed} and ($13::bigint is null or d.position >= $13) and ($14::bigint is null or d.position <= $14)
          ${paymentId === undefined ? 'and d.position is null' : ''}) found on true
      order by found.position nulls first, found.recorded_at, found."paymentId", found."eventSequence"`,
    [
      ...valuesOfReplay(endpoint, filter),
      after.paymentId,
      after.sequence,
      limit,
      filter.from ?? null,
      filter.to ?? null,
      ...(paymentId === undefined ? [] : [paymentId]),
    ],
  )
  const { lastPayment, lastSequence } = rows[0]!
  return {
    found: rows.filter(({ paymentId }) => paymentId !== null),
    cameTo: lastPayment === null ? undefined : { paymentId: lastPayment, sequence: lastSequence },
  }
}
