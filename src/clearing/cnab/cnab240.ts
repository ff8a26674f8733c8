// CNAB 240 as FEBRABAN defines it (v10.6): a file of lots; of a title that moved, a return has segment T and then U, an order P and then Q.

import type { FieldPlace, RecordLayout } from './layout.ts'

export const cnabRecord = (...fields: readonly FieldPlace[]): RecordLayout => ({ width: 240, fields })

/** What all records begin with. */
export const head = (type: string, lot?: string): readonly FieldPlace[] => [
  ['bank', 1, 3, 'n'],
  lot === undefined ? ['lot', 4, 7, 'n'] : ['lot', 4, 7, 'n', lot],
  ['type', 8, 8, 'n', type],
]

/** The account, as it stands in headers from a column on. */
export const holder = (at: number): readonly FieldPlace[] => [
  ['agreement', at, at + 19, 'x'],
  ['agency', at + 20, at + 24, 'n'],
  ['agencyDigit', at + 25, at + 25, 'x'],
  ['account', at + 26, at + 37, 'n'],
  ['accountDigit', at + 38, at + 38, 'x'],
  ['placeDigit', at + 39, at + 39, 'x'],
  ['company', at + 40, at + 69, 'x'],
]

const place: readonly FieldPlace[] = [
  ['agency', 18, 22, 'n'],
  ['agencyDigit', 23, 23, 'x'],
  ['account', 24, 35, 'n'],
  ['accountDigit', 36, 36, 'x'],
  ['placeDigit', 37, 37, 'x'],
  ['number', 38, 57, 'x'],
]

export const segment = (letter: string, ...fields: readonly FieldPlace[]): RecordLayout =>
  cnabRecord(...head('3'), ['sequence', 9, 13, 'n'], ['segment', 14, 14, 'x', letter], ...fields)

/** Column 15 is blank with titles. */
const titleSegment = (letter: string, ...fields: readonly FieldPlace[]): RecordLayout =>
  segment(letter, ['blank', 15, 15, 'x'], ...fields)

export const cnab240 = {
  fileHeader: cnabRecord(
    ...head('0', '0000'),
    ['taxIdType', 18, 18, 'n'],
    ['taxId', 19, 32, 'x'],
    ...holder(33),
    ['bankName', 103, 132, 'x'],
    ['direction', 143, 143, 'n'], // 1 to the bank, 2 from it
    ['madeOn', 144, 151, 'd8'],
    ['madeAt', 152, 157, 'n'],
    ['fileNumber', 158, 163, 'n'],
    ['version', 164, 166, 'n'],
    ['density', 167, 171, 'n'],
  ),
  lotHeader: cnabRecord(
    ...head('1'),
    ['operation', 9, 9, 'x'],
    ['service', 10, 11, 'n'],
    ['version', 14, 16, 'n'],
    ['taxIdType', 18, 18, 'n'],
    ['taxId', 19, 33, 'x'],
    ...holder(34),
    ['orderNumber', 184, 191, 'n'],
    ['madeOn', 192, 199, 'd8'],
    ['creditedOn', 200, 207, 'd8'],
  ),
  title: titleSegment(
    'T',
    ['occurrence', 16, 17, 'n'],
    ...place,
    ['wallet', 58, 58, 'x'],
    ['document', 59, 73, 'x'],
    ['dueOn', 74, 81, 'd8'],
    ['face', 82, 96, 'v'],
    ['payingBank', 97, 99, 'x'],
    ['payingAgency', 100, 105, 'x'],
    ['own', 106, 130, 'x'],
    ['fee', 199, 213, 'v'],
    ['reasons', 214, 223, 'x'],
  ),
  money: titleSegment(
    'U',
    ['occurrence', 16, 17, 'n'],
    ['interest', 18, 32, 'v'],
    ['discount', 33, 47, 'v'],
    ['rebate', 48, 62, 'v'],
    ['paid', 78, 92, 'v'],
    ['net', 93, 107, 'v'],
    ['occurredOn', 138, 145, 'd8'],
    ['creditedOn', 146, 153, 'd8'],
  ),
  order: titleSegment(
    'P',
    ['occurrence', 16, 17, 'n'],
    ...place,
    ['wallet', 58, 58, 'n'],
    ['registration', 59, 59, 'n', '1'],
    ['documentType', 60, 60, 'x', '1'],
    ['issuedBy', 61, 61, 'n', '2'],
    ['handedOutBy', 62, 62, 'x', '2'],
    ['document', 63, 77, 'x'],
    ['dueOn', 78, 85, 'd8'],
    ['face', 86, 100, 'v'],
    ['collectingAgency', 101, 105, 'n'],
    ['collectingDigit', 106, 106, 'x'],
    ['species', 107, 108, 'n', '02'],
    ['accepted', 109, 109, 'x', 'N'],
    ['madeOn', 110, 117, 'd8'],
    ['interestKind', 118, 118, 'n', '3'],
    ['interestFrom', 119, 126, 'd8'],
    ['interest', 127, 141, 'v'],
    ['discountKind', 142, 142, 'n'],
    ['discountUntil', 143, 150, 'd8'],
    ['discount', 151, 165, 'v'],
    ['tax', 166, 180, 'v'],
    ['rebate', 181, 195, 'v'],
    ['own', 196, 220, 'x'],
    ['protest', 221, 221, 'n', '3'],
    ['protestDays', 222, 223, 'n'],
    ['writeOff', 224, 224, 'n'],
    ['writeOffDays', 225, 227, 'n'],
    ['currency', 228, 229, 'n', '09'],
    ['contract', 230, 239, 'n'],
  ),
  payer: titleSegment(
    'Q',
    ['occurrence', 16, 17, 'n'],
    ['payerIdType', 18, 18, 'n'],
    ['payerId', 19, 33, 'x'],
    ['payerName', 34, 73, 'x'],
    ['payerStreet', 74, 113, 'x'],
    ['payerDistrict', 114, 128, 'x'],
    ['payerPostcode', 129, 136, 'n'],
    ['payerCity', 137, 151, 'x'],
    ['payerState', 152, 153, 'x'],
    ['guarantorType', 154, 154, 'n'],
    ['guarantorId', 155, 169, 'n'],
    ['guarantorName', 170, 209, 'x'],
    ['otherBank', 210, 212, 'n'],
  ),
  lotTrailer: cnabRecord(
    ...head('5'),
    ['records', 18, 23, 'n'],
    ['simpleCount', 24, 29, 'n'],
    ['simpleSum', 30, 46, 'v'],
    ['boundCount', 47, 52, 'n'],
    ['boundSum', 53, 69, 'v'],
    ['pledgedCount', 70, 75, 'n'],
    ['pledgedSum', 76, 92, 'v'],
    ['discountedCount', 93, 98, 'n'],
    ['discountedSum', 99, 115, 'v'],
  ),
  fileTrailer: cnabRecord(...head('9', '9999'), ['lots', 18, 23, 'n'], ['records', 24, 29, 'n'], ['accounts', 30, 35, 'n']),
} as const
