// What a slip needs of a request: who pays, until when. Pure.

import { isCalendarDay } from '../../contract/formats.ts'
import type { ParameterError } from '../../contract/formCheck.ts'
import { type Values, valueNamed } from '../../contract/parameters/table.ts'
import { readTaxId, type TaxId } from '../../contract/taxId.ts'
import { parseUrl } from '../../contract/url.ts'
import type { OperationRequest } from '../connector.ts'
import type { MethodQuestions } from '../registry.ts'
import type { SlipAccount } from './accounts.ts'
import { isPlain } from './text.ts'
import { dateOf, plusDays, plusWorkingDays } from './workingDays.ts'

/** As the request names them, nothing folded or cut. */
export type Payer = {
  readonly name: string
  readonly taxId?: TaxId
  readonly street: string
  readonly city: string
  readonly state: string
  readonly postcode: string
}

const joined = (...words: readonly (string | undefined)[]): string =>
  words.filter(word => word !== undefined && word !== '').join(' ')

export function payerOf(values: Values): Payer {
  const id = taxIdOf(values)
  const value = (name: string) => valueNamed(values, name)
  return {
    name: joined(value('customer.givenName'), value('customer.middleName'), value('customer.surname')),
    ...(id && { taxId: id }),
    street: joined(
      value('billing.street1'),
      value('billing.houseNumber1'),
      value('billing.houseNumber2'),
      value('billing.street2'),
    ),
    city: value('billing.city') ?? '',
    state: value('billing.state') ?? '',
    postcode: (value('billing.postcode') ?? '').replace('-', ''),
  }
}

const cpf = 'customParameters[CUSTOM_CPF_number]'
const document = 'customer.identificationDocId'

function taxIdOf(values: Values): TaxId | undefined {
  const isTaxId = values.get('customer.identificationDocType') === 'TAXSTATEMENT'
  const text = nonBlank(values, cpf) ?? (isTaxId ? values.get(document) : undefined)
  return text === undefined ? undefined : readTaxId(text)
}

/** An empty custom parameter counts as none. */
const nonBlank = (values: Values, name: string): string | undefined => valueNamed(values, name) || undefined

const dueNames = ['customParameters[CUSTOM_due_date]', 'customParameters[due_date]']

/** The day in the account's place. */
export const todayAt = ({ utcOffset }: Pick<SlipAccount, 'utcOffset'>, now: number): string => dateOf(now + utcOffset * 3_600_000)

/** Day, month and year with slashes, or in eight digits, which a time of day may follow. Undefined: there is no such day. */
function readDay(text: string): string | undefined {
  const parts = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(text) ?? /^(\d\d)(\d\d)(\d{4})( \d{6})?$/.exec(text)
  if (!parts) return undefined
  const day = `${parts[3]}-${parts[2]!.padStart(2, '0')}-${parts[1]!.padStart(2, '0')}`
  return isCalendarDay(day) ? day : undefined
}

/** Absent in the request: so many days as the account says; in shops working days. */
export function dueOn(values: Values, account: SlipAccount, now: number): string {
  const today = todayAt(account, now)
  const given = dueNames.map(name => nonBlank(values, name)).find(text => text !== undefined)
  if (given !== undefined) return readDay(given)!
  const { days, country, holidays } = account
  return account.kind === 'bank' ? plusDays(today, days) : plusWorkingDays(today, days, country, holidays)
}

/** In the order of a form. */
const ofShoppers = [
  'customer.givenName',
  'customer.surname',
  'customer.email',
  document,
  'billing.street1',
  'billing.city',
  'billing.state',
  'billing.postcode',
]

/** What a shopper is asked for whose merchant has not said it. */
export function questionsTo(values: Values, { kind, country }: SlipAccount): MethodQuestions {
  const isBank = kind === 'bank'
  const isKnown = (name: string) =>
    valueNamed(values, name) !== undefined || (name === document && nonBlank(values, cpf) !== undefined)
  const fields = ofShoppers.filter(name => (isBank || ofChains.includes(name) || listed.includes(name)) && !isKnown(name))
  const along = {
    ...(fields.includes(document) && { 'customer.identificationDocType': 'TAXSTATEMENT' }),
    ...(isBank && { 'billing.country': country }),
  }
  return { fields, along, country }
}

type SlipRule = (values: Values, asked: OperationRequest, account: SlipAccount) => readonly ParameterError[]

/** The bank registers the payer with these. */
const ofBanks = [
  'customer.givenName',
  'customer.surname',
  'billing.street1',
  'billing.city',
  'billing.state',
  'billing.postcode',
  'billing.country',
]
const ofChains = ['customer.givenName', 'customer.surname']
/** The interface lists these too; no bank needs them, so that a lenient channel does without. */
const listed = ['customer.email', 'customer.ip']
const listedForBanks = ['shopperResultUrl', ...listed]

const needed: SlipRule = (values, { brand, channel }, { kind }) => {
  const [always, strictly] = kind === 'bank' ? [ofBanks, listedForBanks] : [ofChains, listed]
  return [...always, ...(channel.settings.lenient ? [] : strictly)]
    .filter(name => valueNamed(values, name) === undefined)
    .map(name => ({ name, message: `is required for ${brand}` }))
}

/** They are printed, or go to the bank. Addresses of mail and of the net, dates and numbers have rules of their own. */
const printed = [
  'customer.givenName',
  'customer.middleName',
  'customer.surname',
  'customer.companyName',
  'billing.street1',
  'billing.street2',
  'billing.houseNumber1',
  'billing.houseNumber2',
  'billing.city',
  'billing.state',
  'billing.postcode',
  'descriptor',
  'customParameters[merchant_sitename]',
  'customParameters[product]',
]

const onlyPlain: SlipRule = values =>
  printed
    .filter(name => !isPlain(valueNamed(values, name) ?? ''))
    .map(name => ({
      name,
      message: 'must be Latin letters, digits, spaces, dots, commas, hyphens and apostrophes: banks take no other signs',
    }))

const brazilianPayer: SlipRule = (values, { brand }, { kind }) => {
  if (kind !== 'bank') return []
  const wrong: ParameterError[] = []
  const [own, other] = [nonBlank(values, cpf), values.get(document)]
  const others = values.get('customer.identificationDocType') === 'TAXSTATEMENT' ? other : undefined
  for (const [name, id] of [
    [cpf, own],
    [document, others],
  ] as const)
    if (id !== undefined && !readTaxId(id)) wrong.push({ name, message: 'must be a CPF or a CNPJ with right check digits' })
  if (own === undefined && others === undefined)
    wrong.push({ name: cpf, message: `is required for ${brand}, or customer.identificationDocId of the type TAXSTATEMENT` })
  if (wrong.length === 0 && own !== undefined && others !== undefined && readTaxId(own)!.id !== readTaxId(others)!.id)
    wrong.push({ name: document, message: `must be the same tax id as ${cpf}` })
  const [country, state, postcode] = [values.get('billing.country'), values.get('billing.state'), values.get('billing.postcode')]
  if (country !== undefined && country !== 'BR') wrong.push({ name: 'billing.country', message: `must be BR for ${brand}` })
  if (state !== undefined && !/^[A-Za-z]{2}$/.test(state))
    wrong.push({ name: 'billing.state', message: 'must be the 2 letters of a Brazilian state' })
  if (postcode !== undefined && !/^\d{8}$/.test(postcode))
    wrong.push({ name: 'billing.postcode', message: 'must be the 8 digits of a CEP' })
  return wrong
}

const goodDue: SlipRule = (values, { now }, account) => {
  const given = dueNames.filter(name => nonBlank(values, name) !== undefined)
  const today = todayAt(account, now)
  const latest = plusDays(today, account.daysMost)
  const days = given.map(name => readDay(valueNamed(values, name)!))
  return given.flatMap((name, at) => {
    const day = days[at]
    if (day === undefined) return [{ name, message: 'must be a day that there is, as day/month/year' }]
    if (day < today) return [{ name, message: 'must not be in the past' }]
    if (day > latest) return [{ name, message: `must be at most ${account.daysMost} days from today` }]
    return day === days[0] ? [] : [{ name, message: `must be the same day as ${given[0]}` }]
  })
}

const goodAmount: SlipRule = (_, { amount, brand }, { amountFrom, amountTo }) =>
  amount < amountFrom || amount > amountTo
    ? [
        {
          name: 'amount',
          message: `must be from ${(amountFrom / 100).toFixed(2)} to ${(amountTo / 100).toFixed(2)} for ${brand}`,
        },
      ]
    : []

const logoUrl: SlipRule = values => {
  const name = 'customParameters[url_logo]'
  const url = nonBlank(values, name)
  return url === undefined || (url.length <= 2048 && /^https:\/\//.test(url) && parseUrl(url) !== null)
    ? []
    : [{ name, message: 'must be an address with https' }]
}

const rules: readonly SlipRule[] = [needed, onlyPlain, brazilianPayer, goodDue, goodAmount, logoUrl]

/** All that is wrong with a request for a slip of this account. */
export const wrongForSlip: SlipRule = (values, asked, account) => rules.flatMap(rule => rule(values, asked, account))
