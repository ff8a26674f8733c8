// Files that banks and store chains lay down on servers of theirs: fetched by SFTP, imported, and moved to `done` only when all that they say is stored. Due work
// that any process may take, one row for each account, so that one at a time looks.

import type { SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { nobody, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import type { Log } from '../../platform/log.ts'
import type { OpenSftp } from '../../platform/sftp/open.ts'
import { type RemoteFile, type Sftp, SftpError } from '../../platform/sftp/sftp.ts'
import { subjectOf } from '../reconciliation/store.ts'
import { returnBytesMost, tooLong } from '../returns/rows.ts'
import { fileHash } from '../steps.ts'
import { type BankFileParts, importBankFile, isWhole, refuseFile } from './bankFile.ts'

export type IntakeParts = BankFileParts & { readonly log: Log; readonly slipAccounts: SlipAccounts; readonly sftp: OpenSftp }

type ReturnServer = NonNullable<NonNullable<SlipAccount['returns']>['sftp']>

const minute = 60_000
/** So many times nobody is reached, and somebody should know. */
const failuresBeforeCase = 5
/** What is looked at in one session; the rest at the next. */
const filesAtOnce = 500

/** What was left on the server, by name: its size and time as it was found broken, and whether it was told of. */
type Left = Readonly<Record<string, string>>

/** Called at every start. */
export async function beginPolling({ database, clock, slipAccounts }: IntakeParts): Promise<void> {
  for (const [name, { returns }] of slipAccounts)
    if (returns?.sftp)
      await addDue(database.work, 'returnServer', nobody, subjectOf('returnServer', name), clock.real(), { account: name })
}

/** Due work of kind `returnServer`. */
export const pollReturns: DueHandler<IntakeParts> = async (parts, { details }) => {
  const { account: name, left = {}, failures = 0 } = details as { account: string; left?: Left; failures?: number }
  const account = parts.slipAccounts.get(name)
  const place = account?.returns?.sftp
  if (!account || !place) return 'done' // a start with the server begins again
  const { clock, database, log } = parts
  const again = clock.real() + place.everyMinutes * minute
  const about = { merchantId: nobody, kind: 'returnServer', subject: name } as const
  try {
    const nowLeft = await parts.sftp(place, server => fetchAll(parts, server, account, place, left))
    await closeSettled(database.work, about, clock.real(), 'gateway', 'its files are fetched again')
    return { again, details: { left: nowLeft, failures: 0 }, well: true }
  } catch (error) {
    if (!(error instanceof SftpError)) throw error
    log.warn({ why: `${name}: ${error.message}`, attempt: failures + 1 }, 'returns could not be fetched')
    if (error.about === 'identity' || failures + 1 >= failuresBeforeCase)
      await openCase(database.work, parts, { ...about, details: { host: place.host, why: error.message } })
    return { again, details: { failures: failures + 1 } }
  }
}

/** What is left after it. */
async function fetchAll(
  parts: IntakeParts,
  server: Sftp,
  account: SlipAccount,
  { folder, done }: ReturnServer,
  left: Left,
): Promise<Left> {
  const now: Record<string, string> = Object.create(null)
  // What was told of and stays there keeps no other out.
  const markOf = ({ bytes, modifiedAt }: RemoteFile) => `${bytes} ${modifiedAt}`
  const isTold = (file: RemoteFile) => left[file.name] === told(markOf(file))
  const files = await server.list(folder)
  for (const file of files.filter(isTold)) now[file.name] = told(markOf(file))
  for (const file of files.filter(one => !isTold(one)).slice(0, filesAtOnce)) {
    const mark = markOf(file)
    if (file.bytes > returnBytesMost) {
      await refuseFile(parts, account, file.name, tooLong(file.bytes))
      now[file.name] = told(mark)
      continue
    }
    const bytes = await readFile(parts, server, folder, file)
    // Who writes it may not be done: it is broken when it is the same at the next look.
    if (bytes && !(await isWhole(account, bytes)) && left[file.name] !== mark) now[file.name] = mark
    else if (bytes) {
      const report = await importBankFile(parts, account, file.name, bytes)
      if ('broken' in report) {
        parts.log.warn({ why: `${account.name}: ${file.name}: ${report.broken}` }, 'a return was refused')
        now[file.name] = told(mark)
      } else await moveAside(server, `${folder}/${file.name}`, `${folder}/${done}/${file.name}`, bytes)
    }
  }
  return now
}

const told = (mark: string): string => `${mark} told`

/** Undefined for one that is written to while it is read: it waits, and keeps no other waiting. */
const readFile = ({ log }: IntakeParts, server: Sftp, folder: string, { name }: RemoteFile): Promise<Buffer | undefined> =>
  server.read(`${folder}/${name}`, returnBytesMost).catch((error: Error) => {
    if (!(error instanceof SftpError) || error.about !== 'file') throw error
    log.warn({ why: `${name}: ${error.message}` }, 'a return could not be read')
    return undefined
  })

/** A bank may give a name again: what is there already is not replaced. */
const moveAside = (server: Sftp, from: string, to: string, bytes: Buffer): Promise<void> =>
  server.move(from, to).catch(async () => server.move(from, `${to}.${(await fileHash(bytes)).toString('hex').slice(0, 16)}`))
