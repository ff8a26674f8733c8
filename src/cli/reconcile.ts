// tollgate acquirers reconcile: what acquirers and we say of a day, and settlement files.

import type { Command } from 'commander'
import { type ComparedDay, compareDay } from '../clearing/reconciliation/compare.ts'
import { dayAfter, dayOf } from '../clearing/reconciliation/day.ts'
import { importSettlement, missLines, type SettlingAcquirer } from '../clearing/reconciliation/settlement.ts'
import { storedNameAt } from '../clearing/storedName.ts'
import type { AcquirerOptions } from '../connectors/cards/acquirer.ts'
import { netOf } from '../connectors/cards/iso8583/totals.ts'
import { differenceKinds } from '../payments/cases/cases.ts'
import { countOpenCases } from '../payments/cases/store.ts'
import { chosenAcquirers, collectLines, type FileLineText, linesText, onlyOne, refuseBroken } from './files.ts'
import { type CommandParts, readDate, readText, refuseCommand, table, withOpened } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

type ReconcileOptions = ReadOptions & { readonly acquirer?: string; readonly day?: string; readonly file?: string }
type ShownDay = ComparedDay & { readonly acquirer: string; readonly missing: number | null }

export function addReconcile(acquirers: Command): void {
  const reconcile = acquirers
    .command('reconcile')
    .description('compares a day with what acquirers say of it, and reads settlement files; ends with 1 when anything differs')
    .option('--acquirer <name>', 'only this one')
    .option('--day <day>', 'which business day, yyyy-MM-dd; else the last one that ended, or that of the file')
    .option('--file <file>', 'reads a settlement file first; reading it again changes nothing')
  reads(
    reconcile,
    {
      '': 'differences',
      'lines[]': 'line outcome text',
      'days[]': 'acquirer day terminal currency ours theirs balance differs missing',
    },
    () => true,
  ).action((options: ReconcileOptions) =>
    withOpened(async opened => {
      const { day, file } = options
      if (day !== undefined) readDate('--day', day)
      const chosen = chosenAcquirers(opened.config, options.acquirer)
      const read = file === undefined ? undefined : await readFile(opened, onlyOne(chosen, file), file)
      const days = (await Promise.all(chosen.map(one => shownDays(opened, one, day ?? read?.day)))).flat()
      const { count } = await countOpenCases(opened.database.work, differenceKinds)
      const lines = read?.lines ?? []
      const document = { differences: count, lines, days }
      show(options, document, () => `${linesText(lines)}${daysText(days)}${count} differences are open.\n`)
      if (count > 0) process.exitCode = 1
    }),
  )
}

async function readFile(
  opened: CommandParts,
  { name, account, dialect }: AcquirerOptions,
  file: string,
): Promise<{ day: string; lines: readonly FileLineText[] }> {
  if (!dialect.settlementFile) return refuseCommand(`The profile of ${name} has no settlementFile.`)
  const acquirer: SettlingAcquirer = {
    name,
    acquirerId: account.acquirerId,
    rules: dialect.reconciliation,
    layout: dialect.settlementFile,
  }
  const { lines, tell } = collectLines()
  const report = await importSettlement(opened, acquirer, storedNameAt(file), readText(file), tell)
  if ('broken' in report) return refuseBroken(opened, { what: 'settlement', of: name, file, why: report.broken })
  return { day: report.day, lines }
}

async function shownDays(
  opened: CommandParts,
  { name, dialect }: AcquirerOptions,
  asked: string | undefined,
): Promise<ShownDay[]> {
  const rules = dialect.reconciliation
  const day = asked ?? dayAfter(dayOf(opened.clock.real(), rules), -1)
  const missing = (await missLines(opened, { name, rules }, day)) ?? null
  return (await compareDay(opened, name, rules, day)).map(one => ({ acquirer: name, ...one, missing }))
}

/** Amounts in minor units of the currency. */
const daysText = (days: readonly ShownDay[]): string =>
  days.length === 0
    ? 'Nothing was booked.\n'
    : table([
        ['acquirer', 'day', 'terminal', 'currency', 'debits', 'reversed', 'credits', 'net', 'they say', 'not in their file'],
        ...days.map(({ acquirer, day, terminal, currency, ours, theirs, differs, missing }) => [
          acquirer,
          day,
          terminal,
          currency,
          `${ours.debit.count} / ${ours.debit.amount}`,
          `${ours.debitReversal.count} / ${ours.debitReversal.amount}`,
          `${ours.credit.count} / ${ours.credit.amount}`,
          String(netOf(ours)),
          !theirs ? null : differs.length === 0 ? 'the same' : `other ${differs.join(', ')}`,
          missing === null ? null : String(missing),
        ]),
      ])
