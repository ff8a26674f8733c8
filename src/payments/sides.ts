// Whose server work about a payment calls: what waits for a bank, a wallet or an acquirer is done apart from all that moves money elsewhere.

import type { Connector } from '../connectors/connector.ts'
import type { DueSides } from '../platform/due/worker.ts'
import type { PaymentParts } from './parts.ts'
import type { Payment } from './payment.ts'
import { findCarriers } from './store/read.ts'

/** Empty where no server is called that is one for many payments. */
export const sideOf = (
  connector: Connector | undefined,
  { brand, record: { prepared } }: Pick<Payment, 'brand'> & { readonly record: Pick<Payment['record'], 'prepared'> },
): string => connector?.askedAt?.({ brand: brand ?? '', ...(prepared && { prepared }) }) ?? ''

/** Kinds of due work that call whoever carries a payment. */
export const carriedKinds: readonly string[] = ['recover', 'reverse', 'release', 'capture', 'redirectExpiry']

/** Of work about payments that calls a side: which. All of a look are read at once. */
export const findPaymentSides: DueSides<PaymentParts> = async (parts, items) => {
  // What an operator has decided asks nobody.
  const carried = items.filter(({ kind, details }) => carriedKinds.includes(kind) && details.decision === undefined)
  if (carried.length === 0) return new Map()
  const carriers = await findCarriers(parts.database.work, carried)
  return new Map(
    carried.flatMap(item => {
      const carrier = carriers.get(item.subjectId)
      const side = carrier ? sideOf(parts.connectors.get(carrier.connector), carrier) : ''
      return side === '' ? [] : [[item, side] as const]
    }),
  )
}
