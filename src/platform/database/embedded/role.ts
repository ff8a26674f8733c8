// The gateway's role: it owns the database and is no superuser, so that no statement of its can read files or run programs. It is made in
// single-user mode, while nobody can connect; afterwards no other role is let in.

import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { FolderError } from '../folder.ts'
import { start } from './account.ts'
import { readOwn, writeOwn } from './ownFile.ts'
import { database, type EmbeddedPlace, role } from './place.ts'

export const doorsFile = 'pg_hba.conf'
/** Of all versions of it. */
export const doorsHeading = '# Written by Tollgate:'
const doors = `${doorsHeading} its own role, by the unix socket, and nobody else. It may begin and end backups.\nlocal ${database} ${role} trust\n`
// A test makes databases of its own beside it.
const doorsOfTests = doors.replace(` ${database} `, ' all ')

/** Does nothing where it was done before; a cluster of the time before had a superuser, whose tables pass to the role. */
export async function makeRole({ binaries, account }: EmbeddedPlace, cluster: string, fast: boolean): Promise<void> {
  const wanted = fast ? doorsOfTests : doors
  const present = existsSync(join(cluster, doorsFile)) ? readOwn(cluster, doorsFile).toString() : ''
  if (present === wanted) return
  if (present !== doors && present !== doorsOfTests) {
    for (const [name, statements] of Object.entries(made)) await alone(name, statements)
  }
  if (fast) await alone('postgres', [`alter role ${role} createdb`])
  writeOwn(cluster, doorsFile, wanted)

  async function alone(name: string, statements: readonly string[]): Promise<void> {
    const args = ['--single', '-j', '-D', cluster, ...(fast ? ['-F'] : []), name]
    const server = start(binaries.postgres, args, account, { stdio: ['pipe', 'ignore', 'pipe'] })
    let complaint = ''
    server.stderr!.on('data', chunk => {
      complaint += chunk
    })
    server.stdin!.on('error', () => {}) // it has ended, and its status says so
    server.stdin!.end(statements.map(statement => `${statement};\n\n`).join(''))
    const [status] = await once(server, 'close')
    if (status !== 0)
      throw new FolderError(`PostgreSQL could not prepare its files in ${cluster} (${status}). ${complaint.trim()}`)
  }
}

/** By database; a statement whose work was done already fails there, and the next ones are tried all the same. */
const made: Readonly<Record<string, readonly string[]>> = {
  postgres: [
    `create role ${role} login`,
    `grant pg_checkpoint to ${role}`,
    `create database ${database}`,
    `alter database ${database} owner to ${role}`,
  ],
  [database]: [
    `do $$ declare one record; begin
       for one in select c.oid::regclass as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v')
       loop execute format('alter table %s owner to ${role}', one.name); end loop;
       for one in select p.oid::regprocedure as name from pg_proc p where p.pronamespace = 'public'::regnamespace
       loop execute format('alter routine %s owner to ${role}', one.name); end loop;
     end $$`,
    `grant execute on function pg_backup_start, pg_backup_stop to ${role}`,
  ],
}
