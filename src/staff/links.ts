// Links that work once. One lets somebody set a password and a second factor; the other lets the developer of a sandbox in without an account
// (decisions, 64).

import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import { isThisMachine } from '../platform/network.ts'
import { keyedHashes } from '../vault/keys.ts'
import { seal } from '../vault/seal.ts'
import { attemptsOf, recoveryHash, totpPlace } from './factors.ts'
import type { StaffParts } from './parts.ts'
import { hashPassword, passwordRefusal } from './password.ts'
import { mayInvite } from './permissions.ts'
import { type BegunSession, beginSession, endFormer, type SignedIn, type Visitor, whileSignedIn } from './sessions.ts'
import {
  dropLinksOf,
  endSessionsOf,
  findLink,
  findPerson,
  forgetAttempts,
  insertLink,
  lockPeople,
  type Person,
  setFactors,
  takeLink,
} from './store.ts'
import { base32, secretBytes, stepOfCode } from './totp.ts'
import { recordOfPerson } from './traces.ts'

export const linkHours = 24
export const recoveryCodesGiven = 10

type LinkParts = Pick<StaffParts, 'keys' | 'clock' | 'random'>

const hashesOf = ({ keys }: Pick<StaffParts, 'keys'>, token: string) => keyedHashes(keys, 'staff link', token)

/** The token of a link. `staffId` null: the door of a sandbox; `madeBy`: another of the staff. */
export async function makeStaffLink(
  db: Connection,
  parts: LinkParts,
  staffId: string | null,
  madeBy: string | null = null,
  endsAt = parts.clock.real() + linkHours * 3_600_000,
): Promise<string> {
  const token = parts.random.bytes(32).toString('base64url')
  await insertLink(db, hashesOf(parts, token)[0], { staffId, madeBy, endsAt })
  return token
}

type Invitation = { readonly person: Person; readonly secret: Buffer; readonly madeBy: string | null }

/** Who may set a password and a second factor by this link, and the secret of the factor. It follows from the link: the page shows the same to
 *  whoever asks again, and nothing is stored until somebody proves to have it. */
export async function findInvitation(parts: StaffParts, token: string): Promise<Invitation | undefined> {
  const hashes = hashesOf(parts, token)
  const link = await findLink(parts.database.work, hashes, parts.clock.real())
  const person = link?.staffId && (await findPerson(parts.database.work, 'id', link.staffId))
  if (!person) return undefined
  // Under the key that the link was made with: another begins to be written with while its page is open.
  const secret = keyedHashes(parts.keys, 'staff totp', token)[hashes.findIndex(hash => hash.equals(link.hash))]!
  return { person, secret: secret.subarray(0, secretBytes), madeBy: link.madeBy }
}

export type FactorsRefusal = 'gone' | 'code' | 'busy' | NonNullable<ReturnType<typeof passwordRefusal>>

/** Sets both factors, ends whatever sessions there were, and begins one. The codes for recovery are shown this once. */
export async function useInvitation(
  parts: StaffParts,
  token: string,
  password: string,
  code: string,
  visitor: Visitor,
): Promise<{ session: BegunSession; recovery: readonly string[] } | FactorsRefusal> {
  const { keys, random, clock, database } = parts
  const found = await findInvitation(parts, token)
  if (!found) return 'gone'
  const { person, secret, madeBy } = found
  const refusal = passwordRefusal(password, person.name)
  if (refusal) return refusal
  const step = stepOfCode(secret, code, clock.real())
  if (step === undefined) return 'code'
  const { isGone } = visitor
  const hashed = await parts.attempts.inTurn({ whose: `person ${person.id}`, isKnown: true, ...(isGone && { isGone }) }, () =>
    hashPassword(random, password),
  )
  if (hashed === 'busy') return hashed
  const recovery = Array.from({ length: recoveryCodesGiven }, () => base32(random.bytes(10)).replace(/.{4}(?=.)/g, '$&-'))
  const sealedTotp = seal(keys, random, totpPlace(person.id), secret.toString('hex'))
  const used = await inTransaction(database.work, async db => {
    const people = await lockPeople(db, [person.id, ...(madeBy === null ? [] : [madeBy])])
    const link = await takeLink(db, hashesOf(parts, token), clock.real())
    const now = people.find(({ id }) => id === person.id)
    const maker = people.find(({ id }) => id === madeBy)
    // Its maker has seen it: it opens no more than he may give away now, to whoever this has become meanwhile.
    if (!link || !now || (madeBy !== null && !(maker && mayInvite(parts.directory, maker, now.entities)))) return 'gone'
    await dropLinksOf(db, person.id)
    await setFactors(db, person.id, {
      password: hashed,
      sealedTotp,
      step,
      recovery: recovery.map(one => recoveryHash(one)),
      by: link.madeBy,
    })
    await endSessionsOf(db, person.id)
    await forgetAttempts(db, attemptsOf(parts, person.name))
    return { session: await beginSession(db, parts, person.id, visitor, 'staffFactorsSet'), recovery }
  })
  if (used !== 'gone') await endFormer(parts, visitor)
  return used
}

/** A link for somebody who is signed in and wants other factors: the present ones hold until it is used. It ends with the session as that stands now, and with the
 *  next one that is asked for. */
export const makeOwnLink = (parts: StaffParts, signedIn: SignedIn): Promise<string | undefined> =>
  whileSignedIn(parts, signedIn, async (db, staffId) => {
    await dropLinksOf(db, staffId)
    const token = await makeStaffLink(db, parts, staffId, null, signedIn.endsAt)
    await recordOfPerson(db, parts, staffId, { actor: signedIn.by, action: 'staffLinkMade' })
    return token
  })

/** For whoever has the link of a sandbox and sits at this machine. */
export async function enterSandbox(parts: StaffParts, token: string, visitor: Visitor): Promise<BegunSession | undefined> {
  if (!parts.sandbox || !isThisMachine(visitor.address)) return undefined
  const begun = await inTransaction(parts.database.work, async db => {
    const link = await takeLink(db, hashesOf(parts, token), parts.clock.real())
    if (!link) return undefined
    if (link.staffId !== null) throw new OperatorError('This link is for setting a password.') // rolls back: the link stays
    return beginSession(db, parts, null, visitor, 'staffSignedIn')
  }).catch(error => {
    if (error instanceof OperatorError) return undefined
    throw error
  })
  if (begun) await endFormer(parts, visitor)
  return begun
}
