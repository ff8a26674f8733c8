// Figures that are the same for all processes of a database: it is asked once for all of them.

import { measureArchive } from '../archive/metrics.ts'
import type { SlipAccounts } from '../connectors/slips/accounts.ts'
import { measureDeliveries } from '../notifications/metrics.ts'
import { measureOutbox, measureReversals } from '../payments/metrics.ts'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { measureFollowing } from '../platform/database/following.ts'
import { measureWal } from '../platform/database/metrics.ts'
import { measureDue } from '../platform/due/metrics.ts'
import type { Log } from '../platform/log.ts'
import { measureRetention } from '../platform/retention/erase.ts'
import type { Kept } from '../platform/retention/kept.ts'
import { type FigureSource, sourceOf } from '../platform/scrape.ts'
import { measureSlipNumbers } from '../slips/metrics.ts'
import { dueHandlers } from './assemble.ts'

export const measuresOf = (
  database: Database,
  clock: Clock,
  log: Log,
  {
    retention,
    slips,
    backupDir,
  }: { readonly retention: readonly Kept[]; readonly slips: SlipAccounts; readonly backupDir?: string },
): FigureSource[] =>
  [
    measureDue(database, clock, [...dueHandlers.keys()]),
    measureDeliveries(database, clock, log),
    measureReversals(database, clock),
    measureOutbox(database, clock),
    measureFollowing(database, clock),
    measureRetention({ clock, database, retention }),
    measureArchive(database, clock),
    measureSlipNumbers(database, slips),
    ...(backupDir === undefined ? [] : [measureWal(database)]),
  ].map(sourceOf)
