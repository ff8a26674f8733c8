// Rules applied to facts. Pure, and the order of the rules does not matter: scores add up, any rule that denies denies, and when several do,
// the heaviest one names the result.

import { isIP } from 'node:net'
import type { ResultName } from '../../contract/results/results.ts'
import type { Rule, RuleSet } from './rules.ts'

export type Fact = string | number | boolean
export type Facts = ReadonlyMap<string, Fact>

export type Verdict = {
  readonly score: number
  readonly outcome: 'pass' | 'review' | 'deny'
  /** Only when denied. */
  readonly result?: ResultName
  /** Names of the rules that fired, for the operator. */
  readonly fired: readonly string[]
}

/** Higher is riskier; the interface allows five digits. */
export const scoreMax = 99_999

export function judge({ rules, denyFrom, reviewFrom }: RuleSet, facts: Facts): Verdict {
  const fired = rules.filter(rule => fires(rule, facts))
  const score = Math.max(
    -scoreMax,
    Math.min(
      scoreMax,
      fired.reduce((sum, rule) => sum + rule.score, 0),
    ),
  )
  const names = fired.map(({ name }) => name).sort()
  const [denying] = fired.filter(({ deny }) => deny !== undefined).sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
  if (denying) return { score, outcome: 'deny', result: denying.deny!, fired: names }
  if (fired.some(({ allow }) => allow)) return { score, outcome: 'pass', fired: names }
  if (score >= denyFrom) return { score, outcome: 'deny', result: 'riskDeclined', fired: names }
  return { score, outcome: score >= reviewFrom ? 'review' : 'pass', fired: names }
}

function fires(rule: Rule, facts: Facts): boolean {
  const fact = facts.get(rule.fact)
  if (fact === undefined) return false
  const text = String(fact).toLowerCase()
  return (
    (rule.is === undefined || text === rule.is.toLowerCase()) &&
    (rule.isNot === undefined || text !== rule.isNot.toLowerCase()) &&
    (rule.in === undefined || rule.in.has(text)) &&
    (rule.notIn === undefined || !rule.notIn.has(text)) &&
    (rule.inNetwork === undefined || (isIP(text) !== 0 && rule.inNetwork.check(text, isIP(text) === 6 ? 'ipv6' : 'ipv4'))) &&
    (rule.above === undefined || Number(fact) > rule.above) &&
    (rule.below === undefined || Number(fact) < rule.below)
  )
}
