// The query of the old XML interface as it is asked: `<Request><Query mode level entity type>` with a user, and a period or what identifies a payment. Only
// what is asked is read; nothing in it makes more of itself: no document type, no entities of its own, no depth. Pure.

import type { Mode } from '../../connectors/connector.ts'
import { dayBegin } from '../../contract/formats.ts'
import { xmlModes } from '../../payments/read/xmlRecord.ts'

export type XmlQuery = {
  readonly entityId: string
  readonly mode: Mode
  readonly user?: { readonly login: string; readonly password: string }
  readonly types?: readonly string[]
  readonly id?: string
  readonly merchantTransactionId?: string
  /** Business time, milliseconds: from inclusive, to exclusive. */
  readonly from?: number
  readonly to?: number
  /** More than so many are not given. */
  readonly most: number
}

/** The sentence says what is wrong, and repeats no value. */
export class WrongXmlQuery extends Error {}

/** A query of every type, each with an end of its own, and comments: a parser is not asked for more before it is known who asks. */
export const loadBytesMost = 4096
export const loadElementsMost = 100
const depthMost = 8
const day = 86_400_000

const options = {
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  parseTagValue: false,
  parseAttributeValue: false,
  htmlEntities: true, // signs by their numbers among them
  maxNestedTags: depthMost,
}

/** Throws a WrongXmlQuery. */
export async function readXmlQuery(load: string): Promise<XmlQuery> {
  const query = child(child(await parsed(load), 'Request'), 'Query')
  const mode = word(query, 'Query', 'mode', Object.keys(xmlModes)) as keyof typeof xmlModes
  if (word(query, 'Query', 'level', ['CHANNEL', 'MERCHANT', 'DIVISION']) === 'DIVISION')
    throw new WrongXmlQuery('Query level DIVISION is not offered: ask for each merchant')
  word(query, 'Query', 'type', ['STANDARD'])
  const types = typesOf(query)
  const identified = hasChild(query, 'Identification') ? child(query, 'Identification') : {}
  const [id, merchantTransactionId] = [textOf(identified, 'UniqueID'), textOf(identified, 'TransactionID')]
  if (id !== undefined && merchantTransactionId !== undefined)
    throw new WrongXmlQuery('Identification takes a UniqueID or a TransactionID, not both')
  const period = hasChild(query, 'Period') ? periodOf(child(query, 'Period'), types) : undefined
  if (!period && id === undefined && merchantTransactionId === undefined)
    throw new WrongXmlQuery('Query needs a Period, or an Identification with a UniqueID or a TransactionID')
  return {
    entityId: attribute(query, 'Query', 'entity'),
    mode: xmlModes[mode],
    ...(hasChild(query, 'User') && { user: userOf(child(query, 'User')) }),
    ...(types && { types }),
    ...(id !== undefined && { id }),
    ...(merchantTransactionId !== undefined && { merchantTransactionId }),
    ...(period && { from: period.from, to: period.to }),
    most: mostOf(types, period, merchantTransactionId),
  }
}

/** Types whose periods are long and whose results are many. */
const clearingTypes: ReadonlySet<string> = new Set(['CB', 'CR', 'RC'])
const areClearing = (types: readonly string[] | undefined): boolean => types?.every(type => clearingTypes.has(type)) ?? false

/** Up to a week of what banks and issuers say brings the most. */
function mostOf(
  types: readonly string[] | undefined,
  period: Period | undefined,
  merchantTransactionId: string | undefined,
): number {
  if (merchantTransactionId !== undefined) return 200
  return period && period.to - period.from <= 7 * day && areClearing(types) ? 10_000 : 2000
}

type Period = { readonly from: number; readonly to: number }

function periodOf(period: XmlNode, types: readonly string[] | undefined): Period {
  const [from, to] = (['from', 'to'] as const).map(name => {
    const value = attribute(period, 'Period', name)
    const begin = dayBegin(value)
    if (Number.isNaN(begin)) throw new WrongXmlQuery(`Period ${name} must be a day, yyyy-MM-dd`)
    return begin
  }) as [number, number]
  if (from > to) throw new WrongXmlQuery('Period from must not be after to')
  if (!areClearing(types) && from !== to)
    throw new WrongXmlQuery('Period may be longer than one day for the types CB, CR and RC only')
  if (to - from > 30 * day) throw new WrongXmlQuery('Period must not be longer than 31 days')
  return { from, to: to + day }
}

function typesOf(query: XmlNode): readonly string[] | undefined {
  if (!hasChild(query, 'Types')) return undefined
  const { Type: given } = child(query, 'Types')
  const types = (Array.isArray(given) ? given : [given]).map(type => attribute(isNode(type) ? type : {}, 'Type', 'code'))
  if (!types.every(type => /^[A-Z]{2}$/.test(type))) throw new WrongXmlQuery('Type code must be a payment type such as RC')
  return types
}

const userOf = (user: XmlNode) => ({ login: attribute(user, 'User', 'login'), password: attribute(user, 'User', 'pwd') })

// ---- An element is a map of what is in it: attributes begin with @, text alone is a text, what stands several times is a list.

type XmlNode = Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is XmlNode => typeof value === 'object' && value !== null && !Array.isArray(value)

async function parsed(load: string): Promise<XmlNode> {
  if (Buffer.byteLength(load) > loadBytesMost) throw new WrongXmlQuery(`load must not be longer than ${loadBytesMost} bytes`)
  if (load.split('<', loadElementsMost + 2).length > loadElementsMost + 1)
    throw new WrongXmlQuery(`load must not have more than ${loadElementsMost} signs <`)
  if (/<!(?!--)/.test(load)) throw new WrongXmlQuery('load must have neither a document type nor other declarations')
  const { XMLParser, XMLValidator } = await import('fast-xml-parser') // few merchants ask in XML
  try {
    if (XMLValidator.validate(load) === true) return new XMLParser(options).parse(load)
  } catch {
    // Too deep, or a name that is none.
  }
  throw new WrongXmlQuery('load must be a well-formed XML document of no great depth')
}

const hasChild = (node: XmlNode, name: string): boolean => Object.hasOwn(node, name)

function child(node: XmlNode, name: string): XmlNode {
  const value = hasChild(node, name) ? node[name] : undefined
  if (value === '') return {}
  if (!isNode(value)) throw new WrongXmlQuery(`${name} must stand once`)
  return value
}

function textOf(node: XmlNode, name: string): string | undefined {
  if (!hasChild(node, name)) return undefined
  const value = node[name]
  if (typeof value !== 'string' || value === '' || value.length > 255)
    throw new WrongXmlQuery(`${name} must stand once, with 1 to 255 characters`)
  return value
}

function attribute(node: XmlNode, element: string, name: string): string {
  const value = node[`@${name}`]
  if (typeof value !== 'string' || value === '') throw new WrongXmlQuery(`${element} needs the attribute ${name}`)
  return value
}

function word(node: XmlNode, element: string, name: string, words: readonly string[]): string {
  const value = attribute(node, element, name)
  if (!words.includes(value)) throw new WrongXmlQuery(`${element} ${name} must be ${words.join(' or ')}`)
  return value
}
