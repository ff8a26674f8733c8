// The text that another server answers with: how long it may be and of how many parts, before any of it is read. A part that nobody asked for costs fifty times
// its bytes once it is read, and all others wait meanwhile.

export type TextBounds = {
  /** Characters, or bytes where it comes as such. */
  readonly length: number
  readonly parts: number
}

/** No answer that says what became of one thing is longer. */
export const answerBounds: TextBounds = { length: 64 * 1024, parts: 1000 }

export type Reviver = (name: string, value: unknown, context: { readonly source: string }) => unknown
/** TypeScript does not know yet that a reviver is given the text from which a value was read. */
const parse = JSON.parse as (text: string, reviver?: Reviver) => unknown

/** Undefined when the text is no JSON object, or more than it may be. A byte-order mark before it says nothing. */
export function readObject(
  text: string,
  bounds: TextBounds = answerBounds,
  reviver?: Reviver,
): Readonly<Record<string, unknown>> | undefined {
  if (isMore(text, bounds, partsOfJson)) return undefined
  try {
    const value = parse(text.replace(/^\ufeff/, ''), reviver)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The pairs of a form; none when they are more than they may be. */
export const formPairs = (text: string, bounds: TextBounds): Iterable<[string, string]> =>
  isMore(text, bounds, partsOfForm) ? [] : new URLSearchParams(text)

/** The signs that parts begin with; those in texts count as well. */
const partsOfJson = codesOf(',[{')
const partsOfForm = codesOf('&')

function codesOf(signs: string): readonly number[] {
  return [...signs].map(sign => sign.charCodeAt(0))
}

function isMore(text: string, { length, parts }: TextBounds, signs: readonly number[]): boolean {
  if (text.length > length) return true
  let count = 0
  for (let at = 0; at < text.length; at++) if (signs.includes(text.charCodeAt(at)) && ++count > parts) return true
  return false
}
