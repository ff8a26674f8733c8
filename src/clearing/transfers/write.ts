// Files of orders to transfer, as due work that any process may take: one row for each account. What waits gets a number, then it is put on disk, then marked.
// Whoever comes after a dead process goes on where it stopped: the bytes are made of the orders again.

import { type Recorder, record } from '../../audit/chain.ts'
import type { Mode } from '../../connectors/connector.ts'
import type { BankSlipAccount, SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { nobody, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import {
  findFiled,
  findUnwrittenTransfers,
  insertTransferFile,
  isHeld,
  lastTransferFiles,
  lockOrdered,
  markTransfersWritten,
  passTransferFiles,
  readTransferHold,
  type TransferRow,
  writeTransferHold,
} from '../../payments/transfers/store.ts'
import { openDetails, type TransferParts } from '../../payments/transfers/transfer.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import { readStanding, standingOf } from '../../platform/database/installation.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import type { Log } from '../../platform/log.ts'
import { putFile } from '../putFile.ts'
import { subjectOf } from '../reconciliation/store.ts'
import { placeText, type TransferOrder, transferFileName, transferReference, transferText } from './transferFile.ts'

export type TransferFileParts = TransferParts & { readonly slipAccounts: SlipAccounts; readonly log: Log }

const minute = 60_000
const ordersMost = 5000

type PayingAccount = BankSlipAccount & Required<Pick<BankSlipAccount, 'transfers'>>

/** What a bank gets is paid: never what the simulator was asked for, nor tests where the account is a live one. */
export const modeOfFiles = ({ modes }: Pick<SlipAccount, 'modes'>): Mode => (modes.includes('live') ? 'live' : 'external')

const pays = (account: SlipAccount | undefined): account is PayingAccount =>
  account?.kind === 'bank' && account.transfers !== undefined

/** What an order waits for that has not ended: to be told where the money goes, its file, somebody who pays it by hand, or what the bank says. */
export function transferWaitsFor(
  { sealed, sequence, isUnwritten, account, mode }: Pick<TransferRow, 'sealed' | 'sequence' | 'isUnwritten' | 'account' | 'mode'>,
  accounts: SlipAccounts,
): 'details' | 'file' | 'somebody' | 'bank' {
  if (isUnwritten) return 'file'
  if (sequence !== null) return 'bank'
  if (!sealed) return 'details'
  const from = accounts.get(account)
  return pays(from) && modeOfFiles(from) === mode ? 'file' : 'somebody'
}

/** Called at every start. */
export async function beginTransferFiles(parts: TransferFileParts): Promise<void> {
  const { database, clock, slipAccounts } = parts
  for (const account of [...slipAccounts.values()].filter(pays)) {
    await waitsForRelease(parts, account.name)
    const due = clock.real() + account.transfers.everyMinutes * minute
    await addDue(database.work, 'transferFile', nobody, subjectOf('transfers', account.name), due, { account: account.name })
  }
}

/** Due work of kind `transferFile`. Files go out in the order of their numbers. */
export const transferFile: DueHandler<TransferFileParts> = async (parts, { details }) => {
  const account = parts.slipAccounts.get((details as { account: string }).account)
  if (!pays(account)) return 'done' // a start with the account begins again
  const db = parts.database.work
  const { name, transfers } = account
  const again = { again: parts.clock.real() + transfers.everyMinutes * minute }
  const stands = await readStanding(db)
  // Somebody looks every few seconds whether it was put back, and has not looked yet.
  if (stands && stands !== (await standingOf(db))) return { again: parts.clock.real() + minute }
  if (await waitsForRelease(parts, name)) return again
  do {
    for (const file of await findUnwrittenTransfers(db, name)) {
      const orders = (await findFiled(db, name, file.sequence)).map(
        row =>
          ({
            reference: file.byPlace ? placeText(file.sequence, row.line!) : transferReference(row.paymentId),
            amount: row.amount,
            to: openDetails(parts, row),
          }) as TransferOrder,
      )
      const fileName = transferFileName(name, file.sequence)
      putFile(parts, transfers.folder, fileName, transferText(account, file.sequence, file.madeAt, orders))
      await markTransfersWritten(db, file, parts.clock.real())
      parts.log.info({ why: `${name}: ${fileName}` }, 'a file of transfers was written')
    }
  } while (await assign(parts, account))
  return again
}

/** Gives what waits the next number; false when nothing waits, or another process was first. */
const assign = ({ database, clock }: TransferFileParts, account: PayingAccount): Promise<boolean> =>
  inTransaction(database.work, async db => {
    const orders = await lockOrdered(db, account.name, modeOfFiles(account), ordersMost)
    return orders.length > 0 && insertTransferFile(db, account.name, orders, clock.real())
  })

const aboutHold = (account: string) => ({ merchantId: nobody, kind: 'transfersHeld', subject: account }) as const

/** The database was put back, and somebody is told: what waits in it may be in a file that the bank has. Nobody is any more when it was a standby. */
async function waitsForRelease(parts: Pick<TransferFileParts, 'database' | 'clock' | 'random'>, account: string) {
  const db = parts.database.work
  if (!isHeld(await readTransferHold(db), account)) {
    await closeSettled(db, aboutHold(account), parts.clock.real(), 'gateway', 'a standby had taken over')
    return false
  }
  const last = (await lastTransferFiles(db)).get(account)?.last ?? 0
  await openCase(db, parts, { ...aboutHold(account), details: { account, last } })
  return true
}

/** More than an account writes between two backups, less than a number that is mistyped. */
const passedMost = 10_000
const sequenceMost = 999_999

/**
 * Somebody has heard of the bank what it has: `behind` is the number of the last file. How many orders wait for the next, or why not.
 */
export const releaseTransferFiles = (
  parts: Recorder & Pick<TransferParts, 'database'>,
  account: string,
  behind: number,
  by: string,
): Promise<number | 'notHeld' | { readonly last: number }> =>
  inTransaction(parts.database.work, async db => {
    const hold = await readTransferHold(db, 'for update')
    if (!isHeld(hold, account)) return 'notHeld'
    const last = (await lastTransferFiles(db)).get(account)?.last ?? 0
    if (behind < last || behind > Math.min(last + passedMost, sequenceMost - 1)) return { last }
    const now = parts.clock.real()
    const orders = await passTransferFiles(db, account, behind, now)
    await writeTransferHold(db, { ...hold, released: [...hold.released, account] })
    await closeSettled(db, aboutHold(account), now, by, 'files are written again')
    await record(db, parts, [{ action: 'transfersReleased', subject: account, details: { behind, last, orders } }])
    return orders
  })
