// Periods of reports: days, weeks from Monday on and months, in UTC, each named by its first day. Pure.

export const periods = ['day', 'week', 'month'] as const
export type ReportPeriod = (typeof periods)[number]

const dayMilliseconds = 86_400_000
const dayText = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10)
const plusDays = (day: string, days: number): string => dayText(Date.parse(day) + days * dayMilliseconds)

/** The period in which a moment lies. */
export function periodOf(every: ReportPeriod, milliseconds: number): string {
  const day = dayText(milliseconds)
  if (every === 'month') return `${day.slice(0, 7)}-01`
  return every === 'week' ? plusDays(day, -((new Date(day).getUTCDay() + 6) % 7)) : day
}

export function periodAfter(every: ReportPeriod, first: string): string {
  if (every === 'month') return periodOf('month', Date.parse(first) + 31 * dayMilliseconds)
  return plusDays(first, every === 'week' ? 7 : 1)
}
