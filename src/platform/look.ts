// Looks again and again at what others change, once for all who wait for the same: however many they are, the database is asked as often as for one.

import type { Clock } from './clock.ts'

/** What was seen when it was enough, or at the end of the time. Who waits under a key looks at the same thing. */
export type LookTogether = <Seen>(
  key: string,
  look: () => Promise<Seen>,
  isEnough: (seen: Seen) => boolean,
  /** Real time. */
  until: number,
) => Promise<Seen>

const [firstPause, longestPause] = [10, 250]

export function lookTogether(clock: Clock): LookTogether {
  type Waiting = { take(seen: unknown): boolean; fail(error: unknown): void }
  const looks = new Map<string, Set<Waiting>>()

  async function goOn(key: string, waiting: Set<Waiting>, look: () => Promise<unknown>): Promise<void> {
    for (let pause = firstPause; waiting.size > 0; pause = Math.min(pause * 2, longestPause)) {
      const seen = await look()
      for (const one of waiting) if (one.take(seen)) waiting.delete(one)
      if (waiting.size > 0) await clock.sleep(pause)
    }
    looks.delete(key)
  }

  return <Seen>(key: string, look: () => Promise<Seen>, isEnough: (seen: Seen) => boolean, until: number) =>
    new Promise<Seen>((resolve, reject) => {
      const one: Waiting = {
        take(seen) {
          const enough = isEnough(seen as Seen) || clock.real() >= until
          if (enough) resolve(seen as Seen)
          return enough
        },
        fail: reject,
      }
      const waiting = looks.get(key)
      if (waiting) return void waiting.add(one)
      const first = new Set([one])
      looks.set(key, first)
      goOn(key, first, look).catch(error => {
        looks.delete(key)
        for (const waiter of first) waiter.fail(error)
      })
    })
}
