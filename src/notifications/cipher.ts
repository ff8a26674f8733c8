// The cipher of notifications, as on the live platform: AES-256-GCM without additional data, everything in upper-case hex,
// initialization vector and authentication tag in headers, the body without the tag.

import { createCipheriv, createDecipheriv } from 'node:crypto'

export type Ciphertext = { readonly iv: string; readonly tag: string; readonly body: string }

/** `secret` is 32 bytes; `iv` 12 bytes, never used twice with one secret. */
export function encrypt(secret: Buffer, iv: Buffer, text: string): Ciphertext {
  const cipher = createCipheriv('aes-256-gcm', secret, iv)
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return { iv: hex(iv), tag: hex(cipher.getAuthTag()), body: hex(body) }
}

/** Undefined when the secret is another one or a byte was changed. A shortened tag is refused. */
export function decrypt(secret: Buffer, { iv, tag, body }: Ciphertext): string | undefined {
  const [ivBytes, tagBytes, bytes] = [iv, tag, body].map(text => Buffer.from(text, 'hex')) as [Buffer, Buffer, Buffer]
  if (ivBytes.length !== 12 || tagBytes.length !== 16) return undefined
  try {
    const cipher = createDecipheriv('aes-256-gcm', secret, ivBytes, { authTagLength: 16 }).setAuthTag(tagBytes)
    return Buffer.concat([cipher.update(bytes), cipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

const hex = (bytes: Buffer): string => bytes.toString('hex').toUpperCase()
