// tollgate retention: what is kept for a time, how much there is of it, and when it ends; with --run what is over is erased now.

import type { Command } from 'commander'
import { tellAndDo } from '../audit/act.ts'
import { systemClock } from '../platform/clock.ts'
import { OperatorError } from '../platform/errors.ts'
import { makeLog } from '../platform/log.ts'
import { sweep } from '../platform/retention/erase.ts'
import type { Kept } from '../platform/retention/kept.ts'
import { measureKept, readSweeps, type Sweep, takeSweep } from '../platform/retention/store.ts'
import { watchClock } from '../start/clockWatch.ts'
import { type CommandParts, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

export default (program: Command): void => {
  const retention = program
    .command('retention')
    .description('what is kept for a time, how much of it there is, and when the oldest of it ends')
    .option('--run', 'erase now what is over, as the gateways do by themselves once an hour')
  reads(retention, { 'kinds[]': 'kind what days rows oldest ends sweptAt erased' }, ({ run }) => run === true).action(
    ({ run, ...options }: ReadOptions & { run?: true }) =>
      withOpened(async opened => {
        if (run) await runAll(opened)
        const sweeps = await readSweeps(opened.database.work)
        const kinds = await Promise.all(opened.config.retention.map(one => standing(opened, one, sweeps.get(one.kind))))
        const document = kinds.map(({ oldest, ends, sweptAt, ...kind }) => ({
          ...kind,
          oldest: timeField(oldest),
          ends: timeField(ends),
          sweptAt: timeField(sweptAt),
        }))
        show(options, { kinds: document }, () =>
          table([
            ['kind', 'days', 'rows', 'oldest', 'ends', 'last erased', 'erased', 'what'],
            ...kinds.map(({ kind, days, rows, oldest, ends, sweptAt, erased, what }) => [
              kind,
              days,
              rows,
              timeText(oldest),
              timeText(ends),
              timeText(sweptAt),
              erased,
              what,
            ]),
          ]),
        )
      }),
  )
}

async function standing({ database }: CommandParts, one: Kept, sweep: Sweep | undefined) {
  const { kind, what, days } = one
  const { rows, oldest } = await measureKept(database.reports, one)
  const { sweptAt = null, erased = 0 } = sweep ?? {}
  const ends = oldest === null ? null : oldest + days * 86_400_000
  return { kind, what, days: Number(days.toFixed(2)), rows, oldest, ends, sweptAt, erased }
}

/** A clock that is wrong would take what is young. */
async function runAll(opened: CommandParts): Promise<void> {
  const { config, database } = opened
  const watch = await watchClock(database.work, systemClock, makeLog('silent'))
  const isWhole = await tellAndDo(database.work, opened, { action: 'erasedByHand' }, async ({ came: erased }) => {
    for (const one of config.retention) {
      const now = await watch.time()
      if (now === undefined) return false
      await takeSweep(database.work, one.kind, now, now)
      erased[one.kind] = (await sweep(opened, one, now, watch.isTrusted)) ?? 0
    }
    return true
  }).finally(() => watch.stop())
  if (!isWhole)
    throw new OperatorError('The clock of this machine was set meanwhile: what was erased is in the audit, the rest was left.')
}
