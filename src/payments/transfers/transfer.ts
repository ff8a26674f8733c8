// Refunds of receipts. No connector carries them: with the refund an order is written to transfer the money, in the same transaction, and the refund is pending
// until the bank, or somebody who has asked it, says what became of it. Where the money goes is sealed, and told to nobody but the bank.

import { type Recorder, record } from '../../audit/chain.ts'
import { successOf } from '../../connectors/registry.ts'
import { results } from '../../contract/results/results.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { seal, unseal } from '../../vault/seal.ts'
import { openCase } from '../cases/cases.ts'
import { closeSettled } from '../cases/store.ts'
import { answerRow, type PaymentResponse } from '../execute.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment, PaymentState } from '../payment.ts'
import { sealPending } from '../read/pendingAnswers.ts'
import { paymentRecord } from '../read/record.ts'
import { insertAnswerHere } from '../store/answers.ts'
import { findPayment } from '../store/read.ts'
import { type BankDetails, readBankDetails } from './bankDetails.ts'
import { enterTransfer, insertTransfer, lockTransfer, type TransferRow, transfersAbout } from './store.ts'

/** No connector has this name: whoever would carry such a refund out by itself finds nobody to ask. */
export const byTransfer = 'transfer'

/** Inside the transaction that writes the refund. */
export async function orderTransfer(
  parts: PaymentParts,
  db: Connection,
  refund: Payment,
  root: PaymentState,
  memo: string | undefined,
): Promise<PaymentResponse> {
  const { merchantId, id } = refund
  const details = memo === undefined ? undefined : readBankDetails(memo, refund.currency)
  const text = details ? 'The transfer is ordered' : 'The transfer waits for bank details'
  const now = parts.directory.businessTime(merchantId)
  const outcome = { result: results.pending, details: { ExtendedDescription: text } }
  const body = JSON.stringify(paymentRecord(refund, outcome, parts.build, now))
  const account = root.answer?.kept.account ?? ''
  const sealed = details && sealDetails(parts, refund, details)
  const row = { account, ...(sealed && { sealed }), answer: sealPending(parts, refund, body) }
  await insertTransfer(db, refund, row, parts.clock.real())
  if (!details)
    await openCase(db, parts, {
      ...waitsForDetails({ merchantId, paymentId: id }),
      details: { account, why: memo === undefined ? 'the refund has no merchantMemo' : 'its merchantMemo cannot be read' },
    })
  return { outcome: 'pending', body }
}

const waitsForDetails = ({ merchantId, paymentId }: Pick<TransferRow, 'merchantId' | 'paymentId'>) =>
  ({ merchantId, kind: 'transferDetails', subject: paymentId }) as const

/** What binds the destination of a refund to it. */
export const transferPlace = (merchantId: string, paymentId: string): string => `refund transfer ${merchantId} ${paymentId}`

const sealDetails = (
  { keys, random }: Pick<PaymentParts, 'keys' | 'random'>,
  { merchantId, id }: Pick<Payment, 'merchantId' | 'id'>,
  details: BankDetails,
): Buffer => seal(keys, random, transferPlace(merchantId, id), JSON.stringify(details))

export const openDetails = (
  { keys }: Pick<PaymentParts, 'keys'>,
  { merchantId, paymentId, sealed }: Pick<TransferRow, 'merchantId' | 'paymentId' | 'sealed'>,
): BankDetails => JSON.parse(unseal(keys, transferPlace(merchantId, paymentId), sealed!))

/** Somebody knows where the money goes, and may say why so; inside a transaction. False when it is in a file already, or has ended. */
export async function enterDetails(
  parts: Recorder & Pick<PaymentParts, 'random'>,
  db: Connection,
  { merchantId, paymentId, sealed: before }: TransferRow,
  details: BankDetails,
  by: string,
  reason?: string,
): Promise<boolean> {
  const sealed = sealDetails(parts, { merchantId, id: paymentId }, details)
  if (!(await enterTransfer(db, { merchantId, paymentId }, sealed))) return false
  await closeSettled(db, waitsForDetails({ merchantId, paymentId }), parts.clock.real(), by, 'bank details were entered')
  const told = { ...(reason !== undefined && { reason }), ...(before !== null && { replaced: true }) }
  await record(db, parts, [{ action: 'transferEntered', entityId: merchantId, subject: paymentId, details: told }])
  return true
}

export type TransferParts = Pick<PaymentParts, 'database' | 'directory' | 'clock' | 'random' | 'build' | 'keys'>

export type TransferEnd = { readonly paid: boolean; readonly code?: string; readonly text: string }

/**
 * What became of a transfer, inside the transaction that says so: the refund is answered, once, whoever says it how often. False when it has ended otherwise
 * before.
 */
export async function settleTransfer(
  parts: TransferParts,
  db: Connection,
  { merchantId, paymentId }: Pick<TransferRow, 'merchantId' | 'paymentId'>,
  { paid, code, text }: TransferEnd,
): Promise<boolean> {
  await lockTransfer(db, { merchantId, paymentId }) // a file that is made now takes it before, or not at all
  const refund = (await findPayment(db, merchantId, paymentId))!
  if (refund.answer) return refund.answer.approved === paid
  const row = answerRow(parts, refund, 'slip', paid ? successOf[refund.mode] : 'transferRefused', {
    kept: {},
    outcome: { details: { ExtendedDescription: text, ...(code !== undefined && { AcquirerResponse: code }) } },
  })
  await insertAnswerHere(db, { ...row, updates: true })
  await closeSettled(db, waitsForDetails({ merchantId, paymentId }), parts.clock.real(), 'gateway', 'the refund has ended')
  return true
}

/** Ends by hand what no file tells of. Refused when it has ended otherwise before, and while it has a place in a file that will be put on disk yet. */
export const endByHand = (
  parts: TransferParts & Recorder,
  transfer: Pick<TransferRow, 'merchantId' | 'paymentId'>,
  paid: boolean,
  reason: string,
): Promise<'ended' | 'otherwise' | 'inFile'> =>
  inTransaction(parts.database.work, async db => {
    await lockTransfer(db, transfer)
    const [locked] = await transfersAbout(db, transfer.merchantId, [transfer.paymentId])
    if (locked?.isUnwritten) return 'inFile'
    const settled = await settleTransfer(parts, db, transfer, { paid, text: reason })
    const { merchantId: entityId, paymentId: subject } = transfer
    const result = settled ? 'done' : 'refused'
    await record(db, parts, [{ action: 'transferEnded', entityId, subject, details: { paid, reason }, result }])
    return settled ? 'ended' : 'otherwise'
  })
