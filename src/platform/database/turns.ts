// Work on one thing, one at a time: who comes second waits here, in memory, and not with a connection of a pool at a lock of the database. So
// one chain that is locked or slow cannot take all connections.

import type { Clock } from '../clock.ts'
import { WriteTimeout } from './errors.ts'

export type Turns = <Value>(key: string, work: () => Promise<Value>) => Promise<Value>

/** Throws WriteTimeout when the turn did not come in time, or too many wait already. */
export function takeTurns(clock: Clock, patienceSeconds: number, waitingMost: number): Turns {
  type Turn = { comes(ours: boolean): void }
  const lines = new Map<string, Turn[]>()
  return async (key, work) => {
    const line = lines.get(key) ?? []
    if (line.length > waitingMost) throw new WriteTimeout('too many requests wait for the same thing')
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
      if (line.length === 1) turn.comes(true)
    })
    try {
      if (!ours) throw new WriteTimeout('an earlier request for the same thing has not ended in time')
      return await work()
    } finally {
      // Also a turn that gave up in the moment in which it came passes on.
      const wasFirst = line[0] === turn!
      line.splice(line.indexOf(turn!), 1)
      if (wasFirst) line[0]?.comes(true)
      if (line.length === 0) lines.delete(key)
    }
  }
}
