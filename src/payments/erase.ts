// Retention: sealed cards are erased after their day, idempotency keys after 72 hours, shoppers' addresses after a month. Soon after a start and once an hour, in small steps.

import type { Gateway } from '../gateway.ts'
import { attemptDays, eraseAttempts } from '../risk/store.ts'
import { keyHours } from './idempotency.ts'
import { eraseCards, eraseKeys, eraseRedirects } from './store/sweep.ts'

const everyMilliseconds = 3_600_000
/** After a start: what fell due while nothing ran. */
const soonMilliseconds = 5000
/** So long an address that was handed to a shopper still leads to the shop. */
const redirectDays = 30

export async function eraseOld(gateway: Gateway): Promise<number> {
  const now = gateway.clock.real()
  const db = gateway.database.work
  return (
    (await eraseCards(db, now)) +
    (await eraseKeys(db, now - keyHours * 3_600_000)) +
    (await eraseRedirects(db, now - redirectDays * 86_400_000)) +
    (await eraseAttempts(db, now - attemptDays * 86_400_000))
  )
}

export function startErasing(gateway: Gateway): { stop(): Promise<void> } {
  let running: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout
  const erase = () => {
    running = eraseOld(gateway)
      .catch((error: Error) => gateway.log.warn({ why: error.message }, 'old card data could not be erased'))
      .then(() => plan(everyMilliseconds))
  }
  const plan = (milliseconds: number) => {
    timer = setTimeout(erase, milliseconds).unref()
  }
  plan(soonMilliseconds)
  return {
    async stop() {
      clearTimeout(timer)
      await running
      clearTimeout(timer)
    },
  }
}
