// Where the editions of 1987 and 1993 differ in what is said, one table: type digit, times, function codes, original data, reasons, network messages.

import { isCalendarDay } from '../../../contract/formats.ts'
import { threeLetters } from './countries.ts'
import type { Dialect, FieldValues } from './dialects.ts'

/** Identifies an earlier message: type, trace number, when it was made (milliseconds) and the acquirer's id. */
export type Original = { readonly type: string; readonly stan: string; readonly at: number; readonly acquirerId: string }

export type Place = { readonly name: string; readonly city: string; readonly state: string; readonly country: string }

/** Why a reversal is sent: the shop wants it, or nobody answered. */
export type ReversalReason = 'asked' | 'timedOut'

export type Version = {
  /** First digit of every type indicator. */
  readonly digit: '0' | '1'
  /** A merchant's reversal; the standard of 1993 knows reversals as advices only. */
  readonly reversalType: '400' | '420'
  localTime(at: number, timeZone: string): FieldValues
  /** Where the merchant's category stands. */
  readonly category: 18 | 26
  nameAndPlace(place: Place): string
  /** What kind of authorization, capture or refund it is; `asEarlier`: of the amount that was authorized. */
  purpose(type: string, asEarlier: boolean): FieldValues
  original(original: Original, timeZone: string): FieldValues
  /** Amounts in minor units: what was authorized and what of it shall stand. */
  replacement(authorized: string, remaining: string): FieldValues
  /** Of a whole reversal. */
  reversal(reason: ReversalReason): FieldValues
  readonly network: {
    readonly type: string
    readonly answer: string
    readonly accepted: string
    readonly refused: string
    times(at: number, timeZone: string): FieldValues
    readonly signOn: FieldValues
    readonly signOff: FieldValues
    readonly echo: FieldValues
    readonly keyChange: FieldValues
    /** Where a new key stands, wrapped, in hex. */
    readonly keyField: 48 | 96
  }
  readonly reconciliation: {
    /** The day that ends, `yyyy-MM-dd`. */
    day(day: string): FieldValues
    /** Where a host names the day. */
    readonly dayField: 15 | 28
    /** What a host concludes from our totals: the field and its words. */
    readonly balance: readonly [field: 39 | 66, inBalance: string]
  }
}

const twelve = '0'.repeat(12)
const noFees = 'C00000000C00000000'
const fixed = (text: string, length: number) => text.slice(0, length).padEnd(length)

const versions: Readonly<Record<Dialect['version'], Version>> = {
  '1987': {
    digit: '0',
    reversalType: '400',
    localTime: (at, timeZone) => [
      [12, stamp(at, timeZone).slice(8, 14)],
      [13, stamp(at, timeZone).slice(4, 8)],
    ],
    category: 18,
    nameAndPlace: ({ name, city, state, country }) => fixed(name, 23) + fixed(city, 13) + fixed(state, 2) + fixed(country, 2),
    purpose: () => [],
    original: ({ type, stan, at, acquirerId }) => [
      [90, `${type}${stan}${transmitted(at)}${acquirerId.padStart(11, '0')}${'0'.repeat(11)}`],
    ],
    replacement: (authorized, remaining) => [
      [4, authorized],
      [95, `${remaining}${twelve}${noFees}`],
    ],
    reversal: reason => (reason === 'timedOut' ? [[39, '68']] : []),
    network: {
      type: '0800',
      answer: '0810',
      accepted: '00',
      refused: '96',
      times: at => [[7, transmitted(at)]],
      signOn: [[70, '001']],
      signOff: [[70, '002']],
      echo: [[70, '301']],
      keyChange: [[70, '101']],
      keyField: 48,
    },
    reconciliation: {
      day: day => [[15, day.slice(5).replace('-', '')]],
      dayField: 15,
      balance: [66, '1'],
    },
  },
  '1993': {
    digit: '1',
    reversalType: '420',
    localTime: (at, timeZone) => [[12, stamp(at, timeZone).slice(2, 14)]],
    category: 26,
    /** Name, street and city with backslashes between, then postcode, region and country. */
    nameAndPlace: ({ name, city, state, country }) =>
      `${[fixed(name, 23).trimEnd(), '', city].map(one => one.replaceAll('\\', ' ')).join('\\')}\\${' '.repeat(10)}${fixed(state, 3)}${threeLetters(country)}`,
    /** 100 and 200: original, its amount final; 201 and 202: after an authorization, of its amount or another. */
    purpose: (type, asEarlier) => [[24, type === '100' ? '100' : type === '220' ? (asEarlier ? '201' : '202') : '200']],
    original: ({ type, stan, at, acquirerId }, timeZone) => [
      [56, `${type}${stan}${stamp(at, timeZone).slice(2, 14)}${String(acquirerId.length).padStart(2, '0')}${acquirerId}`],
    ],
    replacement: (authorized, remaining) => [
      [4, remaining],
      [24, '401'],
      [25, '4000'],
      [30, `${authorized}${twelve}`],
    ],
    reversal: reason => [
      [24, '400'],
      [25, reason === 'timedOut' ? '4021' : '4000'],
    ],
    network: {
      type: '1804',
      answer: '1814',
      accepted: '800',
      refused: '909',
      times: (at, timeZone) => [
        [7, transmitted(at)],
        [12, stamp(at, timeZone).slice(2, 14)],
      ],
      signOn: [[24, '801']],
      signOff: [[24, '802']],
      echo: [[24, '831']],
      keyChange: [[24, '811']],
      keyField: 96,
    },
    reconciliation: {
      day: day => [
        [24, '500'],
        [28, day.slice(2).replaceAll('-', '')],
      ],
      dayField: 28,
      balance: [39, '500'],
    },
  },
}

export const versionOf = ({ version }: Pick<Dialect, 'version'>): Version => versions[version]

const clocks = new Map<string, Intl.DateTimeFormat>()

/** `YYYYMMDDhhmmss` in a time zone. */
export function stamp(at: number, timeZone = 'UTC'): string {
  if (timeZone === 'UTC') return new Date(at).toISOString().replace(/\D/g, '').slice(0, 14)
  // Swedish writes 2026-11-20 02:00:00.
  const clock = clocks.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  clocks.set(timeZone, clock)
  return clock.format(at).replace(/\D/g, '')
}

/** DE7: MMDDhhmmss in UTC. */
export const transmitted = (at: number): string => stamp(at).slice(4)

/** When a message was made that DE7 names: it has no year, and is taken for the last of its kind. NaN where it is none. */
export function madeAtOf(transmitted: string, now: number): number {
  const [month, day, hours, minutes, seconds] = (transmitted.match(/^\d{10}$/) ? transmitted.match(/../g)! : []).map(Number)
  const inYear = (year: number) => Date.UTC(year, month! - 1, day, hours, minutes, seconds)
  const year = new Date(now).getUTCFullYear()
  return inYear(year) > now + 86_400_000 ? inYear(year - 1) : inYear(year)
}

/** A day as DE15 or DE28 names it, MMDD or YYMMDD, as `yyyy-MM-dd`: the nearest to a time. Undefined where it is none. */
export function namedDay(digits: string, near: number): string | undefined {
  const [, year, month, day] = /^(\d\d)?(\d\d)(\d\d)$/.exec(digits) ?? []
  if (month === undefined) return undefined
  const thisYear = new Date(near).getUTCFullYear()
  const years = year === undefined ? [thisYear - 1, thisYear, thisYear + 1] : [2000 + Number(year)]
  const days = years.map(one => `${one}-${month}-${day}`).filter(isCalendarDay)
  return days.sort((a, b) => Math.abs(Date.parse(a) - near) - Math.abs(Date.parse(b) - near))[0]
}

/** DE37: last digit of the year, day of the year, hour, trace number. The other side treats it as opaque. */
export function retrievalReference(at: number, stan: string): string {
  const date = new Date(at)
  const day = Math.floor((at - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000) + 1
  return `${date.getUTCFullYear() % 10}${String(day).padStart(3, '0')}${String(date.getUTCHours()).padStart(2, '0')}${stan}`
}

/** The type of the answer to a request, without regard to repeats: 0100 and 0101 → 0110, 0420 and 0421 → 0430, 1804 → 1814. */
export const answerType = (type: string): string => `${type.slice(0, 2)}${Number(type[2]) + 1}${Number(type[3]) & ~1}`

/** A host asks too: reconciliation (5), administration (6) and the network (8); requests and advices, not answers. */
export const isAsked = ({ type }: { readonly type: string }): boolean => '568'.includes(type[1]!) && Number(type[2]) % 2 === 0
