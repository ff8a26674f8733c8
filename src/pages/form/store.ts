// The scripts of all releases that this installation has served, by hash.

import type { Connection } from '../../platform/database/connect.ts'
import type { BuiltFile } from './build.ts'

export async function keepScripts(db: Connection, files: readonly BuiltFile[], now: number): Promise<void> {
  await db.query(
    `insert into form_scripts (hash, name, content, made_at)
     select hash, name, content, to_timestamp($4::double precision / 1000)
       from unnest($1::text[], $2::text[], $3::text[]) as given (hash, name, content)
     on conflict do nothing`,
    [files.map(({ hash }) => hash), files.map(({ name }) => name), files.map(({ content }) => content), now],
  )
}

export async function findScript(db: Connection, hash: string, name: string): Promise<string | undefined> {
  const { rows } = await db.query<{ content: string }>('select content from form_scripts where hash = $1 and name = $2', [
    hash,
    name,
  ])
  return rows[0]?.content
}
