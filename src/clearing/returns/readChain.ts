// The daily file of a store chain, in a layout of our own: a header, a line for each payment at a till, a trailer with count and sum. Pure.

import { isStoreReference, readStoreNumber } from '../../connectors/slips/storeNumber.ts'
import { numberIn, type RecordLayout, readRecord } from '../cnab/layout.ts'
import type { FileLine } from '../import.ts'
import type { Steps } from '../steps.ts'
import { type ChainReturns, type Movement, movementKey, type ReturnFile } from './movement.ts'
import { BrokenReturn, type FixedRow, fixedRows, wholeRecord } from './rows.ts'

const width = 128

const header: RecordLayout = {
  width,
  fields: [
    ['type', 1, 1, 'x', 'H'],
    ['agreement', 2, 21, 'x'],
    ['madeOn', 22, 29, 'd8'],
    ['fileNumber', 30, 35, 'n'],
    ['currency', 36, 38, 'x'],
  ],
}

const payment: RecordLayout = {
  width,
  fields: [
    ['type', 1, 1, 'x', 'D'],
    ['sequence', 2, 7, 'n'],
    ['reference', 8, 19, 'n'],
    ['barcode', 20, 49, 'n'], // zeros when the reference was typed
    ['amount', 50, 58, 'v'],
    ['store', 59, 68, 'x'],
    ['till', 69, 72, 'x'],
    ['folio', 73, 82, 'x'],
    ['paidOn', 83, 90, 'd8'],
    ['paidAt', 91, 96, 'n'],
    ['authorization', 97, 108, 'x'],
  ],
}

const trailer: RecordLayout = {
  width,
  fields: [
    ['type', 1, 1, 'x', 'T'],
    ['count', 2, 7, 'n'],
    ['sum', 8, 19, 'v'],
  ],
}

/** Throws BrokenReturn. The whole file is looked through before its first line counts. */
export function* readChain(bytes: Buffer, account: ChainReturns): Steps<ReturnFile> {
  const [first] = fixedRows(bytes, width)
  const heading = wholeRecord(header, first!)
  if (account.agreement !== '' && heading.agreement !== account.agreement) throw new BrokenReturn('it is of another account')
  if (heading.currency !== account.currency) throw new BrokenReturn(`it is in ${heading.currency}, not in ${account.currency}`)
  let length = 0
  for (const _ of paymentsOf(bytes)) {
    length++
    yield
  }
  function* lines(): Generator<FileLine<Movement>> {
    for (const row of paymentsOf(bytes)) yield lineOf(account, row)
  }
  return {
    fileNumber: Number(heading.fileNumber),
    madeOn: heading.madeOn!,
    lines: { length, [Symbol.iterator]: lines },
  }
}

function* paymentsOf(bytes: Buffer): Generator<FixedRow> {
  let [count, sum, isEnded] = [0, 0n, false]
  for (const row of fixedRows(bytes, width)) {
    const { at, text } = row
    if (at === 1) continue
    if (isEnded) throw new BrokenReturn(`line ${at} stands behind the end`)
    if (text[0] === 'D') {
      if (numberIn(text.slice(1, 7)) !== ++count)
        throw new BrokenReturn(`line ${at} is out of order: lines are missing, or stand there twice`)
      sum += BigInt(numberIn(text.slice(49, 58)) || 0)
      yield row
      continue
    }
    const end = wholeRecord(trailer, row)
    if (Number(end.count) !== count) throw new BrokenReturn(`it has ${count} payments, its end says ${Number(end.count)}`)
    if (BigInt(end.sum!) !== sum) throw new BrokenReturn(`its payments are ${sum} together, its end says ${end.sum}`)
    isEnded = true
  }
  if (!isEnded) throw new BrokenReturn('its end is missing')
}

function lineOf(account: ChainReturns, { at, text }: FixedRow): FileLine<Movement> {
  const values = readRecord(payment, text)
  if (typeof values === 'string') return { at, malformed: values }
  const { reference, barcode, amount, store, till, folio, paidOn, paidAt, authorization } = values as Record<string, string>
  const printed = /^0*$/.test(barcode!) ? undefined : readStoreNumber(barcode!)
  if (!/^0*$/.test(barcode!) && (printed?.reference !== reference || printed?.prefix !== account.prefix))
    return { at, malformed: 'its barcode is none of ours, or is of another reference' }
  if (paidOn === '' || Number(amount) === 0 || folio === '')
    return { at, malformed: 'it is money without an amount, a day or a folio' }
  const line: Movement = {
    number: isStoreReference(reference!) ? reference : undefined,
    theirs: reference!,
    meaning: 'paid',
    occurrence: '',
    occurredOn: paidOn!,
    creditedOn: '',
    paid: Number(amount),
    agreed: 0,
    receiver: `${store} ${till} ${folio}`,
    shown: { barcode: barcode!, paidAt: paidAt!, authorization: authorization! },
  }
  return { at, subject: `${account.name} ${movementKey(line)}`, line }
}
