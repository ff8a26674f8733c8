// SLIPS_FILE: the accounts that slips are issued for, with banks and with store chains. docs/operating-slips.md describes the file.

import { isCalendarDay } from '../../contract/formats.ts'
import { readTaxId } from '../../contract/taxId.ts'
import {
  file,
  filled,
  filledListOf,
  line,
  listOf,
  type Output,
  object,
  oneOf,
  optional,
  parseJson,
  read,
  text,
  where,
  whole,
} from '../../platform/schema.ts'
import { sftpServer } from '../../platform/sftp/server.ts'
import type { Mode } from '../connector.ts'
import { type Bank, type BankAccount, banks } from './banks/banks.ts'
import type { Country } from './workingDays.ts'

const name = text(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 lower-case letters, digits and hyphens')
const brand = text(/^[A-Z][A-Z0-9_]{1,31}$/, 'must be capitals, digits and underscores')
const modes = filledListOf(oneOf(['internal', 'external', 'live']))
const digits = (least: number, most: number) =>
  text(new RegExp(`^\\d{${least},${most}}$`), `must be a text of ${least === most ? most : `${least} to ${most}`} digits`)
const holiday = where(
  text(/^(\d{4}-)?\d\d-\d\d$/, 'must be a day of every year, MM-DD, or of one, yyyy-MM-dd'),
  day => isCalendarDay(day.length === 5 ? `2024-${day}` : day),
  'must be a day that there is',
)
const taxId = where(filled, id => readTaxId(id) !== undefined, 'must be a CPF or a CNPJ with right check digits')

const timing = {
  /** Due so many days after the slip is issued, when the request does not say. */
  days: optional(whole(0, 365), 3),
  /** The latest day that a request may name, in days. */
  daysMost: optional(whole(1, 5000)),
  /** The account's own days without work, in place of those of its country. */
  holidays: optional(listOf(holiday)),
}

/** Where the other side lays down its files; those that were read go to the folder `done` below. */
const returnServer = object({
  ...sftpServer.entries,
  done: optional(filled, 'done'),
  everyMinutes: optional(whole(1, 1440), 10),
})

const bank = object({
  name,
  brand: optional(brand, 'BOLETO'),
  /** Its code in clearing. */
  bank: where(filled, code => banks.has(code), `must be one of ${[...banks.keys()].join(', ')}`),
  modes,
  agency: digits(1, 5),
  account: optional(digits(0, 12), ''),
  accountDigit: optional(text(/^[0-9A-Z]?$/, 'must be a digit, or a letter'), ''),
  wallet: optional(digits(0, 3), ''),
  agreement: optional(digits(0, 20), ''),
  /** Who is paid, as slips name it. */
  beneficiary: object({
    name: line,
    taxId,
    street: line,
    city: line,
    state: text(/^[A-Z]{2}$/, 'must be 2 capitals'),
    postcode: digits(8, 8),
  }),
  ...timing,
  /** So many days after the due date the bank ends a slip that nobody paid. */
  writeOffAfterDays: optional(whole(1, 365), 59),
  /** A QR code beside the barcode: the key that receives. */
  pix: optional(object({ key: line })),
  remittance: optional(object({ layout: oneOf(['cnab240', 'cnab400']), folder: filled })),
  returns: optional(object({ layout: oneOf(['cnab240', 'cnab400']), folder: optional(filled), sftp: optional(returnServer) })),
  /** Refunds of receipts, as orders to transfer in CNAB 240. The agreement is that for payments, where it is another. */
  transfers: optional(object({ folder: filled, agreement: optional(digits(1, 20)), everyMinutes: optional(whole(1, 1440), 60) })),
})

const chain = object({
  name,
  brand: optional(brand, 'OXXO'),
  /** As shoppers know it. */
  title: optional(line, 'OXXO'),
  modes,
  currency: optional(text(/^[A-Z]{3}$/, 'must be a currency code'), 'MXN'),
  prefix: digits(2, 2),
  /** What the chain calls us in its files. */
  agreement: optional(text(/^[\x20-\x7e]{0,20}$/, 'must be a text of at most 20 characters'), ''),
  /** Hours of its place against UTC. */
  utcOffset: optional(whole(-12, 14), -6),
  ...timing,
  /** Hundredths that the chain takes at a time. */
  amountFrom: optional(whole(1, 10 ** 9), 1000),
  amountTo: optional(whole(1, 10 ** 9), 1_000_000),
  returns: optional(object({ folder: optional(filled), sftp: optional(returnServer) })),
})

/** What an account lacks that its bank needs. */
function lacks(one: Output<typeof bank>): string[] {
  const { lengths, hasCnab400 } = banks.get(one.bank)!
  return [
    ...Object.entries(lengths)
      .filter(([field, allowed]) => !allowed.includes(one[field as keyof BankAccount].length))
      .map(([field, allowed]) => `${one.name}: ${field} must have ${allowed.join(' or ')} characters at bank ${one.bank}`),
    ...(['remittance', 'returns'] as const)
      .filter(files => one[files]?.layout === 'cnab400' && !hasCnab400(one))
      .map(files => `${one.name}: ${files}.layout must be cnab240 for this agreement at bank ${one.bank}`),
  ]
}

function mistakes({
  banks: given = [],
  chains = [],
}: {
  banks?: readonly Output<typeof bank>[]
  chains?: readonly Output<typeof chain>[]
}): string[] {
  const names = [...given, ...chains].map(one => one.name)
  return [
    ...names.filter((one, at) => names.indexOf(one) !== at).map(one => `holds ${one} twice`),
    ...chains
      .filter(({ brand }) => given.some(one => one.brand === brand))
      .map(({ brand }) => `${brand} is a brand of a bank and of a chain`),
    ...given.flatMap(lacks),
  ]
}

export const slipsSchema = where(
  file({ banks: optional(listOf(bank), []), chains: optional(listOf(chain), []) }),
  given => mistakes(given).length === 0,
  ({ input }) => mistakes(input).join('\n'),
)

type Timing = {
  readonly days: number
  readonly daysMost: number
  readonly country: Country
  /** `MM-DD` or `yyyy-MM-dd`, in place of the country's own. */
  readonly holidays?: readonly string[]
  readonly utcOffset: number
}

/** Amounts in hundredths. */
type Common = Timing & {
  readonly name: string
  readonly brand: string
  readonly modes: readonly Mode[]
  readonly currency: string
  readonly amountFrom: number
  readonly amountTo: number
}

export type BankSlipAccount = Common &
  Omit<Output<typeof bank>, 'bank' | keyof Common> & { readonly kind: 'bank'; readonly bank: Bank }
export type ChainSlipAccount = Common & Omit<Output<typeof chain>, keyof Common> & { readonly kind: 'chain' }
export type SlipAccount = BankSlipAccount | ChainSlipAccount

/** In the order of the file, banks first: the first of a brand and mode is the one that a channel without a choice of its own has. */
export type SlipAccounts = ReadonlyMap<string, SlipAccount>

/** Throws an OperatorError naming all that is wrong. */
export function readSlipsFile(text: string, source: string): SlipAccounts {
  const given = read(slipsSchema, parseJson(text, source), source)
  const accounts: SlipAccount[] = [
    ...given.banks.map((one): SlipAccount => {
      const bank = banks.get(one.bank)!
      const amounts = { amountFrom: 1, amountTo: bank.amountMost ?? 9_999_999_999 }
      return {
        ...one,
        kind: 'bank',
        bank,
        ...amounts,
        currency: 'BRL',
        country: 'BR',
        utcOffset: -3,
        daysMost: one.daysMost ?? 1825,
      }
    }),
    ...given.chains.map((one): SlipAccount => ({ ...one, kind: 'chain', country: 'MX', daysMost: one.daysMost ?? 30 })),
  ]
  return new Map(accounts.map(one => [one.name, one]))
}
