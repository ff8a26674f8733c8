// tollgate acquirers captures: capture files, what waits for the next one, and what acquirers say of them.

import { basename } from 'node:path'
import type { Command } from 'commander'
import { importAcknowledgement } from '../clearing/captures/acknowledge.ts'
import { countUnfiled, findFiles } from '../clearing/captures/store.ts'
import type { AcquirerOptions } from '../connectors/cards/acquirer.ts'
import { chosenAcquirers, collectLines, type FileLineText, linesText, onlyOne } from './files.ts'
import { type CommandParts, readText, refuseCommand, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type CapturesOptions = ReadOptions & { readonly acquirer?: string; readonly acknowledge?: string }

const filesMost = 100

export function addCaptures(acquirers: Command): void {
  const captures = acquirers
    .command('captures')
    .description('capture files and what waits for the next; ends with 1 when a line that was read now is refused or missing')
    .option('--acquirer <name>', 'only this one')
    .option('--acknowledge <file>', 'reads what the acquirer says of a capture file; reading it again changes nothing')
  reads(
    captures,
    {
      '': 'missing',
      'lines[]': 'line outcome text',
      'waiting[]': 'acquirer captures oldestAt',
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
      const lines = read?.lines ?? []
      const document = {
        missing: read?.missing ?? 0,
        lines,
        waiting: waiting.map(({ acquirer, captures, oldestAt }) => ({ acquirer, captures, oldestAt: timeField(oldestAt) })),
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
}

async function acknowledge(
  opened: CommandParts,
  { name, account, dialect }: AcquirerOptions,
  file: string,
): Promise<{ missing: number; lines: readonly FileLineText[] }> {
  const { lines, tell } = collectLines()
  const acquirer = { name, acquirerId: account.acquirerId, rules: dialect.captures }
  const report = await importAcknowledgement(opened, acquirer, basename(file), readText(file), tell)
  if ('broken' in report) return refuseCommand(`Nothing of ${file} was read: ${report.broken}.`)
  return { missing: report.missing, lines }
}
