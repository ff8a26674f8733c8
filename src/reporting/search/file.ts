// Payments as rows of files: which columns they have.

import { amountText } from '../../contract/amounts.ts'
import type { Columns } from '../csv.ts'
import type { FoundPayment } from './found.ts'

const same = <Name extends keyof FoundPayment>(name: Name) => ({ [name]: (one: FoundPayment) => one[name] ?? undefined })

export const paymentColumns: Columns<FoundPayment> = {
  ...same('paymentId'),
  ...same('rootId'),
  ...same('merchantId'),
  ...same('channelId'),
  receivedAt: one => new Date(one.receivedAt).toISOString(),
  ...same('type'),
  ...same('brand'),
  amount: one => (one.amount === null ? undefined : amountText(one.amount)),
  ...same('currency'),
  ...same('result'),
  ...same('outcome'),
  ...same('mode'),
  ...same('merchantTransactionId'),
  ...same('invoice'),
  ...same('bin'),
  ...same('lastFour'),
  ...same('descriptor'),
  ...same('slipNumber'),
  ...same('reference'),
}
