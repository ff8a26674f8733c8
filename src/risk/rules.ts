// The rules of the risk check: read from a file, checked at the start. docs/reference/risk-rules.md describes every row.

import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { type ResultName, results } from '../contract/results/results.ts'
import { OperatorError } from '../errors.ts'

export type Rule = {
  readonly name: string
  /** What is looked at: a parameter by its wire name, or a fact of facts.ts. A rule whose fact is missing does not fire. */
  readonly fact: string
  /** One of these; all of a rule must hold. */
  readonly is?: string
  readonly isNot?: string
  readonly in?: ReadonlySet<string>
  readonly notIn?: ReadonlySet<string>
  readonly inNetwork?: BlockList
  readonly above?: number
  readonly below?: number
  /** Added to the score when the rule fires; may be negative. */
  readonly score: number
  /** Refuses at once with this result. */
  readonly deny?: ResultName
  /** Lets the payment pass whatever the score; no match for a rule that denies. */
  readonly allow: boolean
}

export type RuleSet = {
  readonly name: string
  readonly denyFrom: number
  readonly reviewFrom: number
  /** What happens when the check itself fails: the payment goes on and is marked for review, or it is refused. */
  readonly whenBroken: 'open' | 'closed'
  readonly disposableDomains: ReadonlySet<string>
  /** Country of a card by the first digits of its number. */
  readonly cardCountries: ReadonlyMap<string, string>
  readonly rules: readonly Rule[]
}

export type RiskRules = ReadonlyMap<string, RuleSet>

const conditions = ['is', 'isNot', 'in', 'notIn', 'inNetwork', 'above', 'below'] as const

type Given = Readonly<Record<string, unknown>>

export function readRiskRules(path: string): RiskRules {
  const wrong: string[] = []
  let file: Given
  try {
    file = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new OperatorError(`The risk rules ${path}: ${(error as Error).message}.`)
  }
  const lists = new Map(
    Object.entries((file.lists ?? {}) as Record<string, unknown>).map(([name, list]) => [
      name,
      wordsOf(list, `lists.${name}`, wrong),
    ]),
  )
  const sets = Object.entries((file.sets ?? {}) as Record<string, Given>).map(([name, set]) => setOf(name, set, lists, wrong))
  if (sets.length === 0) wrong.push('sets must hold at least one set of rules')
  if (wrong.length > 0) throw new OperatorError(wrong.map(text => `The risk rules ${path}: ${text}.`).join('\n'))
  return new Map(sets.map(set => [set.name, set]))
}

function setOf(name: string, set: Given, lists: ReadonlyMap<string, readonly string[]>, wrong: string[]): RuleSet {
  const known = ['denyFrom', 'reviewFrom', 'whenBroken', 'disposableDomains', 'cardCountries', 'rules']
  for (const key of Object.keys(set)) if (!known.includes(key)) wrong.push(`sets.${name}.${key} is not a setting`)
  const whole = (key: string, otherwise: number) => {
    const value = set[key] ?? otherwise
    if (!Number.isSafeInteger(value)) wrong.push(`sets.${name}.${key} must be a whole number`)
    return Number(value)
  }
  if (!['open', 'closed', undefined].includes(set.whenBroken as string))
    wrong.push(`sets.${name}.whenBroken must be open or closed`)
  const rules = Array.isArray(set.rules) ? (set.rules as Given[]) : []
  if (!Array.isArray(set.rules)) wrong.push(`sets.${name}.rules must be a list`)
  return {
    name,
    denyFrom: whole('denyFrom', 100),
    reviewFrom: whole('reviewFrom', 50),
    whenBroken: set.whenBroken === 'closed' ? 'closed' : 'open',
    disposableDomains: new Set(
      set.disposableDomains === undefined ? [] : words(set.disposableDomains, lists, `sets.${name}.disposableDomains`, wrong),
    ),
    cardCountries: new Map(Object.entries((set.cardCountries ?? {}) as Record<string, string>)),
    rules: rules.map((rule, at) => ruleOf(rule, lists, `sets.${name}.rules[${at}]`, wrong)),
  }
}

function ruleOf(rule: Given, lists: ReadonlyMap<string, readonly string[]>, place: string, wrong: string[]): Rule {
  const known = ['name', 'fact', 'score', 'deny', 'allow', ...conditions]
  for (const key of Object.keys(rule)) if (!known.includes(key)) wrong.push(`${place}.${key} is not part of a rule`)
  if (typeof rule.name !== 'string' || rule.name === '') wrong.push(`${place}.name is missing`)
  if (typeof rule.fact !== 'string' || rule.fact === '') wrong.push(`${place}.fact is missing`)
  if (conditions.every(condition => rule[condition] === undefined)) wrong.push(`${place} needs one of ${conditions.join(', ')}`)
  for (const key of ['score', 'above', 'below'] as const)
    if (rule[key] !== undefined && typeof rule[key] !== 'number') wrong.push(`${place}.${key} must be a number`)
  if (rule.score === undefined && rule.deny === undefined && rule.allow !== true)
    wrong.push(`${place} needs a score, deny or allow`)
  if (rule.deny !== undefined && results[rule.deny as ResultName]?.outcome !== 'rejected')
    wrong.push(`${place}.deny must be the name of a result that rejects, for example riskDeclined`)
  const set = (key: 'in' | 'notIn') =>
    rule[key] === undefined ? {} : { [key]: new Set(words(rule[key], lists, `${place}.${key}`, wrong)) }
  return {
    name: String(rule.name),
    fact: String(rule.fact),
    score: Number(rule.score ?? 0),
    allow: rule.allow === true,
    ...(rule.is !== undefined && { is: String(rule.is) }),
    ...(rule.isNot !== undefined && { isNot: String(rule.isNot) }),
    ...set('in'),
    ...set('notIn'),
    ...(rule.inNetwork !== undefined && {
      inNetwork: networks(words(rule.inNetwork, lists, `${place}.inNetwork`, wrong), place, wrong),
    }),
    ...(rule.above !== undefined && { above: Number(rule.above) }),
    ...(rule.below !== undefined && { below: Number(rule.below) }),
    ...(rule.deny !== undefined && { deny: rule.deny as ResultName }),
  }
}

/** A list of words, or the name of a list with an @ before it. */
function words(given: unknown, lists: ReadonlyMap<string, readonly string[]>, place: string, wrong: string[]): readonly string[] {
  if (typeof given !== 'string') return wordsOf(given, place, wrong)
  const list = lists.get(given.slice(1))
  if (!given.startsWith('@') || !list) wrong.push(`${place} must be a list, or @ and the name of one of lists`)
  return list ?? []
}

function wordsOf(list: unknown, place: string, wrong: string[]): readonly string[] {
  const fine = Array.isArray(list) && list.every(word => typeof word === 'string')
  if (!fine) wrong.push(`${place} must be a list of texts`)
  return fine ? (list as string[]).map(word => word.toLowerCase()) : []
}

function networks(list: readonly string[], place: string, wrong: string[]): BlockList {
  const blocks = new BlockList()
  for (const network of list) {
    const [address, bits] = network.split('/') as [string, string | undefined]
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    const most = family === 'ipv6' ? 128 : 32
    if (isIP(address) === 0 || (bits !== undefined && !(/^\d+$/.test(bits) && Number(bits) <= most)))
      wrong.push(`${place}.inNetwork: ${network} is no address or network`)
    else if (bits === undefined) blocks.addAddress(address, family)
    else blocks.addSubnet(address, Number(bits), family)
  }
  return blocks
}
