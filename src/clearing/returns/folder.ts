// Returns that something else puts into a folder: each is read to its end and then moved aside, so that whoever comes after a dead process finds what is left.
// Due work that any process may take, one row for each account.

import { isUtf8 } from 'node:buffer'
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, type Stats } from 'node:fs'
import { basename, join } from 'node:path'
import type { SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { nobody } from '../../payments/cases/cases.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/connect.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { freeIn, moveInto, readLongFile, whoMayReplace } from '../../platform/files.ts'
import type { Log } from '../../platform/log.ts'
import { importBankFile, notMoved, refuseFile, tellFailed } from '../intake/bankFile.ts'
import { subjectOf } from '../reconciliation/store.ts'
import { storedName } from '../storedName.ts'
import type { ReturnParts, ReturnReport } from './importReturn.ts'
import { returnBytesMost, tooLong } from './rows.ts'

export type ReturnFolderParts = ReturnParts & { readonly log: Log; readonly slipAccounts: SlipAccounts }

const everyMilliseconds = 60_000
/** What was changed a moment ago may be written still. */
const restMilliseconds = 10_000
/** Clocks that are further apart make a file wait for longer than somebody who waits for it. */
const aheadMilliseconds = 60_000

/** Called at every start. */
export async function beginReturnFolders({
  database,
  clock,
  slipAccounts,
}: {
  readonly database: Pick<Database, 'work'>
  readonly clock: Clock
  readonly slipAccounts: SlipAccounts
}): Promise<void> {
  for (const [name, { returns }] of slipAccounts)
    if (returns?.folder !== undefined)
      await addDue(database.work, 'returnFolder', nobody, subjectOf('returns', name), clock.real(), { account: name })
}

/** Due work of kind `returnFolder`. */
export const returnFolder: DueHandler<ReturnFolderParts> = async (parts, { details }) => {
  const account = parts.slipAccounts.get((details as { account: string }).account)
  if (account?.returns?.folder !== undefined)
    for (const { name, report } of await importFolder(parts, account, account.returns.folder)) {
      const file = `${account.name}: ${storedName(name)}`
      if ('broken' in report) parts.log.warn({ why: `${file}: ${report.broken}` }, 'a return was refused')
      else parts.log.info({ why: file }, 'a return was read')
    }
  return { again: parts.clock.real() + everyMilliseconds }
}

export type FolderFile = { readonly name: string; readonly report: ReturnReport | { readonly broken: string } }

/** Files in the order of their names; what begins with a dot or ends as half a file does is left. They go to `done` or `refused` beside them. */
export async function importFolder(parts: ReturnParts, account: SlipAccount, folder: string): Promise<FolderFile[]> {
  const read: FolderFile[] = []
  const names = readdirSync(folder, 'buffer').map(bytes => ({ bytes, name: bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1') }))
  for (const { bytes, name } of names.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (/^\.|\.(tmp|part|filepart)$/i.test(name)) continue
    const path = Buffer.concat([Buffer.from(`${folder}/`), bytes])
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (!stat?.isFile()) continue
    const rest = restOf(stat, parts.clock.real())
    if (rest >= restMilliseconds) read.push({ name, report: await takeNamed(parts, account, folder, name, path, stat) })
    else if (rest < -aheadMilliseconds) read.push({ name, report: await refuseFile(parts, account, name, isAhead) })
  }
  return read
}

const isAhead = 'its time is ahead of the clock of the gateway, and it is not read before: put the clocks right, or copy the file'

/** Nothing here and in the database can say a name that is no UTF-8: the file gets the one that Latin-1 makes of it. */
async function takeNamed(
  parts: ReturnParts,
  account: SlipAccount,
  folder: string,
  name: string,
  path: Buffer,
  stat: Stats,
): Promise<FolderFile['report']> {
  if (isUtf8(path)) return takeFile(parts, account, folder, name, stat)
  let free: string
  try {
    free = freeIn(folder, name)
    renameSync(path, free)
  } catch (error) {
    return refuseFile(parts, account, name, `its name is not UTF-8, and it cannot get another: ${(error as Error).message}`)
  }
  return takeFile(parts, account, folder, basename(free), stat)
}

/** What throws stays where it is, and keeps none behind it out. */
async function takeFile(
  parts: ReturnParts,
  account: SlipAccount,
  folder: string,
  name: string,
  stat: Stats,
): Promise<FolderFile['report']> {
  const path = join(folder, name)
  let bytes: Buffer | number
  try {
    bytes = await readLongFile(path, returnBytesMost, 'noLink')
  } catch (error) {
    return refuseFile(parts, account, name, `it could not be read: ${(error as Error).message}`)
  }
  let report: FolderFile['report']
  try {
    report =
      typeof bytes === 'number'
        ? await refuseFile(parts, account, name, tooLong(bytes))
        : await importBankFile(parts, account, name, bytes)
  } catch (error) {
    return tellFailed(parts, account, name, 'it could not be read', error)
  }
  try {
    moveAside(folder, name, stat, 'broken' in report ? 'refused' : 'done')
    return report
  } catch (error) {
    if (!existsSync(path)) return report // another process has moved it
    return refuseFile(parts, account, name, `${'broken' in report ? report.broken : notMoved}: ${(error as Error).message}`)
  }
}

/** For how long nobody has changed it. Its time may have been given to it, and be ahead: then that at which it got it counts. */
const restOf = (stat: Stats, now: number): number => now - (stat.mtimeMs > now ? stat.ctimeMs : stat.mtimeMs)

/** Nothing is written over, and what took its name while it was read stays for the next look. */
function moveAside(folder: string, name: string, file: Stats, to: 'done' | 'refused'): void {
  const aside = join(folder, to)
  mkdirSync(aside, { recursive: true, mode: 0o700 })
  // Whoever puts files here is another user as a rule, and could have theirs moved to where only we may write.
  const stat = lstatSync(aside)
  const isLink = stat.isSymbolicLink()
  if (isLink && ![0, process.getuid?.()].includes(stat.uid)) throw new Error(`${aside} is a link of another user`)
  if (isLink && whoMayReplace(folder) !== undefined) throw new Error(`${aside} is a link that others may replace`)
  moveInto(join(folder, name), aside, file, { followsLink: isLink })
}
