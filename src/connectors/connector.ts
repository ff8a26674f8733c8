// What every payment method gives: declared facts, then the operations it can carry out. It knows no database and no HTTP server.

import type { ResultName } from '../contract/results/results.ts'
import type { ChannelSettings } from '../merchants/settings.ts'

/** Where a payment goes: the simulator, the processor's test system, or the processor. */
export type Mode = 'internal' | 'external' | 'live'

/** PA, DB and CD begin a payment; CP, RF and RV refer to one. */
export type OperationType = 'PA' | 'DB' | 'CD' | 'CP' | 'RF' | 'RV'

export type Card = {
  readonly number: string
  readonly expiryMonth: string
  readonly expiryYear: string
  readonly holder?: string
  /** Only while the shopper's own request runs; never stored. */
  readonly cvv?: string
}

/** One thing to be asked of a connector. The same operation may be asked again with the same ids when its outcome is unknown. */
export type Operation = {
  readonly type: OperationType
  readonly merchantId: string
  readonly paymentId: string
  readonly channel: { readonly id: string; readonly name: string; readonly settings: ChannelSettings }
  readonly mode: Mode
  readonly brand: string
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly card?: Card
  /** Parameters of the request by wire name, without secrets and without merchantInvoiceId, which is never passed onward. */
  readonly fields: ReadonlyMap<string, string>
  /** Business time of the request. */
  readonly receivedAt: number
  /** The payment that this one refers to, with what its connector wanted kept. */
  readonly reference?: {
    readonly paymentId: string
    readonly type: OperationType
    readonly amount: number
    readonly receivedAt: number
    readonly kept: Kept
  }
  /** A reversal by recovery: of an operation whose outcome is unknown. Its reference is the operation itself. */
  readonly recovering?: true
  /** After a partial capture: the rest of the hold goes free. The amount is the captured one, the reference the preauthorization. */
  readonly releasing?: true
  /** A partial reversal: what stays of the referenced payment, hundredths. */
  readonly remains?: number
  /** What `prepare` returned when the payment was written. */
  readonly prepared?: Prepared
  /** 1 for the first time. */
  readonly attempt: number
}

/** What a connector wants to find again at captures, refunds and reversals. Never card data. */
export type Kept = Readonly<Record<string, string>>

/** What must be on disk before the first message leaves, for example its trace number, in the order of the ways it may go. Never card data. */
export type Prepared = readonly Readonly<Record<string, string>>[]

export type Reply =
  | {
      readonly kind: 'answer'
      /** `succeeded` is turned into the success code of the mode. */
      readonly result: ResultName
      /** As the other side confirmed them; compared with what was sent. */
      readonly amount: number
      readonly currency: string
      readonly details: Readonly<Record<string, string>>
      readonly avsResponse?: string
      readonly cvvResponse?: string
      readonly riskScore?: string
      readonly kept: Kept
      /** What must be done after this answer: take all of it back, or release what a partial capture left of the hold. */
      readonly leaves?: 'reverse' | 'release'
    }
  /** It certainly did not leave the house; `never`: at no earlier attempt either. */
  | { readonly kind: 'notSent'; readonly why: string; readonly never?: true }
  /** It may have been carried out. */
  | { readonly kind: 'unknown'; readonly why: string }

/** An operation before it has an id: what is known when the payment is about to be written. */
export type Asked = {
  readonly type: OperationType
  readonly channel: { readonly settings: ChannelSettings }
  readonly mode: Mode
  readonly brand: string
  readonly amount: number
  readonly currency: string
  /** First digits of the card number, at most eight; absent on operations that refer to a payment. */
  readonly bin?: string
  readonly reference?: { readonly kept: Kept }
  readonly now: number
}

/** How an unknown outcome is settled: ask the other side, send the same again, or reverse it. */
export type Settlement = { readonly how: 'ask' | 'repeat' | 'reverse'; readonly afterSeconds: number }

export type Connector = {
  readonly name: string
  /** The request waits so long for an answer; then the payment is pending. */
  readonly answerWithinSeconds: number
  /** The operations that are implemented, each with its rule for unknown outcomes. */
  readonly operations: Readonly<Partial<Record<OperationType, Settlement>>>
  readonly partialReversal: boolean
  /** The name of what keeps an operation from being sent at all, for example an amount that its currency cannot express. */
  refuses?(asked: Asked): ResultName | undefined
  /** Called before the payment is written, and kept with it. Synchronous: a transaction may be open. */
  prepare?(asked: Asked): Prepared
  perform(operation: Operation, signal: AbortSignal): Promise<Reply>
  /** Only for operations settled by asking. */
  ask?(operation: Operation, signal: AbortSignal): Promise<Reply>
  /** Called once; the connector hands over replies that come late or twice. */
  start?(late: LateReply): void
  stop?(): Promise<void>
}

export type LateReply = (merchantId: string, paymentId: string, reply: Reply) => Promise<void>
