// The figures of all rounds as tables: on the terminal, and in docs/performance.md.

import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { type Figures, type Load, loads, type Measure, measures, type Round, spread } from './measures.ts'

export function report(rounds: readonly Round[]): string {
  const half = middleOf(rounds, round => round.gatewayOpen.perSecond)
  return `${rounds.length} rounds, medians; load generator, Node ${process.versions.node} and PostgreSQL share ${cpus().length} cores. ${''}Every payment is durable (fsync on) before it is answered. The open loop sends ${whole(half)} payments a second.

${columns([
  ['', 'per second', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs each: Node + PostgreSQL', 'and behind it', 'memory MB'],
  ...(Object.keys(loads) as Load[]).map(load =>
    loadLine(
      loads[load],
      rounds.map(round => round[load]),
    ),
  ),
])}

${columns([['#', 'ratio', 'min', 'median', 'max', 'goal', 'stretch', 'met'], ...measures.map(one => measureLine(one, rounds))])}

A start to listening takes ${whole(middleOf(rounds, round => round.start))} ms, that of an empty Node ${whole(middleOf(rounds, round => round.emptyStart))} ms.
`
}

function loadLine(name: string, figures: readonly Figures[]): string[] {
  const middle = (of: (one: Figures) => number | undefined) => middleOf(figures, of)
  const times = [middle(one => one.node), middle(one => one.server)].filter(time => time !== undefined)
  return [
    name,
    whole(middle(one => one.perSecond)),
    short(middle(one => one.p50)),
    short(middle(one => one.p99)),
    short(middle(one => one.p999)),
    times.map(whole).join(' + '),
    whole(middle(one => one.behind)),
    whole(middle(one => one.megabytes)),
  ]
}

function measureLine({ number, name, of, better, goal, stretch }: Measure, rounds: readonly Round[]): string[] {
  const found = spread(rounds.map(of))
  if (!found) return [number, name, '', 'not measured', '', '', '', '']
  const reached = (limit?: number) => limit !== undefined && (better === 'more' ? found[1] >= limit : found[1] <= limit)
  const limits = [goal, stretch].map(limit => (limit === undefined ? '' : `${better === 'more' ? '≥' : '≤'} ${limit}`))
  const met = goal === undefined ? '' : reached(stretch) ? 'stretch' : reached(goal) ? 'yes' : 'no'
  return [number, name, ...found.map(short), ...limits, met]
}

function middleOf<One>(all: readonly One[], of: (one: One) => number | undefined): number | undefined {
  return spread(all.map(of))?.[1]
}

const whole = (value: number | undefined) => (value === undefined ? '' : Math.round(value).toString())
const short = (value: number | undefined) => (value === undefined ? '' : value >= 100 ? value.toFixed(0) : value.toPrecision(3))

/** A Markdown table that also reads well as plain text. */
export function columns([head, ...rows]: readonly string[][]): string {
  const widths = head!.map((_, at) => Math.max(3, ...[head!, ...rows].map(row => row[at]!.length)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => (at < 2 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join(' | ')} |`
  const rule = `|${widths.map((width, at) => (at < 2 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [line(head!), rule, ...rows.map(line)].join('\n')
}

export const pages = {
  performance: new URL('../../docs/performance.md', import.meta.url),
  scale: new URL('../../docs/scale.md', import.meta.url),
}

/** Puts tables between the two marks of their name in a page. */
export function writeTables(
  name: 'bench' | 'capacity' | 'cells' | 'disk' | 'growth',
  text: string,
  file = pages.performance,
): void {
  const page = readFileSync(file, 'utf8')
  const marks = [`<!-- ${name} -->`, `<!-- /${name} -->`] as const
  const [begin, end] = marks.map(mark => page.indexOf(mark)) as [number, number]
  if (begin < 0 || end < begin) throw new Error(`${file.pathname} has no ${marks.join(' … ')}`)
  writeFileSync(file, `${page.slice(0, begin + marks[0].length)}\n${text}${page.slice(end)}`)
}
