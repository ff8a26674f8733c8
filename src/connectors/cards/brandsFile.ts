// CARD_BRANDS_FILE: card brands of an installation's own, beside ours or in their place. docs/operating.md describes the file.

import { type CardBrands, endsOf, makeBrands, otherBrands, standardRows } from '../../contract/brands.ts'
import {
  file,
  filled,
  filledListOf,
  flag,
  listOf,
  type Output,
  object,
  oneOf,
  optional,
  parseJson,
  read,
  text,
  where,
  whole,
} from '../../platform/schema.ts'

const range = where(
  text(/^\d{1,12}(-\d{1,12})?$/, 'must be a range of up to 12 leading digits, as "51-55" or "4"'),
  range => {
    const { from, to } = endsOf(range)
    return from.length === to.length && from <= to
  },
  'must have ends of one length, the lower one first',
)
const brand = object({
  name: where(
    text(/^[A-Z][A-Z0-9_]{1,31}$/, 'must be capitals, digits and underscores'),
    name => !otherBrands.has(name),
    'is the name of a method that is no card',
  ),
  ranges: listOf(range),
  lengths: filledListOf(whole(12, 19)),
  cvvLength: optional(oneOf([3, 4]), 3),
  cvvRequired: optional(flag, true),
  also: optional(listOf(filled), []),
})
type Brand = Output<typeof brand>

/** With ours behind those of the file. */
const allOf = (given: readonly Brand[]) => [...given, ...standardRows.filter(({ name }) => !given.some(row => row.name === name))]

function mistakesBetween(given: readonly Brand[]): string[] {
  const names = allOf(given).map(({ name }) => name)
  return given.flatMap(({ name, also }, at) => [
    ...(names.indexOf(name) === at ? [] : [`holds ${name} twice`]),
    ...also.filter(other => !names.includes(other)).map(other => `${name}.also names ${other}, which is no card brand`),
  ])
}

export const cardBrandsSchema = file({
  brands: where(
    listOf(brand),
    given => mistakesBetween(given).length === 0,
    ({ input }) => mistakesBetween(input).join('\n'),
  ),
})

/** Throws an OperatorError naming all that is wrong. */
export const readCardBrands = (text: string, source: string): CardBrands =>
  makeBrands(allOf(read(cardBrandsSchema, parseJson(text, source), source).brands))
