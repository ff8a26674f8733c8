// tollgate cases: what the gateway did not guess and somebody has to decide.

import { type Command, Option } from 'commander'
import { type CaseDecision, caseKinds, closeCase, DecisionMissing, decisions, nobody } from '../payments/cases/cases.ts'
import { findCases, type OperatorCase } from '../payments/cases/store.ts'
import { type CommandParts, refuseCommand, table, timeText, withOpened } from './open.ts'

export default (program: Command): void => {
  const cases = program.command('cases').description('what the gateway did not guess and somebody has to decide')

  cases
    .command('list')
    .description('the open ones, the oldest first; ends with 1 when there are any')
    .option('--all', 'closed ones too')
    .option('--limit <count>', 'how many', '100')
    .option('--json', 'as JSON')
    .action(({ all, limit, json }: { all?: true; limit: string; json?: true }) =>
      withOpened(async ({ database }) => {
        if (!/^\d{1,6}$/.test(limit)) refuseCommand('--limit must be a number.')
        const found = await findCases(database.work, all === true, Number(limit))
        process.stdout.write(json ? `${JSON.stringify(found.map(asJson), undefined, 2)}\n` : asTable(found))
        if (found.some(({ closedAt }) => closedAt === null)) process.exitCode = 1
      }),
    )

  cases
    .command('close <id>')
    .description('it is decided')
    .requiredOption('--reason <text>', 'what was decided, for whoever asks later')
    .addOption(new Option('--as <decision>', 'what became of the payment, by a case that asks for it').choices(decisions))
    .action((id: string, { reason, as }: { reason: string; as?: CaseDecision }) =>
      withOpened(async opened => {
        if (reason.trim() === '' || reason.length > 500) refuseCommand('--reason must be 1 to 500 characters.')
        const closed = /^[0-9a-f]{32}$/.test(id) ? await close(opened, id, reason, as) : undefined
        if (!closed) return refuseCommand(`There is no open case ${id}.`)
        process.stdout.write(`Closed: ${closed.kind} ${closed.subject}.\n`)
      }),
    )
}

const close = ({ by, ...opened }: CommandParts, id: string, reason: string, decision: CaseDecision | undefined) =>
  closeCase(opened, id, by.id, reason, decision).catch((error: Error) => {
    if (!(error instanceof DecisionMissing)) throw error
    return refuseCommand(
      decision
        ? `A case ${error.message} takes no --as.`
        : `Say what became of the payment: --as ${decisions.join(' or --as ')}. Ask the acquirer; the case shows what it knows the payment by.`,
    )
  })

const asTable = (cases: readonly OperatorCase[]): string =>
  table([
    ['case', 'kind', 'merchant', 'about', 'opened', 'closed', 'details'],
    ...cases.map(one => [
      one.id,
      one.kind,
      one.merchantId === nobody ? null : one.merchantId,
      one.subject,
      timeText(one.openedAt),
      one.closedAt === null ? null : `${timeText(one.closedAt)} by ${one.closedBy}: ${one.reason}`,
      one.details,
    ]),
  ])

const asJson = ({ details, merchantId, kind, ...one }: OperatorCase) => ({
  ...one,
  kind,
  meaning: caseKinds[kind as keyof typeof caseKinds] ?? kind,
  merchantId: merchantId === nobody ? null : merchantId,
  openedAt: new Date(one.openedAt).toISOString(),
  closedAt: one.closedAt === null ? null : new Date(one.closedAt).toISOString(),
  details: JSON.parse(details) as unknown,
})
