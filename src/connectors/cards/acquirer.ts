// One acquirer: operations out as ISO 8583 messages over its link, answers back as replies. Choosing among acquirers is routing's.

import type { ConnectionOptions } from 'node:tls'
import type { Clock } from '../../platform/clock.ts'
import type { FoundReply, LateReply, Mode, Operation, Reply } from '../connector.ts'
import type { Message } from './iso8583/codec.ts'
import { collect, isCollected } from './iso8583/collected.ts'
import type { Dialect } from './iso8583/dialects.ts'
import type { AcquirerAccountData } from './iso8583/forwarding.ts'
import { makeLine } from './iso8583/line.ts'
import { type Link, makeLink } from './iso8583/link.ts'
import { makeMac } from './iso8583/mac.ts'
import { asLate, messageOf, replyOf, type Trace } from './iso8583/messages.ts'
import { kindOfMessage } from './iso8583/proofs.ts'
import {
  type DayOfTerminal,
  type DayTotals,
  endsDay,
  type HostBalance,
  type HostTotals,
  readDay,
  readTotals,
  totalsMessage,
} from './iso8583/totals.ts'
import { answerType, madeAtOf } from './iso8583/versions.ts'
import type { TraceNumbers } from './terminals/store.ts'

export type Address = { readonly host: string; readonly port: number }

export type AcquirerOptions = {
  readonly name: string
  /** What resultDetails.clearingInstituteName says. */
  readonly institute: string
  readonly modes: readonly Mode[]
  readonly dialect: Dialect
  /** Where the dialect has message authentication codes: sixteen bytes. */
  readonly macKey?: Buffer
  readonly addresses: readonly (() => Promise<Address>)[]
  readonly tls?: ConnectionOptions
  readonly account: AcquirerAccountData
  readonly terminals: readonly string[]
  readonly traceNumbers: TraceNumbers
  readonly signOn: boolean
  readonly answerWithinSeconds: number
  /** So long after an answer failed to come recovery begins. */
  readonly recoverAfterSeconds: number
  readonly echoSeconds: number
  readonly echoAnswerSeconds: number
  readonly inFlightMax: number
  readonly breakerTimeouts: number
  readonly breakerSeconds: number
  readonly partialReversal: boolean
  /** Each message goes to the log, masked. */
  readonly showMessages: boolean
}

/** Hands out terminal and trace number; undefined while none can be had. Durable, so that none comes twice (terminals/). */
export type Traces = { next(): { readonly terminal: string; readonly stan: string } | undefined }

export type AcquirerParts = {
  readonly traces: Traces
  readonly clock: Clock
  random(): number
  say(text: string): void
  /** Is given each message, masked, of an acquirer whose messages are to be seen. */
  show?(text: string): void
}

/** What a host says of a day. */
export type SaidOfDay = { readonly theirs: HostTotals; readonly balance: HostBalance }

export type Acquirer = {
  readonly options: AcquirerOptions
  readonly link: Link
  trace(): Trace | undefined
  /** Waits as long as this acquirer may take, or until the signal ends it. */
  exchange(operation: Operation, trace: Trace, signal: AbortSignal): Promise<Reply>
  /** Tells what we booked in a day; `trace` is that of all attempts. Undefined when the host did not hear it, or does not want it yet. */
  closeDay(
    day: DayOfTerminal,
    totals: DayTotals,
    trace: { readonly stan: string; readonly at: number; readonly attempt: number },
  ): Promise<SaidOfDay | { readonly why: string }>
  /** What the host says of a day by itself. */
  hearDays(heard: (day: DayOfTerminal, said: SaidOfDay) => void): void
  start(late: LateReply, found: FoundReply): void
  stop(): Promise<void>
}

const waitForLineMilliseconds = 4000
const drainMilliseconds = 5000

export function makeAcquirer(options: AcquirerOptions, parts: AcquirerParts): Acquirer {
  const { dialect, macKey } = options
  let late: LateReply | undefined
  let found: FoundReply | undefined
  let heardDay: ((day: DayOfTerminal, said: SaidOfDay) => void) | undefined

  /** An answer that this process waits for no more, or never did: its payment is found by what it had on disk before it was sent. */
  const stranger = (answer: Message) => {
    const { terminal, stan, at } = traceOf(answer, parts.clock.real())
    if (answer.type[1] === '8' || answer.type[1] === '5') return
    // Nothing follows from the answer to a reversal of ours: that one is sent until it is answered in time.
    if (kindOfMessage(answer.type) === 'takeBack') return
    found?.({ acquirer: options.name, terminal, stan, at: String(at) }, at, operation => {
      if (!operation.card) return refused(operation, 'cardNumberErased')
      const account = accountOf(operation, options)
      const message = messageOf(operation, { terminal, stan, at }, account, dialect)
      if (answerType(message.type) !== answer.type)
        return { kind: 'unknown', why: `an answer ${answer.type} is none to ${message.type}` }
      return replyOf(asLate(operation), message, { terminal, stan, at }, answer, dialect, options.name, options.institute)
    })
  }
  const lines = options.addresses.map((address, at) =>
    makeLine({
      name: `${options.name} line ${at + 1}`,
      dialect,
      ...(dialect.mac && macKey && { mac: makeMac(dialect.mac.algorithm, macKey) }), // each line has working keys of its own
      address,
      ...(options.tls && { tls: options.tls }),
      signOn: options.signOn,
      echoSeconds: options.echoSeconds,
      echoAnswerSeconds: options.echoAnswerSeconds,
      inFlightMax: options.inFlightMax,
      breakerTimeouts: options.breakerTimeouts,
      breakerSeconds: options.breakerSeconds,
      reconnectMilliseconds: { first: 100, max: 30_000 },
      clock: parts.clock,
      random: parts.random,
      say: parts.say,
      stranger,
      reconciles(message) {
        const day = readDay(message, dialect, parts.clock.real())
        if (day) heardDay?.(day, readTotals(message, dialect))
        else parts.say(`${options.name}: reconciliation without a day, a terminal or a currency is not compared`)
      },
      ...(options.showMessages && parts.show && { show: parts.show }),
    }),
  )
  const link = makeLink(lines, waitForLineMilliseconds, drainMilliseconds)
  return {
    options,
    link,
    trace() {
      const next = parts.traces.next()
      return next && { ...next, at: Math.floor(parts.clock.real() / 1000) * 1000 }
    },
    start(...handlers) {
      ;[late, found] = handlers
    },
    async exchange(operation, trace, signal) {
      if (isCollected(operation))
        return collect(operation, trace, accountOf(operation, options), dialect, options.name, options.institute)
      if (!operation.card) return refused(operation, 'cardNumberErased')
      // What a partial capture leaves of the hold runs out at the issuer by itself.
      if (operation.releasing && !options.partialReversal) return refused(operation, 'succeeded')
      const account = accountOf(operation, options)
      const message = messageOf(operation, trace, account, dialect)
      const read = (asked: Operation, answer: typeof message) =>
        replyOf(asked, message, trace, answer, dialect, options.name, options.institute)
      const again = (answer: typeof message) => {
        // Late acknowledgements of a reversal change nothing.
        if (operation.recovering || operation.releasing) return
        late?.(operation.merchantId, operation.paymentId, read(asLate(operation), answer))
      }
      const ownTime = parts.clock.deadline(options.answerWithinSeconds * 1000)
      const sent = await link.send(message, AbortSignal.any([signal, ownTime]), again, operation.merchantId)
      return sent.kind === 'answer' ? read(operation, sent.message) : sent
    },
    async closeDay(day, totals, trace) {
      const message = totalsMessage(day, totals, trace, options.account, dialect)
      const sent = await link.send(message, parts.clock.deadline(options.answerWithinSeconds * 1000), () => {})
      if (sent.kind !== 'answer') return { why: sent.why }
      return endsDay(sent.message, dialect)
        ? readTotals(sent.message, dialect)
        : { why: `it was answered ${sent.message.fields.get(39) ?? 'without a code'}` }
    },
    hearDays(heard) {
      heardDay = heard
    },
    stop: () => link.stop(),
  }
}

/** A host gives back what names the message. */
const traceOf = ({ fields }: Message, now: number): Trace => ({
  terminal: (fields.get(41) ?? '').trim(),
  stan: fields.get(11) ?? '',
  at: madeAtOf(fields.get(7) ?? '', now),
})

/** A channel may have an account of its own with an acquirer. */
const accountOf = ({ channel }: Operation, { name, account }: AcquirerOptions): AcquirerAccountData => ({
  ...account,
  ...channel.settings.acquirerAccounts[name],
})

/** Refused here, before anything was sent. */
export const refused = ({ amount, currency }: Operation, result: Extract<Reply, { kind: 'answer' }>['result']): Reply => ({
  kind: 'answer',
  result,
  amount,
  currency,
  details: { ExtendedDescription: 'Refused before it was sent' },
  kept: {},
})
