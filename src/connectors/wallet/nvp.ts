// Name-value pairs as the wallet speaks them (version 124): from an operation to a request, and from an answer's text to its fields. Pure.

import { amountText, hundredths } from '../../contract/amounts.ts'
import { type Values, valueNamed } from '../../contract/parameters/table.ts'
import { formPairs, type TextBounds } from '../../platform/answerText.ts'
import type { ConnectorState, Operation } from '../connector.ts'

export type Pairs = Readonly<Record<string, string>>
export type WalletCredentials = { readonly user: string; readonly password: string; readonly signature: string }

export const nvpVersion = '124.0'

/** The wallet says each item of a cart again, in eighteen pairs, its name in two of them, in nine signs a letter: those of the largest cart that a request may hold. */
export const walletBounds: TextBounds = { length: 3 * 1024 * 1024, parts: 20_000 }

/** None when they are more than an answer has. */
export function readPairs(text: string): Pairs {
  const pairs: Record<string, string> = Object.create(null)
  for (const [name, value] of formPairs(text, walletBounds)) pairs[name.toUpperCase()] = value
  return pairs
}

export const writePairs = (pairs: Pairs): string => new URLSearchParams({ ...pairs }).toString()

export const signed = ({ user, password, signature }: WalletCredentials, method: string, pairs: Pairs): Pairs => ({
  USER: user,
  PWD: password,
  SIGNATURE: signature,
  VERSION: nvpVersion,
  METHOD: method,
  ...pairs,
})

/** The wallet wants no decimals of these currencies. */
const wholeOnly: ReadonlySet<string> = new Set(['HUF', 'JPY', 'TWD'])

export const isTooFine = (amount: number, currency: string): boolean => wholeOnly.has(currency) && amount % 100 !== 0

const money = (amount: number, currency: string): string => (wholeOnly.has(currency) ? String(amount / 100) : amountText(amount))

const actions: Readonly<Record<string, string>> = { PA: 'Authorization', DB: 'Sale' }

/** What begins a payment: the wallet answers with the token that the buyer takes along. */
export function setCheckout(operation: Operation): Pairs {
  const { fields, addresses, shopName } = operation
  return {
    ...order(operation),
    RETURNURL: addresses!.back,
    CANCELURL: addresses!.cancel,
    ...optional('LOCALECODE', fields.get('billing.country')),
    ...optional('EMAIL', fields.get('customer.email')),
    ...optional('BRANDNAME', shopName),
    ...shipTo(fields),
    ...items(operation),
  }
}

/** The amount and its purpose. The invoice number is merchantTransactionId: merchantInvoiceId never goes onward (decisions, 46). */
function order({ type, amount, currency, fields }: Operation): Pairs {
  return {
    PAYMENTREQUEST_0_PAYMENTACTION: actions[type]!,
    PAYMENTREQUEST_0_AMT: money(amount, currency),
    PAYMENTREQUEST_0_CURRENCYCODE: currency,
    ...optional('PAYMENTREQUEST_0_INVNUM', fields.get('merchantTransactionId')?.slice(0, 127)),
    ...optional(
      'PAYMENTREQUEST_0_SOFTDESCRIPTOR',
      fields
        .get('descriptor')
        ?.replace(/[^A-Za-z0-9 .*-]/g, '')
        .slice(0, 22),
    ),
  }
}

const shipping: Readonly<Record<string, string>> = {
  SHIPTOSTREET: 'shipping.street1',
  SHIPTOSTREET2: 'shipping.street2',
  SHIPTOCITY: 'shipping.city',
  SHIPTOSTATE: 'shipping.state',
  SHIPTOZIP: 'shipping.postcode',
  SHIPTOCOUNTRYCODE: 'shipping.country',
}

/** A shipping address goes along only when it is whole. */
function shipTo(fields: Values): Pairs {
  if (!(['shipping.street1', 'shipping.city', 'shipping.country'] as const).every(name => fields.has(name))) return {}
  const name = (['givenName', 'surname'] as const)
    .map(part => fields.get(`shipping.customer.${part}`) ?? fields.get(`customer.${part}`) ?? '')
    .join(' ')
    .trim()
  const pairs = Object.entries(shipping).flatMap(([pair, field]) => {
    const value = valueNamed(fields, field)
    return value === undefined ? [] : [[`PAYMENTREQUEST_0_${pair}`, value.slice(0, 100)] as const]
  })
  return Object.fromEntries([...(name === '' ? [] : [['PAYMENTREQUEST_0_SHIPTONAME', name.slice(0, 128)] as const]), ...pairs])
}

/** Cart items, only if they add up to the amount; the wallet refuses sums that are off by a hundredth (decisions, 46). */
export function items({ fields, amount, currency }: Operation): Pairs {
  const pairs: Record<string, string> = {}
  let [sum, shippingSum] = [0, 0]
  let at = 0
  for (; fields.has(`cart.items[${at}].price`); at++) {
    const item = (name: string) => valueNamed(fields, `cart.items[${at}].${name}`)
    const quantity = Number(item('quantity') ?? '1')
    const price = hundredths(item('price')!)
    if ((item('currency') ?? currency) !== currency) return {}
    sum += price * quantity
    shippingSum += item('shipping') === undefined ? 0 : hundredths(item('shipping')!)
    pairs[`L_PAYMENTREQUEST_0_NAME${at}`] = (item('name') ?? item('merchantItemId') ?? `Item ${at + 1}`).slice(0, 127)
    pairs[`L_PAYMENTREQUEST_0_AMT${at}`] = money(price, currency)
    pairs[`L_PAYMENTREQUEST_0_QTY${at}`] = String(quantity)
  }
  if (at === 0 || sum + shippingSum !== amount) return {}
  return {
    ...pairs,
    PAYMENTREQUEST_0_ITEMAMT: money(sum, currency),
    ...(shippingSum > 0 && { PAYMENTREQUEST_0_SHIPPINGAMT: money(shippingSum, currency) }),
  }
}

/** The payment itself. MSGSUBID makes a repetition harmless: the wallet answers the first one again. */
export const doCheckout = (operation: Operation, token: string, payerId: string): Pairs => ({
  ...order(operation),
  TOKEN: token,
  PAYERID: payerId,
  MSGSUBID: operation.paymentId,
})

/** Capture, refund and reversal, by the transaction that the wallet gave the payment. */
export function followUpRequest(operation: Operation): { readonly method: string; readonly pairs: Pairs } {
  const { type, amount, currency, reference, paymentId, recovering } = operation
  // What is taken back is another message than the one that recovery takes back, which has the payment's id.
  const MSGSUBID = recovering ? `${paymentId}-RV` : paymentId
  const transaction = reference?.kept.TRANSACTIONID ?? ''
  const sum = { AMT: money(amount, currency), CURRENCYCODE: currency }
  if (type === 'CP')
    return {
      method: 'DoCapture',
      pairs: { AUTHORIZATIONID: transaction, ...sum, COMPLETETYPE: 'Complete', MSGSUBID },
    }
  if (type === 'RV' && reference?.type === 'PA') return { method: 'DoVoid', pairs: { AUTHORIZATIONID: transaction, MSGSUBID } }
  const full = amount === reference?.amount
  return {
    method: 'RefundTransaction',
    pairs: {
      TRANSACTIONID: reference?.captureKept?.TRANSACTIONID ?? transaction,
      REFUNDTYPE: full ? 'Full' : 'Partial',
      ...(!full && sum),
      ...(full && { CURRENCYCODE: currency }),
      MSGSUBID,
    },
  }
}

/** Names that the answer's resultDetails carry. */
export const detailNames = ['CORRELATIONID', 'PAYERID', 'TAXIDTYPE', 'TAXID', 'SHIPTOSTATE'] as const

/** What of the buyer is kept for the answer. */
export function buyerOf(details: Pairs): { readonly details: ConnectorState; readonly account: ConnectorState } {
  const found: Record<string, string> = {}
  for (const name of ['PAYERID', 'TAXIDTYPE', 'TAXID']) if (details[name] !== undefined) found[name] = details[name]
  const state = details.SHIPTOSTATE ?? details.PAYMENTREQUEST_0_SHIPTOSTATE
  if (state !== undefined) found.SHIPTOSTATE = state
  const holder = [details.FIRSTNAME, details.LASTNAME].filter(part => part !== undefined).join(' ')
  return {
    details: found,
    account: { ...optional('accountId', details.EMAIL), ...(holder !== '' && { holder }) },
  }
}

function optional(name: string, value: string | undefined): Pairs {
  return value === undefined || value === '' ? {} : { [name]: value }
}
