// What a file of a day's receipts holds: as CSV, one line each, or as the XML of POST /payment/query.

import type { Mode } from '../../connectors/connector.ts'
import { methodCodeOf } from '../../connectors/registry.ts'
import { amountText } from '../../contract/amounts.ts'
import type { PaymentParts } from '../../payments/parts.ts'
import type { PaymentState } from '../../payments/payment.ts'
import { listXml, transactionXml } from '../../payments/read/xmlRecord.ts'
import { findPage, findPayments } from '../../payments/store/search.ts'
import { wireTime } from '../../platform/clock.ts'
import { csvRow } from '../csv.ts'
import type { FileContent } from '../owedFiles/deliver.ts'

export type ReceiptForm = 'csv' | 'xml'
export type ContentParts = Pick<PaymentParts, 'database' | 'methods' | 'sandbox'>

const dayMilliseconds = 86_400_000
const atOnce = 500
/** More than a merchant can receive in a day. */
const receiptsMost = 1_000_000

/** Of a day that is over it is always the same. Test payments stand in files of a sandbox only (decisions, 6). */
export async function* receiptsOfDay(parts: ContentParts, merchantId: string, day: string, form: ReceiptForm): FileContent {
  const db = parts.database.reports
  const from = Date.parse(day)
  const modes = parts.sandbox ? {} : { mode: 'live' as Mode }
  const found = await findPage(db, { merchantId, types: ['RC'], from, to: from + dayMilliseconds, ...modes }, receiptsMost, 0)
  const [before, behind] = form === 'xml' ? listXml(found.length) : [csvRow(columns), '']
  yield { text: before, records: 0 }
  for (let at = 0; at < found.length; at += atOnce) {
    const ids = found.slice(at, at + atOnce).map(({ id }) => id)
    const payments = new Map((await findPayments(db, merchantId, ids)).map(payment => [payment.id, payment]))
    yield { text: ids.map(id => piece[form](parts, payments.get(id)!)).join(''), records: ids.length }
  }
  yield { text: behind, records: 0 }
}

const columns = [
  ...['id', 'slipId', 'merchantTransactionId', 'merchantInvoiceId', 'entityId', 'paymentBrand', 'amount', 'currency'],
  ...['paidOn', 'creditedOn', 'timestamp', 'testMode', 'duplicate', 'late', 'overpaid', 'underpaid'],
]

const testModes: Readonly<Record<Mode, string>> = { internal: 'INTERNAL', external: 'EXTERNAL', live: '' }

function receiptRow(payment: PaymentState): string {
  const { id, referenceId, merchantTransactionId, channelId, brand, amount, currency, receivedAt, mode, record, answer } = payment
  const { resultDetails: details = {} } = JSON.parse(answer?.body ?? '{}') as { resultDetails?: Record<string, string> }
  return csvRow([
    id,
    referenceId,
    merchantTransactionId,
    record.fields.find(([name]) => name === 'merchantInvoiceId')?.[1],
    channelId,
    brand,
    amountText(amount),
    currency,
    details.paidOn,
    details.creditedOn,
    wireTime(receivedAt),
    testModes[mode],
    details.DUPLICATE,
    details.LATE,
    details.OVERPAID,
    details.UNDERPAID,
  ])
}

const piece: Readonly<Record<ReceiptForm, (parts: ContentParts, payment: PaymentState) => string>> = {
  csv: (_, payment) => receiptRow(payment),
  xml: (parts, payment) => transactionXml(payment, methodCodeOf(payment.brand, parts)),
}

export const receiptFileName = (merchantId: string, day: string, form: ReceiptForm): string =>
  `receipts_${merchantId}_${day}.${form}`
