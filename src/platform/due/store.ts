// Due work in the database: rows with a time and a short lease, taken by any number of processes.

import { type Connection, timeParameter } from '../database/connect.ts'
import { isServedHere, servedHere } from '../database/elsewhere.ts'
import { storableJson } from '../database/json.ts'
import type { DueShares } from './shares.ts'

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

/** What there is room for in a process that looks for work, and who has had how much of it. */
export type Wanted = {
  readonly kinds: readonly string[]
  readonly taking: Taking
  readonly limit: number
  readonly merchants: Rooms
  readonly sides: Rooms
  readonly ofMerchants: DueShares
  /** By `lineOf`. */
  readonly ofLines: DueShares
  /** Where the look before came to. */
  readonly behind: readonly WalkedPlace[]
}

/** The last merchant of a place that had anything of it. */
export type WalkedPlace = { readonly kind: string; readonly side: string; readonly merchantId: string }

export type TakenWork = {
  readonly items: readonly DueItem[]
  /** Where the next look goes on. */
  readonly cameTo: readonly WalkedPlace[]
}

/** What one merchant wants of one side. */
export const lineOf = ({ side, merchantId }: Pick<DueItem, 'side' | 'merchantId'>): string => `${merchantId} ${side}`

/** Places that are looked at one by one, their columns, and how much of one may be taken: `own` and `sides` never read what the other has, however much of it waits. */
const places: Readonly<Record<Taking, { readonly from: string; readonly columns: readonly string[]; readonly most: string }>> = {
  own: {
    from: `select kind, '' as side from unnest($4::text[]) as wanted (kind)`,
    columns: ['kind', 'side'],
    most: '$3::bigint',
  },
  // As many rows as there are sides, each found by one step of the index.
  sides: {
    from: `select kind, side from (
             with recursive waits (kind, side) as (
               select kind, (select min(w.side) from due_work w where w.kind = kinds.kind and w.side > '') from unnest($4::text[]) as kinds (kind)
               union all
               select kind, (select min(w.side) from due_work w where w.kind = waits.kind and w.side > waits.side) from waits where side is not null)
             select kind, side from waits where side <> all ($13::text[])) wanted`,
    columns: ['kind', 'side'],
    most: 'least($3::bigint, $9)',
  },
  all: { from: `select kind, '' as side from unnest($4::text[]) as wanted (kind)`, columns: ['kind'], most: '$3::bigint' },
}

/** What is left for those of a place that somebody has locked. */
const lockedMost = 16
/** Of one merchant no more is read to find what does not call a side that has no room. The database hears of it as of a question: for so many it would rather sort a small table. */
const readMost = 1000
/** So many steps a look makes from merchant to merchant, in all places together. One that leads to work that is due counts as many, for what is read there; one that
 * leads to a merchant who is served elsewhere, whose work waits until it is forgotten here, counts for none. */
const walkMost = 1000
const dueStep = 10
/** No merchant, but nobody, whose work it may have. */
const firstMerchant = '0'.repeat(32)

/**
 * Takes what is due for the length of a lease. Of each place the oldest are looked at, and where those may not be all, the oldest of the next merchants, found by
 * skipping through the index: a long backlog of one does not hide the others. However many they are, a look sees some of them, and the next goes on behind the last who
 * had anything. Of those whom it sees, at a side and of all, whoever has least under way comes first, then whoever has had nothing for longest, then who is next.
 */
export async function takeDue(
  db: Connection,
  now: number,
  { kinds, taking, limit, merchants, sides, ofMerchants, ofLines, behind }: Wanted,
): Promise<TakenWork> {
  const { from, columns: ofPlace, most } = places[taking]
  const full = ({ named }: Rooms) => [...named].filter(([, room]) => room <= 0).map(([name]) => name)
  const isFree = '(w.leased_until is null or w.leased_until < $1 or w.leased_until > $6)'
  const work = 'w.merchant_id, w.subject_id, w.due_at, w.side as at_side'
  // Compared and ordered by as rows, with all their columns: so no index but theirs is thought to do as well.
  const [here, there] = ['w', 'at'].map(name => ofPlace.map(column => `${name}.${column}`).join(', '))
  const { rows } = await db.query<DueItem & { cameTo: WalkedPlace[] }>({
    name: `take due work ${taking}`,
    text: `
      with recursive places as (${from}),
      oldest as (
        select at.kind, at.side, w.* from places at cross join lateral (
          select ${work} from due_work w
           where (${here}, w.due_at) >= (${there}, '-infinity') and (${here}, w.due_at) <= (${there}, $1) and ${isFree}
           order by ${here}, w.due_at limit ${most}) w),
      walked (kind, side, until, most, merchant_id, due, around, steps) as (
        select kind, side, behind.merchant_id, at.most, coalesce(behind.merchant_id, '${firstMerchant}'), behind.merchant_id is null, behind.merchant_id is null, 0::bigint
          from (select kind, side, ${walkMost} / count(*) over () as most from oldest group by kind, side having count(*) >= ${most}) at
          left join json_to_recordset($19) as behind (kind text, side text, merchant_id uuid) using (kind, side)
        union all
        select at.kind, at.side, at.until, at.most, coalesce(next.merchant_id, '${firstMerchant}'), coalesce(next.due_at <= $1 and next.here, true), at.around or next is null,
               at.steps + case when next.here is false then 0 when next.due_at > $1 then 1 else ${dueStep} end
          from walked at left join lateral (
            select w.merchant_id, w.due_at, ${isServedHere('w.merchant_id')} as here from (
              select w.kind, w.side, w.merchant_id, w.due_at from due_work w
               where (${here}, w.merchant_id) > (${there}, at.merchant_id) order by ${here}, w.merchant_id, w.due_at limit 1) w
             where (${here}) = (${there})) next on true
         where at.steps < at.most and not (at.around and coalesce(next.merchant_id > at.until, next is null))),
      found as (
        select kind, side, merchant_id, subject_id, due_at, at_side, min(steps) as steps from (
          select *, ${walkMost}::bigint * ${dueStep} as steps from oldest
          union all
          select at.kind, at.side, w.*, at.steps from walked at cross join lateral (
            select w.merchant_id, w.subject_id, w.due_at, w.at_side from (
              select w.kind, w.side, ${work} from due_work w
               where (${here}, w.merchant_id, w.due_at) >= (${there}, at.merchant_id, '-infinity')
                 and (${here}, w.merchant_id, w.due_at) <= (${there}, at.merchant_id, $1) and ${isFree}
               order by ${here}, w.merchant_id, w.due_at limit (select ${readMost})) w
             where w.at_side <> all ($13::text[]) order by ${here}, w.merchant_id, w.due_at limit $12) w
           where at.due and at.merchant_id <> all ($5::uuid[])) one
         group by kind, side, merchant_id, subject_id, due_at, at_side),
      ranked as (
        select found.*, coalesce(line.turn, 0) as turn,
               coalesce(line.running, 0) + row_number() over (partition by at_side, found.merchant_id order by due_at) as of_line
          from found left join unnest($14::text[], $15::uuid[], $16::int[], $17::bigint[]) as line (side, merchant_id, running, turn)
            on line.side = at_side and line.merchant_id = found.merchant_id
         where at_side <> all ($13::text[]) and found.merchant_id <> all ($5::uuid[]) and ${servedHere('found.merchant_id')}),
      locked as (
        select first.*, w.place
          from (select *, row_number() over (partition by kind, side order by of_line, turn, steps, due_at) as of_place from ranked) first cross join lateral (
            select w.ctid as place from due_work w
             where w.kind = first.kind and w.merchant_id = first.merchant_id and w.subject_id = first.subject_id and w.due_at <= $1 and ${isFree}
               for update skip locked) w
         where of_place <= ${most} + ${lockedMost}),
      of_sides as (
        select * from (
          select *, case at_side when '' then 1 else row_number() over (partition by at_side order by of_line, turn, of_place, due_at) end as of_side from locked) one
         where at_side = '' or of_side <= coalesce((select room from unnest($7::text[], $8::int[]) as of_one (name, room) where name = at_side), $9)),
      of_merchants as (
        select of_sides.*, coalesce(merchant.room, $12) as room, coalesce(merchant.turn, 0) as merchants_turn,
               row_number() over (partition by merchant_id order by of_side, due_at) as of_merchant
          from of_sides left join unnest($10::uuid[], $11::int[], $18::bigint[]) as merchant (id, room, turn) on merchant.id = merchant_id),
      chosen as (
        select * from of_merchants where of_merchant <= room order by of_merchant - room, merchants_turn, of_side, of_place, due_at limit $3),
      taken as (
        update due_work set leased_until = $2, attempts = attempts + 1, generation = generation + 1
         where ctid = any (array(select place from chosen))
        returning *),
      came_to as (
        select distinct on (at.kind, at.side) at.kind, at.side,
               case when chosen.kind is null and exists (select from ranked where ranked.kind = at.kind and ranked.side = at.side and ranked.steps <= at.steps)
                    then at.until else at.merchant_id end as "merchantId"
          from walked at left join chosen on chosen.kind = at.kind and chosen.side = at.side and chosen.merchant_id = at.merchant_id and chosen.steps = at.steps
         order by at.kind, at.side, chosen.kind is null, at.steps desc)
      select ${columns}, (select coalesce(json_agg(came_to), '[]') from came_to where "merchantId" is not null) as "cameTo"
        from (values (1)) one left join taken d on true`,
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
      full(sides),
      ...linesIn(ofLines),
      [...merchants.named.keys()].map(id => ofMerchants.get(id)?.turn ?? 0),
      JSON.stringify(behind.map(({ kind, side, merchantId }) => ({ kind, side, merchant_id: merchantId }))),
    ],
  })
  const items = rows.map(({ cameTo: _, ...item }) => item).filter(({ kind }) => kind !== null)
  return { items: items.sort((a, b) => a.dueAt - b.dueAt), cameTo: rows[0]!.cameTo }
}

/** Sides, merchants, what of them is under way, and their turns. */
function linesIn(lines: DueShares): unknown[][] {
  const names = [...lines.keys()].map(name => [name.slice(name.indexOf(' ') + 1), name.slice(0, name.indexOf(' '))])
  const shares = [...lines.values()]
  return [
    names.map(([side]) => side),
    names.map(([, merchantId]) => merchantId),
    shares.map(({ running }) => running),
    shares.map(({ turn }) => turn),
  ]
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
