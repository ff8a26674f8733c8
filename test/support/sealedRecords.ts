// Records of TLS 1.3 (RFC 8446) that Node does not send: new keys as often as one likes, padding, and what stands behind them. The secret of one direction
// is what Node tells as keylog of a connection that it opened.

import assert from 'node:assert/strict'
import { createCipheriv, createHmac } from 'node:crypto'
import type { EventEmitter } from 'node:events'

export type RecordSealer = {
  /** What a caller says, in a record of its own. */
  says(text: string): Buffer
  /** Keys are new from the next record on. `asks`: those of the other side too. */
  renewsKeys(asks: boolean, padding?: number): Buffer
}

/** Begun before TLS stands, and asked for once it does. */
export function recordSealer(socket: EventEmitter, direction: 'CLIENT' | 'SERVER'): { sealer(said: number): RecordSealer } {
  let secret: Buffer | undefined
  socket.on('keylog', (line: Buffer) => {
    const [label, , value] = line.toString('latin1').trim().split(' ')
    if (label === `${direction}_TRAFFIC_SECRET_0`) secret = Buffer.from(value!, 'hex')
  })
  return { sealer: said => sealer(secret!, said) }
}

/** `said`: how many records of this direction were sealed by these keys already. */
function sealer(secret: Buffer, said: number): RecordSealer {
  assert.equal(secret.length, 48, 'TLS_AES_256_GCM_SHA384 is what both sides like best')
  let keys = keysOf(secret)
  const seal = (type: number, content: Buffer, padding = 0): Buffer => {
    const inner = Buffer.concat([content, Buffer.of(type), Buffer.alloc(padding)])
    const header = Buffer.of(23, 3, 3, (inner.length + 16) >> 8, (inner.length + 16) & 255)
    const nonce = Buffer.from(keys.iv)
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ said++) >>> 0, 8)
    const cipher = createCipheriv('aes-256-gcm', keys.key, nonce).setAAD(header)
    return Buffer.concat([header, cipher.update(inner), cipher.final(), cipher.getAuthTag()])
  }
  return {
    says: text => seal(23, Buffer.from(text)),
    renewsKeys(asks, padding) {
      const record = seal(22, Buffer.of(24, 0, 0, 1, asks ? 1 : 0), padding)
      secret = expand(secret, 'traffic upd', 48)
      keys = keysOf(secret)
      said = 0
      return record
    },
  }
}

const keysOf = (secret: Buffer) => ({ key: expand(secret, 'key', 32), iv: expand(secret, 'iv', 12) })

/** HKDF-Expand-Label, of at most one block. */
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`)
  const asked = Buffer.concat([Buffer.of(0, length, name.length), name, Buffer.of(0, 1)])
  return createHmac('sha384', secret).update(asked).digest().subarray(0, length)
}

/** Of a server of TLS 1.2 with AES-128-GCM (RFC 5246, RFC 5288): its secret as Node tells it as keylog, and its random number as its hello has it. `said`: how many records it has sealed. */
export function olderSealer(keylog: Buffer, serverRandom: Buffer, said: number): (type: number, content: Buffer) => Buffer {
  const [label, clientRandom, master] = keylog.toString('latin1').trim().split(' ')
  assert.equal(label, 'CLIENT_RANDOM')
  const keys = olderExpand(Buffer.from(master!, 'hex'), Buffer.concat([serverRandom, Buffer.from(clientRandom!, 'hex')]), 40)
  return (type, content) => {
    const number = Buffer.alloc(8)
    number.writeBigUInt64BE(BigInt(said++))
    const about = Buffer.concat([number, Buffer.of(type, 3, 3, content.length >> 8, content.length & 255)])
    const cipher = createCipheriv('aes-128-gcm', keys.subarray(16, 32), Buffer.concat([keys.subarray(36, 40), number]))
    cipher.setAAD(about)
    const sealed = Buffer.concat([number, cipher.update(content), cipher.final(), cipher.getAuthTag()])
    return Buffer.concat([Buffer.of(type, 3, 3, sealed.length >> 8, sealed.length & 255), sealed])
  }
}

/** The PRF of TLS 1.2 for keys. */
function olderExpand(secret: Buffer, seed: Buffer, length: number): Buffer {
  const [given, keyed] = [
    Buffer.concat([Buffer.from('key expansion'), seed]),
    (data: Buffer) => createHmac('sha256', secret).update(data).digest(),
  ]
  let [step, made] = [given, Buffer.alloc(0)]
  while (made.length < length) {
    step = keyed(step)
    made = Buffer.concat([made, keyed(Buffer.concat([step, given]))])
  }
  return made.subarray(0, length)
}
