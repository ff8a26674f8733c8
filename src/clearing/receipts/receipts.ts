// Receipts (RC): what a bank or a store chain says was paid on a slip. Each is a payment of its own beside the slip's, recorded with its answer, journal
// and event in one transaction; a second payment of the same slip is a second receipt. The amount is what was paid, whatever the slip asked for.

import { successOf } from '../../connectors/registry.ts'
import { amountText } from '../../contract/amounts.ts'
import { answerRow } from '../../payments/execute.ts'
import { cleared } from '../../payments/followUps/rules.ts'
import { rootTypeOf } from '../../payments/ledger/journal.ts'
import type { PaymentParts } from '../../payments/parts.ts'
import type { PaymentState } from '../../payments/payment.ts'
import { insertAnswered } from '../../payments/store/answers.ts'
import { holdChain } from '../../payments/store/read.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { findSlip, type SlipPlace } from '../../slips/store.ts'
import { type ReportedResult, reportedPayment } from '../reported.ts'
import { findReceipt, insertReceipt } from './store.ts'

export type ReceiptParts = Pick<PaymentParts, 'database' | 'directory' | 'clock' | 'random' | 'build'>

/** What somebody paid on a slip. */
export type Receipt = {
  readonly account: string
  /** Without its check digit, as `slips` has it. */
  readonly number: string
  /** Tells it apart from all other receipts of the account: who sends the same again sends the same key. */
  readonly key: string
  /** What the shopper paid, hundredths. */
  readonly amount: number
  readonly currency: string
  /** `yyyy-MM-dd`. */
  readonly paidOn: string
  readonly creditedOn?: string
  /** What the other side says of it beyond what we see ourselves. */
  readonly flags?: { readonly late?: true; readonly duplicate?: true; readonly over?: true; readonly under?: true }
  /** More for resultDetails. */
  readonly details?: Readonly<Record<string, string>>
}

export type ReceiptResult = ReportedResult<ReceiptMismatch>

/** Why a receipt is not recorded. */
export const receiptMismatches = {
  noSlip: 'no slip of the account has this number',
  currencyDiffers: 'the slip is in another currency',
  nothingPaid: 'the amount must be above zero',
  otherReceipt: 'another payment was recorded under this key before',
} as const
export type ReceiptMismatch = keyof typeof receiptMismatches

/** Records a receipt. `settled` is told in the transaction of what became of it. */
export async function recordReceipt(
  parts: ReceiptParts,
  receipt: Receipt,
  settled: (db: Connection, result: ReceiptResult) => Promise<void> = async () => {},
): Promise<ReceiptResult> {
  const slip = await findSlip(parts.database.work, receipt.account, receipt.number)
  if (!slip) {
    const result = { kind: 'refused', why: 'noSlip' } as const
    await inTransaction(parts.database.work, db => settled(db, result))
    return result
  }
  const { merchantId, paymentId } = slip
  return parts.database.inChain(
    merchantId,
    paymentId,
    db => holdChain(db, merchantId, paymentId),
    async (db, payments) => {
      const result = await settleReceipt(parts, db, receipt, slip, payments)
      await settled(db, result)
      return result
    },
  )
}

async function settleReceipt(
  parts: ReceiptParts,
  db: Connection,
  receipt: Receipt,
  slip: SlipPlace,
  payments: readonly PaymentState[],
): Promise<ReceiptResult> {
  const { merchantId, paymentId: slipId } = slip
  const { account, key, amount, currency, paidOn, creditedOn } = receipt
  if (payments.length === 0) return { kind: 'refused', why: 'noSlip' } // archived meanwhile
  const before = await findReceipt(db, merchantId, account, key)
  if (before !== undefined)
    return payments.some(one => one.id === before && one.amount === amount && one.currency === currency)
      ? { kind: 'known', paymentId: before }
      : { kind: 'refused', why: 'otherReceipt' }
  if (amount <= 0) return { kind: 'refused', why: 'nothingPaid' }
  if (currency !== slip.currency) return { kind: 'refused', why: 'currencyDiffers' }
  const root = payments.find(({ id }) => id === slipId)!
  const paid = cleared(root, payments)
  const payment = reportedPayment(parts, { type: 'RC', amount, currency }, root, root, inherited)
  const answer = answerRow(parts, payment, rootTypeOf(root), successOf[payment.mode], {
    kept: { account, number: receipt.number, key },
    outcome: {
      details: {
        ExtendedDescription: `Paid on ${paidOn}`,
        ConnectorTxID1: receipt.number,
        paidOn,
        ...(creditedOn !== undefined && { creditedOn }),
        ...differences(receipt, slip, paid),
        ...receipt.details,
      },
    },
  })
  await insertReceipt(db, { merchantId, paymentId: payment.id, slipId, account, key, paidOn, ...(creditedOn && { creditedOn }) })
  await insertAnswered(db, answer)
  return { kind: 'recorded', payment }
}

/** How a payment differs from what the slip asked for. `paid`: what was paid on it before. */
export function differences(
  { amount, paidOn, flags = {} }: Pick<Receipt, 'amount' | 'paidOn' | 'flags'>,
  slip: Pick<SlipPlace, 'amount' | 'dueOn'>,
  paid: number,
): Record<string, string> {
  const duplicate = flags.duplicate || paid >= slip.amount
  const open = slip.amount - (duplicate ? 0 : paid)
  return {
    ...(duplicate && { DUPLICATE: 'true' }),
    ...((flags.late || paidOn > slip.dueOn) && { LATE: 'true' }),
    ...(amount > open && { OVERPAID: amountText(amount - open) }),
    ...(amount < open && { UNDERPAID: amountText(open - amount) }),
  }
}

/** What the merchant calls the slip, and who bought, stand on its receipt too. */
const inherited = [
  'merchantTransactionId',
  'merchantInvoiceId',
  'customer.merchantCustomerId',
  'customer.givenName',
  'customer.surname',
  'descriptor',
]
