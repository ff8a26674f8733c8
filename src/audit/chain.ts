// The chain of the audit: what each hash covers, how entries are added, and where a chain was tampered with.

import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import type { Clock } from '../platform/clock.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { findStrangers } from './definitions/strangers.ts'
import { textsOf } from './details.ts'
import { refuseDismissed } from './dismissed.ts'
import { type Actor, type AuditEntry, type AuditRow, thisProcess } from './entry.ts'
import {
  actBeforeCommit,
  findEnd,
  type Head,
  insertRow,
  lockHead,
  moveHead,
  notKept,
  readHead,
  readOneMoment,
  readRowsAfter,
} from './store.ts'

/** `by`: on whose word things are done; absent = the process by itself. */
export type Recorder = { readonly keys: Keys; readonly clock: Clock; readonly by?: Actor }

/**
 * Adds entries inside a transaction, best as its last statements: the chain has one writer at a time, until that one commits.
 * What is told of and its trace are then there together or not at all. A chain that was tampered with is written on, since what happens must be told of,
 * and says first that it was and where: nothing that is written later makes it whole again. Throws an OperatorError when what was written is not what
 * stands there afterwards, and Dismissed when whoever acts may do so no more. → the number of the last row; 0 without entries.
 */
export async function record(db: Connection, { keys, clock, by }: Recorder, entries: readonly AuditEntry[]): Promise<number> {
  if (entries.length === 0) return 0
  // Before the end is locked: who dismisses somebody has that person first, and the end last.
  for (const actor of new Set(entries.map(one => one.actor ?? by))) await refuseDismissed(db, actor)
  const head = await lockHead(db)
  const last = await findEnd(db)
  const isPassed = last !== undefined && last.sequence > head.sequence
  const isWhole = !isPassed && isSealed(keys, head, head.hash)
  let { sequence, hash } = isPassed ? last : head
  const before = sequence
  const found = [
    ...(isWhole ? [] : [`the end after row ${head.sequence} was not the one that this installation had left`]),
    ...(await findStrangers(db, 'audit')).found,
  ]
  const rows: AuditRow[] = []
  const all = [...found.map(what => tamperingFound({ what })), ...entries]
  for (const { actor = by ?? thisProcess('gateway'), action, entityId, subject = '', result = 'done', details = {} } of all)
    for (const text of textsOf(details)) {
      sequence++
      const row: Omit<AuditRow, 'hash'> = {
        sequence,
        recordedAt: clock.real(),
        actorKind: actor.kind,
        actor: actor.id.slice(0, 255),
        address: actor.address.slice(0, 255),
        action,
        entityId: entityId ?? null,
        subject,
        result,
        details: text,
      }
      ;[hash] = hashesOf(keys, hash, row)
      rows.push({ ...row, hash })
      await insertRow(db, { ...row, hash })
    }
  const end: Head = { sequence, proof: proofsOf(keys, sequence, hash)[0] }
  await moveHead(db, sequence, end.proof!)
  await actBeforeCommit(db)
  // What a trigger swallowed or changed is not seen at the statement, but where it should stand.
  const kept = [await readRowsAfter(db, before, rows.length + 1), await readHead(db)]
  if (!isDeepStrictEqual(kept, [rows, end])) throw notKept()
  return sequence
}

/** `what`: a sentence without its full stop, which `verify` repeats. */
export const tamperingFound = (details: { readonly what: string }): AuditEntry => ({
  actor: thisProcess('gateway'),
  action: 'tamperingFound',
  result: 'refused',
  details,
})

/** Seals that nothing is written yet. Only for an installation of which that is known: afterwards an empty audit is one that was emptied. */
export async function beginAudit(db: Connection, keys: Keys): Promise<void> {
  const { sequence, proof } = await lockHead(db)
  if (sequence === 0 && proof === null && !(await findEnd(db))) await moveHead(db, 0, proofsOf(keys, 0, null)[0])
}

export type ChainReport = {
  readonly rows: number
  /** The first that was looked at. */
  readonly first: number
  /** `sequence:hash` of the last row: noted elsewhere, it proves later that nothing before it was touched. */
  readonly head: string
  /** Sentences; none when the chain is whole. */
  readonly findings: readonly string[]
}

const page = 1000

/** Is shown every row, and whether it is as this installation wrote it. */
type Look = (row: AuditRow, isProven: boolean) => void

/** Follows the chain from its first row to its end, as all of it stood when this began. `expected`: a head that was noted before. */
export const verify = (pool: pg.Pool, keys: Keys, expected?: string, look: Look = () => {}): Promise<ChainReport> =>
  inTransaction(pool, async db => {
    await readOneMoment(db)
    return follow(db, keys, expected, look)
  })

export type AuditFilter = {
  /** Real time, milliseconds, inclusive. */
  readonly since?: number | undefined
  readonly entities?: readonly string[] | undefined
  readonly actor?: string | undefined
  readonly action?: string | undefined
}

/** A part of the chain, followed from a row whose own place nobody proves: for pages, which cannot wait for all of it. */
export type ChainWindow = {
  readonly rows: number
  /** Ends before this row; absent = at the end. */
  readonly before?: number | undefined
}

export type AuditList = Pick<ChainReport, 'findings' | 'first'> & {
  readonly rows: readonly AuditRow[]
  /** Numbers of rows that are not as this installation wrote them, or not where. */
  readonly doubtful: ReadonlySet<number>
}

/**
 * The newest rows that a filter finds, oldest first. They are taken from the chain as `verify` reads it: a database that answers a question for some
 * rows otherwise than the question for all of them deceives nobody.
 */
export async function listAudit(
  pool: pg.Pool,
  keys: Keys,
  filter: AuditFilter,
  limit: number,
  window?: ChainWindow,
): Promise<AuditList> {
  const { since = 0, entities, actor, action } = filter
  const rows: AuditRow[] = []
  const doubtful = new Set<number>()
  const look: Look = (row, isProven) => {
    if (!isProven) doubtful.add(row.sequence)
    const fits =
      !(row.recordedAt < since) && // the time of a forged row may be none
      (entities === undefined || entities.includes(row.entityId ?? '')) &&
      (actor === undefined || row.actor === actor) &&
      (action === undefined || row.action === action)
    if (fits && rows.push(row) > limit) rows.shift()
  }
  const { findings, first } = await inTransaction(pool, async db => {
    await readOneMoment(db)
    return follow(db, keys, undefined, look, window)
  })
  return { rows, doubtful, findings, first }
}

async function follow(
  db: Connection,
  keys: Keys,
  expected: string | undefined,
  look: Look,
  window?: ChainWindow,
): Promise<ChainReport> {
  const { found, partly } = await findStrangers(db, 'everything')
  const findings = [...found, ...(partly === undefined ? [] : [partly])].map(what => `In the database, ${what}.`)
  const head = await readHead(db)
  if (!head) findings.push('The head of the chain is gone.')
  const end = head?.sequence ?? Number.MAX_SAFE_INTEGER
  const stop = window?.before ?? Number.POSITIVE_INFINITY
  const begin = window && head ? Math.max(0, Math.min(stop - 1, head.sequence) - window.rows) : 0
  let before: Buffer | null = begin > 0 ? ((await readRowsAfter(db, begin - 1, 1))[0]?.hash ?? null) : null
  let last = begin
  let rows = 0
  const beyond: number[] = []
  let seen = expected === undefined
  for (let at = begin, more = true; more; ) {
    const read = await readRowsAfter(db, at, page)
    const some = read.filter(({ sequence }) => sequence < stop)
    more = some.length === page
    for (const row of some) {
      at = row.sequence
      if (row.sequence > end) {
        beyond.push(row.sequence)
        look(row, false)
        continue
      }
      if (row.sequence !== last + 1) findings.push(`Rows ${last + 1} to ${row.sequence - 1} are missing.`)
      const isProven = hashesOf(keys, before, row).some(hash => row.hash.equals(hash))
      look(row, isProven)
      if (!isProven) findings.push(`Row ${row.sequence} is not as it was written, or not where.`)
      else if (row.action === 'tamperingFound') findings.push(`Row ${row.sequence} tells that ${JSON.parse(row.details).what}.`)
      seen ||= expected === nameOf(row.sequence, row.hash)
      before = row.hash
      last = row.sequence
      rows++
    }
  }
  if (window?.before !== undefined) return { rows, first: begin + 1, head: nameOf(last, before), findings }
  if (head && head.sequence > last) findings.push(`Rows ${last + 1} to ${head.sequence} are missing at the end.`)
  else if (head && !isSealed(keys, head, before))
    findings.push(
      keys.retired?.some(key => isSealed({ ...keys, lookup: [key] }, head, before))
        ? 'The head of the chain is under a lookup key that was retired: all of it is from before that, or was written anew by whoever has that key.'
        : 'The head of the chain was not written by this installation.',
    )
  if (beyond.length > 0)
    findings.push(`${beyond.length} rows stand beyond the end, from ${beyond[0]} on: this installation did not write them.`)
  if (!seen) findings.push(`The chain does not hold ${expected}.`)
  return { rows, first: begin + 1, head: nameOf(last, before), findings }
}

/** How a head is written where it is noted. */
export const nameOf = (sequence: number, hash: Buffer | null) => `${sequence}:${textOf(hash)}`

/** Nothing stands for what is before the first row. */
const textOf = (hash: Buffer | null): string => hash?.toString('hex') ?? ''

const isSealed = (keys: Keys, { sequence, proof }: Head, hash: Buffer | null): boolean =>
  proof !== null && proofsOf(keys, sequence, hash).some(one => proof.equals(one))

/** Under every lookup key, retired ones too: rows from before a change of the key stay under the one that they were written with. It is the head that nobody makes with these. */
function hashesOf({ lookup, retired = [], ...keys }: Keys, before: Buffer | null, row: Omit<AuditRow, 'hash'>) {
  const { sequence, recordedAt, actorKind, actor, address, action, entityId, subject, result, details } = row
  const content = [sequence, recordedAt, actorKind, actor, address, action, entityId, subject, result, details]
  return keyedHashes({ ...keys, lookup: [...lookup, ...retired] }, 'audit row', `${textOf(before)}\n${JSON.stringify(content)}`)
}

const proofsOf = (keys: Keys, sequence: number, hash: Buffer | null) =>
  keyedHashes(keys, 'audit head', `${sequence}\n${textOf(hash)}`)
