// Deliveries in the database: made from events, taken with a lease by any number of processes, settled in batches.

import type pg from 'pg'
import type { Clock } from '../../platform/clock.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import { type BatchCount, type GroupCommit, groupCommit } from '../../platform/database/groupCommit.ts'
import { attemptsAhead } from '../retrySchedule.ts'
import { owing } from '../store.ts'
import type { Delivery, DeliveryAttempt, LeasedDelivery } from './delivery.ts'

export type NewDelivery = Omit<Delivery, 'attempts'> & { readonly dueAt: number; readonly replay?: boolean }

export async function insertDeliveries(db: Connection, rows: readonly NewDelivery[]): Promise<void> {
  await db.query({
    name: 'insert deliveries',
    text: `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, url, replay, emitted_at, due_at)
           select * from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[], $5::bigint[], $6::uuid[], $7::smallint[], $8::uuid[], $9::text[],
                                $10::boolean[], $11::timestamptz[], $12::timestamptz[])`,
    values: [
      rows.map(one => one.merchantId),
      rows.map(one => one.endpointId),
      rows.map(one => one.position),
      rows.map(one => one.notificationId),
      rows.map(one => one.sequence),
      rows.map(one => one.paymentId),
      rows.map(one => one.eventSequence),
      rows.map(one => one.rootId),
      rows.map(one => one.url),
      rows.map(one => one.replay ?? false),
      rows.map(one => timeParameter(one.emittedAt)),
      rows.map(one => timeParameter(one.dueAt)),
    ],
  })
}

/** Longer than a name (30 s) and a call (30 s) can last; whoever is killed in the middle leaves a lease that runs out. */
export const leaseMilliseconds = 90_000

/** At `$1`. No process whose clock is right leases for longer: a lease that ends later was taken by a clock that was wrong, and is free. */
const isLeased = (of: string): string =>
  `(${of}.leased_until > $1 and ${of}.leased_until <= $1::timestamptz + interval '${2 * leaseMilliseconds} milliseconds')`

// A delivery waits for the ones before it in its chain, until those have made the attempt after one hour (decisions, 40). A subquery
// with a limit is one look into the index for each row; `not exists` would be turned into a join over the whole backlog.
const holder = (of: string): string => `
  select head.position from deliveries head
   where head.merchant_id = ${of}.merchant_id and head.endpoint_id = ${of}.endpoint_id and head.root_id = ${of}.root_id and head.state = 'scheduled'
     and head.position < ${of}.position and (head.attempts < ${attemptsAhead} or ${isLeased('head')})
   order by head.root_id, head.position limit 1`
const free = `(${holder('d')}) is null`

const takenColumns = `
  d.merchant_id as "merchantId", d.endpoint_id as "endpointId", d.position, d.notification_id as "notificationId", d.sequence,
  d.payment_id as "paymentId", d.event_sequence as "eventSequence", d.root_id as "rootId", d.url, d.attempts, d.emitted_at as "emittedAt",
  e.kind, ev.channel_id as "channelId", e.fields, e.wrapper, e.sealed_secrets as "sealedSecrets", e.url as "endpointUrl",
  ev.type, ev.action, ev.occurred_at as "occurredAt", case when d.event_sequence > 1 then a.body end as body`
const takenJoins = `
  join endpoints e on e.merchant_id = d.merchant_id and e.id = d.endpoint_id
  join events ev on ev.merchant_id = d.merchant_id and ev.payment_id = d.payment_id and ev.sequence = d.event_sequence
  left join answers a on a.merchant_id = d.merchant_id and a.payment_id = d.payment_id`

/** Of each endpoint a round looks at so many that are due; those of them that are not free are set aside, so that the next round looks at others. */
const lookMost = 64

export type TakenDeliveries = {
  readonly taken: readonly LeasedDelivery[]
  /** How many were found to wait behind others: behind them there may be some that do not. */
  readonly setAside: number
}

/** How many more may be under way: of an endpoint and of a merchant, by their ids and of all others, and together. */
export type DeliveryRooms = {
  readonly ofEndpoints: Readonly<Record<string, number>>
  readonly ofEndpoint: number
  readonly ofMerchants: Readonly<Record<string, number>>
  readonly ofMerchant: number
  readonly together: number
}

/**
 * Takes due deliveries for the length of a lease, of each endpoint and of each merchant no more than there is room for: a long backlog of one does not
 * hide the others. The endpoints that are owed anything are found by skipping through the index, so that idle ones cost nothing; what waits behind
 * another of its chain is read once, set aside, and woken with the end of that one (migration 0058), which is locked meanwhile. What is read by a
 * cursor is only given up here, in whatever order.
 */
export async function takeDeliveries(
  db: Connection,
  now: number,
  { ofEndpoints, ofEndpoint, ofMerchants, ofMerchant, together }: DeliveryRooms,
): Promise<TakenDeliveries> {
  const { rows } = await db.query<LeasedDelivery & { setAside: number }>({
    name: 'take deliveries',
    text: `
      with recursive ${owing("state = 'scheduled' and not behind")},
      roomy as (
        select owing.merchant_id, owing.endpoint_id, e.kind, coalesce(($3::jsonb ->> replace(owing.endpoint_id::text, '-', ''))::integer, $4) as room,
               coalesce(($5::jsonb ->> replace(owing.merchant_id::text, '-', ''))::integer, $6) as of_merchant
          from owing join endpoints e on e.merchant_id = owing.merchant_id and e.id = owing.endpoint_id and e.state = 'active'
           and ${servedHere('owing.merchant_id')}),
      looked as (
        select d.*, roomy.room, roomy.of_merchant, roomy.kind = 'cursor' or ${free} as free
          from roomy cross join lateral (
           select d.merchant_id, d.endpoint_id, d.position, d.root_id, d.due_at from deliveries d
            where d.merchant_id = roomy.merchant_id and d.endpoint_id = roomy.endpoint_id and d.state = 'scheduled' and not d.behind and d.due_at <= $1
              and ${isLeased('d')} is not true and least(roomy.room, roomy.of_merchant) > 0
            order by d.due_at, d.position limit ${lookMost} for update skip locked) d),
      chosen as (
        select merchant_id, endpoint_id, position
          from (select *, row_number() over (partition by merchant_id order by place, due_at, position) as merchants_place
                  from (select *, row_number() over (partition by merchant_id, endpoint_id order by due_at, position) as place from looked where free) ranked
                 where place <= room) shared
         where merchants_place <= of_merchant order by merchants_place - of_merchant, due_at limit $7),
      leased as (
        update deliveries d set leased_until = $2, attempts = d.attempts + 1 from chosen
         where d.merchant_id = chosen.merchant_id and d.endpoint_id = chosen.endpoint_id and d.position = chosen.position
        returning d.*),
      waiting as (
        update deliveries d set behind = true
          from (select w.merchant_id, w.endpoint_id, w.position from looked w cross join lateral (${holder('w')} for share skip locked) held where not w.free) held
         where d.merchant_id = held.merchant_id and d.endpoint_id = held.endpoint_id and d.position = held.position
        returning 1)
      select (select count(*) from waiting)::integer as "setAside", taken.*
        from (values (1)) one left join (select ${takenColumns} from leased d ${takenJoins}) taken on true order by taken.position`,
    values: [
      timeParameter(now),
      timeParameter(now + leaseMilliseconds),
      JSON.stringify(ofEndpoints),
      ofEndpoint,
      JSON.stringify(ofMerchants),
      ofMerchant,
      together,
    ],
  })
  const [first] = rows
  return {
    taken: first?.merchantId ? rows.map(({ setAside: _setAside, ...delivery }) => delivery) : [],
    setAside: first?.setAside ?? 0,
  }
}

/** A chain of an endpoint of a merchant. */
export type ChainKey = readonly [merchantId: string, endpointId: string, rootId: string]
export const firstChain: ChainKey = ['0'.repeat(32), '0'.repeat(32), '0'.repeat(32)]

/**
 * Wakes what is set aside and waits for nobody, in the next `limit` chains that have anything set aside. The end of a delivery wakes the next: this is for what nobody
 * has thought of. Returns the last chain looked at, undefined behind the last of all, and how many were woken.
 */
export async function wakeStranded(
  db: Connection,
  after: ChainKey,
  now: number,
  limit: number,
): Promise<{ readonly last: ChainKey | undefined; readonly woken: number }> {
  const { rows } = await db.query<{ merchantId: string; endpointId: string; rootId: string; seen: number; woken: number }>({
    name: 'wake stranded deliveries',
    text: `
      with recursive chains as (
        (select merchant_id, endpoint_id, root_id, position, 1 as seen from deliveries
          where state = 'scheduled' and behind and (merchant_id, endpoint_id, root_id) > ($2, $3, $4)
          order by merchant_id, endpoint_id, root_id, position limit 1)
        union all
        select next.*, chains.seen + 1 from chains cross join lateral (
          select merchant_id, endpoint_id, root_id, position from deliveries
           where state = 'scheduled' and behind and (merchant_id, endpoint_id, root_id) > (chains.merchant_id, chains.endpoint_id, chains.root_id)
           order by merchant_id, endpoint_id, root_id, position limit 1) next
         where chains.seen < $5),
      stranded as (
        select d.merchant_id, d.endpoint_id, d.position from chains join deliveries d using (merchant_id, endpoint_id, position)
         where ${free} and d.state = 'scheduled' and ${servedHere('d.merchant_id')}
           and exists (select from endpoints e where e.merchant_id = d.merchant_id and e.id = d.endpoint_id and e.state = 'active')
         order by d.merchant_id, d.endpoint_id, d.position for update of d skip locked),
      woken as (
        update deliveries d set behind = false from stranded s
         where d.merchant_id = s.merchant_id and d.endpoint_id = s.endpoint_id and d.position = s.position returning 1)
      select merchant_id as "merchantId", endpoint_id as "endpointId", root_id as "rootId", seen, (select count(*) from woken)::integer as woken
        from chains order by seen desc limit 1`,
    values: [timeParameter(now), ...after, limit],
  })
  const [one] = rows
  return {
    last: one && one.seen === limit ? [one.merchantId, one.endpointId, one.rootId] : undefined,
    woken: one?.woken ?? 0,
  }
}

export type FirstDelivery = Pick<Delivery, 'merchantId' | 'endpointId' | 'position'> & {
  readonly dueAt: number
  readonly busy: boolean
}

/** The first delivery of one merchant that is due by a time. */
export async function firstDelivery(
  db: Connection,
  merchantId: string,
  until: number,
  now: number,
): Promise<FirstDelivery | undefined> {
  const { rows } = await db.query<FirstDelivery>(
    `select first.merchant_id as "merchantId", first.endpoint_id as "endpointId", first.position, first.due_at as "dueAt", first.busy
       from (select merchant_id, id from endpoints where merchant_id = $2 and state = 'active' order by id) e cross join lateral (
         select d.merchant_id, d.endpoint_id, d.position, d.due_at, coalesce(${isLeased('d')}, false) as busy from deliveries d
          where d.merchant_id = e.merchant_id and d.endpoint_id = e.id and d.state = 'scheduled' and not d.behind and d.due_at <= $3 and ${free}
          order by d.due_at, d.position limit 1 for update) first
      order by first.due_at, first.endpoint_id, first.position limit 1`,
    [timeParameter(now), merchantId, timeParameter(until)],
  )
  return rows[0]
}

export async function takeDelivery(
  db: Connection,
  { merchantId, endpointId, position }: Pick<Delivery, 'merchantId' | 'endpointId' | 'position'>,
  now: number,
): Promise<LeasedDelivery> {
  const { rows } = await db.query<LeasedDelivery>(
    `with leased as (
       update deliveries set leased_until = $4, attempts = attempts + 1
        where merchant_id = $1 and endpoint_id = $2 and position = $3 returning *)
     select ${takenColumns} from leased d ${takenJoins}`,
    [merchantId, endpointId, position, timeParameter(now + leaseMilliseconds)],
  )
  return rows[0]!
}

/** Stores how an attempt ended: the log line, and what it means for the delivery. False when the delivery had ended otherwise before. */
export type AttemptLane = GroupCommit<DeliveryAttempt, boolean>

export function attemptLane(pool: pg.Pool, clock: Clock, count?: BatchCount): AttemptLane {
  return groupCommit<DeliveryAttempt, boolean>({
    clock,
    ...(count && { count }),
    patienceSeconds: 30, // as long as its lease is sure to last
    key: ({ merchantId, endpointId, position }) => merchantId + endpointId + String(position).padStart(16, '0'),
    owner: ({ merchantId }) => merchantId,
    async write(rows) {
      const { rows: ended } = await pool.query<Pick<DeliveryAttempt, 'merchantId' | 'endpointId' | 'position'>>({
        name: 'settle deliveries',
        text: `
          with given as (
            select * from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::integer[], $7::smallint[], $8::text[], $9::text[],
                                 $10::boolean[], $11::text[], $12::timestamptz[])
              as given (merchant_id, endpoint_id, position, attempt, attempted_at, milliseconds, status, failure, answer, acknowledged, state, due_at)),
          logged as (
            insert into delivery_attempts (merchant_id, endpoint_id, position, attempt, attempted_at, milliseconds, status, failure, answer, acknowledged)
            select merchant_id, endpoint_id, position, attempt, attempted_at, milliseconds, status, failure, answer, acknowledged from given
             where exists (select from deliveries d  -- a merchant who left meanwhile may be forgotten
                            where d.merchant_id = given.merchant_id and d.endpoint_id = given.endpoint_id and d.position = given.position)
            on conflict do nothing)
          update deliveries d
             set state = given.state, due_at = coalesce(given.due_at, d.due_at), leased_until = null,
                 settled_at = case when given.state <> 'scheduled' then given.attempted_at end
            from given
           where d.merchant_id = given.merchant_id and d.endpoint_id = given.endpoint_id and d.position = given.position and d.state = 'scheduled'
             and (given.acknowledged or d.attempts = given.attempt)  -- a failure says nothing once another attempt has begun
          returning d.merchant_id as "merchantId", d.endpoint_id as "endpointId", d.position`,
        values: [
          rows.map(one => one.merchantId),
          rows.map(one => one.endpointId),
          rows.map(one => one.position),
          rows.map(one => one.attempt),
          rows.map(one => timeParameter(one.attemptedAt)),
          rows.map(one => one.milliseconds),
          rows.map(one => one.status),
          rows.map(one => one.failure),
          rows.map(one => one.answer),
          rows.map(one => one.acknowledged),
          rows.map(one => one.state),
          rows.map(one => (one.dueAt === null ? null : timeParameter(one.dueAt))),
        ],
      })
      const keys = new Set(ended.map(one => `${one.endpointId} ${one.position}`))
      return rows.map(one => keys.has(`${one.endpointId} ${one.position}`))
    },
  })
}

/** Gives a lease back unused, at the end of a process. */
export async function releaseDelivery(db: Connection, { merchantId, endpointId, position, attempts }: Delivery): Promise<void> {
  await db.query(
    `update deliveries set leased_until = null where merchant_id = $1 and endpoint_id = $2 and position = $3 and state = 'scheduled' and attempts = $4`,
    [merchantId, endpointId, position, attempts],
  )
}

/** Ends the leases of processes that are gone: only for the one process that has the database to itself. */
export async function releaseAll(db: Connection): Promise<void> {
  await db.query(
    `update deliveries set leased_until = null where state = 'scheduled' and leased_until is not null and ${servedHere()}`,
  )
}

/** Brings everything that a merchant's endpoints are owed nearer. Locked in the order of those who end some: these have the first of a chain when they wake the next, and two who meet in another order would wait for each other. */
export async function moveDeliveries(db: Connection, merchantId: string, milliseconds: number): Promise<void> {
  await db.query(
    `update deliveries d set due_at = d.due_at - $2 * interval '1 millisecond' from (
       select merchant_id, endpoint_id, position from deliveries where merchant_id = $1 and state = 'scheduled' order by merchant_id, endpoint_id, position for update) locked
      where d.merchant_id = locked.merchant_id and d.endpoint_id = locked.endpoint_id and d.position = locked.position and d.state = 'scheduled'`,
    [merchantId, milliseconds],
  )
}

/** The next deliveries of an endpoint that is read by a cursor. */
export async function readAhead(
  db: Connection,
  merchantId: string,
  endpointId: string,
  limit: number,
  now: number,
): Promise<LeasedDelivery[]> {
  const { rows } = await db.query<LeasedDelivery>(
    `select ${takenColumns} from deliveries d ${takenJoins}
      where d.merchant_id = $1 and d.endpoint_id = $2 and d.state = 'scheduled' and d.due_at > $4 order by d.position limit $3`,
    [merchantId, endpointId, limit, timeParameter(now)],
  )
  return rows
}

export async function acknowledgeUpTo(
  db: Connection,
  merchantId: string,
  endpointId: string,
  position: number,
  businessNow: number,
): Promise<void> {
  await db.query(
    `with read as (
       update deliveries set state = 'acknowledged', settled_at = $4, attempts = attempts + 1
        where merchant_id = $1 and endpoint_id = $2 and position <= $3 and state = 'scheduled' returning position, attempts)
     insert into delivery_attempts (merchant_id, endpoint_id, position, attempt, attempted_at, milliseconds, answer, acknowledged)
     select $1, $2, position, attempts, $4, 0, 'read', true from read`,
    [merchantId, endpointId, position, timeParameter(businessNow)],
  )
}

export type EndpointCounts = {
  readonly merchantId: string
  readonly endpointId: string
  readonly kind: string
  readonly state: string
  readonly url: string | null
  readonly name: string | null
  readonly emitted: number
  readonly acknowledged: number
  readonly scheduled: number
  readonly givenUp: number
  /** Acknowledged, but no answer in the log says so. */
  readonly withoutProof: number
  /** Set aside, and nothing before it is waited for. */
  readonly stranded: number
  /** Events that were fanned out while the endpoint was owed them, and for which there is no delivery. */
  readonly lost: number
}

/** All in one statement, so that all numbers are of one moment. Of all endpoints, deleted ones too. */
export async function countDeliveries(db: Connection, merchantId: string | null): Promise<EndpointCounts[]> {
  const { rows } = await db.query<EndpointCounts>(
    `select e.merchant_id as "merchantId", e.id as "endpointId", e.kind, e.state, e.url, e.name, e.emitted,
            counted.acknowledged + e.erased_acknowledged as acknowledged, counted.scheduled, counted.given_up + e.erased_given_up as "givenUp",
            counted.without_proof as "withoutProof", counted.stranded,
            case when e.state = 'active' and e.kind <> 'request' then (
              select count(*) from events ev
               where ev.merchant_id = e.merchant_id and ev.notified = 'done' and ev.recorded_at >= greatest(e.activated_at, e.erased_before)
                 and (e.channel_id is null or ev.channel_id = e.channel_id) and ev.type = any (e.types)
                 and not exists (select 1 from deliveries d where d.merchant_id = e.merchant_id and d.endpoint_id = e.id
                                    and d.payment_id = ev.payment_id and d.event_sequence = ev.sequence)) else 0 end as lost
       from endpoints e cross join lateral (
         select count(*) filter (where d.state = 'acknowledged') as acknowledged, count(*) filter (where d.state = 'scheduled') as scheduled,
                count(*) filter (where d.state = 'given up') as given_up,
                count(*) filter (where e.state = 'active' and d.state = 'scheduled' and d.behind and not exists (
                  select 1 from deliveries head where head.merchant_id = d.merchant_id and head.endpoint_id = d.endpoint_id and head.root_id = d.root_id
                     and head.state = 'scheduled' and head.position < d.position)) as stranded,
                count(*) filter (where d.state = 'acknowledged' and not exists (
                  select 1 from delivery_attempts a where a.merchant_id = d.merchant_id and a.endpoint_id = d.endpoint_id and a.position = d.position
                     and a.acknowledged)) as without_proof
           from deliveries d where d.merchant_id = e.merchant_id and d.endpoint_id = e.id) counted
      where e.merchant_id = $1 or ($1::uuid is null and ${servedHere('e.merchant_id')}) order by e.merchant_id, e.created_at, e.id`,
    [merchantId],
  )
  return rows
}

/**
 * What was emitted before `$1` and is settled goes, with its attempts; its endpoint counts it further. Positions grow with time: the first ones of each
 * endpoint are its oldest, and no index over times is needed. The endpoints are locked in the order of fan-out.
 */
export const eraseDeliveries = `with old as (
    select d.merchant_id, d.endpoint_id, d.position from endpoints e
     cross join lateral (
       select emitted_at from deliveries where merchant_id = e.merchant_id and endpoint_id = e.id and state <> 'scheduled' order by position limit 1) oldest
     cross join lateral (
       select merchant_id, endpoint_id, position, emitted_at from deliveries
        where oldest.emitted_at < $1 and merchant_id = e.merchant_id and endpoint_id = e.id and state <> 'scheduled' order by position limit $2) d
     where d.emitted_at < $1 and ${servedHere('d.merchant_id')} limit $2),
  tried as (
    delete from delivery_attempts a using old
     where a.merchant_id = old.merchant_id and a.endpoint_id = old.endpoint_id and a.position = old.position),
  gone as (
    delete from deliveries d using old where d.merchant_id = old.merchant_id and d.endpoint_id = old.endpoint_id and d.position = old.position
    returning d.merchant_id, d.endpoint_id, d.state),
  counted as (
    select merchant_id, endpoint_id, count(*) filter (where state = 'acknowledged') as acknowledged, count(*) filter (where state = 'given up') as given_up
      from gone group by merchant_id, endpoint_id),
  locked as (
    select merchant_id, id from endpoints where (merchant_id, id) in (select merchant_id, endpoint_id from counted) order by merchant_id, id for update),
  remembered as (
    update endpoints e set erased_acknowledged = e.erased_acknowledged + counted.acknowledged, erased_given_up = e.erased_given_up + counted.given_up,
           erased_before = greatest(e.erased_before, $1)
      from locked join counted on counted.merchant_id = locked.merchant_id and counted.endpoint_id = locked.id
     where e.merchant_id = locked.merchant_id and e.id = locked.id)
  select from gone`

/**
 * How many deliveries wait, of each endpoint at most 10,000, and for how long the oldest of those that are due has waited, in milliseconds. Read from the
 * indexes of those that wait, however many were ever made.
 */
export async function measureBacklog(db: Connection, now: number): Promise<{ scheduled: number; due: number; oldest: number }> {
  const { rows } = await db.query<{ scheduled: number; due: number; oldest: number }>(
    `select count(w.due_at) as scheduled, count(w.due_at) filter (where w.due_at <= $1) as due,
            coalesce(extract(epoch from $1 - min(w.due_at) filter (where w.due_at <= $1)) * 1000, 0)::bigint as oldest
       from endpoints e cross join lateral (
         (select d.due_at from deliveries d where d.merchant_id = e.merchant_id and d.endpoint_id = e.id and d.state = 'scheduled' and not d.behind
           order by d.due_at limit 10000)
         union all
         (select d.due_at from deliveries d where d.merchant_id = e.merchant_id and d.endpoint_id = e.id and d.state = 'scheduled' and d.behind limit 10000)
         limit 10000) w
      where e.kind <> 'cursor' and ${servedHere('e.merchant_id')}`,
    [timeParameter(now)],
  )
  return rows[0]!
}

/** How many were given up since, at most 10,000, and when the last one was. Read from their own index. */
export async function countGivenUp(
  db: Connection,
  since: number,
): Promise<{ readonly count: number; readonly newest: number | null }> {
  const { rows } = await db.query<{ count: number; newest: number | null }>(
    `select count(*), max(settled_at) as newest
       from (select settled_at from deliveries where state = 'given up' and settled_at > $1 limit 10000) given_up`,
    [timeParameter(since)],
  )
  return rows[0]!
}

export type DeliveryRow = Delivery & {
  readonly state: string
  readonly replay: boolean
  readonly dueAt: number
  readonly settledAt: number | null
  readonly lastStatus: number | null
  readonly lastFailure: string | null
}

/** Deliveries of one endpoint, newest first, with how the last attempt ended. */
const deliveryRows = (
  from: string,
): string => `select d.merchant_id as "merchantId", d.endpoint_id as "endpointId", d.position, d.notification_id as "notificationId", d.sequence,
            d.payment_id as "paymentId", d.event_sequence as "eventSequence", d.root_id as "rootId", d.url, d.attempts, d.emitted_at as "emittedAt",
            d.state, d.replay, d.due_at as "dueAt", d.settled_at as "settledAt", last.status as "lastStatus", last.failure as "lastFailure"
       from ${from} d left join lateral (
         select status, failure from delivery_attempts a where a.merchant_id = d.merchant_id and a.endpoint_id = d.endpoint_id
            and a.position = d.position order by attempt desc limit 1) last on true`

export async function listDeliveries(
  db: Connection,
  merchantId: string,
  endpointId: string,
  state: string | null,
  limit: number,
): Promise<DeliveryRow[]> {
  const { rows } = await db.query<DeliveryRow>(
    `${deliveryRows('deliveries')} where d.merchant_id = $1 and d.endpoint_id = $2 and ($3::text is null or d.state = $3) order by d.position desc limit $4`,
    [merchantId, endpointId, state, limit],
  )
  return rows
}

/** What a merchant's endpoints were told of some payments, the newest first. */
export async function deliveriesOf(
  db: Connection,
  merchantId: string,
  endpointIds: readonly string[],
  paymentIds: readonly string[],
  limit: number,
): Promise<
  Pick<
    DeliveryRow,
    'endpointId' | 'position' | 'notificationId' | 'paymentId' | 'state' | 'attempts' | 'emittedAt' | 'dueAt' | 'replay'
  >[]
> {
  const { rows } = await db.query(
    `select endpoint_id as "endpointId", position, notification_id as "notificationId", payment_id as "paymentId", state, attempts,
            emitted_at as "emittedAt", due_at as "dueAt", replay
       from (select * from deliveries where merchant_id = $1 and endpoint_id = any ($2) and payment_id = any ($3) and not replay
             union all
             select * from deliveries where merchant_id = $1 and payment_id = any ($3) and replay) told
      order by emitted_at desc, endpoint_id, position desc limit $4`,
    [merchantId, endpointIds, paymentIds, limit],
  )
  return rows
}

/** Those of some merchants that nobody has acknowledged: that are sent no more, the newest first, or are under way, the first due first. */
export async function listUnheard(
  db: Connection,
  merchantIds: readonly string[],
  state: 'given up' | 'scheduled',
  limit: number,
): Promise<DeliveryRow[]> {
  if (state === 'given up') {
    const { rows } = await db.query<DeliveryRow>(
      `${deliveryRows('deliveries')} where d.merchant_id = any ($1) and d.state = 'given up' order by d.settled_at desc limit $2`,
      [merchantIds, limit],
    )
    return rows
  }
  // Of each endpoint no more than are asked for: those that wait for their time, then those that wait behind others.
  const waiting = (isBehind: string, order: string): string => `
    (select d.* from deliveries d where d.merchant_id = e.merchant_id and d.endpoint_id = e.id and d.state = 'scheduled' and ${isBehind} order by ${order} limit $2)`
  const { rows } = await db.query<DeliveryRow>(
    `${deliveryRows(`(
       select w.* from endpoints e cross join lateral (
         ${waiting('not d.behind', 'd.due_at, d.position')} union all ${waiting('d.behind', 'd.root_id, d.position')}) w
        where e.merchant_id = any ($1) order by w.behind, w.due_at, w.endpoint_id, w.position limit $2)`)}
      order by d.behind, d.due_at, d.endpoint_id, d.position`,
    [merchantIds, limit],
  )
  return rows
}

type LoggedAttempt = Omit<DeliveryAttempt, 'state' | 'dueAt'>
const attemptColumns = `merchant_id as "merchantId", endpoint_id as "endpointId", position, attempt, attempted_at as "attemptedAt", milliseconds, status, failure,
            answer, acknowledged`

/** The attempts to deliver some, the newest first. */
export async function triesOf(
  db: Connection,
  merchantId: string,
  deliveries: readonly Pick<Delivery, 'endpointId' | 'position'>[],
  limit: number,
): Promise<LoggedAttempt[]> {
  const { rows } = await db.query<LoggedAttempt>(
    `select ${attemptColumns} from unnest($2::uuid[], $3::bigint[]) as told (endpoint, place) cross join lateral (
       select * from delivery_attempts where merchant_id = $1 and endpoint_id = endpoint and position = place order by attempt desc limit $4) tried
      order by attempted_at desc, attempt desc limit $4`,
    [merchantId, deliveries.map(one => one.endpointId), deliveries.map(one => one.position), limit],
  )
  return rows
}

export async function listAttempts(
  db: Connection,
  merchantId: string,
  endpointId: string,
  position: number,
): Promise<LoggedAttempt[]> {
  const { rows } = await db.query<LoggedAttempt>(
    `select ${attemptColumns} from delivery_attempts where merchant_id = $1 and endpoint_id = $2 and position = $3 order by attempt`,
    [merchantId, endpointId, position],
  )
  return rows
}
