// src/audit/definitions/definitions.txt: all that migrations make, one thing a line, as the audit compares it with what stands in a database. Written for every
// version of PostgreSQL at once: what one of them writes otherwise is not in it.

import type pg from 'pg'
import { readDefinitions } from '../../src/audit/definitions/store.ts'
import { inTransaction } from '../../src/platform/database/connect.ts'

export const definitionsPath = 'src/audit/definitions/definitions.txt'

export const definitionsText = (database: pg.Pool): Promise<string> =>
  inTransaction(database, async db => {
    const { applied, definitions } = await readDefinitions(db, { names: [] })
    const migrations = [...applied].map(name => ['migration', '', name, ''])
    const made = definitions.map(({ kind, of, name, definition }) => [kind, of, name, definition])
    return `${[...migrations, ...made].map(words => words.join('\t')).join('\n')}\n`
  })
