// How much chance a token or password can hold at most, judged by its letters alone: what looks made up by a person is weak, whatever its length. It is
// a net for what people type and copy, no proof of strength: who knows how a secret was made may find less chance in it.

import { hash } from 'node:crypto'

/** What a token must hold that nobody limits in guessing. */
export const tokenBits = 128

/** Bits; a random text of this kind and length holds about as many. */
export function bitsOfChance(secret: string): number {
  const text = secret.slice(0, lettersMost)
  if (isDigestOfWord(text)) return 0
  return Math.min(
    bitsOfLetters(text),
    ...encodings.map(encoding => decoded(text, encoding)).map(inner => (inner ? bitsOfChance(inner) : Infinity)),
  )
}

/** What holds no chance in so many letters was not made by it; a file of any length is judged at once. */
const lettersMost = 1024

const encodings = ['base64', 'hex'] as const

/** The text that was written in another way, if it is one: bytes that were drawn are hardly ever a text. */
function decoded(text: string, encoding: (typeof encodings)[number]): string | undefined {
  const inner = Buffer.from(text, encoding).toString()
  return inner.length * 2 >= text.length - 1 && /^[^\p{C}\uFFFD]+$/u.test(inner) ? inner : undefined
}

function bitsOfLetters(text: string): number {
  const letters = [...withoutRuns(period(withoutWords(withoutRows(text))))]
  const { size } = alphabets.find(({ pattern }) => pattern.test(letters.join('')))!
  // A random text shows most of the letters that it may have; one that shows few was made of words or of repetition.
  const seen = new Set(letters).size
  const expected = size * (1 - (1 - 1 / size) ** letters.length)
  return Math.floor(letters.length * Math.log2(Math.max(1, seen >= 0.75 * expected ? size : seen)))
}

const alphabets: readonly { readonly pattern: RegExp; readonly size: number }[] = [
  { pattern: /^\d*$/, size: 10 },
  { pattern: /^([0-9a-f]*|[0-9A-F]*)$/, size: 16 },
  { pattern: /^([a-z]*|[A-Z]*)$/, size: 26 },
  { pattern: /^[a-z_-]*$/, size: 28 },
  { pattern: /^([0-9a-z]*|[0-9A-Z]*)$/, size: 36 },
  { pattern: /^[0-9a-z_-]*$/, size: 38 },
  { pattern: /^[0-9A-Za-z+/=_-]*$/, size: 64 },
  { pattern: /^[\s\S]*$/, size: 94 },
]

/** `abcabcabc` → `abc`. */
function period(text: string): string {
  for (let length = 1; length <= text.length / 2; length++) if (text.startsWith(text.slice(length))) return text.slice(0, length)
  return text
}

/** `aaaaaaaa123456x` → `a1x`: six letters and more that repeat, or count up or down, add nothing. */
function withoutRuns(text: string): string {
  const step = (at: number) => text.charCodeAt(at) - text.charCodeAt(at - 1)
  let [kept, from] = ['', 0]
  for (let at = 1; at <= text.length; at++) {
    const goesOn = at < text.length && Math.abs(step(at)) <= 1 && (at === from + 1 || step(at) === step(at - 1))
    if (goesOn) continue
    kept += at - from >= 6 ? text[from] : text.slice(from, at)
    from = at
  }
  return kept
}

const rowsOfKeys = [
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'qsdfghjklm',
  'zxcvbnm',
  'yxcvbnm',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
]
const rows = rowsOfKeys.flatMap(row => [row, [...row].reverse().join('')])

/** `qwertyuiopX` → `qX`: five and more keys that stand beside each other. */
function withoutRows(text: string): string {
  const plain = text.toLowerCase()
  return withoutPieces(text, plain, at => {
    let length = 0
    while (at + length < text.length && rows.some(row => row.includes(plain.slice(at, at + length + 1)))) length++
    return length >= 5 ? length : 1
  })
}

/** Of each piece the first letter. */
function withoutPieces(text: string, plain: string, lengthAt: (at: number) => number): string {
  if (plain.length !== text.length) return text // letters that are longer in lower case: none of ours
  let kept = ''
  for (let at = 0; at < text.length; at += lengthAt(at)) kept += text[at]
  return kept
}

// What people begin with when they make a secret up, in its plain spelling.
const words =
  'password passwort passphrase secret sandbox tollgate gateway payment production staging develop test live token access key login admin root user guest \
shop store merchant client server service system company bank card money master welcome hello letmein changeme default temporary example sample demo \
public private internal qwerty qwertz azerty asdf zxcv iloveyou dragon monkey football baseball superman princess sunshine shadow summer winter spring autumn \
monday january correct horse battery staple trustno1 starwars whatever nothing europe london berlin paris madrid'
    .split(' ')
    .sort((one, other) => other.length - one.length)

// Signs that stand for letters in what is meant to look harder.
const disguises: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}

/** `P@ssw0rd12` → `P12`: a word is hardly more to guess than a letter. */
function withoutWords(text: string): string {
  const plain = text.toLowerCase().replace(/[013457@$!]/g, sign => disguises[sign]!)
  return withoutPieces(text, plain, at => {
    const word = words.find(one => plain.startsWith(one, at) || text.toLowerCase().startsWith(one, at))
    return word?.length ?? 1
  })
}

/** What looks like chance, and is the hash of a word that everybody tries first. */
const isDigestOfWord = (text: string): boolean =>
  /^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$/i.test(text) &&
  words.some(word => ['md5', 'sha1', 'sha256'].some(algorithm => hash(algorithm, word) === text.toLowerCase()))
