// Chargebacks (CB) and their reversals (CR): money that an issuer takes back, and gives again. Nobody is asked: an acquirer's report says
// what has happened, and what fits a payment is recorded with its answer, journal and event in one transaction. Nothing is guessed.

import { type Recorder, record } from '../../audit/chain.ts'
import { successOf } from '../../connectors/registry.ts'
import { answerRow } from '../../payments/execute.ts'
import { type Chain, chargedBack, cleared, done } from '../../payments/followUps/rules.ts'
import { rootTypeOf } from '../../payments/ledger/journal.ts'
import type { PaymentParts } from '../../payments/parts.ts'
import type { PaymentState } from '../../payments/payment.ts'
import { insertAnswered } from '../../payments/store/answers.ts'
import { findRoot, holdChain } from '../../payments/store/read.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import type { FileFormat, ImportParts, LineResult } from '../import.ts'
import { type ReportedResult, reportedPayment } from '../reported.ts'
import { inTurns } from '../steps.ts'
import { hourOf, type ReportLine, readReport, resultOfReason } from './report.ts'
import {
  findByHostReference,
  findByRetrievalReference,
  findChargebackLine,
  findOwners,
  insertChargebackLine,
  type PaymentPlace,
} from './store.ts'

export type Bookkeeping = Pick<PaymentParts, 'database' | 'directory' | 'clock' | 'random' | 'build'> & Recorder

export type ImportResult = ReportedResult<Mismatch>

/** Why a line is not recorded. */
export const mismatches = {
  noPayment: 'there is no such payment',
  severalPayments: 'several payments have this reference: name the payment by its id',
  nothingCleared: 'the payment is no approved DB, no approved CP and no PA that was captured',
  currencyDiffers: 'the payment is in another currency',
  aboveCleared: 'the amount is above what was cleared and is not charged back already',
  noChargeback: 'there is no chargeback that is not reversed already',
  severalChargebacks: 'the payment has several chargebacks: name the one by its id',
  aboveChargeback: 'the amount is above that of the chargeback',
  otherLine: 'another line was imported under this report and line number before',
} as const
export type Mismatch = keyof typeof mismatches

/** Records a line. `settled` is told in the transaction of what became of it. */
export async function recordChargeback(
  parts: Bookkeeping,
  line: ReportLine,
  settled: (db: Connection, result: ImportResult) => Promise<void> = async () => {},
): Promise<ImportResult> {
  const without = async (result: ImportResult): Promise<ImportResult> => {
    await inTransaction(parts.database.work, db => settled(db, result))
    return result
  }
  // Two payments of one reference are two, also where the merchant of one has left.
  const [place, ...others] = await findNamed(parts, line)
  if (others.length > 0) return without({ kind: 'refused', why: 'severalPayments' })
  if (!place?.isHere) return without({ kind: 'refused', why: 'noPayment' })
  const { merchantId, id } = place
  const rootId = await findRoot(parts.database.work, merchantId, id)
  if (rootId === undefined) return without({ kind: 'refused', why: 'noPayment' })
  return parts.database.inChain(
    merchantId,
    rootId,
    db => holdChain(db, merchantId, rootId),
    async (db, payments) => {
      const result = await settleLine(parts, db, line, place, rootId, payments)
      await settled(db, result)
      return result
    },
  )
}

async function settleLine(
  parts: Bookkeeping,
  db: Connection,
  line: ReportLine,
  { merchantId, id }: PaymentPlace,
  rootId: string,
  payments: readonly PaymentState[],
): Promise<ImportResult> {
  if (payments.length === 0) return { kind: 'refused', why: 'noPayment' } // archived meanwhile
  const before = await findChargebackLine(db, merchantId, line)
  if (before !== undefined) {
    const same = payments.find(one => one.id === before)
    return same && same.type === line.type && same.amount === line.amount && same.currency === line.currency
      ? { kind: 'known', paymentId: before }
      : { kind: 'refused', why: 'otherLine' }
  }
  const chain: Chain = {
    reference: payments.find(one => one.id === id)!,
    root: payments.find(one => one.id === rootId)!,
    followers: payments.filter(one => one.id !== rootId),
  }
  const reference = line.type === 'CB' ? chargeable(line, chain) : reversible(line, chain)
  if (typeof reference === 'string') return { kind: 'refused', why: reference }
  const payment = reportedPayment(parts, line, chain.root, reference, inherited)
  const result = line.type === 'CB' ? resultOfReason(line.reason) : successOf[payment.mode]
  const answer = answerRow(parts, payment, rootTypeOf(chain.root), result, {
    kept: { report: line.report, line: String(line.line), reason: line.reason, date: line.date },
    outcome: {
      details: {
        ExtendedDescription: line.type === 'CB' ? 'Charged back' : 'Chargeback reversed',
        ...(line.reason !== '' && { AcquirerResponse: line.reason }),
      },
    },
  })
  await insertChargebackLine(db, merchantId, line, payment.id)
  await insertAnswered(db, answer)
  const { channelId: entityId, id: subject, type } = payment
  const details = { type, referenceId: reference.id, report: line.report, line: line.line }
  await record(db, parts, [{ action: 'chargebackRecorded', entityId, subject, details }])
  return { kind: 'recorded', payment }
}

type ChargebackAmount = Pick<ReportLine, 'amount' | 'currency'>

/** What a chargeback refers to: the DB or the CP. Refunds do not shelter from it, because issuers do not look at them. */
export function chargeable(
  { amount, currency }: ChargebackAmount,
  { reference, root, followers }: Chain,
): PaymentState | Mismatch {
  const named = reference.type === 'PA' ? followers.find(({ type, answer }) => type === 'CP' && answer?.approved) : reference
  if (!named?.answer?.approved || (named.type !== 'DB' && named.type !== 'CP')) return 'nothingCleared'
  if (currency !== root.currency) return 'currencyDiffers'
  const reversed = root.type === 'DB' ? done(followers, 'RV').reduce((total, one) => total + one.amount, 0) : 0
  return amount > cleared(root, followers) - reversed - chargedBack(followers) ? 'aboveCleared' : named
}

/** What a reversal of a chargeback refers to: the CB that it names, or the only one of the payment that is not reversed. */
export function reversible(
  { amount, currency }: ChargebackAmount,
  { reference, root, followers }: Chain,
): PaymentState | Mismatch {
  const reversed = new Set(done(followers, 'CR').map(({ referenceId }) => referenceId))
  const open = done(followers, 'CB').filter(({ id }) => !reversed.has(id))
  const meant = reference.type === 'CB' ? open.filter(({ id }) => id === reference.id) : open
  if (meant.length !== 1) return meant.length === 0 ? 'noChargeback' : 'severalChargebacks'
  if (currency !== root.currency) return 'currencyDiffers'
  return amount > meant[0]!.amount ? 'aboveChargeback' : meant[0]!
}

const hour = 3_600_000

/** The payments that a line may mean; by a reference also those of merchants who are served elsewhere. */
export async function findNamed(
  { database }: Pick<Bookkeeping, 'database'>,
  { acquirer, reference, date }: ReportLine,
): Promise<PaymentPlace[]> {
  if (acquirer === undefined) return findOwners(database.work, reference)
  const theirs = await findByHostReference(database.work, acquirer, reference)
  if (theirs.length > 0 || !/^\d{12}$/.test(reference)) return theirs
  const from = hourOf(reference, date)
  return findByRetrievalReference(database.work, acquirer, reference, from, from + hour)
}

const inherited = ['merchantTransactionId', 'merchantInvoiceId', 'customer.merchantCustomerId', 'descriptor']

/** Reports of chargebacks as files: the first format of the import. */
export const chargebackReports: FileFormat<Bookkeeping & ImportParts, ReportLine> = {
  kind: 'chargebackReport',
  caseKind: 'clearingLine',
  unreadable: 'together',
  read: text => inTurns(readReport(text)),
  async settle(parts, line, store) {
    return lineResult(await recordChargeback(parts, line, (db, result) => store(db, lineResult(result))))
  },
}

function lineResult(result: ImportResult): LineResult {
  if (result.kind === 'refused') return { kind: 'refused', why: mismatches[result.why] }
  if (result.kind === 'known') return { kind: 'known', paymentId: result.paymentId, text: result.paymentId }
  const { id, type, referenceId } = result.payment
  return { kind: 'recorded', paymentId: id, text: `${type} ${id} of ${referenceId}` }
}
