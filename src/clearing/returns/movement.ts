// What a bank or a store chain says that became of a slip, whichever file says it. Pure.

import type { Bank, BankAccount } from '../../connectors/slips/banks/banks.ts'
import type { ColumnValues } from '../cnab/layout.ts'
import type { FileLine } from '../import.ts'
import { isMoney, meaningOf, type OccurrenceMeaning } from './occurrences.ts'

export type BankReturns = BankAccount & {
  readonly kind: 'bank'
  readonly name: string
  readonly currency: string
  readonly bank: Bank
  readonly layout: 'cnab240' | 'cnab400'
}

export type ChainReturns = {
  readonly kind: 'chain'
  readonly name: string
  readonly currency: string
  readonly prefix: string
  /** What the chain calls us; empty: anything. */
  readonly agreement: string
}

/** An account of SLIPS_FILE, as its files know it. */
export type ReturnsAccount = BankReturns | ChainReturns

export type Movement = {
  /** The digits of the slip's number that are ours; undefined when the number is not of this account, or its check digit is wrong. */
  readonly number: string | undefined
  /** The number as the file has it. */
  readonly theirs: string
  readonly meaning: OccurrenceMeaning
  /** The code of the file; empty where files have none. */
  readonly occurrence: string
  /** `yyyy-MM-dd`. */
  readonly occurredOn: string
  /** '' where it is not told. */
  readonly creditedOn: string
  /** What the shopper paid, hundredths; 0 where no money moved. */
  readonly paid: number
  /** By how much that was agreed to differ from the amount of the slip: interest, less discount and rebate. */
  readonly agreed: number
  /** Who took the money: bank and agency, or store, till and folio. */
  readonly receiver: string
  /** What else an operator may want to see. */
  readonly shown: Readonly<Record<string, string>>
}

/** Tells a movement apart from all others of its account. That it is told when it is processed and again when it is credited makes no difference. */
export const movementKey = ({ theirs, meaning, occurrence, occurredOn, paid, receiver }: Movement): string =>
  [theirs, isMoney(meaning) ? meaning : occurrence, occurredOn, paid, receiver].join(' ')

/** A file that was read: its heading, and its lines, which are read anew each time that somebody goes through them. */
export type ReturnFile = {
  /** Counts the files of an account; 0 where files are not counted. */
  readonly fileNumber: number
  /** `yyyy-MM-dd`. */
  readonly madeOn: string
  readonly lines: Iterable<FileLine<Movement>> & { readonly length: number }
}

const shownFields = [
  'document',
  'own',
  'dueOn',
  'face',
  'fee',
  'net',
  'interest',
  'discount',
  'rebate',
  'reasons',
  'channel',
  'stage',
]

/** A line of a bank. `number`: as `Bank.inFile` says. `paid` is asked for where the code means money. */
export function movementOf(
  account: BankReturns,
  at: number,
  values: ColumnValues,
  number: string,
  paid: () => number | { readonly broken: string },
): FileLine<Movement> {
  const { occurrence, occurredOn } = values as { occurrence: string; occurredOn: string }
  const meaning = meaningOf(account.layout, account.bank.code, occurrence)
  if (!meaning) return { at, malformed: `nobody has said what the code ${occurrence} means: ask the bank` }
  const amount = isMoney(meaning) ? paid() : 0
  if (typeof amount === 'object') return { at, malformed: amount.broken }
  if (isMoney(meaning) && (amount === 0 || occurredOn === '')) return { at, malformed: 'it is money without an amount or a day' }
  const line: Movement = {
    number: oursOf(account, number),
    theirs: number,
    meaning,
    occurrence,
    occurredOn: occurredOn ?? '',
    creditedOn: values.creditedOn ?? '',
    paid: amount,
    agreed: Number(values.interest) - Number(values.discount) - Number(values.rebate),
    receiver: `${values.payingBank} ${values.payingAgency}`.trim(),
    shown: Object.fromEntries(shownFields.flatMap(name => (values[name] ? [[name, values[name]]] : []))),
  }
  return { at, subject: `${account.name} ${movementKey(line)}`, line }
}

function oursOf(account: BankReturns, text: string): string | undefined {
  const { before, withDigit } = account.bank.inFile(account)
  const number = text.slice(before.length, before.length + account.bank.numberLength(account))
  const whole = before + number + (withDigit ? account.bank.numberDigit(account, number) : '')
  return /^\d+$/.test(number) && text === whole ? number : undefined
}

/** Whether a header names the account: by all that both have, and at least by its number or its agreement. */
export function isOurs(
  account: BankReturns,
  header: ColumnValues,
  fields: readonly ('agency' | 'account' | 'agreement')[],
): boolean {
  const named = fields.filter(field => account[field] !== '')
  return named.some(field => field !== 'agency') && named.every(field => sameDigits(header[field]!, account[field]))
}

const sameDigits = (theirs: string, ours: string): boolean =>
  /^\d+$/.test(theirs) && theirs.replace(/^0+/, '') === ours.replace(/^0+/, '')
