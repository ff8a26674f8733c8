// The rules of the risk check: read from a file, checked at the start. docs/reference/risk-rules.md describes every row.

import { BlockList, isIP } from 'node:net'
import { nearest } from '../../contract/nearest.ts'
import { type ResultName, results } from '../../contract/results/results.ts'
import { OperatorError } from '../../platform/errors.ts'
import {
  either,
  file,
  filled,
  flag,
  listOf,
  mapOf,
  number,
  type Output,
  object,
  oneOf,
  optional,
  read,
  readJsonFile,
  text,
  where,
  whole,
} from '../../platform/schema.ts'
import { riskLists } from './lists/lists.ts'

export type Rule = {
  readonly name: string
  /** What is looked at: a parameter by its wire name, or a fact of facts.ts. A rule whose fact is missing does not fire. Of a rule `list` it is `list.block` or
   * `list.allow`, which is known when something of the payment stands in that list. */
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

const words = listOf(filled)
const rejecting = Object.entries(results).flatMap(([name, { outcome }]) => (outcome === 'rejected' ? [name as ResultName] : []))
const points = whole(-99_999, 99_999)
const bound = number(-1e12, 1e12)

/** RISK_RULES_FILE, which holds lists of these names; without them any name of a list will do. */
export function riskRulesSchema(lists?: readonly string[]) {
  const list = where(
    text(/^@./, 'must be a list of texts, or @ and the name of a list'),
    name => lists?.includes(name.slice(1)) ?? true,
    ({ input }) => {
      const near = nearest(input.slice(1), lists!)
      return `names a list that is not there${near === undefined ? '' : `: did you mean @${near}?`}`
    },
  )
  const wordsOrList = either([words, list], 'must be a list of texts, or @ and the name of a list')
  const conditions = {
    is: optional(filled),
    isNot: optional(filled),
    in: optional(wordsOrList),
    notIn: optional(wordsOrList),
    inNetwork: optional(wordsOrList),
    above: optional(bound),
    below: optional(bound),
  }
  const isConditional = (given: object) => Object.keys(conditions).some(name => name in given)
  const rule = where(
    where(
      object({
        name: filled,
        fact: optional(filled),
        list: optional(oneOf(riskLists)),
        ...conditions,
        score: optional(bound),
        deny: optional(oneOf(rejecting)),
        allow: optional(flag),
      }),
      given => (given.list === undefined) === isConditional(given) && 'fact' in given !== 'list' in given,
      `needs a fact and one of ${Object.keys(conditions).join(', ')}, or a list and none of these`,
    ),
    ({ score, deny, allow }) => score !== undefined || deny !== undefined || allow === true,
    'needs a score, deny or allow',
  )
  const set = object({
    denyFrom: optional(points, 100),
    reviewFrom: optional(points, 50),
    whenBroken: optional(oneOf(['open', 'closed']), 'open'),
    disposableDomains: optional(wordsOrList, []),
    cardCountries: optional(
      mapOf(
        text(/^\d{1,8}$/, 'must be the first digits of card numbers'),
        text(/^[A-Za-z]{2}$/, 'must be the 2 letters of a country'),
      ),
      {},
    ),
    rules: listOf(rule),
  })
  return file({
    lists: optional(mapOf(filled, words), {}),
    sets: where(mapOf(filled, set), sets => Object.keys(sets).length > 0, 'must hold at least one set of rules'),
  })
}

type WrittenSet = Output<ReturnType<typeof riskRulesSchema>>['sets'][string]
type WrittenRule = WrittenSet['rules'][number]

/** Throws an OperatorError with all that is wrong in the file. */
export function readRiskRules(path: string): RiskRules {
  const source = `The risk rules ${path}`
  const given = readJsonFile(path, source)
  const { lists, sets } = read(riskRulesSchema(Object.keys(Object(Object(given).lists))), given, source)
  const wrong: string[] = []
  const made = Object.entries(sets).map(([name, set]) =>
    setOf(name, set, lists, rule => wrong.push(`${source}: sets.${name}.${rule}.`)),
  )
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
  return new Map(made.map(set => [set.name, set]))
}

type Lists = Readonly<Record<string, readonly string[]>>
type Fail = (rule: string) => void

function setOf(name: string, set: WrittenSet, lists: Lists, fail: Fail): RuleSet {
  const { disposableDomains, cardCountries, rules, ...rest } = set
  return {
    name,
    ...rest,
    disposableDomains: new Set(wordsOf(disposableDomains, lists)),
    cardCountries: new Map(Object.entries(cardCountries)),
    rules: rules.map((one, at) => ruleOf(one, lists, `rules[${at}]`, fail)),
  }
}

function ruleOf(
  { in: among, notIn, inNetwork, fact, list, ...rest }: WrittenRule,
  lists: Lists,
  place: string,
  fail: Fail,
): Rule {
  return {
    score: 0,
    allow: false,
    fact: list === undefined ? fact! : `list.${list}`,
    ...rest,
    ...(among && { in: new Set(wordsOf(among, lists)) }),
    ...(notIn && { notIn: new Set(wordsOf(notIn, lists)) }),
    ...(inNetwork && { inNetwork: networks(wordsOf(inNetwork, lists), `${place}.inNetwork`, fail) }),
  }
}

/** Texts without regard to case: given, or the list of that name. */
const wordsOf = (given: readonly string[] | string, lists: Lists): readonly string[] =>
  (typeof given === 'string' ? lists[given.slice(1)]! : given).map(word => word.toLowerCase())

function networks(list: readonly string[], place: string, fail: Fail): BlockList {
  const blocks = new BlockList()
  for (const network of list) {
    const [address, bits] = network.split('/') as [string, string | undefined]
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    const most = family === 'ipv6' ? 128 : 32
    if (isIP(address) === 0 || (bits !== undefined && !(/^\d+$/.test(bits) && Number(bits) <= most)))
      fail(`${place}: ${network} is no address or network`)
    else if (bits === undefined) blocks.addAddress(address, family)
    else blocks.addSubnet(address, Number(bits), family)
  }
  return blocks
}
