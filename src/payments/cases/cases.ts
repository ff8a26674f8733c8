// Operator cases: what the gateway will not guess, and a person has to decide. One thing is one case as long as it is open; somebody closes it with a reason.

import type { Recorder } from '../../audit/chain.ts'
import { record } from '../../audit/chain.ts'
import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { closeRow, insertCase, type OperatorCase } from './store.ts'

/** What a case can be about, and what somebody should know who decides it. */
export const caseKinds = {
  clearingLine: 'a line of a file fits no payment',
} as const satisfies Readonly<Record<string, string>>
export type CaseKind = keyof typeof caseKinds

/** Of what belongs to no merchant that we know. */
export const nobody = '0'.repeat(32)

export type NewCase = {
  readonly kind: CaseKind
  /** `nobody` where no merchant is known. */
  readonly merchantId: string
  /** What it is about: a payment, or a line of a file. */
  readonly subject: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Inside the transaction of what it is about. False when the same is open already. */
export const openCase = (
  db: Connection,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { kind, merchantId, subject, details }: NewCase,
): Promise<boolean> =>
  insertCase(db, {
    id: timeOrderedId(clock.real(), random),
    merchantId,
    kind,
    subject,
    details: JSON.stringify(details),
    openedAt: clock.real(),
  })

/** Undefined when there is no such open case. */
export async function closeCase(
  parts: Recorder & { readonly database: Pick<Database, 'work'> },
  id: string,
  by: string,
  reason: string,
): Promise<OperatorCase | undefined> {
  return inTransaction(parts.database.work, async db => {
    const closed = await closeRow(db, id, parts.clock.real(), by, reason)
    if (closed)
      await record(db, parts, [
        { action: 'caseClosed', subject: id, details: { kind: closed.kind, about: closed.subject, reason } },
      ])
    return closed
  })
}
