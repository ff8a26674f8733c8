// What one round measures, and the goals that it is held against. All goals are ratios of figures of the same round.

/** One load on one process: speed, latency in milliseconds, memory in megabytes, microseconds of processor time per payment. */
export type Figures = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly megabytes?: number | undefined
  /** Of Node, and of PostgreSQL. */
  readonly node?: number | undefined
  readonly server?: number | undefined
  /** Of both after the load, until everybody is told of it. */
  readonly behind?: number | undefined
}

/** The loads of a round, in the order in which they run. */
export const loads = {
  gateway: 'gateway, 128 connections',
  plain: 'only HTTP and two plain rows, 128 connections',
  stubbed: 'gateway without storage, 128 connections',
  two: 'gateway of two processes, 128 connections',
  commits: 'single-row commits, 8 connections',
  gatewayAlone: 'gateway, 1 connection',
  commitsAlone: 'single-row commits, 1 connection',
  gatewayOpen: 'gateway, open loop at half its speed',
  stubbedOpen: 'gateway without storage, the same rate',
  gatewayWide: 'gateway, 512 connections',
  captures: 'captures (CP), 128 connections',
  refunds: 'refunds (RF), 128 connections',
  reversals: 'reversals (RV), 128 connections',
  mixed: '70 % DB, 10 % PA, 10 % CP, 5 % RF, 5 % reads',
} as const

export type Load = keyof typeof loads
export type Round = Readonly<Record<Load, Figures>> & {
  /** Start to listening with the database present, and a Node that does nothing, milliseconds. */
  readonly start: number
  readonly emptyStart: number
}

/** A ratio (or megabytes) of a round, and where it should be at least, or at most, so much. */
export type Measure = {
  readonly number: string
  readonly name: string
  readonly of: (round: Round) => number | undefined
  readonly better: 'more' | 'less'
  /** Absent: it is shown, and nothing is asked of it. */
  readonly goal?: number
  readonly stretch?: number
}

const work = ({ node, server }: Figures) => node && server && node + server

/** Payments a second of a load, compared with debits. */
const besideDebits = (number: string, name: string, load: Load): Measure => ({
  number,
  name: `${name} ÷ payments/s`,
  of: r => r[load].perSecond / r.gateway.perSecond,
  better: 'more',
})

export const measures: readonly Measure[] = [
  {
    number: '1',
    name: 'payments/s ÷ single-row commits/s',
    of: r => r.gateway.perSecond / r.commits.perSecond,
    better: 'more',
    goal: 0.8,
    stretch: 1,
  },
  {
    number: '2',
    name: 'payments/s ÷ without storage',
    of: r => r.gateway.perSecond / r.stubbed.perSecond,
    better: 'more',
    goal: 0.8,
    stretch: 0.9,
  },
  {
    number: '3',
    name: 'processor time ÷ only HTTP and two plain rows',
    of: r => ratio(work(r.gateway), work(r.plain)),
    better: 'less',
    goal: 1.6,
  },
  {
    number: '4',
    name: 'payments/s ÷ only HTTP and two plain rows',
    of: r => r.gateway.perSecond / r.plain.perSecond,
    better: 'more',
  },
  besideDebits('5', 'two processes', 'two'),
  {
    number: '6',
    name: 'p50 of 1 connection ÷ p50 of a commit',
    of: r => r.gatewayAlone.p50 / r.commitsAlone.p50,
    better: 'less',
    goal: 4,
    stretch: 3,
  },
  {
    number: '7',
    name: 'p99 at half speed ÷ without storage',
    of: r => r.gatewayOpen.p99 / r.stubbedOpen.p99,
    better: 'less',
    goal: 3,
    stretch: 2,
  },
  besideDebits('8', 'captures/s', 'captures'),
  besideDebits('8', 'refunds/s', 'refunds'),
  besideDebits('8', 'reversals/s', 'reversals'),
  besideDebits('8', 'mixed requests/s', 'mixed'),
  { number: '13', name: 'memory at 128 connections, MB', of: r => r.gateway.megabytes, better: 'less', goal: 256 },
  { number: '13', name: 'memory at 512 connections, MB', of: r => r.gatewayWide.megabytes, better: 'less', goal: 384 },
  { number: '14', name: 'start ÷ start of an empty Node', of: r => r.start / r.emptyStart, better: 'less', goal: 8, stretch: 6 },
]

const ratio = (a: number | undefined, b: number | undefined) => a && b && a / b

/** Smallest, middle and largest of the figures that were measured. */
export function spread(values: readonly (number | undefined)[]): readonly [number, number, number] | undefined {
  const sorted = values.filter(value => value !== undefined && !Number.isNaN(value)).sort((a, b) => a! - b!) as number[]
  if (sorted.length === 0) return undefined
  const half = sorted.length / 2
  const middle = Number.isInteger(half) ? (sorted[half - 1]! + sorted[half]!) / 2 : sorted[Math.floor(half)]!
  return [sorted[0]!, middle, sorted.at(-1)!]
}
