// Mail to whoever operates the gateway: one digest of what waits for somebody, never a flood. It is due work, so that of many processes one sends it, a
// restart forgets nothing, and what cannot be sent is tried again.

import { createHash } from 'node:crypto'
import { countGivenUp } from '../notifications/deliveries/store.ts'
import { countDisabled } from '../notifications/endpoints/store.ts'
import { nobody } from '../payments/cases/cases.ts'
import { countCasesByKind } from '../payments/cases/store.ts'
import type { Clock } from '../platform/clock.ts'
import { clockAhead } from '../platform/database/clocks.ts'
import { type Connection, type Database, unreachable } from '../platform/database/connect.ts'
import { addDue, measureWork } from '../platform/due/store.ts'
import type { DueHandler } from '../platform/due/worker.ts'
import type { Log } from '../platform/log.ts'
import type { SendMail } from '../platform/mail.ts'
import { countBy, type Figure } from '../platform/metrics.ts'
import { type Alert, digestOf, newsOf, remembered, type ToldAlerts } from './digest.ts'

export type AlertParts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  publicUrl(): string
  /** Absent = nobody is told. */
  readonly alerts?: Alerts
}

export type Alerts = {
  readonly from: string
  readonly to: readonly string[]
  readonly send: SendMail
  count(ended: 'sent' | 'failed'): void
}

export const countMails = (figures: Figure[]): Alerts['count'] =>
  countBy(figures, 'tollgate_alert_mails_total', 'Mails to the alert address by how they ended.', 'ended', ['sent', 'failed'])

export const alertWork = 'alertMail'
const subject = createHash('sha256').update(alertWork).digest('hex').slice(0, 32)

const lookMilliseconds = 60_000
const mailMilliseconds = 600_000
const sendMilliseconds = 45_000

/** Seen by a process, and written down for whoever sends. */
type Seen = { readonly newest: number }
type AlertDetails = {
  readonly told?: ToldAlerts
  readonly mailedAt?: number
  readonly databaseAway?: Seen
  readonly clockWrong?: Seen
}
const seenKinds = ['databaseAway', 'clockWrong'] as const

/** Due work of kind `alertMail`: there is one such row, and it goes on for ever. */
export const alertMail: DueHandler<AlertParts> = async ({ database, clock, publicUrl, alerts }, { details }) => {
  const now = clock.real()
  const { told = {}, mailedAt = 0, ...seen } = details as AlertDetails
  const again = now + lookMilliseconds
  if (!alerts) return { again, well: true } // another process may have the setting
  const found = await findAlerts(database.work, now)
  const happened = seenKinds.flatMap((kind): Alert[] => (seen[kind] ? [{ kind, count: 1, newest: seen[kind].newest }] : []))
  const news = newsOf([...found, ...happened], told, now)
  if (news.length === 0 || now - mailedAt < mailMilliseconds)
    return { again, details: { told: remembered([...found, ...happened], told) }, well: true }
  const mail = digestOf(news, found, publicUrl())
  const hash = createHash('sha256').update(`${mailedAt} ${mail.text}`).digest('hex').slice(0, 32)
  const { from, to, send, count } = alerts
  const host = /@([^>\s]+)>?$/.exec(from)?.[1]
  await send({ from, to, ...mail, id: `<${hash}@${host}>` }, clock.deadline(sendMilliseconds)).catch((error: Error) => {
    count('failed')
    throw error
  })
  count('sent')
  const nowTold = Object.fromEntries(news.map(({ kind, count, newest }) => [kind, { count, newest, at: now }]))
  return { again, details: { told: { ...remembered([...found, ...happened], told), ...nowTold }, mailedAt: now }, well: true }
}

async function findAlerts(db: Connection, now: number): Promise<Alert[]> {
  const weekAgo = now - 7 * 86_400_000
  const [cases, givenUp, disabled, work] = await Promise.all([
    countCasesByKind(db),
    countGivenUp(db, weekAgo),
    countDisabled(db),
    measureWork(db, now),
  ])
  const failing = work.filter(({ kind }) => kind !== alertWork).reduce((sum, one) => sum + one.failing, 0)
  return [
    ...cases.map(({ kind, count, newest }): Alert => ({ kind: `case ${kind}`, count, newest })),
    { kind: 'givenUp', ...givenUp },
    { kind: 'disabledWebhook', count: disabled, newest: null },
    { kind: 'failingWork', count: failing, newest: null },
  ]
}

const watchMilliseconds = 15_000
const silentMilliseconds = 5000

/** Begins the work, and watches what no row can tell: a database that was away, and a clock that is wrong. */
export async function startAlerting(
  { database, clock, log, alerts }: AlertParts,
  isClockTrusted: () => boolean,
): Promise<{ stop(): Promise<void> }> {
  if (!alerts) return { async stop() {} }
  const rightTime = async () => clock.real() - (isClockTrusted() ? 0 : await clockAhead(database.work, () => clock.real()))
  await addDue(database.work, alertWork, nobody, subject, await rightTime())
  let wasAway = false
  let wasTrusted = true
  const look = async (): Promise<void> => {
    const isAway = (await unreachable(database, clock, silentMilliseconds)).length > 0
    const isTrusted = isClockTrusted()
    if (!isAway && wasAway) await write('databaseAway')
    if (!isAway && wasTrusted && !isTrusted) await write('clockWrong')
    wasAway = isAway
    wasTrusted = isTrusted
  }
  const write = async (kind: (typeof seenKinds)[number]): Promise<void> => {
    const newest = await rightTime()
    await addDue(database.work, alertWork, nobody, subject, newest, { [kind]: { newest } satisfies Seen })
  }
  let running: Promise<void> = Promise.resolve()
  const timer = clock.every(watchMilliseconds, () => {
    running = running.then(look).catch((error: Error) => log.warn({ why: error.message }, 'an alert could not be written down'))
  })
  return {
    async stop() {
      timer.cancel()
      await running
    },
  }
}
