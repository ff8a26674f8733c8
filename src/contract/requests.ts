// Which parameter groups each request takes, and which parameters it must carry. What a payment method needs beyond that stands with its connector.

import type { CardBrands } from './brands.ts'
import type { Group, Values } from './parameters/table.ts'

export type RequestKind = {
  readonly groups: readonly Group[]
  readonly required: readonly string[]
  /** Names that the values of others make necessary, so that they are named together with whatever else is wrong. */
  readonly needed?: (values: Values, brands: CardBrands) => readonly string[]
  /** Known parameters that this request refuses, with the rule that says why. */
  readonly refused?: Readonly<Record<string, string>>
  /** Payment types that the request takes, and those that belong to another path. */
  readonly types?: Readonly<Record<string, 'here' | 'elsewhere'>>
}

const payment: readonly Group[] = [
  'common',
  'authentication',
  'card',
  'standingInstruction',
  'virtualAccount',
  'customer',
  'shipping.customer',
  'billing',
  'shipping',
  'merchant',
  'cart',
  'airline',
  'registration',
  'giftCard',
  'asynchronous',
  'risk',
  'browser',
  'threeDSecure',
]

// A capture, refund or reversal names its payment: account data is taken from there and ignored here.
const followUp: readonly Group[] = [
  'common',
  'authentication',
  'customer',
  'shipping.customer',
  'billing',
  'shipping',
  'merchant',
  'cart',
  'airline',
  'registration',
  'asynchronous',
]

/** A payment by card, as its brand or its number says, needs number and expiry. */
const cardNeeds: RequestKind['needed'] = (values, brands) =>
  values.has('card.number') || brands.named(values.get('paymentBrand') ?? '')
    ? ['card.number', 'card.expiryMonth', 'card.expiryYear']
    : []

/** Payment details alone: of a card, or of an account. */
const registrationNeeds: RequestKind['needed'] = (values, brands) =>
  values.has('virtualAccount.accountId') && !values.has('card.number') && !brands.named(values.get('paymentBrand') ?? '')
    ? ['paymentBrand']
    : ['card.number', 'card.expiryMonth', 'card.expiryYear']

/** Where details are only stored nothing has to be paid. */
const checkoutNeeds: RequestKind['needed'] = values => (storesOnly(values) ? [] : ['paymentType', 'amount', 'currency'])

/** A checkout without a payment: its shopper's payment details are stored. */
export const storesOnly = (values: Values): boolean => values.get('createRegistration') === 'true' && !values.has('paymentType')

/** A capture and a refund say how much; a reversal may be a full one. */
const followUpNeeds: RequestKind['needed'] = values =>
  ['CP', 'RF'].includes(values.get('paymentType') ?? '') ? ['amount', 'currency'] : []

const checkout: readonly Group[] = [...payment, 'checkout']
/** A merchant that uses the form never has them. */
const onlyInTheForm = {
  'card.number': 'is given by the shopper, in the form',
  'card.cvv': 'is given by the shopper, in the form',
  'virtualAccount.password': 'is given by the shopper, in the form',
}

/** The names of a shopper's own custom parameters begin so. */
export const shoppersPrefix = 'SHOPPER_'

// A name that ends in a dot or a bracket stands for all that begin with it.
const shoppers = [
  'paymentBrand',
  'card.',
  'virtualAccount.',
  'customer.browser.',
  'createRegistration',
  'recurring.numberOfInstallments',
  'customParameters[',
  'shopperResultUrl',
]

/** What a shopper's browser may say; all else is the merchant's to say. */
export const isShoppers = (name: string): boolean =>
  shoppers.some(one => (/[.[]$/.test(one) ? name.startsWith(one) : name === one))

// Of who pays a slip, where the merchant has not said it.
const payers = [
  'customer.givenName',
  'customer.surname',
  'customer.email',
  'customer.identificationDocType',
  'customer.identificationDocId',
  'billing.street1',
  'billing.city',
  'billing.state',
  'billing.postcode',
  'billing.country',
]

/** What a shopper's browser may say beside that where a slip is chosen. */
export const isPayers = (name: string): boolean => payers.includes(name)

/** What may stand in the form that a shopper sends, whatever the checkout. */
export const isOfShoppersForm = (name: string): boolean => isShoppers(name) || isPayers(name) || name === 'registrationId'

/** The same in words. */
export const shoppersNames = [...shoppers, 'registrationId']
  .map(name => name.replace(/\.$/, '.*').replace(/\[$/, `[${shoppersPrefix}…]`))
  .join(', ')

const onlyInCheckouts = { 'overridePaymentType[brand]': 'is accepted only when a checkout is created' }

const initialTypes = {
  PA: 'here',
  DB: 'here',
  CD: 'here',
  'PA.CP': 'here',
  CP: 'elsewhere',
  RF: 'elsewhere',
  RV: 'elsewhere',
} as const
const followUpTypes = { CP: 'here', RF: 'here', RV: 'here' } as const

export const requests = {
  /** POST /v1/payments */
  payment: {
    groups: payment,
    required: ['paymentType', 'amount', 'currency'],
    needed: cardNeeds,
    refused: onlyInCheckouts,
    types: initialTypes,
  },
  /** POST /v1/threeDSecure: an authentication without a payment. */
  threeDSecure: { groups: payment, required: ['amount', 'currency'], needed: cardNeeds, refused: onlyInCheckouts },
  /** POST /v1/payments/{id}: amount and currency depend on the type, see `payments/rules`. */
  followUp: {
    groups: followUp,
    required: ['paymentType'],
    needed: followUpNeeds,
    refused: onlyInCheckouts,
    types: followUpTypes,
  },
  /** POST /v1/checkouts */
  checkout: { groups: checkout, required: [], needed: checkoutNeeds, refused: onlyInTheForm, types: initialTypes },
  /** POST /v1/checkouts/{id}: what is sent replaces what was. */
  checkoutUpdate: { groups: checkout, required: [], refused: onlyInTheForm, types: initialTypes },
  /** What a checkout and its shopper say together. */
  checkoutPayment: {
    groups: payment,
    required: ['paymentType', 'amount', 'currency'],
    needed: cardNeeds,
    types: initialTypes,
  },
  /** POST /v1/registrations */
  registration: { groups: payment, required: [], needed: registrationNeeds, refused: onlyInCheckouts },
  /** POST /v1/registrations/{id}/payments */
  registrationPayment: {
    groups: payment,
    required: ['paymentType', 'amount', 'currency'],
    refused: {
      ...onlyInCheckouts,
      'card.number': 'comes from the registration',
      createRegistration: 'is not taken with a registration',
    },
    types: initialTypes,
  },
  /** GET of one record by its id. */
  read: { groups: ['common', 'authentication'], required: [] },
  /** GET /v1/query, GET /v1/payments and GET /v3/query. */
  query: { groups: ['common', 'authentication', 'query'], required: [] },
  /** GET /reports/v1/reconciliations/aggregations */
  report: { groups: ['common', 'authentication', 'reporting'], required: ['date.from', 'date.to'] },
  /** GET /reports/…/reconciliations/aggregations/{id} */
  reportDetail: { groups: ['common', 'authentication', 'reporting'], required: [] },
} as const satisfies Record<string, RequestKind>

export type RequestName = keyof typeof requests
