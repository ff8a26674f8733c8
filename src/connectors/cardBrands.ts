// CARD_BRANDS_FILE: card brands of an installation's own, beside ours or in their place. docs/operating.md describes the file.

import { type CardBrand, type CardBrands, endsOf, makeBrands, otherBrands, standardRows } from '../contract/brands.ts'
import { OperatorError } from '../errors.ts'

type Given = Readonly<Record<string, unknown>>

const isRange = (range: unknown): boolean => {
  if (typeof range !== 'string' || !/^\d{1,12}(-\d{1,12})?$/.test(range)) return false
  const { from, to } = endsOf(range)
  return from.length === to.length && from <= to
}
const listOf = (value: unknown, fits: (one: unknown) => boolean): boolean => Array.isArray(value) && value.every(fits)

const fields: Readonly<Record<keyof CardBrand, { readonly fits: (value: unknown) => boolean; readonly rule: string }>> = {
  name: {
    fits: name => typeof name === 'string' && /^[A-Z][A-Z0-9_]{1,31}$/.test(name) && !otherBrands.has(name),
    rule: 'must be capitals, digits and underscores, and no brand of another method',
  },
  ranges: {
    fits: value => listOf(value, isRange),
    rule: 'must be a list of ranges of up to 12 leading digits, as "51-55" or "4", both ends of one length',
  },
  lengths: {
    fits: value =>
      listOf(value, one => Number.isInteger(one) && (one as number) >= 12 && (one as number) <= 19) && (value as []).length > 0,
    rule: 'must be a list of lengths from 12 to 19',
  },
  cvvLength: { fits: value => value === 3 || value === 4, rule: 'must be 3 or 4' },
  cvvRequired: { fits: value => typeof value === 'boolean', rule: 'must be true or false' },
  also: { fits: value => listOf(value, one => typeof one === 'string'), rule: 'must be a list of brands' },
}
const defaults = { cvvLength: 3, cvvRequired: true, also: [] }

/** Reads `{"brands": [{name, ranges, lengths, cvvLength, cvvRequired, also}]}`; throws OperatorError naming all that is wrong. */
export function readCardBrands(text: string, source: string): CardBrands {
  const fail = (...mistakes: string[]): never => {
    throw new OperatorError(mistakes.map(mistake => `${source}: ${mistake}.`).join('\n'))
  }
  const file = parsed(text, fail)
  const list = isMap(file) && Object.keys(file).join() === 'brands' && Array.isArray(file.brands) ? file.brands : undefined
  if (!list) return fail('must be {"brands": […]}')
  const given: Given[] = list.map(one => (isMap(one) ? { ...defaults, ...one } : {}))
  const wrong = given.flatMap((row, at) =>
    mistakesOf(row, `brand ${at + 1}${typeof row.name === 'string' ? ` (${row.name})` : ''}`),
  )
  const rows = [...given, ...standardRows.filter(({ name }) => !given.some(row => row.name === name))] as CardBrand[]
  const names = rows.map(({ name }) => name)
  for (const [at, { name, also }] of rows.entries()) {
    if (typeof name === 'string' && names.indexOf(name) !== at) wrong.push(`${name} stands there twice`)
    for (const other of Array.isArray(also) ? also : [])
      if (!names.includes(other)) wrong.push(`${name}.also names ${other}, which is no card brand`)
  }
  if (wrong.length > 0) fail(...wrong)
  return makeBrands(rows)
}

function mistakesOf(row: Given, owner: string): string[] {
  const unknown = Object.keys(row).filter(name => !Object.hasOwn(fields, name))
  return [
    ...unknown.map(name => `${owner} has no field ${name}`),
    ...Object.entries(fields).flatMap(([name, { fits, rule }]) => (fits(row[name]) ? [] : [`${owner}: ${name} ${rule}`])),
  ]
}

const isMap = (value: unknown): value is Given => typeof value === 'object' && value !== null && !Array.isArray(value)

function parsed(text: string, fail: (mistake: string) => never): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    return fail(`is not JSON: ${(error as Error).message}`)
  }
}
