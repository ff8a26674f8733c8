// Concurrent rows ride together: while one statement commits, the next batch gathers. Nobody waits for a timer,
// and each row is confirmed only after its own commit.

import type { Clock } from '../clock.ts'
import { isUnavailable, WriteTimeout } from './errors.ts'

export type GroupCommit<Row, Outcome> = (row: Row) => Promise<Outcome>

export const batchMax = 128
/** Of rows that are long a batch holds fewer: nobody waits for as many as that of somebody else. */
export const batchBytesMost = 1024 * 1024

/** How many rows a batch holds, and for how many seconds the first of them has waited for its turn. */
export type BatchCount = (rows: number, waitedSeconds: number) => void

/**
 * `write` stores a batch and returns one outcome per row, in order; it may be called again with rows that were stored already, because what became
 * of a write that was cut off is not known. A batch never holds two rows of one key: the second waits for the next one, and finds what the first
 * has done. Sorted by key, so that two processes lock in the same order.
 * While the database is slow or away the whole batch is tried again, until its rows have waited for `patienceSeconds`. When a batch is refused, its
 * rows are tried one by one, so that one bad row fails alone. Owners of rows take turns in a batch, and those come first in it of whom none was in the last one.
 */
export function groupCommit<Row, Outcome>(options: {
  write(rows: readonly Row[]): Promise<readonly Outcome[]>
  key(row: Row): string
  /** Whose it is; without it all are of one. */
  owner?(row: Row): string
  /** Of its texts; without it none is long. */
  bytes?(row: Row): number
  readonly patienceSeconds: number
  readonly clock: Clock
  readonly count?: BatchCount
}): GroupCommit<Row, Outcome> {
  type Waiting = {
    readonly row: Row
    readonly key: string
    readonly owner: string
    readonly bytes: number
    readonly until: number
    done(outcome: Outcome): void
    failed(error: unknown): void
  }
  const time = () => options.clock.elapsed()
  let waiting: Waiting[] = []
  let writing = false
  /** Whose rows were in the last batch. */
  let served = new Set<string>()

  async function drain(): Promise<void> {
    while (waiting.length > 0) await attempt(nextBatch())
    writing = false
  }

  /** What must not happen fails whoever waits, and not the process. */
  function broken(error: unknown): void {
    for (const { failed } of waiting.splice(0)) failed(error)
    writing = false
  }

  /** The oldest rows of each owner in turn, one of each key. */
  function nextBatch(): Waiting[] {
    const batch = new Map<string, Waiting>()
    let bytes = 0
    for (const one of inTurns()) {
      if (batch.size === batchMax) break
      if (batch.has(one.key) || (batch.size > 0 && bytes + one.bytes > batchBytesMost)) continue
      batch.set(one.key, one)
      bytes += one.bytes
    }
    options.count?.(batch.size, options.patienceSeconds - (waiting[0]!.until - time()) / 1000)
    waiting = waiting.filter(one => batch.get(one.key) !== one)
    const rows = [...batch.values()]
    served = new Set(rows.map(({ owner }) => owner))
    return rows.sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  function* inTurns(): Generator<Waiting> {
    const lines = new Map<string, Waiting[]>()
    for (const one of waiting) {
      const line = lines.get(one.owner)
      if (line) line.push(one)
      else lines.set(one.owner, [one])
    }
    const owners = [...lines.keys()]
    const inOrder = [...owners.filter(owner => !served.has(owner)), ...owners.filter(owner => served.has(owner))]
    for (let round = 0, left = true; left; round++) {
      left = false
      for (const owner of inOrder) {
        const one = lines.get(owner)![round]
        if (!one) continue
        left = true
        yield one
      }
    }
  }

  async function attempt(given: readonly Waiting[]): Promise<void> {
    for (let pause = 10; ; pause = Math.min(pause * 2, 500)) {
      const batch = given.filter(({ until }) => until > time())
      for (const { until, failed } of given) if (until <= time()) failed(new WriteTimeout('the database did not take it in time'))
      if (batch.length === 0) return
      given = batch
      try {
        const outcomes = await options.write(batch.map(({ row }) => row))
        batch.forEach(({ done }, at) => {
          done(outcomes[at]!)
        })
        return
      } catch (error) {
        if (isUnavailable(error)) await options.clock.sleep(pause)
        else if (batch.length === 1) return batch[0]!.failed(error)
        else {
          for (const one of batch) await attempt([one])
          return
        }
      }
    }
  }

  return row =>
    new Promise((done, failed) => {
      waiting.push({
        row,
        key: options.key(row),
        owner: options.owner?.(row) ?? '',
        bytes: options.bytes?.(row) ?? 0,
        until: time() + options.patienceSeconds * 1000,
        done,
        failed,
      })
      // The batch closes after the current turn of the event loop, so that requests read together commit together.
      if (!writing) {
        writing = true
        setImmediate(() => drain().catch(broken))
      }
    })
}

/** Statement sizes are few, so that each is prepared once: 1, 2, 3, 4, 6, 8, 12 … 96, 128. No more than a third of one is empty. */
export function quantised(count: number): number {
  const power = 2 ** Math.ceil(Math.log2(Math.max(count, 1)))
  return count <= power * 0.75 && power >= 4 ? power * 0.75 : power
}

/** Remembers the text of each size: it is long, and the same text again is also compared fast. */
export function perSize(text: (size: number) => string): (size: number) => string {
  const texts = new Map<number, string>()
  return size => {
    const known = texts.get(size) ?? text(size)
    texts.set(size, known)
    return known
  }
}

/** `($1::uuid,$2::text),($3,$4)` for a number of rows; the casts of the first row type the columns. */
export function valuesList(casts: readonly string[], rows: number): string {
  const width = casts.length
  return Array.from(
    { length: rows },
    (_, row) => `(${casts.map((cast, column) => `$${row * width + column + 1}${row === 0 ? `::${cast}` : ''}`).join(',')})`,
  ).join(',')
}

/** Statements of a size take values for all of it; rows that are missing are nulls, which no statement takes for one. */
export const padded = (values: unknown[], length: number): unknown[] => {
  while (values.length < length) values.push(null)
  return values
}

/** Of the texts among the values of a row. */
export const textBytes = (values: readonly unknown[]): number =>
  values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
