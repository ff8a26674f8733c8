// What a schema takes, as fields of a form: forms that are made of the schema cannot know another rule than the file has.

import type { Schema } from './schema.ts'

/** `choice` is one of words, `choices` some of them, `texts` a list of texts, `parts` fields of its own, `other` what only JSON can say. */
export type FieldShape =
  | { readonly kind: 'flag' | 'number' | 'text' | 'texts' | 'other' }
  | { readonly kind: 'choice' | 'choices'; readonly words: readonly string[] }
  | { readonly kind: 'parts'; readonly parts: FieldParts }
/** `inPlace`: what it is when it is left out. */
export type FieldPart = { readonly shape: FieldShape; readonly isOptional: boolean; readonly inPlace: unknown }
export type FieldParts = ReadonlyMap<string, FieldPart>

/** The fields of an object, by name. */
export const fieldsOf = ({ entries }: { readonly entries: object }): FieldParts =>
  new Map(Object.entries(entries as Record<string, AnySchema>).map(([name, schema]) => [name, partOf(schema)]))

type AnySchema = Schema & {
  readonly wrapped?: AnySchema
  readonly default?: unknown
  readonly item?: AnySchema
  readonly options?: unknown
  readonly entries?: Record<string, AnySchema>
}

function partOf(schema: AnySchema): FieldPart {
  const isOptional = schema.type === 'exact_optional'
  return { shape: shapeOf(isOptional ? schema.wrapped! : schema), isOptional, inPlace: schema.default }
}

function shapeOf({ type, item, options, entries }: AnySchema): FieldShape {
  if (type === 'boolean') return { kind: 'flag' }
  if (type === 'number') return { kind: 'number' }
  if (type === 'string') return { kind: 'text' }
  if (type === 'picklist') return { kind: 'choice', words: options as string[] }
  if (type === 'array' && item?.type === 'picklist') return { kind: 'choices', words: item.options as string[] }
  if (type === 'array' && item?.type === 'string') return { kind: 'texts' }
  if (type !== 'strict_object') return { kind: 'other' }
  const parts = fieldsOf({ entries: entries! })
  const isFlat = [...parts.values()].every(({ shape }) => shape.kind !== 'parts' && shape.kind !== 'other')
  return isFlat ? { kind: 'parts', parts } : { kind: 'other' }
}
