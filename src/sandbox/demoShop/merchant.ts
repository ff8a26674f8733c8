// The merchant's side of a payment, as any shop would write it: it knows nothing but the interface. The demo shop shows this file to be copied.

import { createDecipheriv } from 'node:crypto'

export type Account = { readonly baseUrl: string; readonly entityId: string; readonly accessToken: string }

export type GatewayRecord = { readonly id: string; readonly result: { readonly code: string; readonly description: string } }

/** Before the page is shown: a checkout for what is in the cart. Its id goes into the page. */
export const beginCheckout = (account: Account, order: Readonly<Record<string, string>>): Promise<GatewayRecord> =>
  ask(account, 'POST', '/v1/checkouts', order)

/** When the shopper is back: what became of it. What stands in the address is the shopper's to change; only this answer counts. */
export const readStatus = (account: Account, checkoutId: string): Promise<GatewayRecord> =>
  ask(account, 'GET', `/v1/checkouts/${encodeURIComponent(checkoutId)}/payment`, {})

/** Success, as the interface defines it. */
export const isPaid = ({ result }: GatewayRecord): boolean => /^(000\.000\.|000\.100\.1|000\.[36])/.test(result.code)

/** Nothing is decided yet: a notification tells how it ends. */
export const isPending = ({ result }: GatewayRecord): boolean => /^(000\.200|800\.400\.5|100\.400\.500)/.test(result.code)

/** A notification: AES-256-GCM in hex. Throws when it does not come from the gateway. */
export function openNotification(secret: string, headers: Readonly<Record<string, string>>, body: string): unknown {
  const cipher = createDecipheriv(
    'aes-256-gcm',
    Buffer.from(secret, 'hex'),
    Buffer.from(headers['X-Initialization-Vector']!, 'hex'),
    {
      authTagLength: 16,
    },
  )
  cipher.setAuthTag(Buffer.from(headers['X-Authentication-Tag']!, 'hex'))
  return JSON.parse(cipher.update(body, 'hex', 'utf8') + cipher.final('utf8'))
}

async function ask<Answer = GatewayRecord>(
  { baseUrl, entityId, accessToken }: Account,
  method: 'GET' | 'POST',
  path: string,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const form = new URLSearchParams({ entityId, ...fields })
  const response = await fetch(method === 'GET' ? `${baseUrl}${path}?${form}` : `${baseUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${accessToken}` },
    ...(method === 'POST' && { body: form }),
  })
  return (await response.json()) as Answer
}
