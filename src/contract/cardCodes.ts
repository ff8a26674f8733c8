// CVVs where none belongs. Three digits are nothing by themselves: they are known by the name that stands before them, by the free key whose value they are, or by a card's number and end
// before them, as on its magnetic stripe too.

import { valueOfDigit } from './cardRuns.ts'

/** As people and programs name it. By these alone it is known; the others mean other things too, and count where a card number stands in the same text.
 * A name ends with its 2 where no other digit follows: `CVC 2345` is room 2345 of somebody called so. */
const ownNames = 'cvv(?:[ _-]?2(?!\\p{Nd}))?|cvc[ _-]?2(?!\\p{Nd})'
const otherNames =
  'cvc|cvn(?:[ _-]?2(?!\\p{Nd}))?|cav2|csc|cid|(?:security|verification|validation)[\\s._+-]{0,3}(?:code|value|number)|c[oó\\ufffd]\\u0301?d(?:igo)?[\\s._+-]{0,3}(?:de[\\s._+-]{0,3})?seguran[cç\\ufffd]\\u0327?a'
const gap = '[^\\p{L}\\p{N}]'
/** In scripts without blanks between words letters of theirs stand beside what has other ones. */
const latin = '[\\p{Script=Latin}\\p{N}]'
const code = `\\p{Nd}{3,4}(?!${latin})`
/** What programs write before a value to say what it is: PHP (`s:3:"947"`, `string(3) "947"`), documents of databases (`{"S":"947"}`, `NumberInt(947)`), and other languages. */
const type =
  's:\\p{Nd}{1,2}|string\\(\\p{Nd}{1,2}\\)|[sniub]|(?:string|integer)(?:value)?|int|number(?:int|long|decimal)|decimal|optional|some|val'
const between = `(?:(?:is|code|number|no|value|cv[vcn]2?|cid|csc|${type})${gap}{1,8}){0,2}`
const atItsBeginning = `(?<!${latin})(?:(?:(?:credit|debit)?card|cc)${gap}?)?`
/** `creditCardCvv` is one where something is said to be it: `invalidCvv`, `checkCvv` are none. */
const behindWords = '(?-i:(?<=\\p{Ll})(?=\\p{Lu}))'
const isSaidToBe = '[^\\p{L}\\p{N}:=>]{0,3}[:=>]'
const named = (names: string) =>
  new RegExp(
    `((?:${atItsBeginning}(?:${names})${gap}{0,8}${between}|${behindWords}(?:${names})${isSaidToBe}${gap}{0,5}))${code}`,
    'giu',
  )
const ownNamed = named(ownNames)
const namedBeside = named(`${ownNames}|${otherNames}`)
const yearAndCode = `(?:20)?\\p{Nd}{2}${gap}{1,8})${code}`
/** As a mark of XML or HTML names what stands behind it. */
const nameInMark = new RegExp(`${atItsBeginning}(?:${ownNames}|${otherNames})(?![\\p{L}\\p{N}]|[.-][\\p{L}\\p{N}])`, 'iu')
/** Day, month and year in any order, of which days and months may have one digit. */
const date = '(?<!\\p{Nd})(?:(?:0?[1-9]|[12]\\p{Nd}|3[01])[./\\p{Pd}]){2}(?:20\\p{Nd}{2}|xxxx|…)'
const month = '(?<!\\p{Nd})(?:0[1-9]|1[0-2])'
/**
 * Month, year and CVV, as they follow a card number somewhere; right behind it a month of one digit counts too, and both without a sign between. Looked back at: what stands
 * before a month may pass for one itself, and the year for the code, in this reading of a text or in one before it (`01.05.2034;947`).
 */
const behindExpiry = new RegExp(`()(?=\\p{Nd}{3})(?<=(?:${month}${gap}{1,8}(?:20)?\\p{Nd}{2}|${date})${gap}{1,8})${code}`, 'gu')
/** Stands in the place of what passes for a number in which the end of its card may stand, too: a sign that no text has. */
export const passing = '\ufdd0'
/** Behind the number, or what says that the end of a card comes next. */
const rightBehind = `(?<=(?:[\\p{Nd}x]{4}|${passing}|exp(?:iry|ires|iration)?(?:[ _-]?date)?|valid|thru|until)${gap}{1,8})`
/** The last four digits of a number may pass for month and year, and these for the code: then it stands behind them. */
const behindThese = `(?:(?<=\\p{Nd}{4})${gap}{1,8}(?:\\p{Nd}{2}${gap}{1,8})?${code})*`
const rightBehindExpiry = new RegExp(`(${rightBehind}(?:0?[1-9]|1[0-2])${gap}{0,8}${yearAndCode}${behindThese}`, 'giu')
/** As ISO 8583 has them. */
const rightBehindYear = new RegExp(
  `(${rightBehind}(?:20)?[2-4]\\p{Nd}${gap}{0,8}(?:0[1-9]|1[0-2])${gap}{1,8})(?!20\\p{Nd}{2})${code}${behindThese}`,
  'giu',
)

/** Where the end of a card may stand in what passes for its number, the code may be one of the next groups. */
const behindPassing = new RegExp(`()(?=\\p{Nd}{3})(?<=${passing}${gap}{1,4}(?:\\p{Nd}{1,4}${gap}{1,8}){0,2})${code}`, 'gu')

/** What stands behind the number on a magnetic stripe, which has a CVV of its own; chips and terminals write a D. */
const behindStripe = /([\p{Nd}x]{4}[=D]|\^)\p{Nd}{7,}/giu

const besides = [namedBeside, behindExpiry, rightBehindExpiry, rightBehindYear, behindPassing, behindStripe]

/** What is shorter than a name and its three digits holds none by itself. */
const shortest = 6

/** A card number in its groups: the first of them is no code of what stands before it. */
const cardInGroups = /\p{Nd}{4}([ +./_\p{Pd}])(?:\p{Nd}{4}\1\p{Nd}{4}|\p{Nd}{6}\1\p{Nd}{4,5})/uy

/**
 * Where CVVs stand in a text of which some went with what passes for a number: behind the end of a card, which may have gone, and where they have gone themselves, behind their
 * name, on a stripe, or behind the end of a card right behind another number. `isGone`: whether what stands there has. `inRows`: with what parts the digits of a number; one
 * that went with a number then counts by its own name, or where there is another number, which may be its card.
 */
export function placesOfCodes(text: string, isGone: (at: number) => boolean, inRows: boolean): ReadonlySet<number> {
  const places = new Set<number>()
  const plain = withPlainDigits(text)
  let gone = 0
  for (let at = 0; at < text.length; at++) if (isGone(at)) gone++
  const isBesideAnother = (first: number): boolean => {
    let [begin, end] = [first, first]
    while (isGone(begin - 1)) begin--
    while (isGone(end)) end++
    return !inRows || end - begin < gone
  }
  const wentBesideAnother = (first: number): boolean => isGone(first) && isBesideAnother(first)
  const behindAnother = (first: number, begin: number) => inRows && wentBesideAnother(first) && !isGone(begin - 1)
  for (const [pattern, counts] of [
    [ownNamed, isGone],
    [namedBeside, wentBesideAnother],
    [behindStripe, wentBesideAnother],
    [behindExpiry, isBesideAnother],
    [rightBehindExpiry, behindAnother],
    [rightBehindYear, behindAnother],
  ] as const)
    for (const { 0: found, 1: before = '', index } of plain.matchAll(pattern)) {
      const first = index + before.length
      cardInGroups.lastIndex = first
      if (cardInGroups.test(plain) || !counts(first, index)) continue
      for (let at = first; at < index + found.length; at++) if (valueOfDigit(plain.charCodeAt(at)) !== undefined) places.add(at)
    }
  return places
}

/** Hides the digits of each CVV. `besideNumber`: a card number stands in the text, or stood there. */
export function hideCodes(text: string, besideNumber: boolean, hide: (digits: string) => string): string {
  if (text.length < shortest && !besideNumber) return text
  const hideIn = (text: string, pattern: RegExp) =>
    text.replace(pattern, (found, before: string) => before + hide(found.slice(before.length)))
  const plain = withPlainDigits(text)
  const hidden = (besideNumber ? besides : [ownNamed]).reduce(hideIn, plain)
  return hidden === plain ? text : hidden
}

/** Those of other scripts as ours, where they take one unit as ours do. */
const withPlainDigits = (text: string): string =>
  text.replace(otherDigit, one => (one.length === 1 ? String(valueOfDigit(one.charCodeAt(0))) : one))
const otherDigit = /(?![0-9])\p{Nd}/gu

const begins = '(?:<|&lt;)'
const ends = '\\s*(?:\\\\?/|&#x2f;|&#47;)'
const endOfMark = new RegExp(`^${begins}${ends}|/\\s*(?:>|&gt;)$`, 'i')
/** Three or four digits; signs, references to signs, and marks that begin before them. */
const codeNext = new RegExp(
  `^(?:[^\\p{L}\\p{N}<&]|&(?![lg]t;)(?:[a-z]{2,8}|#x?[0-9a-f]{1,7});|${begins}(?!${ends})(?:[^<>&]|&(?![lg]t;))*(?:>|&gt;))*${code}`,
  'iu',
)

/** The name of a CVV by which a mark names what stands behind it; blank where there is none, where it ends, and where no digits that may be one come next. */
export function codeNamedBy(mark: string, behind: string): string {
  const name = nameInMark.exec(mark)?.[0] ?? (mark.match(/[\p{L}\p{N}_.-]+/gu)?.some(isCodeKey) ? 'cvv' : '')
  // A text may be full of marks: what is behind them is looked at last.
  return name !== '' && !endOfMark.test(mark) && codeNext.test(behind) ? name : ''
}

const keyName =
  /(?:^|_|card|cc)(?:cv[vcn]_?2?|security_?code|(?:card|cc)_?c(?:id|sc)|card_?(?:verification|validation)_?(?:code|value|number)|cod(?:igo)?_?(?:de_?)?seguranca)(?:_?(?:code|number|value))?(?:_\d*)*$/

/** Does a free key name a CVV by its last words (`cvv`, `card.securityCode`, `SHOPPER_card_cvc`)? */
export const isCodeKey = (key: string): boolean =>
  keyName.test(
    key
      .replace(/([a-z])([A-Z])/g, '$1_$2')
      .toLowerCase()
      .replace(/[^a-z\d]+/g, '_'),
  )

/** Three or four digits, whatever signs stand between or beside them. */
export const isCode = (value: string): boolean => /^\p{Nd}{3,4}$/u.test(value.replace(/[^\p{L}\p{N}]+/gu, ''))
