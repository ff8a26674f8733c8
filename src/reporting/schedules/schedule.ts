// Schedules of reports: which report of an entity goes to which server, how often. Made and ended by people; each is told of.

import { type Recorder, record } from '../../audit/chain.ts'
import type { Actor } from '../../audit/entry.ts'
import type { Directory } from '../../merchants/directory.ts'
import { unnumbered } from '../../merchants/settings.ts'
import { type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { lockCounted } from '../../platform/database/locks.ts'
import { addDue, cancelDue } from '../../platform/due/store.ts'
import { filled, line, type Output, object, oneOf, optional, read, where } from '../../platform/schema.ts'
import { type SftpPlace, sftpServer } from '../../platform/sftp/server.ts'
import { overAt } from '../owedFiles/deliver.ts'
import { periodOf, periods } from '../owedFiles/period.ts'
import { dropOwed, oweAgain } from '../owedFiles/store.ts'
import { countSchedules, endSchedule, findSchedule, insertSchedule, listSchedules } from './store.ts'

export const scheduledReports = ['transactions', 'settlement', 'chargebacks'] as const
export const scheduledForms = ['csv', 'json'] as const

/** As people write it down. `mode`: which payments. */
export const scheduleSettings = object({
  report: oneOf(scheduledReports),
  every: oneOf(periods),
  form: optional(oneOf(scheduledForms), 'csv'),
  mode: oneOf(['internal', 'external', 'live']),
  ...sftpServer.entries,
  host: unnumbered(sftpServer.entries.host),
  user: unnumbered(where(line, name => name.length <= 100, 'must be at most 100 characters')),
  folder: optional(
    unnumbered(
      where(filled, path => /^[^\p{Cc}]{1,200}$/u.test(path), 'must be at most 200 characters, without control characters'),
    ),
    '.',
  ),
})
export type ScheduleSettings = Output<typeof scheduleSettings>

export type ReportSchedule = {
  readonly ownerId: string
  readonly id: string
  readonly settings: ScheduleSettings
  readonly madeAt: number
  readonly madeBy: string
  readonly endedAt: number | null
}

/** The kind of due work, one row for each schedule. */
export const scheduleWork = 'scheduledReport'
/** More are no report for people. */
export const schedulesMost = 20

type ScheduleParts = Recorder & {
  readonly by: Actor
  readonly random: Random
  readonly database: Pick<Database, 'work'>
  readonly directory: Pick<Directory, 'entity' | 'merchant' | 'businessTime'>
}
export type ScheduleRefusal = { readonly refused: string }

/**
 * The first file is that of the period in which it is made. Throws an OperatorError that names what is wrong in what was given. `namesServers`: is it the staff of the
 * PSP? Others may name a place alone where files of the same entity go already: one key opens the servers of all, and of banks.
 */
export async function makeSchedule(
  parts: ScheduleParts,
  ownerId: string,
  given: unknown,
  namesServers = true,
): Promise<ReportSchedule | ScheduleRefusal> {
  const { clock, random, database, directory, by } = parts
  const kind = directory.entity(ownerId)?.kind
  if (kind === undefined || kind === 'channel') return { refused: 'Reports are scheduled for a merchant, a division or a PSP.' }
  const settings = read(scheduleSettings, given, 'schedule')
  const now = clock.real()
  const id = timeOrderedId(now, random)
  const schedule: ReportSchedule = { ownerId, id, settings, madeAt: now, madeBy: by.id, endedAt: null }
  const businessTime = directory.businessTime(ownerId)
  const day = periodOf(settings.every, businessTime)
  return inTransaction(database.work, async db => {
    await lockCounted(db, 'schedules', [ownerId])
    if ((await countSchedules(db, ownerId)) >= schedulesMost)
      return { refused: `There are ${schedulesMost} schedules already: end one first.` }
    if (!namesServers && !(await isNamed(db, directory, ownerId, settings)))
      return { refused: 'Only the staff of the PSP names a server: yours may be one where files of the same entity go already.' }
    await insertSchedule(db, schedule)
    await addDue(db, scheduleWork, ownerId, id, now + overAt(settings.every, day) - businessTime, { day })
    const { report, every, form, host, port, user, folder } = settings
    await record(db, parts, [
      { action: 'scheduleMade', entityId: ownerId, subject: id, details: { report, every, form, host, port, user, folder } },
    ])
    return schedule
  })
}

async function isNamed(
  db: Connection,
  directory: ScheduleParts['directory'],
  ownerId: string,
  { host, port, user, hostKey, folder }: SftpPlace,
): Promise<boolean> {
  const places = (await listSchedules(db, [ownerId])).map(({ settings }): SftpPlace => settings)
  const receipts = directory.merchant(ownerId)?.settings.receiptFiles
  return [...places, ...(receipts ? [receipts] : [])].some(
    one => one.host === host && one.port === port && one.user === user && one.hostKey === hostKey && one.folder === folder,
  )
}

/** What is owed by it still is given up. False when there is none. */
export const stopSchedule = (parts: ScheduleParts, ownerId: string, id: string): Promise<boolean> =>
  inTransaction(parts.database.work, async db => {
    const now = parts.clock.real()
    if (!(await endSchedule(db, ownerId, id, now))) return false
    await cancelDue(db, scheduleWork, ownerId, id)
    await dropOwed(db, ownerId, id, 'the schedule was ended', now)
    await record(db, parts, [{ action: 'scheduleEnded', entityId: ownerId, subject: id }])
    return true
  })

/** What was given up from a day on is tried again, now. How many files that are; undefined when there is no such schedule. */
export const retrySchedule = (parts: ScheduleParts, ownerId: string, id: string, from: string): Promise<number | undefined> =>
  inTransaction(parts.database.work, async db => {
    const { clock } = parts
    const schedule = await findSchedule(db, ownerId, id)
    if (!schedule || schedule.endedAt !== null) return undefined
    const count = await oweAgain(db, ownerId, id, from, clock.real())
    await addDue(db, scheduleWork, ownerId, id, clock.real())
    await record(db, parts, [{ action: 'filesOwedAgain', entityId: ownerId, subject: id, details: { from, count } }])
    return count
  })
