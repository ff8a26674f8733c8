// A profile: how one acquirer's host speaks, as data of ACQUIRERS_FILE. What it leaves out is that of the example that it is like.
// docs/operating-acquirer.md walks through every key.

import type { Input, Output } from '../../../platform/schema.ts'
import {
  filled,
  filledListOf,
  flag,
  listOf,
  mapOf,
  object,
  oneOf,
  optional,
  read,
  text,
  where,
  whole,
} from '../../../platform/schema.ts'
import { bookingKinds } from './bookingKinds.ts'
import { meanings } from './privateData.ts'
import { actionCodes } from './responseCodes.ts'

/** Names of messages, by what they are for: the operations, what recovery sends, and network messages. */
export const profiledMessages = ['PA', 'DB', 'CD', 'CP', 'RF', 'RV', 'timeOut', 'release', 'network', 'reconciliation'] as const
export type ProfiledMessage = (typeof profiledMessages)[number]

/** How the card came to the merchant; an account check is of no amount. */
export const entryKinds = ['electronicCommerce', 'onFile', 'mailOrder', 'telephoneOrder', 'accountCheck'] as const
export type EntryKind = (typeof entryKinds)[number]

/** An answer is read by what it answers: the first message, its repeat, or a reversal. */
export const situations = ['first', 'repeat', 'reversal'] as const
export type Situation = (typeof situations)[number]

const fieldNumber = text(/^([2-9]|[1-9]\d|1[01]\d|12[0-8])$/, 'must be the number of a field, from 2 to 128')
const numbers = filledListOf(whole(2, 128))
const constant = text(/^[\x20-\x7e]+$/, 'must be printable ASCII')
const length = text(
  /^(\d{1,3}|\.\.\d{1,2}|\.\.\.\d{1,3})$/,
  'must be a length: 6, ..19 behind two digits, or ...999 behind three',
)
const code = text(/^[0-9A-Z]{2,3}$/, 'must be 2 or 3 letters and digits')
const response = text(/^[0-9A-Z]{2}$/, 'must be a response code of 1987: 2 letters and digits')
const hex = text(/^([0-9a-fA-F]{2}){1,64}$/, 'must be 1 to 64 bytes in hex')

const framing = where(
  object({
    bytes: oneOf([2, 4]),
    written: oneOf(['binary', 'bcd', 'ascii']),
    /** The length's own bytes are counted too. */
    countsItself: optional(flag, false),
  }),
  ({ bytes, written }) => written !== 'ascii' || bytes === 4,
  'counts to 99 only: two bytes of ASCII are too few',
)

const field = object({
  content: oneOf(['n', 'an', 'ans', 'z', 'x', 'b']),
  length,
  /** Absent: digits as the profile writes digits, bytes as bytes, all else in its characters. */
  written: optional(oneOf(['characters', 'bcd', 'binary'])),
  secret: optional(flag, false),
})

const part = object({
  what: oneOf(Object.keys(meanings) as (keyof typeof meanings)[]),
  tag: optional(text(/^[0-9A-Za-z]{1,8}$/, 'must be 1 to 8 letters and digits')),
  length: optional(whole(1, 999)),
})

const privateData = where(
  object({
    field: whole(2, 127),
    /** tagLengthValue and lengthTagValue (where the length counts the tag): as many as are known; fixed: places in order, filled with spaces. */
    layout: oneOf(['tagLengthValue', 'lengthTagValue', 'fixed']),
    lengthDigits: optional(oneOf([2, 3]), 2),
    parts: filledListOf(part),
  }),
  ({ layout, parts }) =>
    layout === 'fixed'
      ? parts.every(({ what, length = 0 }) => length >= meanings[what])
      : new Set(parts.map(({ tag }) => tag?.length)).size === 1 && parts[0]!.tag !== undefined,
  ({ input: { layout } }) =>
    layout === 'fixed'
      ? 'needs for each part a length that holds its longest value'
      : 'needs for each part a tag, all of one length',
)

const isTimeZone = (name: string): boolean => {
  if (name === 'UTC') return true // the names of all zones take as long to load as a tenth of a start
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

/** How its day ends, and who says what was in it. */
const reconciliation = object({
  by: optional(oneOf(['none', 'message', 'file']), 'none'),
  /** A day ends then; from then on it is the next one. 24:00 is midnight. */
  cutOver: optional(text(/^(24:00|(?!00:00)([01]\d|2[0-3]):[0-5]\d)$/, 'must be a time from 00:01 to 24:00'), '24:00'),
  /** Absent: that of the profile. */
  timeZone: optional(where(filled, isTimeZone, 'is no time zone, for example America/Sao_Paulo')),
  /** So long after the end the totals are sent, or its file is missed. */
  afterMinutes: optional(whole(0, 10_080), 10),
})

/** What a settlement file tells, and where: `column` of its heading (csv), or so many characters in order (fixed). */
export const settledParts = [
  'day',
  'acquirerId',
  'terminal',
  'trace',
  'reference',
  'kind',
  'amount',
  'currency',
  'count',
  'sum',
  'filling',
] as const
const settledRecord = object({
  /** The first characters or the first cell of such a record. */
  mark: optional(constant),
  parts: filledListOf(object({ what: oneOf(settledParts), column: optional(filled), length: optional(whole(1, 999)) })),
})

const settlementFile = where(
  object({
    layout: oneOf(['csv', 'fixed']),
    separator: optional(oneOf([',', ';', '|', '\t']), ','),
    days: optional(oneOf(['yyyy-MM-dd', 'yyyyMMdd', 'yyMMdd', 'ddMMyyyy', 'dd/MM/yyyy']), 'yyyy-MM-dd'),
    /** Decimals are those of the currency. */
    amounts: optional(oneOf(['minorUnits', 'decimals']), 'minorUnits'),
    /** Their words for what a line is. */
    kinds: optional(mapOf(text(/^[0-9A-Za-z+-]{1,10}$/, 'must be 1 to 10 letters and digits'), oneOf(bookingKinds)), {
      D: 'debit',
      DR: 'debitReversal',
      C: 'credit',
      CR: 'creditReversal',
    }),
    header: optional(settledRecord),
    line: settledRecord,
    trailer: optional(settledRecord),
  }),
  given => mistakeInSettlement(given) === undefined,
  ({ input }) => mistakeInSettlement(input)!,
)

type SettlementInput = {
  readonly layout: string
  readonly header?: Output<typeof settledRecord>
  readonly line: Output<typeof settledRecord>
  readonly trailer?: Output<typeof settledRecord>
}

function mistakeInSettlement({ layout, header, line, trailer }: SettlementInput): string | undefined {
  const whats = new Set([...(header?.parts ?? []), ...line.parts].map(({ what }) => what))
  const missing = (['reference', 'kind', 'amount', 'currency', 'day', 'acquirerId'] as const).find(what => !whats.has(what))
  if (missing) return `tells no ${missing}`
  if (layout === 'csv') {
    if (header) return 'has a header, which csv takes from the first row'
    if (line.parts.some(({ column }) => column === undefined)) return 'needs a column for each part of its lines'
    return trailer && trailer.mark === undefined ? 'needs a mark for its trailer' : undefined
  }
  const records = [header, line, trailer].filter(one => one !== undefined)
  if (records.some(({ mark }) => mark === undefined)) return 'needs a mark for each kind of record'
  return records.some(({ parts }) => parts.some(({ length }) => length === undefined))
    ? 'needs a length for each part'
    : undefined
}

/** How captures reach it: each as a message, or many in files with a number. */
const captures = where(
  object({
    by: optional(oneOf(['message', 'file']), 'message'),
    folder: optional(text(/^\/[^\0]*$/, 'must be an absolute path')),
    everyMinutes: optional(whole(1, 1440), 60),
    separator: optional(oneOf([',', ';', '|', '\t']), ','),
    fileName: optional(
      text(
        /^(?=.*\{sequence\})[A-Za-z0-9{]([A-Za-z0-9_.-]|\{(sequence|acquirer|date)\}|(?<=^\{)(sequence|acquirer|date)\})*$/,
        'must be letters, digits, dots and hyphens with {sequence}, and {acquirer} or {date} where wanted',
      ),
      'captures-{acquirer}-{sequence}.csv',
    ),
  }),
  ({ by, folder }) => by === 'message' || folder !== undefined,
  'needs a folder',
)

const entries = {
  edition: optional(oneOf(['1987', '1993'])),
  framing: optional(framing),
  /** Bytes before each message: of ours, and of those that the host sends; absent: any as long as ours. */
  header: optional(object({ sent: hex, answered: optional(hex) })),
  characters: optional(oneOf(['ascii', 'ebcdic'])),
  digits: optional(oneOf(['characters', 'bcd'])),
  lengths: optional(oneOf(['characters', 'bcd'])),
  typeIndicator: optional(oneOf(['characters', 'bcd'])),
  bitmap: optional(oneOf(['binary', 'hex'])),
  /** Where packed digits of variable length and odd number get their filling nibble. */
  filling: optional(oneOf(['fBehind', 'zeroBefore'])),
  fields: optional(mapOf(fieldNumber, field)),
  /** Fields that we know nothing of but their length: they are read over. Any other makes a message unreadable. */
  tolerates: optional(mapOf(fieldNumber, length)),
  /** The fields that a message may carry; absent: all that there are. */
  messages: optional(mapOf(oneOf(profiledMessages), numbers)),
  /** Fields that always hold the same. */
  constants: optional(mapOf(fieldNumber, constant)),
  /** DE22 and what goes with it, by the way that the card came. */
  entry: optional(mapOf(oneOf(entryKinds), mapOf(fieldNumber, constant))),
  /** An answer belongs to the message with the same of these. */
  matching: optional(numbers),
  privateData: optional(listOf(privateData)),
  /** Of DE12 and DE13; DE7 is always in UTC. */
  timeZone: optional(where(filled, isTimeZone, 'is no time zone, for example America/Sao_Paulo')),
  /** The host's own codes of DE39 as those of 1987, by what they answer; repeats and reversals without an own word have that of the first. */
  codes: optional(mapOf(oneOf(situations), mapOf(code, response))),
  reconciliation: optional(reconciliation),
  captures: optional(captures),
  settlementFile: optional(settlementFile),
  /** Who gives DE37. */
  retrievalReference: optional(oneOf(['gateway', 'host'])),
  mac: optional(
    object({
      algorithm: oneOf(['none', 'retail', 'cmac']),
      /** A working key is asked for after each sign-on, and taken when the host sends one. */
      exchange: optional(flag, false),
    }),
  ),
} as const

const parts = object(entries)
type Given = Output<typeof parts>
export type Profile = Required<Omit<Given, 'header' | 'settlementFile'>> & Pick<Given, 'header' | 'settlementFile'>

const tagged = (tags: Readonly<Record<string, string>>) => Object.entries(tags).map(([what, tag]) => ({ what, tag }))

const tagsOf1987 = {
  instalments: '20',
  cardOnFile: '22',
  airlineTicket: '31',
  airlineReference: '32',
  submerchant: '37',
  electronicCommerce: '42',
  cryptogram: '43',
  networkTransaction: '63',
  authenticationTransaction: '66',
  address: '82',
  cvv: '92',
}

const ascii1987: Input<typeof parts> = {
  edition: '1987',
  framing: { bytes: 2, written: 'binary' },
  characters: 'ascii',
  digits: 'characters',
  lengths: 'characters',
  typeIndicator: 'characters',
  bitmap: 'binary',
  filling: 'fBehind',
  fields: {},
  tolerates: {},
  messages: {},
  constants: {},
  entry: {
    electronicCommerce: { 22: '010', 25: '59' },
    onFile: { 22: '100', 25: '59' },
    mailOrder: { 22: '012', 25: '08' },
    telephoneOrder: { 22: '012', 25: '08' },
    accountCheck: { 22: '010', 25: '51' },
  },
  matching: [7, 11, 41],
  privateData: [{ field: 48, layout: 'tagLengthValue', parts: tagged(tagsOf1987) as [] }],
  timeZone: 'UTC',
  codes: {},
  reconciliation: {},
  captures: {},
  settlementFile: {
    layout: 'csv',
    line: {
      parts: [
        { what: 'day', column: 'DATE' },
        { what: 'acquirerId', column: 'ACQUIRER' },
        { what: 'terminal', column: 'TERMINAL' },
        { what: 'trace', column: 'STAN' },
        { what: 'reference', column: 'RRN' },
        { what: 'kind', column: 'TYPE' },
        { what: 'amount', column: 'AMOUNT' },
        { what: 'currency', column: 'CURRENCY' },
      ],
    },
    trailer: { mark: 'TOTAL', parts: [{ what: 'count' }, { what: 'sum' }] },
  },
  retrievalReference: 'gateway',
  mac: { algorithm: 'none' },
}

/** Four that differ in everything; each is spoken by the acquirer host of the sandbox too. */
const examples = {
  '1987': ascii1987,
  '1987 bcd': {
    ...ascii1987,
    framing: { bytes: 2, written: 'bcd' },
    header: { sent: '6000010000', answered: '6000000001' },
    digits: 'bcd',
    lengths: 'bcd',
    typeIndicator: 'bcd',
    constants: { 24: '001' },
    matching: [11, 41],
    privateData: [
      { field: 48, layout: 'tagLengthValue', parts: tagged({ cvv: '92', address: '82' }) as [] },
      {
        field: 63,
        layout: 'lengthTagValue',
        parts: tagged({
          instalments: '14',
          cardOnFile: '22',
          networkTransaction: '36',
          electronicCommerce: '42',
          cryptogram: '43',
        }) as [],
      },
    ],
    timeZone: 'America/Sao_Paulo',
    codes: { first: { Q1: '51' }, reversal: { Q9: '25' } },
    retrievalReference: 'host',
    mac: { algorithm: 'retail' },
  },
  '1987 ebcdic': {
    ...ascii1987,
    framing: { bytes: 4, written: 'binary', countsItself: true },
    header: { sent: 'c9e2d6f0f1', answered: 'c9e2d6f0f2' },
    characters: 'ebcdic',
    bitmap: 'hex',
    tolerates: { 105: '...999', 127: '..50' },
    messages: { release: [2, 3, 4, 7, 11, 12, 13, 32, 37, 38, 41, 42, 49, 90, 95] },
    matching: [7, 11, 32],
    privateData: [
      {
        field: 48,
        layout: 'fixed',
        parts: [
          { what: 'cvv', length: 4 },
          { what: 'cardOnFile', length: 4 },
          { what: 'electronicCommerce', length: 2 },
          { what: 'cryptogram', length: 28 },
          { what: 'networkTransaction', length: 40 },
          { what: 'address', length: 40 },
        ],
      },
    ],
    timeZone: 'Asia/Tokyo',
    codes: { first: { A0: '00' } },
    settlementFile: {
      layout: 'fixed',
      days: 'yyyyMMdd',
      header: {
        mark: 'H',
        parts: [
          { what: 'day', length: 8 },
          { what: 'acquirerId', length: 11 },
          { what: 'filling', length: 40 },
        ],
      },
      line: {
        mark: 'D',
        parts: [
          { what: 'terminal', length: 8 },
          { what: 'trace', length: 6 },
          { what: 'reference', length: 12 },
          { what: 'kind', length: 2 },
          { what: 'amount', length: 12 },
          { what: 'currency', length: 3 },
          { what: 'filling', length: 16 },
        ],
      },
      trailer: {
        mark: 'T',
        parts: [
          { what: 'count', length: 9 },
          { what: 'sum', length: 18 },
          { what: 'filling', length: 32 },
        ],
      },
    },
    mac: { algorithm: 'cmac', exchange: true },
  },
  '1993': {
    ...ascii1987,
    edition: '1993',
    framing: { bytes: 4, written: 'ascii' },
    entry: {
      electronicCommerce: { 22: '100050100110' },
      onFile: { 22: '100040A00110' },
      mailOrder: { 22: '100020100110' },
      telephoneOrder: { 22: '100030100110' },
      accountCheck: { 22: '100050100110', 24: '108' },
    },
    matching: [11, 12, 41],
    privateData: [{ field: 48, layout: 'tagLengthValue', lengthDigits: 3, parts: tagged(tagsOf1987) as [] }],
    timeZone: 'America/Bogota',
    codes: { first: actionCodes },
    reconciliation: { by: 'message' },
    mac: { algorithm: 'cmac' },
  },
} satisfies Record<string, Input<typeof parts>>

export type ExampleName = keyof typeof examples
export const exampleNames = Object.keys(examples) as readonly ExampleName[]

/** Maps add to those of the example, all else replaces it. */
const mapKeys = ['fields', 'tolerates', 'messages', 'constants', 'entry', 'codes'] as const

/** With what the example says. */
export function wholeProfile({ like, ...given }: GivenProfile): Profile {
  const example = read(parts, examples[like], `the example ${like}`) as Profile
  const maps = mapKeys.map(key => [key, { ...example[key], ...given[key] }])
  return { ...example, ...given, ...Object.fromEntries(maps) }
}

/** What each field alone cannot tell. */
function mistakeOf(given: GivenProfile): string | undefined {
  const { matching, messages, retrievalReference } = wholeProfile(given)
  const cut = Object.entries(messages).find(([kind, list]) =>
    (kind === 'network' ? [11] : [...(kind === 'reconciliation' ? [] : [3]), 11, ...matching]).some(
      number => !list.includes(number),
    ),
  )
  if (cut) return `has a list messages.${cut[0]} without DE3, DE11 or a field of the matching key`
  return retrievalReference === 'host' && matching.includes(37) ? 'cannot match by DE37, which the host gives' : undefined
}

const written = object({ like: optional(oneOf(exampleNames), '1987'), ...entries })
export type GivenProfile = Output<typeof written>

/** A profile as it is written: what differs from the example that it is like. */
export const profileSchema = where(
  written,
  given => mistakeOf(given) === undefined,
  ({ input }) => mistakeOf(input)!,
)
