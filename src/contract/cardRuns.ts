// Runs of digits in a text, and the card numbers in them: what begins and ends at the edge of a group of digits, has a right check digit, and is written as a card number is.
// Dots, spaces, hyphens and invisible characters inside a run count as nothing; digits of other scripts count as digits, raised, lowered and circled ones too. Other signs, and marks of HTML,
// stand inside a card number only where its digits are grouped as on a card or by thousands, or each stands alone: dates, coordinates and lists are full of them.

/** Digits of a card number. */
export const shortestNumber = 12
const longestNumber = 19
/** What nobody sees either: of these some are letters by their class, the blanks of Egyptian and two fillers of Hangul among them. */
const unseen = '\\p{Default_Ignorable_Code_Point}\\u2800\\u{13441}\\u{13442}\\u{1d159}'
const ordinary = `[\\s\\p{Pd}\\p{Cf}${unseen}.]{0,3}`
/** As many digits in a row as a card number has, whatever they are. */
export const ordinaryRun = new RegExp(`\\p{Nd}(?:${ordinary}\\p{Nd}){${shortestNumber - 1},}`, 'v')
/** Others may be as many: lists and tables of groups are indented, and their marks are blanks. */
const gapMost = 32
const between = new RegExp(`[[^\\p{L}\\p{Nd}]${unseen}]`, 'v')
const ordinaryGap = new RegExp(`^${ordinary}$`, 'v')
const digit = /\p{Nd}/u
/** Of numbers of a length, as bits: the places with which a group of digits begins on a card, 4 4 4 4 3 or 4 6 5. */
const cardGroups: Readonly<Record<number, number>> = { 14: 0x411, 15: 0x411, 16: 0x1111, 17: 0x11111, 18: 0x11111, 19: 0x11111 }

/** The same of a figure as programs write it, in thousands: `4,539,578,763,621,486`. */
const thousands = Array.from({ length: longestNumber + 1 }, (_, length) => {
  let groups = 1
  for (let place = length - 3; place > 0; place -= 3) groups |= 1 << place
  return groups
})

/** Replaces the numbers that have one of the lengths that their first twelve digits allow; those that overlap are one. `known`: digits of numbers that need no group of their own. */
export function replaceIn(
  text: string,
  lengthsOf: (beginning: string) => readonly number[],
  instead: (found: string) => string,
  known: ReadonlySet<string> = new Set(),
): string {
  let all = ''
  let behind = 0
  for (let found = findRun(text, 0); found; found = findRun(text, found.end)) {
    all += text.slice(behind, found.start) + replaceInRun(readRun(text, found), lengthsOf, instead, known)
    behind = found.end
  }
  return all + text.slice(behind)
}

function replaceInRun(
  read: Run,
  lengthsOf: (beginning: string) => readonly number[],
  instead: (found: string) => string,
  known: ReadonlySet<string>,
): string {
  const run = read.text
  let replaced = ''
  let copied = 0
  for (let first = 0; first + shortestNumber <= read.digits.length; first++) {
    let last = endOfNumber(read, first, lengthsOf, known)
    if (last === undefined) continue
    // Which of overlapping numbers is the card cannot be known: they go together.
    for (let inside = first + 1; inside <= last && inside + shortestNumber <= read.digits.length; inside++)
      last = Math.max(last, endOfNumber(read, inside, lengthsOf, known) ?? 0)
    replaced += run.slice(copied, read.at[first]) + instead(run.slice(read.at[first], read.at[last]! + read.widths[last]!))
    copied = read.at[last]! + read.widths[last]!
    first = last
  }
  return replaced + run.slice(copied)
}

/** Of each character what it is: a digit, by one more than it counts, one that may stand between digits, or one that parts them. Looked up, since a text may be full of
 * odd ones. */
const kinds = new Uint8Array(0x11_0000)
const [isBetween, isParting] = [11, 12]
const kindOf = (point: number): number => {
  kinds[point] ||= judgedKind(point)
  return kinds[point]!
}

function judgedKind(point: number): number {
  const one = String.fromCodePoint(point)
  if (!digit.test(one)) return between.test(one) ? isBetween : isParting
  // In every script they stand in blocks of ten.
  let zero = point
  while (digit.test(String.fromCodePoint(zero - 1))) zero--
  return 1 + ((point - zero) % 10)
}

/** Undefined for what is no digit. */
export function valueOfDigit(point: number): number | undefined {
  const kind = kindOf(point)
  return kind < isBetween ? kind - 1 : undefined
}

/** The next so many digits, as a card number has at least, with some other characters between them, in one look along the text. */
export function findRun(text: string, from: number): { readonly start: number; readonly end: number } | undefined {
  let [start, end, count, gap] = [0, 0, 0, 0]
  for (let position = from; position < text.length; ) {
    const point = text.codePointAt(position)!
    const width = point > 0xffff ? 2 : 1
    const kind = kindOf(point)
    if (kind < isBetween) {
      if (count === 0) start = position
      count++
      gap = 0
      end = position + width
    } else if (count > 0 && (kind === isParting || ++gap > gapMost)) {
      if (count >= shortestNumber) return { start, end }
      count = 0
      gap = 0
    }
    position += width
  }
  return count >= shortestNumber ? { start, end } : undefined
}

type Run = {
  readonly text: string
  /** The digits, one character each. */
  readonly digits: string
  /** Of each digit: where it stands in the text, how many units it takes there, and whether a group of digits begins with it. */
  readonly at: Uint32Array
  readonly widths: Uint8Array
  readonly begins: Uint8Array
  /** How many gaps up to each digit hold other signs than the ordinary ones. */
  readonly strange: Uint32Array
  /** Sums for the check digit up to each digit, with the digits at odd places doubled, and with those at even ones: any part is judged in one step. */
  readonly sums: readonly [oddDoubled: Uint32Array, evenDoubled: Uint32Array]
  /** How many digits of a figure with one before the point its exponent asks for: sheets write `4,539893927951095E+15`. */
  readonly scientific: number | undefined
  /** Where they were looked for: with which digit each begins, and with which it ends. */
  dates?: ReadonlyMap<number, number>
}

/** Room for runs of so many characters, which are read one after the other. */
const makeRoom = (most: number) => ({
  values: Buffer.alloc(most),
  at: new Uint32Array(most),
  widths: new Uint8Array(most),
  begins: new Uint8Array(most),
  strange: new Uint32Array(most),
  sums: [new Uint32Array(most + 1), new Uint32Array(most + 1)] as const,
})
const usualRoom = makeRoom(4096)

const exponent = /^e\+?(1\d)(?!\p{Nd})/iu

/** The next one that is read takes the place of this. */
function readRun(whole: string, { start, end: behind }: { readonly start: number; readonly end: number }): Run {
  const text = whole.slice(start, behind)
  const raised = exponent.exec(whole.slice(behind, behind + 5))?.[1]
  const most = text.length
  const room = most > 4096 ? makeRoom(most) : usualRoom
  const { values, at, widths, begins, strange, sums } = room
  const [odd, even] = sums
  let place = 0
  let end = 0
  for (let position = 0; position < most; ) {
    const point = text.codePointAt(position)!
    const width = point > 0xffff ? 2 : 1
    const value = valueOfDigit(point)
    if (value !== undefined) {
      const doubled = value > 4 ? value * 2 - 9 : value * 2
      odd[place + 1] = odd[place]! + (place % 2 === 1 ? doubled : value)
      even[place + 1] = even[place]! + (place % 2 === 0 ? doubled : value)
      values[place] = 48 + value
      at[place] = position
      widths[place] = width
      const isFirst = place === 0 || end < position
      begins[place] = isFirst ? 1 : 0
      strange[place] = place === 0 ? 0 : strange[place - 1]! + (isFirst && !isOrdinary(text, end, position) ? 1 : 0)
      end = position + width
      place++
    }
    position += width
  }
  return {
    ...room,
    text,
    digits: values.toString('latin1', 0, place),
    scientific: raised === undefined ? undefined : Number(raised) + 1,
  }
}

/** One space, hyphen or full stop is what most gaps are. */
function isOrdinary(text: string, from: number, to: number): boolean {
  if (to - from > 3) return ordinaryGap.test(text.slice(from, to))
  for (let position = from; position < to; position++) {
    const unit = text.charCodeAt(position)
    if (unit === 32 || unit === 45 || unit === 46) continue
    return unit < 128 && !(unit > 8 && unit < 14) ? false : ordinaryGap.test(text.slice(from, to))
  }
  return true
}

function endOfNumber(
  run: Run,
  first: number,
  lengthsOf: (beginning: string) => readonly number[],
  known: ReadonlySet<string>,
): number | undefined {
  const { digits, begins, sums } = run
  if (!begins[first] && known.size === 0) return undefined
  let lengths: readonly number[] | undefined
  for (let length = Math.min(longestNumber, digits.length - first); length >= shortestNumber; length--) {
    const last = first + length - 1
    // The last digit is the check digit, the one before it counts twice.
    const sum = sums[last % 2 === 0 ? 0 : 1]
    const endsGroup = last + 1 === digits.length || begins[last + 1]
    if ((sum[last + 1]! - sum[first]!) % 10 !== 0) continue
    if (known.size > 0 && known.has(digits.slice(first, last + 1))) return last
    if (!endsGroup || !begins[first]) continue
    lengths ??= lengthsOf(digits.slice(first, first + shortestNumber))
    if (lengths.includes(length) && isWritten(run, first, last)) return last
  }
  return undefined
}

/** Is there nothing strange between its digits, and do they hold no date, or do they stand in groups as on a card, or of thousands, or each alone, or are they a figure with an
 * exponent? */
function isWritten(run: Run, first: number, last: number): boolean {
  const { begins, strange } = run
  if (strange[first] === strange[last]) return !holdsDate(run, first, last)
  const length = last - first + 1
  let groups = 1
  for (let place = first + 1; place <= last; place++) if (begins[place]) groups |= 1 << (place - first)
  if (groups === cardGroups[length] || groups === 2 ** length - 1) return true
  // Its first digit, and all behind the point.
  if (groups === 0b11 && length === run.scientific && last === run.digits.length - 1) return true
  return groups === thousands[length] && isWhole(run, first, last)
}

/** The same sign parts all its groups, and no others from it: it is not two figures, nor in the middle of a longer one. */
function isWhole(run: Run, first: number, last: number): boolean {
  const gap = gapBefore(run, last - 2)
  for (let place = first; place <= last + 1; place++)
    if (run.begins[place] && (gapBefore(run, place) === gap) !== (place > first && place <= last)) return false
  return true
}

/** Undefined before the first digit, and behind the last. */
function gapBefore({ at, digits, text, widths }: Run, place: number): string | undefined {
  return place > 0 && place < digits.length ? text.slice(at[place - 1]! + widths[place - 1]!, at[place]) : undefined
}

/** Three of its groups are a date, as no card has them: stays of hotels (`24.12.2026 - 30.12.2026`), and the times of logs. */
function holdsDate(run: Run, first: number, last: number): boolean {
  run.dates ??= datesIn(run)
  if (run.dates.size > 0) for (let place = first; place < last; place++) if (run.dates.get(place)! <= last) return true
  return false
}

function datesIn({ begins, digits }: Run): Map<number, number> {
  const dates = new Map<number, number>()
  let [before, middle, group] = [-1, -1, -1]
  for (let place = 0; place <= digits.length; place++) {
    if (place < digits.length && !begins[place]) continue
    // A group has ended.
    if (before >= 0 && isDate(digits, before, middle, group, place)) dates.set(before, place - 1)
    before = middle
    middle = group
    group = place
  }
  return dates
}

/** Day, month and year, or year, month and day: three groups, where each begins, and where the last ends. */
function isDate(digits: string, first: number, second: number, third: number, end: number): boolean {
  const [one, two, three] = [second - first, third - second, end - third]
  if (two > 2 || one + three > 6 || Math.max(one, three) !== 4) return false
  const [year, day] = one === 4 ? [first, third] : [third, first]
  const [days, months, century] = [
    Number(digits.slice(day, day + Math.min(one, three))),
    Number(digits.slice(second, third)),
    digits.slice(year, year + 2),
  ]
  return days >= 1 && days <= 31 && months >= 1 && months <= 12 && (century === '19' || century === '20')
}

/** Its digits as ours. */
export const plainDigitsOf = (found: string): string => [...found].map(one => valueOfDigit(one.codePointAt(0)!) ?? '').join('')
