// The seal: AES-256-GCM in an envelope. A data key seals some hundred records of one process and stands beside each of them, wrapped by the newest seal
// key. A record is bound to the place it belongs to, so that one that is copied to another row does not open.

import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto'
import type { Random } from '../platform/clock.ts'
import type { Key, Keys } from './keys.ts'

// Bytes: version 2 · key id 4 · wrap IV 12 · wrapped key 32 · wrap tag 16 · IV 12 · tag 16 · ciphertext
// In version 1 each record had a data key of its own, and the wrapped one was bound to the place too.
const version = 2
const at = { keyId: 1, wrapIv: 5, wrapped: 17, wrapTag: 49, iv: 65, tag: 77, sealed: 93 }

/** A record that does not open: another key, another place, or changed bytes. It never says which. */
export class SealError extends Error {}

/** What a data key seals: few enough that an IV drawn by chance never comes twice. */
export const recordsOfKey = 1000

type DataKey = { readonly key: KeyObject /** All that stands before the IV of a record. */; readonly head: Buffer; left: number }
const dataKeys = new WeakMap<Key, DataKey>()

/** `place` names what the record belongs to, for example merchant and payment id. */
export function seal(keys: Keys, random: Random, place: string, text: string): Buffer {
  const sealing = beginSeal(keys, random, place)
  sealing.add(text)
  return sealing.end()
}

/** The same for a text that comes in pieces. */
export function beginSeal(keys: Keys, random: Random, place: string): { add(text: string): void; end(): Buffer } {
  const sealKey = keys.seal[0]!
  let dataKey = dataKeys.get(sealKey)
  if (!dataKey || dataKey.left === 0) {
    dataKey = makeDataKey(sealKey, random)
    dataKeys.set(sealKey, dataKey)
  }
  dataKey.left -= 1
  const { key, head } = dataKey
  const iv = random.bytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(boundTo(head, place))
  const sealed: Buffer[] = []
  return {
    add: text => void sealed.push(cipher.update(text, 'utf8')),
    end() {
      cipher.final() // in this mode it has no bytes of its own, only the tag
      return Buffer.concat([head, iv, cipher.getAuthTag(), ...sealed])
    },
  }
}

function makeDataKey({ id, key }: Key, random: Random): DataKey {
  const drawn = random.bytes(44)
  const dataKey = drawn.subarray(0, 32)
  const named = Buffer.from(`0${version}${id}`, 'hex')
  const iv = drawn.subarray(32)
  const wrap = createCipheriv('aes-256-gcm', key, iv).setAAD(named)
  const wrapped = wrap.update(dataKey)
  wrap.final()
  const made = { key: createSecretKey(dataKey), head: Buffer.concat([named, iv, wrapped, wrap.getAuthTag()]), left: recordsOfKey }
  dataKey.fill(0)
  return made
}

export function unseal(keys: Keys, place: string, record: Buffer): string {
  try {
    const id = record.toString('hex', at.keyId, at.wrapIv)
    const key = keys.seal.find(one => one.id === id)
    if ((record[0] !== version && record[0] !== 1) || !key) throw new SealError()
    const bound = boundTo(record, place)
    const wrapBound = record[0] === 1 ? bound : record.subarray(0, at.wrapIv)
    const wrap = open(key.key, record.subarray(at.wrapIv, at.wrapped), record.subarray(at.wrapTag, at.iv), wrapBound)
    const dataKey = Buffer.concat([wrap.update(record.subarray(at.wrapped, at.wrapTag)), wrap.final()])
    const cipher = open(createSecretKey(dataKey), record.subarray(at.iv, at.tag), record.subarray(at.tag, at.sealed), bound)
    dataKey.fill(0)
    return Buffer.concat([cipher.update(record.subarray(at.sealed)), cipher.final()]).toString('utf8')
  } catch {
    throw new SealError('The sealed record does not open.')
  }
}

/** Version, seal key and place. */
const boundTo = (record: Buffer, place: string): Buffer => Buffer.concat([record.subarray(0, at.wrapIv), Buffer.from(place)])

function open(key: KeyObject, iv: Buffer, tag: Buffer, bound: Buffer) {
  return createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 }).setAAD(bound).setAuthTag(tag)
}
