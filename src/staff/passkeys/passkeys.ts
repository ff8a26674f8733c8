// Passkeys of the staff: made by somebody who has just proven both factors, and as good as both: the device is one, and whoever unlocks it the other. A challenge
// is stored nowhere until it was answered rightly, so that nobody fills a table by asking.

import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { attempterAt, attemptSourceOf, countAttemptFrom, forgiveCounted, type NotProven, signInAttemptsMost } from '../factors.ts'
import { attemptsMinutes } from '../kept.ts'
import type { StaffParts } from '../parts.ts'
import { makeProof, readProof } from '../proofs.ts'
import { type BegunSession, beginSession, endFormer, type SignedIn, type Visitor, whileSignedIn } from '../sessions.ts'
import { countSignIn, forgiveAttempt, proveSession } from '../store.ts'
import { recordOfPerson } from '../traces.ts'
import { deletePasskey, insertPasskey, lockPasskey, markUsed, type Passkey, takeChallenge } from './store.ts'
import {
  challengeOf,
  isPasskeyId,
  type RelyingParty,
  readCredential,
  readMade,
  readSigned,
  type SentCredential,
} from './webauthn.ts'

export const passkeysMost = 10
const challengeMinutes = 10

export type PasskeyParts = StaffParts & { publicUrl(): string }

/** What keys are bound to; undefined where browsers make none: not under a number, and not without TLS but on this machine. */
export function relyingParty({ publicUrl }: Pick<PasskeyParts, 'publicUrl'>): RelyingParty | undefined {
  const { hostname, origin, protocol } = new URL(publicUrl())
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  return !isAddress && (protocol === 'https:' || hostname === 'localhost') ? { id: hostname, origin } : undefined
}

/** For `signIn`, or for making a key with the id of whoever makes it. Base64url. */
export const makeChallenge = (parts: StaffParts, purpose: string): string =>
  makeProof(parts, `passkey ${purpose}`, parts.random.bytes(16).toString('hex'), challengeMinutes * 60_000)

/** When it ends, if it is ours, for this, and not too old. */
const endOfChallenge = (parts: StaffParts, purpose: string, challenge: string): number | undefined =>
  readProof(parts, `passkey ${purpose}`, challenge)?.ends

const answered = (db: Connection, challenge: string, ends: number): Promise<boolean> =>
  takeChallenge(db, hash('sha256', challenge, 'buffer'), ends)

/** Gives somebody a key under a name. False when it is not as it must be, known already, or one too many. */
export async function addPasskey(parts: PasskeyParts, signedIn: SignedIn, name: string, text: string): Promise<boolean> {
  const { staffId, by } = signedIn
  const party = relyingParty(parts)
  const credential = readCredential(text)
  if (!party || !credential || staffId === null) return false
  const challenge = challengeOf(credential)
  const ends = endOfChallenge(parts, `make ${staffId}`, challenge)
  const made = ends !== undefined && readMade(credential, challenge, party)
  if (!made) return false
  const isAdded = await whileSignedIn(parts, signedIn, async db => {
    if (!(await answered(db, challenge, ends))) return false
    if (!(await insertPasskey(db, { ...made, staffId, name, madeAt: parts.clock.real() }, passkeysMost))) return false
    await recordOfPerson(db, parts, staffId, { actor: by, action: 'passkeyMade', details: { name } })
    return true
  })
  return isAdded === true
}

export async function removePasskey(parts: PasskeyParts, signedIn: SignedIn, id: string): Promise<boolean> {
  const isRemoved = await whileSignedIn(parts, signedIn, async (db, staffId) => {
    const name = isPasskeyId(id) ? await deletePasskey(db, staffId, id) : undefined
    if (name === undefined) return false
    await recordOfPerson(db, parts, staffId, { actor: signedIn.by, action: 'passkeyRemoved', details: { name } })
    return true
  })
  return isRemoved === true
}

/** For whoever has a key that signs. Attempts from somewhere are counted with those of passwords, before anything is looked at. */
export async function signInByPasskey(parts: PasskeyParts, text: string, visitor: Visitor): Promise<BegunSession | NotProven> {
  const { address, isGone } = visitor
  const source = attemptSourceOf(parts, visitor)
  const used = await parts.attempts.inTurn({ ...attempterAt(source), ...(isGone && { isGone }) }, async () => {
    const counted = await countAttemptFrom(parts, source)
    if (!counted) return 'wait'
    const looked = await usePasskey(parts, text, address, undefined, (db, { staffId }) =>
      beginSession(db, parts, staffId, visitor, 'staffSignedIn'),
    )
    if (typeof looked !== 'string') await forgiveCounted(parts, source, counted)
    return looked
  })
  if (typeof used === 'string') return used
  await endFormer(parts, visitor)
  return used.done
}

/** Proves both factors again, for what asks for that. */
export async function proveByPasskey(
  parts: PasskeyParts,
  signedIn: SignedIn,
  text: string,
): Promise<'proven' | 'wrong' | 'wait'> {
  const { by, staffId, sessionId } = signedIn
  const { clock, database } = parts
  const guesser = `session ${sessionId}`
  const now = clock.real()
  const attempts = await countSignIn(database.signIns, guesser, now, now - attemptsMinutes * 60_000)
  if (attempts > signInAttemptsMost.user) return 'wait'
  const used = await usePasskey(parts, text, by.address, staffId, db => proveSession(db, sessionId, clock.real()))
  if (typeof used === 'string') return used
  await forgiveAttempt(database.work, guesser)
  return 'proven'
}

/** `staffId`: whose the key must be, if that is known. */
async function usePasskey<Done>(
  parts: PasskeyParts,
  text: string,
  address: string,
  staffId: string | null | undefined,
  then: (db: Connection, passkey: Passkey) => Promise<Done>,
): Promise<{ done: Done } | 'wrong' | 'wait'> {
  const party = relyingParty(parts)
  const credential = readCredential(text)
  const challenge = credential ? challengeOf(credential) : ''
  const ends = endOfChallenge(parts, 'signIn', challenge)
  const used = party && credential && ends !== undefined && (await use(parts, credential, challenge, ends, party, staffId, then))
  if (used) return used
  return (await parts.failures.count({ address, credential: 'staff:passkey' }, parts.clock.real())) ? 'wait' : 'wrong'
}

const use = <Done>(
  parts: PasskeyParts,
  credential: SentCredential,
  challenge: string,
  ends: number,
  party: RelyingParty,
  staffId: string | null | undefined,
  then: (db: Connection, passkey: Passkey) => Promise<Done>,
): Promise<{ done: Done } | undefined> =>
  inTransaction(parts.database.work, async db => {
    const passkey = await lockPasskey(db, credential.id)
    if (!passkey || (staffId !== undefined && passkey.staffId !== staffId)) return undefined
    const counter = readSigned(credential, challenge, party, passkey)
    if (counter === undefined || !(await answered(db, challenge, ends))) return undefined
    await markUsed(db, passkey.id, counter, parts.clock.real())
    return { done: await then(db, passkey) }
  })
