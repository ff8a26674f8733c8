// The files that go out with numbers, for each acquirer or account: how those of each kind wait behind a database that was put back, until somebody has said what the
// other side has.

import { type Recorder, record } from '../audit/chain.ts'
import type { AuditAction } from '../audit/entry.ts'
import { type CaseKind, nobody, openCase } from '../payments/cases/cases.ts'
import { closeSettled } from '../payments/cases/store.ts'
import { accountsWithTransfers, lastTransferFiles, passTransferFiles } from '../payments/transfers/store.ts'
import { type Clock, type Random, timeOrderedId } from '../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../platform/database/connect.ts'
import { isUnavailable } from '../platform/database/errors.ts'
import { isHeld, type LastFile, type LastFiles, readFileHold, writeFileHold } from '../platform/database/fileHold.ts'
import { readStanding, standingOf } from '../platform/database/installation.ts'
import { acquirersWithCaptures, lastCaptureFiles, passCaptureFiles } from './captures/store.ts'
import { subjectOf } from './reconciliation/store.ts'
import { accountsWithOrders, lastOrderFiles, passOrderFiles } from './remittance/store.ts'

type Chance = { readonly clock: Clock; readonly random: Random }

export type FileSeries = {
  /** As due work names it. */
  readonly name: string
  readonly files: string
  readonly lines: string
  readonly whose: 'account' | 'acquirer'
  readonly other: string
  readonly command: string
  readonly caseKind: CaseKind
  readonly action: AuditAction
  last(db: Connection): Promise<LastFiles>
  /** Of whose files a merchant's lines wait. */
  openOf(db: Connection, merchantId: string): Promise<string[]>
  /** Goes on behind a number. How many lines wait. */
  pass(db: Connection, of: string, behind: number, chance: Chance): Promise<number>
}

export const fileSeries = {
  transfers: {
    name: 'transfers',
    files: 'files of transfers',
    lines: 'refunds',
    whose: 'account',
    other: 'bank',
    command: 'transfers release',
    caseKind: 'transfersHeld',
    action: 'transfersReleased',
    last: lastTransferFiles,
    openOf: accountsWithTransfers,
    pass: (db, account, behind, { clock }) => passTransferFiles(db, account, behind, clock.real()),
  },
  captures: {
    name: 'captures',
    files: 'capture files',
    lines: 'captures',
    whose: 'acquirer',
    other: 'acquirer',
    command: 'acquirers release',
    caseKind: 'capturesHeld',
    action: 'capturesReleased',
    last: lastCaptureFiles,
    openOf: acquirersWithCaptures,
    pass: (db, acquirer, behind, { clock }) => passCaptureFiles(db, acquirer, behind, clock.real()),
  },
  orders: {
    name: 'orders',
    files: 'order files',
    lines: 'orders of slips',
    whose: 'account',
    other: 'bank',
    command: 'slips release',
    caseKind: 'ordersHeld',
    action: 'ordersReleased',
    last: lastOrderFiles,
    openOf: accountsWithOrders,
    pass: (db, account, behind, { clock, random }) =>
      passOrderFiles(db, account, behind, timeOrderedId(clock.real(), random), clock.real()),
  },
} as const satisfies Readonly<Record<string, FileSeries>>

const allSeries: readonly FileSeries[] = Object.values(fileSeries)

/** The last numbers of all, by their subjects. */
export async function lastFilesOfAll(db: Connection): Promise<ReadonlyMap<string, LastFile>> {
  const found: [string, LastFile][] = []
  for (const { name, last } of allSeries) for (const [of, file] of await last(db)) found.push([subjectOf(name, of), file])
  return new Map(found)
}

/** What a merchant has that waits for files. */
export async function openSeries(
  db: Connection,
  merchantId: string,
): Promise<{ readonly series: FileSeries; readonly of: string }[]> {
  const found = []
  for (const series of allSeries) for (const of of await series.openOf(db, merchantId)) found.push({ series, of })
  return found
}

type HoldParts = Chance & { readonly database: Pick<Database, 'work'> }

const minute = 60_000

type Again = { readonly again: number }

/** When due work comes again whose files wait; undefined where they do not. `again`: when it would come otherwise. */
export async function whileHeld(parts: HoldParts, series: FileSeries, of: string, again: Again): Promise<Again | undefined> {
  const db = parts.database.work
  const stands = await readStanding(db)
  if (stands) {
    const now = await standingOf(db).catch(error => {
      if (isUnavailable(error)) throw error
      return stands // a role that may not ask any more notices nothing
    })
    // Somebody looks every few seconds whether it was put back, and has not looked yet.
    if (now !== stands) return { again: parts.clock.real() + minute }
  }
  return (await waitsForRelease(parts, series, of)) ? again : undefined
}

const aboutHold = ({ caseKind }: FileSeries, of: string) => ({ merchantId: nobody, kind: caseKind, subject: of }) as const
const lastOf = async ({ last }: FileSeries, db: Connection, of: string): Promise<number> => (await last(db)).get(of)?.last ?? 0

/** The database was put back, and somebody is told: what waits in it may be in a file that the other side has. Nobody is any more when it was a standby. */
export async function waitsForRelease(parts: HoldParts, series: FileSeries, of: string): Promise<boolean> {
  const db = parts.database.work
  if (!isHeld(await readFileHold(db), subjectOf(series.name, of))) {
    await closeSettled(db, aboutHold(series, of), parts.clock.real(), 'gateway', 'a standby had taken over')
    return false
  }
  await openCase(db, parts, {
    ...aboutHold(series, of),
    details: { [series.whose]: of, last: await lastOf(series, db, of) },
  })
  return true
}

/** More than are written between two backups, less than a number that is mistyped. */
const passedMost = 10_000
const sequenceMost = 999_999

/**
 * Somebody has heard of the other side what it has: `behind` is the number of the last file. How many lines wait for the next, or why not.
 */
export const releaseFiles = (
  parts: Recorder & HoldParts,
  series: FileSeries,
  of: string,
  behind: number,
  by: string,
): Promise<number | 'notHeld' | { readonly last: number }> =>
  inTransaction(parts.database.work, async db => {
    const hold = await readFileHold(db, 'for update')
    const subject = subjectOf(series.name, of)
    if (!isHeld(hold, subject)) return 'notHeld'
    const last = await lastOf(series, db, of)
    if (behind < last || behind > Math.min(last + passedMost, sequenceMost - 1)) return { last }
    const lines = await series.pass(db, of, behind, parts)
    await writeFileHold(db, { ...hold, released: [...hold.released, subject] })
    await closeSettled(db, aboutHold(series, of), parts.clock.real(), by, 'files are written again')
    await record(db, parts, [{ action: series.action, subject: of, details: { behind, last, waiting: lines } }])
    return lines
  })
