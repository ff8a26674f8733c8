// tollgate archive: old chains of payments out of the database into files, and back.

import type { Command } from 'commander'
import {
  type ArchiveParts,
  bringBack,
  cancelArchive,
  checkArchive,
  eraseArchived,
  findChainIn,
  writeArchive,
} from '../archive/archive.ts'
import { type Archive, findArchives } from '../archive/store.ts'
import { systemClock } from '../platform/clock.ts'
import { makeLog } from '../platform/log.ts'
import { watchClock } from '../start/clockWatch.ts'
import { chainTables } from '../start/kept.ts'
import { type CommandParts, looksLikeId, readDate, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

export default (program: Command): void => {
  const archive = program
    .command('archive')
    .description('old payments out of the database into files, with all that refers to them, and back')

  reads(archive.command('list').description('the files that payments were archived in'), {
    'archives[]': 'id name before beganAt inFile chains payments lines endedAt sha256',
  }).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const archives = await findArchives(database.work)
      const document = archives.map(({ proof, ...one }) => ({
        ...one,
        before: timeField(one.before),
        beganAt: timeField(one.beganAt),
        endedAt: timeField(one.endedAt),
        sha256: proof?.toString('hex') ?? null,
      }))
      show(options, { archives: document }, () =>
        table([
          ['file', 'before', 'chains', 'payments', 'state', 'SHA-256'],
          ...archives.map(one => [
            one.name,
            timeText(one.before),
            one.chains,
            one.payments,
            stateOf(one),
            one.proof?.toString('hex') ?? '',
          ]),
        ]),
      )
    }),
  )

  archive
    .command('write <file>')
    .description('writes settled chains, all of whose operations are older, into a new file; nothing leaves the database yet')
    .requiredOption('--before <day>', 'the first day that stays, in UTC; of live payments at least 550 days ago')
    .action((file: string, { before }: { before: string }) =>
      withArchives(async parts => {
        const at = Date.parse(readDate('--before', before))
        const { name, inFile, proof } = await writeArchive(parts, file, at)
        say(`${name}: ${inFile} chains, SHA-256 ${proof!.toString('hex')}.`)
        say(`Carry a copy to a safe place. Then take them out of the database: tollgate archive erase ${file}`)
      }),
    )

  archive
    .command('erase <file>')
    .description('takes out of the database what a file has; what changed since it was written stays')
    .action((file: string) =>
      withArchives(async parts => {
        const { name, inFile, chains, payments } = await eraseArchived(parts, file)
        say(`${chains} chains with ${payments} payments of ${name} are out of the database.`)
        if (chains < inFile)
          say(`${inFile - chains} are in the file and in the database: something happened to them, or they came back.`)
      }),
    )

  archive
    .command('check <file>')
    .description('compares a file with the sums that stand for it; ends with 1 when they differ')
    .action((file: string) =>
      withArchives(async parts => {
        const findings = await checkArchive(parts, file)
        for (const finding of findings) say(finding)
        if (findings.length > 0) process.exitCode = 1
        else say('The file agrees with its sums.')
      }),
    )

  archive
    .command('show <file> <id>')
    .description('prints all rows of the chain of a payment as the file has them, as JSON')
    .action((file: string, id: string) =>
      withArchives(async parts => {
        const { text } = await findChainIn(parts, file, idFrom(id))
        say(JSON.stringify(JSON.parse(text), null, 2))
      }),
    )

  archive
    .command('bring-back <file> <id>')
    .description('puts the chain of a payment back into the database, for example for a late chargeback')
    .action((file: string, id: string) =>
      withArchives(async parts => say(`The chain ${await bringBack(parts, file, idFrom(id))} is back.`)),
    )

  archive
    .command('cancel')
    .description('gives up an archive of which nothing is out of the database yet; its file is left')
    .action(() => withArchives(async parts => say(`${await cancelArchive(parts)} is given up.`)))
}

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

const stateOf = ({ endedAt, proof, chains, inFile }: Archive): string => {
  if (endedAt !== null) return 'done'
  if (proof === null) return 'being written'
  return chains === 0 ? 'written' : `${chains} of ${inFile} taken out`
}

function idFrom(id: string): string {
  if (!looksLikeId(id)) refuseWords('A payment is named by its 32 hex characters.')
  return id
}

/** A clock that is ahead would take what is young. */
const withArchives = (work: (parts: ArchiveParts) => Promise<void>): Promise<void> =>
  withOpened(async (opened: CommandParts) => {
    await (await watchClock(opened.database.work, systemClock, makeLog('silent'))).stop()
    await work({ ...opened, mode: opened.config.mode, tables: chainTables })
  })
