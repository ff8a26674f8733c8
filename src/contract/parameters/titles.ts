// What the groups of parameters are called, for people.

import type { Group } from './table.ts'

export const groupTitles: Readonly<Record<Group, string>> = {
  common: 'Common parameters',
  authentication: 'Older credentials',
  card: 'Card',
  standingInstruction: 'Card on file',
  virtualAccount: 'Account-based methods',
  customer: 'Customer',
  'shipping.customer': 'Customer at the shipping address',
  billing: 'Billing address',
  shipping: 'Shipping address',
  merchant: 'Statement overrides and sub-merchants',
  cart: 'Cart',
  airline: 'Airline',
  registration: 'Registration, recurring payments and custom data',
  giftCard: 'Gift card',
  asynchronous: 'Asynchronous flow',
  risk: 'Risk',
  browser: 'Browser of the shopper',
  threeDSecure: '3-D Secure',
  checkout: 'Checkouts',
  reporting: 'Reports',
  query: 'Searches',
}
