// What the host answered in DE39, as a result of the interface, and what the card schemes say about trying again.
// The advice that merchants read comes from contract/results/advice; a test holds the two together.

import { mastercardBrands } from '../../../contract/brands.ts'
import type { ResultName } from '../../../contract/results/results.ts'

/** never: the schemes charge for another try · later: sparingly, at most 15 in 30 days · fix: after a correction · done: nothing to retry. */
export type SchemeRetry = 'never' | 'later' | 'fix' | 'done'

type CodeRow = readonly [codes: string, result: ResultName, retry: SchemeRetry]

const rows: readonly CodeRow[] = [
  ['00 08 11',             'succeeded',                  'done'],
  ['10',                   'partlyApproved',             'later'],
  ['01 02 05 5C 9G',       'declinedByAuthorization',    'later'],
  ['03',                   'notConfigured',              'fix'],
  ['04 07 33 34 35 36 37 38', 'declinedPickUpCard',      'never'],
  ['12',                   'declinedTransactionInvalid', 'never'],
  ['13',                   'declinedAmountInvalid',      'fix'],
  ['14 15',                'declinedCardInvalid',        'never'],
  ['19',                   'timeoutAtAcquirerTryLater',  'later'],
  ['25',                   'declinedReferenceMismatch',  'fix'],
  ['30',                   'declinedFormatError',        'fix'],
  ['41',                   'declinedCardLost',           'never'],
  ['43',                   'declinedCardStolen',         'never'],
  ['46',                   'declinedAccountBlocked',     'never'],
  ['51',                   'declinedInsufficientCredit', 'later'],
  ['54',                   'declinedExpiryWrong',        'fix'],
  ['55',                   'declinedPinWrong',           'fix'],
  ['57 58',                'declinedNotPermitted',       'never'],
  ['59',                   'declinedSuspectedManipulation', 'later'],
  ['61',                   'declinedLimitExceeded',      'later'],
  ['62 78 93',             'declinedCardRestricted',     'later'],
  ['65',                   'declinedTooManyTransactions', 'later'],
  ['68',                   'timeoutAtAcquirer',          'later'],
  ['75',                   'declinedPinTriesExceeded',   'later'],
  ['82 N7',                'declinedCvvWrong',           'fix'],
  ['91 92 96',             'acquirerDown',               'later'],
  ['1A',                   'authenticationRequired',     'fix'],
  ['R0 R1 R3',             'declinedRegistrationCancelled', 'never'],
]

export const responseCodes: ReadonlyMap<string, { readonly result: ResultName; readonly retry: SchemeRetry }> = new Map(
  rows.flatMap(([codes, result, retry]) => codes.split(' ').map(code => [code, { result, retry }] as const)),
)

/** Mastercard says by 65 what Visa says by 1A: authenticate the shopper first. */
export function resultOfResponse(code: string, brand: string): ResultName {
  if (code === '65' && mastercardBrands.has(brand)) return 'authenticationRequired'
  return responseCodes.get(code)?.result ?? 'declined'
}

/** Action codes of 1993 and their counterparts of 1987. Others count as declined without a reason. */
export const actionCodes: Readonly<Record<string, string>> = Object.fromEntries(
  (
    '000:00 001:08 002:10 003:11 100:05 101:54 102:59 103:01 104:62 106:75 107:01 108:02 109:03 110:13 111:14 112:55 ' +
    '114:15 115:12 116:51 117:55 118:14 119:57 120:58 121:61 122:59 123:65 129:59 180:82 200:04 201:54 202:59 203:01 ' +
    '204:62 206:75 207:04 208:41 209:43 210:59 400:00 800:00 900:00 901:00 902:12 903:19 904:30 905:92 906:91 907:91 908:92 909:96 911:68 ' +
    '912:91 914:25'
  )
    .split(' ')
    .map(pair => pair.split(':') as [string, string]),
)

/** The seed's five letters for the many that hosts answer. */
export const avsLetter = (letter: string): string | undefined =>
  letter === ' ' || letter === ''
    ? undefined
    : 'YXDMF'.includes(letter)
      ? 'F'
      : 'AB'.includes(letter)
        ? 'A'
        : 'ZWP'.includes(letter)
          ? 'Z'
          : 'NC'.includes(letter)
            ? 'N'
            : 'U'

export const cvvLetter = (letter: string): string | undefined => ('MNPSU'.includes(letter) && letter !== '' ? letter : undefined)
