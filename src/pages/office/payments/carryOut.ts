// An order of the staff is carried out by the same way as a merchant's follow-up, at once or when a colleague has approved it.

import type { Actor } from '../../../audit/entry.ts'
import { amountText } from '../../../contract/amounts.ts'
import { results } from '../../../contract/results/results.ts'
import type { Channel } from '../../../merchants/directory.ts'
import { followUp } from '../../../payments/followUps/followUp.ts'
import { requestKey } from '../../../payments/idempotency.ts'
import type { StaffOrder } from '../../../staff/orders/store.ts'
import type { OfficeParts } from '../parts.ts'

export type CarriedOut = {
  /** HTTP, as the interface would answer where it is not good. */
  readonly status: 200 | 400 | 404
  /** Absent: nothing was stored. */
  readonly code?: string
  readonly description: string
}

/** `once` is the order's own name within `scope`: carried out a second time it is the same order. `number`: of the request, ends its ndc. */
export async function carryOut(
  parts: OfficeParts & { readonly by: Actor },
  channel: Channel,
  { paymentId, type, amount, currency }: Pick<StaffOrder, 'paymentId' | 'type' | 'amount' | 'currency'>,
  scope: string,
  once: string,
  number: string,
): Promise<CarriedOut> {
  const fields = { paymentType: type, amount: amountText(amount), currency }
  const said = await followUp(parts, {
    by: parts.by,
    channel,
    referenceId: paymentId,
    values: new Map(Object.entries(fields)),
    known: new Map(),
    ndc: `${channel.id}_${number}`,
    key: requestKey(parts, channel.id, channel.id, scope, once, { pairs: Object.entries(fields), broken: new Set() }),
  })
  if ('unknown' in said) return { status: 404, description: results[said.unknown].description }
  if ('refused' in said) return { status: 400, description: results[said.refused].description }
  const { result } = JSON.parse(said.body) as { result: { code: string; description: string } }
  const isGood = said.outcome === 'success' || said.outcome === 'review' || said.outcome === 'pending'
  return { status: isGood ? 200 : 400, ...result }
}
