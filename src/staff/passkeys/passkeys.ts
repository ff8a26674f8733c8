// Passkeys of the staff: made by somebody who has just proven both factors, and as good as both: the device is one, and whoever unlocks it the other. A challenge
// is stored nowhere until it was answered rightly, so that nobody fills a table by asking.

import { hash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { record } from '../../audit/chain.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { keyedHashes } from '../../vault/keys.ts'
import { attempterAt, countOfNetworks, forgiveNetworks, type NotProven, signInAttemptsMost } from '../factors.ts'
import { attemptsMinutes } from '../kept.ts'
import type { StaffParts } from '../parts.ts'
import { beginSession, type SignedIn, type Visitor } from '../sessions.ts'
import { countSignIn, forgiveAttempt, proveSession } from '../store.ts'
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
const [chanceBytes, timeBytes, proofBytes] = [16, 6, 16]

export type PasskeyParts = StaffParts & { publicUrl(): string }

/** What keys are bound to; undefined where browsers make none: not under a number, and not without TLS but on this machine. */
export function relyingParty({ publicUrl }: Pick<PasskeyParts, 'publicUrl'>): RelyingParty | undefined {
  const { hostname, origin, protocol } = new URL(publicUrl())
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  return !isAddress && (protocol === 'https:' || hostname === 'localhost') ? { id: hostname, origin } : undefined
}

/** For `signIn`, or for making a key with the id of whoever makes it. Base64url. */
export function makeChallenge(parts: StaffParts, purpose: string): string {
  const ends = Buffer.alloc(timeBytes)
  ends.writeUIntBE(parts.clock.real() + challengeMinutes * 60_000, 0, timeBytes)
  const said = Buffer.concat([parts.random.bytes(chanceBytes), ends])
  return Buffer.concat([said, proofsOf(parts, purpose, said)[0]!]).toString('base64url')
}

const proofsOf = ({ keys }: StaffParts, purpose: string, said: Buffer): readonly Buffer[] =>
  keyedHashes(keys, 'passkey challenge', `${purpose} ${said.toString('hex')}`).map(proof => proof.subarray(0, proofBytes))

/** When it ends, if it is ours, for this, and not too old. */
function endOfChallenge(parts: StaffParts, purpose: string, challenge: string): number | undefined {
  const bytes = Buffer.from(challenge, 'base64url')
  // In one spelling alone: what was answered is known by it.
  if (bytes.length !== chanceBytes + timeBytes + proofBytes || bytes.toString('base64url') !== challenge) return undefined
  const [said, proof] = [bytes.subarray(0, chanceBytes + timeBytes), bytes.subarray(chanceBytes + timeBytes)]
  if (!proofsOf(parts, purpose, said).some(one => timingSafeEqual(one, proof))) return undefined
  const ends = said.readUIntBE(chanceBytes, timeBytes)
  return parts.clock.real() < ends ? ends : undefined
}

const answered = (db: Connection, challenge: string, ends: number): Promise<boolean> =>
  takeChallenge(db, hash('sha256', challenge, 'buffer'), ends)

/** Gives somebody a key under a name. False when it is not as it must be, known already, or one too many. */
export async function addPasskey(parts: PasskeyParts, { staffId, by }: SignedIn, name: string, text: string): Promise<boolean> {
  const party = relyingParty(parts)
  const credential = readCredential(text)
  if (!party || !credential || staffId === null) return false
  const challenge = challengeOf(credential)
  const ends = endOfChallenge(parts, `make ${staffId}`, challenge)
  const made = ends !== undefined && readMade(credential, challenge, party)
  if (!made) return false
  return inTransaction(parts.database.work, async db => {
    if (!(await answered(db, challenge, ends))) return false
    if (!(await insertPasskey(db, { ...made, staffId, name, madeAt: parts.clock.real() }, passkeysMost))) return false
    await record(db, { ...parts, by }, [{ action: 'passkeyMade', subject: staffId, details: { name } }])
    return true
  })
}

export const removePasskey = (parts: PasskeyParts, { staffId, by }: SignedIn, id: string): Promise<boolean> =>
  inTransaction(parts.database.work, async db => {
    const name = staffId !== null && isPasskeyId(id) ? await deletePasskey(db, staffId, id) : undefined
    if (name === undefined) return false
    await record(db, { ...parts, by }, [{ action: 'passkeyRemoved', subject: staffId!, details: { name } }])
    return true
  })

/** The cookie's value for whoever has a key that signs. Attempts of a network are counted with those of passwords, before anything is looked at. */
export async function signInByPasskey(
  parts: PasskeyParts,
  text: string,
  visitor: Visitor,
): Promise<{ token: string } | NotProven> {
  const { address, isGone } = visitor
  const used = await parts.attempts.inTurn({ ...attempterAt(address), ...(isGone && { isGone }) }, async () => {
    if (await countOfNetworks(parts, address)) return 'wait'
    const looked = await usePasskey(parts, text, address, undefined, (db, { staffId }) =>
      beginSession(db, parts, staffId, visitor, 'staffSignedIn'),
    )
    if (typeof looked !== 'string') await forgiveNetworks(parts, address)
    return looked
  })
  return typeof used === 'string' ? used : { token: used.done }
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
