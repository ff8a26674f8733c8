// Signatures after the Standard Webhooks specification 1.0: HMAC-SHA-256 over id, time and the bytes of the body.

import { createHmac, timingSafeEqual } from 'node:crypto'

const toleranceSeconds = 300

/** One signature for each valid secret, separated by a space: a receiver needs to know one of them. */
export const signature = (secrets: readonly Buffer[], id: string, seconds: number, body: string): string =>
  secrets.map(secret => `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')}`).join(' ')

/** What a receiver does: one of the signatures is right, and the time is not far off. */
export function isSigned(secret: Buffer, id: string, seconds: number, body: string, sent: string, nowSeconds: number): boolean {
  if (!(Math.abs(nowSeconds - seconds) <= toleranceSeconds)) return false
  const wanted = Buffer.from(signature([secret], id, seconds, body))
  return sent.split(' ').some(one => {
    const given = Buffer.from(one)
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  })
}

/** The secret as libraries for Standard Webhooks take it. */
export const signingSecret = (secret: Buffer): string => `whsec_${secret.toString('base64')}`
