// The test cards of 3-D Secure: what the issuer does with each. `method`: the issuer wants its hidden frame first.

export type Behaviour = {
  readonly does: 'authenticate' | 'attempt' | 'error' | 'notEnrolled' | 'challenge' | 'fraud' | 'inform' | 'decoupled'
  readonly method: boolean
}

const row = (does: Behaviour['does'], method: boolean, numbers: string): [string, Behaviour][] =>
  numbers.split(' ').map(number => [number, { does, method }])

export const authenticationCards: ReadonlyMap<string, Behaviour> = new Map([
  ...row('authenticate', true, '4200000000000091 5200000000000007 374500262001008 6761301000993772'),
  ...row('attempt', true, '4200000000000109 5200000000000023 377277081382243 6706981111111113'),
  ...row('authenticate', false, '4200000000000026 5200000000000056 375987000000062 6799851000000032'),
  ...row('attempt', false, '4200000000000059 5200000000000106 373953192351004 6007930123456780'),
  ...row('error', false, '4012001037461114 5434580000000006 375987000169875 6761301000941201'),
  ...row('notEnrolled', false, '4012001037141112 5457350076543210 375987000169883 6761301000946341'),
  ...row(
    'challenge',
    true,
    '4200000000000042 4200000000000067 5200000000000015 5200000000000049 343434343434343 375987000000021 6799998900000060018 6773670009114879',
  ),
  ...row(
    'challenge',
    false,
    '4200000000000018 4200000000000075 5200000000000064 5200000000000072 375987000169867 371449635398431 67034200554565015 6759888888888888',
  ),
])

/** Cards whose issuer takes no part, even when enrolment is asked for. */
export const notParticipating: ReadonlySet<string> = new Set([
  '4532497088771651',
  '5497260847316287',
  '343923092050144',
  '6761257707836567',
])
