// Both factors of a person, a name with its password and a code, looked at together: nobody learns which of them was wrong, or whether there is such a
// person. Attempts are counted before anything is looked at, so that guesses at the same time find no gap.

import { hash } from 'node:crypto'
import { record } from '../audit/chain.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { networkOf } from '../platform/network.ts'
import { keyedHash } from '../vault/keys.ts'
import { unseal } from '../vault/seal.ts'
import { attemptsMinutes } from './kept.ts'
import type { StaffParts } from './parts.ts'
import { isPassword } from './password.ts'
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

/** `session`: of somebody who is signed in, and whom attempts of strangers for the same name do not keep waiting. */
export async function proveFactors(
  parts: StaffParts,
  sent: Factors,
  address: string,
  session?: string,
): Promise<Person | 'wrong' | 'wait'> {
  const { clock, keys, database } = parts
  const now = clock.real()
  const name = nameOfStaff(sent.name)
  const guesser = session === undefined ? attemptsOf(parts, name) : `session ${session}`
  const network = `network ${networkOf(address)}`
  const since = now - attemptsMinutes * 60_000
  if (session === undefined) {
    // A network that guesses waits before any name is looked at, or remembered.
    const attempts = await countSignIn(database.signIns, network, now, since)
    if (attempts > signInAttemptsMost.network) return 'wait'
  }
  const attempts = await countSignIn(database.signIns, guesser, now, since)
  const person = name.length > 0 && name.length <= 254 ? await findPerson(database.work, 'name', name) : undefined
  if (attempts > signInAttemptsMost.user) {
    // Nobody waits for it: how long an answer takes would tell that there is such a person.
    if (person && attempts === signInAttemptsMost.user + 1)
      tellOfLock(parts, person, address).catch((error: Error) =>
        parts.log.error({ why: error.message }, 'a lock is not in the audit'),
      )
    return 'wait'
  }
  const isRight = await isPassword(person?.password, sent.password.slice(0, 1000))
  const step = person?.sealedTotp && stepOfCode(secretOf(parts, person), sent.code, now)
  const id = isRight ? person!.id : nobodysId
  // Asked for nobody too: how long an answer takes tells nothing of the password.
  const isTaken = step
    ? await takeStep(database.work, id, step)
    : await takeRecoveryCode(database.work, id, recoveryHash(sent.code))
  if (isRight && isTaken) {
    await forgetAttempts(database.work, guesser)
    if (session === undefined) await forgiveAttempt(database.work, network)
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
