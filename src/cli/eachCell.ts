// All cells, opened by one command that has to look into each before it does anything.

import { errorText } from '../platform/errors.ts'
import { type Cell, type Cells, environmentOf } from '../start/cells.ts'
import { databaseOfCell, whyShared } from '../start/gatewayDatabase.ts'
import { type CommandParts, open } from './open.ts'

export type SilentCell = { readonly cell: string; readonly why: string }
export type CellsOpened = {
  readonly opened: readonly { readonly cell: Cell; readonly parts: CommandParts }[]
  readonly silent: readonly SilentCell[]
}

/** Whoever opens them closes them. A cell for which the file names the database of another one, or one that its gateways do not work on, is as one that does not answer. */
export async function openCells({ cells }: Cells): Promise<CellsOpened> {
  const tried = await Promise.all(
    cells.map(cell => openCell(cell).catch(error => ({ cell: cell.name, why: errorText(error).replace(/\.$/, '') }))),
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

async function openCell(cell: Cell): Promise<{ cell: Cell; parts: CommandParts; database?: string } | SilentCell> {
  const parts = await open(environmentOf(cell))
  const its = await databaseOfCell(parts.database.work, cell.gateways).catch(async error => {
    await parts.close()
    throw error
  })
  if (!('why' in its)) return { cell, parts, ...its }
  await parts.close()
  return { cell: cell.name, why: its.why }
}

export const silentText = ({ cell, why }: SilentCell): string => `The cell ${cell} does not answer: ${why}.\n`
