// The rows of a file of fixed columns, as they are in its bytes: what is short is filled up, what is long is refused. Pure.

import { type ColumnValues, type RecordLayout, readRecord } from '../cnab/layout.ts'

/** Of the file nothing counts: it is cut, changed on its way, or another's. */
export class BrokenReturn extends Error {}

export type FixedRow = { readonly at: number; readonly text: string }

const [lineFeed, carriageReturn, blank, endOfFile] = [10, 13, 32, 26]
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** CodeRows of a width, one at a time, so that a long file costs no more than its bytes. Blanks at their ends may have been cut on the way. */
export function* fixedRows(bytes: Buffer, width: number): Generator<FixedRow> {
  if (bytes.subarray(0, 3).equals(byteOrderMark))
    throw new BrokenReturn('it begins with a byte-order mark: a program has written it anew, which moves columns')
  let [end, at] = [bytes.length, 0]
  while (end > 0 && [lineFeed, carriageReturn, endOfFile].includes(bytes[end - 1]!)) end--
  if (end === 0) throw new BrokenReturn('it is empty')
  for (let from = 0; from < end; ) {
    const next = bytes.indexOf(lineFeed, from)
    const stop = next < 0 ? end : Math.min(next, end)
    let last = stop
    while (last > from && bytes[last - 1] === carriageReturn) last--
    while (last > from + width && bytes[last - 1] === blank) last--
    at++
    if (last - from > width) throw new BrokenReturn(`line ${at} is ${last - from} columns wide, not ${width}`)
    yield { at, text: bytes.toString('latin1', from, last).padEnd(width) }
    from = stop + 1
  }
}

/** A record without which the file is none. */
export function wholeRecord(layout: RecordLayout, { at, text }: FixedRow): ColumnValues {
  const values = readRecord(layout, text)
  if (typeof values === 'string') throw new BrokenReturn(`line ${at}: ${values}`)
  return values
}
