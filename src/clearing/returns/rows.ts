// The rows of a file of fixed columns, as they are in its bytes: what is short is filled up, what is long is refused. Pure.

import { type ColumnValues, type RecordLayout, readRecord } from '../cnab/layout.ts'

/** Of the file nothing counts: it is cut, changed on its way, or another's. */
export class BrokenReturn extends Error {}

export type FixedRow = { readonly at: number; readonly text: string }

const [lineFeed, carriageReturn, blank, endOfFile, none] = [10, 13, 32, 26, 0]
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * What one file may have: 138 000 titles of CNAB 240, 166 000 of CNAB 400. A lot of CNAB 240 counts 99 999 records, and a bank sends more in several files; four
 * times as much would be a gigabyte of memory while it is packed, sealed and stored.
 */
export const returnBytesMost = 64 * 2 ** 20
export const tooLong = (bytes: number): string =>
  `it has ${bytes} bytes, more than ${returnBytesMost}: ask for it in several files`

/** Some host systems fill up with NUL. */
const isBlank = (byte: number | undefined): boolean => byte === blank || byte === none

/** Bytes above 127 are letters in one code page or another; what moves a cursor is no text in any. */
const control = /[^ -~\x80-\xff]/

/** Rows of a width, one at a time, so that a long file costs no more than its bytes. Blanks at their ends may have been cut on the way. */
export function* fixedRows(bytes: Buffer, width: number): Generator<FixedRow> {
  if (bytes.subarray(0, 3).equals(byteOrderMark))
    throw new BrokenReturn('it begins with a byte-order mark: a program has written it anew, which moves columns')
  let at = 0
  const end = endOfRows(bytes)
  if (end === 0) throw new BrokenReturn('it is empty')
  for (let from = 0; from < end; ) {
    const next = bytes.indexOf(lineFeed, from)
    const stop = next < 0 ? end : Math.min(next, end)
    at++
    // Each row is filled up to its width: many that hold nothing would be more than memory holds.
    if (at > returnBytesMost / width) throw new BrokenReturn(`it has more lines than a file of ${returnBytesMost} bytes`)
    if (stop - from > 2 * width) throw new BrokenReturn(`line ${at} is ${stop - from} columns wide, not ${width}`)
    let last = stop
    while (last > from && bytes[last - 1] === carriageReturn) last--
    while (last > from + width && isBlank(bytes[last - 1])) last--
    if (last === from) throw new BrokenReturn(`line ${at} is empty`)
    if (last - from > width) throw new BrokenReturn(`line ${at} is ${last - from} columns wide, not ${width}`)
    const text = bytes.toString('latin1', from, last).replaceAll('\0', ' ').padEnd(width)
    const wrong = text.search(control)
    if (wrong >= 0)
      throw new BrokenReturn(`line ${at} has byte ${text.charCodeAt(wrong)} in column ${wrong + 1}, which is no text`)
    yield { at, text }
    from = stop + 1
  }
}

/** More that holds nothing is no end of a file, and would be looked through while everybody else waits. */
const endBytesMost = 64 * 1024

/** Behind the last row there may be lines that hold nothing, and the mark by which old systems end a text. */
function endOfRows(bytes: Buffer): number {
  const least = Math.max(0, bytes.length - endBytesMost)
  let [end, isMarked] = [bytes.length, false]
  for (; end > least; end--) {
    const byte = bytes[end - 1]!
    if (byte === endOfFile && !isMarked) isMarked = true
    else if (byte !== lineFeed && byte !== carriageReturn && !isBlank(byte)) break
  }
  return end
}

/** A record without which the file is none. */
export function wholeRecord(layout: RecordLayout, { at, text }: FixedRow): ColumnValues {
  const values = readRecord(layout, text)
  if (typeof values === 'string') throw new BrokenReturn(`line ${at}: ${values}`)
  return values
}
