// tollgate logs: the requests of the interface as they came, masked, with what was wrong with them.

import { styleText } from 'node:util'
import type { Command } from 'commander'
import { visible } from '../platform/errors.ts'
import type { RequestContent } from '../reporting/requests/record.ts'
import { findRequests, type RequestRow, unknownMerchant } from '../reporting/requests/store.ts'
import { wholeNumber } from './choices.ts'
import { type CommandParts, looksLikeId, refuseWords, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type LogOptions = ReadOptions & {
  readonly limit: number
  readonly failed?: true
  readonly follow?: true
  readonly merchant?: string
  readonly payment?: string
}

/** Records are written a moment after their answers, by several processes: so far back is looked for late ones. */
const lateMilliseconds = 5000
const lookEveryMilliseconds = 500

export default (program: Command): void => {
  const logs = program
    .command('logs')
    .description('the requests of the interface, masked, the newest last; those of the last days')
    .option('--limit <count>', 'how many', wholeNumber(1, 10_000), 50)
    .option('--failed', 'only those that were refused or failed')
    .option('--merchant <id>', 'of one merchant')
    .option('--payment <id>', 'that made a payment, or name it in their path')
    .option('--follow', 'go on with what comes; with --json a line each')
  reads(logs, {
    'requests[]':
      'id recordedAt method path status milliseconds result description parameterErrors unknown fields merchantId entityId tokenId paymentId number',
  }).action((options: LogOptions) => withOpened(opened => printLogs(opened, options)))
}

async function printLogs({ database, clock }: CommandParts, options: LogOptions): Promise<void> {
  const { limit, failed, follow, merchant, payment } = options
  for (const [name, id] of Object.entries({ merchant, payment }))
    if (id !== undefined && !looksLikeId(id)) refuseWords(`--${name} must be 32 hex characters.`)
  const filter = {
    failed: failed === true,
    ...(merchant !== undefined && { merchantIds: [merchant] }),
    ...(payment !== undefined && { paymentId: payment }),
  }
  const newest = (await findRequests(database.work, filter, limit)).reverse()
  if (!follow) return show(options, { requests: newest.map(documentOf) }, () => newest.map(asText).join(''))
  process.stdout.on('error', () => process.exit()) // nobody reads any more
  const write = (row: RequestRow) => process.stdout.write(options.json ? `${JSON.stringify(documentOf(row))}\n` : asText(row))
  newest.forEach(write)
  let shown = new Set(newest.map(({ id }) => id))
  for (;;) {
    await clock.sleep(lookEveryMilliseconds)
    const after = `${(clock.real() - lateMilliseconds).toString(16).padStart(12, '0')}${'0'.repeat(20)}`
    const found = (await findRequests(database.work, { ...filter, after }, 10_000)).reverse()
    for (const row of found) if (!shown.has(row.id)) write(row)
    shown = new Set(found.map(({ id }) => id))
  }
}

const contentOf = (row: RequestRow) => JSON.parse(row.content) as RequestContent

function documentOf(row: RequestRow) {
  const { content, merchantId, recordedAt, ...rest } = row
  return {
    ...rest,
    merchantId: merchantId === unknownMerchant ? null : merchantId,
    recordedAt: timeField(recordedAt),
    description: null,
    parameterErrors: [],
    unknown: [],
    ...(JSON.parse(content) as RequestContent),
  }
}

/** One line of what was asked and answered; below it what was wrong. */
function asText(row: RequestRow): string {
  const { status, result, paymentId } = row
  const { description, parameterErrors = [], unknown = [] } = contentOf(row)
  const good = status < 400
  const head = [
    styleText('dim', timeText(row.recordedAt)),
    styleText(good ? 'green' : status < 500 ? 'yellow' : 'red', String(status)),
    `${row.method} ${visible(row.path)}`,
    result ?? '',
    good ? '' : visible(description ?? ''),
    paymentId ?? '',
    styleText('dim', `${row.milliseconds} ms`),
  ]
  const wrong = parameterErrors.map(
    ({ name, value, message }) => `${name} ${message}${value === undefined ? '' : `, not ${JSON.stringify(value)}`}`,
  )
  const ignored = unknown.map(name => `ignored: ${name}`)
  const lines = [...wrong, ...ignored].map(line => `    ${styleText('yellow', visible(line))}\n`)
  return `${head.filter(part => part !== '').join('  ')}\n${lines.join('')}`
}
