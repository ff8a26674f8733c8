// Sessions of staff: begun with a new id by whoever proved who it is, found by what the browser's cookie holds, ended by time or by hand.

import { isDeepStrictEqual } from 'node:util'
import { whoeverActed } from '../audit/dismissed.ts'
import type { Actor, AuditAction } from '../audit/entry.ts'
import { knownBrands } from '../contract/brands.ts'
import { beginningOf, maskCardNumbers } from '../contract/cardNumbers.ts'
import { timeOrderedId } from '../platform/clock.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { keyedHashes } from '../vault/keys.ts'
import { makeBrowser } from './browsers.ts'
import { type Factors, type NotProven, proveFactors } from './factors.ts'
import { sessionHours } from './kept.ts'
import type { StaffParts } from './parts.ts'
import { type Role, roleMay, type StaffAction } from './permissions.ts'
import {
  dropLinksOf,
  endSession,
  findSession,
  insertSession,
  isSession,
  lockPeople,
  proveSession,
  type SessionRow,
  type SessionWithPerson,
  touchSession,
} from './store.ts'
import { recordOfPerson } from './traces.ts'

export const idleMinutes = 15
/** So long both factors count as proven just now. */
export const provenMinutes = 5

/** Where somebody comes from, as a list of sessions shows it. */
export type Visitor = {
  readonly address: string
  readonly agent: string
  /** What the cookie of a session says that the browser had before: it ends when another begins there. */
  readonly cookie?: string
  /** What it was given when somebody signed in there before. */
  readonly browser?: string
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
  /** As the audit names whoever this is, and asks whether it is so still. */
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

/** What a browser is to hold: the one for this session, the other as long as browsers are known. Nothing else knows either. */
export type BegunSession = { readonly token: string; readonly browser?: string }

/** Inside a transaction, and told of. Who gives it to a browser ends what that had before, see endFormer. */
export async function beginSession(
  db: Connection,
  parts: StaffParts,
  staffId: string | null,
  { address, agent }: Visitor,
  action: AuditAction,
): Promise<BegunSession> {
  const { clock, random } = parts
  const now = clock.real()
  const token = random.bytes(32).toString('base64url')
  const id = timeOrderedId(now, random)
  const row = {
    id,
    staffId,
    begunAt: now,
    usedAt: now,
    provenAt: now,
    address,
    agent: beginningOf(maskCardNumbers(agent, knownBrands), 200),
  }
  await insertSession(db, hashesOf(parts, token)[0], row)
  await recordOfPerson(db, parts, staffId, { actor: actorOfStaff(staffId, address), action, details: { session: id } })
  return { token, ...(staffId !== null && { browser: makeBrowser(parts, staffId) }) }
}

/** For whoever proved both factors. */
export async function signIn(parts: StaffParts, factors: Factors, visitor: Visitor): Promise<BegunSession | NotProven> {
  const person = await proveFactors(parts, factors, visitor)
  if (typeof person === 'string') return person
  const begun = await inTransaction(parts.database.work, async db => {
    const [now] = await lockPeople(db, [person.id])
    // What was proven may have been taken away while it was looked at, and all sessions with it.
    return now?.password === person.password ? beginSession(db, parts, person.id, visitor, 'staffSignedIn') : 'wrong'
  })
  if (begun !== 'wrong') await endFormer(parts, visitor)
  return begun
}

/** Ends the session that a browser had, when another has begun there. In a transaction of its own: of two people neither waits for the other. */
export async function endFormer(parts: StaffParts, { address, cookie = '' }: Visitor): Promise<void> {
  const former = isToken(cookie) ? await findSession(parts.database.work, hashesOf(parts, cookie)) : undefined
  if (former) await endSessionOf(parts, former, actorOfStaff(former.staffId, address))
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
    by: {
      ...actorOfStaff(staffId, address),
      ...(staffId !== null && { isStill: (db: Connection) => isStill(db, { staffId, sessionId, role, entities }) }),
    },
    endsAt,
    // Who came by the link of a sandbox has no factors.
    isProven: staffId === null || clock.real() - found.provenAt < provenMinutes * 60_000,
    isWhole,
    merchants: directory.below(entities).flatMap(({ id, kind }) => (kind === 'merchant' ? [id] : [])),
    may: action => roleMay(staffId === null ? 'admin' : role, action),
    reaches,
  }
}

/** Signed in, with the role and the entities of when the request came; whoever takes one of these away waits for the end of the transaction. */
async function isStill(
  db: Connection,
  { staffId, sessionId, role, entities }: Pick<SignedIn, 'sessionId' | 'role' | 'entities'> & { readonly staffId: string },
): Promise<boolean> {
  const [person] = await lockPeople(db, [staffId])
  return person?.role === role && isDeepStrictEqual(person.entities, entities) && (await isSession(db, staffId, sessionId))
}

/**
 * What gives somebody another way in, in a transaction: whoever takes all ways in away waits for it, or it finds that the session is no more. Undefined then, and for
 * the developer of a sandbox.
 */
export const whileSignedIn = async <Value>(
  parts: StaffParts,
  { sessionId, staffId }: Pick<SignedIn, 'sessionId' | 'staffId'>,
  work: (db: Connection, staffId: string) => Promise<Value>,
): Promise<Value | undefined> =>
  staffId === null
    ? undefined
    : inTransaction(parts.database.work, async db => {
        await lockPeople(db, [staffId])
        return (await isSession(db, staffId, sessionId)) ? work(db, staffId) : undefined
      })

export const actorOfStaff = (staffId: string | null, address: string): Actor => ({
  kind: 'user',
  id: staffId ?? 'sandbox',
  address,
})

/** Ends one of the own sessions: this one, or another, which one that has ended itself does not. False when there is no such session. */
export const endOwnSession = (parts: StaffParts, { staffId, sessionId, by }: SignedIn, id: string): Promise<boolean> =>
  endSessionOf(parts, { id, staffId }, whoeverActed(by), sessionId)

const endSessionOf = (
  parts: StaffParts,
  { id, staffId }: Pick<SessionRow, 'id' | 'staffId'>,
  actor: Actor,
  sessionId = id,
): Promise<boolean> =>
  inTransaction(parts.database.work, async db => {
    if (staffId !== null) await lockPeople(db, [staffId])
    if (!(await isSession(db, staffId, sessionId)) || !(await endSession(db, staffId, id))) return false
    if (staffId !== null) await dropLinksOf(db, staffId) // one that was asked for in this session
    await recordOfPerson(db, parts, staffId, { actor, action: 'staffSignedOut', details: { session: id } })
    return true
  })
