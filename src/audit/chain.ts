// The chain of the audit: what each hash covers, how entries are added, and where a chain was tampered with.

import type { Clock } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { type Actor, type AuditEntry, type AuditRow, thisProcess } from './entry.ts'
import { insertRow, lockHead, moveHead, readHead, readRowsAfter } from './store.ts'

/** `by`: on whose word things are done; absent = the process by itself. */
export type Recorder = { readonly keys: Keys; readonly clock: Clock; readonly by?: Actor }

/** Bounds what one row can hold: lists of a seed file can be long. */
const detailsMax = 4000

/**
 * Adds entries inside a transaction, best as its last statements: the chain has one writer at a time, until that one commits.
 * What is told of and its trace are then there together or not at all.
 */
export async function record(db: Connection, { keys, clock, by }: Recorder, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return
  const head = await lockHead(db)
  if (!head) throw new Error('the head of the audit is gone')
  let { sequence } = head
  let before = head.hash ?? Buffer.alloc(0)
  for (const { actor = by ?? thisProcess('gateway'), action, entityId, subject = '', result = 'done', details = {} } of entries) {
    sequence++
    const text = JSON.stringify(details)
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
      details: text.length > detailsMax ? JSON.stringify({ names: Object.keys(details), tooLong: text.length }) : text,
    }
    ;[before] = hashesOf(keys, before, row)
    await insertRow(db, { ...row, hash: before })
  }
  await moveHead(db, sequence, proofsOf(keys, sequence, before)[0])
}

export type ChainReport = {
  readonly rows: number
  /** `sequence:hash` of the last row: noted elsewhere, it proves later that nothing before it was touched. */
  readonly head: string
  /** Sentences; none when the chain is whole. */
  readonly findings: readonly string[]
}

const page = 1000

/** Follows the chain from its first row to the head that stood when this began. `expected`: a head that was noted before. */
export async function verify(db: Connection, keys: Keys, expected?: string): Promise<ChainReport> {
  const findings: string[] = []
  const head = await readHead(db)
  if (!head) findings.push('The head of the chain is gone.')
  const end = head?.sequence ?? Number.MAX_SAFE_INTEGER
  let before: Buffer = Buffer.alloc(0)
  let last = 0
  let rows = 0
  let seen = expected === undefined
  for (let more = true; more; ) {
    const some = await readRowsAfter(db, last, page)
    more = some.length === page
    for (const row of some) {
      if (row.sequence > end) break
      if (row.sequence !== last + 1) findings.push(`Rows ${last + 1} to ${row.sequence - 1} are missing.`)
      if (!hashesOf(keys, before, row).some(hash => row.hash.equals(hash)))
        findings.push(`Row ${row.sequence} is not as it was written, or not where.`)
      seen ||= expected === nameOf(row.sequence, row.hash)
      before = row.hash
      last = row.sequence
      rows++
    }
  }
  if (head && head.sequence > last) findings.push(`Rows ${last + 1} to ${head.sequence} are missing at the end.`)
  else if (head && head.sequence > 0 && !proofsOf(keys, head.sequence, before).some(proof => head.proof?.equals(proof)))
    findings.push('The head of the chain was not written by this installation.')
  if (!seen) findings.push(`The chain does not hold ${expected}.`)
  return { rows, head: nameOf(last, before), findings }
}

const nameOf = (sequence: number, hash: Buffer) => `${sequence}:${hash.toString('hex')}`

/** Under every lookup key: rows from before a change of the key stay under the one that they were written with. */
function hashesOf(keys: Keys, before: Buffer, row: Omit<AuditRow, 'hash'>) {
  const { sequence, recordedAt, actorKind, actor, address, action, entityId, subject, result, details } = row
  const content = [sequence, recordedAt, actorKind, actor, address, action, entityId, subject, result, details]
  return keyedHashes(keys, 'audit row', `${before.toString('hex')}\n${JSON.stringify(content)}`)
}

const proofsOf = (keys: Keys, sequence: number, hash: Buffer) =>
  keyedHashes(keys, 'audit head', `${sequence}\n${hash.toString('hex')}`)
