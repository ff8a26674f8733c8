// tollgate acquirer-host: runs the sandbox's acquirer host alone, for a gateway whose ACQUIRERS_FILE names it.

import type { Command } from 'commander'
import { faultNames } from '../sandbox/acquirerHost/decide.ts'
import { runHost } from '../sandbox/acquirerHost/main.ts'
import { isFault, randomFaults } from '../sandbox/acquirerHost/randomFaults.ts'
import { wholeNumber } from './choices.ts'
import { refuseCommand, refuseWords, runCommand } from './open.ts'

type HostCommandOptions = {
  readonly port: number
  readonly host: string
  readonly dialect: string
  readonly ledger?: string
  readonly delay: number
  readonly faults?: string
  readonly faultPercent: number
  readonly seed?: number
  readonly hostile?: true
}

export default (program: Command): void => {
  program
    .command('acquirer-host')
    .description("runs the sandbox's acquirer host alone, until Ctrl-C")
    .option('--port <port>', 'where it listens; 0 = a free port', wholeNumber(0, 65_535), 5001)
    .option('--host <address>', 'the address it listens on', '127.0.0.1')
    .option('--ledger <file>', 'its books, kept over restarts; else they are in memory')
    .option('--dialect <name>', 'how messages are written', '1987')
    .option('--delay <milliseconds>', 'every answer takes so long', wholeNumber(0, 600_000), 0)
    .option('--faults <names>', `what goes wrong at random, separated by commas, or all: ${faultNames.join(', ')}`)
    .option('--fault-percent <number>', 'how many of a hundred messages get one of the faults', wholeNumber(0, 100), 10)
    .option(
      '--hostile',
      'forgets reversals that come before their request, answers on any line, and has all faults unless some are named',
    )
    .option('--seed <number>', 'the same seed makes the same choices', wholeNumber(0, 2 ** 32 - 1))
    .action((options: HostCommandOptions) =>
      runCommand(async () => {
        const { faults: named, faultPercent, seed, ...rest } = options
        const faults = named ?? (options.hostile ? 'all' : undefined)
        const names = faults === undefined ? [] : faults === 'all' ? faultNames : faults.split(',')
        const unknown = names.find(name => !isFault(name))
        if (unknown !== undefined) refuseWords(`There is no fault ${unknown}. There are: ${faultNames.join(', ')}, all.`)
        const chosen = names.filter(isFault)
        try {
          await runHost({
            ...rest,
            child: false,
            ...(chosen.length > 0 && { faults: randomFaults(chosen, faultPercent, seed) }),
          })
        } catch (error) {
          refuseCommand((error as Error).message) // no such dialect, the port is taken, the ledger cannot be read
        }
      }),
    )
}
