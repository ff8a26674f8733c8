// Whose a database is: a gateway's, that of reports, or nobody's yet. What each writes before all else, and the other never does, says so, at whatever step it was ended.

import type { Connection } from '../../platform/database/connect.ts'
import { OperatorError } from '../../platform/errors.ts'
import { readProofs } from '../../vault/store.ts'
import { published, takingTrigger } from './published.ts'

/** A gateway proves its seal key in the transaction that makes a database its own; for reports nothing is sealed. */
export const isGateways = async (db: Connection): Promise<boolean> =>
  (await readProofs(db)).some(({ name }) => name.startsWith('seal'))

/** Whether the tables were prepared to take rows of others: before the first cell is followed, and after the last one was ended. */
export async function isReporting(db: Connection): Promise<boolean> {
  const { table } = published[0]!
  const { rows } = await db.query<{ there: boolean }>(
    'select exists (select from pg_trigger where tgrelid = to_regclass($1) and tgname = $2) as there',
    [table, takingTrigger(table)],
  )
  return rows[0]!.there
}

/** What subscribes to others has their payments, and would be a second place where money moves. */
export async function refuseReporting(db: Connection): Promise<void> {
  if (!(await isReporting(db)) || (await isGateways(db))) return
  const { rows } = await db.query<{ source: string }>('select source from reporting_sources order by source')
  const names = rows.length > 0 ? rows.map(({ source }) => source).join(', ') : 'none at present'
  throw new OperatorError(
    `This database follows others for reports (${names}) and takes no payments: name it in REPORTING_DATABASE_URL.`,
  )
}
