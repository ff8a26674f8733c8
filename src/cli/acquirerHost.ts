// tollgate acquirer-host: runs the sandbox's acquirer host alone, for a gateway whose ACQUIRERS_FILE names it.

import type { Command } from 'commander'
import type { AcquirerOptions } from '../connectors/cards/acquirer.ts'
import { exampleDialect } from '../connectors/cards/iso8583/dialects.ts'
import { macKeyBytes } from '../connectors/cards/iso8583/mac.ts'
import { type ExampleName, exampleNames } from '../connectors/cards/iso8583/profile.ts'
import { systemClock } from '../platform/clock.ts'
import { type CaptureFault, captureFaults, takeCaptures } from '../sandbox/acquirerHost/captures.ts'
import { faultNames } from '../sandbox/acquirerHost/decide.ts'
import { openLedger } from '../sandbox/acquirerHost/ledger.ts'
import { type HostArguments, runHost } from '../sandbox/acquirerHost/main.ts'
import { isFault, randomFaults } from '../sandbox/acquirerHost/randomFaults.ts'
import { hostBookings, type SettlementFault, settlementFaults, settlementText } from '../sandbox/acquirerHost/settlement.ts'
import { readAcquirers, sandboxAcquirerId } from '../start/acquirers.ts'
import { parseKey, readKeyFile } from '../vault/keys.ts'
import { choice, wholeNumber } from './choices.ts'
import { readDate, readText, refuseCommand, refuseWords, runCommand } from './open.ts'

type HostCommandOptions = {
  readonly port: number
  readonly host: string
  readonly profile: string
  readonly macKey?: string
  readonly acquirers?: string
  readonly acquirer?: string
  readonly ledger?: string
  readonly delay: number
  readonly faults?: string
  readonly faultPercent: number
  readonly seed?: number
  readonly hostile?: true
  readonly settlement?: string
  readonly settlementFault?: SettlementFault
  readonly captures?: string
  readonly captureFault?: CaptureFault
}

export default (program: Command): void => {
  program
    .command('acquirer-host')
    .description("runs the sandbox's acquirer host alone, until Ctrl-C")
    .option('--port <port>', 'where it listens; 0 = a free port', wholeNumber(0, 65_535), 5001)
    .option('--host <address>', 'the address it listens on', '127.0.0.1')
    .option('--ledger <file>', 'its books, kept over restarts; else they are in memory')
    .option('--profile <name>', `how it speaks, one of ${exampleNames.map(name => `"${name}"`).join(', ')}`, '1987')
    .option('--mac-key <file>', 'the key of that profile, where it has a mac: 32 hex characters')
    .option('--acquirers <file>', 'speaks the profile of an acquirer of this file instead, with its key')
    .option('--acquirer <name>', 'which one; else the first')
    .option('--delay <milliseconds>', 'every answer takes so long', wholeNumber(0, 600_000), 0)
    .option('--faults <names>', `what goes wrong at random, separated by commas, or all: ${faultNames.join(', ')}`)
    .option('--fault-percent <number>', 'how many of a hundred messages get one of the faults', wholeNumber(0, 100), 10)
    .option(
      '--hostile',
      'forgets reversals that come before their request, answers on any line, and has all faults unless some are named',
    )
    .option('--settlement <day>', 'writes the settlement file of a day of its ledger to standard output, and ends')
    .addOption(choice('--settlement-fault <name>', 'what is wrong with its days and their files', settlementFaults))
    .option('--captures <file>', 'books a capture file in its ledger, writes what it says of it to standard output, and ends')
    .addOption(choice('--capture-fault <name>', 'what is wrong with what it says of a capture file', captureFaults))
    .option('--seed <number>', 'the same seed makes the same choices', wholeNumber(0, 2 ** 32 - 1))
    .action((options: HostCommandOptions) =>
      runCommand(async () => {
        const { faults: named, faultPercent, seed, profile, macKey, acquirers, acquirer, settlement, captures, ...rest } = options
        if (settlement !== undefined) return writeSettlement(options, settlement)
        if (captures !== undefined) return answerCaptures(options, captures)
        const faults = named ?? (options.hostile ? 'all' : undefined)
        const names = faults === undefined ? [] : faults === 'all' ? faultNames : faults.split(',')
        const unknown = names.find(name => !isFault(name))
        if (unknown !== undefined) refuseWords(`There is no fault ${unknown}. There are: ${faultNames.join(', ')}, all.`)
        const chosen = names.filter(isFault)
        const spoken = acquirers === undefined ? exampleOf(profile, macKey) : acquirerOf(acquirers, acquirer)
        try {
          await runHost({
            ...rest,
            ...spoken,
            child: false,
            ...(chosen.length > 0 && { faults: randomFaults(chosen, faultPercent, seed) }),
          })
        } catch (error) {
          refuseCommand((error as Error).message) // the port is taken, the ledger cannot be read
        }
      }),
    )
}

function writeSettlement({ profile, acquirers, acquirer, ledger, settlementFault }: HostCommandOptions, day: string): void {
  readDate('--settlement', day)
  if (ledger === undefined) refuseWords('--settlement needs --ledger.')
  const { dialect, account } =
    acquirers === undefined
      ? { dialect: exampleDialect(exampleNamed(profile)), account: undefined }
      : acquirerOf(acquirers, acquirer)
  const bookings = hostBookings(openLedger(ledger), dialect.reconciliation, systemClock.real(), settlementFault)
  const layout = dialect.settlementFile?.layout ?? 'csv'
  process.stdout.write(settlementText(bookings, day, account?.acquirerId ?? sandboxAcquirerId, layout, settlementFault))
}

function answerCaptures({ profile, acquirers, acquirer, ledger, captureFault }: HostCommandOptions, file: string): void {
  if (ledger === undefined) refuseWords('--captures needs --ledger.')
  const { dialect, account } =
    acquirers === undefined
      ? { dialect: exampleDialect(exampleNamed(profile)), account: undefined }
      : acquirerOf(acquirers, acquirer)
  const acquirerId = account?.acquirerId ?? sandboxAcquirerId
  try {
    process.stdout.write(takeCaptures(openLedger(ledger), readText(file), acquirerId, dialect.captures.separator, captureFault))
  } catch (error) {
    refuseCommand(`${file}: ${(error as Error).message}.`)
  }
}

const exampleNamed = (name: string): ExampleName =>
  exampleNames.find(one => one === name) ?? refuseCommand(`There is no profile ${name}. There are: ${exampleNames.join(', ')}.`)

type Spoken = Pick<HostArguments, 'dialect' | 'macKey'>

function exampleOf(name: string, macKey: string | undefined): Spoken {
  const dialect = exampleDialect(exampleNamed(name))
  if (!dialect.mac) return { dialect }
  if (macKey === undefined) return refuseCommand(`The profile ${name} has a mac: give its key with --mac-key.`)
  return { dialect, macKey: parseKey(readKeyFile(macKey, '--mac-key'), '--mac-key', macKeyBytes) }
}

function acquirerOf(path: string, name: string | undefined): AcquirerOptions {
  const found = readAcquirers(path).find(one => name === undefined || one.name === name)
  return found ?? refuseCommand(`${path} has no acquirer ${name}.`)
}
