// All cells, opened by one command that has to look into each before it does anything.

import { errorText } from '../platform/errors.ts'
import { type Cell, type Cells, environmentOf } from '../start/cells.ts'
import { type CommandParts, open } from './open.ts'

export type SilentCell = { readonly cell: string; readonly why: string }
export type CellsOpened = {
  readonly opened: readonly { readonly cell: Cell; readonly parts: CommandParts }[]
  readonly silent: readonly SilentCell[]
}

/** Whoever opens them closes them. */
export async function openCells({ cells }: Cells): Promise<CellsOpened> {
  const tried = await Promise.all(
    cells.map(async cell =>
      open(environmentOf(cell)).then(
        parts => ({ cell, parts }),
        error => ({ cell: cell.name, why: errorText(error).replace(/\.$/, '') }),
      ),
    ),
  )
  return { opened: tried.filter(one => 'parts' in one), silent: tried.filter(one => 'why' in one) }
}

export const silentText = ({ cell, why }: SilentCell): string => `The cell ${cell} does not answer: ${why}.\n`
