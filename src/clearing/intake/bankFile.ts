// A file of a bank or a store chain, whatever it tells of: slips, or transfers that we have ordered.

import type { SlipAccount } from '../../connectors/slips/accounts.ts'
import { nobody, openCase } from '../../payments/cases/cases.ts'
import type { TransferParts } from '../../payments/transfers/transfer.ts'
import { isPassing } from '../../platform/database/elsewhere.ts'
import type { LineResult } from '../import.ts'
import { importReturn, type ReturnParts, type ReturnReport, returnsOf } from '../returns/importReturn.ts'
import { readReturn } from '../returns/readReturn.ts'
import { BrokenReturn } from '../returns/rows.ts'
import { inTurns } from '../steps.ts'
import { nameMark } from '../storedName.ts'
import { importTransferReturn, isTransferReturn, readTransferReturn } from '../transfers/transferReturn.ts'

export type BankFileParts = ReturnParts & TransferParts

/** What has an end, and is of this account. Nothing is stored. */
export async function isWhole(account: SlipAccount, bytes: Buffer): Promise<boolean> {
  if (account.kind === 'chain' || !isTransferReturn(bytes))
    return !('broken' in (await inTurns(readReturn(bytes, returnsOf(account)))))
  try {
    await inTurns(readTransferReturn(bytes, account, ''))
    return true
  } catch (error) {
    if (error instanceof BrokenReturn) return false
    throw error
  }
}

/** Reads it to its end. The same bytes change nothing when they come again. A file that is refused is a case. */
export async function importBankFile(
  parts: BankFileParts,
  account: SlipAccount,
  name: string,
  bytes: Buffer,
  tell: (at: number, result: LineResult) => void = () => {},
): Promise<ReturnReport | { readonly broken: string }> {
  if (account.kind === 'chain' || !isTransferReturn(bytes)) return importReturn(parts, returnsOf(account), name, bytes, tell)
  const report = await importTransferReturn(parts, account, name, bytes, tell)
  return 'broken' in report ? refuseFile(parts, account, name, report.broken) : report
}

export const aboutFile = ({ keys }: Pick<BankFileParts, 'keys'>, account: SlipAccount, name: string) =>
  ({ merchantId: nobody, kind: 'returnFile', subject: `${account.name} ${nameMark(keys, name)}` }) as const

export async function refuseFile(
  parts: BankFileParts,
  account: SlipAccount,
  name: string,
  why: string,
): Promise<{ readonly broken: string }> {
  await openCase(parts.database.work, parts, { ...aboutFile(parts, account, name), details: { file: name, why } })
  return { broken: why }
}

/** Whatever one file throws keeps no other out: somebody is told of it. What concerns all files is thrown on: our own database is away, or merchants are held. */
export function tellFailed(parts: BankFileParts, account: SlipAccount, name: string, what: string, error: unknown) {
  if (isPassing(error)) throw error
  return refuseFile(parts, account, name, `${what}: ${(error as Error).message}`)
}

export const notMoved = 'all that it says is stored, and it cannot be moved'
