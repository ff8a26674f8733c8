// A capture that is not sent by itself but collected for a file: what the file says of it. Pure. No card number: the authorization names the card.

import { currencies } from '../../../contract/currencies.ts'
import type { Operation, Reply } from '../../connector.ts'
import { amountDigits } from '../../minorUnits.ts'
import type { Dialect } from './dialects.ts'
import type { AcquirerAccountData } from './forwarding.ts'
import type { Trace } from './messages.ts'
import { retrievalReference, transmitted, versionOf } from './versions.ts'

/** The columns of a line, in their order: DE42, 41, 11, 7, 37, 4 and 49 of the capture, then DE41, 11, 7, 37 and 38 of its authorization. */
export const collectedColumns = [
  'merchantId',
  'terminal',
  'trace',
  'transmitted',
  'reference',
  'amount',
  'currency',
  'authorizationTerminal',
  'authorizationTrace',
  'authorizationTransmitted',
  'authorizationReference',
  'authorizationCode',
] as const
export type CollectedLine = Readonly<Record<(typeof collectedColumns)[number], string>>

/** Decided when the payment is written, so that a profile that changes meanwhile makes no second capture of what may have been sent. */
export const isCollected = ({ type, prepared }: Pick<Operation, 'type' | 'prepared'>): boolean =>
  type === 'CP' && prepared?.[0]?.capture === 'file'

/** An advice cannot be refused: it is a success, and what names the 0220 that it stands for is kept, so that a refund names it. */
export function collect(
  operation: Operation,
  { terminal, stan, at }: Trace,
  account: AcquirerAccountData,
  dialect: Dialect,
  acquirer: string,
  institute: string,
): Reply {
  const { amount, currency, reference } = operation
  const { kept } = reference!
  const rrn = retrievalReference(at, stan)
  const line: CollectedLine = {
    merchantId: account.merchantId,
    terminal,
    trace: stan,
    transmitted: transmitted(at),
    reference: rrn,
    amount: String(BigInt(amountDigits(amount, currency))),
    currency: currencies.get(currency)!.number,
    authorizationTerminal: kept.terminal ?? '',
    authorizationTrace: kept.stan ?? '',
    authorizationTransmitted: transmitted(Number(kept.at)),
    authorizationReference: kept.hostReference ?? kept.rrn ?? '',
    authorizationCode: kept.authorizationCode ?? '',
  }
  return {
    kind: 'answer',
    result: 'succeeded',
    amount,
    currency,
    details: {
      ExtendedDescription: 'Collected for a capture file',
      clearingInstituteName: institute,
      ConnectorTxID1: kept.hostReference ?? rrn,
    },
    ...(amount < reference!.amount && { leaves: 'release' as const }),
    kept: { acquirer, type: `${versionOf(dialect).digit}220`, stan, at: String(at), terminal, rrn },
    collects: line,
  }
}
