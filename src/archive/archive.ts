// Old chains leave the database in two steps, so that their file can be carried to a safe place between them: it is written, and then what it has is taken
// out, chain by chain, each only if it still is as the file has it. Whatever is broken off is gone on with by the same command.

import { existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type pg from 'pg'
import { tellAndDo } from '../audit/act.ts'
import { type Recorder, record } from '../audit/chain.ts'
import type { AuditAction } from '../audit/entry.ts'
import { examineChains } from '../payments/ledger/doctor.ts'
import type { ChainTable } from '../payments/store/chainTable.ts'
import { type Clock, idAt, type Random, timeOrderedId } from '../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import { isFile } from '../platform/files.ts'
import { closeMovements, reopenMovements } from '../reporting/settlement/store.ts'
import { type ArchiveHeader, openArchiveFile, writeArchiveFile } from './file.ts'
import {
  type Archive,
  columnsOf,
  countArchive,
  countTakenOut,
  dropArchive,
  endArchive,
  findArchives,
  findMembers,
  findMerchants,
  findOldRoots,
  findSettledChains,
  findTakenOut,
  insertArchive,
  lockRoots,
  proveArchive,
  putBack,
  readChainTexts,
  sumClosed,
  takeArchiveLock,
  takeOut,
} from './store.ts'

export type ArchiveParts = Recorder & {
  readonly database: Pick<Database, 'work' | 'reports'>
  readonly clock: Clock
  readonly random: Random
  readonly mode: string
  readonly tables: readonly ChainTable[]
}

/** Chains that are looked at, or taken out, together; fewer where their texts are long. */
const page = 100
const pageLengthMost = 16 * 1024 * 1024
/** Whose texts are read together. */
const few = 10

/** Issuers charge back for 540 days at most: what is younger may still be asked for. */
const leastDays = 550

/** Writes all settled chains of which everything was recorded before a moment (milliseconds). */
export async function writeArchive(parts: ArchiveParts, path: string, before: number): Promise<Archive> {
  const { database, clock, random, mode, tables } = parts
  const youngest = clock.real() - (mode === 'live' ? leastDays * 86_400_000 : 0)
  if (before > youngest)
    throw new OperatorError(
      `--before must be ${new Date(youngest).toISOString().slice(0, 10)} or earlier${mode === 'live' ? `: what is younger than ${leastDays} days may still be charged back` : ''}.`,
    )
  return alone(parts, async () => {
    const begun = await unended(parts)
    if (begun && (begun.name !== basename(path) || begun.before !== before)) throw unfinished(begun)
    if (begun?.proof) throw new OperatorError(`${begun.name} is written: take out what it has with \`tollgate archive erase\`.`)
    if (existsSync(path) && !(begun && isFile(path) && (await archiveIn(path)) === begun.id))
      throw new OperatorError(`${path} is there already.`)
    if (!existsSync(dirname(resolve(path)))) throw new OperatorError(`There is no folder ${dirname(resolve(path))}.`)
    const id = begun?.id ?? timeOrderedId(clock.real(), random)
    const header: ArchiveHeader = {
      archive: id,
      format: 1,
      mode,
      before: new Date(before).toISOString(),
      columns: await columnsOf(database.work, tables),
    }
    const told = { action: 'archiveWritten', subject: id, details: { name: basename(path), before: header.before } } as const
    await tellAndDo(database.work, parts, told, async ({ came, end }) => {
      if (!begun) await insertArchive(database.work, { id, name: basename(path), before, beganAt: clock.real() })
      const { proof, count } = await writeArchiveFile(path, header, settledChains(parts, before))
      came.chains = count
      await inTransaction(database.work, async db => {
        await proveArchive(db, id, proof, count)
        await end(db)
      })
    })
    return archiveWith(database.work, id)
  })
}

const archiveWith = async (db: Connection, id: string): Promise<Archive> => (await findArchives(db)).find(one => one.id === id)!

/** Whose file it says that it is. */
async function archiveIn(path: string): Promise<string | undefined> {
  const reading = await openArchiveFile(path)
  reading?.close()
  return reading?.header.archive
}

/** The texts of all chains that may go, merchant by merchant. A chain in which the doctor finds something stays, where people can see it. */
async function* settledChains({ database: { reports }, tables }: ArchiveParts, before: number): AsyncGenerator<string> {
  for (const merchantId of await findMerchants(reports))
    for (let after = '0'.repeat(32); ; ) {
      const roots = await findOldRoots(reports, merchantId, { after, before: idAt(before), limit: page })
      const good = await goodChains(reports, tables, merchantId, roots, before)
      for (let at = 0; at < good.length; at += few)
        for (const { text } of await readChainTexts(reports, tables, merchantId, good.slice(at, at + few))) yield text
      if (roots.length < page) break
      after = roots.at(-1)!
    }
}

/** The roots of those that may go. */
async function goodChains(
  db: Connection,
  tables: readonly ChainTable[],
  merchantId: string,
  roots: readonly string[],
  before: number,
): Promise<string[]> {
  const settled = await findSettledChains(db, tables, merchantId, roots, before)
  const { findings } = await examineChains(db, merchantId, settled)
  return settled.filter(root => !findings.has(root))
}

type InFile = {
  readonly merchant: string
  readonly chain: string
  readonly rows: { readonly payments: readonly { id: string }[] }
}
type ChainInFile = Pick<InFile, 'merchant' | 'chain'> & { readonly text: string }
type TakenOut = { readonly chains: number; readonly payments: number; readonly lines: number }

/** Takes out of the database what a file has. A chain that something happened to since stays. */
export async function eraseArchived(parts: ArchiveParts, path: string): Promise<Archive> {
  const { database, clock } = parts
  return alone(parts, async () => {
    const whole = await readArchive(parts, path)
    for await (const _ of whole.chains);
    const archive = whole.archive
    if (archive.endedAt !== null) return archive
    const told = { action: 'archiveErased', subject: archive.id, details: { name: archive.name } } as const
    await tellAndDo(database.work, parts, told, async ({ came, end }) => {
      // Each text is compared with the database: what another file in its place says takes nothing out.
      for await (const { merchantId, texts } of pagesOf((await readArchive(parts, path)).chains))
        await inTransaction(database.work, async db => {
          const step = await erasePage(parts, db, archive, merchantId, texts)
          if (step.chains > 0) await countArchive(db, archive.id, step)
        })
      await inTransaction(database.work, async db => {
        await endArchive(db, archive.id, clock.real())
        const { chains, payments } = await archiveWith(db, archive.id)
        Object.assign(came, { chains, payments })
        await end(db)
      })
    })
    return archiveWith(database.work, archive.id)
  })
}

async function erasePage(
  { tables }: ArchiveParts,
  db: Connection,
  archive: Archive,
  merchantId: string,
  texts: ReadonlyMap<string, string>,
): Promise<TakenOut> {
  const roots = [...texts.keys()]
  await lockRoots(db, merchantId, roots)
  const now = await readChainTexts(db, tables, merchantId, await goodChains(db, tables, merchantId, roots, archive.before))
  const same = now.filter(({ root, text }) => texts.get(root) === text).map(({ root }) => root)
  const payments = await findMembers(db, merchantId, same)
  const lines = await closeMovements(db, merchantId, archive.id, payments)
  await takeOut(db, tables, merchantId, archive.id, payments)
  return { chains: same.length, payments: payments.length, lines }
}

/** The chains of a file, some of one merchant at a time: their texts by their first payments. */
async function* pagesOf(chains: AsyncIterable<ChainInFile>): AsyncGenerator<{ merchantId: string; texts: Map<string, string> }> {
  let [merchantId, texts, length] = ['', new Map<string, string>(), 0]
  for await (const { merchant, chain, text } of chains) {
    if (merchant !== merchantId || texts.size === page || length > pageLengthMost) {
      if (texts.size > 0) yield { merchantId, texts }
      ;[merchantId, texts, length] = [merchant, new Map(), 0]
    }
    texts.set(chain, text)
    length += text.length
  }
  if (texts.size > 0) yield { merchantId, texts }
}

/**
 * A file of this database: what its chains say is to be believed when all of them were read, because only then its proof is compared. Throws an OperatorError
 * then, or before.
 */
async function readArchive(
  { database }: Pick<ArchiveParts, 'database'>,
  path: string,
): Promise<{ archive: Archive; header: ArchiveHeader; chains: AsyncIterable<ChainInFile> }> {
  if (!isFile(path)) throw new OperatorError(`There is no file ${resolve(path)}.`)
  const stranger = new OperatorError(`${path} is no archive of this database, or it was changed.`)
  const reading = await openArchiveFile(path)
  const archive = (await findArchives(database.work)).find(({ id }) => id === reading?.header.archive)
  if (!reading || !archive) throw stranger
  async function* chains() {
    for await (const text of reading!.chains) {
      const { merchant, chain } = inFile(text) ?? fail(stranger)
      yield { merchant: plain(merchant), chain: plain(chain), text }
    }
    if (!archive!.proof?.equals(reading!.proof())) throw stranger
  }
  return { archive, header: reading.header, chains: chains() }
}

const fail = (error: Error): never => {
  throw error
}

/** Undefined where it is no text of ours: the proof of a file is known at its end alone. */
function inFile(text: string): InFile | undefined {
  try {
    const { merchant, chain, rows } = JSON.parse(text) as InFile
    return typeof merchant === 'string' && typeof chain === 'string' && Array.isArray(rows?.payments)
      ? { merchant, chain, rows }
      : undefined
  } catch {
    return undefined
  }
}

const plain = (uuid: string): string => uuid.replaceAll('-', '')

/** Puts the chain of a payment back, as it was. → its first payment. */
export async function bringBack(parts: ArchiveParts, path: string, paymentId: string): Promise<string> {
  const { database, tables } = parts
  return alone(parts, async () => {
    const { archive, header, merchant, chain, text } = await findChainIn(parts, path, paymentId)
    await sameColumns(parts, header, path)
    await inTransaction(database.work, async db => {
      if (!(await findTakenOut(db, merchant, archive.id, [chain])).has(chain))
        throw new OperatorError(`The payment ${paymentId} is in the database: there is nothing to bring back.`)
      const payments = await putBack(db, tables, merchant, chain, text)
      const lines = await reopenMovements(db, merchant, archive.id, payments)
      await countArchive(db, archive.id, { chains: -1, payments: -payments.length, lines: -lines })
      await tell(parts, db, 'archivedBroughtBack', chain, { name: archive.name, payments: payments.length }, merchant)
    })
    return chain
  })
}

/** The chain of a payment in a file, all of which was read before it is told. */
export async function findChainIn(
  parts: Pick<ArchiveParts, 'database'>,
  path: string,
  paymentId: string,
): Promise<ChainInFile & { archive: Archive; header: ArchiveHeader }> {
  const { archive, header, chains } = await readArchive(parts, path)
  let found: ChainInFile | undefined
  for await (const one of chains) {
    const isIt = () => inFile(one.text)!.rows.payments.some(({ id }) => plain(id) === paymentId)
    if (!found && (one.chain === paymentId || (one.text.includes(paymentId.slice(20)) && isIt()))) found = one
  }
  if (!found) throw new OperatorError(`${path} has no payment ${paymentId}.`)
  return { ...found, archive, header }
}

/** A table that has got other columns since would lose some, or lack them. */
async function sameColumns({ database, tables }: ArchiveParts, { columns }: ArchiveHeader, path: string): Promise<void> {
  const now = await columnsOf(database.work, tables)
  for (const [table, names] of Object.entries(columns))
    if (String(names) !== String(now[table] ?? []))
      throw new OperatorError(`${path} was written by another version: the table ${table} had the columns ${names.join(', ')}.`)
}

type BookedLine = { mode: string; currency: string; debit: string; credit: string; amount: number; state: string }

/** What a file and the sums that stand for it say, a sentence for each difference. */
export async function checkArchive(parts: ArchiveParts, path: string): Promise<string[]> {
  const { archive, chains } = await readArchive(parts, path)
  const booked = new Map<string, number>()
  const found = { chains: 0, payments: 0, lines: 0 }
  for await (const { merchantId, texts } of pagesOf(chains)) {
    const out = await findTakenOut(parts.database.work, merchantId, archive.id, [...texts.keys()])
    for (const [root, text] of texts) {
      if (!out.has(root)) continue
      const { rows } = JSON.parse(text) as { rows: { payments: unknown[]; journal: BookedLine[] } }
      const lines = rows.journal.filter(({ state }) => state === 'posted')
      found.chains++
      found.payments += rows.payments.length
      found.lines += lines.length
      for (const { mode, currency, debit, credit, amount } of lines) {
        const key = [merchantId, mode, currency, debit, credit].join(' ')
        booked.set(key, (booked.get(key) ?? 0) + amount)
      }
    }
  }
  const sums = await sumClosed(parts.database.work, archive.id)
  const differences = [...new Set([...booked.keys(), ...sums.keys()])]
    .filter(key => booked.get(key) !== sums.get(key))
    .map(key => `${key}: the file booked ${booked.get(key) ?? 0}, its sums say ${sums.get(key) ?? 0}, in hundredths.`)
  return [...differences, ...difference(archive, found)]
}

/** What the database says of its archives, without their files: a sentence for each thing that is wrong. */
export async function examineArchives(db: Connection): Promise<string[]> {
  const findings: string[] = []
  for (const archive of await findArchives(db)) {
    const { both, ...counted } = await countTakenOut(db, archive.id)
    findings.push(...difference(archive, counted))
    if (both > 0) findings.push(`${archive.name}: ${both} payments are in the archive and in the database.`)
  }
  return findings
}

const difference = ({ name, chains, payments, lines }: Archive, found: TakenOut): string[] =>
  chains === found.chains && payments === found.payments && lines === found.lines
    ? []
    : [
        `${name}: ${chains} chains with ${payments} payments and ${lines} lines of the journal were taken out; counted are ${found.chains}, ${found.payments} and ${found.lines}.`,
      ]

/** Gives up an archive of which nothing is out of the database yet. */
export async function cancelArchive(parts: ArchiveParts): Promise<string> {
  const { database } = parts
  return alone(parts, async () => {
    const begun = await unended(parts)
    if (!begun) throw new OperatorError('No archive is under way.')
    await inTransaction(database.work, async db => {
      if (!(await dropArchive(db, begun.id)))
        throw new OperatorError(
          `${begun.chains} chains are in ${begun.name} and not in the database any more: finish it with \`tollgate archive erase\`.`,
        )
      await tell(parts, db, 'archiveCancelled', begun.id, { name: begun.name })
    })
    return begun.name
  })
}

const unended = async ({ database }: ArchiveParts): Promise<Archive | undefined> =>
  (await findArchives(database.work)).find(({ endedAt }) => endedAt === null)

const unfinished = ({ name, before }: Archive) =>
  new OperatorError(
    `The archive ${name} with --before ${new Date(before).toISOString()} is not finished: give that command again, or \`tollgate archive cancel\`.`,
  )

/** One at a time works on archives. */
async function alone<Value>({ database }: ArchiveParts, work: () => Promise<Value>): Promise<Value> {
  const session: pg.PoolClient = await database.work.connect()
  try {
    if (!(await takeArchiveLock(session))) throw new OperatorError('Another command works on an archive of this database.')
    return await work()
  } finally {
    session.release(true) // the lock ends with the session
  }
}

const tell = (
  parts: ArchiveParts,
  db: Connection,
  action: AuditAction,
  subject: string,
  details: Readonly<Record<string, unknown>>,
  entityId?: string,
) => record(db, parts, [{ action, subject, details, ...(entityId !== undefined && { entityId }) }])
