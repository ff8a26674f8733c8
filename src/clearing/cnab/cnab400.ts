// CNAB 400: one skeleton, which each bank fills in another way.

import type { FieldPlace, RecordLayout } from './layout.ts'

export type Cnab400 = {
  /** Of returns. */
  readonly header: RecordLayout
  readonly title: RecordLayout
  readonly trailer: RecordLayout
  /** Of orders. */
  readonly orderHeader: RecordLayout
  readonly order: RecordLayout
  readonly orderTrailer: RecordLayout
}

const record = (...fields: readonly FieldPlace[]): RecordLayout => ({
  width: 400,
  fields: [...fields, ['sequence', 395, 400, 'n']],
})

/** In orders the words are always the same; banks write theirs as they like. */
const headerOf = (direction: '1' | '2', code: string, bankName: string, ...fields: readonly FieldPlace[]): RecordLayout => {
  const word = (name: string, first: number, last: number, text: string): FieldPlace =>
    direction === '1' ? [name, first, last, 'x', text] : [name, first, last, 'x']
  return record(
    ['type', 1, 1, 'n', '0'],
    ['direction', 2, 2, 'n', direction],
    ['word', 3, 9, 'x', direction === '1' ? 'REMESSA' : 'RETORNO'],
    ['service', 10, 11, 'n', '01'],
    word('serviceName', 12, 26, 'COBRANCA'),
    ...fields.filter(([, first]) => first < 77),
    ['bank', 77, 79, 'n', code],
    word('bankName', 80, 94, bankName),
    ['madeOn', 95, 100, 'd6'],
    ...fields.filter(([, first]) => first > 79),
  )
}

const company: FieldPlace = ['company', 47, 76, 'x']

/** What stands at one place with all three, in a return. */
const titleMiddle: readonly FieldPlace[] = [
  ['occurrence', 109, 110, 'n'],
  ['occurredOn', 111, 116, 'd6'],
  ['document', 117, 126, 'x'],
  ['dueOn', 147, 152, 'd6'],
  ['face', 153, 165, 'v'],
  ['payingBank', 166, 168, 'x'],
]
const titleMoney: readonly FieldPlace[] = [
  ['rebate', 228, 240, 'v'],
  ['discount', 241, 253, 'v'],
  ['moved', 254, 266, 'v'],
  ['interest', 267, 279, 'v'],
]

/** … and in an order. */
const companyId: readonly FieldPlace[] = [
  ['taxIdType', 2, 3, 'n'],
  ['taxId', 4, 17, 'x'],
]
const orderMiddle: readonly FieldPlace[] = [
  ['occurrence', 109, 110, 'n'],
  ['document', 111, 120, 'x'],
  ['dueOn', 121, 126, 'd6'],
  ['face', 127, 139, 'v'],
]
const orderMoney: readonly FieldPlace[] = [
  ['species', 148, 149, 'n', '01'],
  ['accepted', 150, 150, 'x', 'N'],
  ['madeOn', 151, 156, 'd6'],
  ['instructions', 157, 160, 'n'],
  ['interest', 161, 173, 'v'],
  ['discountUntil', 174, 179, 'd6'],
  ['discount', 180, 192, 'v'],
  ['tax', 193, 205, 'v'],
  ['rebate', 206, 218, 'v'],
  ['payerIdType', 219, 220, 'n'],
  ['payerId', 221, 234, 'x'],
]
const orderAddress: readonly FieldPlace[] = [
  ['payerStreet', 275, 314, 'x'],
  ['payerDistrict', 315, 326, 'x'],
  ['payerPostcode', 327, 334, 'n'],
  ['payerCity', 335, 349, 'x'],
  ['payerState', 350, 351, 'x'],
]

const trailerOf = (code: string, ...fields: readonly FieldPlace[]): RecordLayout =>
  record(
    ['type', 1, 1, 'n', '9'],
    ['direction', 2, 2, 'n', '2'],
    ['service', 3, 4, 'n', '01'],
    ['bank', 5, 7, 'n', code],
    ...fields,
  )

const orderTrailer = record(['type', 1, 1, 'n', '9'])

const itauPlace: readonly FieldPlace[] = [
  ['agency', 27, 30, 'n'],
  ['zeros', 31, 32, 'n'],
  ['account', 33, 37, 'n'],
  ['accountDigit', 38, 38, 'n'],
  company,
]

const itau: Cnab400 = {
  header: headerOf('2', '341', 'BANCO ITAU SA', ...itauPlace, ['fileNumber', 109, 113, 'n'], ['creditedOn', 114, 119, 'd6']),
  title: record(
    ['type', 1, 1, 'n', '1'],
    ['agency', 18, 21, 'n'],
    ['account', 24, 28, 'n'],
    ['own', 38, 62, 'x'],
    ['wallet', 83, 85, 'n'],
    ['number', 86, 93, 'n'],
    ['numberDigit', 94, 94, 'x'],
    ['stage', 107, 107, 'x'], // I when it is processed, C when it is credited
    ...titleMiddle,
    ['payingAgency', 169, 173, 'x'],
    ['fee', 176, 188, 'v'],
    ...titleMoney,
    ['otherCredit', 280, 292, 'v'],
    ['creditedOn', 296, 301, 'd6'],
    ['reasons', 378, 385, 'x'],
    ['channel', 393, 394, 'x'],
  ),
  trailer: trailerOf('341', ['titles', 213, 220, 'n']),
  orderHeader: headerOf('1', '341', 'BANCO ITAU SA', ...itauPlace),
  order: record(
    ['type', 1, 1, 'n', '1'],
    ...companyId,
    ['agency', 18, 21, 'n'],
    ['zeros', 22, 23, 'n'],
    ['account', 24, 28, 'n'],
    ['accountDigit', 29, 29, 'n'],
    ['cancelled', 34, 37, 'n'],
    ['own', 38, 62, 'x'],
    ['number', 63, 70, 'n'],
    ['quantity', 71, 83, 'v'],
    ['wallet', 84, 86, 'n'],
    ['walletCode', 108, 108, 'x', 'I'],
    ...orderMiddle,
    ['bank', 140, 142, 'n', '341'],
    ['collectingAgency', 143, 147, 'n'],
    ...orderMoney,
    ['payerName', 235, 264, 'x'],
    ...orderAddress,
    ['guarantorName', 352, 381, 'x'],
    ['lateFrom', 386, 391, 'd6'],
    ['days', 392, 393, 'n'],
  ),
  orderTrailer,
}

const bradescoPlace: readonly FieldPlace[] = [['agreement', 27, 46, 'n'], company]

const bradesco: Cnab400 = {
  header: headerOf('2', '237', 'BRADESCO', ...bradescoPlace, ['fileNumber', 109, 113, 'n'], ['creditedOn', 380, 385, 'd6']),
  title: record(
    ['type', 1, 1, 'n', '1'],
    ['own', 38, 62, 'x'],
    ['number', 71, 81, 'n'],
    ['numberDigit', 82, 82, 'x'],
    ['wallet', 108, 108, 'x'],
    ...titleMiddle,
    ['payingAgency', 169, 173, 'x'],
    ['fee', 176, 188, 'v'],
    ...titleMoney,
    ['creditedOn', 296, 301, 'd6'],
    ['channel', 302, 304, 'x'],
    ['reasons', 319, 328, 'x'],
  ),
  trailer: trailerOf('237'),
  orderHeader: headerOf('1', '237', 'BRADESCO', ...bradescoPlace, ['system', 109, 110, 'x', 'MX'], ['fileNumber', 111, 117, 'n']),
  order: record(
    ['type', 1, 1, 'n', '1'],
    ['debit', 2, 20, 'n'],
    ['zero', 21, 21, 'n', '0'],
    ['wallet', 22, 24, 'n'],
    ['agency', 25, 29, 'n'],
    ['account', 30, 36, 'n'],
    ['accountDigit', 37, 37, 'x'],
    ['own', 38, 62, 'x'],
    ['debitBank', 63, 65, 'n'],
    ['fine', 66, 70, 'n'],
    ['number', 71, 81, 'n'],
    ['numberDigit', 82, 82, 'x'],
    ['bonus', 83, 92, 'v'],
    ['issuedBy', 93, 93, 'n', '2'],
    ['debitSlip', 94, 94, 'x', 'N'],
    ...orderMiddle,
    ['collectingBank', 140, 142, 'n'],
    ['collectingAgency', 143, 147, 'n'],
    ...orderMoney,
    ['payerName', 235, 274, 'x'],
    ['payerStreet', 275, 314, 'x'],
    ['message', 315, 326, 'x'],
    ['payerPostcode', 327, 334, 'n'],
    ['secondMessage', 335, 394, 'x'],
  ),
  orderTrailer,
}

const brasilPlace: readonly FieldPlace[] = [
  ['agency', 27, 30, 'n'],
  ['agencyDigit', 31, 31, 'x'],
  ['account', 32, 39, 'n'],
  ['accountDigit', 40, 40, 'x'],
  ['zeros', 41, 46, 'n'],
  company,
]

/** CBR643 and CBR641, for agreements of seven digits. */
const brasil: Cnab400 = {
  header: headerOf('2', '001', 'BANCODOBRASIL', ...brasilPlace, ['fileNumber', 101, 107, 'n'], ['agreement', 150, 156, 'n']),
  title: record(
    ['type', 1, 1, 'n', '7'],
    ['own', 39, 63, 'x'],
    ['number', 64, 80, 'n'],
    ['nature', 87, 88, 'x'],
    ...titleMiddle,
    ['payingAgency', 169, 172, 'x'],
    ['creditedOn', 176, 181, 'd6'],
    ['fee', 182, 188, 'v'],
    ...titleMoney,
    ['net', 306, 318, 'v'],
    ['channel', 393, 394, 'x'],
  ),
  trailer: trailerOf('001'),
  orderHeader: headerOf('1', '001', 'BANCODOBRASIL', ...brasilPlace, ['fileNumber', 101, 107, 'n'], ['agreement', 130, 136, 'n']),
  order: record(
    ['type', 1, 1, 'n', '7'],
    ...companyId,
    ['agency', 18, 21, 'n'],
    ['agencyDigit', 22, 22, 'x'],
    ['account', 23, 30, 'n'],
    ['accountDigit', 31, 31, 'x'],
    ['agreement', 32, 38, 'n'],
    ['own', 39, 63, 'x'],
    ['number', 64, 80, 'n'],
    ['zeros', 81, 84, 'n'],
    ['variation', 92, 94, 'n', '019'],
    ['assured', 95, 101, 'n'],
    ['wallet', 107, 108, 'n'],
    ...orderMiddle,
    ['bank', 140, 142, 'n', '001'],
    ['collectingAgency', 143, 146, 'n'],
    ...orderMoney,
    ['payerName', 235, 271, 'x'],
    ...orderAddress,
    ['message', 352, 391, 'x'],
  ),
  orderTrailer,
}

/** Code in clearing → layouts. */
export const cnab400: ReadonlyMap<string, Cnab400> = new Map([
  ['341', itau],
  ['237', bradesco],
  ['001', brasil],
])
