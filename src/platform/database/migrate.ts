// Brings the schema up to date: numbered files, forward only, each in one transaction, never changed once applied.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { OperatorError } from '../errors.ts'
import { type Connection, inTransaction } from './connect.ts'
import { databaseLocks } from './locks.ts'

const folder = new URL('../../../migrations/', import.meta.url)

/** A migration that cannot be applied, in words for the operator. */
export class MigrationError extends OperatorError {}

const migrationNames = (): string[] =>
  readdirSync(folder)
    .filter(name => /^\d{4}_.*\.sql$/.test(name))
    .sort()

/** Whether the schema is the one that this program needs; a newer program may have made more of it. */
export async function isMigrated(db: Connection): Promise<boolean> {
  const applied = await appliedMigrations(db)
  return migrationNames().every(name => applied.has(name))
}

/** A sentence about a schema that another program has made, newer or older than this one; undefined for our own. */
export async function otherSchema(db: Connection): Promise<string | undefined> {
  const [applied, ours] = [await appliedMigrations(db), migrationNames()]
  const unknown = [...applied].filter(name => !ours.includes(name))
  if (unknown.length > 0) return `${newerText(unknown)} Use the commands of the build that made it so.`
  const missing = ours.filter(name => !applied.has(name))
  if (missing.length === 0) return undefined
  return `The database is older than this program: it lacks ${missing.join(', ')}. Start a gateway of this build on it first, or use the commands of the build that runs.`
}

const newerText = (unknown: readonly string[]): string =>
  `The database is newer than this program: it knows ${unknown.join(', ')}.`

/** In their order. */
export async function appliedMigrations(db: Connection): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ name: string }>('select name from migrations order by name limit 10000')
  return new Set(rows.map(({ name }) => name))
}

/**
 * Applies what is missing and returns the names of what was applied. Several processes may call it at once. `wanted`: of no others, to make an empty
 * database like one of an older program.
 */
export async function migrate(pool: pg.Pool, at: string, wanted?: ReadonlySet<string>): Promise<string[]> {
  const files = migrationNames().filter(name => wanted?.has(name) ?? true)
  return inTransaction(pool, async connection => {
    await connection.query('select pg_advisory_xact_lock($1)', [databaseLocks.migrations])
    await connection.query(
      'create table if not exists migrations (name text primary key, checksum text not null, applied_at timestamptz not null)',
    )
    const { rows } = await connection.query<{ name: string; checksum: string }>('select name, checksum from migrations')
    const applied = new Map(rows.map(row => [row.name, row.checksum]))
    const unknown = [...applied.keys()].filter(name => !files.includes(name))
    if (unknown.length > 0) throw new MigrationError(newerText(unknown))
    const made: string[] = []
    for (const name of files) {
      const sql = readFileSync(new URL(name, folder), 'utf8')
      const checksum = createHash('sha256').update(sql).digest('hex')
      const before = applied.get(name)
      if (before === checksum) continue
      if (before !== undefined) throw new MigrationError(`The migration ${name} was changed after it had been applied.`)
      for (const statement of statementsOf(sql)) await connection.query(statement)
      await connection.query('insert into migrations (name, checksum, applied_at) values ($1, $2, $3)', [name, checksum, at])
      made.push(name)
    }
    return made
  })
}

/** One by one: what fails is named with its own words, and proxies that know no more than one statement at a time carry it too. */
export function statementsOf(sql: string): string[] {
  const statements = ['']
  for (const [piece] of sql.matchAll(/--[^\n]*|'(?:[^']|'')*'|"[^"]*"|\$(\w*)\$[\s\S]*?\$\1\$|[\s\S]/g)) {
    if (piece === ';') statements.push('')
    else if (!piece.startsWith('--')) statements[statements.length - 1] += piece
  }
  return statements.map(one => one.trim()).filter(one => one !== '')
}
