// tollgate doctor: adds the journal up again, compares it with what the rules compute from the operations, and says where they differ.

import type { Command } from 'commander'
import { examine } from '../payments/ledger/doctor.ts'
import { withOpened } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

/** A payment without an answer that is older than this must be in somebody's hands. */
const forgottenMinutes = 10

export default (program: Command): void => {
  const doctor = program.command('doctor').description('compare the journal with the operations; ends with 1 when they differ')
  reads(doctor, { '': 'payments chains lines findings' }).action((options: ReadOptions) =>
    withOpened(async ({ database, clock }) => {
      const { payments, lines, chains, findings } = await examine(database.reports, clock.real() - forgottenMinutes * 60_000)
      const end = findings.length === 0 ? 'The books agree with the operations.' : `${findings.length} findings.`
      show(options, { payments, chains, lines, findings }, () =>
        [`${payments} payments in ${chains} chains, ${lines} journal lines.`, ...findings, end].map(line => `${line}\n`).join(''),
      )
      if (findings.length > 0) process.exitCode = 1
    }),
  )
}
