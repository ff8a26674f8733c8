// The requests that the bench sends. A first payment is a card payment with 25 parameters, about 660 bytes, as a web shop would send it.

/** First payments, those that lock the chain of one, and a reading. */
export type RequestType = FirstType | 'CP' | 'RF' | 'RV' | 'read'
export type FirstType = 'DB' | 'PA'

/**
 * A request in pieces, so that sending costs one concatenation: `start`, the id of the first payment that it follows, `before`, and where it has a
 * merchantTransactionId that and `after`.
 */
export type RequestPieces = {
  readonly type: RequestType
  readonly start: string
  readonly follows?: FirstType
  readonly before: string
  readonly after?: string
}

/** Every merchantTransactionId has this length, so that every request has the same. */
export const transactionIdLength = 24

export const transactionId = (prefix: string, number: number): string =>
  prefix + String(number).padStart(transactionIdLength - prefix.length, '0')

/** Whose payments they are. */
export type Account = { readonly entityId: string; readonly accessToken: string }

const money = { amount: '92.00', currency: 'EUR' }

const card = {
  paymentBrand: 'VISA',
  'card.number': '4200000000000000',
  'card.holder': 'Jane Jones',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
}

const shopper = {
  merchantInvoiceId: 'INV-2026-004711',
  descriptor: 'Shoes and socks',
  'customer.merchantCustomerId': 'C-1048576',
  'customer.givenName': 'Jane',
  'customer.surname': 'Jones',
  'customer.email': 'jane.jones@shop.example',
  'customer.phone': '+49 89 1234567',
  'customer.ip': '192.0.2.77',
  'billing.street1': 'Schillerstrasse 9',
  'billing.city': 'Munich',
  'billing.postcode': '80336',
  'billing.country': 'DE',
  shopperResultUrl: 'https://shop.example/checkout/return',
  'customParameters[segment]': 'spring',
}

export function firstPayment({ entityId, accessToken }: Account, type: FirstType, testMode?: string): RequestPieces {
  const mode = testMode === undefined ? {} : { testMode }
  const begin = form({ entityId, ...money, paymentType: type, ...card, ...mode })
  return { type, ...posted(accessToken, 'POST /v1/payments', begin, `&${form(shopper)}`) }
}

/** A capture, refund or reversal of all of a first payment. */
export function followUp({ entityId, accessToken }: Account, type: 'CP' | 'RF' | 'RV', follows: FirstType): RequestPieces {
  const begin = form({ entityId, paymentType: type, ...(type !== 'RV' && money) })
  return { type, follows, ...posted(accessToken, 'POST /v1/payments/', begin, '') }
}

export const reading = ({ entityId, accessToken }: Account, follows: FirstType): RequestPieces => ({
  type: 'read',
  follows,
  start: 'GET /v1/payments/',
  before: `?${form({ entityId })} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${accessToken}\r\n\r\n`,
})

/** Of twenty requests 14 are debits, 2 preauthorizations, 2 captures, 1 is a refund and 1 a reading; what is captured, refunded and read was paid in it. */
export function mixedRequests(account: Account): RequestPieces[] {
  const debits = (count: number) => Array.from({ length: count }, () => firstPayment(account, 'DB'))
  const half = [...debits(3), firstPayment(account, 'PA'), ...debits(4), followUp(account, 'CP', 'PA')]
  return [...half, followUp(account, 'RF', 'DB'), ...half, reading(account, 'DB')]
}

const form = (fields: Readonly<Record<string, string>>) => new URLSearchParams(fields).toString()

function posted(
  accessToken: string,
  start: string,
  begin: string,
  after: string,
): Required<Pick<RequestPieces, 'start' | 'before' | 'after'>> {
  const body = `${begin}&merchantTransactionId=`
  const head = [
    ' HTTP/1.1',
    'Host: 127.0.0.1',
    `Authorization: Bearer ${accessToken}`,
    'Content-Type: application/x-www-form-urlencoded; charset=UTF-8',
    `Content-Length: ${body.length + transactionIdLength + after.length}`,
  ].join('\r\n')
  return { start, before: `${head}\r\n\r\n${body}`, after }
}
