// What the examples of the reference send, operation by operation: enough to get a good answer from a sandbox.

import type { ApiOperation } from '../../contract/operations.ts'
import type { SampleFields } from './browser/programs.ts'

type OwnFields = { readonly [name: string]: string }

const money = { amount: '92.00', currency: 'EUR' }
const order = { merchantTransactionId: 'order-1001' }
const card = {
  paymentBrand: 'VISA',
  'card.number': '4200000000000000',
  'card.holder': 'Jane Jones',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
}

const samples: Readonly<Record<string, (today: string) => OwnFields>> = {
  pay: () => ({ paymentType: 'DB', ...money, ...card, ...order }),
  listPayments: () => order,
  followUpPayment: () => ({ paymentType: 'RF', amount: '10.00', currency: 'EUR' }),
  readPayment: () => ({}),
  authenticate: () => ({
    ...money,
    ...card,
    shopperResultUrl: 'https://shop.example/back',
    'customParameters[3DS2_enrolled]': 'true',
  }),
  readAuthentication: () => ({}),
  createCheckout: () => ({ paymentType: 'DB', ...money, ...order }),
  updateCheckout: () => ({ amount: '95.00', currency: 'EUR' }),
  deleteCheckout: () => ({}),
  readCheckoutPayment: () => ({}),
  readCheckoutRegistration: () => ({}),
  register: () => card,
  readRegistration: () => ({}),
  deleteRegistration: () => ({}),
  payByRegistration: () => ({ paymentType: 'DB', ...money }),
  queryPayments: () => order,
  queryPayment: () => ({}),
  searchPayments: today => ({ 'date.from': today, 'date.to': today, limit: '10' }),
  searchPayment: () => ({ includeLinkedTransactions: 'true' }),
  reportSettlement: today => ({ 'date.from': today, 'date.to': today }),
  reportSettlementV1: () => ({ sortValue: 'SettlementTxDate', sortOrder: 'DESC' }),
  reportSettlementV2: () => ({ pageNo: '1' }),
  listResultCodes: () => ({}),
  health: () => ({}),
  live: () => ({}),
  ready: () => ({}),
  advanceClock: () => ({ advance: '29m' }),
  readNotifications: () => ({ name: 'reference', wait: '0' }),
}

/** The fields of an example; undefined for what only shoppers' browsers send. */
export function sampleOf({ id, open }: ApiOperation, entityId: string, today: string): SampleFields | undefined {
  const own = samples[id]?.(today)
  return own && Object.entries({ ...(!open && { entityId }), ...own })
}
