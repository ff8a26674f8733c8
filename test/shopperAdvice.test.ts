// What a shopper is advised about each result: the codes that shops meet most, one of every group, and nothing that tells a thief what is known.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { catalogue } from '../src/contract/results/catalogue.ts'
import { isGood, type ResultName, results } from '../src/contract/results/results.ts'
import { type ShopperAdvice, shopperAdvice } from '../src/contract/results/shopperAdvice.ts'

const cases: Readonly<Record<ShopperAdvice, readonly ResultName[]>> = {
  askShop: ['invalidParameter', 'unauthenticated', 'channelDisabled', 'chargebackFraud', 'alreadyCaptured'],
  begunAgain: ['cancelledByShopper', 'termsNotAccepted', 'cancelledByShopperExternally', 'cancelledByMerchant'],
  cardExpired: ['expiredCard'],
  checkDetails: [
    'invalidCard',
    'missingCvv',
    'declinedCvvWrong',
    'declinedExpiryWrong',
    'declinedCardInvalid',
    'avsFailed',
    'emailInvalid',
  ],
  confirmWithBank: ['userAuthenticationFailed', 'threeDSecureAbandoned', 'authenticationRequired', 'threeDSecureRejected'],
  contactBank: ['declinedByAuthorization', 'declinedCardRestricted', 'declinedPinTriesExceeded', 'referToPayer'],
  lookInShop: ['timeoutUnknown', 'automaticReversalFailed', 'duplicateTransaction'],
  notEnoughMoney: ['insufficientFunds', 'declinedInsufficientCredit', 'declinedLimitExceeded', 'amountAboveBalance'],
  payOtherWay: [
    'riskDeclinedTransaction',
    'blacklistedEmail',
    'blacklistedCardStolen',
    'brandNotOnChannel',
    'tooManyTransactionsForAccount',
    'declinedMerchantLimitExceeded',
    'rejectedByAcquirerExternally',
  ],
  timeRanOut: ['onlineTransferTimedOut', 'pendingTimedOut', 'userSessionTimedOut'],
  tryAgainLater: [
    'acquirerDown',
    'timeoutReversed',
    'systemUnavailable',
    'tooManyRequests',
    'acquirerUndefinedError',
    'connectorUnavailable',
  ],
  useOtherCard: ['declined', 'declinedCardStolen', 'declinedCardLost', 'declinedPickUpCard', 'accountClosed', 'retryNever'],
  waitForShop: ['pending', 'paymentNotConfirmedYet', 'transactionBeingProcessed', 'sessionBusy'],
}

for (const [advice, names] of Object.entries(cases))
  for (const name of names) it(`${name}: ${advice}`, () => assert.equal(shopperAdvice(results[name].code), advice))

it('a success needs no advice, and everything else has some', () => {
  for (const name of Object.keys(catalogue) as ResultName[]) {
    const { code, outcome } = results[name]
    const done = outcome === 'success' || outcome === 'review'
    assert.equal(shopperAdvice(code) === undefined, done, `${code} ${outcome}`)
    if (outcome === 'pending') assert.equal(isGood(outcome) && shopperAdvice(code), 'waitForShop', code)
  }
})

it('what the bank holds against a card, and what the shop holds against a shopper, reads like any decline', () => {
  for (const name of ['declinedCardStolen', 'declinedCardLost', 'declinedPickUpCard'] as const)
    assert.equal(shopperAdvice(results[name].code), shopperAdvice(results.declined.code))
  for (const name of [
    'blacklistedFraud',
    'blacklistedIpAddress',
    'riskManagementDeclined',
    'chargebackRateForBinExceeded',
  ] as const)
    assert.equal(shopperAdvice(results[name].code), shopperAdvice(results.brandNotOnChannel.code))
})
