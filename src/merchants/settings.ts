// What can be set for a merchant and for a channel, with defaults. Settings come from seed files and later from people: each bad one is named.

import { type CardNumberRules, type Treatment, treatments } from '../contract/cardNumbers.ts'
import { isAppScheme } from '../contract/formats.ts'
import { OperatorError } from '../errors.ts'

export type OutcomeRule = {
  /** All that is given must match. */
  readonly match: {
    readonly bin?: string
    readonly last4?: string
    readonly brand?: string
    readonly paymentType?: string
    readonly amount?: string
    readonly currency?: string
  }
  /** The result code that the simulator then answers. */
  readonly code: string
}

export type Dispatching = {
  readonly brands?: readonly string[]
  readonly currencies?: readonly string[]
  readonly channel: string
}

/** Which acquirers carry a payment, in order: all that is given must fit, the first route that fits counts. */
export type Route = {
  readonly brands?: readonly string[]
  readonly currencies?: readonly string[]
  /** `4`, `510000-559999`. */
  readonly bins?: readonly string[]
  /** Hundredths, both inclusive. */
  readonly amountFrom?: number
  readonly amountTo?: number
  readonly acquirers: readonly string[]
}

/** A channel's own account with an acquirer: what it replaces in that acquirer's account, see docs/operating-acquirer.md. */
export type AcquirerAccount = {
  readonly merchantId?: string
  readonly category?: string
  readonly name?: string
  readonly city?: string
  readonly state?: string
  readonly country?: string
  readonly statement?: 'descriptor' | 'name'
  readonly facilitator?: boolean
}

export type ChannelSettings = {
  /** A test channel never reaches a live processor. */
  readonly mode: 'test' | 'live'
  readonly disabled: boolean
  /** Malformed descriptive fields are dropped instead of failing the payment. */
  readonly lenient: boolean
  /** Empty = every card brand, every currency, every payment type. */
  readonly brands: readonly string[]
  readonly currencies: readonly string[]
  readonly paymentTypes: readonly string[]
  readonly brandDetection: boolean
  readonly descriptor: 'replace' | 'append' | 'ignore'
  /** Absent = on for strict channels, off for lenient ones. */
  readonly refuseExpiredCards?: boolean
  readonly requireCvv: boolean
  /** What becomes of a card number in a text. Absent = refused on strict channels, masked on lenient ones. */
  readonly cardNumbersInTexts?: Treatment
  /** The same for identifiers, which pass for card numbers by chance. */
  readonly cardNumbersInIdentifiers: Treatment
  /** Status reads of one payment in a minute; 0 = no limit. */
  readonly statusReadsPerMinute: number
  readonly simulatorRules: readonly OutcomeRule[]
  /** How a request's notificationUrl is called: with the envelope, or in the old way with id and resourcePath in the query. */
  readonly notificationUrlForm: 'post' | 'get'
  /** 3-D Secure for cards: never, when the request asks (sandbox), or always. */
  readonly threeDSecure: 'off' | 'asked' | 'always'
  /** Every card takes part in 3-D Secure at the simulator, as with customParameters[3DS2_enrolled]=true. */
  readonly simulatorEnrols: boolean
  /** Schemes of apps that shopperResultUrl may have beside https. */
  readonly appSchemes: readonly string[]
  /** When authentication cannot be had: authorize without a liability shift, or refuse. */
  readonly withoutAuthentication: 'authorize' | 'refuse'
  /** Returned as merchant.bankAccount for methods that are paid into an account. */
  readonly bankAccount?: { readonly holder: string; readonly number: string; readonly bic?: string; readonly country?: string }
  /** The name of a set of risk rules; empty = payments are not screened. */
  readonly riskRules: string
  /** Empty = the first acquirer of the mode. */
  readonly routes: readonly Route[]
  /** By the acquirer's name. */
  readonly acquirerAccounts: Readonly<Record<string, AcquirerAccount>>
}

export type MerchantSettings = {
  /** User id and password in the request instead of a bearer token. */
  readonly legacyCredentials: boolean
  /** Requests that one token may send in a minute; 0 = no limit. */
  readonly requestsPerMinute: number
  /** With rules here a request may name the merchant: the first rule that fits chooses the channel. */
  readonly channelDispatching: readonly Dispatching[]
}

type Check = (value: unknown) => boolean
const isBoolean: Check = value => typeof value === 'boolean'
const isTreatment: Check = value => treatments.some(treatment => treatment === value)
const isWordList: Check = value =>
  Array.isArray(value) && value.every(word => typeof word === 'string' && /^[A-Za-z0-9_]+$/.test(word))
const isRuleList: Check = value =>
  Array.isArray(value) &&
  value.every(
    rule =>
      typeof rule?.code === 'string' &&
      rule.match !== null &&
      typeof rule.match === 'object' &&
      Object.entries(rule.match).every(
        ([name, wanted]) =>
          ['bin', 'last4', 'brand', 'paymentType', 'amount', 'currency'].includes(name) && typeof wanted === 'string',
      ),
  )
const isDispatching: Check = value =>
  Array.isArray(value) &&
  value.every(
    rule => /^[0-9a-f]{32}$/.test(String(rule?.channel)) && [rule.brands ?? [], rule.currencies ?? []].every(isWordList),
  )

const isSchemeList: Check = value =>
  Array.isArray(value) &&
  value.every(scheme => typeof scheme === 'string' && /^[a-z][a-z0-9+.-]*$/.test(scheme) && isAppScheme(scheme))

const isBankAccount: Check = value => {
  const account = value as Record<string, unknown> | null
  if (account === null || typeof account !== 'object') return false
  const formats: Record<string, RegExp> = {
    holder: /^.{4,128}$/u,
    number: /^.{3,64}$/,
    bic: /^[A-Z0-9]{8}([A-Z0-9]{3})?$/,
    country: /^[A-Z]{2}$/,
  }
  const fits = Object.entries(account).every(([name, given]) => formats[name]?.test(String(given)) === true)
  return fits && account.holder !== undefined && account.number !== undefined
}
const isRange: Check = value => typeof value === 'string' && /^\d{1,8}$|^(\d{1,8})-(\d{1,8})$/.test(value)
const isRoute: Check = value => {
  const route = value as Record<string, unknown>
  return (
    Object.keys(route).every(name => ['brands', 'currencies', 'bins', 'amountFrom', 'amountTo', 'acquirers'].includes(name)) &&
    [route.brands ?? [], route.currencies ?? []].every(isWordList) &&
    Array.isArray(route.bins ?? []) &&
    ((route.bins ?? []) as unknown[]).every(isRange) &&
    [route.amountFrom ?? 0, route.amountTo ?? 0].every(amount => Number.isSafeInteger(amount)) &&
    isNameList(route.acquirers) &&
    (route.acquirers as unknown[]).length > 0
  )
}
const isNameList: Check = value =>
  Array.isArray(value) && value.every(name => typeof name === 'string' && /^[a-z0-9-]+$/.test(name))
const isRouteList: Check = value =>
  Array.isArray(value) && value.every(route => route !== null && typeof route === 'object' && isRoute(route))

const accountParts: Readonly<Record<keyof AcquirerAccount, RegExp>> = {
  merchantId: /^[\x21-\x7e]{1,15}$/,
  category: /^\d{4}$/,
  name: /^.{1,23}$/,
  city: /^.{1,13}$/,
  state: /^.{1,2}$/,
  country: /^[A-Z]{2}$/,
  statement: /^(descriptor|name)$/,
  facilitator: /^(true|false)$/,
}
const isAccounts: Check = value =>
  value !== null &&
  typeof value === 'object' &&
  Object.values(value).every(
    account =>
      account !== null &&
      typeof account === 'object' &&
      Object.entries(account).every(
        ([name, part]) => Object.hasOwn(accountParts, name) && accountParts[name as keyof AcquirerAccount].test(String(part)),
      ),
  )

type Rows = Readonly<Record<string, { readonly default?: unknown; readonly check: Check; readonly rule: string }>>

export const channelSettings: Rows = {
  mode: { default: 'test', check: value => value === 'test' || value === 'live', rule: 'must be test or live' },
  disabled: { default: false, check: isBoolean, rule: 'must be true or false' },
  lenient: { default: false, check: isBoolean, rule: 'must be true or false' },
  brands: { default: [], check: isWordList, rule: 'must be a list of brand names' },
  currencies: { default: [], check: isWordList, rule: 'must be a list of currency codes' },
  paymentTypes: { default: [], check: isWordList, rule: 'must be a list of payment types' },
  brandDetection: { default: true, check: isBoolean, rule: 'must be true or false' },
  descriptor: {
    default: 'replace',
    check: value => ['replace', 'append', 'ignore'].includes(String(value)),
    rule: 'must be replace, append or ignore',
  },
  refuseExpiredCards: { check: isBoolean, rule: 'must be true or false' },
  requireCvv: { default: true, check: isBoolean, rule: 'must be true or false' },
  cardNumbersInTexts: { check: isTreatment, rule: `must be one of ${treatments.join(', ')}` },
  cardNumbersInIdentifiers: { default: 'keep', check: isTreatment, rule: `must be one of ${treatments.join(', ')}` },
  statusReadsPerMinute: {
    default: 0,
    check: value => Number.isInteger(value) && (value as number) >= 0,
    rule: 'must be a whole number, 0 for no limit',
  },
  simulatorRules: {
    default: [],
    check: isRuleList,
    rule: 'must be a list of {match: {bin, last4, brand, paymentType, amount, currency}, code}',
  },
  notificationUrlForm: {
    default: 'post',
    check: value => value === 'post' || value === 'get',
    rule: 'must be post or get',
  },
  threeDSecure: {
    default: 'asked',
    check: value => ['off', 'asked', 'always'].includes(String(value)),
    rule: 'must be off, asked or always',
  },
  simulatorEnrols: { default: false, check: isBoolean, rule: 'must be true or false' },
  appSchemes: {
    default: [],
    check: isSchemeList,
    rule: 'must be a list of the schemes of apps, for example com.example.shop; http and what browsers run or read themselves are none',
  },
  withoutAuthentication: {
    default: 'authorize',
    check: value => ['authorize', 'refuse'].includes(String(value)),
    rule: 'must be authorize or refuse',
  },
  bankAccount: { check: isBankAccount, rule: 'must be {holder, number, bic, country}, the latter two optional' },
  riskRules: { default: '', check: value => typeof value === 'string', rule: 'must be the name of a set of risk rules' },
  routes: {
    default: [],
    check: isRouteList,
    rule: 'must be a list of {brands, currencies, bins, amountFrom, amountTo, acquirers}',
  },
  acquirerAccounts: {
    default: {},
    check: isAccounts,
    rule: 'must hold accounts of {merchantId, category, name, city, state, country, statement, facilitator} by the names of acquirers',
  },
}

export const merchantSettings: Rows = {
  legacyCredentials: { default: false, check: isBoolean, rule: 'must be true or false' },
  requestsPerMinute: {
    default: 0,
    check: value => Number.isInteger(value) && (value as number) >= 0,
    rule: 'must be a whole number, 0 for no limit',
  },
  channelDispatching: { default: [], check: isDispatching, rule: 'must be a list of {channel, brands, currencies}' },
}

/** How a channel has card numbers treated that stand where none belongs. */
export const cardNumberRules = ({ lenient, cardNumbersInTexts, cardNumbersInIdentifiers }: ChannelSettings): CardNumberRules => ({
  inTexts: cardNumbersInTexts ?? (lenient ? 'mask' : 'refuse'),
  inIdentifiers: cardNumbersInIdentifiers,
})

/** Fills in the defaults; throws OperatorError naming the first setting that is unknown or malformed. */
export function readSettings<Settings>(rows: Rows, given: Readonly<Record<string, unknown>>, owner: string): Settings {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(rows, name)) throw new OperatorError(`${owner}: there is no setting ${name}.`)
    if (!rows[name]!.check(value)) throw new OperatorError(`${owner}: ${name} ${rows[name]!.rule}.`)
  }
  const defaults = Object.entries(rows)
    .filter(([, row]) => row.default !== undefined)
    .map(([name, row]) => [name, row.default])
  return { ...Object.fromEntries(defaults), ...given } as Settings
}
