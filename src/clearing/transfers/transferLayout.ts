// Orders to transfer money, in CNAB 240 as FEBRABAN defines it (v10.6, payments): of each transfer segment A, what and where to, and segment B, to whom. A bank's
// return has the same rows, with its own numbers and what became of each.

import type { FieldPlace, RecordLayout } from '../cnab/layout.ts'

const record = (...fields: readonly FieldPlace[]): RecordLayout => ({ width: 240, fields })
const head = (type: string): readonly FieldPlace[] => [
  ['bank', 1, 3, 'n'],
  ['lot', 4, 7, 'n'],
  ['type', 8, 8, 'n', type],
]

/** Column 15 is blank with titles, and says something here. */
const segment = (letter: string, ...fields: readonly FieldPlace[]): RecordLayout =>
  record(...head('3'), ['sequence', 9, 13, 'n'], ['segment', 14, 14, 'x', letter], ...fields)

export const transferLayout = {
  lotHeader: record(
    ...head('1'),
    ['operation', 9, 9, 'x', 'C'],
    ['service', 10, 11, 'n'],
    ['form', 12, 13, 'n'],
    ['version', 14, 16, 'n', '046'],
    ['taxIdType', 18, 18, 'n'],
    ['taxId', 19, 32, 'x'],
    ['agreement', 33, 52, 'x'],
    ['agency', 53, 57, 'n'],
    ['agencyDigit', 58, 58, 'x'],
    ['account', 59, 70, 'n'],
    ['accountDigit', 71, 71, 'x'],
    ['placeDigit', 72, 72, 'x'],
    ['company', 73, 102, 'x'],
    ['street', 143, 172, 'x'],
    ['houseNumber', 173, 177, 'n'],
    ['city', 193, 212, 'x'],
    ['postcode', 213, 220, 'n'],
    ['state', 221, 222, 'x'],
    ['occurrences', 231, 240, 'x'],
  ),
  transfer: segment(
    'A',
    ['movement', 15, 15, 'n', '0'],
    ['instruction', 16, 17, 'n', '00'],
    ['clearing', 18, 20, 'n'],
    ['toBank', 21, 23, 'n'],
    ['toAgency', 24, 28, 'n'],
    ['toAgencyDigit', 29, 29, 'x'],
    ['toAccount', 30, 41, 'n'],
    ['toAccountDigit', 42, 42, 'x'],
    ['toPlaceDigit', 43, 43, 'x'],
    ['holder', 44, 73, 'x'],
    ['own', 74, 93, 'x'],
    ['payOn', 94, 101, 'd8'],
    ['currency', 102, 104, 'x', 'BRL'],
    ['quantity', 105, 119, 'n'],
    ['amount', 120, 134, 'v'],
    ['bankNumber', 135, 154, 'x'],
    ['paidOn', 155, 162, 'd8'],
    ['paid', 163, 177, 'v'],
    ['purpose', 220, 224, 'x'],
    ['notice', 230, 230, 'n'],
    ['occurrences', 231, 240, 'x'],
  ),
  receiver: segment(
    'B',
    ['taxIdType', 18, 18, 'n'],
    ['taxId', 19, 32, 'x'],
    ['dueOn', 128, 135, 'd8'],
    ['amount', 136, 150, 'v'],
  ),
  lotTrailer: record(...head('5'), ['records', 18, 23, 'n'], ['sum', 24, 41, 'v'], ['occurrences', 231, 240, 'x']),
} as const

/**
 * What a bank says of a transfer, two characters each (G059): the money is there, the order is taken in, or the order is refused by its form, its account or its
 * lot. What else a bank may say, also that it has replaced an account, is for a person to read.
 */
export const transferMeaningOf = (occurrence: string): 'paid' | 'underWay' | 'refused' | undefined =>
  ['00', '03'].includes(occurrence)
    ? 'paid'
    : occurrence === 'BD'
      ? 'underWay'
      : /^(0[12]|A[A-Z]|B[ABC]|C[A-Z]|H[A-Z]|T[A-Z])$/.test(occurrence)
        ? 'refused'
        : undefined
