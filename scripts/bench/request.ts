// The request that the bench sends: a card debit with 25 parameters, about 660 bytes, as a web shop would send it.

/** A request in two pieces; the merchantTransactionId goes between them, so that sending costs one concatenation. */
export type RequestPieces = { readonly before: string; readonly after: string }

/** Every merchantTransactionId has this length, so that every request has the same. */
export const transactionIdLength = 24

export const transactionId = (prefix: string, number: number): string =>
  prefix + String(number).padStart(transactionIdLength - prefix.length, '0')

const beforeId = (entityId: string) => ({
  entityId,
  amount: '92.00',
  currency: 'EUR',
  paymentBrand: 'VISA',
  paymentType: 'DB',
  'card.number': '4200000000000000',
  'card.holder': 'Jane Jones',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
})

const afterId = {
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

export function paymentRequest(entityId: string, accessToken: string, testMode?: string): RequestPieces {
  const mode = testMode === undefined ? {} : { testMode }
  const bodyBefore = `${new URLSearchParams({ ...beforeId(entityId), ...mode })}&merchantTransactionId=`
  const bodyAfter = `&${new URLSearchParams(afterId)}`
  const head = [
    'POST /v1/payments HTTP/1.1',
    'Host: 127.0.0.1',
    `Authorization: Bearer ${accessToken}`,
    'Content-Type: application/x-www-form-urlencoded; charset=UTF-8',
    `Content-Length: ${bodyBefore.length + transactionIdLength + bodyAfter.length}`,
  ].join('\r\n')
  return { before: `${head}\r\n\r\n${bodyBefore}`, after: bodyAfter }
}
