// Due work in the database: rows with a time and a short lease, taken by any number of processes.

import { type Connection, timeParameter } from '../database/connect.ts'
import { servedHere } from '../database/elsewhere.ts'
import { storableJson } from '../database/json.ts'

export type DueItem = {
  readonly kind: string
  readonly merchantId: string
  readonly subjectId: string
  readonly dueAt: number
  readonly attempts: number
  /** Grows when the work is taken, and when it is asked for again meanwhile: what was taken is ended only if nothing was asked for since. */
  readonly generation: number
  readonly leasedUntil: number | null
  /** The host whose server it calls; empty: nobody's, or not known yet. */
  readonly side: string
  readonly details: Readonly<Record<string, unknown>>
}

export const leaseSeconds = 60

/** No process whose clock is trusted holds a lease for longer: one that ends later was taken by a clock that was wrong, and is free. */
const beyondLeases = (now: number): number => now + 2 * leaseSeconds * 1000

/** The longest pause between two attempts, in milliseconds. */
export const backOffMost = 600_000

const columns = `d.kind, d.merchant_id as "merchantId", d.subject_id as "subjectId", d.due_at as "dueAt", d.attempts, d.generation,
  d.leased_until as "leasedUntil", d.side, d.details`
const key = 'kind = $1 and merchant_id = $2 and subject_id = $3'

/** How much more of one may be taken: of those that are named so much, of every other `most`. */
export type Rooms = { readonly most: number; readonly named: ReadonlyMap<string, number> }

/** `own`: what calls nobody's server, or of which that is not known yet; `sides`: what does; `all`: both. */
export type Taking = 'own' | 'sides' | 'all'

/** What there is room for in a process that looks for work. */
export type Wanted = {
  readonly kinds: readonly string[]
  readonly taking: Taking
  readonly limit: number
  readonly merchants: Rooms
  readonly sides: Rooms
}

/** A condition on rows of one index: `own` and `sides` never read what the other has, however much of it waits. */
const places: Readonly<Record<Taking, { readonly from: string; readonly where: string }>> = {
  own: { from: 'unnest($4::text[]) as wanted (kind)', where: `w.side = ''` },
  // As many rows as there are sides, each found by one step of the index.
  sides: {
    from: `(with recursive waits (kind, side) as (
              select kind, (select min(w.side) from due_work w where w.kind = kinds.kind and w.side > '') from unnest($4::text[]) as kinds (kind)
              union all
              select kind, (select min(w.side) from due_work w where w.kind = waits.kind and w.side > waits.side) from waits where side is not null)
            select kind, side from waits where side is not null and side <> all ($13::text[])) as wanted`,
    where: 'w.side = wanted.side',
  },
  all: { from: 'unnest($4::text[]) as wanted (kind)', where: 'w.side <> all ($13::text[])' },
}

/** Takes what is due, of each side the oldest first, for the length of a lease. */
export async function takeDue(
  db: Connection,
  now: number,
  { kinds, taking, limit, merchants, sides }: Wanted,
): Promise<DueItem[]> {
  const { from, where } = places[taking]
  const full = ({ named }: Rooms) => [...named].filter(([, room]) => room <= 0).map(([name]) => name)
  const { rows } = await db.query<DueItem>({
    name: `take due work ${taking}`,
    text: `update due_work d set leased_until = $2, attempts = attempts + 1, generation = generation + 1
            where (kind, merchant_id, subject_id) in (
              select kind, merchant_id, subject_id from (
                select *, row_number() over (partition by merchant_id order by of_side, due_at) as of_merchant from (
                  select due.*, case due.side when '' then 1 else row_number() over (partition by due.side order by due.due_at) end as of_side
                    from ${from} cross join lateral (
                      select w.kind, w.merchant_id, w.subject_id, w.due_at, w.side from due_work w
                       where w.kind = wanted.kind and ${where} and w.due_at <= $1 and (w.leased_until is null or w.leased_until < $1 or w.leased_until > $6)
                         and w.merchant_id <> all ($5::uuid[]) and ${servedHere('w.merchant_id')}
                       order by w.due_at limit $3 for update skip locked) due) found
                 where side = '' or of_side <= coalesce((select room from unnest($7::text[], $8::int[]) as of_one (name, room) where name = side), $9)) of_sides
               where of_merchant <= coalesce((select room from unnest($10::uuid[], $11::int[]) as of_one (id, room) where id = merchant_id), $12)
               order by of_side, due_at limit $3)
           returning ${columns}`,
    values: [
      timeParameter(now),
      timeParameter(now + leaseSeconds * 1000),
      limit,
      kinds,
      full(merchants),
      timeParameter(beyondLeases(now)),
      [...sides.named.keys()],
      [...sides.named.values()],
      sides.most,
      [...merchants.named.keys()],
      [...merchants.named.values()],
      merchants.most,
      ...(taking === 'own' ? [] : [full(sides)]),
    ],
  })
  return rows.sort((a, b) => a.dueAt - b.dueAt)
}

/** What was taken before it was known whose server it calls goes back, unbegun, to be taken as that side's. */
export async function setSides(db: Connection, items: readonly DueItem[]): Promise<void> {
  await db.query(
    `update due_work w set side = known.side, leased_until = null, attempts = w.attempts - 1
       from unnest($1::text[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[]) as known (kind, merchant_id, subject_id, leased_until, side)
      where w.kind = known.kind and w.merchant_id = known.merchant_id and w.subject_id = known.subject_id and w.leased_until = known.leased_until`,
    [
      items.map(({ kind }) => kind),
      items.map(({ merchantId }) => merchantId),
      items.map(({ subjectId }) => subjectId),
      items.map(({ leasedUntil }) => timeParameter(leasedUntil!)),
      items.map(({ side }) => side),
    ],
  )
}

/** The first thing of one merchant that is due by a time; busy when another process holds it. */
export async function firstDue(
  db: Connection,
  merchantId: string,
  until: number,
  now: number,
): Promise<(DueItem & { busy: boolean }) | undefined> {
  const { rows } = await db.query<DueItem & { busy: boolean }>(
    `select ${columns}, coalesce(leased_until > $3 and leased_until <= $4, false) as busy from due_work d
      where merchant_id = $1 and due_at <= $2 order by due_at, subject_id limit 1 for update`,
    [merchantId, timeParameter(until), timeParameter(now), timeParameter(beyondLeases(now))],
  )
  return rows[0]
}

/** Takes what was found in the same transaction. */
export async function leaseDue(db: Connection, item: DueItem, now: number): Promise<DueItem> {
  const leasedUntil = now + leaseSeconds * 1000
  await db.query(`update due_work set leased_until = $4, attempts = attempts + 1, generation = generation + 1 where ${key}`, [
    item.kind,
    item.merchantId,
    item.subjectId,
    timeParameter(leasedUntil),
  ])
  return { ...item, attempts: item.attempts + 1, generation: item.generation + 1, leasedUntil }
}

/** For a process that is alone on its database: whoever held a lease is dead. */
export async function releaseAllDue(db: Connection): Promise<void> {
  await db.query(`update due_work set leased_until = null where leased_until is not null and ${servedHere()}`)
}

/** Keeps what was taken for the length of another lease; undefined when it is not ours any more. */
export async function renewDue(db: Connection, item: DueItem, now: number): Promise<DueItem | undefined> {
  const leasedUntil = now + leaseSeconds * 1000
  const { rowCount } = await db.query(`update due_work set leased_until = $4 where ${key} and leased_until = $5`, [
    item.kind,
    item.merchantId,
    item.subjectId,
    timeParameter(leasedUntil),
    timeParameter(item.leasedUntil!),
  ])
  return rowCount === 1 ? { ...item, leasedUntil } : undefined
}

/** Work that waits already is asked for again: it is due at the earlier time, calls whom it calls now, and whoever is at it does not end it. */
export const askedAgain = `on conflict (kind, merchant_id, subject_id) do update
  set due_at = least(due_work.due_at, excluded.due_at), details = due_work.details || excluded.details,
      side = excluded.side, generation = due_work.generation + 1`

export async function addDue(
  db: Connection,
  kind: string,
  merchantId: string,
  subjectId: string,
  dueAt: number,
  details: object = {},
  side = '',
): Promise<void> {
  await db.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, details, side) values ($1, $2, $3, $4, $5, $6) ${askedAgain}`,
    [kind, merchantId, subjectId, timeParameter(dueAt), storableJson(details), side],
  )
}

/** What was asked for while it ran stays, and is free to be taken. */
export async function finishDue(
  db: Connection,
  { kind, merchantId, subjectId, generation, leasedUntil }: DueItem,
): Promise<void> {
  await db.query(
    `with finished as (delete from due_work where ${key} and generation = $4)
     update due_work set leased_until = null where ${key} and generation > $4 and leased_until = $5`,
    [kind, merchantId, subjectId, generation, timeParameter(leasedUntil!)],
  )
}

/** Only what is still ours; when it was asked for meanwhile, the earlier time counts. `well`: nothing failed, and attempts are counted anew. */
export async function postponeDue(
  db: Connection,
  { kind, merchantId, subjectId, generation, leasedUntil }: DueItem,
  dueAt: number,
  details: object = {},
  well = false,
): Promise<void> {
  await db.query(
    `update due_work set due_at = case when generation = $5 then $4 else least(due_at, $4) end, leased_until = null, details = details || $7,
            attempts = case when $8 then 0 else attempts end
      where ${key} and leased_until = $6`,
    [kind, merchantId, subjectId, timeParameter(dueAt), generation, timeParameter(leasedUntil!), storableJson(details), well],
  )
}

/** True when it had not begun. */
export async function cancelDue(db: Connection, kind: string, merchantId: string, subjectId: string): Promise<boolean> {
  const { rowCount } = await db.query(`delete from due_work where ${key}`, [kind, merchantId, subjectId])
  return rowCount === 1
}

/** Moves a merchant's business time forward: everything that waits must come nearer by as much. */
export async function moveClock(db: Connection, merchantId: string, milliseconds: number): Promise<void> {
  await db.query('update entities set clock_offset_ms = clock_offset_ms + $2 where id = $1', [merchantId, milliseconds])
}

export async function moveDue(db: Connection, merchantId: string, milliseconds: number): Promise<void> {
  await db.query(`update due_work set due_at = due_at - $2 * interval '1 millisecond' where merchant_id = $1`, [
    merchantId,
    milliseconds,
  ])
}

/** What was tried again and again, of some merchants, the oldest first. What it holds is for whoever does it. */
export async function findTroubled(
  db: Connection,
  merchantIds: readonly string[],
  attemptsLeast: number,
  limit: number,
): Promise<Omit<DueItem, 'details'>[]> {
  const { rows } = await db.query<DueItem>(
    `select ${columns} from due_work d where merchant_id = any ($1) and attempts >= $2 order by attempts desc, due_at limit $3`,
    [merchantIds, attemptsLeast, limit],
  )
  return rows.map(({ details: _, ...item }) => item)
}

export type MeasuredWork = {
  readonly kind: string
  readonly due: number
  /** For how long the oldest that is due has waited, in milliseconds. */
  readonly oldest: number
  /** Tried five times or more. */
  readonly failing: number
}

/** Of the first 10,000 that are due, or will be within ten minutes, as all are that failed and are tried on. Read from the index by time. */
export async function measureWork(db: Connection, now: number): Promise<MeasuredWork[]> {
  const { rows } = await db.query<MeasuredWork>(
    `select kind, count(*) filter (where due_at <= $1) as due,
            greatest(0, coalesce(extract(epoch from $1 - min(due_at)) * 1000, 0))::bigint as oldest, count(*) filter (where attempts >= 5) as failing
       from (select kind, due_at, attempts from due_work where due_at <= $2 and ${servedHere()} order by due_at limit 10000) first group by kind`,
    [timeParameter(now), timeParameter(now + backOffMost)],
  )
  return rows
}

/** Whether something of this kind is still to be done for the subject. */
export async function hasDue(db: Connection, kind: string, merchantId: string, subjectId: string): Promise<boolean> {
  const { rowCount } = await db.query(`select 1 from due_work where ${key}`, [kind, merchantId, subjectId])
  return rowCount === 1
}

/** What is still to be done about some subjects of a merchant, the first due first. */
export async function dueAbout(
  db: Connection,
  merchantId: string,
  kinds: readonly string[],
  subjectIds: readonly string[],
): Promise<Pick<DueItem, 'kind' | 'subjectId' | 'dueAt' | 'attempts'>[]> {
  const { rows } = await db.query(
    `select d.kind, d.subject_id as "subjectId", d.due_at as "dueAt", d.attempts from due_work d
      where d.kind = any ($1) and d.merchant_id = $2 and d.subject_id = any ($3) order by d.due_at`,
    [kinds, merchantId, subjectIds],
  )
  return rows
}
