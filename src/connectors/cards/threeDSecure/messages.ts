// The messages of EMV 3-D Secure 2.1 and 2.2, browser channel: their fields as tables, and one check for all. What comes from another party is never used
// before it has passed here.

import { parseUrl } from '../../../contract/url.ts'
import { readObject, type TextBounds } from '../../../platform/answerText.ts'

export type ThreeDSecureMessage = Readonly<Record<string, unknown>>
export type MessageType = 'PReq' | 'PRes' | 'AReq' | 'ARes' | 'CReq' | 'CRes' | 'RReq' | 'RRes' | 'Erro'

/** A field: when it must be there, and its shape. */
type MessageField = {
  readonly need: 'always' | 'may' | ((message: ThreeDSecureMessage) => boolean)
  readonly fits: RegExp | ((value: unknown) => boolean)
}

const always = (fits: MessageField['fits']): MessageField => ({ need: 'always', fits })
const may = (fits: MessageField['fits']): MessageField => ({ need: 'may', fits })
const when = (need: (message: ThreeDSecureMessage) => boolean, fits: MessageField['fits']): MessageField => ({ need, fits })

const uuid = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/
const version = /^2\.[12]\.0$/
/** Of what says only what it can: it may know versions that we do not. */
const anyVersion = /^2\.\d{1,2}\.\d{1,2}$/
const text = (max: number, min = 1) => new RegExp(`^[^\\u0000-\\u0008]{${min},${max}}$`, 'u')
const digits = (max: number, min = 1) => new RegExp(`^[0-9]{${min},${max}}$`)
export const isWebAddress = (value: unknown, max: number): value is string =>
  typeof value === 'string' && value.length <= max && /^https?:\/\/\S+$/.test(value) && parseUrl(value) !== null
const url = (max: number) => (value: unknown) => isWebAddress(value, max)
const bool = (value: unknown) => typeof value === 'boolean'
const list = (max: number) => (value: unknown) => Array.isArray(value) && value.length <= max
const cavv = /^[A-Za-z0-9+/]{27}=$/
const yes = /^[YN]$/

const browserChannel = (message: ThreeDSecureMessage) => message.deviceChannel === '02'
const payment = (message: ThreeDSecureMessage) => message.messageCategory === '01'
const challenged = (message: ThreeDSecureMessage) => message.transStatus === 'C'
const scripted = (message: ThreeDSecureMessage) => message.browserJavascriptEnabled === true
// Ours are payments, whatever category an answer names: a good status has its cryptogram.
const authenticated = (message: ThreeDSecureMessage) => message.transStatus === 'Y' || message.transStatus === 'A'
const failed = (message: ThreeDSecureMessage) => ['N', 'U', 'R'].includes(String(message.transStatus))

const common = { messageVersion: always(version), threeDSServerTransID: always(uuid) }

const fields: Readonly<Record<MessageType, Readonly<Record<string, MessageField>>>> = {
  PReq: { ...common, threeDSServerRefNumber: always(text(32)), serialNum: may(text(20)) },
  PRes: {
    messageVersion: always(anyVersion),
    threeDSServerTransID: always(uuid),
    cardRangeData: always(Array.isArray), // what stands in it is looked at one by one, in cardRanges
    serialNum: may(text(20)),
    dsStartProtocolVersion: may(anyVersion),
    dsEndProtocolVersion: may(anyVersion),
  },
  AReq: {
    ...common,
    threeDSServerRefNumber: always(text(32)),
    threeDSServerURL: always(url(2048)),
    threeDSRequestorID: always(text(35)),
    threeDSRequestorName: always(text(40)),
    threeDSRequestorURL: always(url(2048)),
    threeDSRequestorAuthenticationInd: always(/^0[1-6]$/),
    threeDSRequestorChallengeInd: may(/^0[1-9]$/),
    threeDSCompInd: when(browserChannel, /^[YNU]$/),
    deviceChannel: always(/^0[1-3]$/),
    messageCategory: always(/^0[12]$/),
    acquirerBIN: when(payment, digits(11)),
    acquirerMerchantID: when(payment, text(35)),
    merchantName: when(payment, text(40)),
    mcc: when(payment, digits(4, 4)),
    merchantCountryCode: when(payment, digits(3, 3)),
    acctNumber: always(digits(19, 13)),
    cardExpiryDate: may(digits(4, 4)),
    cardholderName: may(text(45, 2)),
    email: may(text(254, 3)),
    billAddrLine1: may(text(50)),
    billAddrCity: may(text(50)),
    billAddrPostCode: may(text(16)),
    billAddrCountry: may(digits(3, 3)),
    purchaseAmount: when(payment, digits(48)),
    purchaseCurrency: when(payment, digits(3, 3)),
    purchaseExponent: when(payment, digits(1, 1)),
    purchaseDate: when(payment, digits(14, 14)),
    transType: may(/^(01|03|10|11|28)$/),
    notificationURL: when(browserChannel, url(256)),
    browserAcceptHeader: when(browserChannel, text(2048)),
    browserIP: may(text(45)),
    browserJavaEnabled: when(scripted, bool),
    browserJavascriptEnabled: when(browserChannel, bool),
    browserLanguage: when(browserChannel, text(35)),
    browserColorDepth: when(scripted, /^(1|4|8|15|16|24|32|48)$/),
    browserScreenHeight: when(scripted, digits(6)),
    browserScreenWidth: when(scripted, digits(6)),
    browserTZ: when(scripted, /^-?[0-9]{1,4}$/),
    browserUserAgent: when(browserChannel, text(2048)),
    messageExtension: may(list(15)),
  },
  ARes: {
    ...common,
    acsTransID: always(uuid),
    dsTransID: always(uuid),
    acsReferenceNumber: always(text(32)),
    acsOperatorID: may(text(32)),
    dsReferenceNumber: always(text(32)),
    transStatus: always(/^[YNUACDRI]$/),
    transStatusReason: when(failed, digits(2, 2)),
    acsChallengeMandated: when(challenged, yes),
    acsURL: when(challenged, text(100_000)), // the directory looks whether it leads anywhere
    authenticationType: when(challenged, /^0[1-4]$/),
    authenticationValue: when(authenticated, cavv),
    eci: may(digits(2, 2)),
    cardholderInfo: may(text(128)),
  },
  CReq: { ...common, acsTransID: always(uuid), challengeWindowSize: always(/^0[1-5]$/) },
  CRes: { ...common, acsTransID: always(uuid), transStatus: always(/^[YN]$/), challengeCompletionInd: may(yes) },
  RReq: {
    ...common,
    acsTransID: always(uuid),
    dsTransID: always(uuid),
    messageCategory: always(/^01$/), // that of our AReq: in another one a good status needs no cryptogram
    transStatus: always(/^[YNUAR]$/),
    transStatusReason: when(failed, digits(2, 2)),
    authenticationType: may(/^0[1-4]$/),
    authenticationValue: when(authenticated, cavv),
    eci: may(digits(2, 2)),
    interactionCounter: always(digits(2, 2)),
    challengeCancel: may(/^0[1-8]$/),
  },
  RRes: { ...common, acsTransID: always(uuid), dsTransID: always(uuid), resultsStatus: always(/^0[1-3]$/) },
  Erro: {
    messageVersion: always(anyVersion),
    threeDSServerTransID: may(uuid),
    acsTransID: may(uuid),
    dsTransID: may(uuid),
    errorCode: always(digits(3, 3)),
    errorComponent: always(/^[CSDA]$/),
    errorDescription: always(text(2048)),
    errorDetail: may(text(2048)),
    errorMessageType: may(text(4)),
  },
}

/** The names of fields that are missing or malformed; empty = the message is good. Unknown fields are ignored, as the protocol wants. */
export function wrongFields(type: MessageType, message: unknown): string[] {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return ['message']
  const given = message as ThreeDSecureMessage
  if (given.messageType !== type) return ['messageType']
  return Object.entries(fields[type])
    .filter(([name, { need, fits }]) => {
      const value = Object.hasOwn(given, name) ? given[name] : undefined
      if (value === undefined) return need === 'always' || (typeof need === 'function' && need(given))
      return typeof fits === 'function' ? !fits(value) : typeof value !== 'string' || !fits.test(value)
    })
    .map(([name]) => name)
}

/** Reads a message of a type; undefined when it is none. */
export function readMessage(type: MessageType, json: string, bounds?: TextBounds): ThreeDSecureMessage | undefined {
  return ofType(type, parseMessage(json, bounds))
}

/** A message that is right as one of a type. */
export const ofType = (type: MessageType, message: ThreeDSecureMessage | undefined): ThreeDSecureMessage | undefined =>
  wrongFields(type, message).length === 0 ? message : undefined

/** More than any message has but a list of card ranges: of extensions alone there may be 80 KB. */
export const messageBounds: TextBounds = { length: 128 * 1024, parts: 20_000 }

/** An object at all, with whatever fields. */
export const parseMessage = (json: string, bounds = messageBounds): ThreeDSecureMessage | undefined => readObject(json, bounds)

/** Ids are the same in capitals. */
export const sameId = (one: unknown, two: unknown): boolean =>
  typeof one === 'string' && typeof two === 'string' && one.toLowerCase() === two.toLowerCase()

/** Messages that pass through a browser travel as base64url without padding. */
export const encodeMessage = (message: ThreeDSecureMessage): string => Buffer.from(JSON.stringify(message)).toString('base64url')

export function decodeMessage(type: MessageType, encoded: string): ThreeDSecureMessage | undefined {
  if (!/^[A-Za-z0-9_-]{1,100000}={0,2}$/.test(encoded)) return undefined
  return readMessage(type, Buffer.from(encoded, 'base64url').toString('utf8'))
}

/** `301` transaction id not recognized, `203` a field is malformed, `101` the message was not understood. */
export const errorMessage = (
  errorCode: '101' | '202' | '203' | '301',
  description: string,
  about: MessageType,
): ThreeDSecureMessage => ({
  messageType: 'Erro',
  messageVersion: '2.2.0',
  errorCode,
  errorComponent: 'S',
  errorDescription: description,
  errorMessageType: about,
})

/** We know no extension: one that must be understood changes what the message says. */
export const asksTooMuch = ({ messageExtension: given }: ThreeDSecureMessage): boolean =>
  Array.isArray(given) && given.some(one => (one as { criticalityIndicator?: unknown } | null)?.criticalityIndicator === true)
