// tollgate chargebacks import: records what an acquirer's report says was charged back, and says line by line what became of it.

import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { record } from '../audit/chain.ts'
import { readReport } from '../clearing/chargebackReport.ts'
import { mismatches, recordChargeback } from '../clearing/chargebacks.ts'
import { buildNumber } from '../platform/build.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { refuseCommand, withOpened } from './open.ts'

export default (program: Command): void => {
  program
    .command('chargebacks')
    .description('chargebacks and their reversals, from the reports of acquirers')
    .command('import <file>')
    .description('record the lines of a report; ends with 1 when one is refused. A line that was imported before changes nothing')
    .action((file: string) =>
      withOpened(async opened => {
        const lines = readReport(readText(file))
        if (!lines)
          return refuseCommand(`${file} does not begin with the heading that docs/reference/chargeback-report.md shows.`)
        const counts = { recorded: 0, known: 0, refused: 0 }
        const tell = (at: number, kind: keyof typeof counts, text: string) => {
          counts[kind]++
          process.stdout.write(`line ${at}  ${kind}  ${text}\n`)
        }
        for (const read of lines) {
          if ('malformed' in read) {
            tell(read.at, 'refused', read.malformed)
            continue
          }
          const said = await recordChargeback({ ...opened, build: buildNumber() }, read.line)
          if (said.kind === 'refused') tell(read.at, 'refused', mismatches[said.why])
          else if (said.kind === 'known') tell(read.at, 'known', said.paymentId)
          else tell(read.at, 'recorded', `${said.payment.type} ${said.payment.id} of ${said.payment.referenceId}`)
        }
        await inTransaction(opened.database.work, db =>
          record(db, opened, [{ action: 'chargebacksImported', subject: basename(file), details: counts }]),
        )
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
