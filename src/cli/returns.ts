// tollgate returns: files of banks and store chains about slips, what came of them, and the files that go to banks.

import { basename } from 'node:path'
import type { Command } from 'commander'
import { tellRefused } from '../clearing/handedIn.ts'
import { countUnfiledOrders, findOrderFiles } from '../clearing/remittance/store.ts'
import { type FolderFile, importFolder } from '../clearing/returns/folder.ts'
import { importReturn, type ReturnParts, type ReturnReport, returnsOf } from '../clearing/returns/importReturn.ts'
import { readReturn } from '../clearing/returns/readReturn.ts'
import { returnBytesMost } from '../clearing/returns/rows.ts'
import { findReturns } from '../clearing/returns/store.ts'
import { inTurns } from '../clearing/steps.ts'
import { storedNameAt } from '../clearing/storedName.ts'
import type { SlipAccount } from '../connectors/slips/accounts.ts'
import { buildNumber } from '../platform/build.ts'
import type { Config } from '../start/config.ts'
import { chosenOf, collectLines, type FileLineText, lineText } from './files.ts'
import { type CommandParts, readBytes, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type AccountOptions = ReadOptions & { readonly account?: string }
type ImportOptions = AccountOptions & { readonly folder?: true; readonly sameNumber?: true }

const filesMost = 100

export default (program: Command): void => {
  const returns = program.command('returns').description('files of banks and store chains about slips, and order files to banks')

  const list = returns
    .command('list')
    .description('what came and what went, the latest first, and what waits for the next file to a bank')
    .option('--account <name>', 'only of this account')
  reads(list, {
    'returns[]': 'account name number madeOn refused lines receivedAt finishedAt',
    'orderFiles[]': 'account sequence day name orders writtenAt',
    'waiting[]': 'account orders',
  }).action((options: AccountOptions) =>
    withOpened(async ({ database, config }) => {
      const names = chosenAccounts(config, options.account).map(({ name }) => name)
      const came = await findReturns(database.work, names, filesMost)
      const went = await findOrderFiles(database.work, names, filesMost)
      const waiting = await countUnfiledOrders(database.work, names)
      const document = {
        returns: came.map(one => ({ ...one, receivedAt: timeField(one.receivedAt), finishedAt: timeField(one.finishedAt) })),
        orderFiles: went.map(one => ({ ...one, writtenAt: timeField(one.writtenAt) })),
        waiting,
      }
      show(options, document, () =>
        [
          ...waiting.map(one => `${one.account}: ${one.orders} orders wait for a file.\n`),
          table([
            ['account', 'return', 'number', 'made', 'lines', 'came', 'read to its end', 'refused'],
            ...came.map(one => [
              one.account,
              one.name,
              one.number,
              one.madeOn,
              one.lines,
              timeText(one.receivedAt),
              timeText(one.finishedAt),
              one.refused,
            ]),
          ]),
          table([
            ['account', 'order file', 'number', 'day', 'orders', 'written'],
            ...went.map(one => [one.account, one.name, one.sequence, one.day, one.orders, timeText(one.writtenAt)]),
          ]),
        ].join(''),
      )
    }),
  )

  const imports = returns
    .command('import <paths...>')
    .description(
      'read files to their ends; ends with 1 when one, or a line of one, is refused. A file that was read before changes nothing',
    )
    .option('--account <name>', 'whose they are, if the files do not say it')
    .option('--folder', 'the paths are folders: all in them, moved to done or refused; needs --account')
    .option('--same-number', 'the bank has given the number of another file again: read it all the same')
  reads(
    imports,
    {
      'files[]': 'name account broken number again missing recorded known noted refused',
      'lines[]': 'file line outcome text',
    },
    () => true,
  ).action((paths: string[], options: ImportOptions) =>
    withOpened(async opened => {
      const parts = { ...opened, build: buildNumber() }
      const read: ReadFile[] = []
      for (const path of paths) read.push(...(await (options.folder ? readFolder : readFile)(parts, path, options)))
      for (const { broken, account: of, name } of read)
        if (broken !== null) await tellRefused(parts, { what: 'return', of, name: storedNameAt(name), why: broken })
      const files = read.map(({ lines, ...file }) => file)
      const lines = read.flatMap(({ name, lines }) => lines.map(line => ({ file: name, ...line })))
      show(options, { files, lines }, () => read.map(fileText).join(''))
      if (files.some(({ broken, refused }) => broken !== null || (refused ?? 0) > 0)) process.exitCode = 1
    }),
  )
}

type ReadFile = {
  readonly name: string
  readonly account: string
  readonly broken: string | null
  readonly number: number | null
  readonly again: boolean | null
  readonly missing: readonly number[]
  readonly recorded: number | null
  readonly known: number | null
  readonly noted: number | null
  readonly refused: number | null
  readonly lines: readonly FileLineText[]
}

function documentOf(
  account: string,
  name: string,
  report: ReturnReport | { readonly broken: string },
  lines: readonly FileLineText[] = [],
): ReadFile {
  if ('broken' in report) {
    const none = { number: null, again: null, recorded: null, known: null, noted: null, refused: null }
    return { name, account, broken: report.broken, ...none, missing: [], lines }
  }
  const { fileNumber: number, again, missing, recorded, known, noted, refused } = report
  return { name, account, broken: null, number, again, missing, recorded, known, noted, refused, lines }
}

type ImportingParts = CommandParts & ReturnParts

async function readFolder(
  parts: ImportingParts,
  folder: string,
  { account: name, sameNumber }: ImportOptions,
): Promise<ReadFile[]> {
  if (name === undefined) return refuseWords('--folder needs --account: say whose the files are.')
  if (sameNumber) refuseWords('--same-number is said of a file, not of a folder.')
  const account = chosenAccounts(parts.config, name)[0]!
  let files: FolderFile[]
  try {
    files = await importFolder(parts, account, folder)
  } catch (error) {
    return (error as NodeJS.ErrnoException).syscall === 'scandir'
      ? refuseCommand(`${folder} cannot be read.`)
      : Promise.reject(error)
  }
  return files.map(({ name, report }) => documentOf(account.name, name, report))
}

async function readFile(parts: ImportingParts, path: string, { account: name, sameNumber }: ImportOptions): Promise<ReadFile[]> {
  const bytes = await readBytes(path, returnBytesMost)
  const account = await accountOfFile(chosenAccounts(parts.config, name), path, bytes)
  const { lines, tell } = collectLines()
  const stored = storedNameAt(path)
  const report = await importReturn(parts, returnsOf(account), stored, bytes, tell, { sameNumber: sameNumber === true })
  return [documentOf(account.name, basename(path), report, lines)]
}

/** The one whose the file says that it is. */
async function accountOfFile(accounts: readonly SlipAccount[], path: string, bytes: Buffer): Promise<SlipAccount> {
  const fitting: SlipAccount[] = []
  for (const one of accounts)
    if (accounts.length === 1 || !('broken' in (await inTurns(readReturn(bytes, returnsOf(one)))))) fitting.push(one)
  if (fitting.length === 1) return fitting[0]!
  const names = (fitting.length > 0 ? fitting : accounts).map(({ name }) => name).join(' or ')
  return refuseWords(`Say whose ${path} is: --account ${names}.`)
}

function chosenAccounts({ slips }: Config, name: string | undefined): SlipAccount[] {
  if (slips.size === 0 && name === undefined) return refuseCommand('No account is configured: SLIPS_FILE names none.')
  return chosenOf('account', [...slips.values()], name)
}

const fileText = ({ name, account, broken, number, again, missing, recorded, known, noted, refused, lines }: ReadFile): string =>
  broken !== null
    ? `Nothing of ${name} was read: ${broken}.\n`
    : [
        `${name} is file ${number} of ${account}${again ? ', which was read before' : ''}.\n`,
        ...lines.filter(({ outcome }) => outcome !== 'known' && outcome !== 'noted').map(lineText),
        ...missing.map(one => `File ${one} has not come.\n`),
        `${recorded} recorded, ${known} known already, ${noted} noted, ${refused} refused.\n`,
      ].join('')
