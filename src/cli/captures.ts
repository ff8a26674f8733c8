// tollgate acquirers captures: capture files, what waits for the next one, and what acquirers say of them.

import type { Command } from 'commander'
import { acceptByHand, importAcknowledgement } from '../clearing/captures/acknowledge.ts'
import { countUnfiled, findFiles, findWaitingCaptures } from '../clearing/captures/store.ts'
import { storedNameAt } from '../clearing/storedName.ts'
import type { AcquirerOptions } from '../connectors/cards/acquirer.ts'
import { amountText } from '../contract/amounts.ts'
import { chosenAcquirers, collectLines, type FileLineText, linesText, onlyOne, refuseBroken } from './files.ts'
import { freeText } from './freeText.ts'
import { type CommandParts, looksLikeId, readText, refuseCommand, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type CapturesOptions = ReadOptions & { readonly acquirer?: string; readonly acknowledge?: string; readonly waiting?: true }

const filesMost = 100
const waitingMost = 10_000

export function addCaptures(acquirers: Command): void {
  const captures = acquirers
    .command('captures')
    .description('capture files and what waits for the next; ends with 1 when a line that was read now is refused or missing')
    .option('--acquirer <name>', 'only this one')
    .option('--waiting', 'each capture that waits too, the oldest first, with the numbers that the acquirer knows it by')
    .option('--acknowledge <file>', 'reads what the acquirer says of a capture file; reading it again changes nothing')
  reads(
    captures,
    {
      '': 'missing',
      'lines[]': 'line outcome text',
      'waiting[]': 'acquirer captures oldestAt',
      'captures[]': 'captureId merchantId acquirer terminal trace reference amount currency collectedAt file',
      'files[]': 'acquirer sequence day name captures accepted rejected madeAt writtenAt',
    },
    ({ acknowledge }) => acknowledge !== undefined,
  ).action((options: CapturesOptions) =>
    withOpened(async opened => {
      const file = options.acknowledge
      const chosen = chosenAcquirers(opened.config, options.acquirer)
      const read = file === undefined ? undefined : await acknowledge(opened, onlyOne(chosen, file), file)
      const names = chosen.map(({ name }) => name)
      const waiting = await countUnfiled(opened.database.work, names)
      const files = await findFiles(opened.database.work, names, filesMost)
      const captures = options.waiting ? await findWaitingCaptures(opened.database.work, names, waitingMost) : []
      const lines = read?.lines ?? []
      const document = {
        missing: read?.missing ?? 0,
        lines,
        waiting: waiting.map(({ acquirer, captures, oldestAt }) => ({ acquirer, captures, oldestAt: timeField(oldestAt) })),
        captures: captures.map(({ said, ...one }) => ({
          captureId: one.paymentId,
          merchantId: one.merchantId,
          acquirer: one.acquirer,
          terminal: said.terminal,
          trace: said.trace,
          reference: said.reference,
          amount: amountText(one.amount),
          currency: one.currency,
          collectedAt: timeField(one.collectedAt),
          file: one.sequence,
        })),
        files: files.map(({ madeAt, writtenAt, ...one }) => ({
          ...one,
          madeAt: timeField(madeAt),
          writtenAt: timeField(writtenAt),
        })),
      }
      show(options, document, () =>
        [
          linesText(lines),
          ...waiting.map(one => `${one.acquirer}: ${one.captures} captures wait, since ${timeText(one.oldestAt)}.\n`),
          captures.length === 0
            ? ''
            : table([
                ['capture', 'merchant', 'acquirer', 'terminal', 'trace', 'reference', 'amount', 'currency', 'collected', 'file'],
                ...captures.map(({ said, ...one }) => [
                  one.paymentId,
                  one.merchantId,
                  one.acquirer,
                  said.terminal,
                  said.trace,
                  said.reference,
                  amountText(one.amount),
                  one.currency,
                  timeText(one.collectedAt),
                  one.sequence === null ? null : String(one.sequence),
                ]),
              ]),
          table([
            ['acquirer', 'number', 'day', 'file', 'captures', 'accepted', 'rejected', 'written'],
            ...files.map(one => [
              one.acquirer,
              String(one.sequence),
              one.day,
              one.name,
              String(one.captures),
              String(one.accepted),
              String(one.rejected),
              one.writtenAt === null ? null : timeText(one.writtenAt),
            ]),
          ]),
        ].join(''),
      )
      if (document.missing > 0 || lines.some(({ outcome }) => outcome === 'refused')) process.exitCode = 1
    }),
  )

  acquirers
    .command('accept <captureId>')
    .description('says that the acquirer has a capture which waits behind a database that was put back: no file carries it')
    .requiredOption('--reason <text>', 'what the acquirer said, for whoever asks later')
    .action((captureId: string, { reason: given }: { reason: string }) =>
      withOpened(async opened => {
        const reason = freeText(opened, '--reason', given, 200)
        const said = looksLikeId(captureId) ? await acceptByHand(opened, captureId, reason) : 'unknown'
        if (said !== 'accepted') return refuseCommand(refusals[said](captureId))
        process.stdout.write(`The capture ${captureId} goes into no file.\n`)
      }),
    )
}

const refusals = {
  unknown: (id: string) => `There is no capture ${id} for a file: it is named by the id of its CP.`,
  notHeld: (id: string) => `The capture ${id} goes into the next file: none waits behind a database that was put back.`,
  notWaiting: (id: string) => `The capture ${id} waits for no file.`,
} as const

async function acknowledge(
  opened: CommandParts,
  { name, account, dialect }: AcquirerOptions,
  file: string,
): Promise<{ missing: number; lines: readonly FileLineText[] }> {
  const { lines, tell } = collectLines()
  const acquirer = { name, acquirerId: account.acquirerId, rules: dialect.captures }
  const report = await importAcknowledgement(opened, acquirer, storedNameAt(file), readText(file), tell)
  if ('broken' in report) return refuseBroken(opened, { what: 'acknowledgement', of: name, file, why: report.broken })
  return { missing: report.missing, lines }
}
