// What connectors show the operator: how long the other side took, whatever asked it. A connector around each.

import { results } from '../contract/results/results.ts'
import type { Clock } from '../platform/clock.ts'
import type { Silences } from '../platform/due/silence.ts'
import { distribution, type Figure } from '../platform/metrics.ts'
import type { Tracer } from '../platform/traces.ts'
import type { Connector, Operation, Reply } from './connector.ts'

/** Does a step of a payment, and may look at it from outside. */
export type WatchCall = (call: ConnectorCall, ask: () => Promise<Reply>) => Promise<Reply>
/** `operation` is the type of the payment; `ask` for a question what became of one. */
export type ConnectorCall = { readonly connector: string; readonly operation: string; readonly of: Operation }

export function watched(connector: Connector, watch: WatchCall): Connector {
  const { name, perform, ask, resume } = connector
  const call = (of: Operation, operation: string = of.type) => ({ connector: name, operation, of })
  return {
    ...connector,
    perform: (operation, signal) => watch(call(operation), () => perform(operation, signal)),
    ...(ask && { ask: (operation, signal) => watch(call(operation, 'ask'), () => ask(operation, signal)) }),
    ...(resume && { resume: (operation, from, signal) => watch(call(operation), () => resume(operation, from, signal)) }),
  }
}

/** Each looks from outside of the next. */
export const watchAll =
  (watches: readonly WatchCall[]): WatchCall =>
  (call, ask) =>
    watches.reduceRight<() => Promise<Reply>>((inner, watch) => () => watch(call, inner), ask)()

/** A span of its own for each call. */
export const traceCalls =
  (tracer: Tracer): WatchCall =>
  ({ connector, operation, of }, ask) =>
    tracer.step(
      {
        name: `${connector} ${operation}`,
        kind: 'client',
        attributes: { 'tollgate.connector': connector, 'tollgate.operation': operation, 'tollgate.payment': of.paymentId },
        tells: reply => ({ 'tollgate.outcome': endOf(reply) }),
      },
      ask,
    )

/** What a reply is to whoever watches: the outcome of an answer, or its kind. */
export const endOf = (reply: Reply): string => (reply.kind === 'answer' ? results[reply.result].outcome : reply.kind)

/** Tells of connectors that have one host for many payments whether it answered before its time was over. */
export function hearing(connector: Connector, silences: Silences): Connector {
  const { askedAt, guardsLinks, perform, ask, resume } = connector
  if (!askedAt || guardsLinks) return connector
  const hear = async (operation: Operation, signal: AbortSignal, asked: Promise<Reply>): Promise<Reply> => {
    const reply = await asked
    const side = askedAt(operation)
    if (side !== '') silences.note(side, signal.aborted && (reply.kind === 'unknown' || reply.kind === 'notSent'))
    return reply
  }
  return {
    ...connector,
    perform: (operation, signal) => hear(operation, signal, perform(operation, signal)),
    ...(ask && { ask: (operation, signal) => hear(operation, signal, ask(operation, signal)) }),
    ...(resume && { resume: (operation, from, signal) => hear(operation, signal, resume(operation, from, signal)) }),
  }
}

export function timeCalls(figures: Figure[], clock: Clock): WatchCall {
  const took = distribution(
    figures,
    'tollgate_connector_duration_seconds',
    'How long connectors took, by operation and outcome.',
    ['connector', 'operation', 'outcome'],
  )
  return async ({ connector, operation }, ask) => {
    const began = clock.elapsed()
    const end = (outcome: string) => took((clock.elapsed() - began) / 1000, connector, operation, outcome)
    try {
      const reply = await ask()
      end(endOf(reply))
      return reply
    } catch (error) {
      end('unknown')
      throw error
    }
  }
}
