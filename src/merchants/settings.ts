// What can be set for a merchant and for a channel, with defaults. A division and the PSP may hold defaults of both for what is below them.
// docs/operating.md describes every one.

import { isIP } from 'node:net'
import { knownBrands, otherBrands, standardRows } from '../contract/brands.ts'
import { type CardNumberRules, holdsCardData, treatments } from '../contract/cardNumbers.ts'
import { currencies } from '../contract/currencies.ts'
import { isAppScheme } from '../contract/formats.ts'
import { nearest } from '../contract/nearest.ts'
import { resultOfCode } from '../contract/results/results.ts'
import { hasPlainHost, parseUrl } from '../contract/url.ts'
import {
  filled,
  filledListOf,
  flag,
  type Input,
  id,
  line,
  listOf,
  mapOf,
  type Output,
  object,
  oneOf,
  optional,
  type Schema,
  type TextSchema,
  text,
  where,
  whereTexts,
  whole,
} from '../platform/schema.ts'
import { sftpServer } from '../platform/sftp/server.ts'

/** Brands of the interface; files of the operator may add others. */
export const standardBrandNames: ReadonlySet<string> = new Set([...standardRows.map(({ name }) => name), ...otherBrands])

const currency = where(
  text(/^[A-Z]{3}$/, 'must be a currency code'),
  code => currencies.has(code),
  'is not a currency code of ISO 4217',
)
const resultCode = where(filled, code => resultOfCode.has(code), 'must be a code of the interface')
const appScheme = where(
  text(/^[a-z][a-z0-9+.-]*$/, 'must be the scheme of an app, for example com.example.shop'),
  isAppScheme,
  'is no app: browsers run or read it themselves',
)
/** What stands in clear for many to read holds no card number and no CVV. */
const isInClear = (written: string) => isIP(written) !== 0 || !holdsCardData(written, knownBrands)
const inClearRule = 'must not hold a card number or a CVV'
export const unnumbered = (schema: TextSchema) => where(schema, isInClear, inClearRule)
/** Settings that are full of digits, and no texts of people: identifiers that others gave, accounts, addresses, and what machines made. */
const identifiers: ReadonlySet<string> = new Set([
  'appSchemes',
  'bins',
  'channel',
  'merchantId',
  'number',
  'hostKey',
  'shopLogo',
  'formOrigins',
])
/** What an entity is called: it stands in clear wherever the entity does. */
export const entityName = unnumbered(line)
/** What shoppers may read as a name: nothing in it moves a cursor, hides or turns around what is beside it. */
const shopName = text(/^(?=.*\S)[^\p{Cc}\p{Cf}\u2028\u2029]{1,64}$/u, 'must be a text of 1 to 64 characters')
/** Pages have its origin in their policies. */
const isForPolicies = (url: URL | null): boolean => url !== null && hasPlainHost(url)
const shopLogo = where(
  text(
    /^(https:\/\/|data:image\/(png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/]+=*$)/,
    'must be an https address or a data: address of an image',
  ),
  address => address.length <= 65_536 && isForPolicies(parseUrl(address)),
  'must be an https address or a data: address of an image, of at most 65536 characters',
)
const shopColour = text(/^#[0-9a-f]{6}$/i, 'must be a colour such as #1d5fd1')
const origin = where(
  text(/^https?:\/\//, 'must be an origin such as https://shop.example'),
  address => {
    const url = parseUrl(address)
    return url?.origin === address && isForPolicies(url)
  },
  'must be an origin such as https://shop.example, without a path',
)
const acquirer = text(/^[a-z0-9-]{1,32}$/, 'must be the name of an acquirer')
const perMinute = whole(0, 1_000_000, 'must be a whole number, 0 for no limit')
const hundredths = whole(0, 10 ** 12 - 1, 'must be a whole number of hundredths')

/** A channel's own account with an acquirer: what it replaces in that acquirer's account, see docs/operating-acquirer.md. */
const acquirerAccount = object({
  merchantId: optional(text(/^[\x21-\x7e]{1,15}$/, 'must be 1 to 15 characters without spaces')),
  category: optional(text(/^\d{4}$/, 'must be a text of 4 digits')),
  name: optional(text(/^.{1,23}$/, 'must be a text of 1 to 23 characters')),
  city: optional(text(/^.{1,13}$/, 'must be a text of 1 to 13 characters')),
  state: optional(text(/^.{1,2}$/, 'must be a text of 1 or 2 characters')),
  country: optional(text(/^[A-Z]{2}$/, 'must be 2 upper-case letters')),
  statement: optional(oneOf(['descriptor', 'name'])),
  facilitator: optional(flag),
})

/** The schemas for an installation that knows these brands; without a list any name that looks like one will do. */
export function settingsFor(brands?: ReadonlySet<string>) {
  const brand = where(
    text(/^[A-Z][A-Z0-9_]{1,31}$/, 'must be the name of a brand, in capitals'),
    name => brands?.has(name) ?? true,
    ({ input }) => {
      const near = nearest(input, brands!)
      return `is not a brand${near === undefined ? '' : `: did you mean ${near}?`}`
    },
  )
  /** Which acquirers carry a payment, in order: all that is given must fit, the first route that fits counts. */
  const route = object({
    brands: optional(listOf(brand)),
    currencies: optional(listOf(currency)),
    bins: optional(listOf(text(/^\d{1,8}$|^\d{1,8}-\d{1,8}$/, 'must be digits, or two numbers with a hyphen between'))),
    /** Both inclusive. */
    amountFrom: optional(hundredths),
    amountTo: optional(hundredths),
    acquirers: filledListOf(acquirer),
  })
  /** What the simulator answers: all that is given must match. */
  const outcomeRule = object({
    match: object({
      bin: optional(filled),
      last4: optional(filled),
      brand: optional(brand),
      paymentType: optional(filled),
      amount: optional(filled),
      currency: optional(currency),
    }),
    code: resultCode,
  })
  const channel = object({
    /** A test channel never reaches a live processor. */
    mode: optional(oneOf(['test', 'live']), 'test'),
    disabled: optional(flag, false),
    /** Malformed descriptive fields are dropped instead of failing the payment. */
    lenient: optional(flag, false),
    /** Empty = every card brand, every currency, every payment type. */
    brands: optional(listOf(brand), []),
    currencies: optional(listOf(currency), []),
    paymentTypes: optional(listOf(oneOf(['PA', 'DB', 'CD', '3D'])), []),
    brandDetection: optional(flag, true),
    descriptor: optional(oneOf(['replace', 'append', 'ignore']), 'replace'),
    /** Absent = on for strict channels, off for lenient ones. */
    refuseExpiredCards: optional(flag),
    requireCvv: optional(flag, true),
    /** A part of the amount is taken when the issuer approves no more; else it is given back. */
    partialApprovals: optional(flag, false),
    /** A PA of 0.00 asks the issuer whether the card is good; nothing is held. */
    accountChecks: optional(flag, false),
    /** What becomes of card numbers in texts; absent = refused on strict channels, masked on lenient ones. */
    cardNumbersInTexts: optional(oneOf(treatments)),
    /** The same for identifiers, which pass for card numbers by chance. */
    cardNumbersInIdentifiers: optional(oneOf(treatments), 'keep'),
    /** Status reads of one payment, or of one checkout, in a minute; 0 = no limit. */
    statusReadsPerMinute: optional(perMinute, 0),
    /** Who names this channel reads, finds, refers to and pays with what is of it alone; absent = of all channels of the merchant (decisions, 66). */
    ownChannelOnly: optional(flag, false),
    /** Whoever knows the id of a checkout may read what became of it, without credentials. */
    statusReadsWithoutCredentials: optional(flag, false),
    /** The longest life that a checkout may be given, for links that are sent; it is never below 30. */
    checkoutMinutesMost: optional(whole(30, 999_999, 'must be a whole number of minutes, 30 to 999999'), 30),
    /** Paying with a registration asks the shopper for the CVV. */
    requireCvvForRegistrations: optional(flag, false),
    simulatorRules: optional(listOf(outcomeRule), []),
    /** How a request's notificationUrl is called: with the envelope, or in the old way with id and resourcePath in the query. */
    notificationUrlForm: optional(oneOf(['post', 'get']), 'post'),
    /** 3-D Secure for cards: never, when the request asks (sandbox), or always. */
    threeDSecure: optional(oneOf(['off', 'asked', 'always']), 'asked'),
    /** Every card takes part in 3-D Secure at the simulator, as with customParameters[3DS2_enrolled]=true. */
    simulatorEnrols: optional(flag, false),
    /** The shop as shoppers know it: its name (that of the merchant where absent), its logo, and the colour of its buttons, #rrggbb. */
    shopName: optional(shopName),
    shopLogo: optional(shopLogo),
    shopColour: optional(shopColour),
    /** The sites that may hold the payment form; empty = any. */
    formOrigins: optional(listOf(origin), []),
    /** Schemes of apps that shopperResultUrl may have beside https. */
    appSchemes: optional(listOf(appScheme), []),
    /** When authentication cannot be had: authorize without a liability shift, or refuse. */
    withoutAuthentication: optional(oneOf(['authorize', 'refuse']), 'authorize'),
    /** Returned as merchant.bankAccount for methods that are paid into an account. */
    bankAccount: optional(
      object({
        holder: text(/^.{4,128}$/u, 'must be a text of 4 to 128 characters'),
        number: text(/^.{3,64}$/, 'must be a text of 3 to 64 characters'),
        bic: optional(text(/^[A-Z0-9]{8}([A-Z0-9]{3})?$/, 'must be 8 or 11 upper-case letters and digits')),
        country: optional(text(/^[A-Z]{2}$/, 'must be 2 upper-case letters')),
      }),
    ),
    /** The name of a set of risk rules; empty = payments are not screened. */
    riskRules: optional(text(/^/, 'must be the name of a set of risk rules'), ''),
    /** From this amount on (hundredths) the staff proves both factors again before it refunds, reverses or captures. */
    proofFrom: optional(hundredths, 100_000),
    /** From this amount on (hundredths) a colleague has to approve what somebody of the staff orders; absent = never. */
    approvalFrom: optional(hundredths),
    /** By brand, the accounts that slips are issued for, in order; absent = the first account of the brand and mode. */
    slipAccounts: optional(mapOf(brand, filledListOf(acquirer)), {}),
    /** Empty = the first acquirer of the mode. */
    routes: optional(listOf(route), []),
    /** By the acquirer's name. */
    acquirerAccounts: optional(mapOf(acquirer, acquirerAccount), {}),
  })
  const merchant = object({
    /** User id and password in the request instead of a bearer token. */
    legacyCredentials: optional(flag, false),
    /** Requests that one token may send in a minute; 0 = no limit. */
    requestsPerMinute: optional(perMinute, 0),
    /** Requests of one token that may be under way at a time, in each process; 0 = no limit. */
    requestsAtOnce: optional(perMinute, 1024),
    /** With rules here a request may name the merchant: the first rule that fits chooses the channel. */
    channelDispatching: optional(
      listOf(object({ channel: id, brands: optional(listOf(brand)), currencies: optional(listOf(currency)) })),
      [],
    ),
    /** A file of each day's receipts, put on the merchant's server: as CSV, or as the XML of POST /payment/query. */
    receiptFiles: optional(
      object({
        ...sftpServer.entries,
        forms: optional(filledListOf(oneOf(['csv', 'xml'])), ['csv']),
      }),
    ),
    /** Captures, refunds and reversals may refer to payments of the merchant's other channels (decisions, 14). */
    referencesAcrossChannels: optional(flag, false),
  })
  /** Of a division or the PSP: what those below have where they set nothing themselves. */
  const group = object({ ...channel.entries, ...merchant.entries })
  // What stands there already is read as it is: a row more in a file of brands keeps no gateway from its start.
  const inClear = <One extends Schema>(schema: One) => (brands ? whereTexts(schema, isInClear, inClearRule, identifiers) : schema)
  return { channel: inClear(channel), merchant: inClear(merchant), group: inClear(group) }
}

export const { channel: channelSettings, merchant: merchantSettings, group: groupSettings } = settingsFor()

export type ChannelSettings = DeepReadonly<Output<typeof channelSettings>>
export type MerchantSettings = DeepReadonly<Output<typeof merchantSettings>>
export type AcquirerRoute = ChannelSettings['routes'][number]
export type OutcomeRule = ChannelSettings['simulatorRules'][number]
export type AcquirerAccount = ChannelSettings['acquirerAccounts'][string]

/** What bounds a merchant, or says who carries its payments: the staff of the PSP alone changes it. */
export const ofOperator: ReadonlySet<string> = new Set<keyof (ChannelSettings & MerchantSettings)>([
  'mode',
  'disabled',
  'brands',
  'currencies',
  'paymentTypes',
  'requireCvv',
  'routes',
  'acquirerAccounts',
  'slipAccounts',
  'riskRules',
  'threeDSecure',
  'withoutAuthentication',
  'proofFrom',
  'approvalFrom',
  'cardNumbersInTexts',
  'cardNumbersInIdentifiers',
  'legacyCredentials',
  'receiptFiles',
  'requestsPerMinute',
  'requestsAtOnce',
  'statusReadsPerMinute',
])

/** What may be written for a channel. */
export type WrittenChannelSettings = Input<typeof channelSettings>

/** Settings as they are written: without defaults, not yet checked. */
export type WrittenSettings = Readonly<Record<string, unknown>>

/** What an entity has by its own settings and those above it, the farthest first: of the latter only what concerns its kind. */
export function withInherited(
  { entries }: { readonly entries: object },
  above: readonly WrittenSettings[],
  own: WrittenSettings,
): WrittenSettings {
  const inherited = Object.entries(Object.assign({}, ...above) as WrittenSettings).filter(([name]) =>
    Object.hasOwn(entries, name),
  )
  return { ...Object.fromEntries(inherited), ...own }
}

type DeepReadonly<Value> = Value extends object ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> } : Value

/** How a channel has card numbers treated that stand where none belongs. */
export const cardNumberRules = ({ lenient, cardNumbersInTexts, cardNumbersInIdentifiers }: ChannelSettings): CardNumberRules => ({
  inTexts: cardNumbersInTexts ?? (lenient ? 'mask' : 'refuse'),
  inIdentifiers: cardNumbersInIdentifiers,
})
