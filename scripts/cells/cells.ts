// Three cells with 60 merchants behind an HAProxy on this machine, under load: one cell is killed with -9, ten merchants move, and the books of all are compared
// with what clients were told. `npm run cells` prints what became of it, with
// `-- --write` into docs/scale.md; it needs haproxy.

import { columns, pages, writeTables } from '../bench/report.ts'
import { makePlace } from '../highAvailability/programs.ts'
import { brokenIn, prove } from './prove.ts'

function countsText(all: readonly Readonly<Record<string, number>>[]): string {
  const words = [...new Set(all.flatMap(counts => Object.keys(counts)))]
  return words.map(why => `${all.reduce((sum, counts) => sum + (counts[why] ?? 0), 0)} times ${why}`).join('; ') || 'none'
}

const place = makePlace()
try {
  const proof = await prove(
    place,
    { merchantsPerCell: 20, moves: 10, thinkMilliseconds: 1000, steadySeconds: 10 },
    what => void process.stderr.write(`${what}\n`),
  )
  const { killed, moved, told, books, othersRefusedInMoves } = proof
  const pauses = moved.map(({ pauseSeconds }) => pauseSeconds).sort((a, b) => a - b)
  const seconds = (value: number | undefined) => `${value?.toFixed(1)} s`
  const rows = [
    ['Payments that clients were told are approved', `${told.approved}, ${told.perSecond} a second`],
    ['Approved in the books of all cells', String(books.approved)],
    ['Told and in no cell; there twice; findings of the doctors', `${books.missing}; ${books.keysTwice}; ${books.findings}`],
    [
      'Gateway and database of one cell killed with -9, started again after 3 s',
      `its own merchants pause ${seconds(killed.outageSeconds)} at most`,
    ],
    ['Refusals of merchants in the other two cells meanwhile', countsText([killed.othersRefused])],
    ['Taken back, because their answer was lost with the cell', String(told.takenBack)],
    [
      `${moved.length} merchants moved under load: between two approvals`,
      `${seconds(pauses[0])} to ${seconds(pauses.at(-1))}, half of them below ${seconds(pauses[pauses.length >> 1])}`,
    ],
    ['What their shops were answered meanwhile', countsText(moved.map(({ refused }) => refused))],
    ['Refusals of merchants who did not move', countsText([othersRefusedInMoves])],
  ]
  const text = `${columns([['', 'measured'], ...rows])}\n`
  process.stdout.write(text)
  if (process.argv.includes('--write')) writeTables('cells', text, pages.scale)
  const broken = brokenIn(proof)
  for (const sentence of broken) process.stderr.write(`${sentence}\n`)
  if (broken.length > 0) process.exitCode = 1
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\n`)
  process.exitCode = 1
} finally {
  await place.clear()
}
process.exit()
