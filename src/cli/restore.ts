// tollgate restore: an empty DATA_DIR gets the database of a backup, as it was at its end or at a moment since.

import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { restoreBackup } from '../platform/database/backup/restore.ts'
import { compareModes, type InstallationMode, readMode } from '../platform/database/installation.ts'
import { readConfig } from '../start/config.ts'
import { compareKeys } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'
import { sealsOf } from './backup.ts'
import { readTime, refuseCommand, runCommand, tellOfDatabase } from './open.ts'

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

export default (program: Command): void => {
  program
    .command('restore <backup>')
    .description(
      'makes the database of an empty DATA_DIR from a backup, or from the newest that fits of a folder with backups; the keys must be there',
    )
    .option(
      '--to <time>',
      'as it was then, for example 2026-01-31T12:00:00Z; otherwise with all that the archive beside the backup has',
    )
    .action((from: string, { to }: { to?: string }) => runCommand(() => restore(from, readTime('--to', to))))
}

async function restore(from: string, to: number | undefined): Promise<void> {
  const { mode, databaseUrl, dataDir, embeddedUser: user, keys: readKeys } = readConfig(process.env, projectFolder)
  if (databaseUrl !== undefined)
    refuseCommand("DATABASE_URL names a server of your own: restore it with PostgreSQL's tools. Nothing was changed.")
  const keys = readKeys()
  const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
  const { manifest } = await restoreBackup({
    from,
    dataDir,
    to,
    user,
    strict: mode === 'live',
    seals: sealsOf(keys),
    say,
    compare(manifest) {
      compareModes(manifest.mode as InstallationMode, mode)
      compareKeys(
        Object.entries(manifest.keys).map(([name, proof]) => ({ name, proof: Buffer.from(proof, 'hex') })),
        keys,
      )
    },
    async examine(pool) {
      compareModes(await readMode(pool), mode)
      compareKeys(await readProofs(pool), keys)
      const details = { from, ...(to !== undefined && { to: new Date(to).toISOString() }) }
      await tellOfDatabase(pool, keys, { action: 'databaseRestored', details })
    },
  })
  say(
    `The backup of ${new Date(manifest.beganAt).toISOString()} is restored in ${dataDir}${to === undefined ? '' : `, as all stood at ${new Date(to).toISOString()}`}. Start the gateway, look at it with \`bin/tollgate doctor\`, ` +
      'and make a new backup. What acquirers were told after that moment is known to them alone. ' +
      'Slips that were issued since are with shoppers: pass over their numbers with `bin/tollgate slips skip ACCOUNT COUNT` before the gateway runs. ' +
      'Files of transfers, capture files and order files wait until you say what the other side has already (`bin/tollgate transfers release`, `acquirers release`, `slips release`). ' +
      'Merchants may have left a cell of several since: give `bin/tollgate cells restored --cells FILE --cell NAME` as soon as its gateway runs, and before the proxy leads to it.',
  )
}
