// Sessions of staff: begun with a new id by whoever proved who it is, found by what the browser's cookie holds, ended by time or by hand.

import { record } from '../audit/chain.ts'
import type { Actor, AuditAction } from '../audit/entry.ts'
import { timeOrderedId } from '../platform/clock.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { keyedHashes } from '../vault/keys.ts'
import { type Factors, type NotProven, proveFactors } from './factors.ts'
import { sessionHours } from './kept.ts'
import type { StaffParts } from './parts.ts'
import { type Role, roleMay, type StaffAction } from './permissions.ts'
import {
  dropLinksOf,
  type EndedSession,
  endSession,
  findSession,
  insertSession,
  proveSession,
  type SessionWithPerson,
  takeSession,
  touchSession,
} from './store.ts'

export const idleMinutes = 15
/** So long both factors count as proven just now. */
export const provenMinutes = 5

/** Where somebody comes from, as a list of sessions shows it. */
export type Visitor = {
  readonly address: string
  readonly agent: string
  /** What the cookie of a session says that the browser had before: it ends when another begins there. */
  readonly cookie?: string
  /** Nobody is there any more. */
  isGone?(): boolean
}

/** Somebody who signed in, and what that allows. */
export type SignedIn = {
  readonly sessionId: string
  /** Null: the developer of a sandbox, who came by its link. */
  readonly staffId: string | null
  readonly name: string
  readonly role: Role
  /** For which somebody acts, and for all below them. */
  readonly entities: readonly string[]
  /** As the audit names whoever this is. */
  readonly by: Actor
  /** Real time, milliseconds: whatever goes on longer than a request ends then. */
  readonly endsAt: number
  /** Both factors were proven in the last minutes. */
  readonly isProven: boolean
  /** Acts for a PSP: sees also what belongs to no merchant. */
  readonly isWhole: boolean
  /** The merchants within reach. */
  readonly merchants: readonly string[]
  may(action: StaffAction): boolean
  reaches(entityId: string): boolean
}

export const begunSince = (now: number): number => now - sessionHours * 3_600_000
/** Stands in the place of a merchant where there is none. */
const ofNoMerchant = '0'.repeat(32)
const isToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)
const hashesOf = ({ keys }: StaffParts, token: string) => keyedHashes(keys, 'staff session', token)

/** Inside a transaction, and told of. Returns what the browser's cookie is to hold; nothing else knows it. */
export async function beginSession(
  db: Connection,
  parts: StaffParts,
  staffId: string | null,
  { address, agent, cookie = '' }: Visitor,
  action: AuditAction,
): Promise<string> {
  const { clock, random } = parts
  const before = isToken(cookie) ? await takeSession(db, hashesOf(parts, cookie)) : undefined
  if (before) await toldEnded(db, parts, before, actorOfStaff(before.staffId, address))
  const now = clock.real()
  const token = random.bytes(32).toString('base64url')
  const id = timeOrderedId(now, random)
  const row = { id, staffId, begunAt: now, usedAt: now, provenAt: now, address, agent: agent.slice(0, 200) }
  await insertSession(db, hashesOf(parts, token)[0], row)
  await record(db, parts, [{ actor: actorOfStaff(staffId, address), action, subject: staffId ?? '', details: { session: id } }])
  return token
}

/** The cookie's value for whoever proved both factors. */
export async function signIn(parts: StaffParts, factors: Factors, visitor: Visitor): Promise<{ token: string } | NotProven> {
  const person = await proveFactors(parts, factors, visitor)
  if (typeof person === 'string') return person
  return {
    token: await inTransaction(parts.database.work, db => beginSession(db, parts, person.id, visitor, 'staffSignedIn')),
  }
}

/** Proves both factors again, for what asks for that. */
export async function proveAgain(
  parts: StaffParts,
  signedIn: SignedIn,
  sent: Omit<Factors, 'name'>,
  visitor: Visitor,
): Promise<'proven' | NotProven> {
  const { name, sessionId } = signedIn
  const person = await proveFactors(parts, { ...sent, name }, visitor, sessionId)
  if (typeof person === 'string') return person
  await proveSession(parts.database.work, sessionId, parts.clock.real())
  return 'proven'
}

/** Whose a cookie is. `isUse`: somebody did something, so that the session goes on; pages that ask again by themselves do not. */
export async function findSignedIn(
  parts: StaffParts,
  token: string,
  address: string,
  isUse: boolean,
): Promise<SignedIn | undefined> {
  if (!isToken(token)) return undefined
  const { clock, database } = parts
  const found = await findSession(database.work, hashesOf(parts, token))
  const now = clock.real()
  if (!found || (found.staffId === null && !parts.sandbox)) return undefined
  const endsAt = Math.min(
    found.begunAt + sessionHours * 3_600_000,
    found.staffId === null ? Infinity : found.usedAt + idleMinutes * 60_000,
  )
  if (now >= endsAt) return undefined
  if (isUse && now - found.usedAt >= 60_000) await touchSession(database.work, found.id, now)
  return signedInOf(parts, found, endsAt, address)
}

function signedInOf({ directory, clock }: StaffParts, found: SessionWithPerson, endsAt: number, address: string): SignedIn {
  const { id: sessionId, staffId, name = 'sandbox', role = 'admin' } = found
  const isPsp = (id: string) => directory.entity(id)?.kind === 'psp'
  const entities = staffId === null ? directory.entities().flatMap(({ id }) => (isPsp(id) ? [id] : [])) : found.entities!
  const isWhole = entities.some(isPsp)
  const reaches = (id: string) => (id === ofNoMerchant ? isWhole : directory.lineage(id).some(one => entities.includes(one)))
  return {
    sessionId,
    staffId,
    name: staffId === null ? 'sandbox' : name,
    role: staffId === null ? 'admin' : role,
    entities,
    by: actorOfStaff(staffId, address),
    endsAt,
    // Who came by the link of a sandbox has no factors.
    isProven: staffId === null || clock.real() - found.provenAt < provenMinutes * 60_000,
    isWhole,
    merchants: directory.below(entities).flatMap(({ id, kind }) => (kind === 'merchant' ? [id] : [])),
    may: action => roleMay(staffId === null ? 'admin' : role, action),
    reaches,
  }
}

export const actorOfStaff = (staffId: string | null, address: string): Actor => ({
  kind: 'user',
  id: staffId ?? 'sandbox',
  address,
})

/** Ends one of the own sessions: this one, or another. False when there is no such session. */
export const endOwnSession = (parts: StaffParts, { staffId, by }: SignedIn, id: string): Promise<boolean> =>
  inTransaction(parts.database.work, async db => {
    if (!(await endSession(db, staffId, id))) return false
    await toldEnded(db, parts, { id, staffId }, by)
    return true
  })

async function toldEnded(db: Connection, parts: StaffParts, { id, staffId }: EndedSession, actor: Actor): Promise<void> {
  if (staffId !== null) await dropLinksOf(db, staffId) // one that was asked for in this session
  await record(db, parts, [{ actor, action: 'staffSignedOut', subject: staffId ?? '', details: { session: id } }])
}
