// Files of banks and store chains that came.

import { nobody } from '../../payments/cases/cases.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { storableText } from '../../platform/database/json.ts'
import { storedName } from '../storedName.ts'

/** What a bank counts apart. */
export type ReturnSeries = 'slips' | 'transfers'

export type CameFile = {
  readonly id: string
  readonly hash: Buffer
  readonly account: string
  readonly series: ReturnSeries
  readonly name: string
  /** 0: it is not counted. */
  readonly number: number
  readonly madeOn?: string
  readonly refused?: string
  /** Null: of what was refused nothing is kept but its hash. It stays where it came from, and who sends it could fill the database. */
  readonly sealed: Buffer | null
  readonly receivedAt: number
}

/**
 * What was refused before may be read by now; else the same bytes change nothing. When another file has the number: its name, and nothing is stored.
 */
export async function insertCame(db: Connection, file: CameFile): Promise<{ readonly numberOf?: string }> {
  const refused = file.refused === undefined ? null : storableText(file.refused)
  const { rowCount } = await db.query(
    `insert into return_files (merchant_id, id, hash, account, name, number, made_on, refused, sealed, received_at, series)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict do nothing`,
    [
      nobody,
      file.id,
      file.hash,
      file.account,
      storedName(file.name),
      file.number,
      file.madeOn || null,
      refused,
      file.sealed,
      timeParameter(file.receivedAt),
      file.series,
    ],
  )
  if (rowCount === 1) return {}
  // One that was refused before is read with other eyes.
  await db.query(
    `update return_files set id = $6, account = $2, number = $3, made_on = $4, refused = $5, sealed = $7, series = $8 where hash = $1 and refused is not null
        and not exists (select from return_files where account = $2 and series = $8 and number = $3 and number > 0 and hash <> $1)`,
    [file.hash, file.account, file.number, file.madeOn || null, refused, file.id, file.sealed, file.series],
  )
  if (file.number === 0) return {}
  const { rows } = await db.query<{ name: string }>(
    'select name from return_files where account = $1 and series = $4 and number = $2 and hash <> $3',
    [file.account, file.number, file.hash, file.series],
  )
  return rows[0] ? { numberOf: rows[0].name } : {}
}

/** The highest number below one that a file of the account had. */
export async function numberBefore(
  db: Connection,
  account: string,
  series: ReturnSeries,
  number: number,
): Promise<number | undefined> {
  const { rows } = await db.query<{ last: number | null }>(
    'select max(number) as last from return_files where account = $1 and series = $3 and number > 0 and number < $2',
    [account, number, series],
  )
  return rows[0]!.last ?? undefined
}

export type ShownReturn = Pick<CameFile, 'account' | 'name' | 'number' | 'receivedAt'> & {
  readonly madeOn: string | null
  readonly refused: string | null
  readonly lines: number | null
  readonly finishedAt: number | null
}

/** The latest files of some accounts, the newest first. */
export async function findReturns(db: Connection, accounts: readonly string[], limit: number): Promise<ShownReturn[]> {
  const { rows } = await db.query<ShownReturn>(
    `select r.account, r.name, r.number, r.made_on as "madeOn", r.refused, r.received_at as "receivedAt", f.lines, f.finished_at as "finishedAt"
       from return_files r left join clearing_files f on f.hash = r.hash
      where r.account = any ($1) order by r.received_at desc, r.id desc limit $2`,
    [accounts, limit],
  )
  return rows
}
