// Files that are owed to the servers of others: from the end of a period until one is on its server, or is given up: then somebody should know. A source of
// files goes on from period to period, so that one that ended while nothing ran is not left out.

import { type CaseKind, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import type { PaymentParts } from '../../payments/parts.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import type { OpenSftp } from '../../platform/sftp/open.ts'
import type { SftpPlace } from '../../platform/sftp/server.ts'
import { type PutAttempt, type SentFile, SftpError } from '../../platform/sftp/sftp.ts'
import { keepContent, keptFile } from './keep.ts'
import { periodAfter, type ReportPeriod } from './period.ts'
import { beginPut, findOwed, insertOwed, isPutBy, markDelivered, markFailed } from './store.ts'

export type OwedParts = Pick<PaymentParts, 'database' | 'clock' | 'random' | 'directory' | 'log'> & { readonly sftp: OpenSftp }

export type OwedForm = 'csv' | 'json' | 'xml'

export type OwedFile = {
  readonly ownerId: string
  readonly source: string
  /** The first of its period. */
  readonly day: string
  readonly form: OwedForm
  readonly attempts: number
  readonly madeAt: number
  /** Where its bytes are kept, and how many records they hold. */
  readonly fileId: string | null
  readonly records: number | null
}

/** A file as it is made, part by part, and how many records are in each. */
export type FileContent = AsyncIterable<{ readonly text: string; readonly records: number }>

/** Puts a file where it belongs, whole or not at all; the same one again does no harm. False when another attempt has begun. Rejects with an SftpError. */
export type PutFile = (name: string, file: SentFile, attempt: PutAttempt) => Promise<boolean>
/** Where files go: opened once for those that are owed. Rejects with an SftpError. */
export type FileTarget = (work: (put: PutFile) => Promise<void>) => Promise<void>

export const sftpTarget =
  ({ sftp }: Pick<OwedParts, 'sftp'>, place: SftpPlace): FileTarget =>
  work =>
    sftp(place, server => work((name, file, attempt) => server.put(`${place.folder}/${name}`, file, attempt)), { guarded: true })

/** Whose files, of what and where to. */
export type OwedSource = {
  readonly ownerId: string
  readonly source: string
  readonly every: ReportPeriod
  readonly forms: readonly OwedForm[]
  readonly target: FileTarget
  /** Of whom a case is, and of which kind. */
  readonly about: { readonly merchantId: string; readonly kind: CaseKind }
  name(file: Pick<OwedFile, 'day' | 'form'>): string
  /** Read once: what is tried again is the same file, whatever was added meanwhile. Rejects with an SftpError when there can be no such file. */
  content(file: OwedFile): FileContent
}

const minute = 60_000
/** So long after its end a period is over for what was recorded at its last moment. */
const settledMinutes = 15
const pauseMinutesMost = 360
const givenUpAfterDays = 7
const periodsAtOnce = 400

/** When a period is over, business time. */
export const overAt = (every: ReportPeriod, day: string): number => Date.parse(periodAfter(every, day)) + settledMinutes * minute

/** What due work of a source does, from the period that it has come to: owes what is over, delivers what is owed, and says when it goes on. */
export async function workOff(
  parts: OwedParts,
  of: OwedSource,
  day: string,
): Promise<{ again: number; details: { day: string }; well: boolean }> {
  const { database, clock, directory } = parts
  const now = directory.businessTime(of.ownerId)
  const over: string[] = []
  let next = day
  for (; overAt(of.every, next) <= now && over.length < periodsAtOnce; next = periodAfter(of.every, next)) over.push(next)
  if (over.length > 0) await insertOwed(database.work, of.ownerId, of.source, over, of.forms, clock.real())
  const owed = await findOwed(database.work, of.ownerId, of.source)
  const failed = owed.length > 0 ? await deliverAll(parts, of, owed) : []
  const nextPeriod = clock.real() + Math.max(0, overAt(of.every, next) - now)
  const pauses = failed.map(({ attempts }) => Math.min(2 ** attempts, pauseMinutesMost) * minute)
  return {
    again: Math.min(nextPeriod, ...pauses.map(pause => clock.real() + pause)),
    details: { day: next },
    well: failed.length === 0,
  }
}

/** In one session, the oldest first. Those that failed and are owed still; one that its server does not take keeps no other waiting. */
async function deliverAll(parts: OwedParts, of: OwedSource, owed: readonly OwedFile[]): Promise<OwedFile[]> {
  const left = new Set(owed)
  const failed: OwedFile[] = []
  const fail = async (file: OwedFile, error: Error) => {
    if (!(error instanceof SftpError)) throw error
    left.delete(file)
    failed.push(...(await noteFailure(parts, of, file, error)))
  }
  try {
    await of.target(async put => {
      for (const file of owed) {
        const deliver = async () => {
          const kept = await keepContent(parts, file, () => of.content(file))
          const attempt = kept && (await beginAttempt(parts, file))
          const isPut = attempt && (await put(of.name(file), await keptFile(parts.database.work, kept.fileId), attempt))
          return isPut ? kept.records : 'of another'
        }
        const records = await deliver().catch((error: Error) => fail(file, error).then(() => 'failed' as const))
        if (records === 'failed') continue
        if (records === 'of another') {
          left.delete(file)
          failed.push(file) // is looked for again, unless that one has delivered it
          continue
        }
        await noteDelivered(parts, of, file, records)
        left.delete(file)
      }
    })
  } catch (error) {
    for (const file of [...left]) await fail(file, error as Error)
  }
  return failed
}

/** Undefined when another has delivered it. */
async function beginAttempt({ database, clock, random }: OwedParts, file: OwedFile): Promise<PutAttempt | undefined> {
  const db = database.work
  const id = timeOrderedId(clock.real(), random)
  const begun = await beginPut(db, file, id)
  return begun && { id, ...(begun.before !== null && { before: begun.before }), isOurs: () => isPutBy(db, file, id) }
}

// What becomes of a file and of the case about it is one step: a process may end at any moment, and another may look.

const noteDelivered = ({ database, clock }: OwedParts, of: OwedSource, file: OwedFile, records: number): Promise<void> =>
  inTransaction(database.work, async db => {
    await markDelivered(db, file, records, clock.real())
    await closeSettled(db, caseOf(of, file), clock.real(), 'gateway', 'it was delivered')
  })

/** Nothing when it was the last attempt. */
async function noteFailure(parts: OwedParts, of: OwedSource, file: OwedFile, error: SftpError): Promise<OwedFile[]> {
  const { database, clock, log } = parts
  const { day, form } = file
  const now = clock.real()
  const isLast = now - file.madeAt > givenUpAfterDays * 24 * 60 * minute
  log.warn({ why: `${of.name(file)}: ${error.message}`, attempt: file.attempts + 1 }, 'a file could not be delivered')
  await inTransaction(database.work, async db => {
    const isOwed = await markFailed(db, file, error.message, isLast ? now : undefined)
    if (isOwed && (isLast || error.about === 'identity'))
      await openCase(db, parts, { ...caseOf(of, file), details: { owner: of.ownerId, day, form, why: error.message } })
  })
  return isLast ? [] : [{ ...file, attempts: file.attempts + 1 }]
}

const caseOf = (of: OwedSource, file: OwedFile) => ({ ...of.about, subject: of.name(file) }) as const
