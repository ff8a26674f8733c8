// Events in the database, seen by one of their consumers.

import type { Connection } from '../../platform/database/connect.ts'
import { isServedHere, servedHere } from '../../platform/database/elsewhere.ts'
import type { Consumer, OutboxEvent } from './outbox.ts'

/** Without `wait` false when another process is at it. */
export async function takeTurn(db: Connection, { lock }: Consumer, wait: boolean): Promise<boolean> {
  if (wait) {
    await db.query('select pg_advisory_xact_lock($1)', [lock])
    return true
  }
  const { rows } = await db.query<{ ours: boolean }>('select pg_try_advisory_xact_lock($1) as ours', [lock])
  return rows[0]!.ours
}

export async function anyWaiting(db: Connection, { mark }: Consumer): Promise<boolean> {
  const { rows } = await db.query<{ any: boolean }>({
    name: `any events not ${mark}`,
    // Ordered like the index of waiting events, so that no plan reads the others.
    text: `select (select 1 from events where ${mark} is null and ${servedHere()} order by recorded_at limit 1) is not null as any`,
  })
  return rows[0]!.any
}

/**
 * The next merchants behind one of whom anything waits, and from the first on when there are no more: found by skipping through the index of what waits. Of those who
 * are served elsewhere something waits until they are forgotten here: they are no step.
 */
export async function waitingMerchants(db: Connection, { mark }: Consumer, behind: string, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: `merchants of events not ${mark}`,
    text: `
      with recursive walked (id, found, around, steps) as (
        select $1::uuid, false, false, 0
        union all
        select coalesce(next.merchant_id, '${'0'.repeat(32)}'), coalesce(next.here, false), around or next is null, steps + case when next.here is false then 0 else 1 end
          from walked left join lateral (
            select merchant_id, ${isServedHere('first.merchant_id')} as here from (
              select e.merchant_id from events e where e.${mark} is null and e.merchant_id > walked.id order by e.merchant_id, e.recorded_at limit 1) first) next on true
         where steps <= $2 and not (around and coalesce(next.merchant_id > $1, true)))
      select id from walked where found order by steps limit $2`,
    values: [behind, limit],
  })
  return rows.map(({ id }) => id)
}

/** The next of some merchants, of one at most so many, of each in the order in which they were recorded: the first of all, then the second. */
export async function waitingEvents(
  db: Connection,
  { mark, readsRecords }: Consumer,
  merchantIds: readonly string[],
  ofOne: number,
  limit: number,
): Promise<OutboxEvent[]> {
  const order = 'e.recorded_at, e.payment_id, e.sequence'
  const { rows } = await db.query<OutboxEvent>({
    name: `events not ${mark}`,
    text: `select e.merchant_id as "merchantId", e.payment_id as "paymentId", e.sequence, e.type, e.channel_id as "channelId", e.root_id as "rootId",
                  e.recorded_at as "recordedAt",
                  exists (select 1 from events later where later.merchant_id = e.merchant_id and later.payment_id = e.payment_id
                             and later.sequence > e.sequence and later.${mark} is not null) as superseded,
                  ${readsRecords ? 'p.record' : 'null as record'}
             from (select e.*, turn from unnest($1::uuid[]) with ordinality as waiting (id, turn) cross join lateral (
                     select e.*, row_number() over (order by ${order}) as place from events e
                      where e.${mark} is null and e.merchant_id = waiting.id order by e.merchant_id, ${order} limit $2) e
                    order by place, turn limit $3) e
             ${readsRecords ? 'left join payments p on p.merchant_id = e.merchant_id and p.id = e.payment_id' : ''}
            order by place, turn`,
    values: [merchantIds, ofOne, limit],
  })
  return rows
}

export async function markEvents(db: Connection, { mark }: Consumer, events: readonly OutboxEvent[]): Promise<void> {
  await db.query({
    name: `mark ${mark}`,
    text: `update events e set ${mark} = given.mark
             from unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::text[]) as given (merchant_id, payment_id, sequence, mark)
            where e.merchant_id = given.merchant_id and e.payment_id = given.payment_id and e.sequence = given.sequence`,
    values: [
      events.map(one => one.merchantId),
      events.map(one => one.paymentId),
      events.map(one => one.sequence),
      events.map(one => (one.superseded ? 'superseded' : 'done')),
    ],
  })
}

/** Of one merchant, or of all. */
export async function countWaiting(db: Connection, { mark }: Consumer, merchantId: string | null): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from events where ${mark} is null and ($1::uuid is null or merchant_id = $1)`,
    [merchantId],
  )
  return rows[0]!.count
}

/** How many wait, at most 10,000, and since when the oldest does. Read from the index of those that wait. */
export async function measureWaiting(
  db: Connection,
  { mark }: Consumer,
): Promise<{ readonly count: number; readonly since: number | null }> {
  const { rows } = await db.query<{ count: number; since: number | null }>(
    `select count(*), min(recorded_at) as since from (select recorded_at from events where ${mark} is null and ${servedHere()} order by recorded_at limit 10000) waiting`,
  )
  return rows[0]!
}

/** A place in the events, in the order of their key. */
export type EventPlace = Pick<OutboxEvent, 'merchantId' | 'paymentId' | 'sequence'>

/** Takes a consumer's marks away from some events behind a place, so that it gets them anew. Returns where it came to; undefined at the end. */
export async function unmarkEvents(
  db: Connection,
  { mark }: Consumer,
  after: EventPlace,
  limit: number,
): Promise<EventPlace | undefined> {
  const { rows } = await db.query<EventPlace>(
    `with next as (
       select merchant_id, payment_id, sequence from events where (merchant_id, payment_id, sequence) > ($1, $2, $3) and ${servedHere()}
        order by merchant_id, payment_id, sequence limit $4),
     unmarked as (
       update events e set ${mark} = null from next
        where e.merchant_id = next.merchant_id and e.payment_id = next.payment_id and e.sequence = next.sequence)
     select merchant_id as "merchantId", payment_id as "paymentId", sequence from next
      order by merchant_id desc, payment_id desc, sequence desc limit 1`,
    [after.merchantId, after.paymentId, after.sequence, limit],
  )
  return rows[0]
}
