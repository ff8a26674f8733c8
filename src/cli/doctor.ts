// tollgate doctor: adds the journal up again, compares it with what the rules compute from the operations, and says where they differ.

import type { Command } from 'commander'
import { examine } from '../payments/ledger/doctor.ts'
import { withOpened } from './open.ts'

/** A payment without an answer that is older than this must be in somebody's hands. */
const forgottenMinutes = 10

export default (program: Command): void => {
  program
    .command('doctor')
    .description('compare the journal with the operations; ends with 1 when they differ')
    .action(() =>
      withOpened(async ({ database, clock }) => {
        const { payments, lines, chains, findings } = await examine(database.reports, clock.real() - forgottenMinutes * 60_000)
        process.stdout.write(`${payments} payments in ${chains} chains, ${lines} journal lines.\n`)
        for (const finding of findings) process.stdout.write(`${finding}\n`)
        process.stdout.write(findings.length === 0 ? 'The books agree with the operations.\n' : `${findings.length} findings.\n`)
        if (findings.length > 0) process.exitCode = 1
      }),
    )
}
