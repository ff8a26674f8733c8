// A gateway says which database it works on, so that a file of cells that names another one is found out.

import { systemClock } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import { boundAnswer, http } from '../platform/http.ts'
import { databaseId } from './moves/putBack.ts'

const patienceMilliseconds = 2000
const answerBytesMost = 16 * 1024

/** Which database a file names for a cell; or why it is not the cell's, as far as its gateways say. */
export async function databaseOfCell(
  db: Connection,
  gateways: readonly string[],
): Promise<{ readonly database?: string } | { readonly why: string }> {
  const [database, ...told] = await Promise.all([databaseId(db), ...gateways.map(askDatabase)])
  if (database === undefined) return {}
  const stranger = gateways.find((_, at) => told[at] !== undefined && told[at] !== database)
  return stranger === undefined ? { database } : { why: `its gateway ${stranger} works on another database than the file names` }
}

/** Why the database of a cell is not its own, where another one has it too. */
export function whyShared(cell: string, databases: ReadonlyMap<string, string | undefined>): string | undefined {
  const database = databases.get(cell)
  const twin = database && [...databases].find(([other, theirs]) => other !== cell && theirs === database)
  return twin ? `the file names its database for ${twin[0]} too` : undefined
}

/** What the gateway at `host:port` says; undefined when it does not answer, or is of a release that does not say it. */
const askDatabase = (gateway: string): Promise<string | undefined> =>
  new Promise(resolve => {
    const request = http.get(
      `http://${gateway}/health/ready`,
      { headers: { Host: 'localhost' }, agent: false, signal: systemClock.deadline(patienceMilliseconds) },
      response => {
        let text = ''
        response.setEncoding('utf8').on('data', piece => {
          text += piece
        })
        response.on('end', () => resolve(databaseIn(text)))
        response.on('close', () => resolve(undefined))
      },
    )
    boundAnswer(request, answerBytesMost)
    request.on('error', () => resolve(undefined))
  })

function databaseIn(text: string): string | undefined {
  try {
    const { database } = JSON.parse(text) as { database?: unknown }
    return typeof database === 'string' ? database : undefined
  } catch {
    return undefined
  }
}
