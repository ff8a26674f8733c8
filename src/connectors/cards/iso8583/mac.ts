// Message authentication codes of DE64 and DE128: eight bytes over all that stands before them, behind the header. Keys come from the vault's key files.

import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto'

/** ISO 9797-1 algorithm 3 with DES (ANSI X9.19), or AES-CMAC (RFC 4493) of which the first eight bytes are sent. */
export type MacAlgorithm = 'retail' | 'cmac'

export const macBytes = 8
export const macKeyBytes = 16

export type Mac = {
  of(bytes: Buffer): Buffer
  /** Also under the key before the last, because what is under way when the key changes was made with it. */
  agrees(bytes: Buffer, mac: Buffer): boolean
  /** Works under another key from now on: one that came wrapped under the key of the file. False when it is none. */
  take(wrapped: Buffer): boolean
}

export function makeMac(algorithm: MacAlgorithm, master: Buffer): Mac {
  const { of, unwrap } = algorithms[algorithm]
  let keys: readonly Buffer[] = [master]
  return {
    of: bytes => of(keys[0]!, bytes),
    agrees: (bytes, mac) =>
      mac.length === macBytes && keys.map(key => timingSafeEqual(of(key, bytes), mac)).some(agreed => agreed),
    take(wrapped) {
      const key = unwrap(master, wrapped)
      if (key) keys = [key, keys[0]!]
      return key !== undefined
    },
  }
}

/** A key for the way: under the master key, so that its receiver can tell a wrong one. */
export const wrapKey = (algorithm: MacAlgorithm, master: Buffer, key: Buffer): Buffer => algorithms[algorithm].wrap(master, key)

type Algorithm = {
  of(key: Buffer, bytes: Buffer): Buffer
  wrap(master: Buffer, key: Buffer): Buffer
  unwrap(master: Buffer, wrapped: Buffer): Buffer | undefined
}

const run = (cipher: ReturnType<typeof createCipheriv>, bytes: Buffer): Buffer =>
  Buffer.concat([cipher.setAutoPadding(false).update(bytes), cipher.final()])
/** DES alone is triple DES with one key three times. */
const tripled = (half: Buffer) => Buffer.concat([half, half, half])
const desKey = (key: Buffer) => Buffer.concat([key, key.subarray(0, 8)])
const encryptDes = (key: Buffer, block: Buffer) => run(createCipheriv('des-ede3-ecb', key, null), block)
const decryptDes = (key: Buffer, block: Buffer) => run(createDecipheriv('des-ede3-ecb', key, null), block)
/** The first three bytes of a block of zeros under the key. */
const checkValue = (key: Buffer) => encryptDes(desKey(key), Buffer.alloc(8)).subarray(0, 3)

const encryptAes = (key: Buffer, block: Buffer) => run(createCipheriv('aes-128-ecb', key, null), block)
const wrapVector = Buffer.from('a6'.repeat(8), 'hex') // RFC 3394

const algorithms: Readonly<Record<MacAlgorithm, Algorithm>> = {
  retail: {
    of(key, bytes) {
      const [first, second] = [tripled(key.subarray(0, 8)), tripled(key.subarray(8))]
      const padded = Buffer.concat([bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8)])
      const chained = run(createCipheriv('des-ede3-cbc', first, Buffer.alloc(8)), padded).subarray(-8)
      return encryptDes(first, decryptDes(second, chained))
    },
    /** The key and its check value. */
    wrap: (master, key) => Buffer.concat([encryptDes(desKey(master), key), checkValue(key)]),
    unwrap(master, wrapped) {
      if (wrapped.length !== macKeyBytes + 3) return undefined
      const key = decryptDes(desKey(master), wrapped.subarray(0, macKeyBytes))
      return checkValue(key).equals(wrapped.subarray(macKeyBytes)) ? key : undefined
    },
  },
  cmac: {
    of: (key, bytes) => cmac(key, bytes).subarray(0, macBytes),
    wrap: (master, key) => run(createCipheriv('id-aes128-wrap', master, wrapVector), key),
    unwrap(master, wrapped) {
      if (wrapped.length !== macKeyBytes + 8) return undefined
      try {
        return run(createDecipheriv('id-aes128-wrap', master, wrapVector), wrapped)
      } catch {
        return undefined // it was wrapped under another key
      }
    },
  },
}

/** RFC 4493. */
export function cmac(key: Buffer, bytes: Buffer): Buffer {
  const doubled = (block: Buffer): Buffer => {
    const value = BigInt(`0x${block.toString('hex')}`)
    const shifted = (value << 1n) & ((1n << 128n) - 1n)
    return Buffer.from((value >> 127n ? shifted ^ 0x87n : shifted).toString(16).padStart(32, '0'), 'hex')
  }
  const whole = bytes.length > 0 && bytes.length % 16 === 0
  const one = doubled(encryptAes(key, Buffer.alloc(16)))
  const mask = whole ? one : doubled(one)
  const padded = whole ? Buffer.from(bytes) : Buffer.concat([bytes, Buffer.from([0x80]), Buffer.alloc(15 - (bytes.length % 16))])
  for (let at = 0; at < 16; at++) padded[padded.length - 16 + at]! ^= mask[at]!
  return run(createCipheriv('aes-128-cbc', key, Buffer.alloc(16)), padded).subarray(-16)
}
