// Files that somebody hands in: every kind that this installation reads, each by the import of its own. The same bytes change nothing when they come again.

import { record } from '../audit/chain.ts'
import type { Acquirer } from '../connectors/cards/acquirer.ts'
import type { SlipAccount, SlipAccounts } from '../connectors/slips/accounts.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { importAcknowledgement } from './captures/acknowledge.ts'
import { type Bookkeeping, chargebackReports } from './chargebacks/chargebacks.ts'
import { type ImportParts, type ImportReport, importFile, type LineResult } from './import.ts'
import { type BankFileParts, importBankFile, isWhole } from './intake/bankFile.ts'
import { importSettlement } from './reconciliation/settlement.ts'

export type HandedInParts = BankFileParts &
  Bookkeeping &
  ImportParts & {
    readonly slipAccounts: SlipAccounts
    readonly acquirers: ReadonlyMap<string, Pick<Acquirer, 'options'>>
  }

/** What became of a file; `broken`: why nothing of it counts. */
export type HandedInReport = ImportReport | { readonly broken: string }
type Tell = (at: number, result: LineResult) => void

export type HandedInKind = {
  readonly what: 'chargebacks' | 'settlement' | 'acknowledgement' | 'return'
  /** The acquirer, the bank account or the store chain; absent where the file says it. */
  readonly of?: string
  read(parts: HandedInParts, name: string, bytes: Buffer, tell: Tell): Promise<HandedInReport>
}

/** Tells who handed in a file of which nothing counts. */
export const tellRefused = (
  parts: ImportParts,
  details: Pick<HandedInKind, 'what' | 'of'> & { readonly name: string; readonly why: string },
): Promise<number> =>
  inTransaction(parts.database.work, db => record(db, parts, [{ action: 'fileImported', result: 'refused', details }]))

const text = (bytes: Buffer): string => bytes.toString('utf8')

export const noHeading = 'it does not begin with the heading that docs/reference/chargeback-report.md shows'

const chargebacks: HandedInKind = {
  what: 'chargebacks',
  read: async (parts, name, bytes, tell) =>
    (await importFile(parts, chargebackReports, name, text(bytes), tell)) ?? { broken: noHeading },
}

export function handedInKinds({ slipAccounts, acquirers }: Pick<HandedInParts, 'slipAccounts' | 'acquirers'>): HandedInKind[] {
  const accounts = [...slipAccounts.values()]
  return [
    chargebacks,
    ...[...acquirers.values()].flatMap(({ options }) => ofAcquirer(options)),
    ...(accounts.length > 1 ? [ofWhoseItIs(accounts)] : []),
    ...accounts.map(ofAccount),
  ]
}

function ofAcquirer({ name: of, account: { acquirerId }, dialect }: Acquirer['options']): HandedInKind[] {
  const { settlementFile: layout, reconciliation, captures } = dialect
  const own = { name: of, acquirerId }
  return [
    ...(layout
      ? [
          {
            what: 'settlement',
            of,
            read: (parts, name, bytes, tell) =>
              importSettlement(parts, { ...own, rules: reconciliation, layout }, name, text(bytes), tell),
          } satisfies HandedInKind,
        ]
      : []),
    ...(captures.folder === undefined
      ? []
      : [
          {
            what: 'acknowledgement',
            of,
            read: (parts, name, bytes, tell) =>
              importAcknowledgement(parts, { ...own, rules: captures }, name, text(bytes), tell),
          } satisfies HandedInKind,
        ]),
  ]
}

const ofAccount = (account: SlipAccount): HandedInKind => ({
  what: 'return',
  of: account.name,
  read: (parts, name, bytes, tell) => importBankFile(parts, account, name, bytes, tell),
})

/** Of the account that the file says it is of. */
const ofWhoseItIs = (accounts: readonly SlipAccount[]): HandedInKind => ({
  what: 'return',
  async read(parts, name, bytes, tell) {
    const fitting: SlipAccount[] = []
    for (const account of accounts) if (await isWhole(account, bytes)) fitting.push(account)
    if (fitting.length === 1) return ofAccount(fitting[0]!).read(parts, name, bytes, tell)
    return { broken: 'it does not say which account it is of, or is not whole: say whose it is' }
  },
})
