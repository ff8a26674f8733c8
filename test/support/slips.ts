// Requests for slips of the sandbox's accounts for show.

import { type Fields, sandbox } from './gateway.ts'

export const boleto: Fields = {
  entityId: sandbox.entityId,
  paymentType: 'PA',
  paymentBrand: 'BOLETO',
  amount: '123.45',
  currency: 'BRL',
  shopperResultUrl: 'https://shop.example/done',
  descriptor: 'Loja de Exemplo',
  merchantTransactionId: 'order-0042',
  'customer.givenName': 'João',
  'customer.surname': 'da Silva',
  'customer.merchantCustomerId': 'customer-1',
  'customer.email': 'joao@example.com',
  'customer.ip': '192.0.2.1',
  'billing.street1': 'Rua São José, 12 - apto 4',
  'billing.city': 'São Paulo',
  'billing.state': 'SP',
  'billing.postcode': '01310100',
  'billing.country': 'BR',
  'customParameters[CUSTOM_CPF_number]': '11144477735',
  'customParameters[merchant_sitename]': 'Loja de Exemplo',
  'customParameters[product]': 'Livro',
}
export const oxxo: Fields = {
  entityId: sandbox.entityId,
  paymentType: 'PA',
  paymentBrand: 'OXXO',
  amount: '123.45',
  currency: 'MXN',
  'customer.givenName': 'Ana',
  'customer.surname': 'López',
  'customer.email': 'ana@example.com',
  'customer.ip': '192.0.2.1',
  'customParameters[merchant_sitename]': 'Tienda',
}
