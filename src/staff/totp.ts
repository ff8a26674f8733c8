// The second factor: codes of six digits that change every half minute (RFC 6238 with HMAC-SHA-1, as every app has it).

import { createHmac } from 'node:crypto'

export const stepSeconds = 30
export const secretBytes = 20

export const stepAt = (now: number): number => Math.floor(now / 1000 / stepSeconds)

/** RFC 4226, 5.3. */
export function totpCode(secret: Buffer, step: number, digits = 6): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const number = mac.readUInt32BE(mac.at(-1)! & 15) & 0x7fffffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** The step that a code is of: this one, or its neighbours, for devices whose clocks are a little off (RFC 6238, 5.2). */
export function stepOfCode(secret: Buffer, code: string, now: number): number | undefined {
  const digits = code.replace(/[\s-]/g, '')
  return [0, -1, 1].map(off => stepAt(now) + off).find(step => totpCode(secret, step) === digits)
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 without padding, as people type it. */
export function base32(bytes: Buffer): string {
  let [text, bits, count] = ['', 0, 0]
  for (const byte of bytes) {
    bits = (bits << 8) | byte
    for (count += 8; count >= 5; count -= 5) text += alphabet[(bits >> (count - 5)) & 31]
    bits &= 0xff
  }
  return count > 0 ? text + alphabet[(bits << (5 - count)) & 31] : text
}

/** What an app reads from a QR code. */
export const totpAddress = (secret: Buffer, issuer: string, name: string): string =>
  `otpauth://totp/${encodeURIComponent(`${issuer}:${name}`)}?${new URLSearchParams({ secret: base32(secret), issuer })}`
