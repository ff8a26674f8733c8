// Days on which banks work: not at weekends, not on national holidays. Pure; days are `yyyy-MM-dd`, without a zone.
// Sources: Lei 662/1949 and Resolução CMN 4.880 for Brazil, the calendar of the CNBV for Mexico.

export type Country = 'BR' | 'MX'

const dayMilliseconds = 86_400_000

export const plusDays = (day: string, days: number): string => dateOf(Date.parse(day) + days * dayMilliseconds)

export const dateOf = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10)

/** A day of every year (`MM-DD`), of one year (`yyyy-MM-dd`), the nth Monday of a month (`MM-n`), or so many days after Easter (`easter-48`). */
const holidaysOf: Readonly<Record<Country, readonly string[]>> = {
  BR: '01-01 easter-48 easter-47 easter-2 04-21 05-01 easter+60 09-07 10-12 11-02 11-15 11-20 12-25'.split(' '),
  MX: '01-01 02-1 03-3 easter-3 easter-2 05-01 09-16 11-02 11-3 12-12 12-25'.split(' '),
}

/** `holidays` replaces the country's. */
export const isWorkingDay = (day: string, country: Country, holidays: readonly string[] = holidaysOf[country]): boolean =>
  ![0, 6].includes(weekday(day)) && !isHoliday(day, holidays)

const isHoliday = (day: string, holidays: readonly string[]): boolean => holidays.some(one => falls(one, day))

/** The day itself when it is one. */
export function nextWorkingDay(day: string, country: Country, holidays?: readonly string[]): string {
  let next = day
  while (!isWorkingDay(next, country, holidays)) next = plusDays(next, 1)
  return next
}

/** So many working days later. */
export function plusWorkingDays(day: string, days: number, country: Country, holidays?: readonly string[]): string {
  let next = day
  for (let left = days; left > 0; left--) next = nextWorkingDay(plusDays(next, 1), country, holidays)
  return next
}

const weekday = (day: string): number => new Date(day).getUTCDay()

function falls(holiday: string, day: string): boolean {
  if (holiday.length === 4) {
    const [month, nth] = holiday.split('-')
    return month === day.slice(5, 7) && weekday(day) === 1 && Math.ceil(Number(day.slice(8)) / 7) === Number(nth)
  }
  if (holiday.startsWith('easter')) return plusDays(easter(Number(day.slice(0, 4))), Number(holiday.slice(6))) === day
  return day.endsWith(holiday)
}

/** Gauss's rule, as Meeus and Jones wrote it. */
function easter(year: number): string {
  const [a, b, c] = [year % 19, Math.floor(year / 100), year % 100]
  const [d, e] = [Math.floor(b / 4), b % 4]
  const g = Math.floor((8 * b + 13) / 25)
  const h = (19 * a + b - d - g + 15) % 30
  const l = (32 + 2 * e + 2 * Math.floor(c / 4) - h - (c % 4)) % 7
  const m = Math.floor((a + 11 * h + 19 * l) / 433)
  const month = Math.floor((h + l - 7 * m + 90) / 25)
  return `${year}-${String(month).padStart(2, '0')}-${String((h + l - 7 * m + 33 * month + 19) % 32).padStart(2, '0')}`
}
