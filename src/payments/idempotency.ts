// The Idempotency-Key header: the same key and body give the same answer, once executed, also while the first is running and after
// a restart (decisions, 10).

import { timingSafeEqual } from 'node:crypto'
import type { Form } from '../contract/form.ts'
import { results } from '../contract/results/results.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { WriteTimeout } from '../platform/database/errors.ts'
import { hasDue } from '../platform/due/store.ts'
import { decoded } from '../platform/network.ts'
import { keyedHashes } from '../vault/keys.ts'
import { type PaymentResponse, pendingRecord } from './execute.ts'
import { isCompleting, isUndecided } from './followUps/rules.ts'
import type { Refusal } from './initial/choose.ts'
import type { PaymentParts } from './parts.ts'
import type { Payment, PaymentState } from './payment.ts'
import { conclusionOf } from './read/concluded.ts'
import { pendingAnswers } from './read/pendingAnswers.ts'
import { wasAnnouncedPending } from './store/answers.ts'
import { claimKey, claimsOf, findKeyOwner, type KeyClaim, type KeyOwner, type RequestKey } from './store/keys.ts'
import { findChain, findPayment } from './store/read.ts'

/** How long a twin waits beyond the time that the first request may wait for its connector. */
const twinSlackSeconds = 5

/**
 * The key of a request, bound to the entity that it names and to its path, and a fingerprint of its body without the CVV. `channelId`: where it goes; absent where
 * nothing tells that any more.
 */
export function requestKey(
  { keys }: Pick<PaymentParts, 'keys'>,
  entityId: string,
  channelId: string | undefined,
  path: string,
  key: string,
  form: Form,
): RequestKey {
  const body = form.pairs
    .filter(([name]) => name !== 'card.cvv')
    .map(pair => JSON.stringify(pair))
    .sort()
    .join('\n')
  const fingerprints = keyedHashes(keys, 'request body', body)
  // Letters may be written in percents as well, by a proxy too: it is the same place (RFC 3986, 6.2.2.2).
  const place = decoded(path) ?? path
  const claims = (id: string): KeyClaim[] =>
    keyedHashes(keys, 'idempotency key', `${id}\n${place}\n${key}`).map((hash, at) => ({ hash, fingerprint: fingerprints[at]! }))
  return { named: claims(entityId), ruled: channelId === undefined || channelId === entityId ? [] : claims(channelId) }
}

/** The same key with another body. */
export const keyReused: Refusal = {
  refused: 'idempotencyKeyReused',
  stored: false,
  parameterErrors: [{ name: 'Idempotency-Key', message: 'was used before with another request' }],
}

/** Who had the key in this moment has lost it to another, and so did we: nothing is stored, and whoever sends it again finds out. */
class TwinGone extends WriteTimeout {
  constructor() {
    super('the twin of the request gave way to another')
  }
}

/** Whose a key is. */
export const ownerOf = ({ database }: PaymentParts, merchantId: string, key: RequestKey): Promise<KeyOwner | undefined> =>
  findKeyOwner(database.work, merchantId, key)

/** The body that came with the key is the one that its owner came with. */
const isTwin = ({ hash, fingerprint }: KeyOwner, key: RequestKey): boolean =>
  timingSafeEqual(fingerprint, claimsOf(key).find(claim => claim.hash.equals(hash))!.fingerprint)

/** A body of which only the hash was kept, without which of the lookup keys made it. */
export const isBodyOf = ({ named }: RequestKey, kept: Buffer): boolean =>
  named.some(({ fingerprint }) => timingSafeEqual(fingerprint, kept))

/** Stores what is no payment under its key, in one transaction, or finds what its twin has stored: the id of the one or the other. */
export async function storeOnce(
  parts: PaymentParts,
  ownerId: string,
  id: string,
  key: RequestKey | undefined,
  store: (db: Connection) => Promise<unknown>,
): Promise<string | Refusal> {
  const isOurs = await inTransaction(parts.database.work, async db => {
    if (key && !(await claimKey(db, ownerId, id, key, parts.clock.real()))) return false
    await store(db)
    return true
  })
  if (isOurs) return id
  const owner = await ownerOf(parts, ownerId, key!)
  if (!owner) throw new TwinGone()
  return isTwin(owner, key!) ? owner.subjectId : keyReused
}

/** What the first request under a key was told; undefined when there was none that was a payment, or another one. */
export async function answeredBefore(
  parts: PaymentParts,
  merchantId: string,
  key: RequestKey,
): Promise<PaymentResponse | undefined> {
  const owner = await ownerOf(parts, merchantId, key)
  return owner?.paid && isTwin(owner, key) ? awaitAnswer(parts, merchantId, owner.subjectId) : undefined
}

/** The key is taken: by this very payment (a batch that was written twice), by its twin, or by another request. */
export async function awaitTwin(
  parts: PaymentParts,
  { merchantId, id }: Payment,
  key: RequestKey,
): Promise<PaymentResponse | Refusal | 'ours'> {
  const owner = await ownerOf(parts, merchantId, key)
  if (!owner) throw new TwinGone()
  if (owner.paid && owner.subjectId === id) return 'ours'
  // One that is not stored was refused for another's key on its channel.
  if (!owner.paid || !isTwin(owner, key)) return keyReused
  return awaitAnswer(parts, merchantId, owner.subjectId)
}

async function awaitAnswer(parts: PaymentParts, merchantId: string, paymentId: string): Promise<PaymentResponse> {
  const told = await parts.lookTogether(
    `twin ${merchantId} ${paymentId}`,
    () => toldOf(parts, merchantId, paymentId),
    told => told !== undefined,
    Number.POSITIVE_INFINITY,
  )
  return told!
}

/** What the first request was told, or is told now that it takes too long; undefined while it goes on. */
async function toldOf(parts: PaymentParts, merchantId: string, paymentId: string): Promise<PaymentResponse | undefined> {
  const first = await findPayment(parts.database.work, merchantId, paymentId)
  if (!first) return undefined
  const end = await conclusionOf(parts.database.work, first)
  if (end) return { outcome: results[end.answer!.result].outcome, body: end.answer!.body }
  const given = first.answer ? undefined : (await pendingAnswers(parts, [first])).get(first.id)
  if (given !== undefined) return { outcome: 'pending', body: given }
  const isLate = parts.clock.real() >= first.recordedAt + waitSeconds(parts, first) * 1000
  return isLate || (await wasToldPending(parts, first)) ? pendingRecord(parts, first) : undefined
}

/** So long after its beginning the first request has ended, or its process has died. A PA.CP asks twice. */
function waitSeconds({ connectors }: PaymentParts, { connector, record }: PaymentState): number {
  const seconds = connectors.get(connector)?.answerWithinSeconds ?? 0
  return (record.captureAtOnce ? 2 * seconds : seconds) + twinSlackSeconds
}

/** The first request has been answered as pending, or recovery has taken over what it waited for: the payment, or its capture. */
async function wasToldPending({ database: { work } }: PaymentParts, first: PaymentState): Promise<boolean> {
  const { merchantId, id } = first
  if (!first.answer) return hasDue(work, 'recover', merchantId, id)
  const capture = (await findChain(work, merchantId, id)).find(one => isCompleting(one) && isUndecided(one))
  return capture ? hasDue(work, 'recover', merchantId, capture.id) : wasAnnouncedPending(work, first)
}
