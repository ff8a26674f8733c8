// Every key that an operator may write, at every level of every file: its misspelt twins are refused, and the key that was meant is named.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { schemaFiles, schemas } from '../scripts/generate/schemas.ts'
import { read, type Schema } from '../src/platform/schema.ts'

/** Puts a value where a schema stands in its file. */
type Around = (value: object) => unknown
type Level = { readonly place: string; readonly keys: readonly string[]; readonly around: Around }

/** The parts of a schema that lead to others, whatever its kind. */
type Node = Schema & {
  readonly entries?: Readonly<Record<string, Node>>
  readonly item?: Node
  readonly value?: Node
  readonly wrapped?: Node
  readonly options?: readonly (Node | string | number)[]
}

/** Every map with fixed keys in a schema. Only what leads there need be right: mistakes beside the way are other lines of the same error. */
function levelsOf({ type, entries, item, value, wrapped, options }: Node, place: string, around: Around): Level[] {
  const below = (name: string) => `${place}${place && '.'}${name}`
  if (wrapped) return levelsOf(wrapped, place, around)
  if (item) return levelsOf(item, `${place}[0]`, inner => around([inner]))
  if (type === 'record') return levelsOf(value!, below('KEY'), inner => around({ KEY: inner }))
  if (type === 'union') return options!.flatMap(option => levelsOf(option as Node, place, around))
  if (!entries) return []
  const deeper = Object.entries(entries).flatMap(([key, one]) => levelsOf(one, below(key), inner => around({ [key]: inner })))
  return [{ place, keys: Object.keys(entries), around }, ...deeper]
}

/** Slips of the hand: the last letter twice, a letter forgotten, two that changed places. Short names leave no room for the latter. */
const twinsOf = (key: string): string[] => [
  `${key}${key.at(-1)}`,
  ...(key.length < 4 ? [] : [key.slice(0, 1) + key.slice(2), `${key[0]}${key[2]}${key[1]}${key.slice(3)}`]),
]

const mistakes = (schema: Schema, given: unknown): string[] => {
  try {
    read(schema, given, 'file')
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

/** How many keys the JSON Schema that editors are given knows, counted without our walk. */
function keysIn(schema: unknown): number {
  if (schema === null || typeof schema !== 'object') return 0
  const { properties = {}, ...rest } = schema as { properties?: Record<string, unknown> }
  const own = 'additionalProperties' in rest && rest.additionalProperties !== false ? 0 : Object.keys(properties).length
  return own + [...Object.values(properties), ...Object.values(rest)].reduce<number>((sum, one) => sum + keysIn(one), 0)
}

for (const [name, [setting, schema]] of Object.entries(schemas)) {
  const levels = levelsOf(schema as Node, '', value => value)
  describe(setting, () => {
    for (const { place, keys, around } of levels)
      it(`${place === '' ? 'the file itself' : place}: ${keys.join(', ')}`, () => {
        for (const key of keys)
          for (const twin of twinsOf(key).filter(twin => !keys.includes(twin)))
            assert.ok(
              mistakes(schema, around({ [twin]: 1 })).includes(
                `file: ${place}${place && '.'}${twin} is not known: did you mean ${key}?`,
              ),
              `${twin} at ${place}: ${mistakes(schema, around({ [twin]: 1 })).join('\n')}`,
            )
      })

    it('no key was passed by', () => {
      const [, text] = schemaFiles().find(([path]) => path.endsWith(`/${name}.json`))!
      assert.equal(
        levels.reduce((sum, { keys }) => sum + keys.length, 0),
        keysIn(JSON.parse(text)),
      )
    })
  })
}
