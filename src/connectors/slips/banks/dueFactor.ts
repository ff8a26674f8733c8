// The due date in a barcode: four digits that count days and began again at 1000 on 2025-02-22. Pure; days are `yyyy-MM-dd`, without a zone.

const dayMilliseconds = 86_400_000
const base = Date.parse('1997-10-07') / dayMilliseconds
const cycle = 9000
/** The first day that has a factor: 1000. */
const firstDays = 1000

const daysOf = (day: string): number => Date.parse(day) / dayMilliseconds - base
const dayOfDays = (days: number): string => new Date((days + base) * dayMilliseconds).toISOString().slice(0, 10)

/** 2026-12-01 → `1647`. From 2000-07-03. */
export function dueFactor(day: string): string {
  const days = daysOf(day)
  if (!(days >= firstDays)) throw new Error(`no due-date factor is defined for ${day}`)
  return String(((days - firstDays) % cycle) + firstDays)
}

// A factor stands for a day in each 9000: the one that is nearest to today in this window, which is shorter than that (rule of the banks).
const before = 3000
const after = 5500

/** The day that a factor means today. Undefined for none, as `0000`, and for one outside the window. */
export function dueDayOf(factor: string, today: string): string | undefined {
  const first = Number(factor)
  const now = daysOf(today)
  if (first < firstDays) return undefined
  const days = first + Math.max(0, Math.ceil((now - before - first) / cycle)) * cycle
  return days <= now + after ? dayOfDays(days) : undefined
}
