// What the issuer's word means: the transaction status of 3-D Secure, its electronic commerce indicator by card scheme, and what each does to
// a payment. The scheme tables are in docs/reference/redirects.md.

import { mastercardBrands } from '../../../contract/brands.ts'
import type { ResultName } from '../../../contract/results/results.ts'

export type Status = 'Y' | 'A' | 'U' | 'N' | 'R' | 'C' | 'D' | 'I'

type Eci = Readonly<Partial<Record<string, string>>>
const byStatus: { readonly visa: Eci; readonly mastercard: Eci } = {
  visa: { Y: '05', A: '06', U: '07', N: '07', R: '07', I: '07' },
  mastercard: { Y: '02', A: '01', U: '00', N: '00', R: '00', I: '04' },
}

/** The indicator of each status for a brand. */
export const eciTable = (brand: string): Eci => (mastercardBrands.has(brand) ? byStatus.mastercard : byStatus.visa)

/** Every indicator that a brand knows: Mastercard has two more, for recurring and data-only authentications. */
export const eciKnown = (brand: string, eci: string): boolean =>
  Object.values(eciTable(brand)).includes(eci) || (mastercardBrands.has(brand) && (eci === '06' || eci === '07'))

/** What an issuer says of a payment for whose fraud it does not stand, whatever status it names beside it. */
export const isFailedEci = (brand: string, eci: string | undefined): boolean => eci === eciTable(brand).U

/** What follows from a status. */
export type AuthenticationAction =
  /** `shifts`: the liability for fraud goes to the issuer. */
  | { readonly kind: 'authorize'; readonly shifts: boolean }
  /** The shopper shows the issuer who he is: now, or (decoupled) later without the browser. */
  | { readonly kind: 'challenge'; readonly decoupled: boolean }
  /** Authentication could not be had: the channel's setting decides, and this is the refusal. */
  | { readonly kind: 'unavailable'; readonly refusal: ResultName }
  | { readonly kind: 'refuse'; readonly refusal: ResultName }

/** EMV 3-D Secure, table A.15: 11 suspected fraud, 13 cardholder not enrolled, 19 maximum challenges exceeded. */
const reasons = { fraud: '11', notEnrolled: '13', tooMany: '19' }

export function actionOf(
  status: Status,
  reason: string | undefined,
  challenged: boolean,
  cancelled: string | undefined,
): AuthenticationAction {
  switch (status) {
    case 'Y':
    case 'A':
      return { kind: 'authorize', shifts: true }
    case 'I':
      return { kind: 'authorize', shifts: false }
    case 'U':
      return { kind: 'unavailable', refusal: 'threeDSecureRejectedAsUnavailable' }
    case 'C':
    case 'D':
      return { kind: 'challenge', decoupled: status === 'D' }
    case 'R':
      return { kind: 'refuse', refusal: reason === reasons.fraud ? 'threeDSecureSuspectedFraud' : 'threeDSecureIssuerRejected' }
    case 'N':
      if (reason === reasons.notEnrolled && !challenged) return { kind: 'authorize', shifts: false }
      if (cancelled !== undefined) return { kind: 'refuse', refusal: 'threeDSecureAbandoned' }
      if (reason === reasons.tooMany) return { kind: 'refuse', refusal: 'threeDSecureTooManyAttempts' }
      return { kind: 'refuse', refusal: challenged ? 'userAuthenticationFailed' : 'threeDSecureIssuerRejected' }
  }
}

/** Is it one of the brand, and of a status that shifts the liability as it does? */
function isOfStatus(brand: string, status: Status, eci: string): boolean {
  const { Y, A } = eciTable(brand)
  return eciKnown(brand, eci) && (status === 'Y' || status === 'A' || (eci !== Y && eci !== A))
}

/** The indicator that goes with the payment: the issuer's own where it can be meant; else the scheme's, and none where authentication failed technically. */
export function eciOf(brand: string, status: Status, reason: string | undefined, given: string | undefined): string | undefined {
  if (given !== undefined && isOfStatus(brand, status, given)) return given
  if (status === 'U') return undefined
  if (status === 'N' && reason === reasons.notEnrolled) return eciTable(brand).A
  return eciTable(brand)[status]
}
