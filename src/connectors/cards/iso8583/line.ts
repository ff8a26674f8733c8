// One persistent connection to a host: signs on, keeps itself alive by echoes, comes back by itself, and matches answers to requests by
// kind, trace number, time and terminal, whatever their order. It knows messages, not payments.

import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Clock, Timer } from '../../../platform/clock.ts'
import { addTo } from '../../../platform/counts.ts'
import { decode, encode, isMalformed, type Message } from './codec.ts'
import { type Dialect, type FieldValues, responseOf } from './dialects.ts'
import { fitsFrame, frame, splitter } from './framing.ts'
import type { Mac } from './mac.ts'
import { masked } from './masking.ts'
import { answerType, isAsked, versionOf } from './versions.ts'

export type LineOptions = {
  readonly name: string
  readonly dialect: Dialect
  readonly mac?: Mac
  /** Asked at every attempt to connect. */
  address(): Promise<{ readonly host: string; readonly port: number }>
  readonly tls?: ConnectionOptions
  readonly signOn: boolean
  readonly echoSeconds: number
  readonly echoAnswerSeconds: number
  readonly inFlightMax: number
  /** So many time-outs in a row, while nothing at all is heard, open the breaker: the connection is given up, and a new one must answer before it carries anything. */
  readonly breakerTimeouts: number
  readonly breakerSeconds: number
  readonly reconnectMilliseconds: { readonly first: number; readonly max: number }
  readonly clock: Clock
  /** 0 up to 1: spreads reconnections. */
  random(): number
  say(text: string): void
  /** An answer that nobody here asked for: another process may have, or this one long ago. */
  stranger?(answer: Message): void
  /** The host tells of its day, and was answered that it was heard. */
  reconciles?(message: Message): void
  /** Shows each message, masked. */
  show?(text: string): void
}

export type SendResult =
  | { readonly kind: 'answer'; readonly message: Message }
  | { readonly kind: 'notSent'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string }

export type LineState = 'idle' | 'connecting' | 'up' | 'broken' | 'stopped'

export type LineCounters = {
  sent: number
  answered: number
  timedOut: number
  late: number
  duplicate: number
  unmatched: number
  malformed: number
  notSent: number
  connected: number
  lost: number
  breakerOpened: number
}

export type Line = {
  readonly name: string
  readonly counters: Readonly<LineCounters>
  state(): LineState
  inFlight(): number
  /** Connects when it never did, and waits until the line can be used, or for so long. */
  ready(milliseconds: number): Promise<boolean>
  /** Sends and waits until the signal ends the waiting. `again` takes answers that come late or twice. `merchantId`: for whom, where it is for one. */
  send(message: Message, signal: AbortSignal, again: (answer: Message) => void, merchantId?: string): Promise<SendResult>
  /** Sends nothing new, waits for what is under way, signs off and closes. */
  stop(drainMilliseconds: number): Promise<void>
}

/** A line that was up for so long is tried again at once when it is lost. */
const steadyMilliseconds = 5000
/** A merchant has so many times as much under way as is still free: one alone four fifths. */
const ofFree = 4
/** Messages in a second that nobody here asked for; a host that sends more is left alone for a while. */
const unaskedMost = 100
/** Answers to one message that are looked at when nobody waits for it any more: what comes again says nothing new. */
const heardMost = 3
/** Bytes that a host has not taken; one that lets more lie reads nothing. */
const unreadMost = 1024 * 1024

/** Answers that come within this time after the waiting ended still find their payment. */
const rememberSeconds = 120

export function makeLine(options: LineOptions): Line {
  const { dialect, mac } = options
  const version = versionOf(dialect)
  const counters: LineCounters = {
    sent: 0,
    answered: 0,
    timedOut: 0,
    late: 0,
    duplicate: 0,
    unmatched: 0,
    malformed: 0,
    notSent: 0,
    connected: 0,
    lost: 0,
    breakerOpened: 0,
  }
  type Remembered = { again(answer: Message): void; until: number; answered: boolean; heard: number }
  type Waiting = {
    /** Of a card. */
    readonly number?: string | undefined
    readonly sentAt: number
    settle(sent: SendResult): void
    again(answer: Message): void
  }
  /** The oldest first. */
  const waiting = new Map<string, Waiting>()
  const ofMerchants = new Map<string, number>()
  const remembered = new Map<string, Remembered>()
  let state: LineState = 'idle'
  let socket: Socket | undefined
  let attempts = 0
  let upSince = 0
  let timeoutsInRow = 0
  /** After the breaker opened, or the host signed off: so long nothing is tried, and then a network message must be answered. */
  let resting = false
  let lastAnswer = 0
  let echoesMissed = 0
  let networkNumber = 0
  let unasked = { since: Number.NEGATIVE_INFINITY, messages: 0 }
  let reconnectTimer: Timer | undefined
  let wakeUps: (() => void)[] = []

  const becomes = (next: LineState) => {
    state = next
    const woken = wakeUps
    wakeUps = []
    for (const wake of woken) wake()
  }

  function connect(): void {
    becomes('connecting')
    options.address().then(open, (error: Error) => lost(error.message))
  }

  function open({ host, port }: { host: string; port: number }): void {
    if (state === 'stopped') return
    const opened: Socket = options.tls ? connectTls({ host, port, ...options.tls }) : connectTcp({ host, port })
    socket = opened
    opened.setNoDelay(true)
    // From its beginning, whatever comes meanwhile.
    const tooLate = options.clock.after(options.reconnectMilliseconds.max, () => {
      if (state === 'connecting') opened.destroy(new Error('the connection was not made in time'))
    })
    const split = splitter(dialect.framing)
    opened.once(options.tls ? 'secureConnect' : 'connect', () => {
      greet(opened).catch((error: Error) => opened.destroy(error))
    })
    opened.on('data', bytes => {
      const messages = split.push(bytes)
      if (messages === 'badLength') {
        counters.malformed++
        opened.destroy(new Error('a frame has an impossible length'))
        return
      }
      try {
        for (const message of messages) if (!opened.destroyed) receive(message)
      } catch (error) {
        // Whatever a host may send: it costs its line, and not the gateway.
        opened.destroy(error as Error)
      }
    })
    let why = 'the host closed it'
    opened.on('error', error => {
      why = error.message
    })
    opened.on('close', () => {
      tooLate.cancel()
      if (socket === opened) lost(why)
    })
  }

  async function greet(opened: Socket): Promise<void> {
    counters.connected++
    lastAnswer = options.clock.real()
    const greeting = options.signOn ? version.network.signOn : resting ? version.network.echo : undefined
    if (greeting && !(await networkMessage(greeting))) throw new Error('the host did not answer when it was greeted')
    if (dialect.mac?.exchange && !(await networkMessage(version.network.keyChange, takeKey)))
      throw new Error('the host gave no key')
    resting = false
    if (socket !== opened || state !== 'connecting') return
    upSince = options.clock.elapsed()
    timeoutsInRow = 0
    echoesMissed = 0
    becomes('up')
  }

  function lost(why: string): void {
    socket = undefined
    if (state === 'stopped') return
    // A host that answers the greeting and closes is no host that is back.
    if (state === 'up' && options.clock.elapsed() - upSince > steadyMilliseconds) attempts = 0
    counters.lost++
    options.say(`${options.name} is down: ${why}`)
    for (const [key, { settle, again }] of waiting) {
      remembered.set(key, { again, until: options.clock.real() + rememberSeconds * 1000, answered: false, heard: 0 })
      settle({ kind: 'unknown', why: 'the line was lost before the answer came' })
    }
    waiting.clear()
    const { first, max } = options.reconnectMilliseconds
    const pause = resting
      ? options.breakerSeconds * 1000
      : Math.min(first * 2 ** Math.min(attempts++, 20), max) * (0.5 + options.random() / 2)
    becomes(resting ? 'broken' : 'connecting')
    reconnectTimer = options.clock.after(pause, connect).unref()
  }

  function receive(bytes: Buffer): void {
    const message = decode(bytes, dialect, mac)
    if (isMalformed(message)) {
      counters.malformed++
      if (isFlood()) return
      options.say(`${options.name}: an unreadable message: ${message.path} ${message.why}`)
      return
    }
    const key = keyOf(message.type, message)
    options.show?.(`${options.name} < ${masked(message, dialect, waiting.get(key)?.number)}`)
    if (isAsked(message)) {
      if (!isFlood()) answerHost(message)
      return
    }
    lastAnswer = options.clock.real()
    const found = waiting.get(key)
    if (found) {
      waiting.delete(key)
      timeoutsInRow = 0
      counters.answered++
      remembered.set(key, { again: found.again, until: options.clock.real() + rememberSeconds * 1000, answered: true, heard: 0 })
      found.settle({ kind: 'answer', message })
      return
    }
    const before = remembered.get(key)
    if (!before) {
      counters.unmatched++
      if (isFlood()) return
      options.say(`${options.name}: an answer ${keyOf(message.type, message)} belongs to nothing that is remembered here`)
      options.stranger?.(message)
      return
    }
    if (before.answered) {
      counters.duplicate++
      if (isFlood() || before.heard >= heardMost) return
    } else counters.late++
    before.answered = true
    before.heard++
    before.again(message)
  }

  /** Counts a message that was not asked for. */
  function isFlood(): boolean {
    const now = options.clock.elapsed()
    // A second from the first of them: seconds of the clock would let twice as many through at their border.
    if (now - unasked.since >= 1000) unasked = { since: now, messages: 0 }
    if (++unasked.messages > unaskedMost)
      rest(`the host sent more than ${unaskedMost} messages in a second that nobody asked for`)
    return unasked.messages > unaskedMost
  }

  /** A key that came in a network message, in a request of the host or in the answer to ours. */
  const takeKey = ({ fields }: Message): boolean =>
    dialect.mac?.exchange === true && mac?.take(Buffer.from(fields.get(version.network.keyField) ?? '', 'hex')) === true

  /** The host asks for a sign of life, tells of its keys or its day, or signs off: it is heard. What its day was is compared by others. */
  function answerHost(message: Message): void {
    const { accepted, refused, keyChange, keyField } = version.network
    const [asked, change] = keyChange[0]!
    const went = message.type !== version.network.type || message.fields.get(asked) !== change || takeKey(message)
    const answer = new Map([...message.fields, [39, went ? accepted : refused] as const])
    if (message.fields.get(asked) === change) answer.delete(keyField)
    const why = put({ type: answerType(message.type), fields: answer })
    if (why !== undefined) options.say(`${options.name}: ${message.type} was not answered: ${why}`)
    if (message.type[1] === '5') options.reconciles?.(message)
    const [field, signOff] = version.network.signOff[0]!
    if (message.fields.get(field) === signOff && message.type[1] === '8') rest('the host signed off')
  }

  /** This connection carries nothing any more; another is tried after a while. */
  function rest(why: string): void {
    if (state === 'stopped') return
    resting = true
    becomes('broken')
    socket?.destroy(new Error(why))
  }

  /** Writes a message; what keeps it from being written, if anything does. */
  function put(message: Message): string | undefined {
    const bytes = encode(message, dialect, mac)
    if (!Buffer.isBuffer(bytes)) return `${bytes.path} ${bytes.why}`
    if (!fitsFrame(bytes.length, dialect.framing)) return `its ${bytes.length} bytes fit no frame`
    if (!socket || socket.destroyed) return 'the line is down'
    options.show?.(`${options.name} > ${masked(message, dialect)}`)
    socket.write(frame(bytes, dialect.framing))
    if (socket.writableLength > unreadMost) socket.destroy(new Error('the host takes nothing of what is sent'))
    return undefined
  }

  const isHeardSince = ({ sentAt }: Waiting): boolean => lastAnswer > sentAt
  /** Something waits for long, and nothing was heard meanwhile: does the host let it wait, or is nobody there? */
  function isSilent(now: number): boolean {
    const oldest = waiting.values().next().value
    return oldest !== undefined && now - oldest.sentAt >= options.echoAnswerSeconds * 500 && !isHeardSince(oldest)
  }

  const keyOf = (type: string, { fields }: Message) =>
    [type, ...dialect.matching.map(field => (fields.get(field) ?? '').trim())].join(' ')

  function write(message: Message, waits: Waiting): string | undefined {
    const key = keyOf(answerType(message.type), message)
    waiting.set(key, waits)
    const why = put(message)
    if (why !== undefined) waiting.delete(key)
    return why
  }

  /** `holds` looks at what the answer carries. */
  function networkMessage(said: FieldValues, holds: (answer: Message) => boolean = () => true): Promise<boolean> {
    networkNumber = (networkNumber % 999_999) + 1
    const times = version.network.times(options.clock.real(), dialect.timeZone)
    const fields = new Map([...times, [11, String(networkNumber).padStart(6, '0')], ...said])
    const message: Message = { type: version.network.type, fields }
    return new Promise(resolve => {
      const timer = options.clock.after(options.echoAnswerSeconds * 1000, () => {
        waiting.delete(keyOf(version.network.answer, message))
        resolve(false)
      })
      const settle = (sent: SendResult) => {
        timer.cancel()
        resolve(
          sent.kind === 'answer' &&
            responseOf(sent.message.fields.get(39) ?? '', 'first', dialect) === '00' &&
            holds(sent.message),
        )
      }
      if (write(message, { sentAt: options.clock.real(), settle, again: () => {} }) !== undefined)
        settle({ kind: 'notSent', why: '' })
    })
  }

  async function echo(): Promise<void> {
    const current = socket
    const answered = await networkMessage(version.network.echo)
    if (socket !== current || !current) return
    if (answered) {
      echoesMissed = 0
      timeoutsInRow = 0
    } else if (++echoesMissed >= 2) current.destroy(new Error('two echoes were not answered'))
  }

  let echoing = false
  const care = options.clock.every(Math.min(options.echoSeconds, options.breakerSeconds, 1) * 500, () => {
    const now = options.clock.real()
    for (const [key, { until }] of remembered) {
      if (until > now) break
      remembered.delete(key)
    }
    // What we write is no sign of life, only what comes.
    if (state === 'up' && !echoing && (now - lastAnswer >= options.echoSeconds * 1000 || isSilent(now))) {
      echoing = true
      echo()
        .catch((error: Error) => options.say(`${options.name}: ${error.message}`))
        .finally(() => {
          echoing = false
        })
    }
  })

  return {
    name: options.name,
    counters,
    state: () => state,
    inFlight: () => waiting.size,
    async ready(milliseconds) {
      if (state === 'idle') connect()
      const until = options.clock.real() + milliseconds
      while (state === 'connecting' && options.clock.real() < until) {
        await new Promise<void>(resolve => {
          const timer = options.clock.after(until - options.clock.real(), resolve)
          wakeUps.push(() => {
            timer.cancel()
            resolve()
          })
        })
      }
      return state === 'up'
    },
    send(message, signal, again, merchantId = '') {
      const refuse = (why: string): Promise<SendResult> => {
        counters.notSent++
        return Promise.resolve({ kind: 'notSent', why })
      }
      if (state !== 'up') return refuse(`the line is ${state}`)
      const [free, own] = [options.inFlightMax - waiting.size, ofMerchants.get(merchantId) ?? 0]
      if (free <= 0 || (merchantId !== '' && own >= ofFree * free)) return refuse('too many requests are under way')
      if (signal.aborted) return refuse('the time was over before it could be sent')
      return new Promise(resolve => {
        const key = keyOf(answerType(message.type), message)
        const one: Waiting = {
          number: message.fields.get(2),
          sentAt: options.clock.real(),
          again,
          settle(sent) {
            signal.removeEventListener('abort', onAbort)
            addTo(ofMerchants, merchantId, -1)
            resolve(sent)
          },
        }
        const onAbort = () => {
          if (!waiting.delete(key)) return
          remembered.set(key, { again, until: options.clock.real() + rememberSeconds * 1000, answered: false, heard: 0 })
          counters.timedOut++
          // Who answers others lets this one wait: for one card, or of one merchant, and not all whose messages the line carries.
          if (!isHeardSince(one) && ++timeoutsInRow >= options.breakerTimeouts && state === 'up') {
            counters.breakerOpened++
            rest(`${timeoutsInRow} requests in a row were not answered`)
          }
          one.settle({ kind: 'unknown', why: 'no answer in time' })
        }
        const written = write(message, one)
        if (written !== undefined) return resolve(refuse(written))
        counters.sent++
        addTo(ofMerchants, merchantId, 1)
        signal.addEventListener('abort', onAbort, { once: true })
      })
    },
    async stop(drainMilliseconds) {
      const wasUp = state === 'up'
      if (state !== 'stopped') becomes('stopped')
      reconnectTimer?.cancel()
      care.cancel()
      for (const until = options.clock.real() + drainMilliseconds; waiting.size > 0 && socket && options.clock.real() < until; ) {
        await options.clock.sleep(20)
      }
      if (wasUp && options.signOn && socket) await networkMessage(version.network.signOff)
      for (const { settle } of waiting.values()) settle({ kind: 'unknown', why: 'the gateway stopped before the answer came' })
      waiting.clear()
      socket?.destroy()
    },
  }
}
