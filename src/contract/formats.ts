// The notation of the interface as values: A = letters, N = digits, AN = any characters, and the few shapes beside them.
// A format knows its own limits, so that validation, the reference page, OpenAPI and the boundary tests say the same.
// Patterns are read with the flag u here and with v by HTML forms: signs in a class that v reserves are escaped.

import { parseUrl } from './url.ts'

export type Format = {
  /** As the specification writes it, for example `AN255, 8 to 255`. */
  readonly label: string
  /** The whole value must match. Lengths count code points, not UTF-16 units. */
  readonly pattern: RegExp
  /** Beyond the pattern: is this really a calendar day, a currency of the list? */
  readonly also?: (value: string) => boolean
  /** What an error says, for example `must match ^[0-9]{3,4}$`. */
  readonly rule: string
  /** What an error says of this very value, where that is more than the rule. */
  readonly why?: (value: string) => string | undefined
  /** Values that just fit, and values that just don't: the two sides of every limit. */
  readonly fits: readonly string[]
  readonly fails: readonly string[]
  /** Least and most code points, where the format is a matter of length. */
  readonly lengths?: readonly [min: number, max: number]
  /** The words of a closed list. */
  readonly words?: readonly string[]
  /** Its digits are a quantity, or an id of ours: no card number is looked for in them. */
  readonly quantity?: true
}

/** True when the value has the format. */
export const matches = (format: Format, value: string): boolean =>
  format.pattern.test(value) && (format.also === undefined || format.also(value))

// Control characters are refused everywhere; longer free texts may hold tabs and line ends.
const oneLine = '[^\\u0000-\\u001f\\u007f-\\u009f]'
const manyLines = '[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]'

/** AN: any characters on one line. */
export const AN = (max: number, min = 1): Format => text(`AN${max}`, oneLine, max, min)

/** AN for free texts that people write over several lines. */
export const prose = (max: number, min = 1): Format => text(`AN${max}`, manyLines, max, min)

/** Text without an upper limit of its own (what is too long is truncated, see the row). */
export const anyText: Format = {
  ...build('text', `^${oneLine}+$`),
  fits: ['a', 'é'.repeat(200)],
  fails: ['\u0000a', 'a\u0007'],
}

/** A: letters of all scripts with the marks and signs that names need (decisions, 25). */
export const A = (max: number, min = 1): Format => ({
  ...chars(`A${max}`, "\\p{L}\\p{M} .'’\\-", max, min),
  fits: ['a'.repeat(min), 'é'.repeat(max)],
  fails: [...tooLongOrShort(max, min), `${'a'.repeat(min)}7`, `${'a'.repeat(min)}\u0000`],
})

/** Letters and digits of all scripts, and the extra characters given. */
export const lettersAndDigits = (max: number, extra = '', min = 1): Format => ({
  ...chars(`AN${max}: letters, digits${signsOf(extra)}`, `\\p{L}\\p{M}\\p{N}${extra}`, max, min),
  fits: ['a'.repeat(min), '7'.repeat(max)],
  fails: [...tooLongOrShort(max, min), '!'.repeat(min), 'a b'],
})

/** Characters of a class as in a regular expression, ASCII only. */
export const ascii = (characters: string, max: number, min = 1): Format => ({
  ...chars(`AN${max}: letters, digits${signsOf(characters)}`, characters, max, min),
  fits: ['a'.repeat(min), 'a'.repeat(max)],
  fails: [...tooLongOrShort(max, min), 'é'.repeat(Math.max(min, 1))],
})

/** N: digits. */
export const N = (max: number, min = 1): Format => ({
  ...build(range(`N${max}`, max, min), `^[0-9]{${min},${max}}$`),
  lengths: [min, max],
  fits: ['7'.repeat(min), '7'.repeat(max)],
  fails: ['7'.repeat(max + 1), ...(min > 1 ? ['7'.repeat(min - 1)] : []), `${'7'.repeat(min - 1)}a`, '٣'.repeat(min)],
})

/** N10.N2: one to ten digits, and either nothing or a dot and exactly two decimals. */
export const amount: Format = {
  quantity: true,
  ...build('N10.N2', '^[0-9]{1,10}(\\.[0-9]{2})?$'),
  fits: ['9', '9999999999', '9.99', '9999999999.99'],
  fails: ['99999999990', '1.5', '1.555', '1,00', '-1.00', '.50', '1.', '1e3', ' 1.00', '+1.00'],
}

/** A percentage from 0 to 100 with at most two decimals. */
export const percentage: Format = {
  ...build('0 to 100, up to two decimals', '^(100(\\.0{1,2})?|[0-9]{1,2}(\\.[0-9]{1,2})?)$'),
  fits: ['0', '19', '19.5', '99.99', '100', '100.00'],
  fails: ['100.01', '101', '19.555', '-1', '19,5'],
}

/** A calendar day, yyyy-MM-dd. */
export const date: Format = {
  ...build('yyyy-MM-dd', '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', isCalendarDay),
  rule: 'must be a calendar day written yyyy-MM-dd',
  fits: ['2028-02-29', '1999-12-31'],
  fails: ['2027-02-29', '2027-13-01', '2027-1-01', '01.01.2027', '2027-00-10', '2027-04-31'],
}

/** A calendar day of the years 1900 to 2099, as reports take it. */
export const reportDate: Format = {
  ...build('yyyy-MM-dd', '^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}$', isCalendarDay),
  rule: 'must be a calendar day written yyyy-MM-dd, its year beginning with 19 or 20',
  fits: ['1900-01-01', '2099-12-31'],
  fails: ['1899-12-31', '2100-01-01', '2027-02-29', '2027-1-1'],
}

/** A day, or a day and a time of 24 hours. */
export const reportTime: Format = {
  ...build(
    'yyyy-MM-dd or yyyy-MM-dd HH:mm:ss',
    '^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}( ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])?$',
    isCalendarDay,
  ),
  rule: 'must be written yyyy-MM-dd or yyyy-MM-dd HH:mm:ss',
  fits: ['2027-01-31', '2027-01-31 23:59:59'],
  fails: ['2027-01-31 24:00:00', '2027-02-30', '2027-01-31T10:00:00', '2100-01-01'],
}

/** A day and a time of 24 hours. */
export const dateTime: Format = {
  ...build('yyyy-MM-dd hh:mm:ss', '^[0-9]{4}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$', isCalendarDay),
  rule: 'must be written yyyy-MM-dd hh:mm:ss, 24 hours',
  fits: ['2027-01-31 00:00:00', '2028-02-29 23:59:59'],
  fails: ['2027-01-31 24:00:00', '2027-01-31', '2027-02-30 10:00:00', '2027-01-31 10:60:00'],
}

/** Optional plus, then digits, spaces, dots, parentheses, slashes, hyphens; 6 to 25 characters in all. */
export const phone: Format = {
  lengths: [6, 25],
  ...build(
    'AN25, 6 to 25: optional plus, then digits, spaces, dots, parentheses, slashes, hyphens',
    '^(?=.{6,25}$)\\+?[0-9 .\\(\\)\\/\\-]+$',
  ),
  fits: ['123456', `+${'1'.repeat(24)}`, '+49 (89) 1/2-3.4'],
  fails: ['12345', `+${'1'.repeat(25)}`, '12345x', '49+123456'],
}

/** Two letters; upper-case of ISO 3166-1 unless either case is allowed. */
export const country: Format = {
  ...build('A2', '^[A-Z]{2}$', value => countries.has(value)),
  rule: 'must be an upper-case ISO 3166-1 alpha-2 code',
  fits: ['DE', 'BR'],
  fails: ['de', 'D', 'DEU', 'XX', 'ZZ'],
}
export const countryOfEitherCase: Format = {
  ...build('A2', '^[A-Za-z]{2}$'),
  fits: ['DE', 'br'],
  fails: ['D', 'DEU', 'D1'],
}

/** A web address, as it stands after URL decoding. */
export const url: Format = {
  lengths: [6, 2048],
  ...build('AN2048, 6 to 2048', '^[^\\u0000-\\u0020\\u007f-\\u009f]{6,2048}$', isWebAddress),
  rule: 'must be an absolute http or https address without user name and white space, of 6 to 2048 characters',
  fits: ['http://a', `https://shop.example/${'a'.repeat(2048 - 21)}`],
  fails: [
    `https://shop.example/${'a'.repeat(2048 - 20)}`,
    'a.b/c',
    'javascript:alert(1)',
    'https://a b',
    'https://user:pw@shop.example/',
    'ftp://shop.example/',
  ],
}

/** What a browser runs, shows or fetches itself is no app. */
const browserSchemes: ReadonlySet<string> = new Set(
  'http https javascript data vbscript blob file filesystem about view-source ws wss ftp mailto tel sms intent'.split(' '),
)
export const isAppScheme = (scheme: string): boolean => !browserSchemes.has(scheme)

const isAppAddress = (value: string): boolean => {
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? parseUrl(value) : null
  if (!address) return false
  const { protocol, username, password } = address
  return isAppScheme(protocol.slice(0, -1)) && username === '' && password === ''
}

/** Where a shopper is sent back: a web address, or an address of an app; which schemes, the channel says. */
export const returnUrl: Format = {
  ...url,
  ...build(
    'AN2048, 6 to 2048',
    '^[^\\u0000-\\u0020\\u007f-\\u009f]{6,2048}$',
    value => isWebAddress(value) || isAppAddress(value),
  ),
  rule: 'must be an absolute https address, or one of an app (scheme://), without user name and white space, of 6 to 2048 characters',
  fits: [...url.fits, 'myapp://back', 'com.example.shop://paid?order=1'],
  fails: [
    ...url.fails,
    'myapp:back',
    'JavaScript://%0aalert(1)',
    'data://text/html,x',
    'file:///etc/passwd',
    'intent://x#Intent;end',
    'myapp://user:pw@back',
  ],
}

/** One of a closed list of words. */
export const oneWordOf = (...words: readonly string[]): Format => ({
  ...build(`one of ${words.join(', ')}`, `^(${words.join('|')})$`),
  rule: `must be one of ${words.join(', ')}`,
  words,
  fits: words,
  fails: [`${words[0]}X`, words[0]!.toLowerCase() === words[0] ? words[0]!.toUpperCase() : words[0]!.toLowerCase()],
})

/** A value of a pattern, with samples of both sides given. */
export const shaped = (
  label: string,
  pattern: string,
  fits: readonly string[],
  fails: readonly string[],
  also?: (value: string) => boolean,
): Format => ({
  ...build(label, pattern, also),
  fits,
  fails,
})

function text(label: string, character: string, max: number, min: number): Format {
  const wrong = character === oneLine ? ['\n', '\u0000'] : ['\u0000']
  return {
    ...build(range(label, max, min), `^${character}{${min},${max}}$`),
    lengths: [min, max],
    fits: ['a'.repeat(min), 'é'.repeat(max), '💳'.repeat(max)],
    fails: [...tooLongOrShort(max, min), ...wrong.map(character => 'a'.repeat(Math.max(min, 1)) + character)],
  }
}

function chars(label: string, characters: string, max: number, min: number): Omit<Format, 'fits' | 'fails'> {
  return { ...build(range(label, max, min), `^[${characters}]{${min},${max}}$`), lengths: [min, max] }
}

/** The signs of a class in words, after its letters and digits. */
const signsOf = (characters: string): string =>
  [...characters.replace('A-Za-z0-9', '')].map(sign => (sign in signs ? `, ${signs[sign]}` : '')).join('')
const signs: Readonly<Record<string, string>> = { _: 'underscore', '.': 'dot', '+': 'plus', '-': 'hyphen' }

const range = (label: string, max: number, min: number) => (min === 1 ? label : `${label}, ${min} to ${max}`)

function tooLongOrShort(max: number, min: number): string[] {
  return min > 1 ? ['a'.repeat(max + 1), 'a'.repeat(min - 1)] : ['a'.repeat(max + 1)]
}

function build(label: string, source: string, also?: (value: string) => boolean) {
  const pattern = new RegExp(source, 'u')
  return { label, pattern, rule: `must match ${source}`, ...(also && { also }) }
}

/** `value` begins with yyyy-MM-dd: is there such a day? */
export function isCalendarDay(value: string): boolean {
  const day = value.slice(0, 10)
  const time = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day)
}

/** Milliseconds at which a day begins in UTC; NaN for what is no day, yyyy-MM-dd, that there is. `Date.parse` takes other spellings too, and days that there are not. */
export const dayBegin = (text: string): number =>
  /^[12]\d{3}-\d\d-\d\d$/.test(text) && isCalendarDay(text) ? Date.parse(text) : Number.NaN

/** Milliseconds of a day's begin or of a moment: yyyy-MM-ddThh:mm, with seconds or without, and Z or how far its clock is from UTC. NaN for what is none. */
export function momentOf(text: string): number {
  const [, day, time] =
    /^([^T]*)T(([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,3})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))$/.exec(text) ?? []
  if (day === undefined) return dayBegin(text)
  return Number.isNaN(dayBegin(day)) ? Number.NaN : Date.parse(`${day}T${time}`)
}

function isWebAddress(value: string): boolean {
  const address = parseUrl(value)
  if (!address) return false
  return (address.protocol === 'https:' || address.protocol === 'http:') && address.username === '' && address.password === ''
}

// ISO 3166-1 alpha-2, officially assigned, and XK which card networks use for Kosovo.
const countries = new Set(
  (
    'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG ' +
    'CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL ' +
    'GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA ' +
    'LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP ' +
    'NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV ' +
    'SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW'
  ).split(' '),
)
