// Files of orders to transfer, as due work that any process may take: one row for each account. What waits gets a number, then it is put on disk, then marked.
// Whoever comes after a dead process goes on where it stopped: the bytes are made of the orders again.

import type { Mode } from '../../connectors/connector.ts'
import type { BankSlipAccount, SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { nobody } from '../../payments/cases/cases.ts'
import {
  findFiled,
  findUnwrittenTransfers,
  insertTransferFile,
  lockOrdered,
  markTransfersWritten,
  type TransferRow,
} from '../../payments/transfers/store.ts'
import { openDetails, type TransferParts } from '../../payments/transfers/transfer.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import type { Log } from '../../platform/log.ts'
import { fileSeries, waitsForRelease, whileHeld } from '../fileSeries.ts'
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
    await waitsForRelease(parts, fileSeries.transfers, account.name)
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
  const held = await whileHeld(parts, fileSeries.transfers, name, again)
  if (held) return held
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
