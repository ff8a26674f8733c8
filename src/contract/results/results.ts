// Results. Code speaks names (`return 'alreadyCaptured'`); here a name becomes a code, a description, an outcome and advice.
// Beside the catalogue of the interface stand our own refusals: each has its own name and words, codes may repeat.

import { actor, type Outcome, outcome, type Retry, retry, type WhoMustAct } from './advice.ts'
import { catalogue } from './catalogue.ts'

const refusals = {
  // Who is calling, and for whom.
  entityMissing:             ['200.300.407', 'The token acts for several channels: name one with entityId'],
  entityTooBroad:            ['200.300.407', 'The entity is a division or a merchant without channel dispatching: name a channel'],
  entityNotTheTokens:        ['800.900.201', 'unknown channel: the entity does not exist or the token may not act for it'],
  legacyCredentialsOff:      ['800.900.300', 'invalid authentication information: this merchant does not allow user id and password'],
  tooManyFailures:           ['800.120.100', 'Too many requests. Please try again later. Credentials from this address failed too often'],

  // The request as a whole.
  pathNotFound:              ['200.100.199', 'There is nothing at this path; the interface begins with /v1 or /v3'],
  schedulesNotBuilt:         ['600.200.201', 'Scheduled payments are part of the interface, but not built yet'],
  linksNotBuilt:             ['600.200.201', 'Payment links are part of the interface, but not built yet'],
  exemptionNotBuilt:         ['600.200.201', 'The check for exemptions is part of the interface, but not built yet'],
  bodyTooLarge:              ['200.100.103', 'The request body is larger than the limit'],
  headersTooLarge:           ['200.100.103', 'The request headers are larger than the limit'],
  malformedRequest:          ['200.100.101', 'The request is not well-formed HTTP'],
  hostNotOurs:               ['200.100.101', 'The Host is none of this sandbox: localhost, addresses of this machine, and the names in SANDBOX_HOSTS are'],
  foreignOrigin:             ['200.100.101', 'Pages of other sites may not do this'],
  transferCodingUnknown:     ['200.100.103', 'The only transfer coding of a request is chunked'],
  wrongContentType:          ['200.100.103', 'The body must be application/x-www-form-urlencoded in UTF-8, ISO-8859-1 or windows-1252, without a content encoding'],
  parametersInQuery:         ['200.300.404', 'invalid or missing parameter: parameters of a POST go into the body'],
  tooManyParameters:         ['200.100.103', 'The request carries more parameters than the limit'],
  idempotencyKeyReused:      ['200.300.404', 'invalid or missing parameter: the Idempotency-Key was used before with another request'],
  tlsRequired:               ['200.100.199', 'The interface is reached over HTTPS only'],
  tooManyReads:              ['800.120.100', 'Too many requests. Please try again later.'],
  databaseUnavailable:       ['800.800.801', 'The gateway cannot store requests at the moment: send the request again with its Idempotency-Key, or read the payment first'],
  merchantElsewhere:         ['800.800.801', 'The merchant moves to another part of the installation, or has moved: send the request again in some seconds, with its Idempotency-Key'],
  reportingAway:             ['800.800.801', 'Searches and reports cannot be answered at the moment; payments can: ask for one payment by its id'],
  clockWrong:                ['800.800.801', 'The clock of the gateway is too far from that of its database; it takes no requests until that is mended'],
  tooManyRequests:           ['800.120.100', 'Too many requests. Please try again later. This token has used up its requests of a minute'],
  tooManyAtOnce:             ['800.120.100', 'Too many requests. Please try again later. So many of this caller are under way already'],
  tooManySearches:           ['800.120.100', 'Too many requests. Please try again later. Other searches of this token or merchant have not ended'],
  pageTooLarge:              ['200.300.404', 'invalid or missing parameter: the records of this page are too large together, ask for fewer at a time'],
  reportTooLarge:            ['200.300.404', 'invalid or missing parameter: this report has too many payments, narrow date.from and date.to'],
  recordsArchived:           ['200.300.404', 'invalid or missing parameter: records of this day are archived, only its sums are here'],
  notReady:                  ['800.800.801', 'The gateway is not ready to take requests'],
  shuttingDown:              ['800.800.801', 'The gateway is shutting down; send the request again'],

  // Checkouts.
  checkoutGone:              ['200.300.404', 'invalid or missing parameter - (opp) No payment session found for the requested id - are you mixing test/live servers or have you paid more than 30min ago?'],
  checkoutChanged:           ['200.300.404', 'invalid or missing parameter: the checkout was changed meanwhile, nothing was paid: load it again'],
  checkoutUnderWay:          ['200.300.404', 'invalid or missing parameter: a payment of this checkout is under way or has succeeded, so it stays as it is'],
  tooManyAttempts:           ['800.120.100', 'Too many requests. Please try again later. This checkout was tried too often'],

  // Payment type and method.
  typeUnknown:               ['600.200.300', 'The payment type is not one of the interface'],
  typeIsFollowUp:            ['200.300.404', 'invalid or missing parameter: this payment type refers to an earlier payment, send it to /v1/payments/{id}'],
  typeIsInitial:             ['600.200.300', 'This payment type begins a payment: send it to /v1/payments without an id'],
  rebillNotSupported:        ['600.200.400', 'Rebill (RB) is not supported'],
  brandNotKnown:             ['100.100.501', 'The payment brand is not one that this gateway knows'],
  brandNotOnChannel:         ['600.200.500', 'Invalid payment data. The channel is not set up for this brand'],
  currencyNotOnChannel:      ['600.200.500', 'Invalid payment data. The channel is not set up for this currency'],
  methodNotBuilt:            ['600.200.201', 'This payment method is part of the interface, but not built yet'],
  registrationNotHere:       ['600.200.201', 'Payment details are stored with a first payment by card, in a checkout, or by /v1/registrations'],
  secureReadNotBuilt:        ['600.200.201', 'The secure reading of a registration is part of the interface, but not built yet'],
  brandDetectionOff:         ['100.100.500', 'The payment brand is required: this channel does not detect it'],
  brandNotDetected:          ['100.100.500', 'No card brand has numbers like this one: send paymentBrand'],
  cardNumberChecksum:        ['100.100.101', 'invalid creditcard, bank account number or bank name'],
  cardNumberLength:          ['100.100.101', 'invalid creditcard, bank account number or bank name: the brand has no numbers of this length'],
  testModeOnLive:            ['600.200.701', 'A live channel does not take testMode=EXTERNAL'],
  processorNotConfigured:    ['600.200.201', 'No processor is configured for this channel and test mode'],
  noSuchForcedResult:        ['600.200.810', 'customParameters[forceResultCode] is not a code of the interface'],
  resultUrlMissing:          ['200.300.404', 'invalid or missing parameter: shopperResultUrl is required where the shopper is sent away'],
  resultUrlPlain:            ['200.300.404', 'invalid or missing parameter: shopperResultUrl must begin with https:// here'],
  methodNeedsMore:           ['200.300.404', 'invalid or missing parameter for this payment brand'],
  typeNotForBrand:           ['600.200.310', 'The payment brand does not take this payment type'],
  currencyNotForBrand:       ['600.200.500', 'Invalid payment data. The payment brand does not take this currency'],
  eciDoesNotFit:             ['100.390.117', 'threeDSecure.eci does not fit the brand and the other fields of the authentication'],
  authenticationNotPassed:   ['100.390.114', 'The authentication that came with the payment was not passed, so nothing was authorized'],
  zeroAmount:                ['100.550.300', 'The amount must be above zero where money moves'],

  // Captures, refunds and reversals: what forbids them, in the order of payments/rules.
  captureReferenceUnknown:   ['700.400.510', 'capture needs at least one successful transaction of type (PA)'],
  refundReferenceUnknown:    ['600.200.500', 'Invalid payment data: there is no payment with this id to refund'],
  reversalReferenceUnknown:  ['700.400.530', 'reversal needs at least one successful transaction of type (CP, DB, RB or PA)'],
  captureOfRejected:         ['700.400.510', 'capture needs at least one successful transaction of type (PA); the referenced one was rejected'],
  refundOfRejected:          ['700.400.520', 'Refund needs a successful payment; the referenced one was rejected'],
  reversalOfRejected:        ['700.400.530', 'reversal needs at least one successful transaction of type (CP, DB, RB or PA); the referenced one was rejected'],
  notCapturable:             ['700.400.510', 'capture needs at least one successful transaction of type (PA); the referenced one is of another type'],
  captureOfSlip:             ['700.400.510', 'capture needs at least one successful transaction of type (PA) that holds money; what is paid on a slip is a receipt (RC)'],
  refundOfSlip:              ['700.400.520', 'A slip is no money: refund its receipt (RC)'],
  notRefundable:             ['700.400.520', 'Refund needs a DB, a captured PA or a receipt; the referenced one is of another type'],
  notReversible:             ['700.400.530', 'reversal needs at least one successful transaction of type (CP, DB, RB or PA); the referenced one is of another type'],
  notYetCaptured:            ['700.400.520', 'The preauthorization is not captured, so nothing was cleared that could be refunded: reverse it'],
  alreadyCaptured:           ['700.400.100', 'The preauthorization is captured already; it can be captured once, even when the capture was partial'],
  authorizationReversed:     ['700.400.100', 'The preauthorization is reversed and cannot be captured any more'],
  captureAboveAuthorized:    ['700.400.100', 'The capture is above what is still preauthorized'],
  reversalUnderWay:          ['700.400.570', 'A reversal of this preauthorization is under way; capture again when its result is known'],
  anotherReversalUnderWay:   ['700.400.570', 'Another reversal of this payment is under way; reverse again when its result is known'],
  alreadyRefunded:           ['700.400.200', 'All that was cleared is refunded already'],
  refundOfReversed:          ['700.400.200', 'The payment is reversed and cannot be refunded any more'],
  refundAboveCleared:        ['700.400.200', 'The refund is above what was cleared and not refunded yet'],
  reversalOfCaptured:        ['700.400.300', 'The preauthorization is captured and cannot be reversed any more: refund it'],
  reversalOfPaid:            ['700.400.300', 'The slip has a receipt and cannot be reversed any more: refund the receipt'],
  reversalOfCapture:         ['700.400.300', 'A capture cannot be reversed: refund it'],
  reversalOfRefunded:        ['700.400.300', 'The payment has a refund and cannot be reversed any more: refund the rest'],
  alreadyReversed:           ['700.400.300', 'The payment is reversed already'],
  reversalAboveOpen:         ['700.400.300', 'The reversal is above what is still open'],
  refundOfChargedBack:       ['700.400.200', 'All that was cleared is refunded or charged back already'],
  reversalOfChargedBack:     ['700.400.300', 'The payment was charged back and cannot be reversed any more'],
  reversalAfterRelease:      ['700.300.700', 'The debit is older than 72 hours and cannot be reversed any more: refund it'],
  partialReversalNotOffered: ['700.300.800', 'The acquirer of this payment does not support partial reversals: reverse it whole'],
  operationNotOffered:       ['700.300.800', 'The acquirer of this payment does not support this operation'],
  chainFull:                 ['700.500.001', 'The referenced session has too many transactions: the payment takes no more captures, refunds and reversals'],

  // The risk check of our own.
  riskChannelIdTooLong:      ['100.400.304', 'The input data for the risk check are not valid: risk.channelId has at most 12 characters'],
  riskServiceIdTooLong:      ['100.400.304', 'The input data for the risk check are not valid: risk.serviceId has 1 character'],
  riskCheckBroken:           ['100.400.325', 'The risk check is not available, and the channel takes no payments without it'],

  // How a call to a connector ended when it was not an answer.
  amountCameBackDifferent:   ['100.550.701', 'The acquirer answered with another amount or currency; the payment was reversed'],
  duplicateAtWallet:         ['800.110.100', 'The wallet has seen this payment before'],
  walletAmountsDiffer:       ['600.200.500', 'Invalid payment data. The wallet refuses the sums of the cart'],
  declinedByWallet:          ['800.100.100', 'The wallet declined the payment'],
  refusedByBank:             ['800.100.100', 'The bank of the shopper declined the transfer'],
  partlyApproved:            ['800.100.155', 'The issuer approved only a part of the amount; that part was given back'],
  cardNumberErased:          ['600.200.500', 'Invalid payment data. The card number of the referenced payment is no longer kept'],
  amountFinerThanCurrency:   ['100.550.303', 'The amount has decimals that its currency does not have'],
  amountTooLargeForAcquirer: ['100.550.301', 'The amount is too large for the messages of the acquirer'],
  storedTooLate:             ['900.100.600', 'The gateway could not store the payment in time; nothing was sent'],
  noTerminalFree:            ['900.100.600', 'No terminal of the acquirer is free here, or none is configured; nothing was sent'],
  transferRefused:           ['100.200.103', 'The bank refuses the transfer: bank code, agency, account and holder do not fit together, or the account takes none'],
  noSlipNumber:              ['900.100.600', 'No number of the account that issues slips is free here; nothing was issued'],
  neverSent:                 ['900.100.600', 'The acquirer could not be reached; nothing was sent'],
} as const satisfies Record<string, readonly [code: string, description: string]>

export type ResultName = keyof typeof catalogue | keyof typeof refusals

export type Result = {
  readonly name: ResultName
  readonly code: string
  readonly description: string
  readonly outcome: Outcome
  /** Who must act, and whether the same request may be sent again. */
  readonly actor: WhoMustAct
  readonly retry: Retry
}

/** Every result by its name. */
export const results: Readonly<Record<ResultName, Result>> = Object.fromEntries(
  Object.entries({ ...catalogue, ...refusals }).map(([name, [code, description]]) => [
    name,
    { name, code, description, outcome: outcome(code), actor: actor(code), retry: retry(code) },
  ]),
) as Record<ResultName, Result>

/** The catalogue's row of a code, if the interface has such a code. */
export const resultOfCode: ReadonlyMap<string, Result> = new Map(
  Object.keys(catalogue).map(name => [results[name as ResultName].code, results[name as ResultName]]),
)

/** The names of our own refusals, for the reference page. */
export const refusalNames = Object.keys(refusals) as ResultName[]

/** Success, also with a review by hand, or waiting: what a POST answers with HTTP 200 (decisions, 20). */
export const isGood = (outcome: Outcome): boolean => outcome === 'success' || outcome === 'review' || outcome === 'pending'

/** Money moved or is held. */
export const isApproved = (outcome: Outcome): boolean => outcome === 'success' || outcome === 'review'

/** The reasons of a chargeback. */
export const isChargeback = ({ code }: Result): boolean => code.startsWith('000.100.2')

export type { Outcome, Retry, WhoMustAct }
