// What operators write, checked by a schema: all mistakes are named at once with their places, never with a value, which may be a secret.
// Types are read off the schemas, and `npm run generate` writes them as JSON Schemas into docs/reference/schemas.

import * as v from 'valibot'
import { nearestAmong } from '../contract/nearest.ts'
import { OperatorError } from './errors.ts'
import { readPlainFile, whyUnread } from './files.ts'

export type Schema = v.GenericSchema
export type TextSchema = v.GenericSchema<string, string>
/** What a schema gives when it has been read, with its defaults. */
export type Output<One extends Schema> = v.InferOutput<One>
/** What may be written for a schema. */
export type Input<One extends Schema> = v.InferInput<One>

/** Throws an OperatorError with a line for each mistake; `source` begins each line. */
export function read<One extends Schema>(schema: One, given: unknown, source: string): Output<One> {
  const { success, output, issues } = v.safeParse(schema, given, readOptions)
  if (success) return output
  const lines = mistakesOf(issues).map(one => `${source}: ${mistakeText(one)}`)
  if (issues.length > mistakesMost) lines.push(`${source}: and more, these are the first ${mistakesMost} mistakes.`)
  throw new OperatorError(lines.join('\n'))
}

/** What is wrong at a place: `['brands', 0]`, `is not a brand`. */
export type Mistake = { readonly path: Path; readonly rule: string }
type Path = readonly (string | number)[]

/** All that is wrong, at most a hundred; none when it may be so. */
export const mistakesIn = (schema: Schema, given: unknown): readonly Mistake[] =>
  mistakesOf(v.safeParse(schema, given, readOptions).issues ?? [])

/** `divisions[0].merchants[1].settings.lenient must be true or false.` */
export function mistakeText({ path, rule }: Mistake): string {
  const place = path.map((key, at) => (typeof key === 'number' ? `[${key}]` : `${at > 0 ? '.' : ''}${key}`)).join('')
  return `${place}${place && ' '}${rule}${rule.endsWith('?') ? '' : '.'}`
}

/** One mistake at a place is enough. */
const readOptions = { abortPipeEarly: true } as const

/** Who reads more of them at once has another file in mind. */
const mistakesMost = 100

/** What was given, checked but without defaults. */
export function written<One extends Schema>(schema: One, given: unknown, source: string): Input<One> {
  read(schema, given, source)
  return given as Input<One>
}

export function parseJson(text: string, source: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new OperatorError(`${source} is not JSON.`) // the parser's own message repeats what stands there
  }
  if (/(?<!\\)(\\\\)*\\u0000/.test(text))
    throw new OperatorError(`${source} holds the character U+0000, which no database can keep.`)
  const strange = keyThatIsNone(value)
  if (strange !== undefined) throw new OperatorError(`${source} holds the key ${strange}, which nothing can have.`)
  return value
}

const keysThatAreNone = ['__proto__', 'constructor', 'prototype']

/** Readers of maps leave such keys out without a word. As deep as JSON may be. */
function keyThatIsNone(value: unknown): string | undefined {
  const waiting = [value]
  while (waiting.length > 0) {
    const one = waiting.pop()
    if (typeof one !== 'object' || one === null) continue
    if (Array.isArray(one)) for (const item of one) waiting.push(item)
    else
      for (const [key, item] of Object.entries(one)) {
        if (keysThatAreNone.includes(key)) return key
        waiting.push(item)
      }
  }
  return undefined
}

/** What is a pipe or a device is refused: it may never end. */
export function readJsonFile(path: string, source: string): unknown {
  let text: string
  try {
    text = readPlainFile(path).toString('utf8')
  } catch {
    throw new OperatorError(`${source} ${whyUnread(path)}.`)
  }
  return parseJson(text, source)
}

// ---- Words for schemas: each says its rule.

export const flag = v.boolean('must be true or false')
export const filled = v.pipe(v.string('must be a text'), v.minLength(1, 'must not be empty'))
/** Stands in lists and logs: nothing in it moves a cursor, hides or turns around what is beside it. */
export const line = v.pipe(
  filled,
  v.maxLength(255, 'must be at most 255 characters'),
  v.regex(/^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u, 'must be without control characters'),
)
export const text = (pattern: RegExp, rule: string) => v.pipe(v.string(rule), v.regex(pattern, rule))
export const id = text(/^[0-9a-f]{32}$/, 'must be 32 lower-case hex characters')
export const number = (from: number, to: number, rule = `must be a number from ${from} to ${to}`) =>
  v.pipe(v.number(rule), v.minValue(from, rule), v.maxValue(to, rule))
export const whole = (from: number, to: number, rule = `must be a whole number from ${from} to ${to}`) =>
  v.pipe(v.number(rule), v.integer(rule), v.minValue(from, rule), v.maxValue(to, rule))
export const oneOf = <const Words extends readonly (string | number)[]>(words: Words) => {
  const meant = nearestAmong(words.map(String))
  const list =
    words.length > 12
      ? 'is not known'
      : `must be ${words.slice(0, -1).join(', ')}${words.length > 1 ? ' or ' : ''}${words.at(-1)}`
  return v.picklist(words, ({ input }) => {
    const near = typeof input === 'string' ? meant(input) : undefined
    return near === undefined ? list : `${list}: did you mean ${near}?`
  })
}
export const listOf = <Item extends Schema>(item: Item) => v.array(item, 'must be a list')
export const filledListOf = <Item extends Schema>(item: Item) => v.pipe(listOf(item), v.minLength(1, 'must hold at least one'))
export const mapOf = <Key extends v.GenericSchema<string, string>, Value extends Schema>(key: Key, value: Value) =>
  v.record(key, value, 'must be a map')
/** May be left out; with a default it is then that. */
export const optional: typeof v.exactOptional = v.exactOptional
/** The mistakes of the one that was meant, or the rule when it was neither. */
export const either = <const Schemas extends readonly Schema[]>(schemas: Schemas, rule: string) => v.union(schemas, rule)

/** With a rule that concerns the whole value. */
export const where = <One extends Schema>(
  schema: One,
  holds: (value: Output<One>) => boolean,
  rule: string | ((issue: { readonly input: Output<One> }) => string),
) => v.pipe(schema, v.check(holds as never, rule as never)) as unknown as v.GenericSchema<Input<One>, Output<One>>

/** With a rule for every text in the value, however deep, and for the names in its maps, where the map is named. Texts and lists under `free` names are not looked at. */
export const whereTexts = <One extends Schema>(
  schema: One,
  holds: (text: string) => boolean,
  rule: string,
  free: ReadonlySet<string>,
): One =>
  v.pipe(
    schema,
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return
      for (const [text, path] of textsIn(dataset.value, free))
        if (!holds(text)) addIssue({ message: rule, path: issuePath(path) })
    }),
  ) as unknown as One

function* textsIn(value: unknown, free: ReadonlySet<string>, path: Path = []): Generator<[text: string, path: Path]> {
  if (typeof value === 'string') yield [value, path]
  else if (Array.isArray(value)) for (const [at, item] of value.entries()) yield* textsIn(item, free, [...path, at])
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) {
      yield [name, path]
      const isMap = typeof inner === 'object' && !Array.isArray(inner)
      if (isMap || !free.has(name)) yield* textsIn(inner, free, [...path, name])
    }
}

/** As the library has it, which says that a place has at least one step: that of the whole has none. */
const issuePath = (path: Path) =>
  path.map(key => ({ type: 'unknown', origin: 'value', input: undefined, key, value: undefined })) as unknown as [
    v.UnknownPathItem,
  ]

/** Knows all its keys: every other is a mistake, told with the known key that is nearest. */
export const object = <const Entries extends v.ObjectEntries>(entries: Entries) => v.strictObject(entries, wrongObject(entries))

/** The same for a whole file, which may name its own schema for editors. */
export const file = <const Entries extends v.ObjectEntries>(entries: Entries) => object({ $schema: optional(filled), ...entries })

const wrongObject = (entries: v.ObjectEntries) => (issue: v.StrictObjectIssue) => {
  if (issue.expected === 'Object') return 'must be a map'
  if (issue.expected !== 'never') return 'is missing'
  const given = Object.keys(issue.path!.at(-1)!.input as object)
  const meant = nearestAmong(Object.keys(entries))
  return given
    .filter(name => !Object.hasOwn(entries, name))
    .slice(0, mistakesMost)
    .map(name => {
      const near = meant(name)
      return `${name} is not known${near === undefined ? '' : `: did you mean ${near}?`}`
    })
    .join('\n')
}

/** Keys that nobody knows are a line each, which begins with the key. */
function mistakesOf(issues: readonly v.BaseIssue<unknown>[]): Mistake[] {
  const all = issues.slice(0, mistakesMost).flatMap(issue => {
    const strange = issue.type === 'strict_object' && issue.expected === 'never'
    const path = (issue.path ?? []).slice(0, strange ? -1 : undefined).map(({ key }) => key as string | number)
    return issue.message.split('\n').map(line => {
      if (!strange) return { path, rule: line }
      const end = line.indexOf(' is not known')
      return { path: [...path, line.slice(0, end)], rule: line.slice(end + 1) }
    })
  })
  return all.slice(0, mistakesMost)
}
