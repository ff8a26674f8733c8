// 3-D Secure without a payment: what a request to /v1/threeDSecure is to be.

import { authenticationAmount } from '../../connectors/cards/threeDSecure/build.ts'
import { authenticationConnector, modeOf } from '../../connectors/registry.ts'
import { hundredths } from '../../contract/amounts.ts'
import { currentName } from '../../contract/brands.ts'
import { brandOf, cardOf, inexpressible, isMode, keep, noRegistration, registers, resultUrlWrong } from './choose.ts'
import type { Choose } from './pay.ts'

export const chooseAuthentication: Choose = (values, channel, { connectors, methods, cardBrands, sandbox }, now) => {
  const mode = modeOf(channel.settings, values.get('testMode'))
  if (channel.settings.disabled) return { refused: 'channelDisabled', stored: true }
  if (!isMode(mode)) return { refused: mode, stored: true }
  if (methods.has(currentName(values.get('paymentBrand') ?? ''))) return keep('typeNotForBrand', 'paymentBrand', 'is no card')
  const brand = brandOf(values, channel, cardBrands)
  if ('refused' in brand) return brand
  if (registers(values)) return keep(...noRegistration)
  const card = cardOf(new Map([...values, ['paymentType', 'CD']]), brand, channel, cardBrands, now) // no CVV is needed where nothing is authorized
  if ('refused' in card) return card
  const connector = authenticationConnector(connectors, mode)
  if (typeof connector === 'string') return { refused: connector, stored: true }
  const amount = hundredths(values.get('amount')!)
  const currency = values.get('currency')!
  const wrong = inexpressible(authenticationAmount(values, amount, currency)) ?? resultUrlWrong(values, channel, sandbox)
  if (wrong) return wrong
  return { type: '3D', capture: false, amount, currency, mode, brand: brand.name, connector, card, redirects: true }
}
