// What the two roles of a reporting database may read, by name: who reads there, and as whom it is read from a cell. Both are given this and no more; a role that
// may do more is told to the operator. `pg_read_all_data` would be far more: catalogues too, with the passwords of roles and, in subscriptions, of cells.

import pg from 'pg'
import type { Connection } from '../../platform/database/connect.ts'
import { type PublishedTable, published } from './published.ts'
import { isReporting } from './whose.ts'

type ReadingRole = 'replicator' | 'reader'

/** `replicator`: in a cell, as whom the reporting server reads; `reader`: in the reporting database, what gateways and commands ask for. */
const readings: Readonly<Record<ReadingRole, readonly Pick<PublishedTable, 'table' | 'columns'>[]>> = {
  replicator: published,
  reader: [...published, { table: 'migrations' }, { table: 'reporting_sources' }],
}

/** Gives what is missing; `db`: as the owner of the tables. */
export async function grantReading(db: Connection, role: string, kind: ReadingRole): Promise<void> {
  const name = pg.escapeIdentifier(role)
  const { rows } = await db.query<{ schema: string; uses: boolean }>(
    `select current_schema() as schema, has_schema_privilege($1, current_schema(), 'usage') as uses`,
    [role],
  )
  const { schema, uses } = rows[0]!
  if (!uses) await db.query(`grant usage on schema ${pg.escapeIdentifier(schema)} to ${name}`)
  for (const { table, columns } of readings[kind])
    await db.query(`grant select${columns ? ` (${columns.join(', ')})` : ''} on ${table} to ${name}`)
}

/** Undefined where there is no such role. */
export const findRole = async (db: Connection, role: string): Promise<string | undefined> =>
  (await db.query<{ role: string }>('select rolname as role from pg_roles where rolname = $1', [role])).rows[0]?.role

/** What no role of these two is: the attribute, what it may do, the word that takes it away. */
const attributes: Readonly<Record<string, readonly [may: string, without: string, kinds: readonly ReadingRole[]]>> = {
  rolcreaterole: ['make roles', 'nocreaterole', ['replicator', 'reader']],
  rolcreatedb: ['make databases', 'nocreatedb', ['replicator', 'reader']],
  rolbypassrls: ['go round row security', 'nobypassrls', ['replicator', 'reader']],
  rolreplication: ['replicate', 'noreplication', ['reader']],
}

/**
 * A sentence for each thing that a role may do beyond what it is for, in the database that is asked; without a name it is the role that signed in there,
 * which may take back one that it was set to. Whoever is a member of another role may become that one, whatever it inherits. What extensions bring is not ours.
 */
export async function rightsBeyond(db: Connection, kind: ReadingRole, role?: string): Promise<string[]> {
  const { rows } = await db.query<{
    role: string
    super: boolean
    attributes: Readonly<Record<string, boolean>>
    member: string[]
    reads: string[]
    writes: string[]
  }>(
    `with self as (select * from pg_roles where rolname = coalesce($1, session_user)),
       known as (select * from json_to_recordset($2) as known ("table" text, columns json)),
       own as (select oid, relname::text as name from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm')
                 and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')),
       columns as (select o.name, a.attrelid, a.attnum from own o join pg_attribute a on a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped
                    where not exists (select from known k where k."table" = o.name
                           and (k.columns is null or a.attname in (select json_array_elements_text(k.columns))))
                   union all
                   select attrelid::regclass::text, attrelid, attnum from pg_attribute
                    where (attrelid, attname) in (('pg_authid'::regclass, 'rolpassword'), ('pg_subscription'::regclass, 'subconninfo')))
     select rolname as role, rolsuper as super, row_to_json(self) as attributes,
            (select coalesce(json_agg(distinct roleid::regrole::text), '[]') from pg_auth_members where member = self.oid) as member,
            (select coalesce(json_agg(distinct name order by name), '[]') from columns
              where has_column_privilege(self.oid, attrelid, attnum, 'select')) as reads,
            (select coalesce(json_agg(name order by name), '[]') from own
              where has_table_privilege(self.oid, oid, 'insert, update, delete, truncate')
                 or has_any_column_privilege(self.oid, oid, 'insert, update')) as writes
       from self`,
    [role ?? null, JSON.stringify(readings[kind])],
  )
  return rows.flatMap(found => {
    if (found.super) return [`The role ${found.role} is a superuser: name one that only reads.`]
    const some = (names: readonly string[]) =>
      names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '')
    return [
      ...Object.entries(attributes)
        .filter(([name, [, , kinds]]) => found.attributes[name] && kinds.includes(kind))
        .map(([, [may, without]]) => `The role ${found.role} may ${may}: alter role ${found.role} ${without}.`),
      ...found.member.map(one => `The role ${found.role} is a member of ${one}: revoke ${one} from ${found.role}.`),
      ...(found.reads.length > 0 ? [`The role ${found.role} may read ${some(found.reads)}.`] : []),
      ...(found.writes.length > 0 ? [`The role ${found.role} may write ${some(found.writes)}.`] : []),
    ]
  })
}

/** The same of whoever asks in a reporting database; nothing of a standby, where the gateway's own role reads what it may read anyway. */
export async function rightsOfReader(db: Connection): Promise<string[]> {
  return (await isReporting(db)) ? rightsBeyond(db, 'reader') : []
}
