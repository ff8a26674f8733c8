// TLS record by record. Of a new key (KeyUpdate of TLS 1.3) nobody is told: it costs the other side 27 bytes, and OpenSSL as much as many kilobytes; it takes
// any number of them, and all that have come in one turn of the event loop. A record full of tickets costs a hundred times as much as one that is empty, and
// a long chain of certificates seconds: OpenSSL looks at each before it asks whether any is trusted. So what comes from a socket is cut into records here, by
// their headers: OpenSSL is given one after the other, and those of which nothing comes out, their bytes, and the pieces in which any comes, are counted.

import type { Server } from 'node:https'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { HandshakeRest } from './handshakeRests.ts'
import { lackOf } from './parsing.ts'

/** Records of one connection that carry nothing for us; one more closes it. A handshake has some ten, with large certificates some more; tickets and the
 * end are such records too; and keys are renewed after gigabytes. */
export const emptyRecordsMost = 64
/** Bytes of such records, those of the handshake above all; one more closes it. Chains of certificates have 3 to 8 KiB, and tickets some hundred bytes. */
export const emptyBytesMost = 16 * 1024
/** Whoever asks for a certificate may list all those whom it trusts before it is shown one, also where none of ours is meant: those of a browser are 12 KiB, and those of banks longer. */
export const emptyBytesOfCalls = 2 * emptyBytesMost
const emptyBytesOfAsking = 2 * emptyBytesOfCalls
/** Pieces of one record by what they lack; more closes its connection. A record comes in as many as it has packets, which are no small pieces. */
export const piecesOfRecordMost = 256
/** Of one connection in one turn of the event loop; after one that was empty it waits for the next. */
const recordsOfTurn = 4

/** A socket that pauses reads on until so much is there: of one byte after the other it would be tens of thousands. */
const readingLittle = { highWaterMark: 1 }
const headerBytes = 5
/** Kinds of records, as their first byte says. */
const kinds = { changeCipherSpec: 20, handshake: 22 } as const
/** In TLS 1.2 the end of a handshake is the one message of it that is sealed: 40 bytes with what seals it. */
const finishedMost = 256
const nothing = Buffer.alloc(0)
/** What TLS does not know of itself when it stands on a stream. */
const ends = ['remoteAddress', 'remotePort', 'remoteFamily', 'localAddress', 'localPort'] as const

/** What OpenSSL is working on just now: a server of Node does not say on which stream its TLS stands. */
let giving: RecordStream | undefined

const rawOfTls = new WeakMap<TLSSocket, Socket>()

/** The socket below such a connection. */
export const rawOf = (tls: TLSSocket): Socket | undefined => rawOfTls.get(tls)

/** Is told of a connection by the socket of which the server knows so far. */
type RecordListener = {
  /** So many bytes have come at once, or were given at once, none of a record that carries nothing. False = nothing more is read there until `goOn` is called. */
  readonly took: (socket: Socket, bytes: number, goOn: () => void) => boolean
  /** So many have come behind our last word. */
  readonly threwAway: (socket: Socket, bytes: number) => void
}

/** Has `give` called when it is the turn of a socket that begins a handshake. */
type InTurn = (raw: Socket, give: () => void) => void

/** Has a server of TLS read its connections record by record. `inTurn`: what answers to the
 * first words of a handshake costs a signature each, whoever says them. */
export function byRecords(server: Server, told: RecordListener, inTurn?: InTurn): Server {
  Object.assign(server, readingLittle)
  const [speakTls] = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (raw: Socket) => {
    const stream = new RecordStream(raw, emptyBytesMost, { told, ...(inTurn && { inTurn }) })
    speakTls!.call(server, stream)
    stream.allowHalfOpen = true
  })
  return server.prependListener('secureConnection', tls => giving?.carries(tls).stands())
}

/** A connection over TLS that is read record by record. */
export function connectByRecords(options: ConnectionOptions & NetConnectOpts & { readonly rest?: HandshakeRest }): TLSSocket {
  const stream = new RecordStream(
    connect({ ...options, ...readingLittle }),
    options.cert ? emptyBytesOfAsking : emptyBytesOfCalls,
    options.rest && { rest: options.rest },
  )
  const tls = connectTls({ ...options, socket: stream })
  stream.allowHalfOpen = true
  stream.carries(tls)
  return tls.once('secureConnect', () => stream.stands())
}

/**
 * Stands between a socket and its TLS. Node's adapter for streams (JSStreamSocket) ends the process when OpenSSL has something to say while an empty write or
 * a shutdown has not come back yet, as it has to a request for a new key. So nothing is given but at the beginning of a turn, when shutdowns have come
 * back, and nothing beside an empty write.
 */
export class RecordStream extends Duplex {
  readonly #raw: Socket
  readonly #bytesMost: number
  readonly #told: RecordListener | undefined
  readonly #inTurn: InTurn | undefined
  readonly #restOfOwner: HandshakeRest | undefined
  #tls: TLSSocket | undefined
  /** What has come and was not given yet. */
  #come: Buffer = nothing
  /** Of the record under way: bytes of its header that were seen, what kind it is, its length, the bytes that are still to come, and all that was given. */
  #header = 0
  #kind = 0
  #length = 0
  #rest = 0
  #given = 0
  /** Of its pieces what they lack. */
  #pieces = 0
  /** Bytes that came out of the records before it. */
  #out = 0
  #empty = 0
  #emptyBytes = 0
  #isHandshake = true
  #isSealed = false
  #isFinished = false
  #isDue = false
  #holds = 0
  #isEnded = false
  #isResting = false
  #failure: Error | undefined

  /** TLS looks at `allowHalfOpen` when it begins: it answers an end with its own, for which this stream must still be open. */
  constructor(
    raw: Socket,
    bytesMost: number,
    { told, inTurn, rest }: { readonly told?: RecordListener; readonly inTurn?: InTurn; readonly rest?: HandshakeRest } = {},
  ) {
    super({ allowHalfOpen: false })
    this.#raw = raw
    this.#bytesMost = bytesMost
    this.#told = told
    this.#inTurn = inTurn
    this.#restOfOwner = rest
    raw.allowHalfOpen = true
    raw.on('data', (bytes: Buffer) => {
      if (this.#come.length > 0) raw.pause()
      this.#come = this.#come.length > 0 ? Buffer.concat([this.#come, bytes]) : bytes
      // Of a crowd the event loop takes as many as it can before anything is given.
      this.#tell(bytes.length)
      // Nobody sends more before he has heard anything; and it may wait for its turn.
      if (this.#inTurn && this.#empty === 0 && this.#isHandshake && this.#come.length > this.#bytesMost) this.#end()
      this.#plan()
    })
    raw.once('end', () => {
      this.#isEnded = true
      this.#plan()
    })
    raw.on('error', error => {
      this.#failure = error
    })
    // What came before a reset is heard still.
    raw.once('close', () => {
      if (!this.#failure || this.#come.length === 0 || !this.readableFlowing) this.destroy(this.#failure)
    })
  }

  carries(tls: TLSSocket): this {
    const raw = this.#raw
    for (const name of ends) Object.defineProperty(tls, name, { get: () => raw[name] })
    rawOfTls.set(tls, raw)
    this.#tls = tls
    return this
  }

  /** The handshake is over: what a record carries is known once it was given. */
  stands(): void {
    this.#isHandshake = false
  }

  override resume(): this {
    super.resume()
    this.#plan()
    return this
  }

  override _read(): void {}

  override _writev(pieces: readonly { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    if (pieces.every(({ chunk }) => chunk.length === 0)) {
      this.#hold()
      done()
      return
    }
    this.#raw.cork()
    pieces.forEach(({ chunk }, at) => {
      this.#raw.write(chunk, at === pieces.length - 1 ? done : undefined)
    })
    this.#raw.uncork()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#raw.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#raw.destroy()
    done(error)
  }

  /** The adapter says that an empty write is done in the turn after it was told. */
  #hold(): void {
    this.#holds++
    const release = () => {
      this.#holds--
      this.#plan()
    }
    setImmediate(() => setImmediate(release))
  }

  readonly #goOn = (): void => this.#plan()

  #plan(): void {
    if (this.#isDue || this.#holds > 0 || !this.readableFlowing) return
    this.#isDue = true
    const give = () =>
      setImmediate(() => {
        this.#isDue = false
        this.#give()
      })
    if (this.#inTurn && this.#isGreeting()) this.#inTurn(this.#raw, give)
    else give()
  }

  /** Is it of the handshake, and not its end yet, what is given next? */
  #isGreeting(): boolean {
    const kind = this.#header > 0 ? this.#kind : this.#come[0]
    return this.#isHandshake && !this.#isSealed && kind === kinds.handshake && this.#come.length > 0
  }

  #give(): void {
    if (this.writableEnded) this.#throwAway() // whoever has said his last word hears nothing more
    if (this.#come.length > 0) this.#giveRecords()
    else if (this.#raw.closed) this.destroy(this.#failure)
    else if (this.#isEnded) this.push(null)
    else if (this.#raw.isPaused() && !this.#isResting) this.#raw.resume()
  }

  #throwAway(): void {
    const { length } = this.#come
    this.#come = nothing
    if (length > 0) this.#told?.threwAway(this.#tls ?? this.#raw, length)
  }

  #giveRecords(): void {
    for (let records = 0; records < recordsOfTurn && this.#come.length > 0; ) {
      if (this.destroyed || this.#holds > 0 || !this.readableFlowing) return
      if (this.#isHandshake && this.#restOfOwner?.waits(this.#goOn)) return
      const length = this.#measure()
      this.#given += length
      if ((this.#isHandshake && this.#emptyBytes + this.#given > this.#bytesMost) || this.#beginsAnew()) {
        this.#end()
        return
      }
      const bytes = this.#come.subarray(0, length)
      // Nothing of it would keep all of it.
      this.#come = length < this.#come.length ? this.#come.subarray(length) : nothing
      const rest = this.#isHandshake ? this.#restOfOwner : undefined
      const before = rest && process.cpuUsage()
      giving = this
      this.push(bytes)
      giving = undefined
      if (rest) {
        const { user, system } = process.cpuUsage(before)
        rest.took((user + system) / 1000)
      }
      if (this.#header < headerBytes || this.#rest > 0) {
        this.#pieces += lackOf(length)
        if (this.#pieces > piecesOfRecordMost) this.#end()
        else this.#tell(length)
        break
      }
      this.#header = 0
      this.#pieces = 0
      if (this.#kind === kinds.changeCipherSpec) this.#isSealed = true
      else if (this.#kind === kinds.handshake && this.#isSealed) this.#isFinished = true
      records++
      const isEmpty = this.#isEmpty()
      this.#tell(isEmpty ? 0 : length)
      if (isEmpty) break
    }
    this.#plan()
  }

  /** How much of what has come belongs to the record under way. */
  #measure(): number {
    let at = 0
    for (; this.#header < headerBytes && at < this.#come.length; this.#header++) {
      const byte = this.#come[at++]!
      if (this.#header === 0) this.#kind = byte
      if (this.#header >= headerBytes - 2) this.#length = this.#rest = (this.#rest << 8) | byte
    }
    if (this.#header < headerBytes) return at
    const more = Math.min(this.#rest, this.#come.length - at)
    this.#rest -= more
    return at + more
  }

  /**
   * A server of TLS 1.2 may ask for another handshake, four thousand times in a record. OpenSSL refuses each by a record of its own, which takes a second; so no
   * handshake is read behind the one that stands, nor behind its end in one record with it.
   */
  #beginsAnew(): boolean {
    if (!this.#isSealed || this.#kind !== kinds.handshake || this.#header < headerBytes) return false
    return (this.#isFinished || this.#length > finishedMost) && this.#tls?.getProtocol() === 'TLSv1.2'
  }

  /** Counts a record of which nothing has come out. */
  #isEmpty(): boolean {
    const out = this.#tls?.bytesRead ?? 0
    const isEmpty = out === this.#out
    const given = this.#given
    this.#out = out
    this.#given = 0
    if (!isEmpty) return false
    this.#emptyBytes += given
    if (++this.#empty > emptyRecordsMost || this.#emptyBytes > this.#bytesMost) this.#end()
    return true
  }

  #tell(bytes: number): void {
    if (!this.#told || this.#told.took(this.#tls ?? this.#raw, bytes, this.#readOn)) return
    this.#isResting = true
    this.#raw.pause()
  }

  readonly #readOn = (): void => {
    this.#isResting = false
    this.#plan()
  }

  #end(): void {
    this.destroy(new Error('too much of TLS that carries nothing'))
  }
}
