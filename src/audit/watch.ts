// What a gateway remembers of the audit while it runs: how far it went. Rows and head of an earlier moment fit each other when they are put back,
// and only who has seen later ones knows better.

import type pg from 'pg'
import { inTransaction } from '../platform/database/connect.ts'
import type { Log } from '../platform/log.ts'
import { nameOf, type Recorder, record, tamperingFound } from './chain.ts'
import { findStrangers } from './definitions/strangers.ts'
import { type End, lockHead, readRowsAfter } from './store.ts'

const everyMilliseconds = 60_000

/** Looks once: tells the log, and the audit where rows are gone that were seen before. */
export function auditWatch(pool: pg.Pool, recorder: Recorder, log: Log): () => Promise<void> {
  let seen: End = { sequence: 0, hash: null }
  const look = async () =>
    inTransaction(pool, async db => {
      // Before the lock, for which all wait who have to tell of something.
      const { found, partly } = await findStrangers(db, 'everything')
      const { sequence, hash } = await lockHead(db)
      const [row] = seen.sequence === 0 ? [] : await readRowsAfter(db, seen.sequence - 1, 1)
      const isThere = seen.sequence === 0 || (sequence >= seen.sequence && row?.hash.equals(seen.hash!) === true)
      const gone = `row ${seen.sequence}, which the gateway had seen, is gone or another one`
      for (const why of [...found, ...(isThere ? [] : [gone])]) log.error({ why }, 'somebody has tampered with the audit')
      // As while gateways are upgraded one after the other.
      if (partly !== undefined) log.warn({ why: partly }, 'the audit could be looked at in part only')
      if (!isThere) await record(db, recorder, [tamperingFound({ what: gone })])
      return { sequence, hash, isNew: sequence !== seen.sequence }
    })
  return async () => {
    const { isNew, ...end } = await look()
    seen = end
    if (isNew) log.info({ head: nameOf(end.sequence, end.hash) }, 'the head of the audit')
  }
}

export function startWatching(pool: pg.Pool, recorder: Recorder, log: Log): { stop(): Promise<void> } {
  const look = auditWatch(pool, recorder, log)
  let running: Promise<void> = Promise.resolve()
  const next = () => {
    running = running.then(look).catch((error: Error) => log.warn({ why: error.message }, 'the audit could not be looked at'))
  }
  next()
  const timer = recorder.clock.every(everyMilliseconds, next)
  return {
    async stop() {
      timer.cancel()
      await running
    },
  }
}
