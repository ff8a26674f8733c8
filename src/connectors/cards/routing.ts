// The connector for cards of one mode: chooses among acquirers by the channel's routes, in order, and goes on to the next only when nothing was sent.
// A trace for every way is on disk before the first message leaves, so that recovery can reverse wherever a message may have arrived.

import type { AcquirerRoute } from '../../merchants/settings.ts'
import type { Connector, Mode, Operation, OperationRequest, PreparedStates, Reply } from '../connector.ts'
import { gaveOtherwise, takenBack } from '../takenBack.ts'
import { type Acquirer, refused } from './acquirer.ts'
import type { Trace } from './iso8583/messages.ts'

/** For metrics: which acquirer carried what, and how often the next one had to. */
export type RouteCounters = Record<
  string,
  { tried: number; answered: number; notSent: number; unknown: number; tookOver: number }
>

export function cardRouting(mode: Mode, acquirers: readonly Acquirer[]): Connector & { readonly counters: RouteCounters } {
  const byName = new Map(acquirers.map(acquirer => [acquirer.options.name, acquirer]))
  const counters: RouteCounters = Object.fromEntries(
    acquirers.map(({ options }) => [options.name, { tried: 0, answered: 0, notSent: 0, unknown: 0, tookOver: 0 }]),
  )
  const answerWithinSeconds = Math.max(...acquirers.map(({ options }) => options.answerWithinSeconds))
  const afterSeconds = Math.max(...acquirers.map(({ options }) => options.recoverAfterSeconds))

  async function exchange(operation: Operation, way: Way, signal: AbortSignal): Promise<Reply> {
    const count = counters[way.acquirer.options.name]!
    count.tried++
    const reply = await way.acquirer.exchange(operation, way.trace, signal)
    if (reply.kind !== 'redirect') count[reply.kind === 'answer' ? 'answered' : reply.kind]++ // an acquirer never redirects
    return reply.kind === 'unknown' ? { ...reply, afterSeconds: way.acquirer.options.recoverAfterSeconds } : reply
  }

  /** First payments: the next acquirer is tried only when nothing was sent to the one before. */
  async function tryInOrder(operation: Operation, ways: readonly Way[], signal: AbortSignal): Promise<Reply> {
    let last: Reply = noWay(operation)
    for (const [at, way] of ways.entries()) {
      last = await exchange(operation, way, signal)
      if (last.kind !== 'notSent') return last
      if (at + 1 < ways.length) counters[ways[at + 1]!.acquirer.options.name]!.tookOver++
    }
    return last
  }

  /** Nobody knows which acquirer has it: all are told, and all must have heard. The progress says of each whether it was told, and has heard. */
  async function takeBack(operation: Operation, ways: readonly Way[], signal: AbortSignal): Promise<Reply> {
    const before = operation.progress ?? {}
    const known = operation.reference?.kept.acquirer
    const concerned = ways.filter(({ acquirer: { options } }) =>
      known === undefined ? !ends(before[options.name]) : options.name === known,
    )
    const replies = await Promise.all(
      concerned.map(async way => {
        const { name } = way.acquirer.options
        // A repeat is one only where the first was sent.
        const said = await exchange({ ...operation, attempt: before[name] === undefined ? 1 : 2 }, way, signal)
        const reply = takenBack(operation, said)
        // Of what it has given back in part it may know nothing the next time.
        return [name, before[name] === otherwise && foundNothing(reply) ? gaveOtherwise : reply] as const
      }),
    )
    const hasHeard = (reply: Reply) => reply.kind === 'answer' && reply.result === 'succeeded'
    const stepOf = (name: string, reply: Reply) => {
      if (hasHeard(reply)) return foundNothing(reply) ? 'nothing' : 'heard'
      return reply === gaveOtherwise || before[name] === otherwise ? otherwise : 'told'
    }
    const open = goneFrom(operation) ?? replies.map(([, reply]) => reply).find(reply => !hasHeard(reply))
    if (!open) {
      // Who had booked it is told, whenever that was heard; without a trace no message ever left, and there is nothing to take back.
      const earlier = Object.keys(before).find(name => before[name] === 'heard')
      const last = replies.find(([, reply]) => !foundNothing(reply))?.[1] ?? replies[0]?.[1] ?? refused(operation, 'succeeded')
      return last.kind === 'answer' && foundNothing(last) && earlier !== undefined
        ? { ...last, amount: operation.amount, currency: operation.currency, kept: { acquirer: earlier } }
        : last
    }
    if (open.kind !== 'notSent' && open.kind !== 'unknown') return open
    const steps = replies
      .filter(([, { kind }]) => kind !== 'notSent')
      .map(([name, reply]): [string, string] => [name, stepOf(name, reply)])
    return { ...open, progress: { ...before, ...Object.fromEntries(steps) } }
  }

  /** An acquirer that a payment may have gone to is not in the file any more: what became of it cannot be learned before that one is back. */
  function goneFrom({ prepared, reference }: Operation): NotSentReply | undefined {
    const names = reference?.kept.acquirer === undefined ? prepared?.map(({ acquirer }) => acquirer!) : [reference.kept.acquirer]
    const name = names?.find(one => !byName.has(one))
    return name === undefined
      ? undefined
      : { kind: 'notSent', why: `the acquirer ${name} is not configured any more`, needsDecision: true }
  }

  const waysOf = (prepared: PreparedStates | undefined): Way[] =>
    (prepared ?? []).flatMap(({ acquirer, terminal, stan, at }) => {
      const found = byName.get(acquirer ?? '')
      return found ? [{ acquirer: found, trace: { terminal: terminal!, stan: stan!, at: Number(at) } }] : []
    })

  return {
    name: `cards ${mode}`,
    answerWithinSeconds,
    guardsLinks: true,
    counters,
    operations: {
      PA: { how: 'reverse', afterSeconds },
      DB: { how: 'reverse', afterSeconds },
      CD: { how: 'repeat', afterSeconds },
      CP: { how: 'repeat', afterSeconds },
      RF: { how: 'repeat', afterSeconds },
      RV: { how: 'repeat', afterSeconds },
    },
    partialReversal: ({ acquirer = '' }) => byName.get(acquirer)?.options.partialReversal !== false,
    prepare(asked) {
      const names = asked.reference
        ? [asked.reference.kept.acquirer ?? '']
        : routeOf(
            asked,
            acquirers.map(({ options }) => options.name),
          )
      // A credit is repeated until it is acknowledged: it must not be able to go two ways.
      const allowed = asked.type === 'CD' ? names.slice(0, 1) : names
      return allowed.flatMap(name => {
        const acquirer = byName.get(name)
        const trace = acquirer?.trace()
        if (!acquirer || !trace) return []
        const collects = asked.type === 'CP' && acquirer.options.dialect.captures.by === 'file'
        return [
          {
            acquirer: name,
            terminal: trace.terminal,
            stan: trace.stan,
            at: String(trace.at),
            ...(collects && { capture: 'file' }),
          },
        ]
      })
    },
    async perform(operation, signal) {
      const ways = waysOf(operation.prepared)
      if (operation.recovering || operation.releasing) return takeBack(operation, ways, signal)
      return (operation.attempt > 1 ? goneFrom(operation) : undefined) ?? tryInOrder(operation, ways, signal)
    },
    /** All that a message may have gone to: one of two that says nothing holds up nothing that goes to the other alone. */
    askedAt({ prepared }) {
      const names = (prepared ?? []).map(({ acquirer }) => acquirer)
      return names.length === 0 ? '' : `acquirer:${names.join('+')}`
    },
    start(late, found) {
      for (const acquirer of acquirers) acquirer.start(late, found)
    },
    async stop() {
      await Promise.all(acquirers.map(acquirer => acquirer.stop()))
    },
  }
}

/** Of the progress of taking back: another amount went back than was asked for. */
const otherwise = 'otherwise'
const ends = (step: string | undefined): boolean => step === 'heard' || step === 'nothing'
const foundNothing = (reply: Reply): boolean =>
  reply.kind === 'answer' && (reply.kept.nothing !== undefined || reply.kept.acquirer === undefined)

/** There was nobody to send it to, or no terminal to send it from: the operator has to mend other things. */
const noWay = ({ prepared }: Operation): NotSentReply =>
  prepared === undefined || prepared.length === 0
    ? { kind: 'notSent', why: 'no terminal is free, or no acquirer is configured', never: true, result: 'noTerminalFree' }
    : { kind: 'notSent', why: 'no line is up', never: true }

type NotSentReply = Extract<Reply, { kind: 'notSent' }>

type Way = { readonly acquirer: Acquirer; readonly trace: Trace }

/** The names of the acquirers for a payment, in order: of the first route that fits, else the first acquirer alone. */
export function routeOf(asked: OperationRequest, configured: readonly string[]): readonly string[] {
  const route = asked.channel.settings.routes.find(one => fits(one, asked))
  return route ? route.acquirers.filter(name => configured.includes(name)) : configured.slice(0, 1)
}

function fits(route: AcquirerRoute, { brand, currency, bin, amount }: OperationRequest): boolean {
  return (
    (route.brands === undefined || route.brands.includes(brand)) &&
    (route.currencies === undefined || route.currencies.includes(currency)) &&
    (route.bins === undefined || (bin !== undefined && route.bins.some(range => inRange(bin, range)))) &&
    (route.amountFrom === undefined || amount >= route.amountFrom) &&
    (route.amountTo === undefined || amount <= route.amountTo)
  )
}

/** `4`, `510000-559999`: compared on as many digits as the range has. */
function inRange(bin: string, range: string): boolean {
  const [from, to = from] = range.split('-') as [string, string | undefined]
  const digits = bin.slice(0, from.length)
  return digits.length === from.length && digits >= from && digits <= to
}
