// Which data element carries which parameter. What is not listed stays in the house: `notForwarded` names it, so that a test can hold the two
// lists against the parameter table (decisions, 46 and 47).

import { valueNamed } from '../../../contract/parameters/table.ts'
import type { Operation } from '../../connector.ts'
import { asciiText, privateText, tags } from './privateData.ts'

/** What an acquirer knows the merchant by. */
export type AcquirerAccountData = {
  /** DE32 and the original data. */
  readonly acquirerId: string
  /** DE42. */
  readonly merchantId: string
  /** DE18, unless merchant.mcc says otherwise. */
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

export const forwarded: Readonly<Record<string, string>> = {
  'card.number': 'DE2',
  'card.expiryMonth': 'DE14',
  'card.expiryYear': 'DE14',
  'card.cvv': 'DE48 tag 92',
  amount: 'DE4',
  currency: 'DE49',
  paymentType: 'type indicator and DE3',
  descriptor: 'DE43, the name',
  'merchant.name': 'DE43, the name',
  'merchant.city': 'DE43, the city',
  'merchant.state': 'DE43, the state',
  'merchant.country': 'DE43, the country',
  'merchant.mcc': 'DE18',
  'merchant.submerchantId': 'DE48 tag 37, on facilitator accounts',
  'billing.street1': 'DE48 tag 82',
  'billing.houseNumber1': 'DE48 tag 82',
  'billing.postcode': 'DE48 tag 82',
  'standingInstruction.type': 'DE48 tag 22 and DE22',
  'standingInstruction.mode': 'DE48 tag 22 and DE22',
  'standingInstruction.source': 'DE48 tag 22',
  'standingInstruction.initialTransactionId': 'DE48 tag 63',
  recurringType: 'DE48 tag 22 and DE22, when standingInstruction is absent',
  'recurring.numberOfInstallments': 'DE48 tag 20',
  'airline.bookingRefNum': 'DE48 tag 32',
  'airline.passengers[n].ticketNumber': 'DE48 tag 31, of the first passenger',
  'threeDSecure.eci': 'DE48 tag 42',
  'threeDSecure.verificationId': 'DE48 tag 43',
  'threeDSecure.dsTransactionId': 'DE48 tag 66',
}

/** Whole groups, or single names, that no acquirer is told. */
export const notForwarded: readonly string[] = [
  'entityId',
  'authentication.',
  'paymentBrand',
  'overridePaymentType',
  'merchantTransactionId',
  'merchantInvoiceId',
  'transactionCategory',
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

/** The payment repeats an agreement on stored card data. */
export const isOnFile = (fields: OperationFields): boolean =>
  (fields.get('standingInstruction.mode') ?? fields.get('recurringType')) === 'REPEATED'

/** DE48 of a first payment, by tag. */
export function privateValues(
  { fields, card, authentication }: Pick<Operation, 'fields' | 'card' | 'authentication'>,
  account: AcquirerAccountData,
): Map<string, string> {
  // Our own authentication, or the results of one made elsewhere.
  const authenticated = (name: 'eci' | 'verificationId' | 'dsTransactionId') =>
    authentication?.[name] ?? fields.get(`threeDSecure.${name}`)
  const address = [fields.get('billing.postcode'), fields.get('billing.houseNumber1'), fields.get('billing.street1')]
  const rows: readonly (readonly [string, string | undefined])[] = [
    [tags.instalments, fields.get('recurring.numberOfInstallments')],
    [tags.cardOnFile, cardOnFile(fields)],
    [tags.airlineTicket, fields.get('airline.passengers[0].ticketNumber')],
    [tags.airlineReference, fields.get('airline.bookingRefNum')],
    [tags.submerchant, account.facilitator ? fields.get('merchant.submerchantId') : undefined],
    [tags.electronicCommerce, authenticated('eci')],
    [tags.cryptogram, authenticated('verificationId')],
    [tags.networkTransaction, valueNamed(fields, 'standingInstruction.initialTransactionId')],
    [tags.authenticationTransaction, authenticated('dsTransactionId')],
    [tags.address, address.some(part => part !== undefined) ? address.map(part => part ?? '').join(' ') : undefined],
    [tags.cvv, card?.cvv],
  ]
  return new Map(rows.filter(([, value]) => value !== undefined).map(([tag, value]) => [tag, privateText(value!)]))
}

const agreements: Readonly<Record<string, string>> = { UNSCHEDULED: '01', RECURRING: '03', INSTALLMENT: '04' }

/** C = the shopper starts it, M = the merchant does: C101 unscheduled, C103 subscription, C104 instalments, M101 … likewise. */
function cardOnFile(fields: OperationFields): string | undefined {
  const mode = fields.get('standingInstruction.mode') ?? fields.get('recurringType')
  if (mode === undefined) return undefined
  const type = fields.get('standingInstruction.type') ?? 'RECURRING'
  const source = fields.get('standingInstruction.source') ?? (mode === 'REPEATED' ? 'MIT' : 'CIT')
  return `${source === 'MIT' ? 'M1' : 'C1'}${agreements[type]}`
}

/** DE43: name 23, city 13, state 2, country 2. What the request overrides comes first. */
export function nameAndPlace(fields: OperationFields, account: AcquirerAccountData): string {
  const name =
    fields.get('merchant.name') ?? (account.statement === 'descriptor' ? fields.get('descriptor') : undefined) ?? account.name
  const fixed = (text: string, length: number) => asciiText(text).slice(0, length).padEnd(length)
  return (
    fixed(name, 23) +
    fixed(fields.get('merchant.city') ?? account.city, 13) +
    fixed(fields.get('merchant.state') ?? account.state, 2) +
    fixed((fields.get('merchant.country') ?? account.country).toUpperCase(), 2)
  )
}

export const categoryOf = (fields: OperationFields, account: AcquirerAccountData): string => {
  const code = fields.get('merchant.mcc')
  return code !== undefined && /^\d{4}$/.test(code) ? code : account.category
}
