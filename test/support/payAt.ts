// Payments at a gateway that is a process of its own.

import assert from 'node:assert/strict'
import { visa } from './gateway.ts'
import type { Started } from './process.ts'

/** → the id of a debit, once it is answered as approved. */
export async function payAt({ sandbox: { baseUrl, entityId, accessToken } }: Started): Promise<string> {
  const answer = await fetch(`${baseUrl}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${accessToken}` },
    body: new URLSearchParams({ entityId, amount: '1.00', currency: 'EUR', paymentType: 'DB', ...visa }),
  })
  const { id, result } = (await answer.json()) as { id: string; result: { code: string } }
  assert.equal(result.code, '000.100.110')
  return id
}

/** → the status of the answer. */
export const readAt = async ({ sandbox: { baseUrl, entityId, accessToken } }: Started, id: string): Promise<number> =>
  (await fetch(`${baseUrl}/v1/payments/${id}?entityId=${entityId}`, { headers: { Authorization: `Bearer ${accessToken}` } }))
    .status
