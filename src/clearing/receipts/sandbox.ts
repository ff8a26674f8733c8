// Pays a slip as if a bank or a store had told of it: for the sandbox's page and for the command line of one.

import type { SlipAccounts } from '../../connectors/slips/accounts.ts'
import { todayAt } from '../../connectors/slips/request.ts'
import { randomHex } from '../../platform/clock.ts'
import type { Slip } from '../../slips/store.ts'
import { type Receipt, type ReceiptParts, type ReceiptResult, recordReceipt } from './receipts.ts'

/** Whole, today, and each time once more, unless it says otherwise. */
export async function payInSandbox(
  parts: ReceiptParts & { readonly slipAccounts: SlipAccounts },
  { account, number, amount, currency, merchantId }: Slip,
  more: Partial<Receipt> = {},
): Promise<ReceiptResult> {
  const today = todayAt(parts.slipAccounts.get(account) ?? { utcOffset: 0 }, parts.directory.businessTime(merchantId))
  return recordReceipt(parts, {
    account,
    number,
    key: `sandbox ${randomHex(parts.random)}`,
    amount,
    currency,
    paidOn: today,
    ...more,
  })
}
