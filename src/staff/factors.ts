// Both factors of a person, a name with its password and a code, looked at together: nobody learns which of them was wrong, or whether there is such a
// person. Attempts are counted before anything is looked at, so that guesses at the same time find no gap.

import { hash } from 'node:crypto'
import { inTransaction } from '../platform/database/connect.ts'
import { networkShare, networksAround } from '../platform/network.ts'
import { keyedHash } from '../vault/keys.ts'
import { unseal } from '../vault/seal.ts'
import type { Attempter } from './attempts.ts'
import { personOfBrowser } from './browsers.ts'
import { attemptsMinutes } from './kept.ts'
import type { StaffParts } from './parts.ts'
import { isPassword } from './password.ts'
import type { Visitor } from './sessions.ts'
import { countSignIn, findPerson, forgetAttempts, forgiveAttempt, type Person, takeRecoveryCode, takeStep } from './store.ts'
import { stepOfCode } from './totp.ts'
import { recordOfPerson } from './traces.ts'

export type Factors = {
  readonly name: string
  readonly password: string
  /** Of the app, or one of those for recovery. */
  readonly code: string
}

/** Attempts that are looked at within half an hour: for one name, from wherever, or of one session; and from one network, or in the browsers of one person. */
export const signInAttemptsMost = { user: 10, network: 50 } as const

const nobodysId = '0'.repeat(32)

/** What binds a secret to its person. */
export const totpPlace = (id: string) => `staff totp ${id}`

/** However it was typed: letters that are composed of several, wide or small, and capitals are one name. */
export const nameOfStaff = (text: string): string => text.normalize('NFKC').trim().toLowerCase().normalize('NFKC')

/** By which attempts for a name are counted; whatever was typed there is not kept. */
export const attemptsOf = ({ keys }: Pick<StaffParts, 'keys'>, name: string): string =>
  `user ${keyedHash(keys, 'staff name', name).toString('hex').slice(0, 32)}`

/** Why nobody comes in. Busy: so many attempt it at this moment that this one was not looked at. */
export type NotProven = 'wrong' | 'wait' | 'busy'

/** Where an attempt comes from: an address, and perhaps a browser in which this person has signed in. */
export type AttemptSource = { readonly address: string; readonly staffId?: string }

export function attemptSourceOf(parts: StaffParts, { address, browser = '' }: Visitor): AttemptSource {
  const staffId = personOfBrowser(parts, browser)
  return { address, ...(staffId !== undefined && { staffId }) }
}

/**
 * Counts an attempt before anything else is looked at, and returns for what; undefined when there were too many. A browser that is known has attempts of its own,
 * and is one of its network when they are used up. What a network may not do counts for none around it: one neighbour uses up half of what all may, and no more.
 */
export async function countAttemptFrom(
  parts: StaffParts,
  { address, staffId }: AttemptSource,
): Promise<readonly string[] | undefined> {
  const { database, clock } = parts
  const now = clock.real()
  const mayDo = async (subject: string, share = 1) =>
    (await countSignIn(database.signIns, subject, now, now - attemptsMinutes * 60_000)) <= signInAttemptsMost.network * share
  const known = staffId !== undefined && (await findPerson(database.work, 'id', staffId)) ? `browser ${staffId}` : undefined
  if (known !== undefined && (await mayDo(known))) return [known]
  const networks = networksAround(address)
  for (const network of networks) if (!(await mayDo(ofNetwork(network), networkShare(network)))) return undefined
  return networks.map(ofNetwork)
}

/** One that was none. */
export async function forgiveCounted(
  { database, attempts }: StaffParts,
  source: AttemptSource,
  counted: readonly string[],
): Promise<void> {
  for (const subject of counted) await forgiveAttempt(database.work, subject)
  attempts.forgive(attempterAt(source).whose)
}

const ofNetwork = (network: string): string => `network ${network}`

/** Strangers take turns by the widest network that they may have to themselves. */
export const attempterAt = ({ address, staffId }: AttemptSource): Attempter =>
  staffId === undefined ? { whose: ofNetwork(networksAround(address).at(-1)!) } : { whose: `browser ${staffId}`, isKnown: true }

/** `session`: of somebody who is signed in, and whom attempts of strangers for the same name do not keep waiting. */
export function proveFactors(parts: StaffParts, sent: Factors, visitor: Visitor, session?: string): Promise<Person | NotProven> {
  // What waits is what is needed, and no more of it than there can be.
  const factors = {
    name: nameOfStaff(sent.name.slice(0, 300)),
    password: sent.password.slice(0, 1000),
    code: sent.code.slice(0, 100),
  }
  const { address, isGone } = visitor
  const source = session === undefined ? attemptSourceOf(parts, visitor) : undefined
  const attempter = source ? attempterAt(source) : { whose: `session ${session}`, isKnown: true }
  return parts.attempts.inTurn({ ...attempter, ...(isGone && { isGone }) }, () =>
    lookAt(parts, factors, address, session, source),
  )
}

/** `source`: of whoever has no session. */
async function lookAt(
  parts: StaffParts,
  { name, password, code }: Factors,
  address: string,
  session: string | undefined,
  source: AttemptSource | undefined,
): Promise<Person | 'wrong' | 'wait'> {
  const { clock, keys, database } = parts
  const now = clock.real()
  const guesser = session === undefined ? attemptsOf(parts, name) : `session ${session}`
  // Who guesses from somewhere waits before any name is looked at, or remembered.
  const counted = source && (await countAttemptFrom(parts, source))
  if (source && !counted) return 'wait'
  const attempts = await countSignIn(database.signIns, guesser, now, now - attemptsMinutes * 60_000)
  const person = name.length > 0 && name.length <= 254 ? await findPerson(database.work, 'name', name) : undefined
  if (attempts > signInAttemptsMost.user) {
    // Nobody waits for it: how long an answer takes would tell that there is such a person.
    if (person && attempts === signInAttemptsMost.user + 1)
      tellOfLock(parts, person, address).catch((error: Error) =>
        parts.log.error({ why: error.message }, 'a lock is not in the audit'),
      )
    return 'wait'
  }
  const isRight = await isPassword(person?.password, password)
  const step = person?.sealedTotp && stepOfCode(secretOf(parts, person), code, now)
  const id = isRight ? person!.id : nobodysId
  // Asked for nobody too: how long an answer takes tells nothing of the password.
  const isTaken = step ? await takeStep(database.work, id, step) : await takeRecoveryCode(database.work, id, recoveryHash(code))
  if (isRight && isTaken) {
    await forgetAttempts(database.work, guesser)
    if (source && counted) await forgiveCounted(parts, source, counted)
    return person!
  }
  const credential = `staff:${person?.id ?? keyedHash(keys, 'staff name', name).toString('hex').slice(0, 16)}`
  return (await parts.failures.count({ address, credential }, now)) ? 'wait' : 'wrong'
}

const secretOf = ({ keys }: StaffParts, { id, sealedTotp }: Person): Buffer =>
  Buffer.from(unseal(keys, totpPlace(id), sealedTotp!), 'hex')

/** However it was typed. Without a key: papers in a safe outlive keys, and nobody guesses 80 bits of chance. */
export const recoveryHash = (code: string): Buffer =>
  hash('sha256', `staff recovery ${code.toUpperCase().replace(/[^A-Z2-7]/g, '')}`, 'buffer')

const tellOfLock = (parts: StaffParts, person: Person, address: string): Promise<void> =>
  inTransaction(parts.database.work, db =>
    recordOfPerson(db, parts, person.id, {
      actor: { kind: 'stranger', id: 'sign-in', address },
      action: 'staffLocked',
      result: 'refused',
      details: { minutes: attemptsMinutes },
    }),
  )
