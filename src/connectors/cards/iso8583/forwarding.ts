// Which data element carries which parameter. What is not listed stays in the house: `notForwarded` names it, so that a test can hold the two
// lists against the parameter table (decisions, 46 and 47).

import type { Operation } from '../../connector.ts'
import { asciiText, type Meaning, type PrivateValues, privateText } from './privateData.ts'
import type { EntryKind } from './profile.ts'
import type { Place } from './versions.ts'

/** What an acquirer knows the merchant by. */
export type AcquirerAccountData = {
  /** DE32 and the original data. */
  readonly acquirerId: string
  /** DE42. */
  readonly merchantId: string
  /** DE18 (1993: DE26), unless merchant.mcc says otherwise. */
  readonly category: string
  readonly name: string
  readonly city: string
  readonly state: string
  readonly country: string
  /** What stands first on the shopper's statement. */
  readonly statement: 'descriptor' | 'name'
  /** A payment facilitator: merchant.submerchantId goes out too. */
  readonly facilitator: boolean
}

/** Element by element; `private` are the parts of private data, which a profile lays out. */
export const forwarded: Readonly<Record<string, string>> = {
  'card.number': 'DE2',
  'card.expiryMonth': 'DE14',
  'card.expiryYear': 'DE14',
  'card.cvv': 'private: cvv',
  amount: 'DE4',
  currency: 'DE49',
  paymentType: 'type indicator and DE3',
  descriptor: 'DE43, the name',
  'merchant.name': 'DE43, the name',
  'merchant.city': 'DE43, the city',
  'merchant.state': 'DE43, the state',
  'merchant.country': 'DE43, the country',
  'merchant.mcc': 'DE18, in the edition of 1993 DE26',
  'merchant.submerchantId': 'private: submerchant, on facilitator accounts',
  'billing.street1': 'private: address',
  'billing.houseNumber1': 'private: address',
  'billing.postcode': 'private: address',
  'standingInstruction.type': 'private: cardOnFile',
  'standingInstruction.mode': 'private: cardOnFile and DE22',
  'standingInstruction.source': 'private: cardOnFile',
  'standingInstruction.initialTransactionId': 'private: networkTransaction',
  recurringType: 'private: cardOnFile and DE22, when standingInstruction is absent',
  'recurring.numberOfInstallments': 'private: instalments',
  'airline.bookingRefNum': 'private: airlineReference',
  'airline.passengers[n].ticketNumber': 'private: airlineTicket, of the first passenger',
  transactionCategory: 'DE22 and DE25, when it says mail or telephone order',
  'threeDSecure.eci': 'private: electronicCommerce',
  'threeDSecure.verificationId': 'private: cryptogram',
  'threeDSecure.dsTransactionId': 'private: authenticationTransaction',
}

/** Whole groups, or single names, that no acquirer is told. */
export const notForwarded: readonly string[] = [
  'entityId',
  'authentication.',
  'paymentBrand',
  'overridePaymentType',
  'registrations[n].id',
  'integrity',
  'validMinutes',
  'merchantTransactionId',
  'merchantInvoiceId',
  'testMode',
  'merchantMemo',
  'card.holder',
  'virtualAccount.',
  'customer.',
  'shipping.',
  'billing.street2',
  'billing.houseNumber2',
  'billing.city',
  'billing.state',
  'billing.country',
  'merchant.street',
  'merchant.postcode',
  'merchant.phone',
  'cart.',
  'airline.',
  'createRegistration',
  'customParameters',
  'giftCard.',
  'shopperResultUrl',
  'threeDSecure.',
  'notificationUrl',
  'risk.',
]

type OperationFields = Operation['fields']

const categories: Readonly<Record<string, EntryKind>> = { MO: 'mailOrder', TO: 'telephoneOrder', MOTO: 'telephoneOrder' }

/** How the card came: on file when the payment repeats an agreement on stored card data. */
export const entryOf = (fields: OperationFields): EntryKind =>
  agreementMode(fields) === 'REPEATED' ? 'onFile' : (categories[fields.get('transactionCategory') ?? ''] ?? 'electronicCommerce')

/** INITIAL begins an agreement, REPEATED goes by it. */
export const agreementMode = (fields: OperationFields): string | undefined =>
  fields.get('standingInstruction.mode') ?? fields.get('recurringType')

type Told = readonly (readonly [Meaning, string | undefined])[]

const valuesOf = (rows: Told): PrivateValues =>
  new Map(rows.filter(([, value]) => value !== undefined).map(([meaning, value]) => [meaning, privateText(value!)]))

/** The private data of a first payment. */
export function privateValues(
  { fields, card, authentication }: Pick<Operation, 'fields' | 'card' | 'authentication'>,
  account: AcquirerAccountData,
): PrivateValues {
  // Our own authentication, or the results of one made elsewhere.
  const authenticated = (name: 'eci' | 'verificationId' | 'dsTransactionId') =>
    authentication?.[name] ?? fields.get(`threeDSecure.${name}`)
  const address = [fields.get('billing.postcode'), fields.get('billing.houseNumber1'), fields.get('billing.street1')]
  return valuesOf([
    ['instalments', fields.get('recurring.numberOfInstallments')],
    ['cardOnFile', cardOnFile(fields)],
    ['airlineTicket', fields.get('airline.passengers[0].ticketNumber')],
    ['airlineReference', fields.get('airline.bookingRefNum')],
    ['submerchant', submerchant(fields, account)],
    ['electronicCommerce', authenticated('eci')],
    ['cryptogram', authenticated('verificationId')],
    ['networkTransaction', fields.get('standingInstruction.initialTransactionId')],
    ['authenticationTransaction', authenticated('dsTransactionId')],
    ['address', address.some(part => part !== undefined) ? address.map(part => part ?? '').join(' ') : undefined],
    ['cvv', card?.cvv],
  ])
}

/** What captures, refunds and reversals say again; the network knows the payment by the id that it gave. */
export const privateValuesAgain = (
  fields: OperationFields,
  networkTransaction: string | undefined,
  account: AcquirerAccountData,
): PrivateValues =>
  valuesOf([
    ['cardOnFile', cardOnFile(fields)],
    ['submerchant', submerchant(fields, account)],
    ['networkTransaction', networkTransaction],
  ])

const submerchant = (fields: OperationFields, { facilitator }: AcquirerAccountData) =>
  facilitator ? fields.get('merchant.submerchantId') : undefined

const agreements: Readonly<Record<string, string>> = { UNSCHEDULED: '01', RECURRING: '03', INSTALLMENT: '04' }

/** C = the shopper starts it, M = the merchant does: C101 unscheduled, C103 subscription, C104 instalments, M101 … likewise. */
function cardOnFile(fields: OperationFields): string | undefined {
  const mode = agreementMode(fields)
  if (mode === undefined) return undefined
  const type = fields.get('standingInstruction.type') ?? 'RECURRING'
  const source = fields.get('standingInstruction.source') ?? (mode === 'REPEATED' ? 'MIT' : 'CIT')
  return `${source === 'MIT' ? 'M1' : 'C1'}${agreements[type]}`
}

/** What the request overrides comes first. How it stands in DE43 is the edition's, see versions.ts. */
export function placeOf(fields: OperationFields, account: AcquirerAccountData): Place {
  const name =
    fields.get('merchant.name') ?? (account.statement === 'descriptor' ? fields.get('descriptor') : undefined) ?? account.name
  return {
    name: asciiText(name),
    city: asciiText(fields.get('merchant.city') ?? account.city).slice(0, 13),
    state: asciiText(fields.get('merchant.state') ?? account.state),
    country: asciiText(fields.get('merchant.country') ?? account.country).toUpperCase(),
  }
}

export const categoryOf = (fields: OperationFields, account: AcquirerAccountData): string => {
  const code = fields.get('merchant.mcc')
  return code !== undefined && /^\d{4}$/.test(code) ? code : account.category
}
