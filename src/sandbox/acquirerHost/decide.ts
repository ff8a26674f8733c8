// What the host answers: a pure function of the message and the books, by tables of cards and amounts. docs/operating-acquirer.md shows the tables.

import type { Message } from '../../connectors/cards/iso8583/codec.ts'
import { readPrivateData, writePrivateData } from '../../connectors/cards/iso8583/privateData.ts'
import type { Kind, Ledger, LedgerEntry, LedgerLine } from './ledger.ts'
import { plainPrivateData } from './tongue.ts'

/** Card numbers that are declined, and with what. */
export const declinedCards: Readonly<Record<string, string>> = {
  '4000000000000002': '05',
  '4000000000009995': '51',
  '4000000000000069': '54',
  '4000000000000127': 'N7',
  '4000000000009987': '41',
  '4000000000009979': '43',
  '4000000000000119': '91',
}

/** An amount of 6660.NN is answered with response code NN (6660.00: 05); 6661.NN with NN as letters R0, R1, R3 and 1A for 00 to 03. */
const lettered = ['R0', 'R1', 'R3', '1A']
function declinedAmount(amount: string): string | undefined {
  const [, group, code] = /^0*(666[01])(\d\d)$/.exec(amount) ?? []
  if (group === '6660') return code === '00' ? '05' : code
  return group === '6661' ? lettered[Number(code)] : undefined
}

/** Amounts of 7770.01 to 7770.17 make the host misbehave, in this order. */
// biome-ignore format: as the document has them
export const faultNames = [
  'answerLost', 'requestLost', 'late', 'twice', 'lineCut', 'otherAmount', 'slow', 'partly',
  'silent', 'halfFrame', 'otherCurrency', 'bookedOther', 'signOff', 'noCode', 'again94', 'again96', 'again09',
] as const
export type Fault = (typeof faultNames)[number]
export function faultOfAmount(amount: string | undefined): Fault | undefined {
  const [, cents] = /^0*7770(\d\d)$/.exec(amount ?? '') ?? []
  return cents === undefined ? undefined : faultNames[Number(cents) - 1]
}

export type Decision = {
  /** 1987 response code. */
  readonly code: string
  readonly kind: Kind
  readonly original?: string
  readonly remaining?: string
  readonly more: readonly (readonly [number, string])[]
}

export type RequestFacts = {
  /** Without version digit and repeat: `100`, `420`. */
  readonly type: string
  readonly card: string
  readonly original?: string
  readonly remaining?: string
}

export function decide({ fields }: Message, read: RequestFacts, name: string, ledger: Ledger, number: number): Decision {
  const amount = fields.get(4) ?? ''
  const cardNumber = fields.get(2) ?? ''
  const original = read.original === undefined ? undefined : ledger.byName(read.original, read.card)
  const refers = { ...(read.original !== undefined && { original: read.original }) }
  const declined = (code: string): Decision => ({ code, kind: 'declined', ...refers, more: [] })

  if (read.type === '100' || (read.type === '200' && fields.get(3)?.startsWith('00'))) {
    // A reversal was here before its request: the request must not count any more.
    if (ledger.byName(name, read.card)?.line.kind === 'tombstone') return declined('12')
    const code = declinedCards[cardNumber] ?? declinedAmount(amount)
    const results = checks(fields)
    if (code !== undefined) return { ...declined(code), more: results }
    const authorization: [number, string] = [38, String(number % 1_000_000).padStart(6, '0')]
    return {
      code: /^0+$/.test(amount) ? '85' : '00', // an account check
      kind: read.type === '100' ? 'hold' : 'purchase',
      more: [authorization, ...results, networkTransaction(number)],
    }
  }
  if (read.type === '200') {
    if (read.original === undefined) return { code: '00', kind: 'credit', more: [] }
    if (!original) return declined('25')
    return { code: '00', kind: 'credit', ...refers, more: [] }
  }
  if (read.type === '220') {
    if (original?.line.kind !== 'hold') return declined('25')
    return BigInt(amount) <= original.held ? { code: '00', kind: 'capture', ...refers, more: [] } : declined('13')
  }
  // A reversal.
  if (!original || original.line.kind === 'declined')
    return read.type === '420' && !original ? { code: '25', kind: 'tombstone', ...refers, more: [] } : { ...declined('25') }
  if (read.type === '400' && original.reversed) return declined('12')
  return { code: '00', kind: 'reversal', ...refers, ...(read.remaining !== undefined && { remaining: read.remaining }), more: [] }
}

/** Results of the address check and the CVV check, in DE44. */
function checks(fields: ReadonlyMap<number, string>): [number, string][] {
  const asked = readPrivateData(fields, plainPrivateData())
  const [address, cvv] = [asked.get('address'), asked.get('cvv')]
  if (address === undefined && cvv === undefined) return []
  return [[44, `${address === undefined ? ' ' : addressResult(address)}${cvv === undefined ? 'P' : cvv === '999' ? 'N' : 'M'}`]]
}

/** By postcode: 00000 nothing matches, 11111 the street only, 22222 the postcode only, 33333 no check; all others match. */
const addressResult = (address: string): string =>
  ({ '00000': 'N', '11111': 'A', '22222': 'Z', '33333': 'R' })[address.split(' ')[0]!] ?? 'Y'

const networkTransaction = (number: number): [number, string] =>
  writePrivateData(new Map([['networkTransaction', String(number).padStart(15, '0')]]), plainPrivateData())[0]!

export type { LedgerEntry, LedgerLine }
