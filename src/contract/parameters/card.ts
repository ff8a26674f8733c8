// Card data. The number and the CVV leave the request only toward a connector, or sealed.

import { A, N, shaped } from '../formats.ts'
import type { Parameters } from './parameter.ts'

export const card = {
  'card.holder':      { format: A(128, 3), echo: true, descriptive: true },
  'card.number':      { format: N(19, 12), secret: true, needed: 'for cards', cardNumbers: 'belong' },
  'card.expiryMonth': { format: shaped('01 to 12', '^(0[1-9]|1[0-2])$', ['01', '12'], ['00', '13', '1', '001']), echo: true, needed: 'for cards' },
  'card.expiryYear':  { format: shaped('4 digits, starting 19 or 20', '^(19|20)[0-9]{2}$', ['1900', '2099'], ['1899', '2100', '34', '20345']), echo: true, needed: 'for cards' },
  'card.cvv':         { format: N(4, 3), secret: true, needed: 'by the brand, unless the payment repeats an agreed one' },
} satisfies Parameters
