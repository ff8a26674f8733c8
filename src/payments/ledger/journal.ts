// The books. One row is one transfer: the debit account receives, the credit account gives. Accounts per merchant, mode and currency:
//   holds, held       what issuers hold for the merchant, and its counter account
//   acquirer          what the acquirer owes: cleared money
//   bank              what banks and store chains collected on slips
//   merchant          what is the merchant's
// An approved operation posts; a refund and a reversal reserve when they are written, and post or void at their answer (decisions, 7).

import type { Payment } from '../payment.ts'

export type LedgerAccount = 'holds' | 'held' | 'acquirer' | 'bank' | 'merchant'
export type Transfer = {
  readonly line: number
  readonly debit: LedgerAccount
  readonly credit: LedgerAccount
  /** Hundredths, above zero. */
  readonly amount: number
  readonly state: 'pending' | 'posted' | 'voided'
}

type AccountPair = readonly [debit: LedgerAccount, credit: LedgerAccount]
const hold: AccountPair = ['held', 'holds']
const release: AccountPair = ['holds', 'held']
const clear: AccountPair = ['acquirer', 'merchant']
const giveBack: AccountPair = ['merchant', 'acquirer']
const receive: AccountPair = ['bank', 'merchant']
const transferBack: AccountPair = ['merchant', 'bank']

/** What the books of a chain go by: the type of its first payment, or that it is a slip. */
export const rootTypeOf = ({ type, record }: Payment): string => (record.slip ? 'slip' : type)

/** What is reserved when the operation is written, before the connector is asked. */
export function reserves(payment: Payment, rootType: string): Transfer[] {
  const between = reservation(payment, rootType)
  return between ? [line(0, between, payment.amount, 'pending')] : []
}

/** What the answer books. */
export function books(payment: Payment, rootType: string, approved: boolean): Transfer[] {
  const reserved = reservation(payment, rootType)
  if (reserved) return [line(1, reserved, payment.amount, approved ? 'posted' : 'voided')]
  if (!approved) return []
  switch (payment.type) {
    case 'PA':
      return payment.amount === 0 || rootType === 'slip' ? [] : [line(1, hold, payment.amount, 'posted')] // an account check and a slip hold nothing
    case 'DB':
    case 'CR':
      return [line(1, clear, payment.amount, 'posted')]
    case 'CD':
    case 'CB':
      return [line(1, giveBack, payment.amount, 'posted')]
    case 'RC':
      return [line(1, receive, payment.amount, 'posted')]
    case '3D':
      return []
    case 'RV':
      return [] // of a slip
    default:
      return [line(1, release, payment.record.releases ?? 0, 'posted'), line(2, clear, payment.amount, 'posted')]
  }
}

function reservation({ type }: Payment, rootType: string): AccountPair | undefined {
  if (type === 'RF') return rootType === 'slip' ? transferBack : giveBack
  if (type !== 'RV' || rootType === 'slip') return undefined
  return rootType === 'PA' ? release : giveBack
}

const line = (line: number, [debit, credit]: AccountPair, amount: number, state: Transfer['state']): Transfer => ({
  line,
  debit,
  credit,
  amount,
  state,
})
