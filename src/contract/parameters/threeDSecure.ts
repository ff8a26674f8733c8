// 3-D Secure: how a payment is to be authenticated, or the result of an authentication that the merchant made elsewhere.

import { AN, amount, oneWordOf, shaped } from '../formats.ts'
import { currency } from './common.ts'
import type { Parameters } from './parameter.ts'

const two = (label: string, from: number, to: number) =>
  shaped(`${label}, with or without the leading zero`, `^0?[${from}-${to}]$`, [`0${from}`, String(to)], [`0${to + 1}`, '00', '', '010'])
const uuid = shaped('UUID', '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$', ['8a829417-4b7e-4b28-814b-9699220015ca'], ['8a8294174b7ecb28014b9699220015ca', ''])

export const threeDSecure = {
  // How to authenticate.
  'threeDSecure.amount':             { format: amount, keep: true, default: 'amount', note: 'risk.amount counts before it.' },
  'threeDSecure.currency':           { format: currency, keep: true, default: 'currency' },
  'threeDSecure.challengeIndicator': { format: two('01 to 09', 1, 9), echo: true, note: '01 no preference, 02 no challenge, 03 challenge wanted, 04 challenge mandated.' },
  'threeDSecure.exemptionFlag':      { format: two('01 to 04', 1, 4), echo: true, note: '01 low value, 02 transaction risk analysis, 03 trusted merchant, 04 corporate.' },
  'threeDSecure.disable':            { format: oneWordOf('true', 'false'), keep: true },
  'threeDSecure.authenticationInd':  { format: two('01 to 06', 1, 6), keep: true },

  // The result of an authentication made elsewhere.
  'threeDSecure.eci':                    { format: shaped('N2', '^0[0-7]$', ['05', '00'], ['5', '08', 'xx']), echo: true },
  'threeDSecure.verificationId':         { format: shaped('CAVV, AAV or AEVV: 28 base64 characters', '^[A-Za-z0-9+\\/]{27}=$', ['AAABBZEEBgAAAAAAAAQGAAAAAAA='], ['AAA', '', 'AAABBZEEBgAAAAAAAAQGAAAAAAAA']), echo: true },
  'threeDSecure.version':                { format: shaped('1 or 2.x.x', '^(1|1\\.0\\.2|2\\.[0-9]\\.[0-9])$', ['2.2.0', '1.0.2'], ['3', '2.2', '']), echo: true },
  'threeDSecure.xid':                    { format: AN(40), echo: true, cardNumbers: 'byChance' },
  'threeDSecure.dsTransactionId':        { format: uuid, echo: true, cardNumbers: 'byChance' },
  'threeDSecure.acsTransactionId':       { format: uuid, echo: true, cardNumbers: 'byChance' },
  'threeDSecure.authenticationStatus':   { format: oneWordOf('Y', 'A', 'N', 'U', 'R', 'I'), echo: true },
  'threeDSecure.flow':                   { format: oneWordOf('challenge', 'frictionless'), echo: true },
  'threeDSecure.transactionStatusReason': { format: shaped('N2', '^[0-9]{2}$', ['01'], ['1', '100']), echo: true },
  'threeDSecure.challengeMandatedIndicator': { format: oneWordOf('Y', 'N'), echo: true },
} satisfies Parameters
