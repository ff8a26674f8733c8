// tollgate chargebacks import: records what an acquirer's report says was charged back, and says line by line what became of it.

import type { Command } from 'commander'
import { chargebackReports, findNamed, mismatches } from '../clearing/chargebacks/chargebacks.ts'
import { noHeading } from '../clearing/handedIn.ts'
import { importFile } from '../clearing/import.ts'
import { storedNameAt } from '../clearing/storedName.ts'
import { buildNumber } from '../platform/build.ts'
import { areHeld } from '../platform/database/elsewhere.ts'
import { readCells } from '../start/cells.ts'
import { isHeldText, openCells, silentText } from './eachCell.ts'
import { collectLines, type FileLineText, lineText, refuseBroken } from './files.ts'
import { type CommandParts, readText, refuseCommand, runCommand, withOpened } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

export default (program: Command): void => {
  const imports = program
    .command('chargebacks')
    .description('chargebacks and their reversals, from the reports of acquirers')
    .command('import <file>')
    .description('record the lines of a report; ends with 1 when one is refused. A line that was imported before changes nothing')
    .option('--cells <file>', 'into the cells of this file: each line into the one that has its payment')
  reads(imports, { '': 'recorded known refused', 'lines[]': 'line outcome text' }, () => true).action(
    (file: string, options: ImportWords) => {
      if (options.cells !== undefined) return runCommand(() => importOverCells(file, options.cells!, options))
      return withOpened(async opened => {
        const { lines, tell } = collectLines(line => options.json || process.stdout.write(lineText(line)))
        const parts = { ...opened, build: buildNumber() }
        const counts = await importFile(parts, chargebackReports, storedNameAt(file), readText(file), tell)
        if (!counts) return refuseBroken(opened, { what: 'chargebacks', file, why: noHeading })
        const { recorded, known, refused } = counts
        const sums = `${recorded} recorded, ${known} known already, ${refused} refused.\n`
        show(options, { recorded, known, refused, lines }, () => sums)
        if (counts.refused > 0) process.exitCode = 1
      })
    },
  )
}

type ImportWords = ReadOptions & { readonly cells?: string }

const refuseHeading = (file: string): never => refuseCommand(`Nothing of ${file} was read: ${noHeading}.`)

/** Every cell is asked which payments it has before any records a line: one that names payments in two cells is no cell's. */
async function importOverCells(file: string, cellsFile: string, options: ReadOptions): Promise<void> {
  const text = readText(file)
  const { opened, silent: unopened } = await openCells(readCells(cellsFile))
  try {
    // By now it is known which card brands the cells have.
    const read = [...((await chargebackReports.read(text)) ?? refuseHeading(file))]
    const silent = [...unopened]
    const places: { readonly at: number; readonly id: string; readonly isHere: boolean; readonly parts: CommandParts }[] = []
    for (const { cell, parts } of opened) {
      const own: typeof places = []
      for (const { at, ...one } of read)
        if ('line' in one) own.push(...(await findNamed(parts, one.line)).map(({ id, isHere }) => ({ at, id, isHere, parts })))
      // Asked afterwards: whoever is held is nowhere by then.
      if (await areHeld(parts.database.work)) silent.push({ cell: cell.name, why: isHeldText(cell.name) })
      else places.push(...own)
    }
    const found = Map.groupBy(places, ({ at }) => at)
    const cellOf = (at: number) => found.get(at)?.find(({ isHere }) => isHere)?.parts
    const unsure = silent.length > 0 ? `, and ${silent.map(({ cell }) => cell).join(', ')} does not answer` : ''
    const refused = (line: number, why: string): FileLineText => ({ line, outcome: 'refused', text: why })
    const lines = read.flatMap((one): FileLineText[] => {
      if ('malformed' in one) return [refused(one.at, one.malformed)]
      const named = found.get(one.at) ?? []
      if (named.length === 0) return [refused(one.at, `${mismatches.noPayment}${unsure}`)]
      // What a merchant on its way has in two cells is one payment.
      if (new Set(named.map(({ id }) => id)).size > 1 || named.filter(({ isHere }) => isHere).length > 1)
        return [refused(one.at, mismatches.severalPayments)]
      if (!cellOf(one.at)) return [refused(one.at, `no cell serves its merchant in this moment: give the file again${unsure}`)]
      // A reference of an acquirer may be another payment's in a cell that cannot be asked.
      return silent.length > 0 && one.line.acquirer !== undefined ? [refused(one.at, `it is not known whose it is${unsure}`)] : []
    })
    const settled = new Set(lines.map(({ line }) => line))
    for (const { parts } of opened) {
      const own = read.filter(({ at }) => !settled.has(at) && cellOf(at) === parts)
      const told = collectLines()
      const format = { ...chargebackReports, read: () => own }
      if (own.length > 0) await importFile({ ...parts, build: buildNumber() }, format, storedNameAt(file), text, told.tell)
      lines.push(...told.lines)
    }
    lines.sort((a, b) => a.line - b.line)
    const count = (outcome: FileLineText['outcome']) => lines.filter(one => one.outcome === outcome).length
    const counts = { recorded: count('recorded'), known: count('known'), refused: count('refused') }
    show(options, { ...counts, lines, silent }, () =>
      [
        ...lines.map(lineText),
        ...silent.map(silentText),
        `${counts.recorded} recorded, ${counts.known} known already, ${counts.refused} refused.\n`,
      ].join(''),
    )
    if (counts.refused + silent.length > 0) process.exitCode = 1
  } finally {
    for (const { parts } of opened) await parts.close()
  }
}
