// Texts on slips and in files of banks: capitals of A to Z, digits, and few signs. Pure.

/** Signs that people need in names and addresses. All others, and letters that are no Latin ones, a slip does not take. */
const plain = /^[\p{Script=Latin}\p{M}0-9 .,'’-]*$/u

export const isPlain = (text: string): boolean => plain.test(text) && /^[\x20-\x7e]*$/.test(folded(text))

const letters: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  Æ: 'AE',
  ø: 'o',
  Ø: 'O',
  œ: 'oe',
  Œ: 'OE',
  ł: 'l',
  Ł: 'L',
  đ: 'd',
  Đ: 'D',
}

const folded = (text: string): string =>
  text
    .replace(/[ßæÆøØœŒłŁđĐ]/g, one => letters[one]!)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replaceAll('’', "'")

/** As banks print it: without marks, in capitals, other signs than dot, hyphen and slash as spaces; cut after so many characters. */
export const bankText = (text: string, most = 255): string =>
  folded(text)
    .toUpperCase()
    .replace(/[^A-Z0-9 .\-/]/g, ' ')
    .replace(/ +/g, ' ')
    .trim()
    .slice(0, most)
    .trimEnd()
