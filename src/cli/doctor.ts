// tollgate doctor: adds the journal up again, compares it with what the rules compute from the operations, and says where they differ.

import type { Command } from 'commander'
import { examineArchives } from '../archive/archive.ts'
import { examine } from '../payments/ledger/doctor.ts'
import { lookAt } from '../platform/database/following.ts'
import { lagOf } from '../platform/database/reporting.ts'
import { rightsOfReader } from '../start/reporting/roles.ts'
import { withOpened } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

/** A payment without an answer that is older than this must be in somebody's hands. */
const forgottenMinutes = 10

export default (program: Command): void => {
  const doctor = program.command('doctor').description('compare the journal with the operations; ends with 1 when they differ')
  reads(doctor, { '': 'payments chains lines findings reporting', 'sources[]': 'source secondsBehind' }).action(
    (options: ReadOptions) =>
      withOpened(async ({ database, clock }) => {
        const examined = await examine(database.reports, clock.real() - forgottenMinutes * 60_000)
        const { payments, lines, chains } = examined
        const findings = [...examined.findings, ...(await examineArchives(database.reports))]
        const { follows } = database.reporting
        const standing = follows && (await lookAt(database.work, follows, clock))
        const beyond = follows && /^(ready|behind)$/.test(standing!.state) ? await rightsOfReader(follows.pool) : []
        const sources = (standing?.sources ?? []).map(one => ({ source: one.source, secondsBehind: lagOf(one, clock.real()) }))
        const reporting = standing?.state ?? null
        // It holds copies alone: what is wrong with it is no finding.
        const told = standing
          ? [`The reporting database is ${standing.state}${standing.why === undefined ? '' : ` (${standing.why})`}.`]
          : []
        const behind = sources.map(one => `${one.source}: ${one.secondsBehind} s behind.`)
        const end = findings.length === 0 ? 'The books agree with the operations.' : `${findings.length} findings.`
        show(options, { payments, chains, lines, findings, reporting, sources }, () =>
          [`${payments} payments in ${chains} chains, ${lines} journal lines.`, ...told, ...beyond, ...behind, ...findings, end]
            .map(line => `${line}\n`)
            .join(''),
        )
        if (findings.length > 0) process.exitCode = 1
      }),
  )
}
