// tollgate chargebacks import: records what an acquirer's report says was charged back, and says line by line what became of it.

import { basename } from 'node:path'
import type { Command } from 'commander'
import { chargebackReports } from '../clearing/chargebacks/chargebacks.ts'
import { importFile } from '../clearing/import.ts'
import { buildNumber } from '../platform/build.ts'
import { collectLines, lineText } from './files.ts'
import { readText, refuseCommand, withOpened } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

export default (program: Command): void => {
  const imports = program
    .command('chargebacks')
    .description('chargebacks and their reversals, from the reports of acquirers')
    .command('import <file>')
    .description('record the lines of a report; ends with 1 when one is refused. A line that was imported before changes nothing')
  reads(imports, { '': 'recorded known refused', 'lines[]': 'line outcome text' }).action((file: string, options: ReadOptions) =>
    withOpened(async opened => {
      const { lines, tell } = collectLines(line => options.json || process.stdout.write(lineText(line)))
      const parts = { ...opened, build: buildNumber() }
      const counts = await importFile(parts, chargebackReports, basename(file), readText(file), tell)
      if (!counts) return refuseCommand(`${file} does not begin with the heading that docs/reference/chargeback-report.md shows.`)
      const { recorded, known, refused } = counts
      const sums = `${recorded} recorded, ${known} known already, ${refused} refused.\n`
      show(options, { recorded, known, refused, lines }, () => sums)
      if (counts.refused > 0) process.exitCode = 1
    }),
  )
}
