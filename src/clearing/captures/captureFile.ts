// A capture file as text, and the acknowledgement of one. Pure.

import { type CollectedLine, collectedColumns } from '../../connectors/cards/iso8583/collected.ts'
import type { Dialect } from '../../connectors/cards/iso8583/dialects.ts'
import { writtenBeginning } from '../../contract/cardNumbers.ts'
import { rowsOf, tooManyRows } from '../rows.ts'
import type { Steps } from '../steps.ts'

export type CaptureRules = Dialect['captures']

/** `CAPTURES, acquirer, number, day`; a line for each; `TOTAL, count, sum` in minor units. */
export function captureText(
  acquirerId: string,
  sequence: number,
  day: string,
  lines: readonly CollectedLine[],
  { separator }: CaptureRules,
): string {
  const sum = lines.reduce((total, { amount }) => total + BigInt(amount), 0n)
  const rows = [
    ['CAPTURES', acquirerId, sequence, day],
    ...lines.map((line, at) => ['CAPTURE', at + 1, ...collectedColumns.map(name => line[name])]),
    ['TOTAL', lines.length, sum],
  ]
  return rows.map(row => `${row.map(value => cell(String(value), separator)).join(separator)}\r\n`).join('')
}

/** What a host or an operator has put into a number shifts no column. */
const cell = (value: string, separator: string): string =>
  /["\r\n]/.test(value) || value.includes(separator) ? `"${value.replaceAll('"', '""')}"` : value

export const captureName = ({ fileName }: CaptureRules, acquirer: string, sequence: number, day: string): string =>
  fileName
    .replaceAll('{acquirer}', acquirer)
    .replaceAll('{date}', day)
    .replaceAll('{sequence}', String(sequence).padStart(6, '0'))

/** What an acquirer says of a line of a file. */
export type AcknowledgedLine = {
  /** The line of the acknowledgement, from 1. */
  readonly at: number
  /** The place in the capture file, from 1. */
  readonly line: number
  readonly trace: string
  readonly reference: string
  readonly outcome: 'accepted' | 'rejected'
  readonly reason: string
}

export type Acknowledgement = { readonly sequence: number; readonly lines: readonly AcknowledgedLine[] }

/** `ACKNOWLEDGEMENT, acquirer, number`; `ACCEPTED` or `REJECTED`, line, DE11, DE37, reason; `TOTAL, count`. Nothing of what is not whole counts. */
export function* readAcknowledgement(
  text: string,
  acquirerId: string,
  { separator }: CaptureRules,
): Steps<Acknowledgement | { readonly broken: string }> {
  const rows = rowsOf(text)
  if (!rows) return { broken: tooManyRows }
  const cellsOf = (row = '') => row.split(separator).map(cell => cell.trim())
  const [mark, acquirer = '', number = ''] = cellsOf(rows[0])
  if (mark !== 'ACKNOWLEDGEMENT' || !/^[1-9]\d{0,8}$/.test(number))
    return { broken: 'line 1 is no heading of an acknowledgement' }
  if (!/^\d{1,11}$/.test(acquirer) || BigInt(acquirer) !== BigInt(acquirerId))
    return { broken: `it is of the acquirer ${acquirer}, not of ${acquirerId}` }
  const [end, count] = cellsOf(rows.at(-1))
  if (end !== 'TOTAL' || count !== String(rows.length - 2))
    return { broken: 'its end is missing, or names another number of lines' }
  const lines: AcknowledgedLine[] = []
  const first = new Map<number, number>()
  for (const row of rows.slice(1, -1)) {
    yield
    const read = readLine(cellsOf(row), lines.length + 2)
    if ('broken' in read) return read
    const { at, line } = read
    if (first.has(line)) return { broken: `lines ${first.get(line)} and ${at} speak of the same capture` }
    first.set(line, at)
    lines.push(read)
  }
  return { sequence: Number(number), lines }
}

const outcomes: ReadonlyMap<string, AcknowledgedLine['outcome']> = new Map([
  ['ACCEPTED', 'accepted'],
  ['REJECTED', 'rejected'],
])

function readLine(
  [word = '', line = '', trace = '', reference = '', reason = '']: readonly string[],
  at: number,
): AcknowledgedLine | { readonly broken: string } {
  const outcome = outcomes.get(word)
  if (!outcome) return { broken: `line ${at} begins with neither ACCEPTED nor REJECTED` }
  if (!/^[1-9]\d{0,8}$/.test(line) || !/^\d{6}$/.test(trace) || !/^[0-9A-Za-z]{1,12}$/.test(reference))
    return { broken: `line ${at} names no line, trace and reference` }
  if (/\p{C}/u.test(reason)) return { broken: `line ${at} has a reason with a character that cannot be shown` }
  return { at, line: Number(line), trace, reference, outcome, reason: writtenBeginning(reason, 100).toWellFormed() }
}
