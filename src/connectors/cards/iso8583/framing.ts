// Frames on a stream: two bytes of length, most significant first, then so many bytes. Pure: bytes come in as they come, whole messages go out.

/** Longer frames are no message but noise: the connection is then closed. */
export const frameMax = 4096

export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

export type Splitter = { push(bytes: Buffer): readonly Buffer[] | 'badLength' }

/** Collects bytes and returns the messages that they complete. After `badLength` the stream cannot be followed any more. */
export function splitter(): Splitter {
  let pending: Buffer = Buffer.alloc(0)
  return {
    push(bytes) {
      pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes])
      const messages: Buffer[] = []
      let at = 0
      while (pending.length - at >= 2) {
        const length = pending.readUInt16BE(at)
        if (length === 0 || length > frameMax) return 'badLength'
        if (pending.length - at - 2 < length) break
        messages.push(Buffer.from(pending.subarray(at + 2, at + 2 + length)))
        at += 2 + length
      }
      pending = Buffer.from(pending.subarray(at))
      return messages
    },
  }
}
