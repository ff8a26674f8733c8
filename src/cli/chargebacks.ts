// tollgate chargebacks import: records what an acquirer's report says was charged back, and says line by line what became of it.

import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { chargebackReports } from '../clearing/chargebacks/chargebacks.ts'
import { importFile, type LineResult } from '../clearing/import.ts'
import { buildNumber } from '../platform/build.ts'
import { refuseCommand, withOpened } from './open.ts'

export default (program: Command): void => {
  program
    .command('chargebacks')
    .description('chargebacks and their reversals, from the reports of acquirers')
    .command('import <file>')
    .description('record the lines of a report; ends with 1 when one is refused. A line that was imported before changes nothing')
    .action((file: string) =>
      withOpened(async opened => {
        const tell = (at: number, result: LineResult) =>
          process.stdout.write(`line ${at}  ${result.kind}  ${result.kind === 'refused' ? result.why : result.text}\n`)
        const parts = { ...opened, build: buildNumber() }
        const counts = await importFile(parts, chargebackReports, basename(file), readText(file), tell)
        if (!counts)
          return refuseCommand(`${file} does not begin with the heading that docs/reference/chargeback-report.md shows.`)
        process.stdout.write(`${counts.recorded} recorded, ${counts.known} known already, ${counts.refused} refused.\n`)
        if (counts.refused > 0) process.exitCode = 1
      }),
    )
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    return refuseCommand(`${file} cannot be read: ${(error as Error).message}`)
  }
}
