// Where the editions of 1987 and 1993 differ in what is said, one table: type digit, times, entry mode, original data, reasons, network messages.

import type { Dialect } from './dialects.ts'

type FieldValues = readonly (readonly [field: number, value: string])[]

/** Identifies an earlier message: type, trace number, when it was made (milliseconds) and the acquirer's id. */
export type Original = { readonly type: string; readonly stan: string; readonly at: number; readonly acquirerId: string }

export type Version = {
  /** First digit of every type indicator. */
  readonly digit: '0' | '1'
  localTime(at: number): FieldValues
  readonly entered: string
  readonly onFile: string
  readonly electronicCommerce: FieldValues
  original(original: Original): FieldValues
  /** Amounts in minor units: what was authorized and what of it shall stand. */
  replacement(authorized: string, remaining: string): FieldValues
  readonly timedOut: FieldValues
  readonly network: {
    readonly type: string
    readonly answer: string
    signOn: FieldValues
    signOff: FieldValues
    echo: FieldValues
  }
}

const twelve = '0'.repeat(12)
const noFees = 'C00000000C00000000'

const versions: Readonly<Record<Dialect['version'], Version>> = {
  '1987': {
    digit: '0',
    localTime: at => [
      [12, stamp(at).slice(8, 14)],
      [13, stamp(at).slice(4, 8)],
    ],
    entered: '010',
    onFile: '100',
    electronicCommerce: [[25, '59']],
    original: ({ type, stan, at, acquirerId }) => [
      [90, `${type}${stan}${transmitted(at)}${acquirerId.padStart(11, '0')}${'0'.repeat(11)}`],
    ],
    replacement: (authorized, remaining) => [
      [4, authorized],
      [95, `${remaining}${twelve}${noFees}`],
    ],
    timedOut: [[39, '68']],
    network: { type: '0800', answer: '0810', signOn: [[70, '001']], signOff: [[70, '002']], echo: [[70, '301']] },
  },
  '1993': {
    digit: '1',
    localTime: at => [[12, stamp(at).slice(2, 14)]],
    entered: '100050100110',
    onFile: '100040A00110',
    electronicCommerce: [],
    original: ({ type, stan, at, acquirerId }) => [
      [56, `${type}${stan}${stamp(at).slice(2, 14)}${String(acquirerId.length).padStart(2, '0')}${acquirerId}`],
    ],
    replacement: (authorized, remaining) => [
      [4, remaining],
      [30, `${authorized}${twelve}`],
    ],
    timedOut: [[25, '4021']],
    network: { type: '1804', answer: '1814', signOn: [[24, '801']], signOff: [[24, '802']], echo: [[24, '831']] },
  },
}

export const versionOf = ({ version }: Dialect): Version => versions[version]

/** `YYYYMMDDhhmmss` in UTC. */
const stamp = (at: number): string => new Date(at).toISOString().replace(/\D/g, '').slice(0, 14)

/** DE7: MMDDhhmmss in UTC. */
export const transmitted = (at: number): string => stamp(at).slice(4)

/** When a message was made that DE7 names: it has no year, and is taken for the last of its kind. NaN where it is none. */
export function madeAtOf(transmitted: string, now: number): number {
  const [month, day, hours, minutes, seconds] = (transmitted.match(/^\d{10}$/) ? transmitted.match(/../g)! : []).map(Number)
  const inYear = (year: number) => Date.UTC(year, month! - 1, day, hours, minutes, seconds)
  const year = new Date(now).getUTCFullYear()
  return inYear(year) > now + 86_400_000 ? inYear(year - 1) : inYear(year)
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
