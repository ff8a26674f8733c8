// Until when a key was written with. Gateways are given a new key one after the other, some of them days late: what the last of them made needs the old one for as
// long as any, so each says from time to time that it still writes with its own.

import type { Clock } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import { type Keys, writtenWith } from './keys.ts'
import { tellWritten } from './store.ts'

/** A process that is killed has said so this long ago at most. */
export const toldEveryMilliseconds = 600_000

/** `mayTell`: a clock that is ahead would keep the key for ever. */
export function startTellingWritten(
  db: Connection,
  keys: Keys,
  clock: Clock,
  mayTell: () => boolean,
  failed: (error: Error) => void,
): { stop(): Promise<void> } {
  let telling: Promise<void> = Promise.resolve()
  const tell = () => {
    if (mayTell()) telling = telling.then(() => tellWritten(db, writtenWith(keys), clock.real())).catch(failed)
  }
  tell()
  const timer = clock.every(toldEveryMilliseconds, tell)
  return {
    async stop() {
      timer.cancel()
      tell()
      await telling
    },
  }
}
