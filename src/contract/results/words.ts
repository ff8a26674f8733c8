// Outcome, who must act and whether to try again, in words for people.

import type { Outcome, Retry, WhoMustAct } from './results.ts'

export const outcomeWords: Readonly<Record<Outcome, string>> = {
  success: 'it succeeded',
  review: 'it succeeded, and someone should look at it',
  pending: 'the outcome is not known yet; read the payment later',
  rejected: 'a bank, an issuer, a risk check, 3-D Secure or the shopper said no',
  invalid: 'the request, what it refers to, or the configuration is wrong',
  error: 'communication or a system failed',
}

export const actorWords: Readonly<Record<WhoMustAct, string>> = {
  nobody: 'nobody needs to act',
  shopper: 'the shopper, with other data or another card',
  merchant: 'the merchant, who decides',
  developer: "whoever writes the merchant's requests",
  operator: 'whoever runs the gateway',
  issuer: 'the bank that issued the card',
  acquirer: "the merchant's bank",
}

export const retryWords: Readonly<Record<Retry, string>> = {
  no: 'there is nothing to try again: it is done, under way, or must be looked up first',
  later: 'the same request may succeed later',
  afterChange: 'after the data, the configuration or the authentication is corrected',
  never: 'not with this card or this request; card schemes charge for it',
}
