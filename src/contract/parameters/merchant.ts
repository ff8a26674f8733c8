// Overrides of the merchant's lines on the shopper's statement, and sub-merchants of payment facilitators.

import { AN, ascii, countryOfEitherCase, lettersAndDigits } from '../formats.ts'
import type { Parameters } from './parameter.ts'

export const merchant = {
  'merchant.name':          { format: AN(100), echo: true, descriptive: true, note: 'Normally the first statement line.' },
  'merchant.city':          { format: AN(100), echo: true, descriptive: true, note: 'City, phone, e-mail or URL; normally the second statement line.' },
  'merchant.street':        { format: AN(100), echo: true, descriptive: true },
  'merchant.postcode':      { format: ascii('A-Za-z0-9\\-', 10), echo: true, descriptive: true },
  'merchant.state':         { format: lettersAndDigits(50), echo: true, descriptive: true },
  'merchant.country':       { format: countryOfEitherCase, echo: true, descriptive: true },
  'merchant.phone':         { format: ascii('A-Za-z0-9+.\\-', 25), echo: true, descriptive: true, cardNumbers: 'byChance' },
  'merchant.mcc':           { format: AN(4), echo: true, descriptive: true },
  'merchant.submerchantId': { format: AN(100), echo: true, descriptive: true, note: 'Only for sub-merchants of payment facilitators.', cardNumbers: 'byChance' },
} satisfies Parameters
