// tollgate merchants: a merchant goes from one cell to another while it is in use, and is forgotten later where it was.

import type { Command } from 'commander'
import { readEntities } from '../merchants/store.ts'
import { OperatorError } from '../platform/errors.ts'
import { readMap, renewMap } from '../start/cellMap.ts'
import { type Cell, type Cells, cellOfName, readCells } from '../start/cells.ts'
import { mayServe } from '../start/moves/claims.ts'
import { forgetMerchant } from '../start/moves/forget.ts'
import { giveUpMove, type MoveSide, moveMerchant } from '../start/moves/move.ts'
import { listMoves, type Move, readMove } from '../start/moves/store.ts'
import { wholeNumber } from './choices.ts'
import { openServingCells, silentText } from './eachCell.ts'
import {
  type CommandParts,
  looksLikeId,
  readSecret,
  refuseCommand,
  refuseWords,
  runCommand,
  table,
  untilSignal,
  withOpened,
} from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type MoveOptions = {
  readonly cells?: string
  readonly to?: string
  readonly toFile?: string
  readonly back?: true
  readonly patience: number
  readonly refusal: number
}

const toFileOption = [
  '--to-file <path>',
  'in the place of --to, an address with its password: a file that holds it, or - for standard input',
] as const

/** What of others is in several cells keeps no merchant from moving. */
async function flipTo(cells: Cells, merchantId: string, to: string): Promise<void> {
  const { wrong } = await renewMap(cells)
  if (wrong.length > 0 && readMap(cells.map).get(merchantId) !== to) throw new OperatorError(wrong.join('\n'))
  for (const sentence of wrong) process.stderr.write(`${sentence}\n`)
}

export default (program: Command): void => {
  const merchants = program.command('merchants').description('merchants and the cells that serve them')
  merchants
    .command('move <merchantId>')
    .description('move a merchant to another cell while it is in use; given again, it goes on where it stopped')
    .option('--cells <file>', 'the file that names the cells; without it the merchant is in the database of this process')
    .option(
      '--to <cell>',
      'the cell that it goes to: a name of the file, or without one the address of its database, which holds no password',
    )
    .option(...toFileOption)
    .option('--back', 'give the move up, as long as the merchant was not handed over')
    .option(
      '--patience <seconds>',
      'wait so long for requests that are under way, once new ones are refused',
      wholeNumber(0, 300),
      10,
    )
    .option('--refusal <seconds>', 'refuse requests for no longer: then it is served where it was', wholeNumber(1, 3600), 120)
    .action((merchantId: string, options: MoveOptions) =>
      runCommand(async () => {
        checkId(merchantId)
        const tell = (_: string, what: string) => void process.stdout.write(`${what}\n`)
        if (options.back)
          return withEnds(merchantId, options, 'leaving', ({ source, target }) =>
            giveUpMove({ source, target, merchantId, tell }),
          )
        if (options.to === undefined && options.toFile === undefined)
          refuseWords('--to must name the cell that the merchant goes to.')
        await withEnds(merchantId, options, 'leaving', async ({ source, target }) => {
          const { patience: patienceSeconds, refusal: refusalSeconds } = options
          const parts = { source, target: target!, merchantId, patienceSeconds, refusalSeconds, tell }
          const flip =
            options.cells === undefined ? undefined : async () => flipTo(readCells(options.cells!), merchantId, options.to!)
          const { rows, refusedSeconds } = await untilSignal(interrupted =>
            moveMerchant({ ...parts, interrupted, ...(flip && { flip }) }),
          )
          const refused = refusedSeconds === undefined ? '' : `, requests were refused for ${refusedSeconds.toFixed(1)} s`
          process.stdout.write(`The merchant has moved: ${rows} rows${refused}.\n`)
        })
      }),
    )

  reads(
    merchants
      .command('moves')
      .description('the moves that this cell has seen: merchants on their way in or out, and those who went'),
    { 'moves[]': 'merchantId direction state here other changedAt' },
  ).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const moves = (await listMoves(database.work)).map(
        ({ merchantId, direction, state, here, other, changedAt, putBackAt }) => ({
          ...{ merchantId, direction, state: putBackAt === null ? state : 'put back', here, other },
          changedAt: timeField(changedAt),
        }),
      )
      show(options, { moves }, () =>
        table([
          ['merchant', 'direction', 'state', 'served here', 'other cell', 'since'],
          ...moves.map(one => [one.merchantId, one.direction, one.state, one.here ? 'yes' : 'no', one.other, one.changedAt]),
        ]),
      )
    }),
  )

  merchants
    .command('forget <merchantId>')
    .description(
      'take away what a merchant who moved has left in its old cell, or what a move that was given up has copied, in small steps beside everything else',
    )
    .option('--cells <file>', 'the file that names the cells; without it the database of this process is the old cell')
    .option(
      '--to <cell>',
      'the cell that it went to, where no file names it: the address of its database, which holds no password',
    )
    .option(...toFileOption)
    .action((merchantId: string, options: MoveOptions) =>
      runCommand(async () => {
        checkId(merchantId)
        await withEnds(merchantId, options, 'left', async ({ source, target }) => {
          const rows = await forgetMerchant(source, target!, merchantId)
          process.stdout.write(`${source.name} has forgotten the merchant: ${rows} rows.\n`)
        })
      }),
    )
}

function checkId(merchantId: string): void {
  if (!looksLikeId(merchantId)) refuseWords('A merchant is named by the 32 hex characters that `tollgate list` shows.')
}

type OpenCell = CommandParts & { readonly name: string }
type OpenEnds = { readonly source: MoveSide; readonly target: MoveSide | undefined }

/** Opens the cell where the merchant is, or has been, and the other one; `target` is undefined where a move is given up and it cannot be opened. */
async function withEnds(
  merchantId: string,
  options: Pick<MoveOptions, 'cells' | 'to' | 'toFile' | 'back'>,
  which: 'leaving' | 'left',
  work: (ends: OpenEnds) => Promise<void>,
): Promise<void> {
  const to = placeOf(options)
  const cells = options.cells === undefined ? withoutFile(to) : readCells(options.cells)
  const wanted = to === undefined || options.cells !== undefined ? to : nameOf(to)
  if (wanted !== undefined) cellOfName(cells, wanted)
  const { opened: answering, silent } = await openServingCells(cells)
  const opened: readonly OpenCell[] = answering.map(({ cell, parts }) => ({ ...parts, name: cell.name }))
  try {
    const found = await movesIn(opened, merchantId)
    const source = which === 'left' ? leftBehind(found) : sourceOf(found, wanted)
    if (!source)
      throw new OperatorError(
        [`No cell that answers ${absence[which]} ${merchantId}.`, ...silent.map(silentText)].join('\n').trim(),
      )
    const move = found.find(({ one }) => one === source)?.move
    // What a move has copied that was given up is forgotten where another cell serves the merchant, wherever that is by now.
    const isCopy = which === 'left' && move?.direction === 'arriving'
    const serving = isCopy ? found.find(one => one.one !== source && isServing(one))?.one.name : undefined
    const name = which === 'left' || options.back ? (serving ?? move?.other) : wanted
    const target = opened.find(one => one.name === name)
    if (!target && !options.back) {
      const away = silent.find(({ cell }) => cell === name)
      refuseCommand(away ? silentText(away).trim() : `${name}: the cells file does not name it`)
    }
    await work({ source, target })
  } finally {
    await Promise.all(opened.map(one => one.close()))
  }
}

const absence = { leaving: 'has the merchant', left: 'holds something that was left behind by the merchant' } as const

type FoundMove = { readonly one: OpenCell; readonly move: Move | undefined; readonly isKnown: boolean }

const movesIn = (opened: readonly OpenCell[], merchantId: string): Promise<FoundMove[]> =>
  Promise.all(
    opened.map(async one => {
      const move = await readMove(one.database.work, merchantId)
      const isKnown = (await readEntities(one.database.work, [merchantId])).length > 0
      return { one, move, isKnown }
    }),
  )

const isServing = ({ move, isKnown }: FoundMove): boolean => isKnown && mayServe(move)
const hasLeft = ({ move }: FoundMove): boolean => move?.direction === 'leaving' && ['moved', 'forgetting'].includes(move.state)
const hasCopy = ({ move }: FoundMove): boolean =>
  move?.direction === 'arriving' && ['arriving', 'forgetting'].includes(move.state)

/** What the merchant left comes before what a move that was given up has copied. */
const leftBehind = (found: readonly FoundMove[]): OpenCell | undefined => (found.find(hasLeft) ?? found.find(hasCopy))?.one

function sourceOf(found: readonly FoundMove[], to: string | undefined): OpenCell | undefined {
  // The one whose move was not told to its end goes on with it; otherwise the one that serves the merchant.
  const onItsWay = found.find(
    ({ move }) => move?.direction === 'leaving' && !['forgotten', 'stayed', 'moved', 'forgetting'].includes(move.state),
  )
  const serving = found.find(one => one.one.name !== to && isServing(one))
  return (onItsWay ?? serving ?? found.find(one => hasLeft(one) && one.move?.other === to))?.one
}

/** Where it goes or went: a name of the file of the cells, or the address of a database. */
function placeOf({ cells, to, toFile }: Pick<MoveOptions, 'cells' | 'to' | 'toFile'>): string | undefined {
  if (to !== undefined && /^[a-z]+:\/\/[^@/]*:[^@]*@|password=/i.test(to))
    refuseWords(
      '--to holds a password, which everybody on this machine can see: change it, put the address into a file that nobody else may read, and name that with --to-file (or - for standard input).',
    )
  if (toFile === undefined) return to
  if (to !== undefined || cells !== undefined)
    refuseWords('--to-file holds the address of the other database where no file names the cells: give neither --to nor --cells.')
  return readSecret(toFile, '--to-file')
}

/** The database of this process, and the one of an address, which is named without its password. */
function withoutFile(to: string | undefined): Cells {
  if (to === undefined || !URL.canParse(to))
    return refuseWords('--cells must name the file of the cells, or --to (or --to-file) the address of the other database.')
  const cell = (name: string, url: string): Cell => ({ name, environment: { DATABASE_URL: url }, gateways: [] })
  return { map: '', cells: [cell('this cell', process.env.DATABASE_URL ?? ''), cell(nameOf(to), to)] }
}

const nameOf = (to: string): string => `${new URL(to).host}${new URL(to).pathname}`
