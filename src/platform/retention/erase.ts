// Erases what was kept for its time: in small steps beside everything else, kind after kind, by whichever process comes first. A process that dies leaves
// nothing half done: the next one goes on with what is left.

import type { Clock, Timer } from '../clock.ts'
import type { Database } from '../database/connect.ts'
import type { Log } from '../log.ts'
import type { Figure, FigureValue, Measure } from '../metrics.ts'
import type { Kept } from './kept.ts'
import { eraseStep, noteSwept, readSweeps, rowsOfStep, type Sweep, takeSweep } from './store.ts'

export type RetentionParts = {
  readonly clock: Clock
  readonly database: Pick<Database, 'work'>
  readonly log: Log
  /** With the days that are set. */
  readonly retention: readonly Kept[]
}

const dayMilliseconds = 86_400_000
/** After a start: what fell due while nothing ran. */
const soonMilliseconds = 5000
const roundMilliseconds = 60_000
/** Between two steps, so that a long arrears leaves room for payments. */
const breathMilliseconds = 20

/** Erases all of a kind whose time is over at a moment, which the database shares. Returns how many rows; undefined when it was broken off. */
export async function sweep(
  { clock, database }: Pick<RetentionParts, 'clock' | 'database'>,
  one: Kept,
  now: number,
  goesOn: () => boolean = () => true,
): Promise<number | undefined> {
  let erased = 0
  while (goesOn()) {
    const step = await eraseStep(database.work, one, now - one.days * dayMilliseconds)
    erased += step
    if (step < rowsOfStep || one.erase) {
      await noteSwept(database.work, one.kind, now)
      return erased
    }
    await clock.sleep(breathMilliseconds)
  }
  return undefined
}

/** A clock that is wrong would take what is young: whether it is trusted, and the time that the database shares. */
export type ErasingTime = { isTrusted(): boolean; time(): Promise<number | undefined> }

/** Soon after a start, then each kind in its rhythm. */
export function startErasing(parts: RetentionParts, { isTrusted, time }: ErasingTime): { stop(): Promise<void> } {
  const { clock, database, log, retention } = parts
  let stopped = false
  let begun = false
  let running: Promise<unknown> = Promise.resolve()
  let timer: Timer
  const goesOn = () => !stopped && isTrusted()
  const round = async () => {
    const rhythm = ({ everyMinutes = 60 }: Kept) => (begun ? everyMinutes * 60_000 : 0)
    for (const one of retention) {
      try {
        const now = goesOn() ? await time() : undefined
        if (now === undefined) return
        const taken = await takeSweep(database.work, one.kind, now, now - rhythm(one))
        if (taken?.wasAhead)
          log.warn({ kind: one.kind }, 'a wrong clock has erased: what was noted of a time to come is passed over')
        if (taken) await sweep(parts, one, now, goesOn)
      } catch (error) {
        log.warn({ kind: one.kind, why: (error as Error).message }, 'what is kept for a time could not be erased')
      }
    }
    begun ||= goesOn()
  }
  const plan = (milliseconds: number) => {
    timer = clock
      .after(milliseconds, () => {
        running = round().then(() => void (stopped || plan(roundMilliseconds)))
      })
      .unref()
  }
  plan(soonMilliseconds)
  return {
    async stop() {
      stopped = true
      timer.cancel()
      await running
    },
  }
}

/** Of all processes together. */
export function measureRetention({ clock, database, retention }: Omit<RetentionParts, 'log'>): Measure {
  let now = 0
  let sweeps: ReadonlyMap<string, Sweep> = new Map()
  const figure = (kind: Figure['kind'], name: string, help: string, value: (one: Kept, sweep: Sweep) => number): Figure => ({
    kind,
    name,
    help,
    read: () =>
      retention.flatMap((one): FigureValue[] => {
        const swept = sweeps.get(one.kind)
        return swept && swept.sweptAt !== null ? [[{ kind: one.kind }, value(one, swept)]] : []
      }),
  })
  const since = ({ sweptAt }: Sweep) => Math.max(0, now - sweptAt!) / 1000
  return {
    name: 'retention',
    figures: [
      figure(
        'counter',
        'tollgate_erased_rows_total',
        'Rows that were erased when their time was over.',
        (_, { erased }) => erased,
      ),
      figure('gauge', 'tollgate_erased_age_seconds', 'How long ago nothing was left of a kind whose time was over.', (_, swept) =>
        since(swept),
      ),
      figure(
        'gauge',
        'tollgate_kept_age_seconds',
        'How old the oldest of a kind can be: its days, and the time since it was last erased.',
        ({ days }, swept) => days * 86_400 + since(swept),
      ),
    ],
    async measure() {
      now = clock.real()
      sweeps = await readSweeps(database.work)
    },
  }
}
