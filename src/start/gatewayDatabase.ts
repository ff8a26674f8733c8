// A gateway says which database it works on, so that a file of cells that names another one is found out.

import { systemClock } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import { type DatabaseIds, readDatabaseIds } from '../platform/database/installation.ts'
import { ask } from '../platform/http.ts'

const patienceMilliseconds = 2000
const answerBytesMost = 16 * 1024

/** `unsure`: why nobody says that the cell's gateways work on it. */
export type CellDatabase = { readonly database?: string; readonly unsure?: string }

/** Which database a file names for a cell; or why it is not the cell's, as far as its gateways say. Without gateways nobody is asked. */
export async function databaseOfCell(
  db: Connection,
  gateways: readonly string[],
): Promise<CellDatabase | { readonly why: string }> {
  if (!(await takesWrites(db))) return { why: 'its database takes no writes: it is a standby, or was set to be read only' }
  const [ours, ...told] = await Promise.all([readDatabaseIds(db), ...gateways.map(askDatabase)])
  const stranger = gateways.find((_, at) => isAnother(ours, told[at]!))
  if (stranger !== undefined) return { why: `its gateway ${stranger} works on another database than the file names` }
  const isUnsure = gateways.length > 0 && told.every(({ database }) => database === undefined)
  return { ...(ours && { database: ours.database }), ...(isUnsure && { unsure: nobodySays }) }
}

const nobodySays = 'none of its gateways says which database it works on: start one, and ask from its network'

/** A gateway of an older release does not say which server has it. */
const isAnother = (ours: DatabaseIds | undefined, { database, server }: Partial<DatabaseIds>): boolean =>
  (database !== undefined && database !== ours?.database) || (server !== undefined && server !== ours?.server)

/** What a standby says may be long over. */
async function takesWrites(db: Connection): Promise<boolean> {
  const { rows } = await db.query<{ isReadOnly: boolean }>(
    `select current_setting('transaction_read_only')::boolean as "isReadOnly"`,
  )
  return !rows[0]!.isReadOnly
}

/** Why the database of a cell is not its own, where another one has it too. */
export function whyShared(cell: string, databases: ReadonlyMap<string, string | undefined>): string | undefined {
  const database = databases.get(cell)
  const twin = database && [...databases].find(([other, theirs]) => other !== cell && theirs === database)
  return twin ? `the file names its database for ${twin[0]} too` : undefined
}

/** What the gateway at `host:port` says; nothing when it does not answer, or is of a release that does not say it. */
const askDatabase = (gateway: string): Promise<Partial<DatabaseIds>> =>
  new Promise(resolve => {
    const signal = systemClock.deadline(patienceMilliseconds)
    const request = ask(`http://${gateway}/health/ready`, { headers: { Host: 'localhost' }, signal }, answerBytesMost)
    request.once('response', response => {
      let text = ''
      response.setEncoding('utf8').on('data', piece => {
        text += piece
      })
      response.on('end', () => resolve(idsIn(text)))
      response.on('close', () => resolve({}))
    })
    request.on('error', () => resolve({}))
    request.end()
  })

function idsIn(text: string): Partial<DatabaseIds> {
  try {
    const { database, server } = JSON.parse(text) as Record<string, unknown>
    return { ...(typeof database === 'string' && { database }), ...(typeof server === 'string' && { server }) }
  } catch {
    return {}
  }
}
