// Does it get slower as payments pile up? `npm run bench:growth` asks the product's own statements of three databases in turns: one as good as empty, which has
// one day of 20,000 payments so that there is something to find, one of a million and one of five million payments.
//   --small N, --large N   other sizes        --rounds N, --seconds N (of each measure on each database)
//   --write                writes the table into docs/performance.md
// The payments are made by the database, a portion at a time: this process does not grow with them. All that is made is gone afterwards.

import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { startEmbedded } from '../../src/platform/database/embedded.ts'
import { claimFolder } from '../../src/platform/database/folder.ts'
import { makeDataFolder } from './gateway.ts'
import { fill, perDay } from './growthData.ts'
import { type Grown, type GrowthMeasure, growthMeasures, missing, openGrown } from './growthMeasures.ts'
import { spread } from './measures.ts'
import { columns, writeTables } from './report.ts'

const { values: options } = parseArgs({
  options: {
    small: { type: 'string', default: '1000000' },
    large: { type: 'string', default: '5000000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
  },
})
const [small, large, rounds, seconds] = [options.small, options.large, options.rounds, options.seconds].map(Number) as [
  number,
  number,
  number,
  number,
]
const sizes = [perDay, small, large]
const goal = 0.95
const gigabyte = 2 ** 30
/** What a payment takes on the disk with all its rows and indexes, and what the log of writing takes besides. */
const [bytesEach, logBytes] = [5500, 4 * gigabyte]

let stopped = false
process.once('SIGINT', () => {
  stopped = true // what was made is removed
})
const opened: Grown[] = []
const cleanUps: (() => unknown)[] = []
try {
  refuseLittleSpace()
  for (const size of sizes) opened.push(await grow(size))
  const text = table(await measureAll())
  say(`\n${text}`)
  const wrong = (await Promise.all(opened.map(missing))).flat()
  for (const sentence of wrong) say(`WRONG: ${sentence}`)
  if (wrong.length > 0) process.exitCode = 1
  else if (options.write) writeTables('growth', text)
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp()
}

function refuseLittleSpace(): void {
  const { bavail, bsize } = statfsSync(tmpdir())
  const [needed, free] = [sizes.reduce((sum, size) => sum + size * bytesEach + logBytes, 0), bavail * bsize]
  const [need, have] = [needed, free].map(bytes => `${(bytes / gigabyte).toFixed(0)} GB`)
  say(`${sizes.join(', ')} payments take up to ${need} in ${tmpdir()}, where ${have} are free.`)
  if (free < needed) throw new Error('There is not enough space. TMPDIR names another place, --small and --large make it less.')
}

/** Each size has a server of its own, as a gateway of that size has. */
async function grow(size: number): Promise<Grown> {
  const began = performance.now()
  const folder = makeDataFolder()
  cleanUps.push(() => folder.remove())
  const claim = claimFolder(folder.path)
  cleanUps.push(() => claim.release())
  const server = await startEmbedded({ dataDir: folder.path, say: () => {} })
  cleanUps.push(() => server.stop())
  const { host, port, user, database } = server
  const connection: pg.PoolConfig = { host, port, user, database, ssl: false }
  const bytes = await fill(connection, size, payments => {
    goOn()
    if (payments % 500_000 === 0) say(`${payments} of ${size} payments`)
  })
  const took = Math.round((performance.now() - began) / 1000)
  say(`${size} payments made in ${took} s: ${(bytes / gigabyte).toFixed(2)} GB, ${Math.round(bytes / size)} bytes each`)
  const grown = openGrown(connection, size)
  cleanUps.push(() => grown.database.close())
  return grown
}

/** In the order of the sizes. */
type Speeds = readonly number[]

/** The first round only warms up: statements are prepared, and the pages that a checkpoint left are logged whole once. */
async function measureAll(): Promise<Map<GrowthMeasure, Speeds[]>> {
  const found = new Map(growthMeasures.map(measure => [measure, [] as Speeds[]]))
  for (let round = 0; round <= rounds; round++) {
    for (const measure of growthMeasures) {
      // Every other round the other way round, so that to be the first is nobody's advantage.
      const speeds = new Map<Grown, number>()
      for (const grown of round % 2 === 0 ? opened : opened.toReversed()) speeds.set(grown, await speedOf(measure, grown))
      if (round > 0) found.get(measure)!.push(opened.map(grown => speeds.get(grown)!))
    }
    say(round === 0 ? 'warm' : `round ${round} of ${rounds}`)
  }
  return found
}

async function speedOf({ together, run }: GrowthMeasure, grown: Grown): Promise<number> {
  goOn()
  let done = 0
  const began = performance.now()
  const end = began + seconds * 1000
  await Promise.all(
    Array.from({ length: together }, async () => {
      for (let more = 1; more > 0 && performance.now() < end; done += more) more = await run(grown)
    }),
  )
  return (done * 1000) / (performance.now() - began)
}

function table(found: ReadonlyMap<GrowthMeasure, readonly Speeds[]>): string {
  const lines = [...found].map(([{ name }, speeds]) => {
    const middles = sizes.map((_, at) => spread(speeds.map(one => one[at]))![1])
    const ratios = sizes.slice(1).map((_, at) => spread(speeds.map(one => one[at + 1]! / one[0]!))!)
    const shown = ratios.map(([least, middle, most]) => `${middle.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`)
    return [
      name,
      ...middles.map(value => value.toFixed(0)),
      ...shown,
      ratios.every(([, middle]) => middle >= goal) ? 'yes' : 'no',
    ]
  })
  const compared = sizes.slice(1).map(size => `${size} ÷ ${sizes[0]}`)
  return `${rounds} rounds, medians; of ratios also the least and the most.

${columns([['a second, by stored payments', ...sizes.map(String), ...compared, `≥ ${goal}`], ...lines])}

The process that asks had ${Math.round(process.resourceUsage().maxRSS / 1024)} MB at most.
`
}

function goOn(): void {
  if (stopped) throw new Error('Stopped; what was made is removed.')
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
