// What the dashboard and the rules ask Prometheus for.

import { readFileSync } from 'node:fs'

export const packaged = (name: string): URL => new URL(`../../packaging/${name}`, import.meta.url)

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }

/** Of each panel of the dashboard, in its order. */
export const dashboardExpressions = (): readonly (readonly [title: string, expression: string])[] =>
  (JSON.parse(readFileSync(packaged('grafana/dashboards/tollgate.json'), 'utf8')).panels as readonly Panel[]).flatMap(
    ({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const),
  )

export type Rule = { readonly kind: 'record' | 'alert'; readonly name: string; readonly expression: string }

/** Of rules.yml, which is written so that a few lines can read it: an expression stands on one line, or folded below `>-`. */
export function rules(): readonly Rule[] {
  const text = readFileSync(packaged('prometheus/rules.yml'), 'utf8')
  return [...text.matchAll(/- (record|alert): (\S+)\n +expr: (?:>-\n((?: {10}.*\n)+)|(.+)\n)/g)].map(
    ([, kind, name, folded, line]) => ({ kind: kind as Rule['kind'], name: name!, expression: (folded ?? line)!.trim() }),
  )
}

/** Names of figures in an expression: of the gateway, of Node and of its process; those that rules record have colons. */
export const namesIn = (expression: string): string[] =>
  [...expression.matchAll(/(?<![\w:])(tollgate[_:][\w:]+|nodejs_\w+|process_\w+)/g)].map(([, name]) => name!)
