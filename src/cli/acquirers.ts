// tollgate acquirers: the links to acquirers, as the gateways that run said of them last.

import type { Command } from 'commander'
import { findTerminals } from '../connectors/cards/terminals/store.ts'
import { findOpenReversals } from '../payments/ledger/store.ts'
import { table, timeText, withOpened } from './open.ts'

type ShownLine = {
  readonly name: string
  readonly state: string
  readonly inFlight: number
  readonly breakerOpened: number
  readonly lost: number
}

export default (program: Command): void => {
  program
    .command('acquirers')
    .description('the links to acquirers')
    .command('status')
    .description(
      'lines of every process, and reversals that are not acknowledged; ends with 1 when a line is down or a reversal is open',
    )
    .action(() =>
      withOpened(async ({ database, clock }) => {
        const now = clock.real()
        const held = (await findTerminals(database.work)).filter(({ leasedUntil }) => leasedUntil !== null && leasedUntil > now)
        const lines = held.flatMap(({ acquirer, terminal, seenAt, lines }) =>
          (JSON.parse(lines ?? '[]') as ShownLine[]).map(line => ({ acquirer, terminal, seenAt, line })),
        )
        const open = await findOpenReversals(database.work, now, 1000)
        process.stdout.write(
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
        )
        process.stdout.write(`${open.length} reversals are not acknowledged.\n`)
        if (open.length > 0)
          process.stdout.write(
            table([
              ['payment', 'merchant', 'by', 'attempts', 'minutes old'],
              ...open.map(({ id, merchantId, connector, attempts, recordedAt }) => [
                id,
                merchantId,
                connector,
                String(attempts),
                String(Math.floor((now - recordedAt) / 60_000)),
              ]),
            ]),
          )
        if (open.length > 0 || lines.some(({ line }) => line.state === 'broken' || line.state === 'connecting'))
          process.exitCode = 1
      }),
    )
}
