// Operator cases: what the gateway will not guess, and a person has to decide. One thing is one case as long as it is open; somebody closes it with a reason.

import type { Recorder } from '../../audit/chain.ts'
import { record } from '../../audit/chain.ts'
import { shortenedCards } from '../../audit/details.ts'
import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { storableJson } from '../../platform/database/json.ts'
import { addDue, cancelDue } from '../../platform/due/store.ts'
import { type CaseNote, closeRow, insertCase, insertNote, lockHistory, type OperatorCase, setOwner } from './store.ts'

/** What a case can be about, and what somebody should know who decides it. */
export const caseKinds = {
  clearingLine: 'a line of a file fits no payment',
  answerUnproven: 'the other side answered, and nobody can tell whether the payment was carried out',
  stillUnknown: 'the other side goes on answering that it does not know; it is asked on, and the case closes when it says',
  answersContradict: 'a payment was approved, and a later answer to the same message refuses it',
  transactionTaken:
    'a bank or a wallet named a transaction that another payment has: it has paid one of them at most, and nothing was sent back; ask the other side which',
  totalsDiffer: 'an acquirer says other totals of a day than we have',
  totalsUnheard: 'an acquirer does not acknowledge the totals of a day',
  settlementLine: 'a line of a settlement file fits none of our bookings, or fits one in part',
  lineMissing: 'a booking of ours is not in the settlement files of its day',
  settlementMissing: 'the settlement file of a day has not come',
  captureLine: 'a line of an acknowledgement of a capture file rejects a capture, or names one that is not in the file',
  captureUnacknowledged: 'a capture is in a file, and the acknowledgement of that file does not name it',
  transferDetails:
    'a refund is to be transferred, and nobody has said to which account: enter it on the page of the payment, or with tollgate transfers enter',
  transferLine: 'a bank says something of a transfer that does not fit: it is not known, or ended otherwise before',
  transfersHeld:
    'the database was put back, and files of transfers wait: read what the bank has said of those that it has, then tollgate transfers release',
  capturesHeld:
    'the database was put back, and capture files wait: read what the acquirer has said of those that it has, then tollgate acquirers release',
  ordersHeld: 'the database was put back, and order files to a bank wait: say which it has, with tollgate slips release',
  receiptFile:
    "a file of receipts could not be put on a merchant's server: it was given up, or the two servers do not know each other",
  reportFile: 'a scheduled report could not be put on its server: it was given up, or the two servers do not know each other',
  returnLine: 'a line of a file of a bank or a store chain is money of no slip, or says what somebody has to look at',
  returnFile:
    'a file of a bank or a store chain is not whole, is another, or could not be read to its end or moved: its case says which',
  returnServer: 'the server of a bank or a store chain cannot be reached, is another, or does not give all of its files',
  returnMissing: 'files of a bank or a store chain are counted, and one has not come',
  reversalOpen:
    'money that may be held or moved could not be given back: ask the other side. Closing the case ends the attempts, and what was told counts again: a refund that failed can be made anew',
} as const satisfies Readonly<Record<string, string>>
export type CaseKind = keyof typeof caseKinds

/** What acquirers and we do not agree on. */
export const differenceKinds = [
  'totalsDiffer',
  'totalsUnheard',
  'settlementLine',
  'lineMissing',
  'settlementMissing',
  'captureLine',
  'captureUnacknowledged',
] as const satisfies readonly CaseKind[]

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
    details: storableJson(shortenedCards(details)), // of files, whose companies write into their own columns what they like
    openedAt: clock.real(),
  })

/** Closing one of these decides what became of its payment. */
export const decides: ReadonlySet<string> = new Set<CaseKind>(['answerUnproven', 'stillUnknown'])

/** What the other side says that became of a payment, when it is asked by other means. */
export const decisions = ['carriedOut', 'notCarriedOut'] as const
export type CaseDecision = (typeof decisions)[number]

export class DecisionMissing extends Error {}

/** Undefined when there is no such open case. An answer that proves nothing needs a decision, which settles the payment. */
export async function closeCase(
  parts: Recorder & { readonly database: Pick<Database, 'work'> },
  id: string,
  by: string,
  reason: string,
  decision?: CaseDecision,
): Promise<OperatorCase | undefined> {
  return inTransaction(parts.database.work, async db => {
    const now = parts.clock.real()
    const closed = await closeRow(db, id, now, by, reason)
    if (!closed) return undefined
    const { kind, subject, merchantId } = closed
    if (decides.has(kind) !== (decision !== undefined)) throw new DecisionMissing(kind)
    if (decision) await addDue(db, 'recover', merchantId, subject, now, { decision })
    if (kind === 'reversalOpen')
      for (const attempt of ['reverse', 'release', 'capture']) await cancelDue(db, attempt, merchantId, subject)
    const entityId = merchantId === nobody ? undefined : merchantId
    const details = { kind, about: subject, reason, ...(decision && { decision }) }
    await record(db, parts, [{ action: 'caseClosed', entityId, subject: id, details }])
    return closed
  })
}

/** Its page shows all of a history. */
export const notesMost = 200

/** Writes something into the history of an open case; taking it over, or leaving it, changes whose it is. */
export const noteCase = (
  parts: Recorder & { readonly random: Random; readonly database: Pick<Database, 'work'> },
  merchantId: string,
  caseId: string,
  { writtenBy, kind, text }: Pick<CaseNote, 'writtenBy' | 'kind' | 'text'>,
): Promise<'written' | 'closed' | 'full'> =>
  inTransaction(parts.database.work, async db => {
    const written = await lockHistory(db, merchantId, caseId)
    if (written === undefined) return 'closed'
    if (written >= notesMost) return 'full'
    if (kind !== 'note') await setOwner(db, merchantId, caseId, kind === 'taken' ? writtenBy : null)
    const now = parts.clock.real()
    await insertNote(db, { merchantId, caseId, id: timeOrderedId(now, parts.random), writtenAt: now, writtenBy, kind, text })
    await record(db, parts, [{ action: 'caseNoted', entityId: merchantId, subject: caseId, details: { kind } }])
    return 'written'
  })
