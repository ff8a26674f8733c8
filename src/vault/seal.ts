// The seal: AES-256-GCM in an envelope. Each record has a key of its own, wrapped by the newest seal key, and is bound to
// the place it belongs to, so that a sealed record copied to another row does not open.

import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto'
import type { Random } from '../platform/clock.ts'
import type { Keys } from './keys.ts'

// Bytes: version 1 · key id 4 · wrap IV 12 · wrapped key 32 · wrap tag 16 · IV 12 · tag 16 · ciphertext
const version = 1
const at = { keyId: 1, wrapIv: 5, wrapped: 17, wrapTag: 49, iv: 65, tag: 77, sealed: 93 }

/** A record that does not open: another key, another place, or changed bytes. It never says which. */
export class SealError extends Error {}

/** `place` names what the record belongs to, for example merchant and payment id. */
export function seal(keys: Keys, random: Random, place: string, text: string): Buffer {
  const { id, key } = keys.seal[0]!
  const drawn = random.bytes(56)
  const recordKey = drawn.subarray(0, 32)
  const head = Buffer.from(`0${version}${id}`, 'hex')
  const bound = Buffer.concat([head, Buffer.from(place)])
  const wrapIv = drawn.subarray(32, 44)
  const wrap = createCipheriv('aes-256-gcm', key, wrapIv).setAAD(bound)
  const wrapped = wrap.update(recordKey)
  wrap.final() // in this mode it has no bytes of its own, only the tag
  const iv = drawn.subarray(44, 56)
  const cipher = createCipheriv('aes-256-gcm', createSecretKey(recordKey), iv).setAAD(bound)
  const sealed = cipher.update(text, 'utf8')
  cipher.final()
  const record = Buffer.concat([head, wrapIv, wrapped, wrap.getAuthTag(), iv, cipher.getAuthTag(), sealed])
  recordKey.fill(0)
  return record
}

export function unseal(keys: Keys, place: string, record: Buffer): string {
  try {
    const id = record.toString('hex', at.keyId, at.wrapIv)
    const key = keys.seal.find(one => one.id === id)
    if (record[0] !== version || !key) throw new SealError()
    const bound = Buffer.concat([record.subarray(0, at.wrapIv), Buffer.from(place)])
    const wrap = open(key.key, record.subarray(at.wrapIv, at.wrapped), record.subarray(at.wrapTag, at.iv), bound)
    const recordKey = Buffer.concat([wrap.update(record.subarray(at.wrapped, at.wrapTag)), wrap.final()])
    const cipher = open(createSecretKey(recordKey), record.subarray(at.iv, at.tag), record.subarray(at.tag, at.sealed), bound)
    return Buffer.concat([cipher.update(record.subarray(at.sealed)), cipher.final()]).toString('utf8')
  } catch {
    throw new SealError('The sealed record does not open.')
  }
}

function open(key: KeyObject, iv: Buffer, tag: Buffer, bound: Buffer) {
  return createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 }).setAAD(bound).setAuthTag(tag)
}
