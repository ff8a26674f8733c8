// What the staff orders: captures, refunds and reversals. Beyond an amount both factors are proven anew, beyond another a colleague approves (four eyes). What
// counts is all that was ordered about a chain within a day: many small orders are a large one. An order that was approved is carried out under its own id, so
// that a second press of the button, or one after a crash, is the same order.

import { record } from '../../audit/chain.ts'
import { amountText } from '../../contract/amounts.ts'
import { isId, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { seal, unseal } from '../../vault/seal.ts'
import { approvalHours } from '../kept.ts'
import type { StaffParts } from '../parts.ts'
import type { SignedIn } from '../sessions.ts'
import { findFactorsBy } from '../store.ts'
import {
  countOpen,
  decideRow,
  findOnce,
  insertOrder,
  lockChain,
  lockOrder,
  type NewOrder,
  type OrderType,
  orderedSince,
  type StaffOrder,
  setOutcome,
} from './store.ts'

const dayMilliseconds = 24 * 3_600_000

/** Of one chain: more of them would hide what others ordered. */
export const waitingMost = 20

export type GivenOrder = Omit<NewOrder, 'id' | 'askedBy' | 'askedAt' | 'waits' | 'sealed'> & {
  /** Of a transfer: where the money goes. Sealed while it waits. */
  readonly details?: object
  /** The rules of the chain forbid it: it does not wait for somebody who could only refuse it. */
  readonly isForbidden?: boolean
}

/** Money goes out by one of these, or is taken by the other. */
const together: Readonly<Record<OrderType, readonly OrderType[]>> = {
  CP: ['CP'],
  RF: ['RF', 'RV'],
  RV: ['RF', 'RV'],
  transfer: ['transfer'],
}

/** A second press of one button; anything else that comes with its name is an order that nobody has counted. */
const isSame = (
  before: StaffOrder,
  { type, amount, currency }: Pick<NewOrder, 'type' | 'amount' | 'currency'>,
  by: string,
): boolean => before.type === type && before.amount === amount && before.currency === currency && before.askedBy === by

/** Whether it may still be approved, or carried out again. */
export const isYoung = ({ askedAt }: Pick<StaffOrder, 'askedAt'>, now: number): boolean =>
  now - askedAt <= approvalHours * 3_600_000

/** What binds sealed details to their order. */
export const orderPlace = (merchantId: string, id: string): string => `staff order ${merchantId} ${id}`

/** Where the money of a transfer goes that waits; undefined of all other orders. */
export const detailsOfOrder = <Details>(
  { keys }: Pick<StaffParts, 'keys'>,
  { merchantId, id, sealed }: StaffOrder,
): Details | undefined =>
  sealed === null ? undefined : (JSON.parse(unseal(keys, orderPlace(merchantId, id), sealed)) as Details)

/**
 * Writes an order down before it is begun. `approvalFrom`: from this sum on it waits for a colleague; `proofFrom`: from this one on both factors must have
 * been proven just now, else nothing is written (`unproven`); hundredths. `used`: this form gave another order before, or long ago;
 * `forbidden`, `tooMany`: it would wait for a colleague and cannot be carried out, or so many of its chain wait already.
 */
export async function placeOrder(
  parts: StaffParts,
  { by, isProven }: SignedIn,
  given: GivenOrder,
  approvalFrom: number | undefined,
  proofFrom = Number.POSITIVE_INFINITY,
): Promise<Pick<StaffOrder, 'id' | 'waits'> | 'used' | 'unproven' | 'forbidden' | 'tooMany'> {
  const { clock, random, database } = parts
  const { details: hidden, isForbidden, ...order } = given
  const { merchantId, rootId, channelId, paymentId, type, amount, currency, reason, once } = order
  return inTransaction(database.work, async db => {
    await lockChain(db, merchantId, rootId)
    const now = clock.real()
    const before = await findOnce(db, merchantId, paymentId, once)
    if (before) return isSame(before, order, by.id) && isYoung(before, now) ? before : 'used'
    const ordered = amount + (await orderedSince(db, merchantId, rootId, together[type], now - dayMilliseconds))
    if (ordered >= proofFrom && !isProven) return 'unproven'
    const waits = approvalFrom !== undefined && ordered >= approvalFrom
    if (waits && isForbidden) return 'forbidden'
    if (waits && (await countOpen(db, merchantId, rootId, now - approvalHours * 3_600_000)) >= waitingMost) return 'tooMany'
    const id = timeOrderedId(now, random)
    const sealed = waits && hidden ? seal(parts.keys, random, orderPlace(merchantId, id), JSON.stringify(hidden)) : null
    await insertOrder(db, { ...order, id, askedBy: by.id, askedAt: now, waits, sealed })
    const action = waits ? 'approvalAsked' : 'followUpOrdered'
    const details = { type, amount: amountText(amount), currency, reason }
    await record(db, parts, [{ actor: by, action, entityId: channelId, subject: paymentId, details }])
    return { id, waits }
  })
}

/**
 * Decides what waits. One that was approved and of which nobody heard an outcome may be approved again, by anybody but who ordered it. `own`: that one
 * asks, or one of both could have set the other's factors; `elsewhere`: it came with its merchant from another cell, in which whoever works here too has
 * another id; `gone`: there is no such order, it is too old, or it is decided.
 */
export async function decideOrder(
  parts: StaffParts,
  { by }: SignedIn,
  merchantId: string,
  id: string,
  decision: 'approved' | 'refused',
): Promise<StaffOrder | 'own' | 'elsewhere' | 'gone'> {
  return inTransaction(parts.database.work, async db => {
    const now = parts.clock.real()
    const found = await lockOrder(db, merchantId, id)
    if (!found?.waits || found.outcome !== null || !isYoung(found, now)) return 'gone'
    if (found.askedBy === by.id) return 'own'
    const host = await hostOf(db, found.askedBy)
    if (host === by.id || (await hostOf(db, by.id)) === found.askedBy) return 'own'
    if (found.decision !== null) return found.decision === 'approved' && decision === 'approved' ? found : 'gone'
    if (decision === 'approved' && host === undefined) return 'elsewhere'
    await decideRow(db, found, decision, by.id, now)
    if (decision === 'refused') await setOutcome(db, found, 'refused')
    const { channelId, paymentId, type, amount } = found
    const details = { decision, paymentId, type, amount: amountText(amount), askedBy: found.askedBy }
    await record(db, parts, [{ actor: by, action: 'approvalDecided', entityId: channelId, subject: id, details }])
    return found
  })
}

/** Does what an order asks for together with its outcome: whoever presses again, however late, is told that, and no order given in between is undone. */
export const carryOutOnce = (
  { database }: Pick<StaffParts, 'database'>,
  { merchantId, id }: Pick<StaffOrder, 'merchantId' | 'id'>,
  work: (db: Connection) => Promise<string>,
): Promise<string> =>
  inTransaction(database.work, async db => {
    const order = (await lockOrder(db, merchantId, id))!
    if (order.outcome !== null) return order.outcome
    const outcome = await work(db)
    await setOutcome(db, order, outcome)
    return outcome
  })

/** The developer of a sandbox is nobody's guest. `undefined`: no person of this cell. On the connection of whoever asks: one that waits for another of its pool can stop all of them. */
const hostOf = (db: Connection, actor: string) => (isId(actor) ? findFactorsBy(db, actor) : null)
