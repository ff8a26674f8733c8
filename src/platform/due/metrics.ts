// What due work shows the operator.

import type { Clock } from '../clock.ts'
import type { Database } from '../database/connect.ts'
import type { Figure, Measure } from '../metrics.ts'
import { type MeasuredWork, measureWork } from './store.ts'

/** `kinds`: those that there are; one that has nothing to do is told as 0. */
export function measureDue({ work }: Pick<Database, 'work'>, clock: Clock, kinds: readonly string[]): Measure {
  let found = new Map<string, MeasuredWork>()
  const of = (name: string, help: string, value: (one: MeasuredWork) => number): Figure => ({
    kind: 'gauge',
    name,
    help,
    read: () => [...new Set([...kinds, ...found.keys()])].map(kind => [{ kind }, value(found.get(kind) ?? nothingDue)]),
  })
  return {
    name: 'due work',
    figures: [
      of('tollgate_due_work', 'Work whose time has come, by kind; at most 10000 in all.', one => one.due),
      of('tollgate_due_work_age_seconds', 'How long the oldest due work has waited, by kind.', ({ oldest }) => oldest / 1000),
      of(
        'tollgate_due_work_failing',
        'Work that was tried five times or more, and is tried on, by kind.',
        ({ failing }) => failing,
      ),
    ],
    async measure() {
      found = new Map((await measureWork(work, clock.real())).map(one => [one.kind, one]))
    },
  }
}

const nothingDue: Omit<MeasuredWork, 'kind'> & { readonly kind: '' } = { kind: '', due: 0, oldest: 0, failing: 0 }
