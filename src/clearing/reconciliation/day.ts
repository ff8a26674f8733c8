// Business days: a day ends at the cut-over of its name, in the acquirer's time; from then on it is the next one. Pure.

import type { Dialect } from '../../connectors/cards/iso8583/dialects.ts'
import { stamp } from '../../connectors/cards/iso8583/versions.ts'

export type DayRules = Pick<Dialect['reconciliation'], 'cutOver' | 'timeZone'>

/** `2026-11-20` and 1 → `2026-11-21`. */
export const dayAfter = (day: string, days = 1): string =>
  new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10)

/** When a day ends, milliseconds. A time that the clocks leave out or show twice is the first moment that is not before it. */
export function endOfDay(day: string, { cutOver, timeZone }: DayRules): number {
  const [hours, minutes] = cutOver.split(':').map(Number) as [number, number]
  const wall = Date.parse(day) + (hours * 60 + minutes) * 60_000
  const shown = (at: number) => Date.parse(stamp(at, timeZone).replace(/(....)(..)(..)(..)(..)(..)/, '$1-$2-$3T$4:$5:$6Z'))
  // What clocks show is ahead of UTC by as much as on the day before or the day after.
  const moments = [-86_400_000, 86_400_000].map(away => wall - (shown(wall + away) - (wall + away)))
  const first = Math.min(...moments)
  return shown(first) >= wall ? first : Math.max(...moments)
}

/** The day that a moment belongs to. */
export function dayOf(at: number, rules: DayRules): string {
  let day = dayAfter(new Date(at).toISOString().slice(0, 10), -1)
  while (endOfDay(day, rules) <= at) day = dayAfter(day)
  return day
}
