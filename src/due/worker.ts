// The worker loop: takes due work and runs its handler. Whoever is killed in the middle leaves a lease that runs out in a minute.

import type { Gateway } from '../gateway.ts'
import { type DueItem, finishDue, postponeDue, takeDue } from './store.ts'

/** `done`, or the real time in milliseconds at which to try again. */
export type DueHandler = (gateway: Gateway, item: DueItem) => Promise<'done' | { readonly again: number }>
export type DueHandlers = ReadonlyMap<string, DueHandler>

export type Worker = { stop(): Promise<void> }

const pauseMilliseconds = 250
const atOnce = 20

export function startWorker(gateway: Gateway, handlers: DueHandlers): Worker {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  const round = async (): Promise<void> => {
    let found = 0
    try {
      const items = await takeDue(gateway.database.work, gateway.clock.real(), atOnce)
      found = items.length
      await Promise.all(items.map(item => runItem(gateway, handlers, item)))
    } catch (error) {
      gateway.log.warn({ why: (error as Error).message }, 'due work could not be taken')
    }
    if (!stopped) timer = setTimeout(next, found === atOnce ? 0 : pauseMilliseconds)
  }
  const next = () => {
    running = round()
  }
  next()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}

/** Runs one item; a handler that throws is tried again, later each time. */
export async function runItem(gateway: Gateway, handlers: DueHandlers, item: DueItem): Promise<void> {
  const db = gateway.database.work
  const handler = handlers.get(item.kind)
  try {
    if (!handler) throw new Error(`nothing handles ${item.kind}`)
    const ended = await handler(gateway, item)
    if (ended === 'done') await finishDue(db, item)
    else await postponeDue(db, item, ended.again)
  } catch (error) {
    gateway.log.error(
      { kind: item.kind, paymentId: item.subjectId, attempt: item.attempts, why: (error as Error).message },
      'due work failed',
    )
    await postponeDue(db, item, gateway.clock.real() + backOff(item.attempts)).catch(() => {}) // its lease runs out by itself
  }
}

/** 2, 4, 8 … seconds, at most ten minutes. */
export const backOff = (attempts: number): number => Math.min(2 ** Math.min(attempts, 20), 600) * 1000
