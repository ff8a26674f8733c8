// Access tokens that are made one by one, and that follow each other. The database has their keyed hashes alone.

import type pg from 'pg'
import { type Recorder, record } from '../../audit/chain.ts'
import type { AuditEntry } from '../../audit/entry.ts'
import { type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { lockCounted } from '../../platform/database/locks.ts'
import { OperatorError } from '../../platform/errors.ts'
import { type Keys, keyedHashes } from '../../vault/keys.ts'
import { announceChange, endToken, isValidAt, readEntities, readTokens, revokeToken, saveToken, type TokenRow } from '../store.ts'
import { legacyParts } from './legacy.ts'
import { routeHash } from './route.ts'
import { bitsOfChance, tokenBits } from './secretStrength.ts'

export type NewToken = {
  /** What callers will send. Whoever is to know it has it before it is made valid: a process that dies leaves none that nobody knows. */
  readonly sent: string
  readonly label: string
  /** For which it acts, and for all below them. */
  readonly entities: readonly string[]
  /** The token that this one follows, and for how many milliseconds that one goes on. */
  readonly follows?: { readonly id: string; readonly grace: number }
}

/** `precedentEndsAt`: when the token that it follows ends, or has ended. */
export type MadeToken = { readonly id: string; readonly precedentEndsAt?: number }

/** At once and for good. False when there is no valid token with this id. */
export const revokeByHand = (pool: pg.Pool, recorder: Recorder, id: string): Promise<boolean> =>
  inTransaction(pool, async db => {
    const entityId = await revokeToken(db, id, recorder.clock.real())
    if (entityId === undefined) return false
    await announceChange(db)
    await record(db, recorder, [{ action: 'tokenRevoked', entityId, subject: id }])
    return true
  })

/**
 * Of these tokens those that are valid and may be one of the others: they act for one of the same entities under the same label, and have no hash by which they could be
 * told from it, as a user id with password that came last under another lookup key.
 */
export function mayBeOneOf(tokens: readonly TokenRow[], others: readonly TokenRow[], now: number): TokenRow[] {
  const isTold = (one: TokenRow, other: TokenRow) =>
    one.lookupKey === other.lookupKey || (one.routeHash !== null && other.routeHash !== null)
  return tokens.filter(
    token =>
      isValidAt(token, now) &&
      !others.some(one => isTold(one, token)) &&
      others.some(one => one.label === token.label && one.entities.some(id => token.entities.includes(id))),
  )
}

/** What callers can send of one in a header. */
export const tokenLetters = 'A-Za-z0-9._~+/=|-'
const sendable = new RegExp(`^[${tokenLetters}]+$`)

const chanceBytes = 32

/** Letters, digits, hyphen and underscore. */
export const tokenByChance = (random: Random): string => random.bytes(chanceBytes).toString('base64url')

/** Of one entity: valid ones, and all that ever were. Every process reads them all. */
export const validTokensMost = 100
export const tokensMost = 2000

/** What keeps a token from being made, a sentence each. */
export async function tokenRefusals(db: Connection, keys: Keys, { sent, entities, follows }: NewToken): Promise<string[]> {
  const known = new Set((await readEntities(db, entities)).map(({ id }) => id))
  const hashes = keyedHashes(keys, 'token', sent)
  const tokens = await readTokens(db, { entities, hashes, ids: follows ? [follows.id] : [] })
  const precedent = tokens.find(({ id }) => id === follows?.id)
  return [
    ...entities.filter(id => !known.has(id)).map(id => `There is no entity ${id}.`),
    ...entities.flatMap(id => {
      const own = tokens.filter(token => token.entities.includes(id))
      const valid = own.filter(token => token.revokedAt === null && token.id !== follows?.id).length
      if (own.length >= tokensMost) return [`The entity ${id} has had ${tokensMost} tokens: more are not kept.`]
      return valid >= validTokensMost
        ? [`The entity ${id} has ${validTokensMost} valid tokens: revoke one that nobody uses.`]
        : []
    }),
    ...(sendable.test(sent)
      ? []
      : ['No caller could send the token: it is of letters, digits and ._~+/=- alone, without Bearer.']),
    ...(legacyParts(sent)
      ? ['The token is a user id and a password in another spelling, and as weak as that password: let it be made by chance.']
      : []),
    ...(bitsOfChance(sent) < tokenBits ? [`The token is too weak: it must hold ${tokenBits} bits of chance.`] : []),
    ...(tokens.some(({ hash }) => hashes.some(one => one.equals(hash))) ? ['The token is there already, or was once.'] : []),
    ...(follows && !precedent ? [`There is no token ${follows.id}.`] : []),
    ...(precedent && precedent.revokedAt !== null
      ? [
          `The token ${precedent.id} is revoked or was followed already; its end is ${new Date(precedent.revokedAt).toISOString()}.`,
        ]
      : []),
  ]
}

/** Makes a token, and gives the one that it follows its end, in one transaction. Throws an OperatorError with all that is wrong. */
export async function makeToken(pool: pg.Pool, by: Recorder & { readonly random: Random }, token: NewToken): Promise<MadeToken> {
  const { keys, clock, random } = by
  const { sent, label, entities, follows } = token
  return inTransaction(pool, async db => {
    await lockCounted(db, 'tokens', entities)
    const refusals = await tokenRefusals(db, keys, token)
    if (refusals.length > 0) throw new OperatorError(refusals.join('\n'))
    const now = clock.real()
    const id = timeOrderedId(now, random)
    const owners = new Map((await readEntities(db, entities)).map(entity => [entity.id, entity.merchantId]))
    const merchants = new Set(entities.map(entity => owners.get(entity)!))
    const merchantId = merchants.size === 1 ? [...merchants][0]! : null
    const [hash] = keyedHashes(keys, 'token', sent)
    const row = {
      id,
      hash,
      lookupKey: keys.lookup[0]!.id,
      routeHash: routeHash(sent),
      merchantId,
      label,
      entities,
      legacy: false,
    }
    await saveToken(db, row, now)
    const [entityId] = entities
    const details = { label, entities, legacy: false, ...(follows && { follows: follows.id }) }
    const told: AuditEntry[] = [{ action: 'tokenMade', entityId, subject: id, details }]
    const precedentEndsAt = follows && now + follows.grace
    if (follows && precedentEndsAt !== undefined) {
      // Two that follow the same one at a time: the second waits here for the first, and finds it ended.
      if (!(await endToken(db, follows.id, precedentEndsAt)))
        throw new OperatorError(`The token ${follows.id} was followed by another at the same time.`)
      const end = { followedBy: id, validUntil: new Date(precedentEndsAt).toISOString() }
      told.push({ action: 'tokenRevoked', entityId, subject: follows.id, details: end })
    }
    await announceChange(db)
    await record(db, by, told)
    return { id, ...(precedentEndsAt !== undefined && { precedentEndsAt }) }
  })
}
