// Work on one thing, one at a time or a few: who comes later waits here, in memory, and not with a connection of a pool at a lock of the database. So
// one chain that is locked or slow cannot take all connections.

import type { Clock } from '../clock.ts'
import { WriteTimeout } from './errors.ts'

export type Turns = <Value>(key: string, work: () => Promise<Value>) => Promise<Value>

/** `most` at a time. Throws WriteTimeout when the turn did not come in time, or too many wait already. */
export function takeTurns(clock: Clock, patienceSeconds: number, waitingMost: number, most = 1): Turns {
  type Turn = { comes(ours: boolean): void }
  const lines = new Map<string, Turn[]>()
  return async (key, work) => {
    const line = lines.get(key) ?? []
    if (line.length >= most + waitingMost) throw new WriteTimeout('too many requests wait for the same thing')
    lines.set(key, line)
    let turn: Turn
    const ours = await new Promise<boolean>(resolve => {
      const timer = clock.after(patienceSeconds * 1000, () => resolve(false))
      turn = {
        comes(ours) {
          timer.cancel()
          resolve(ours)
        },
      }
      line.push(turn)
      if (line.length <= most) turn.comes(true)
    })
    try {
      if (!ours) throw new WriteTimeout('an earlier request for the same thing has not ended in time')
      return await work()
    } finally {
      // Also a turn that gave up in the moment in which it came passes on.
      const at = line.indexOf(turn!)
      line.splice(at, 1)
      if (at < most) line[most - 1]?.comes(true)
      if (line.length === 0) lines.delete(key)
    }
  }
}
