// tollgate audit: who did what, and whether the record of it was tampered with. Nothing can be changed or taken out here.

import type { Command } from 'commander'
import { verify } from '../audit/chain.ts'
import { type AuditRow, actions } from '../audit/entry.ts'
import { findRows } from '../audit/store.ts'
import { findOwners } from '../clearing/chargebacks/store.ts'
import { amountText } from '../contract/amounts.ts'
import { readEntities, readTokens } from '../merchants/store.ts'
import { findChain, findPayment } from '../payments/store/read.ts'
import { type CommandParts, refuseCommand, table, timeText, withOpened } from './open.ts'

type AuditCommandOptions = { since?: string; entity?: string; actor?: string; action?: string; limit: string; json?: true }

export default (program: Command): void => {
  const audit = program
    .command('audit')
    .description(
      'who did what: log-ins that failed, tokens, secrets, settings, clock, chargebacks; the newest rows, oldest first',
    )
    .option('--since <time>', 'at or after, for example 2026-01-31T12:00Z')
    .option('--entity <id>', 'on behalf of this entity, or of one below it')
    .option('--actor <id>', 'by this token, user or user of the machine')
    .option('--action <name>', Object.keys(actions).join(', '))
    .option('--limit <count>', 'how many', '100')
    .option('--json', 'one JSON object a line, with hashes')
    .action((options: AuditCommandOptions) =>
      withOpened(async opened => {
        const { since, entity, actor, action, limit, json } = options
        if (action !== undefined && !Object.hasOwn(actions, action))
          refuseCommand(`--action must be one of ${Object.keys(actions).join(', ')}.`)
        if (!/^\d{1,9}$/.test(limit)) refuseCommand('--limit must be a number.')
        const from = since === undefined ? undefined : Date.parse(since)
        if (Number.isNaN(from)) refuseCommand('--since must be a time, for example 2026-01-31T12:00Z.')
        const entities = entity === undefined ? undefined : await withAllBelow(opened, entity)
        const rows = await findRows(opened.database.work, { since: from, entities, actor, action }, Number(limit))
        process.stdout.write(json ? rows.map(asJson).join('') : asTable(rows))
      }),
    )

  audit
    .command('payment <id>')
    .description('a payment, what refers to it, and the token that made each; none for what acquirers report')
    .action((id: string) =>
      withOpened(async ({ database: { work: db } }) => {
        const [place] = /^[0-9a-f]{32}$/.test(id) ? await findOwners(db, id) : []
        const found = place && (await findPayment(db, place.merchantId, place.id))
        if (!found) return refuseCommand(`There is no payment ${id}.`)
        const chain = await findChain(db, found.merchantId, found.rootId ?? found.id)
        const labels = new Map((await readTokens(db)).map(token => [token.id, token.label]))
        process.stdout.write(
          table([
            ['payment', 'type', 'amount', 'recorded', 'result', 'token', 'label'],
            ...chain.map(one => [
              one.id,
              one.type,
              `${amountText(one.amount)} ${one.currency}`,
              timeText(one.recordedAt),
              one.answer?.result ?? 'pending',
              one.tokenId ?? null,
              one.tokenId === undefined ? null : labels.get(one.tokenId)!,
            ]),
          ]),
        )
      }),
    )

  audit
    .command('verify')
    .description('follow the chain from its first row; ends with 1 when a row was changed, moved or taken out')
    .option('--expect <head>', 'a head that an earlier verify printed: all up to it must stand as it did then')
    .action(({ expect }: { expect?: string }) =>
      withOpened(async ({ database, keys }) => {
        const { rows, head, findings } = await verify(database.work, keys, expect)
        for (const finding of findings) process.stdout.write(`${finding}\n`)
        process.stdout.write(
          `${rows} rows, ${findings.length === 0 ? 'as they were written' : `${findings.length} findings`}. Head: ${head}\n`,
        )
        if (findings.length > 0) process.exitCode = 1
      }),
    )
}

async function withAllBelow({ database }: CommandParts, id: string): Promise<string[]> {
  if (!/^[0-9a-f]{32}$/.test(id)) refuseCommand('--entity must be 32 lower-case hex characters.')
  const all = await readEntities(database.work)
  const below = (parent: string): string[] =>
    all.filter(({ parentId }) => parentId === parent).flatMap(entity => [entity.id, ...below(entity.id)])
  return [id, ...below(id)]
}

const asJson = ({ hash, recordedAt, details, ...row }: AuditRow): string =>
  `${JSON.stringify({ ...row, recordedAt: new Date(recordedAt).toISOString(), details: JSON.parse(details), hash: hash.toString('hex') })}\n`

const asTable = (rows: readonly AuditRow[]): string =>
  table([
    ['row', 'at', 'who', 'from', 'did', 'for', 'to', 'result', 'details'],
    ...rows.map(row => [
      row.sequence,
      timeText(row.recordedAt),
      `${row.actorKind} ${row.actor}`,
      row.address,
      row.action,
      row.entityId,
      row.subject === '' ? null : row.subject,
      row.result,
      row.details,
    ]),
  ])
