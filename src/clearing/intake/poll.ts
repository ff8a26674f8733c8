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
import { fileHash, othersTurn } from '../steps.ts'
import { nameMark, storedName } from '../storedName.ts'
import { aboutFile, type BankFileParts, importBankFile, isWhole, notMoved, refuseFile, tellFailed } from './bankFile.ts'

export type IntakeParts = BankFileParts & { readonly log: Log; readonly slipAccounts: SlipAccounts; readonly sftp: OpenSftp }

type ReturnServer = NonNullable<NonNullable<SlipAccount['returns']>['sftp']>

const minute = 60_000
/** So many times nobody is reached, and somebody should know. */
const failuresBeforeCase = 5
/** What is looked at in one session; the rest at the next. */
const filesAtOnce = 500

/** What was left on the server, by name: its size and time when it was looked at last, what came of it, and how often. */
type Left = Readonly<Record<string, string>>
/**
 * `half`: it may be written to still. `told`: it is broken, and somebody knows, or it says nothing new. `unread`: the server did not give it. `failed`: we could not
 * read it. `stored`: the server does not move it.
 */
type LeftState = 'half' | 'told' | 'unread' | 'failed' | 'stored'
type Mark = { readonly state?: LeftState; readonly times: number }

const versionOf = ({ bytes, modifiedAt }: RemoteFile): string => `${bytes} ${modifiedAt} `

/** Of another size or time it is another file. But a server may make up a time for each look: then what was seen of it counts, unless somebody was told. */
function markIn(mark: string | undefined, file: RemoteFile): Mark {
  const [bytes, modifiedAt, state, count = '1'] = (mark ?? '').split(' ')
  const times = Number(count)
  if (bytes !== `${file.bytes}`) return { times: 0 }
  if (modifiedAt !== `${file.modifiedAt}` && (times < failuresBeforeCase || state === 'told')) return { times }
  return { state: state as LeftState, times }
}

/** What cannot be read keeps no other out: it comes last, and of such the one that was tried least comes first. */
const turnOf = ({ state, times }: Mark): number => (state === undefined ? 0 : state === 'half' ? 1 : 1 + times)

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
  const tell = (why: string) => openCase(database.work, parts, { ...about, details: { host: place.host, why } })
  // Whatever becomes of the session: what was seen in it need not be looked at again.
  const marks = new Map(Object.entries(left))
  try {
    const wrong = await parts.sftp(place, server => fetchAll(parts, server, account, place, marks))
    if (wrong !== undefined) await tell(wrong)
    else await closeSettled(database.work, about, clock.real(), 'gateway', 'its files are fetched again')
    return { again, details: { left: Object.fromEntries(marks), failures: 0 }, well: true }
  } catch (error) {
    if (!(error instanceof SftpError)) throw error
    log.warn({ why: `${name}: ${error.message}`, attempt: failures + 1 }, 'returns could not be fetched')
    if (error.about === 'identity' || failures + 1 >= failuresBeforeCase) await tell(error.message)
    return { again, details: { left: Object.fromEntries(marks), failures: failures + 1 } }
  }
}

/** Why not all that is there may be read, if somebody must do something. */
async function fetchAll(
  parts: IntakeParts,
  server: Sftp,
  account: SlipAccount,
  place: ReturnServer,
  marks: Map<string, string>,
): Promise<string | undefined> {
  const { files, isCut } = await server.list(place.folder)
  const named: { readonly file: RemoteFile; readonly name: string }[] = []
  for (const file of files) {
    // A server may give thousands of names that are long to look through.
    await othersTurn()
    named.push({ file, name: nameMark(parts.keys, file.name) })
  }
  const names = new Set(named.map(({ name }) => name))
  for (const name of marks.keys()) if (!names.has(name)) marks.delete(name)
  const waiting = named
    .map(({ file, name }) => ({ file, name, left: markIn(marks.get(name), file) }))
    .filter(({ left }) => left.state !== 'told')
    .sort((one, other) => turnOf(one.left) - turnOf(other.left))
  const stuck: string[] = []
  let movesNothing = false
  for (const { file, name, left } of waiting.slice(0, filesAtOnce)) {
    if (left.state === 'stored' && movesNothing) continue // one is enough to see it
    const mark = (state: LeftState) => marks.set(name, `${versionOf(file)}${state} ${left.times + 1}`)
    mark('unread') // it comes last, whatever happens now
    const state = await takeFile(parts, server, account, place, file, left)
    if (state === 'moved') marks.delete(name)
    else mark(state)
    if (state === 'unread' && left.state === 'unread') stuck.push(storedName(file.name))
    movesNothing ||= state === 'stored' && left.state === 'stored'
  }
  if (isCut) return `its folder holds more than ${files.length} files, of which the others are not seen: move away what was read`
  return stuck.length === 0 ? undefined : `it does not give ${stuck.length} of its files, ${stuck[0]} first`
}

/** What came of a file. Rejects with what concerns the others too. */
async function takeFile(
  parts: IntakeParts,
  server: Sftp,
  account: SlipAccount,
  { folder, done }: ReturnServer,
  file: RemoteFile,
  left: Mark,
): Promise<LeftState | 'moved'> {
  const { name } = file
  const warn = (why: string, what: string) => parts.log.warn({ why: `${account.name}: ${storedName(name)}: ${why}` }, what)
  /** What was told of it is over. */
  const settle = () =>
    left.state === undefined
      ? undefined
      : closeSettled(parts.database.work, aboutFile(parts, account, name), parts.clock.real(), 'gateway', 'it was read and moved')
  let isStored = false
  try {
    const bytes = file.bytes > returnBytesMost ? undefined : await server.read(`${folder}/${name}`, returnBytesMost)
    if (!bytes) {
      await refuseFile(parts, account, name, tooLong(file.bytes))
      return 'told'
    }
    // Who writes it may not be done: it is broken when it is the same at the next look.
    if (left.state !== 'half' && !(await isWhole(account, bytes))) return 'half'
    const report = await importBankFile(parts, account, name, bytes)
    if ('broken' in report) {
      warn(report.broken, 'a return was refused')
      return 'told'
    }
    isStored = true
    const moved = await moveAside(server, `${folder}/${name}`, `${folder}/${done}/${name}`, bytes)
    await settle()
    return moved
  } catch (error) {
    const { message } = error as Error
    const isServers = error instanceof SftpError
    if (isServers && error.about !== 'file') throw new SftpError(`${storedName(name)}: ${message}`, error.about)
    warn(message, isStored ? 'a return could not be moved' : 'a return could not be read')
    // It may be written to while it is read; who is not given it for long is told of the server.
    if (isServers && !isStored) return 'unread'
    await tellFailed(parts, account, name, isStored ? notMoved : 'it could not be read', error)
    return isStored ? 'stored' : 'failed'
  }
}

/**
 * A bank may give a name again: what is there already is not replaced. The same bytes under the same name for the third time have no name left: they stay, and say
 * nothing new.
 */
async function moveAside(server: Sftp, from: string, to: string, bytes: Buffer): Promise<'moved' | 'told'> {
  const other = `${to}.${(await fileHash(bytes)).toString('hex').slice(0, 16)}`
  let refusal: Error | undefined
  for (const path of [to, other]) {
    refusal = await server.move(from, path).then(() => undefined, unlessLost)
    if (refusal) continue
    await lookAtMoved(server, from, path, bytes)
    return 'moved'
  }
  for (const path of [to, other]) if ((await server.holds(path, bytes).catch(unlessLost)) === true) return 'told'
  throw refusal
}

/** A bank may have laid down another file under the name since it was read: that one comes back for the next look. And a server may say that it has moved what it has not. */
async function lookAtMoved(server: Sftp, from: string, to: string, bytes: Buffer): Promise<void> {
  const there = await server.holds(to, bytes).catch(unlessLost)
  if (there === false) {
    if (await server.move(to, from).then(() => undefined, unlessLost))
      throw new SftpError(`another file has taken its name, and lies unread in ${to}`)
  } else if (there !== true && (await server.holds(from, bytes)) === true)
    throw new SftpError('the server says that it has moved it, and it is still there')
}

function unlessLost(error: Error): Error {
  if (error instanceof SftpError && error.about === 'file') return error
  throw error
}
