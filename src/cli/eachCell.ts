// All cells, opened by one command that has to look into each before it does anything.

import { errorText } from '../platform/errors.ts'
import { survey } from '../start/cellMap.ts'
import { type Cell, type Cells, environmentOf } from '../start/cells.ts'
import { type CommandParts, open } from './open.ts'

export type SilentCell = { readonly cell: string; readonly why: string }
export type CellsOpened = {
  readonly opened: readonly { readonly cell: Cell; readonly parts: CommandParts }[]
  readonly silent: readonly SilentCell[]
}

/** Whoever opens them closes them. A cell for which the file names the database of another one, or one that its gateways do not work on, is as one that does not answer. */
export async function openCells(given: Cells): Promise<CellsOpened> {
  const surveyed = await survey(given)
  const tried = await Promise.all(
    given.cells.map(async cell => {
      const found = surveyed.get(cell.name)
      if (typeof found === 'string') return { cell: cell.name, why: found.replace(/\.$/, '') }
      return open(environmentOf(cell)).then(
        parts => ({ cell, parts }),
        error => ({ cell: cell.name, why: errorText(error).replace(/\.$/, '') }),
      )
    }),
  )
  return { opened: tried.filter(one => 'parts' in one), silent: tried.filter(one => 'why' in one) }
}

export const silentText = ({ cell, why }: SilentCell): string => `The cell ${cell} does not answer: ${why}.\n`
