// Retention: sealed cards are erased after their day, idempotency keys after 72 hours, shoppers' addresses after a month, bank details of
// refunds after half a year. Soon after a start and once an hour, in small steps.
// What is left in the file of the secrets of challenges: every minute.

import type { Timer } from '../platform/clock.ts'
import { eraseCards } from '../vault/cardStore.ts'
import { keyHours } from './idempotency.ts'
import type { PaymentParts } from './parts.ts'
import { eraseSecrets } from './redirects/store.ts'
import { attemptDays, eraseAttempts } from './risk/store.ts'
import { eraseKeys, eraseRedirects } from './store/sweep.ts'
import { eraseDetails } from './transfers/store.ts'

/** After a start: what fell due while nothing ran. */
const soonMilliseconds = 5000
/** So long an address that was handed to a shopper still leads to the shop. */
const redirectDays = 30
/** So long somebody may ask where a refund went. */
const bankDetailsDays = 180

export async function eraseOld(parts: PaymentParts): Promise<number> {
  const now = parts.clock.real()
  const db = parts.database.work
  return (
    (await eraseCards(db, now)) +
    (await eraseKeys(db, now - keyHours * 3_600_000)) +
    (await eraseRedirects(db, now - redirectDays * 86_400_000)) +
    (await eraseDetails(db, now - bankDetailsDays * 86_400_000)) +
    (await eraseAttempts(db, now - attemptDays * 86_400_000))
  )
}

const hourMilliseconds = 3_600_000
const rhythms: readonly (readonly [everyMilliseconds: number, erase: (parts: PaymentParts) => Promise<unknown>])[] = [
  [hourMilliseconds, eraseOld],
  [60_000, ({ database, clock }) => eraseSecrets(database.work, clock.real())],
]

/** `also`: what others keep for a time. */
export function startErasing(parts: PaymentParts, also: () => Promise<unknown>): { stop(): Promise<void> } {
  const started = [...rhythms, [hourMilliseconds, also] as const].map(([every, erase]) => repeated(parts, every, erase))
  return { stop: async () => void (await Promise.all(started.map(one => one.stop()))) }
}

function repeated(
  parts: PaymentParts,
  every: number,
  erase: (parts: PaymentParts) => Promise<unknown>,
): { stop(): Promise<void> } {
  let running: Promise<unknown> = Promise.resolve()
  let timer: Timer
  const once = () => {
    running = erase(parts)
      .catch((error: Error) => parts.log.warn({ why: error.message }, 'what is kept for a time could not be erased'))
      .then(() => plan(every))
  }
  const plan = (milliseconds: number) => {
    timer = parts.clock.after(milliseconds, once).unref()
  }
  plan(soonMilliseconds)
  return {
    async stop() {
      timer.cancel()
      await running
      timer.cancel()
    },
  }
}
