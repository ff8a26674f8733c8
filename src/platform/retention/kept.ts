// What is kept for a time. Every room gives its kinds; `start` puts them into one table, which the worker, the setting, the figures, the command and the
// reference page read.

import type pg from 'pg'
import { nearest } from '../../contract/nearest.ts'

export type Kept = {
  /** Its name in RETENTION_DAYS, figures and the command. */
  readonly kind: string
  /** What is kept, in the plural. */
  readonly what: string
  /** Why for so long, and what is lost with it. */
  readonly why: string
  /** From `since` on, in real time. 0: `since` is the end itself. */
  readonly days: number
  /** What the setting may say; absent where the product promises the days as they are. */
  readonly range?: readonly [least: number, most: number]
  readonly table: string
  /** The columns of its primary key. */
  readonly key: string
  /** A time, a day or, with `ids`, an id that begins with its time, in SQL. */
  readonly since: string
  readonly ids?: true
  /** Which rows end at all, in SQL; absent: all. */
  readonly where?: string
  /** The assignment that forgets a part of a row, in SQL; absent: the row goes. */
  readonly forgets?: string
  /** A step in other words: `$1` is the moment, `$2` the most rows. It touches as many rows as it returns. */
  readonly statement?: string
  /** All at once, where a statement is not enough. Returns how many rows. */
  erase?(pool: pg.Pool, before: number): Promise<number>
  /** 60 when absent. */
  readonly everyMinutes?: number
}

const form = /^(\w+)=(\d{1,5})$/

/** `deliveries=365,requestRecords=30` → the kinds with these days. `fail` is told of each mistake. */
export function withDays(kinds: readonly Kept[], text: string, fail: (rule: string) => unknown): readonly Kept[] {
  const days = new Map<string, number>()
  const settable = new Map(kinds.flatMap(({ kind, range }) => (range ? [[kind, range] as const] : [])))
  for (const part of text.split(/[\s,]+/).filter(one => one !== '')) {
    const [, kind, number] = form.exec(part) ?? []
    const [least, most] = settable.get(kind ?? '') ?? []
    if (kind === undefined)
      fail(`must be kinds and days, for example deliveries=365,requestRecords=30, not ${JSON.stringify(part)}`)
    else if (least === undefined || most === undefined) fail(unknownKind(kinds, kind, [...settable.keys()]))
    else if (Number(number) < least || Number(number) > most)
      fail(`must give ${kind} ${least} to ${most} days, not ${number}: ${reasonOf(kinds.find(one => one.kind === kind)!)}`)
    else days.set(kind, Number(number))
  }
  return kinds.map(one => ({ ...one, days: days.get(one.kind) ?? one.days }))
}

/** Without the full stop that whoever tells it sets. */
const reasonOf = ({ why }: Kept): string => why.replace(/\.$/, '')

function unknownKind(kinds: readonly Kept[], kind: string, settable: readonly string[]): string {
  const fixed = kinds.find(one => one.kind === kind)
  if (fixed) return `cannot change ${kind}: ${reasonOf(fixed)}`
  const near = nearest(kind, settable)
  return `names ${kind}, which is none of ${settable.join(', ')}${near === undefined ? '' : `: did you mean ${near}?`}`
}
