// tollgate acquirers: the links to acquirers, as the gateways that run said of them last, and their days.

import type { Command } from 'commander'
import { fileSeries } from '../clearing/fileSeries.ts'
import { findTerminals } from '../connectors/cards/terminals/store.ts'
import { differenceKinds } from '../payments/cases/cases.ts'
import { countOpenCases } from '../payments/cases/store.ts'
import { findOpenReversals } from '../payments/ledger/store.ts'
import { addCaptures } from './captures.ts'
import { chosenAcquirers } from './files.ts'
import { table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'
import { addReconcile } from './reconcile.ts'
import { addRelease } from './release.ts'

type ShownLine = {
  readonly name: string
  readonly state: string
  readonly inFlight: number
  readonly breakerOpened: number
  readonly lost: number
}

export default (program: Command): void => {
  const acquirers = program.command('acquirers').description('the links to acquirers, and what both sides say of a day')
  addReconcile(acquirers)
  addCaptures(acquirers)
  addRelease(acquirers, fileSeries.captures, chosenAcquirers)
  const status = acquirers
    .command('status')
    .description(
      'lines of every process, reversals that are not acknowledged, and differences; ends with 1 when a line is down or any is open',
    )
  reads(status, {
    '': 'differences',
    'lines[]': 'acquirer terminal name state inFlight breakerOpened lost seenAt',
    'reversals[]': 'paymentId merchantId connector attempts recordedAt',
  }).action((options: ReadOptions) =>
    withOpened(async ({ database, clock }) => {
      const now = clock.real()
      const held = (await findTerminals(database.work)).filter(({ leasedUntil }) => leasedUntil !== null && leasedUntil > now)
      const lines = held.flatMap(({ acquirer, terminal, seenAt, lines }) =>
        (JSON.parse(lines ?? '[]') as ShownLine[]).map(line => ({ acquirer, terminal, seenAt, line })),
      )
      const open = await findOpenReversals(database.work, now, 1000)
      const { count: differences } = await countOpenCases(database.work, differenceKinds)
      const document = {
        differences,
        lines: lines.map(({ acquirer, terminal, seenAt, line: { name, state, inFlight, breakerOpened, lost } }) => ({
          acquirer,
          terminal,
          name,
          state,
          inFlight,
          breakerOpened,
          lost,
          seenAt: timeField(seenAt),
        })),
        reversals: open.map(({ id, merchantId, connector, attempts, recordedAt }) => ({
          paymentId: id,
          merchantId,
          connector,
          attempts,
          recordedAt: timeField(recordedAt),
        })),
      }
      show(options, document, () =>
        [
          table([
            ['acquirer', 'terminal', 'line', 'state', 'in flight', 'breaker opened', 'lost', 'seen'],
            ...lines.map(({ acquirer, terminal, seenAt, line }) => [
              acquirer,
              terminal,
              line.name,
              line.state,
              String(line.inFlight),
              String(line.breakerOpened),
              String(line.lost),
              seenAt === null ? null : timeText(seenAt),
            ]),
          ]),
          `${open.length} reversals are not acknowledged, ${differences} differences with acquirers are open.\n`,
          open.length === 0
            ? ''
            : table([
                ['payment', 'merchant', 'by', 'attempts', 'minutes old'],
                ...open.map(({ id, merchantId, connector, attempts, recordedAt }) => [
                  id,
                  merchantId,
                  connector,
                  String(attempts),
                  String(Math.floor((now - recordedAt) / 60_000)),
                ]),
              ]),
        ].join(''),
      )
      if (open.length > 0 || differences > 0 || lines.some(({ line }) => line.state === 'broken' || line.state === 'connecting'))
        process.exitCode = 1
    }),
  )
}
