// The addresses of a payment whose shopper leaves. A token is 96 random bits, a mark of 36 by which it is known again, a dot and the merchant's tail; the database knows only its hash.

import { createHash } from 'node:crypto'
import type { Addresses } from '../../connectors/connector.ts'
import { merchantOfTail, merchantTail } from '../../merchants/merchantTail.ts'
import { asksFor, pressedWeight } from '../../platform/database/fairPool.ts'
import { keyedHashes } from '../../vault/keys.ts'
import { isMarked, marked } from '../../vault/marks.ts'
import type { PaymentParts } from '../parts.ts'

export type TokenKind = 'page' | 'notice'

const mark = { signs: 6, encoding: 'base64url' } as const

export function makeAddresses({ keys, random }: PaymentParts, publicUrl: string, merchantId: string): Addresses {
  const token = () => `${marked(keys, random.bytes(12).toString('base64url'), mark)}.${merchantTail(merchantId)}`
  return addressesOf(publicUrl, token(), token())
}

/** The addresses of two tokens. */
export function addressesOf(publicUrl: string, page: string, notice: string): Addresses {
  return {
    page: `${publicUrl}/r/${page}`,
    back: `${publicUrl}/r/return/${page}`,
    cancel: `${publicUrl}/r/cancel/${page}`,
    method: `${publicUrl}/r/method/${page}`,
    methodDone: `${publicUrl}/r/methodDone/${page}`,
    notice: `${publicUrl}/r/notice/${notice}`,
  }
}

/** The token at the end of an address. */
export const tokenOf = (address: string): string => address.slice(address.lastIndexOf('/') + 1)

/** Whose a token is, and its hashes; undefined when the text is no token. */
export function readToken(
  parts: PaymentParts,
  kind: TokenKind,
  token: string,
): { readonly merchantId: string; readonly hashes: readonly Buffer[] } | undefined {
  // Those of an older release have no mark, and look the same: its gateways may be asked for ours.
  const [, secret, tail] = /^([A-Za-z0-9_-]{22})\.([0-9a-z]{1,25})$/.exec(token) ?? []
  const merchantId = tail === undefined ? undefined : merchantOfTail(tail)
  if (merchantId === undefined) return undefined
  parts.directory.mustServe(merchantId)
  const hashes = hashesOf(parts, kind, token)
  if (isMarked(parts.keys, secret!, mark)) asksFor(hashes[0]!.toString('hex'), pressedWeight)
  return { merchantId, hashes }
}

export const hashOf = (parts: PaymentParts, kind: TokenKind | 'session', token: string): Buffer =>
  hashesOf(parts, kind, token)[0]!

/** Also under an older lookup key, because a shopper may be away while it is changed. */
export const hashesOf = (parts: PaymentParts, kind: TokenKind | 'session', token: string): readonly Buffer[] =>
  keyedHashes(parts.keys, `redirect ${kind}`, token)

/** Names the cookie of one payment, so that two payments in one browser do not disturb each other. Under HTTPS with the prefix that lets no page
 * without it set one. */
export const cookieName = (page: string, secure: boolean): string =>
  `${secure ? '__Secure-' : ''}tollgate_${createHash('sha256').update(page).digest('hex').slice(0, 12)}`
