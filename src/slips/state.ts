// What a slip is at the moment, read from what refers to it. Pure.

import type { SlipAccount } from '../connectors/slips/accounts.ts'
import { nextWorkingDay } from '../connectors/slips/workingDays.ts'
import { cleared, done } from '../payments/followUps/rules.ts'
import type { PaymentState } from '../payments/payment.ts'
import type { Slip } from './store.ts'

/** `part`: paid, and not all of it. An overdue slip stays as it is and can still be paid. */
export type SlipState = 'payable' | 'part' | 'paid' | 'overdue' | 'writtenOff'

/** `today` is the day in the account's place. */
export function stateOf(
  slip: Pick<Slip, 'amount' | 'dueOn'>,
  root: PaymentState,
  followers: readonly PaymentState[],
  today: string,
  { country, holidays }: Pick<SlipAccount, 'country' | 'holidays'>,
): SlipState {
  const paid = cleared(root, followers)
  if (paid >= slip.amount) return 'paid'
  if (paid > 0) return 'part'
  if (done(followers, 'RV').length > 0) return 'writtenOff'
  // What falls due on a day without work is paid in time on the next one.
  return today > nextWorkingDay(slip.dueOn, country, holidays) ? 'overdue' : 'payable'
}
