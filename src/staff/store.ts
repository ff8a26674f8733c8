// Staff, their sessions and links in the database.

import { isId } from '../platform/clock.ts'
import { type Connection, timeParameter } from '../platform/database/connect.ts'
import type { Role } from './permissions.ts'

export type Person = {
  readonly id: string
  /** An e-mail address in lower case. */
  readonly name: string
  readonly role: Role
  /** For which somebody acts, and for all below them. */
  readonly entities: readonly string[]
  /** Absent until a link was used. */
  readonly password: string | null
  readonly sealedTotp: Buffer | null
  /** Who of the staff made the link by which the factors were set, and so could have used it. */
  readonly factorsBy: string | null
  readonly madeAt: number
}

const unhyphened = (ids: readonly string[]) => ids.map(id => id.replaceAll('-', ''))
const columns = `id, name, role, array_to_json(entities) as entities, password, sealed_totp as "sealedTotp", factors_by as "factorsBy", made_at as "madeAt"`
const personOf = (row: Person): Person => ({ ...row, entities: unhyphened(row.entities) })

/** False when the name is taken. */
export async function insertPerson(db: Connection, { id, name, role, entities, madeAt }: Person): Promise<boolean> {
  const { rowCount } = await db.query(
    'insert into staff (id, name, role, entities, made_at) values ($1, $2, $3, $4, $5) on conflict do nothing',
    [id, name, role, entities, timeParameter(madeAt)],
  )
  return rowCount === 1
}

export async function findPerson(db: Connection, by: 'id' | 'name', value: string): Promise<Person | undefined> {
  const { rows } = await db.query<Person>(`select ${columns} from staff where ${by} = $1 and removed_at is null`, [value])
  return rows[0] && personOf(rows[0])
}

/**
 * Until the transaction ends nobody changes these. Always locked before links, sessions and keys of theirs, all at once and so in one order, and before the end of the
 * audit; but behind whatever else an act is about.
 */
export async function lockPeople(db: Connection, ids: readonly string[]): Promise<Person[]> {
  const { rows } = await db.query<Person>(
    `select ${columns} from staff where id = any ($1) and removed_at is null order by id for update`,
    [ids],
  )
  return rows.map(personOf)
}

/** Who could have used the link by which somebody set the factors, whether that one works here still or not. */
export async function findFactorsBy(db: Connection, id: string): Promise<string | null | undefined> {
  const { rows } = await db.query<Pick<Person, 'factorsBy'>>('select factors_by as "factorsBy" from staff where id = $1', [id])
  return rows[0]?.factorsBy
}

/** Who acts for one of some entities, or did. */
export async function countPeople(db: Connection, entities: readonly string[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from staff where entities && $1::uuid[]', [entities])
  return rows[0]!.count
}

/** Who works here: those who act for some entities and for no others, or all. */
export async function listStaff(db: Connection, within?: readonly string[]): Promise<Person[]> {
  const { rows } = await db.query<Person>(
    `select ${columns} from staff where removed_at is null ${within ? 'and entities <@ $1::uuid[]' : ''} order by name`,
    within && [within],
  )
  return rows.map(personOf)
}

/** All who act for the same as somebody does, and those who did. */
export async function findColleagues(db: Connection, id: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select one.id from staff one join staff me on me.id = $1 and one.entities <@ me.entities and me.entities <@ one.entities',
    [id],
  )
  return rows.map(({ id }) => id)
}

/** Names by id, also of those who left, for whoever reads traces: of actors, who need not be people. */
export async function namesOfStaff(db: Connection, actors: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(actors)].filter(isId)
  const { rows } = await db.query<{ id: string; name: string }>('select id, name from staff where id = any ($1)', [ids])
  return new Map(rows.map(({ id, name }) => [id, name]))
}

export async function changePerson(db: Connection, id: string, role: Role, entities: readonly string[]): Promise<void> {
  await db.query('update staff set role = $2, entities = $3 where id = $1', [id, role, entities])
}

export async function removePerson(db: Connection, id: string, now: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `update staff set removed_at = $2, password = null, sealed_totp = null where id = $1 and removed_at is null`,
    [id, timeParameter(now)],
  )
  return rowCount === 1
}

/** `factors`: absent takes them away. */
export async function setFactors(
  db: Connection,
  id: string,
  factors?: {
    readonly password: string
    readonly sealedTotp: Buffer
    readonly step: number
    readonly recovery: readonly Buffer[]
    /** Null: it was by no other's link; what was known before stays. */
    readonly by: string | null
  },
): Promise<void> {
  await db.query(
    `update staff set password = $2, sealed_totp = $3, totp_step = greatest(totp_step, $4), factors_by = coalesce($5, factors_by) where id = $1`,
    [id, factors?.password ?? null, factors?.sealedTotp ?? null, factors?.step ?? 0, factors?.by ?? null],
  )
  await db.query('delete from recovery_codes where staff_id = $1', [id])
  await db.query('delete from passkeys where staff_id = $1', [id])
  if (factors)
    await db.query('insert into recovery_codes (staff_id, hash) select $1, unnest($2::bytea[])', [id, factors.recovery])
}

/** False when a code of this half minute or a later one was taken already. */
export async function takeStep(db: Connection, id: string, step: number): Promise<boolean> {
  const { rowCount } = await db.query('update staff set totp_step = $2 where id = $1 and totp_step < $2', [id, step])
  return rowCount === 1
}

export async function takeRecoveryCode(db: Connection, id: string, hash: Buffer): Promise<boolean> {
  const { rowCount } = await db.query('delete from recovery_codes where staff_id = $1 and hash = $2', [id, hash])
  return rowCount === 1
}

export async function countRecoveryCodes(db: Connection, id: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from recovery_codes where staff_id = $1', [id])
  return rows[0]!.count
}

export type StaffLinkRow = {
  /** Null: the door of a sandbox. */
  readonly staffId: string | null
  /** Another of the staff. */
  readonly madeBy: string | null
}

export async function insertLink(
  db: Connection,
  hash: Buffer,
  { staffId, madeBy, endsAt }: StaffLinkRow & { readonly endsAt: number },
): Promise<void> {
  await db.query('insert into staff_links (hash, staff_id, made_by, ends_at) values ($1, $2, $3, $4)', [
    hash,
    staffId,
    madeBy,
    timeParameter(endsAt),
  ])
}

export async function findLink(
  db: Connection,
  hashes: readonly Buffer[],
  now: number,
): Promise<(StaffLinkRow & { readonly hash: Buffer }) | undefined> {
  const { rows } = await db.query<StaffLinkRow & { readonly hash: Buffer }>(
    'select hash, staff_id as "staffId", made_by as "madeBy" from staff_links where hash = any ($1) and ends_at > $2',
    [hashes, timeParameter(now)],
  )
  return rows[0]
}

/** Of two that use it at a time, one gets it. */
export async function takeLink(db: Connection, hashes: readonly Buffer[], now: number): Promise<StaffLinkRow | undefined> {
  const { rows } = await db.query<StaffLinkRow>(
    'delete from staff_links where hash = any ($1) and ends_at > $2 returning staff_id as "staffId", made_by as "madeBy"',
    [hashes, timeParameter(now)],
  )
  return rows[0]
}

export async function dropLinksOf(db: Connection, staffId: string): Promise<void> {
  await db.query('delete from staff_links where staff_id = $1', [staffId])
}

/** Those that somebody made for others, whose tokens he has seen. */
export async function dropLinksBy(db: Connection, madeBy: string): Promise<void> {
  await db.query('delete from staff_links where made_by = $1', [madeBy])
}

export type SessionRow = {
  readonly id: string
  readonly staffId: string | null
  readonly begunAt: number
  readonly usedAt: number
  readonly provenAt: number
  readonly address: string
  readonly agent: string
}

/** A session with whose it is; nobody's is a sandbox's. */
export type SessionWithPerson = SessionRow & Partial<Pick<Person, 'name' | 'role' | 'entities'>>

const sessionColumns = `s.id, s.staff_id as "staffId", s.begun_at as "begunAt", s.used_at as "usedAt", s.proven_at as "provenAt", s.address, s.agent`

export async function insertSession(
  db: Connection,
  hash: Buffer,
  { id, staffId, begunAt, address, agent }: SessionRow,
): Promise<void> {
  await db.query(
    `insert into staff_sessions (hash, id, staff_id, begun_at, used_at, proven_at, address, agent) values ($1, $2, $3, $4, $4, $4, $5, $6)`,
    [hash, id, staffId, timeParameter(begunAt), address, agent],
  )
}

/** Sessions of people who were removed are gone with them. */
export async function findSession(db: Connection, hashes: readonly Buffer[]): Promise<SessionWithPerson | undefined> {
  const { rows } = await db.query<SessionWithPerson & { entities: readonly string[] | null }>({
    name: 'find staff session',
    text: `select ${sessionColumns}, p.name, p.role, array_to_json(p.entities) as entities
             from staff_sessions s left join staff p on p.id = s.staff_id and p.removed_at is null
            where s.hash = any ($1) and (s.staff_id is null or p.id is not null)`,
    values: [hashes],
  })
  const [found] = rows
  return found && { ...found, entities: unhyphened(found.entities ?? []) }
}

export async function touchSession(db: Connection, id: string, now: number): Promise<void> {
  await db.query('update staff_sessions set used_at = $2 where id = $1', [id, timeParameter(now)])
}

export async function proveSession(db: Connection, id: string, now: number): Promise<void> {
  await db.query('update staff_sessions set proven_at = $2 where id = $1', [id, timeParameter(now)])
}

/** Newest first. `staffId` null: those of a sandbox's developers. */
export async function listSessions(db: Connection, staffId: string | null, begunSince: number): Promise<SessionRow[]> {
  const { rows } = await db.query<SessionRow>(
    `select ${sessionColumns} from staff_sessions s where s.staff_id is not distinct from $1::uuid and s.begun_at >= $2 order by s.begun_at desc`,
    [staffId, timeParameter(begunSince)],
  )
  return rows
}

export async function isSession(db: Connection, staffId: string | null, id: string): Promise<boolean> {
  const ofStaff = 'select from staff_sessions where staff_id is not distinct from $1::uuid and id = $2'
  return (await db.query(ofStaff, [staffId, id])).rowCount === 1
}

/** True when there was such a session of this person. */
export async function endSession(db: Connection, staffId: string | null, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from staff_sessions where staff_id is not distinct from $1::uuid and id = $2', [
    staffId,
    id,
  ])
  return rowCount === 1
}

export async function endSessionsOf(db: Connection, staffId: string): Promise<void> {
  await db.query('delete from staff_sessions where staff_id = $1', [staffId])
}

/** Counts an attempt of a subject and returns how many it has had since `cutOff`. */
export async function countSignIn(db: Connection, subject: string, now: number, cutOff: number): Promise<number> {
  const { rows } = await db.query<{ attempts: number }>(
    `insert into sign_in_attempts as counted (subject, since, attempts) values ($1, $2, 1)
     on conflict (subject) do update set
       attempts = case when counted.since < $3 then 1 else counted.attempts + 1 end,
       since = case when counted.since < $3 then excluded.since else counted.since end
     returning attempts`,
    [subject, timeParameter(now), timeParameter(cutOff)],
  )
  return rows[0]!.attempts
}

/** Somebody proved who it was: the attempts were no guesses. */
export async function forgetAttempts(db: Connection, subject: string): Promise<void> {
  await db.query('delete from sign_in_attempts where subject = $1', [subject])
}

/** One of the attempts of a network was none. */
export async function forgiveAttempt(db: Connection, network: string): Promise<void> {
  await db.query('update sign_in_attempts set attempts = attempts - 1 where subject = $1', [network])
}
