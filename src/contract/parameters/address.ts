// Billing and shipping addresses.

import { A, AN, country, countryOfEitherCase, date, lettersAndDigits, oneWordOf } from '../formats.ts'
import type { Parameters } from './parameter.ts'

const byMethod = 'by some methods and risk checks'

export const billing = {
  'billing.street1':      { format: AN(100), echo: true, descriptive: true, needed: byMethod, note: 'Only the street name when houseNumber1 is sent.' },
  'billing.street2':      { format: AN(100), echo: true, descriptive: true, needed: byMethod, note: 'Ignored when houseNumber1 is sent.' },
  'billing.houseNumber1': { format: AN(100), echo: true, descriptive: true },
  'billing.houseNumber2': { format: AN(100), echo: true, descriptive: true, note: 'Requires houseNumber1.' },
  'billing.city':         { format: AN(80), echo: true, descriptive: true, needed: byMethod },
  'billing.state':        { format: lettersAndDigits(50, '.'), echo: true, descriptive: true, needed: byMethod },
  'billing.postcode':     { format: lettersAndDigits(30), echo: true, descriptive: true, needed: byMethod },
  'billing.country':      { format: country, echo: true, descriptive: true, needed: byMethod },
} satisfies Parameters

export const shipping = {
  'shipping.street1':      { format: AN(100), echo: true, descriptive: true, needed: byMethod, note: 'Only the street name when houseNumber1 is sent.' },
  'shipping.street2':      { format: AN(100), echo: true, descriptive: true, needed: byMethod, note: 'Ignored when houseNumber1 is sent.' },
  'shipping.houseNumber1': { format: AN(100), echo: true, descriptive: true },
  'shipping.houseNumber2': { format: AN(100), echo: true, descriptive: true, note: 'Requires houseNumber1.' },
  'shipping.city':         { format: A(80), echo: true, descriptive: true, needed: byMethod },
  'shipping.state':        { format: lettersAndDigits(50, '.'), echo: true, descriptive: true, needed: byMethod },
  'shipping.postcode':     { format: lettersAndDigits(30), echo: true, descriptive: true, needed: byMethod },
  'shipping.country':      { format: countryOfEitherCase, echo: true, descriptive: true, needed: byMethod },
  'shipping.method': {
    format: oneWordOf(
      'LOWEST_COST', 'CARRIER_DESIGNATED_BY_CUSTOMER', 'ELECTRONIC_DELIVERY', 'GROUND', 'INTERNATIONAL', 'MILITARY', 'NEXT_DAY_OVERNIGHT', 'OTHER',
      'STORE_PICKUP', 'SAME_DAY_SERVICE', 'TWO_DAY_SERVICE', 'THREE_DAY_SERVICE',
    ),
    echo: true, descriptive: true, needed: byMethod,
  },
  'shipping.comment':           { format: AN(160), echo: true, descriptive: true, needed: byMethod },
  'shipping.expectedDate':      { format: date, echo: true, descriptive: true },
  'shipping.logisticsProvider': { format: AN(255), echo: true, descriptive: true },
  'shipping.trackingNumber':    { format: AN(255), echo: true, descriptive: true, cardNumbers: 'byChance' },
} satisfies Parameters
