// All cells, opened by one command that has to look into each before it does anything.

import { errorText } from '../platform/errors.ts'
import { type Cell, type Cells, environmentOf } from '../start/cells.ts'
import { databaseOfCell, whyShared } from '../start/gatewayDatabase.ts'
import { type CommandParts, open, refuseCommand } from './open.ts'

export type SilentCell = { readonly cell: string; readonly why: string }
export type CellsOpened = {
  readonly opened: readonly { readonly cell: Cell; readonly parts: CommandParts }[]
  readonly silent: readonly SilentCell[]
}

/** Whoever opens them closes them. A cell for which the file names the database of another one, one that its gateways do not work on, or a standby, is as one that does not answer. */
export const openCells = (cells: Cells): Promise<CellsOpened> => openEach(cells, false)

/**
 * The same where merchants change hands: a cell of which no gateway says that it works on the database of the file is as one that does not answer, too. What the file
 * names may be a copy, and a merchant who goes to a cell without gateways is served by nobody.
 */
export const openServingCells = (cells: Cells): Promise<CellsOpened> => openEach(cells, true)

async function openEach({ cells }: Cells, isServing: boolean): Promise<CellsOpened> {
  const tried = await Promise.all(
    cells.map(cell => openCell(cell, isServing).catch(error => ({ cell: cell.name, why: errorText(error).replace(/\.$/, '') }))),
  )
  const databases = new Map(tried.flatMap(one => ('parts' in one ? [[one.cell.name, one.database]] : [])))
  const judged = await Promise.all(
    tried.map(async one => {
      const why = 'parts' in one ? whyShared(one.cell.name, databases) : undefined
      if (!('parts' in one) || why === undefined) return one
      await one.parts.close()
      return { cell: one.cell.name, why }
    }),
  )
  return { opened: judged.filter(one => 'parts' in one), silent: judged.filter(one => 'why' in one) }
}

async function openCell(cell: Cell, isServing: boolean): Promise<{ cell: Cell; parts: CommandParts; database?: string }> {
  let database: string | undefined
  const parts = await open(environmentOf(cell), async db => {
    const its = await databaseOfCell(db, cell.gateways)
    if ('why' in its) refuseCommand(its.why)
    if (isServing && its.unsure !== undefined) refuseCommand(its.unsure)
    database = its.database
  })
  return { cell, parts, ...(database !== undefined && { database }) }
}

/** Why a cell does not answer that can be opened, where it matters whose payments are there. */
export const isHeldText = (cell: string): string =>
  `it was put back, and its merchants are held until \`tollgate cells restored --cells FILE --cell ${cell}\` has asked the others`

export const silentText = ({ cell, why }: SilentCell): string => `The cell ${cell} does not answer: ${why}.\n`
