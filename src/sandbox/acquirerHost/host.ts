// The acquirer's host as a program of its own: listens, signs on whoever comes, answers by its tables, keeps its own books, misbehaves on demand.
// It shares only the codec and the profiles with the gateway.

import { createServer, type Server, type Socket } from 'node:net'
import { isMalformed, type Message } from '../../connectors/cards/iso8583/codec.ts'
import type { Dialect } from '../../connectors/cards/iso8583/dialects.ts'
import { answerType } from '../../connectors/cards/iso8583/versions.ts'
import { systemClock } from '../../platform/clock.ts'
import { decide, type Fault, faultOfAmount, type RequestFacts } from './decide.ts'
import type { Ledger } from './ledger.ts'
import { answerTotals, hostBookings, type SettlementFault } from './settlement.ts'
import { makeTongue, type Tongue } from './tongue.ts'

export type HostOptions = {
  readonly dialect: Dialect
  /** Where the dialect has message authentication codes. */
  readonly macKey?: Buffer
  readonly ledger: Ledger
  readonly host: string
  readonly port: number
  /** Every answer takes so long, milliseconds. */
  readonly delay: number
  /** Decides for each message whether something goes wrong; beside the faults that amounts ask for. */
  readonly faults?: (message: Message) => Fault | undefined
  /** Slow answers come within this time; for `late` they come after `lateMilliseconds`. */
  readonly slowMilliseconds: number
  readonly lateMilliseconds: number
  /** A host as some are: it does not remember a reversal that came before its request, and answers on whatever line it has. */
  readonly hostile?: boolean
  /** What is wrong with its days. */
  settlementFault?: SettlementFault
  say(text: string): void
}

export type Host = {
  readonly port: number
  readonly counters: {
    received: number
    malformed: number
    repeated: number
    networkMessages: number
    /** What it was told of days. */
    readonly reconciled: Message[]
  }
  /** Cuts all lines, as a host does that dies. */
  cutLines(): void
  stop(): Promise<void>
}

export async function startHost(options: HostOptions): Promise<Host> {
  const { ledger } = options
  const sockets = new Set<Socket>()
  const tongues = new WeakMap<Socket, Tongue>()
  /** Connections that stand and carry nothing. */
  const silent = new WeakSet<Socket>()
  /** What could not be answered waits for the next line. */
  let undelivered: Buffer[] = []
  const counters: Host['counters'] = { received: 0, malformed: 0, repeated: 0, networkMessages: 0, reconciled: [] }
  let number = [...ledger.entries()].length
  const server: Server = createServer(socket => {
    const tongue = makeTongue(options.dialect, options.macKey)
    tongues.set(socket, tongue)
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('data', bytes => {
      if (silent.has(socket)) return
      const messages = tongue.split.push(bytes)
      if (messages === 'badLength') {
        socket.destroy()
        return
      }
      for (const message of messages) receive(socket, message)
    })
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })

  function receive(socket: Socket, bytes: Buffer): void {
    const message = tongues.get(socket)!.hear(bytes)
    if (isMalformed(message)) {
      counters.malformed++
      options.say(`unreadable: ${message.path} ${message.why}`)
      return
    }
    if (message.type.slice(1, 2) === '8') {
      counters.networkMessages++
      if (Number(message.type[2]) % 2 === 1) return // the answer to one of ours
      answer(socket, message, '00', [])
      for (const bytes of undelivered) socket.write(bytes)
      undelivered = []
      return
    }
    counters.received++
    if (message.type[1] === '5') counters.reconciled.push(message)
    const fault = options.faults?.(message) ?? faultOfAmount(firstTime(message) ? message.fields.get(4) : undefined)
    if (fault === 'silent') silent.add(socket)
    if (fault === 'requestLost' || fault === 'silent') return
    if (fault === 'lineCut') {
      book(message, fault)
      socket.destroy()
      return
    }
    const waits =
      fault === 'late'
        ? options.lateMilliseconds
        : fault === 'slow'
          ? (counters.received * 389) % options.slowMilliseconds
          : options.delay
    const respond = () => {
      const { code, more } = book(message, fault)
      if (fault === 'answerLost') return
      answer(socket, message, code, more, fault)
      if (fault === 'twice') answer(socket, message, code, more, fault)
      if (fault === 'halfFrame') socket.destroySoon()
      if (fault === 'signOff') signOff(socket)
    }
    // A slow host reads late too: then a reversal may overtake its request.
    if (waits === 0) respond()
    else systemClock.after(waits, respond)
  }

  /** Books a message, or finds how the same message was answered before. */
  function book(message: Message, fault: Fault | undefined): { code: string; more: readonly (readonly [number, string])[] } {
    const { fields } = message
    if (message.type[1] === '5')
      return answerTotals(
        fields,
        hostBookings(ledger, options.dialect.reconciliation, systemClock.real(), options.settlementFault),
      )
    const key = [message.type.slice(1, 3), fields.get(11), fields.get(7), fields.get(41)].join(' ')
    const before = ledger.byKey(key)
    if (before) {
      counters.repeated++
      const code = fault?.startsWith('again') ? fault.slice(-2) : undefined
      if (code !== undefined) return { code, more: [] }
      const [[, first], ...more] = before.line.answer as [[number, string], ...[number, string][]]
      return { code: first, more }
    }
    const read = readMessage(message)
    const name = nameOf(message.type, fields.get(11) ?? '', fields.get(7) ?? '', fields.get(32) ?? '')
    const decision = decide(message, read, name, ledger, ++number)
    if (decision.kind === 'tombstone' && options.hostile) return decision
    const partly = fault === 'partly' && decision.code === '00'
    const other = String(BigInt(fields.get(4) ?? '0') + 1n).padStart(12, '0')
    const isOther = fault === 'bookedOther' && decision.code === '00'
    const half = (BigInt(fields.get(4) ?? '0') / 2n).toString().padStart(12, '0')
    const code = partly ? '10' : decision.code
    const booked = partly ? half : isOther ? other : fields.get(4)
    const more = partly || isOther ? [...decision.more, [4, booked!] as const] : decision.more
    ledger.write({
      kind: decision.kind,
      key,
      // The note that a reversal came first stands under the name of what it reverses.
      name: decision.kind === 'tombstone' ? read.original! : name,
      card: read.card,
      amount: booked ?? '0',
      currency: fields.get(49) ?? '',
      rrn: fields.get(37) ?? '',
      ...(decision.original !== undefined && { original: decision.original }),
      ...(decision.remaining !== undefined && { remaining: decision.remaining }),
      answer: [[39, code], ...more],
    })
    return { code, more }
  }

  function answer(
    socket: Socket,
    message: Message,
    code: string,
    more: readonly (readonly [number, string])[],
    fault?: Fault,
  ): void {
    const echoed = [...message.fields].filter(([field]) => !notEchoed.has(field))
    const fields = new Map<number, string>([...echoed, [39, code], ...more])
    if (fault === 'noCode') fields.delete(39)
    if (fault === 'otherCurrency') fields.set(49, fields.get(49) === '840' ? '978' : '840')
    if (fault === 'otherAmount') fields.set(4, String(BigInt(fields.get(4)!) + 1n).padStart(12, '0'))
    const bytes = tongues.get(socket)!.speak({ type: answerType(message.type), fields }, message)
    if (!Buffer.isBuffer(bytes)) options.say(`cannot answer: ${bytes.path} ${bytes.why}`)
    else if (fault === 'halfFrame') socket.write(bytes.subarray(0, 9))
    else {
      const line = !options.hostile || isOpen(socket) ? socket : [...sockets].find(isOpen)
      if (!line) undelivered.push(bytes)
      else if (!line.destroyed) line.write(bytes)
    }
  }

  const isOpen = (socket: Socket) => !socket.destroyed && !silent.has(socket)

  function signOff(socket: Socket): void {
    const bytes = tongues.get(socket)!.signOff(systemClock.real())
    if (Buffer.isBuffer(bytes) && isOpen(socket)) socket.write(bytes)
  }

  const firstTime = ({ type }: Message) => type.endsWith('0') && !type.slice(1).startsWith('42')

  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(Object.assign(error, { setting: '--port' })))
    server.listen(options.port, options.host, resolve)
  })
  const cutLines = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as { port: number }).port,
    counters,
    cutLines,
    async stop() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      cutLines()
      await closed
    },
  }
}

/** Answers repeat what was sent but for card data and what only a request says. */
const notEchoed: ReadonlySet<number> = new Set([14, 25, 35, 43, 48, 90, 95])

/** Reads what the books need: the card masked, and the original that a message refers to. */
function readMessage({ type, fields }: Message): RequestFacts {
  const number = fields.get(2) ?? ''
  const original = fields.get(90)
  const remaining = fields.get(95)?.slice(0, 12)
  return {
    type: `${type.slice(1, 3)}0`,
    card: `${number.slice(0, 6)}${'*'.repeat(Math.max(0, number.length - 10))}${number.slice(-4)}`,
    ...(original !== undefined && {
      original: nameOf(original.slice(0, 4), original.slice(4, 10), original.slice(10, 20), original.slice(20, 31)),
    }),
    ...(remaining !== undefined && { remaining }),
  }
}

/** As original data name a message; a repeat has the name of the first. */
const nameOf = (type: string, stan: string, time: string, acquirer: string) =>
  `${type.slice(1, 3)}0 ${stan} ${time} ${acquirer.replace(/^0+/, '')}`
