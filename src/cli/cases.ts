// tollgate cases: what the gateway did not guess and somebody has to decide.

import { type Command, Option } from 'commander'
import { type CaseDecision, caseKinds, closeCase, DecisionMissing, decisions, nobody } from '../payments/cases/cases.ts'
import { findCases, type OperatorCase } from '../payments/cases/store.ts'
import { freeText } from './freeText.ts'
import { type CommandParts, looksLikeId, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

export default (program: Command): void => {
  const cases = program.command('cases').description('what the gateway did not guess and somebody has to decide')

  const list = cases
    .command('list')
    .description('the open ones, the oldest first; ends with 1 when there are any')
    .option('--all', 'closed ones too')
    .option('--limit <count>', 'how many', '100')
  reads(list, {
    'cases[]': 'id kind meaning merchantId subject details openedAt closedAt closedBy reason owner',
  }).action((options: ReadOptions & { all?: true; limit: string }) =>
    withOpened(async ({ database }) => {
      const { all, limit } = options
      if (!/^\d{1,6}$/.test(limit)) refuseWords('--limit must be a number.')
      const found = await findCases(database.work, all === true, Number(limit))
      show(options, { cases: found.map(documentOf) }, () => asTable(found))
      if (found.some(({ closedAt }) => closedAt === null)) process.exitCode = 1
    }),
  )

  cases
    .command('close <id>')
    .description('it is decided')
    .requiredOption('--reason <text>', 'what was decided, for whoever asks later')
    .addOption(new Option('--as <decision>', 'what became of the payment, by a case that asks for it').choices(decisions))
    .action((id: string, { reason: given, as }: { reason: string; as?: CaseDecision }) =>
      withOpened(async opened => {
        const reason = freeText(opened, '--reason', given, 500)
        const closed = looksLikeId(id) ? await close(opened, id, reason, as) : undefined
        if (!closed) return refuseCommand(`There is no open case ${id}.`)
        process.stdout.write(`Closed: ${closed.kind} ${closed.subject}.\n`)
      }),
    )
}

const close = (opened: CommandParts, id: string, reason: string, decision: CaseDecision | undefined) =>
  closeCase(opened, id, opened.by.id, reason, decision).catch((error: Error) => {
    if (!(error instanceof DecisionMissing)) throw error
    return refuseCommand(
      decision
        ? `A case ${error.message} takes no --as.`
        : `Say what became of the payment: --as ${decisions.join(' or --as ')}. Ask the acquirer; the case shows what it knows the payment by.`,
    )
  })

const asTable = (cases: readonly OperatorCase[]): string =>
  table([
    ['case', 'kind', 'merchant', 'about', 'opened', 'owner', 'closed', 'details'],
    ...cases.map(one => [
      one.id,
      one.kind,
      one.merchantId === nobody ? null : one.merchantId,
      one.subject,
      timeText(one.openedAt),
      one.owner,
      one.closedAt === null ? null : `${timeText(one.closedAt)} by ${one.closedBy}: ${one.reason}`,
      one.details,
    ]),
  ])

const documentOf = ({ details, merchantId, kind, ...one }: OperatorCase) => ({
  ...one,
  kind,
  meaning: caseKinds[kind as keyof typeof caseKinds] ?? kind,
  merchantId: merchantId === nobody ? null : merchantId,
  openedAt: timeField(one.openedAt),
  closedAt: timeField(one.closedAt),
  details: JSON.parse(details) as unknown,
})
