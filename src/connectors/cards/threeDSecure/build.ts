// From a payment to the messages of 3-D Secure: pure functions.

import { hundredths } from '../../../contract/amounts.ts'
import { currencies } from '../../../contract/currencies.ts'
import { type Values, valueNamed } from '../../../contract/parameters/table.ts'
import type { ResultName } from '../../../contract/results/results.ts'
import type { ChannelSettings } from '../../../merchants/settings.ts'
import type { ConnectorState, Mode, Operation } from '../../connector.ts'
import { unitsText } from '../../minorUnits.ts'
import { encodeMessage, type ThreeDSecureMessage } from './messages.ts'

/** Who asks, as the scheme has registered it. */
export type Requestor = {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly referenceNumber: string
  readonly acquirerBin: string
  readonly acquirerMerchantId: string
  readonly merchantCountryCode: string
  readonly mcc: string
}

/** What the browser tells of itself; names are those of customer.browser.* and of our own page. */
export const browserNames = [
  'acceptHeader',
  'userAgent',
  'language',
  'screenHeight',
  'screenWidth',
  'screenColorDepth',
  'timezone',
  'javaEnabled',
  'javascriptEnabled',
  'challengeWindow',
] as const

/** What the merchant sent of the browser; undefined unless it is enough to ask the issuer. */
export function browserGiven(fields: Values): ConnectorState | undefined {
  const given = Object.fromEntries(
    browserNames.flatMap(name => {
      const value = fields.get(`customer.browser.${name}`)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  return given.userAgent !== undefined && given.acceptHeader !== undefined && given.language !== undefined ? given : undefined
}

/** What the shopper is asked to confirm, and the parameter that says so (decisions, 45). */
export function authenticationAmount(
  fields: Values,
  amount: number,
  currency: string,
): { readonly name: string; readonly amount: number; readonly currency: string } {
  const name = (['risk.amount', 'threeDSecure.amount'] as const).find(name => fields.has(name))
  return {
    name: name ?? 'amount',
    amount: name === undefined ? amount : hundredths(fields.get(name)!),
    currency: fields.get('threeDSecure.currency') ?? currency,
  }
}

/** Whether the card is wanted to take part: the request says, at the simulator else the channel. Undefined when nobody does; in live nobody is asked. */
export function enrolmentAsked(
  mode: Mode,
  fields: Values,
  { simulatorEnrols }: Pick<ChannelSettings, 'simulatorEnrols'>,
): boolean | undefined {
  if (mode === 'live') return undefined
  const asked = fields.get('customParameters[3DS2_enrolled]')
  if (asked !== undefined) return asked === 'true'
  return mode === 'internal' && simulatorEnrols ? true : undefined
}

export function buildAReq(
  operation: Operation,
  requestor: Requestor,
  ids: { readonly transId: string; readonly version: string },
  completed: 'Y' | 'N' | 'U',
  browser: ConnectorState,
): ThreeDSecureMessage {
  const { fields, card, addresses } = operation
  const confirmed = authenticationAmount(fields, operation.amount, operation.currency)
  const currency = currencies.get(confirmed.currency)!
  const at = new Date(operation.receivedAt).toISOString().replace(/\D/g, '').slice(0, 14)
  const scripted = browser.javascriptEnabled !== 'false' && browser.screenHeight !== undefined
  const given = (name: string, field: string, max: number, min = 1) => {
    const value = valueNamed(fields, field) ?? ''
    return value.length >= min ? { [name]: [...value].slice(0, max).join('') } : {}
  }
  return {
    messageType: 'AReq',
    messageVersion: ids.version,
    threeDSServerTransID: ids.transId,
    threeDSServerRefNumber: requestor.referenceNumber,
    threeDSServerURL: addresses!.notice,
    threeDSRequestorID: requestor.id,
    threeDSRequestorName: requestor.name,
    threeDSRequestorURL: requestor.url,
    threeDSRequestorAuthenticationInd: twoDigits(fields.get('threeDSecure.authenticationInd')) ?? authenticationInd(fields),
    threeDSRequestorChallengeInd: challengeInd(fields),
    threeDSCompInd: completed,
    deviceChannel: '02',
    messageCategory: '01',
    acquirerBIN: requestor.acquirerBin,
    acquirerMerchantID: requestor.acquirerMerchantId,
    merchantName: [...operation.shopName].slice(0, 40).join(''),
    mcc: /^\d{4}$/.test(fields.get('merchant.mcc') ?? '') ? fields.get('merchant.mcc')! : requestor.mcc,
    merchantCountryCode: requestor.merchantCountryCode,
    acctNumber: card!.number,
    cardExpiryDate: card!.expiryYear.slice(2) + card!.expiryMonth,
    ...(card!.holder !== undefined && card!.holder.length >= 2 && { cardholderName: [...card!.holder].slice(0, 45).join('') }),
    ...given('email', 'customer.email', 254, 3),
    ...given('billAddrLine1', 'billing.street1', 50),
    ...given('billAddrCity', 'billing.city', 50),
    ...given('billAddrPostCode', 'billing.postcode', 16),
    purchaseAmount: unitsText(confirmed.amount, currency.code),
    purchaseCurrency: currency.number,
    purchaseExponent: String(currency.exponent),
    purchaseDate: at,
    transType: '01',
    notificationURL: addresses!.back,
    browserAcceptHeader: browser.acceptHeader ?? '*/*',
    ...(/^[0-9a-fA-F.:]{2,45}$/.test(fields.get('customer.ip') ?? browser.ip ?? '') && {
      browserIP: fields.get('customer.ip') ?? browser.ip,
    }),
    browserJavascriptEnabled: scripted,
    browserLanguage: browser.language ?? 'en',
    browserUserAgent: browser.userAgent ?? 'unknown',
    ...(scripted && {
      browserJavaEnabled: browser.javaEnabled === 'true',
      browserColorDepth: colorDepth(browser.screenColorDepth),
      browserScreenHeight: browser.screenHeight,
      browserScreenWidth: browser.screenWidth ?? '1',
      browserTZ: String(Number(browser.timezone ?? 0)),
    }),
    ...(operation.mode === 'internal' && { messageExtension: [simulatorExtension(operation)] }),
  }
}

/** The protocol knows a few depths only: the nearest below. */
function colorDepth(given: string | undefined): string {
  const depth = Number(given ?? 24)
  return String([48, 32, 24, 16, 15, 8, 4, 1].find(known => known <= depth) ?? 1)
}

/** Asked for; else the indicator that the exemption wants; else a challenge where an agreement begins (facts of the platform); else no preference. */
export function challengeInd(fields: Values): string {
  const asked = twoDigits(fields.get('threeDSecure.challengeIndicator'))
  if (asked !== undefined) return asked
  const exemption = twoDigits(fields.get('threeDSecure.exemptionFlag'))
  if (exemption !== undefined) return byExemption[exemption]!
  const begins = fields.get('standingInstruction.mode') === 'INITIAL' || fields.get('recurringType') === 'INITIAL'
  return begins && fields.get('standingInstruction.source') !== 'MIT' ? '04' : '01'
}

/** Low value and corporate: no challenge; risk analysis done; trusted merchant. */
const byExemption: Readonly<Record<string, string>> = { '01': '02', '02': '05', '03': '08', '04': '02' }

const authenticationInd = (fields: Values): string =>
  fields.get('standingInstruction.type') === 'RECURRING'
    ? '02'
    : fields.get('standingInstruction.type') === 'INSTALLMENT'
      ? '03'
      : '01'

const twoDigits = (value: string | undefined): string | undefined => value?.padStart(2, '0')

/** Wishes for the simulator travel as an extension that nobody else must understand. */
function simulatorExtension({ type, mode, fields, channel: { settings } }: Operation) {
  const flow = fields.get('customParameters[3DS2_flow]')
  const enrolled = enrolmentAsked(mode, fields, settings) === true
  const refused = settings.withoutAuthentication === 'refuse' ? 'threeDSecureRejectedAsUnavailable' : 'succeededInTestMode'
  const unavailable: ResultName = type === '3D' ? 'threeDSecureUnavailable' : refused
  return {
    name: 'simulator',
    id: 'tollgate-simulator',
    criticalityIndicator: false,
    data: { enrolled, unavailable, ...(flow !== undefined && { flow }) },
  }
}

export const buildCReq = (ids: ConnectorState, window: string | undefined): ThreeDSecureMessage => ({
  messageType: 'CReq',
  messageVersion: ids.version,
  threeDSServerTransID: ids.transId,
  acsTransID: ids.acsTransId,
  challengeWindowSize: twoDigits(window) ?? '05',
})

/** What the hidden frame posts to the issuer. */
export const methodData = (transId: string, notificationUrl: string): string =>
  encodeMessage({ threeDSServerTransID: transId, threeDSMethodNotificationURL: notificationUrl })

export const buildRRes = (request: ThreeDSecureMessage): ThreeDSecureMessage => ({
  messageType: 'RRes',
  messageVersion: request.messageVersion,
  threeDSServerTransID: request.threeDSServerTransID,
  acsTransID: request.acsTransID,
  dsTransID: request.dsTransID,
  resultsStatus: '01',
})
