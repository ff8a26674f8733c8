// Frames on a stream: a length, then what it counts. Pure: bytes come in as they come, whole messages go out.

/** How the length before each message is written. */
export type Framing = {
  readonly bytes: 2 | 4
  /** Most significant byte first; two digits to a byte; or one ASCII digit to a byte. */
  readonly written: 'binary' | 'bcd' | 'ascii'
  /** The length's own bytes are counted too. */
  readonly countsItself: boolean
}

/** The length of most hosts. */
const twoBytes: Framing = { bytes: 2, written: 'binary', countsItself: false }

/** Longer messages are no message but noise: the connection is then closed. */
export const frameMax = 4096

/** What a length can say at most; a message that does not fit must not go out with a wrong one. */
const most = ({ bytes, written }: Framing): number =>
  written === 'binary' ? 256 ** bytes - 1 : 10 ** (written === 'bcd' ? bytes * 2 : bytes) - 1

/** Is there a frame for a message of this many bytes? */
export const fitsFrame = (length: number, framing = twoBytes): boolean =>
  length <= frameMax && length + (framing.countsItself ? framing.bytes : 0) <= most(framing)

/** Throws where the message fits no frame. */
export function frame(message: Buffer, framing = twoBytes): Buffer {
  const { bytes, written, countsItself } = framing
  if (!fitsFrame(message.length, framing)) throw new Error(`a message of ${message.length} bytes fits no frame`)
  const count = message.length + (countsItself ? bytes : 0)
  const length =
    written === 'ascii'
      ? Buffer.from(String(count).padStart(bytes, '0'), 'latin1')
      : Buffer.from(count.toString(written === 'bcd' ? 10 : 16).padStart(bytes * 2, '0'), 'hex')
  return Buffer.concat([length, message])
}

/** How long the message behind a length is; undefined when that is no length of a message. */
function lengthOf(length: Buffer, { bytes, written, countsItself }: Framing): number | undefined {
  const digits = written === 'ascii' ? length.toString('latin1') : length.toString('hex')
  if (written !== 'binary' && !/^\d+$/.test(digits)) return undefined
  const size = Number.parseInt(digits, written === 'binary' ? 16 : 10) - (countsItself ? bytes : 0)
  return size > 0 && size <= frameMax ? size : undefined
}

export type Splitter = { push(bytes: Buffer): readonly Buffer[] | 'badLength' }

/** Collects bytes and returns the messages that they complete. After `badLength` the stream cannot be followed any more. */
export function splitter(framing = twoBytes): Splitter {
  let pending: Buffer = Buffer.alloc(0)
  return {
    push(bytes) {
      pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes])
      const messages: Buffer[] = []
      let at = 0
      while (pending.length - at >= framing.bytes) {
        const begins = at + framing.bytes
        const size = lengthOf(pending.subarray(at, begins), framing)
        if (size === undefined) return 'badLength'
        if (pending.length < begins + size) break
        messages.push(Buffer.from(pending.subarray(begins, begins + size)))
        at = begins + size
      }
      pending = Buffer.from(pending.subarray(at))
      return messages
    },
  }
}
