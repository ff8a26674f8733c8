// tollgate backup: a copy of the embedded database while its gateway works. The keys are no part of it: who finds a backup has no card in it.

import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { tellAndDo } from '../audit/act.ts'
import { buildNumber } from '../platform/build.ts'
import { removeOldBackups, takeBackup } from '../platform/database/backup/take.ts'
import { runningEmbedded } from '../platform/database/find.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'
import { refuseCommand, refuseWords, withOpened } from './open.ts'
import { takeOtherSchemas } from './reads.ts'

export default (program: Command): void => {
  takeOtherSchemas(program.command('backup [folder]'))
    .description(
      'copies the embedded database while its gateway works, into a folder of its own in BACKUP_DIR; the keys are no part of it',
    )
    .option('--keep <count>', 'remove all but so many backups, and what only those needed')
    .action((folder: string | undefined, { keep }: { keep?: string }) =>
      withOpened(async opened => {
        const { config, database, keys, clock } = opened
        if (keep !== undefined && !/^[1-9]\d{0,4}$/.test(keep)) refuseWords('--keep must be a number, at least 1.')
        const connection = config.databaseUrl === undefined ? runningEmbedded(config.dataDir) : undefined
        if (connection === undefined)
          return refuseCommand(
            "DATABASE_URL names a server of your own: back it up with PostgreSQL's tools, see docs/operating-availability.md.",
          )
        const given = folder ?? config.backupDir
        if (!given) return refuseWords('Name a folder for the backup, or set BACKUP_DIR.')
        const backupDir = resolve(given)
        if (existsSync(backupDir) && !statSync(backupDir).isDirectory()) return refuseCommand(`${backupDir} is no folder.`)
        if (`${ledTo(backupDir)}/`.startsWith(`${ledTo(resolve(config.dataDir, 'keys'))}/`))
          return refuseCommand(`${backupDir} is where the keys are: they and a backup are kept apart.`)
        const proofs = await readProofs(database.work)
        const about = {
          mode: config.mode,
          build: buildNumber(),
          keys: Object.fromEntries(proofs.map(({ name, proof }) => [name, proof.toString('hex')])),
        }
        const cluster = join(config.dataDir, 'postgres')
        const told = {
          action: 'backupMade',
          details: { into: backupDir, ...(keep !== undefined && { keep: Number(keep) }) },
        } as const
        const made = await tellAndDo(database.work, opened, told, async ({ came }) => {
          const backup = await takeBackup({ connection, cluster, backupDir, clock, seals: sealsOf(keys), about })
          came.folder = backup.folder
          say(`${backup.folder}: ${Math.ceil(backup.bytes / 1_000_000)} MB.`)
          if (keep !== undefined && backup.unarchived === null) {
            const removed = removeOldBackups(backupDir, Number(keep), backup.folder, sealsOf(keys))
            came.removed = removed
            for (const name of removed) say(`${name} is removed.`)
          }
          return backup
        })
        if (made.unarchived !== null)
          refuseCommand(
            `It leads to its own end and no further: what is written since is not kept, because the archive in BACKUP_DIR does not take ${made.unarchived}. postgres.log in ` +
              `${config.dataDir} says why.${keep === undefined ? '' : ' No older backup was removed.'}`,
          )
        say('The keys are not in it, and without them it cannot be restored: keep them elsewhere.')
      }),
    )
}

/** Where a path leads, through whatever links; what is not there yet is named below what is. */
const ledTo = (path: string): string => (existsSync(path) ? realpathSync(path) : join(ledTo(dirname(path)), basename(path)))

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

/** Under every lookup key, the newest first: a backup from before it was changed is known by the older one. */
export const sealsOf =
  (keys: Keys) =>
  (text: string): string[] =>
    keyedHashes(keys, 'backup', text).map(hash => hash.toString('hex'))
