// What a machine of two cores carries, and what larger plans need: the tables of "Capacity" in docs/scale.md, calculated from those that `npm run bench` and
// `npm run bench:disk` have written into docs/performance.md. `npm run scale` writes them.

import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { columns, pages, writeTables } from './bench/report.ts'

/** The cells of a row of a table between two marks, by what stands in its first column. */
function rowOf(page: string, mark: string, name: string): Record<string, string> {
  const text = page.slice(page.indexOf(`<!-- ${mark} -->`), page.indexOf(`<!-- /${mark} -->`))
  const rows = text.split('\n').map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim()),
  )
  const at = rows.findIndex(([first]) => first === name)
  const heading = rows.slice(0, at).findLast(row => row[0] === '')
  if (at < 0 || !heading) throw new Error(`docs/performance.md has no row "${name}" between the marks ${mark}.`)
  return Object.fromEntries(heading.map((column, place) => [column, rows[at]![place]!]))
}

const sum = (text: string): number => text.split('+').reduce((total, one) => total + Number(one), 0)
const round = (value: number): string =>
  value >= 100 ? Number(value.toPrecision(2)).toLocaleString('en') : String(Number(value.toPrecision(2)))

/** Both tables. `page`: docs/performance.md. */
export function capacityTables(page: string): string {
  const load = rowOf(page, 'bench', 'gateway, 128 connections')
  const mix = rowOf(page, 'bench', '70 % DB, 10 % PA, 10 % CP, 5 % RF, 5 % reads')
  const disk = rowOf(page, 'disk', 'payments, 128 connections')
  const mixedDisk = rowOf(page, 'disk', '70 % DB, 10 % PA, 10 % CP, 5 % RF, 5 % reads')
  const costs = [
    [load, disk],
    [mix, mixedDisk],
  ].map(([speed, written]) => ({
    perSecond: Number(speed!['per second']),
    milliseconds: (sum(speed!['CPU µs each: Node + PostgreSQL']!) + Number(speed!['and behind it'])) / 1000,
    storedGb: Number(written!['GB stored a million']),
    walGb: Number(written!['WAL bytes each']) / 1000,
    flushes: Number(written!['flushes each']),
    writes: Number(written!['WAL writes each']) + Number(written!['page writes each']),
  }))
  const measured = (name: string, of: (cost: (typeof costs)[number]) => string) => [name, ...costs.map(of)]
  const [debits] = costs as [(typeof costs)[number]]
  const day = 86_400
  const plans = [
    { name: '10,000 payments a second', peak: 10_000, daily: (10_000 * day) / peakTimes },
    { name: '100 million payments a day', peak: (100_000_000 / day) * peakTimes, daily: 100_000_000 },
  ]
  const planned = (name: string, of: (plan: (typeof plans)[number]) => number | string) => [
    name,
    ...plans.map(plan => {
      const value = of(plan)
      return typeof value === 'number' ? round(value) : value
    }),
  ]
  const coresOf = ({ peak }: { peak: number }) => (peak * debits.milliseconds * 2) / 1000
  return `Measured on two cores, which the load shares:

${columns([
  ['', 'debits', 'the mix of the bench'],
  measured('requests a second, at most', one => round(one.perSecond)),
  measured('to plan with: half of it', one => round(one.perSecond / 2)),
  measured('processor time each, Node and PostgreSQL, with what follows behind it, ms', one => round(one.milliseconds)),
  measured('GB stored by a million', one => round(one.storedGb)),
  measured('GB of WAL by a million', one => round(one.walGb)),
  measured('writes of WAL and of pages each, at the speed of that bench', one => round(one.writes)),
  measured('flushes of the disk each, at that speed', one => round(one.flushes)),
])}

Calculated from the column of debits; the peak of a day is taken to be ${peakTimes} times its average:

${columns([
  ['', ...plans.map(({ name }) => name)],
  planned('payments a second at the peak', ({ peak }) => peak),
  planned('payments a day', ({ daily }) => `${round(daily / 1e6)} million`),
  planned('cores of gateways and PostgreSQL that are busy at the peak', plan => coresOf(plan) / 2),
  planned('cores to have, so that half of them is busy', coresOf),
  planned('cells of 16 cores', plan => Math.ceil(coresOf(plan) / 16)),
  planned('cells of two cores as measured, at half their speed', ({ peak }) => Math.ceil((peak * 2) / debits.perSecond)),
  planned('GB stored a day, all cells', ({ daily }) => (daily / 1e6) * debits.storedGb),
  planned(
    'TB stored in 90 days, before what is older goes into archives',
    ({ daily }) => ((daily / 1e6) * debits.storedGb * 90) / 1000,
  ),
  planned(
    'MB of WAL a second at the peak, all cells: what standbys and archives take',
    ({ peak }) => (peak * debits.walGb) / 1000,
  ),
  planned('writes a second at the peak (IOPS), all cells', ({ peak }) => peak * debits.writes),
  planned('flushes a second at the peak, all cells', ({ peak }) => peak * debits.flushes),
])}
`
}

const peakTimes = 4

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  writeTables('capacity', capacityTables(readFileSync(pages.performance, 'utf8')), pages.scale)
