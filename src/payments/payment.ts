// A payment as it is kept: an immutable row, and its answer, another row. What became of a payment is read from the rows that refer to it.

import type { ConnectorState, Mode, OperationType, PreparedStates } from '../connectors/connector.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { Screening } from './risk/screen.ts'

export type Payment = {
  readonly merchantId: string
  readonly id: string
  readonly channelId: string
  /** The first payment of the chain and the payment named in the request; absent on a first payment. */
  readonly rootId?: string
  readonly referenceId?: string
  readonly type: OperationType
  readonly brand?: string
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly mode: Mode
  readonly connector: string
  readonly merchantTransactionId?: string
  /** The token that made it; absent when no token did. */
  readonly tokenId?: string
  /** Business time and real time of the request, milliseconds. */
  readonly receivedAt: number
  readonly recordedAt: number
  readonly record: PaymentRecord
}

/** What is kept as JSON beside the columns. */
export type PaymentRecord = {
  readonly ndc: string
  /** The checkout that it was made in, as the wire names it: its shopper and its merchant know that one. */
  readonly checkout?: string
  /** `shopper`: whoever knows the checkout said where the shop is, and the merchant stands nowhere for that address. */
  readonly shopSaidBy?: 'shopper'
  /** The registration that it pays with, or that was made with it. */
  readonly registration?: { readonly ownerId: string; readonly id: string; readonly made?: true }
  /** Parameters that are echoed or kept for connectors, by wire name; never a secret one. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly card?: { readonly bin?: string; readonly last4Digits: string }
  /** A PA.CP: captured as soon as it is approved. */
  readonly captureAtOnce?: true
  /** What somebody asked for of a PA.CP: a capture is not the one that completes it, whatever becomes of it. */
  readonly asked?: true
  /** A slip: nothing is held or cleared by it, only its receipts are money. */
  readonly slip?: true
  /** A capture: how much of the hold it ends. */
  readonly releases?: number
  /** A reversal: whether the 72 hours allow a message to the issuer (decisions, 8). */
  readonly releasesAtIssuer?: boolean
  /** A partial reversal: what then stays of the payment, hundredths. */
  readonly remains?: number
  /** What the risk check said. */
  readonly risk?: Screening
  /** What the connector wanted on disk before the first message leaves. */
  readonly prepared?: PreparedStates
}

export type Answer = {
  readonly result: ResultName
  /** Money moved or is held. */
  readonly approved: boolean
  readonly kept: ConnectorState
  /** The JSON text as it was given. */
  readonly body: string
  readonly answeredAt: number
}

/** `bytes`: of what is stored of request and answer; absent until it was read. */
export type PaymentState = Payment & { readonly answer?: Answer; readonly bytes?: number }
