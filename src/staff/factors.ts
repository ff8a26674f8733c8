// Both factors of a person, a name with its password and a code, looked at together: nobody learns which of them was wrong, or whether there is such a
// person. Attempts are counted before anything is looked at, so that guesses at the same time find no gap.

import { hash } from 'node:crypto'
import { record } from '../audit/chain.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { networkShare, networksAround } from '../platform/network.ts'
import { keyedHash } from '../vault/keys.ts'
import { unseal } from '../vault/seal.ts'
import type { Attempter } from './attempts.ts'
import { attemptsMinutes } from './kept.ts'
import type { StaffParts } from './parts.ts'
import { isPassword } from './password.ts'
import type { Visitor } from './sessions.ts'
import { countSignIn, findPerson, forgetAttempts, forgiveAttempt, type Person, takeRecoveryCode, takeStep } from './store.ts'
import { stepOfCode } from './totp.ts'

export type Factors = {
  readonly name: string
  readonly password: string
  /** Of the app, or one of those for recovery. */
  readonly code: string
}

/** Attempts that are looked at within half an hour: for one name, from wherever, or of one session; and from one network. */
export const signInAttemptsMost = { user: 10, network: 50 } as const

const nobodysId = '0'.repeat(32)

/** What binds a secret to its person. */
export const totpPlace = (id: string) => `staff totp ${id}`

export const nameOfStaff = (text: string): string => text.trim().toLowerCase()

/** By which attempts for a name are counted; whatever was typed there is not kept. */
export const attemptsOf = ({ keys }: Pick<StaffParts, 'keys'>, name: string): string =>
  `user ${keyedHash(keys, 'staff name', name).toString('hex').slice(0, 32)}`

/** Why nobody comes in. Busy: so many attempt it at this moment that this one was not looked at. */
export type NotProven = 'wrong' | 'wait' | 'busy'

/**
 * Attempts from somewhere, counted for its networks before anything else is: true when there were too many. What its narrowest network may not do counts for no wider
 * one, and a wider one, used up by others, refuses nobody's first attempt: else one neighbour would keep all others out.
 */
export async function countOfNetworks({ database, clock }: StaffParts, address: string): Promise<boolean> {
  const now = clock.real()
  const count = (network: string) => countSignIn(database.signIns, ofNetwork(network), now, now - attemptsMinutes * 60_000)
  const [own, ...wider] = networksAround(address)
  const attempts = await count(own!)
  if (attempts > signInAttemptsMost.network) return true
  for (const network of wider)
    if ((await count(network)) > signInAttemptsMost.network * networkShare(network) && attempts > 1) return true
  return false
}

/** One that was none. */
export async function forgiveNetworks({ database, attempts }: StaffParts, address: string): Promise<void> {
  for (const network of networksAround(address)) await forgiveAttempt(database.work, ofNetwork(network))
  attempts.forgive(attempterAt(address).whose)
}

const ofNetwork = (network: string): string => `network ${network}`

/** Strangers take turns by the widest network that they may have to themselves. */
export const attempterAt = (address: string): Attempter => ({ whose: ofNetwork(networksAround(address).at(-1)!) })

/** `session`: of somebody who is signed in, and whom attempts of strangers for the same name do not keep waiting. */
export function proveFactors(
  parts: StaffParts,
  sent: Factors,
  { address, isGone }: Pick<Visitor, 'address' | 'isGone'>,
  session?: string,
): Promise<Person | NotProven> {
  // What waits is what is needed, and no more of it than there can be.
  const factors = {
    name: nameOfStaff(sent.name.slice(0, 300)),
    password: sent.password.slice(0, 1000),
    code: sent.code.slice(0, 100),
  }
  const attempter = session === undefined ? attempterAt(address) : { whose: `session ${session}` }
  return parts.attempts.inTurn({ ...attempter, ...(isGone && { isGone }) }, () => lookAt(parts, factors, address, session))
}

async function lookAt(
  parts: StaffParts,
  { name, password, code }: Factors,
  address: string,
  session: string | undefined,
): Promise<Person | 'wrong' | 'wait'> {
  const { clock, keys, database } = parts
  const now = clock.real()
  const guesser = session === undefined ? attemptsOf(parts, name) : `session ${session}`
  // A network that guesses waits before any name is looked at, or remembered.
  if (session === undefined && (await countOfNetworks(parts, address))) return 'wait'
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
    if (session === undefined) await forgiveNetworks(parts, address)
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
    record(db, parts, [
      {
        actor: { kind: 'stranger', id: 'sign-in', address },
        action: 'staffLocked',
        subject: person.id,
        result: 'refused',
        details: { minutes: attemptsMinutes },
      },
    ]),
  )
