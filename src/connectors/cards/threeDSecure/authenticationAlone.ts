// 3-D Secure without a payment: /v1/threeDSecure. What stands inside the authentication only says how it went; no money moves.

import type { ResultName } from '../../../contract/results/results.ts'
import type { Connector, Mode, Structure } from '../../connector.ts'

export const authenticationAlone = (mode: Mode): Connector => ({
  name: `threeDSecure ${mode}`,
  answerWithinSeconds: 10,
  // When the process died in the middle nobody can finish the authentication: it ends as abandoned.
  operations: { '3D': { how: 'repeat', afterSeconds: 15 } },
  partialReversal: () => false,
  perform: async ({ amount, currency, authentication }) => ({
    kind: 'answer',
    result: authentication ? resultOf(authentication) : 'threeDSecureAbandoned',
    amount,
    currency,
    details: { ExtendedDescription: 'Authentication without a payment' },
    kept: {},
  }),
})

/** Passed with a challenge, passed without, or the reason why there was none. */
function resultOf({ authenticationStatus, flow, errorCode, errorSource, enrolled }: Structure): ResultName {
  if (enrolled === 'false') return 'threeDSecureVersionTwoNotEnrolled'
  if (errorCode !== undefined) return errorSource === 'D' ? 'threeDSecureDirectoryUnreachable' : 'threeDSecureTechnicalError'
  if (authenticationStatus === 'N') return 'threeDSecureUserNotEnrolled'
  if (authenticationStatus === 'U') return 'threeDSecureUnavailable'
  if (authenticationStatus === 'I') return 'threeDSecureDataOnly'
  return flow === 'challenge' ? 'succeeded' : 'threeDSecureFrictionless'
}
