// Returns that something else puts into a folder: each is read to its end and then moved aside, so that whoever comes after a dead process finds what is left.
// Due work that any process may take, one row for each account.

import { lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { nobody } from '../../payments/cases/cases.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/connect.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { moveInto, readLongFile, whoMayReplace } from '../../platform/files.ts'
import type { Log } from '../../platform/log.ts'
import { importBankFile, refuseFile } from '../intake/bankFile.ts'
import { subjectOf } from '../reconciliation/store.ts'
import type { ReturnParts, ReturnReport } from './importReturn.ts'
import { returnBytesMost, tooLong } from './rows.ts'

export type ReturnFolderParts = ReturnParts & { readonly log: Log; readonly slipAccounts: SlipAccounts }

const everyMilliseconds = 60_000
/** What was changed a moment ago may be written still. */
const restMilliseconds = 10_000

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
    for (const { name, report } of await importFolder(parts, account, account.returns.folder))
      if ('broken' in report) parts.log.warn({ why: `${account.name}: ${name}: ${report.broken}` }, 'a return was refused')
      else parts.log.info({ why: `${account.name}: ${name}` }, 'a return was read')
  return { again: parts.clock.real() + everyMilliseconds }
}

export type FolderFile = { readonly name: string; readonly report: ReturnReport | { readonly broken: string } }

/** Files in the order of their names; what begins with a dot or ends as half a file does is left. They go to `done` or `refused` beside them. */
export async function importFolder(parts: ReturnParts, account: SlipAccount, folder: string): Promise<FolderFile[]> {
  const read: FolderFile[] = []
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name)
    if (/^\.|\.(tmp|part|filepart)$/i.test(name) || !isAtRest(path, parts.clock.real())) continue
    const bytes = await readLongFile(path, returnBytesMost, 'noLink')
    const report =
      typeof bytes === 'number'
        ? await refuseFile(parts, account, name, tooLong(bytes))
        : await importBankFile(parts, account, name, bytes)
    moveAside(folder, name, 'broken' in report ? 'refused' : 'done')
    read.push({ name, report })
  }
  return read
}

function isAtRest(path: string, now: number): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true && now - stat.mtimeMs >= restMilliseconds
}

/** Nothing is written over. */
function moveAside(folder: string, name: string, to: 'done' | 'refused'): void {
  const aside = join(folder, to)
  mkdirSync(aside, { recursive: true, mode: 0o700 })
  // Whoever puts files here is another user as a rule, and could have theirs moved to where only we may write.
  const stat = lstatSync(aside)
  const isLink = stat.isSymbolicLink()
  if (isLink && ![0, process.getuid?.()].includes(stat.uid)) throw new Error(`${aside} is a link of another user`)
  if (isLink && whoMayReplace(folder) !== undefined) throw new Error(`${aside} is a link that others may replace`)
  moveInto(join(folder, name), aside, { followsLink: isLink })
}
