// The items of the cart. Indexes begin at 0 and leave no gap.

import { AN, amount, N, percentage, prose } from '../formats.ts'
import { currency } from './common.ts'
import type { Parameters } from './parameter.ts'

const byMethod = 'by some methods'

export const cart = {
  'cart.items[n].name':                   { format: AN(255), echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].merchantItemId':         { format: AN(255), echo: true, descriptive: true, needed: byMethod, cardNumbers: 'byChance' },
  'cart.items[n].type':                   { format: AN(255), echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].description':            { format: prose(2048), echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].quantity':               { format: N(5), echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].currency':               { format: currency, echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].price':                  { format: amount, echo: true, descriptive: true, needed: byMethod, note: 'With tax and discount, independent of quantity.' },
  'cart.items[n].shipping':               { format: amount, echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].tax':                    { format: percentage, echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].discount':               { format: amount, echo: true, descriptive: true, needed: byMethod },
  'cart.items[n].sku':                    { format: AN(255), echo: true, descriptive: true, cardNumbers: 'byChance' },
  'cart.items[n].giftMessage':            { format: AN(255), echo: true, descriptive: true },
  'cart.items[n].shippingMethod':         { format: AN(255), echo: true, descriptive: true },
  'cart.items[n].shippingInstructions':   { format: AN(255), echo: true, descriptive: true },
  'cart.items[n].shippingTrackingNumber': { format: AN(255), echo: true, descriptive: true, cardNumbers: 'byChance' },
  'cart.items[n].originalPrice':          { format: amount, echo: true, descriptive: true, note: 'Before discounts.' },
} satisfies Parameters
