// tollgate audit: who did what, and whether the record of it was tampered with. Nothing can be changed or taken out here.

import type { Command } from 'commander'
import { listAudit, verify } from '../audit/chain.ts'
import { type AuditRow, actions } from '../audit/entry.ts'
import { findOwners } from '../clearing/chargebacks/store.ts'
import { amountText } from '../contract/amounts.ts'
import { readBelow, readTokens } from '../merchants/store.ts'
import { findChain, findPayment } from '../payments/store/read.ts'
import { withRetired } from '../vault/keyFile.ts'
import { choice } from './choices.ts'
import { type CommandParts, looksLikeId, readTime, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type AuditCommandOptions = ReadOptions & { since?: string; entity?: string; actor?: string; action?: string; limit: string }

export default (program: Command): void => {
  const audit = program
    .command('audit')
    .description(
      'who did what: log-ins that failed, tokens, secrets, settings, clock, chargebacks; the newest rows, oldest first',
    )
    .option('--since <time>', 'at or after, for example 2026-01-31T12:00Z')
    .option('--entity <id>', 'on behalf of this entity, or of one below it')
    .option('--actor <id>', 'by this token, user or user of the machine')
    .addOption(choice('--action <name>', 'what was done', Object.keys(actions)))
    .option('--limit <count>', 'how many', '100')

  reads(audit, {
    '': 'findings',
    'rows[]': 'sequence isProven actorKind actor address action entityId subject result recordedAt details hash',
  }).action((options: AuditCommandOptions) =>
    withOpened(async opened => {
      const { since, entity, actor, action, limit } = options
      if (!/^\d{1,9}$/.test(limit)) refuseWords('--limit must be a number.')
      const from = readTime('--since', since)
      const entities = entity === undefined ? undefined : await withAllBelow(opened, entity)
      const filter = { since: from, entities, actor, action }
      const { rows, doubtful, findings } = await listAudit(opened.database.work, auditKeys(opened), filter, Number(limit))
      const proven = ({ sequence }: AuditRow) => !doubtful.has(sequence)
      show(options, { rows: rows.map(row => ({ ...documentOf(row), isProven: proven(row) })), findings }, () =>
        [asTable(rows, proven), ...findings.map(line => `${line}\n`)].join(''),
      )
      if (findings.length > 0) process.exitCode = 1
    }),
  )

  const payment = audit
    .command('payment <id>')
    .description('a payment, what refers to it, and the token that made each; none for what acquirers report')
  reads(payment, { 'payments[]': 'id type amount currency recordedAt result tokenId label' }).action(
    (id: string, options: ReadOptions) =>
      withOpened(async ({ database: { work: db } }) => {
        const [place] = looksLikeId(id) ? await findOwners(db, id) : []
        const found = place && (await findPayment(db, place.merchantId, place.id))
        if (!found) return refuseCommand(`There is no payment ${id}.`)
        const chain = await findChain(db, found.merchantId, found.rootId ?? found.id)
        const ids = chain.flatMap(({ tokenId }) => tokenId ?? [])
        const labels = new Map((await readTokens(db, { ids })).map(token => [token.id, token.label]))
        const payments = chain.map(({ id, type, amount, currency, recordedAt, answer, tokenId = null }) => ({
          id,
          type,
          amount: amountText(amount),
          currency,
          recordedAt: timeField(recordedAt),
          result: answer?.result ?? 'pending',
          tokenId,
          label: tokenId === null ? null : (labels.get(tokenId) ?? null),
        }))
        show(options, { payments }, () =>
          table([
            ['payment', 'type', 'amount', 'recorded', 'result', 'token', 'label'],
            ...payments.map((one, at) => [
              one.id,
              one.type,
              `${one.amount} ${one.currency}`,
              timeText(chain[at]!.recordedAt),
              one.result,
              one.tokenId,
              one.label,
            ]),
          ]),
        )
      }),
  )

  const verifies = audit
    .command('verify')
    .description('follow the chain from its first row; ends with 1 when a row was changed, moved or taken out')
    .option('--expect <head>', 'a head that an earlier verify printed: all up to it must stand as it did then')
  reads(verifies, { '': 'rows head findings' }).action((options: ReadOptions & { expect?: string }) =>
    withOpened(async opened => {
      const { rows, head, findings } = await verify(opened.database.work, auditKeys(opened), options.expect)
      const end = `${rows} rows, ${findings.length === 0 ? 'as they were written' : `${findings.length} findings`}. Head: ${head}`
      show(options, { rows, head, findings }, () => [...findings, end].map(line => `${line}\n`).join(''))
      if (findings.length > 0) process.exitCode = 1
    }),
  )
}

const auditKeys = ({ keys, config }: CommandParts) => withRetired(keys, config.keyFiles.lookup)

async function withAllBelow({ database }: CommandParts, id: string): Promise<string[]> {
  if (!looksLikeId(id)) refuseWords('--entity must be 32 lower-case hex characters.')
  return [...new Set([id, ...(await readBelow(database.work, [id])).map(one => one.id)])]
}

const documentOf = ({ hash, recordedAt, details, ...row }: AuditRow) => ({
  ...row,
  recordedAt: timeField(recordedAt),
  details: parsed(details),
  hash: hash.toString('hex'),
})

/** A forged row may hold anything. */
function parsed(details: string): unknown {
  try {
    return JSON.parse(details)
  } catch {
    return details
  }
}

const asTable = (rows: readonly AuditRow[], proven: (row: AuditRow) => boolean): string =>
  table([
    ['row', 'at', 'who', 'from', 'did', 'for', 'to', 'result', 'details'],
    ...rows.map(row => [
      proven(row) ? row.sequence : `${row.sequence} forged`,
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
