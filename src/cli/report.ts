// tollgate report: the settlement report of a merchant or a channel, as a text, a document or a file; for whoever wants it at a time of the day.

import { type Command, Option } from 'commander'
import type { Mode } from '../connectors/connector.ts'
import { signedAmountText } from '../contract/amounts.ts'
import { type Aggregation, aggregationRecord } from '../reporting/settlement/aggregation.ts'
import { aggregationsFile, movementsFile, type ReportFile } from '../reporting/settlement/files.ts'
import { makeReports, type ReportRefusal, spanError, spanOf } from '../reporting/settlement/reports.ts'
import type { ReportScope } from '../reporting/settlement/store.ts'
import { choice } from './choices.ts'
import { type CommandParts, readDate, refuseCommand, refuseWords, seeReporting, table, withOpened } from './open.ts'
import { writeOutput } from './output.ts'
import { type ReadOptions, reads, show } from './reads.ts'

type ReportOptions = ReadOptions & {
  entity: string
  from: string
  to: string
  mode?: Mode
  currency?: string
  csv?: true
  movements?: true
}

export default (program: Command): void => {
  const report = program
    .command('report')
    .description('what was cleared for a merchant, given back and charged back, by day and currency')
    .requiredOption('--entity <id>', 'merchant, or channel')
    .requiredOption('--from <day>', 'the first day, yyyy-MM-dd, in UTC')
    .requiredOption('--to <day>', 'the last day')
    .addOption(
      choice('--mode <mode>', 'which payments; those of the simulator in a sandbox, else live ones', [
        'internal',
        'external',
        'live',
      ]),
    )
    .option('--currency <code>', 'of this currency alone')
    .addOption(new Option('--csv', 'as a file').conflicts('json'))
    .option('--movements', 'the payments behind the sums; only with --csv')
  reads(report, { 'aggregations[]': 'id date currency testMode count matchedCount credit debit amount totals' }).action(
    (options: ReportOptions) => withOpened(opened => print(opened, options)),
  )
}

async function print(opened: CommandParts, options: ReportOptions): Promise<void> {
  const { from, to, currency, csv, movements } = options
  for (const [name, day] of Object.entries({ from, to })) readDate(`--${name}`, day)
  const wrong = spanError(from, to)
  if (wrong) refuseWords(`--${wrong.name.slice('date.'.length)} ${wrong.message.replaceAll('date.', '--')}.`)
  if (movements && !csv) refuseWords('--movements goes with --csv.')
  const scope = scopeOf(opened, options)
  await seeReporting(opened)
  const reports = makeReports(opened)
  const found = allowed(await reports.aggregations('command line', scope, spanOf(from, to, currency)))
  if (!csv) {
    const aggregations = found.map(one => ({ testMode: null, ...aggregationRecord(opened.keys, scope, one) }))
    return show(options, { aggregations }, () => asTable(found))
  }
  if (!movements) return write(aggregationsFile(opened.keys, scope, from, to, found))
  const gone = found.find(({ sums }) => sums.archived > 0)
  if (gone) refuseCommand(`Records of ${gone.day} are archived, only its sums are here: see \`tollgate archive list\`.`)
  // The heading once, then every day of the report.
  let isFirst = true
  for (const one of found) {
    const rows = reports.records('command line', scope, one, { type: undefined, newestFirst: false })
    await write(movementsFile(one, rows), !isFirst)
    isFirst = false
  }
}

function scopeOf({ directory, config }: CommandParts, { entity: id, mode }: ReportOptions): ReportScope {
  const entity = directory.entity(id)
  if (entity?.kind !== 'merchant' && entity?.kind !== 'channel') return refuseCommand(`There is no merchant or channel ${id}.`)
  const own = mode ?? (config.mode === 'live' ? 'live' : 'internal')
  return { merchantId: entity.merchantId, mode: own, ...(entity.kind === 'channel' && { channelId: entity.id }) }
}

const allowed = (found: readonly Aggregation[] | ReportRefusal): readonly Aggregation[] =>
  typeof found === 'string' ? refuseCommand('The report takes too long: ask for fewer days at a time.') : found

async function write({ lines }: ReportFile, withoutHeading = false): Promise<void> {
  let isHeading = withoutHeading
  for await (const line of lines) {
    if (!isHeading && !(await writeOutput(line))) return
    isHeading = false
  }
}

const asTable = (found: readonly Aggregation[]): string =>
  table([
    ['day', 'currency', 'movements', 'settled', 'received', 'given', 'together'],
    ...found.map(({ day, currency, sums: { count, matched, credit, debit } }) => [
      day,
      currency,
      count,
      matched,
      signedAmountText(credit),
      signedAmountText(debit),
      signedAmountText(credit - debit),
    ]),
  ])
