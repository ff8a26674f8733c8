// Retention: sealed cards are erased after their day, idempotency keys after 72 hours. Once an hour, in small steps.

import { timeParameter } from '../database/connect.ts'
import type { Gateway } from '../gateway.ts'
import { keyHours } from './idempotency.ts'

const everyMilliseconds = 3_600_000
const step = 1000

export async function eraseOld(gateway: Gateway): Promise<number> {
  const now = gateway.clock.real()
  const statements: readonly [sql: string, value: string][] = [
    [
      `delete from sealed_cards where ctid in (select ctid from sealed_cards where erase_after < $1 limit ${step})`,
      timeParameter(now).slice(0, 10),
    ],
    [
      `delete from idempotency_keys where ctid in (select ctid from idempotency_keys where recorded_at < $1 limit ${step})`,
      timeParameter(now - keyHours * 3_600_000),
    ],
  ]
  let erased = 0
  for (const [sql, value] of statements) {
    for (let more = true; more; ) {
      const { rowCount } = await gateway.database.work.query(sql, [value])
      erased += rowCount ?? 0
      more = rowCount === step
    }
  }
  return erased
}

export function startErasing(gateway: Gateway): { stop(): Promise<void> } {
  let running: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    running = eraseOld(gateway).catch((error: Error) =>
      gateway.log.warn({ why: error.message }, 'old card data could not be erased'),
    )
  }, everyMilliseconds).unref()
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
