// What a first payment is to be: its type, brand, mode and connector, and the card that pays. Ordered checks; the first that fails names the refusal.

import { authenticationAmount, enrolmentAsked } from '../../connectors/cards/threeDSecure/build.ts'
import { eciKnown, eciTable } from '../../connectors/cards/threeDSecure/statuses.ts'
import type { Connector, Mode, OperationType } from '../../connectors/connector.ts'
import { minorUnits } from '../../connectors/minorUnits.ts'
import { type Connectors, cardConnector, type Method, type Methods, methodConnector, modeOf } from '../../connectors/registry.ts'
import { hundredths } from '../../contract/amounts.ts'
import { type CardBrand, type CardBrands, currentName, otherBrands } from '../../contract/brands.ts'
import type { Card } from '../../contract/card.ts'
import type { ParameterError } from '../../contract/formCheck.ts'
import { hasLuhnDigit } from '../../contract/luhn.ts'
import { type Values, valueNamed } from '../../contract/parameters/table.ts'
import type { ResultName } from '../../contract/results/results.ts'
import type { Channel } from '../../merchants/directory.ts'

export type Choice = {
  readonly type: Extract<OperationType, 'PA' | 'DB' | 'CD' | '3D'>
  /** PA.CP: the preauthorization is captured at once. */
  readonly capture: boolean
  readonly amount: number
  readonly currency: string
  readonly mode: Mode
  readonly brand: string
  readonly connector: Connector
  /** Only for card brands. */
  readonly card?: Card
  /** The shopper may be sent away. */
  readonly redirects: boolean
  /** Nothing is held or cleared: a slip is issued. */
  readonly slip?: true
}

/** A refusal. Those of the request's form leave no row; those of card, brand and channel are kept with an id (decisions, 15). */
export type Refusal = {
  readonly refused: ResultName
  readonly stored: boolean
  readonly parameterErrors?: readonly ParameterError[]
}

/** What this process offers. */
export type Offer = {
  readonly connectors: Connectors
  readonly methods: Methods
  readonly cardBrands: CardBrands
  readonly sandbox: boolean
}

export function choose(values: Values, channel: Channel, offer: Offer, now: number): Choice | Refusal {
  const { connectors } = offer
  const asked = values.get('paymentType')!
  const type = initialTypes[asked]
  if (type === undefined) return form(refusedTypes[asked] ?? 'typeUnknown', 'paymentType')
  const amount = hundredths(values.get('amount')!)
  const settings = channel.settings
  // An account check moves nothing.
  const checks = asked === 'PA' && settings.accountChecks
  if (amount === 0 && !checks) return form('zeroAmount', 'amount')
  const currency = values.get('currency')!
  const { paymentTypes, currencies } = settings
  if (settings.disabled) return keep('channelDisabled')
  if (paymentTypes.length > 0 && !paymentTypes.includes(type)) return keep('channelLacksType')
  if (currencies.length > 0 && !currencies.includes(currency)) return keep('currencyNotOnChannel')
  const tooFine = inexpressible({ name: 'amount', amount, currency })
  if (tooFine) return tooFine
  const mode = modeOf(settings, values.get('testMode'))
  if (!isMode(mode)) return keep(mode)
  const method = offer.methods.get(currentName(values.get('paymentBrand') ?? ''))
  if (method && amount === 0) return form('zeroAmount', 'amount')
  if (method)
    return chooseMethod(values, channel, offer, method, { type, capture: asked === 'PA.CP', amount, currency, mode }, now)
  const brand = brandOf(values, channel, offer.cardBrands)
  if ('refused' in brand) return brand
  const connector = cardConnector(connectors, mode)
  const refused = typeof connector === 'string' ? undefined : connector.refusesParameter?.(values)
  if (refused) return keep(refused.result, refused.name, refused.message)
  const card = cardOf(values, brand, channel, offer.cardBrands, now)
  if ('refused' in card) return card
  if (typeof connector === 'string') return keep(connector)
  if (connector.operations[type] === undefined) return keep('channelLacksType')
  const given = authenticationGiven(values, brand.name)
  if (given) return given
  const redirects = wantsThreeDSecure(values, settings, type, mode)
  const wrong = redirects
    ? (inexpressible(authenticationAmount(values, amount, currency)) ?? resultUrlWrong(values, channel, offer.sandbox))
    : undefined
  if (wrong) return wrong
  return { type, capture: asked === 'PA.CP', amount, currency, mode, brand: brand.name, connector, card, redirects }
}

/** The request asks for payment details to be stored. */
export const registers = (values: Values): boolean => values.get('createRegistration') === 'true'
export const noRegistration = ['registrationNotHere', 'createRegistration', 'is taken by first payments with a card'] as const

type TypeChoice = Pick<Choice, 'type' | 'capture' | 'amount' | 'currency' | 'mode'>

/** A brand that is no card: what it needs must be there before anybody is called. */
function chooseMethod(
  values: Values,
  channel: Channel,
  offer: Offer,
  method: Method,
  chosen: TypeChoice,
  now: number,
): Choice | Refusal {
  if (!isOffered(channel.settings.brands, method.brand)) return keep('brandNotOnChannel', 'paymentBrand')
  if (registers(values)) return keep(...noRegistration)
  if (!method.types.includes(chosen.type)) return keep('typeNotForBrand', 'paymentType', `is not taken by ${method.brand}`)
  if (method.currencies.length > 0 && !method.currencies.includes(chosen.currency))
    return keep('currencyNotForBrand', 'currency', `is not taken by ${method.brand}`)
  const missing = method.needs.filter(name => valueNamed(values, name) === undefined && name !== 'shopperResultUrl')
  if (missing.length > 0) {
    const parameterErrors = missing.map(name => ({ name, message: `is required for ${method.brand}` }))
    return { refused: 'methodNeedsMore', stored: false, parameterErrors }
  }
  const isSlip = method.code === 'PP'
  // Nobody is sent away with a slip; where the request says whither all the same, it must be good.
  const wrong = isSlip && !values.has('shopperResultUrl') ? undefined : resultUrlWrong(values, channel, offer.sandbox)
  if (wrong) return wrong
  const { capture, ...types } = chosen
  const asked = { ...types, channel, brand: method.brand, now }
  const parameterErrors = method.wrong?.(values, asked) ?? []
  if (parameterErrors.length > 0) return { refused: 'methodNeedsMore', stored: false, parameterErrors }
  const connector = methodConnector(offer.connectors, method, chosen.mode)
  if (typeof connector === 'string') return keep(connector)
  if (capture && !connector.operations.CP) return keep('typeNotForBrand', 'paymentType', `is not taken by ${method.brand}`)
  const unsendable = connector.refuses?.(asked)
  if (unsendable === 'processorNotConfigured') return keep(unsendable) // its accounts are others'
  if (unsendable) return keep(unsendable, 'amount', `is not taken by ${method.brand}`)
  return { ...chosen, brand: method.brand, connector, redirects: !isSlip, ...(isSlip && { slip: true as const }) }
}

/** Where the shopper is sent back to: over https, in a sandbox over http too, or to an app whose scheme the
 * channel lists (decisions, 43). */
export function resultUrlWrong(values: Values, { settings }: Channel, sandbox: boolean): Refusal | undefined {
  const url = values.get('shopperResultUrl')
  if (url === undefined) return form('resultUrlMissing', 'shopperResultUrl')
  const plain = sandbox && settings.mode === 'test' ? ['http'] : []
  const schemes = ['https', ...plain, ...settings.appSchemes]
  if (schemes.includes(new URL(url).protocol.slice(0, -1))) return undefined
  const message = `must begin with ${schemes.map(scheme => `${scheme}://`).join(' or ')}`
  return { refused: 'resultUrlPlain', stored: false, parameterErrors: [{ name: 'shopperResultUrl', message }] }
}

/** An amount that its currency cannot express never leaves, whatever the way: nothing is rounded. */
export function inexpressible({
  name,
  amount,
  currency,
}: {
  name: string
  amount: number
  currency: string
}): Refusal | undefined {
  const units = minorUnits(amount, currency)
  return typeof units === 'string' ? keep(units, name, `cannot be expressed in ${currency}`) : undefined
}

/** Only where the channel's policy or the request asks (decisions, 45); never when the shopper is not there, or was authenticated already. */
export function wantsThreeDSecure(values: Values, settings: Channel['settings'], type: OperationType, mode: Mode): boolean {
  if (type !== 'PA' && type !== 'DB') return false
  if (repeatsAgreedPayment(values) || values.has('threeDSecure.eci') || values.has('threeDSecure.authenticationStatus'))
    return false
  if (values.get('threeDSecure.disable') === 'true' || settings.threeDSecure === 'off') return false
  return enrolmentAsked(mode, values, settings) ?? settings.threeDSecure === 'always'
}

/** Results of an authentication made elsewhere must fit together, and must be a pass. */
function authenticationGiven(values: Values, brand: string): Refusal | undefined {
  const [eci, status] = [values.get('threeDSecure.eci'), values.get('threeDSecure.authenticationStatus')]
  if (status === 'N' || status === 'R') return keep('authenticationNotPassed', 'threeDSecure.authenticationStatus')
  if (eci === undefined) return undefined
  const known = eciTable(brand)
  if (!eciKnown(brand, eci)) return keep('eciDoesNotFit', 'threeDSecure.eci', `is not an ECI of ${brand}`)
  if (status !== undefined && known[status] !== undefined && known[status] !== eci)
    return keep('eciDoesNotFit', 'threeDSecure.eci', `does not go with authenticationStatus ${status}`)
  const shifts = eci === known.Y || eci === known.A
  if (shifts && !values.has('threeDSecure.verificationId'))
    return keep('eciDoesNotFit', 'threeDSecure.verificationId', 'is required with this ECI')
  return undefined
}

const initialTypes: Readonly<Record<string, Choice['type']>> = { PA: 'PA', DB: 'DB', CD: 'CD', 'PA.CP': 'PA' }

const refusedTypes: Readonly<Record<string, ResultName>> = {
  CP: 'typeIsFollowUp',
  RF: 'typeIsFollowUp',
  RV: 'typeIsFollowUp',
  RB: 'rebillNotSupported',
  RC: 'receiptOnlyByPlatform',
}

export function brandOf(values: Values, { settings }: Channel, cards: CardBrands): CardBrand | Refusal {
  const stated = values.get('paymentBrand')
  const number = values.get('card.number')
  if (stated === undefined) {
    if (number === undefined) return form('brandMissing', 'paymentBrand')
    if (!settings.brandDetection) return keep('brandDetectionOff', 'paymentBrand')
    const detected = cards.detect(number)
    if (!detected) return keep('brandNotDetected', 'paymentBrand')
    // A number of two brands goes to the one that the channel has.
    const offered = [detected.name, ...detected.also].find(name => isOffered(settings.brands, name))
    return cards.named(offered ?? '') ?? keep('brandNotOnChannel', 'paymentBrand')
  }
  const brand = cards.named(stated)
  if (!brand)
    return otherBrands.has(currentName(stated))
      ? keep('methodNotBuilt', 'paymentBrand', `${currentName(stated)} is not built yet`)
      : keep('brandNotKnown', 'paymentBrand')
  return isOffered(settings.brands, stated) ? brand : keep('brandNotOnChannel', 'paymentBrand')
}

const isOffered = (offered: readonly string[], brand: string) => offered.length === 0 || offered.includes(brand)

export function cardOf(values: Values, brand: CardBrand, { settings }: Channel, cards: CardBrands, now: number): Card | Refusal {
  // The form has checked that number and expiry are there.
  const number = values.get('card.number')!
  const cvv = values.get('card.cvv')
  const [expiryMonth, expiryYear, holder] = [
    values.get('card.expiryMonth')!,
    values.get('card.expiryYear')!,
    values.get('card.holder'),
  ]
  if (!hasLuhnDigit(number)) return keep('cardNumberChecksum', 'card.number', 'has a wrong check digit')
  if (!cards.fits(brand, number)) return keep('brandDoesNotFit', 'card.number', `is not a number of ${brand.name}`)
  if (!brand.lengths.includes(number.length))
    return keep('cardNumberLength', 'card.number', `${brand.name} has no numbers of this length`)
  if ((settings.refuseExpiredCards ?? !settings.lenient) && isExpired(expiryMonth, expiryYear, now))
    return keep('expiredCard', 'card.expiryYear', 'is in the past')
  if (
    cvv === undefined &&
    brand.cvvRequired &&
    settings.requireCvv &&
    !repeatsAgreedPayment(values) &&
    values.get('paymentType') !== 'CD'
  ) {
    return keep('missingCvv', 'card.cvv', `is required for ${brand.name}`)
  }
  if (cvv !== undefined && cvv.length !== brand.cvvLength)
    return keep('cvvDoesNotFit', 'card.cvv', `has ${brand.cvvLength} digits for ${brand.name}`)
  return { number, expiryMonth, expiryYear, ...(holder !== undefined && { holder }), ...(cvv !== undefined && { cvv }) }
}

/** A card is good through the last day of its month, wherever on earth that day still is (UTC-12). */
export function isExpired(month: string, year: string, now: number): boolean {
  return now >= Date.UTC(Number(year), Number(month), 1) + 12 * 3_600_000
}

/** A payment that the merchant repeats under an agreement carries no CVV. */
const repeatsAgreedPayment = (values: Values): boolean =>
  values.get('standingInstruction.mode') === 'REPEATED' ||
  values.get('standingInstruction.source') === 'MIT' ||
  values.get('recurringType') === 'REPEATED'

export const isMode = (mode: Mode | ResultName): mode is Mode => mode === 'internal' || mode === 'external' || mode === 'live'

const form = (refused: ResultName, name: string): Refusal => ({
  refused,
  stored: false,
  parameterErrors: [{ name, message: formMessages[name] ?? 'is required' }],
})
const formMessages: Readonly<Record<string, string>> = {
  paymentType: 'is not a type for this path',
  amount: 'must be above zero',
  shopperResultUrl: 'is required where the shopper is sent away',
}

export const keep = (refused: ResultName, name?: string, message = 'is not accepted'): Refusal => ({
  refused,
  stored: true,
  ...(name !== undefined && { parameterErrors: [{ name, message }] }),
})
