// How much chance a token or password can hold at most, judged by its letters alone: what looks made up by a person is weak, whatever its length.

/** Bits; a random text of this kind and length holds about as many. */
export function bitsOfChance(text: string): number {
  const letters = [...withoutRuns(period(text))]
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
