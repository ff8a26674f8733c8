// Payments that were stored and must not be sent any more, because their request ended before: its caller was told so, or left (decisions, 60).

import { isUnavailable } from '../platform/database/errors.ts'
import { type Execution, settle } from './execute.ts'
import type { PaymentParts } from './parts.ts'
import { writePatienceSeconds } from './store/payments.ts'
import { findPayment } from './store/read.ts'

/** `began`: when the request came, as `clock.elapsed` tells. */
export const isTooLate = ({ clock }: Pick<PaymentParts, 'clock'>, began: number): boolean =>
  clock.elapsed() - began > writePatienceSeconds * 1000

type UnsentPayment = Pick<Execution, 'payment' | 'rootType'>

/** Ends it as never sent. */
export const settleUnsent = (parts: PaymentParts, unsent: UnsentPayment) =>
  settle(parts, unsent, { kind: 'notSent', why: 'it was stored too late', result: 'storedTooLate' }, false)

const firstPauseMilliseconds = 500
/** Then the search for orphans may take it. */
const pauses = 6

/**
 * A request failed between its write and the connector, and what became of the write may be unknown. Recovery would carry out what its caller was
 * told to have failed: so the payment is ended as never sent, as soon as the database shows it. Goes on after the request; never fails.
 */
export function endUnsent(parts: PaymentParts, unsent: UnsentPayment): void {
  const { merchantId, id } = unsent.payment
  const end = async (): Promise<void> => {
    for (let pause = 0; pause < pauses; pause++) {
      await new Promise<void>(resolve => parts.clock.after(firstPauseMilliseconds * 2 ** pause, resolve).unref())
      try {
        const found = await findPayment(parts.database.work, merchantId, id)
        if (found && !found.answer) await settleUnsent(parts, unsent)
        if (found) return
      } catch (error) {
        if (!isUnavailable(error)) throw error
      }
    }
  }
  end().catch((error: Error) =>
    parts.log.error({ paymentId: id, why: error.message }, 'a payment that was not sent stays unanswered'),
  )
}
