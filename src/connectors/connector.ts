// What every payment method gives: declared facts, then the operations it can carry out. It knows no database and no HTTP server.

import type { Card } from '../contract/card.ts'
import type { Values } from '../contract/parameters/table.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { ChannelSettings } from '../merchants/settings.ts'

/** Where a payment goes: the simulator, the processor's test system, or the processor. */
export type Mode = 'internal' | 'external' | 'live'

/** PA, DB and CD begin a payment, 3D is an authentication alone; CP, RF and RV refer to a payment. CB, CR and RC are reported to us: no connector gets them. */
export type OperationType = 'PA' | 'DB' | 'CD' | '3D' | 'CP' | 'RF' | 'RV' | 'CB' | 'CR' | 'RC'

/** One thing to be asked of a connector. The same operation may be asked again with the same ids when its outcome is unknown. */
export type Operation = {
  readonly type: OperationType
  readonly merchantId: string
  readonly paymentId: string
  readonly channel: { readonly id: string; readonly settings: ChannelSettings }
  /** The shop as shoppers know it. */
  readonly shopName: string
  readonly mode: Mode
  readonly brand: string
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly card?: Card
  /** Parameters of the request by wire name, without secrets and without merchantInvoiceId, which is never passed onward. */
  readonly fields: Values
  /** Business time of the request. */
  readonly receivedAt: number
  /** The payment that this one refers to, with what its connector wanted kept. */
  readonly reference?: {
    readonly paymentId: string
    readonly type: OperationType
    readonly amount: number
    readonly receivedAt: number
    /** Its parameters, like those of the operation. */
    readonly fields?: Values
    readonly kept: ConnectorState
    /** What the approved capture of a preauthorization kept: some methods refund the capture. */
    readonly captureKept?: ConnectorState
  }
  /** A reversal by recovery: of an operation whose outcome is unknown. Its reference is the operation itself. */
  readonly recovering?: true
  /** After a partial capture: the rest of the hold goes free. So much was held, hundredths; the amount is the captured one, the reference the preauthorization. */
  readonly releasing?: number
  /** A partial reversal: what stays of the referenced payment, hundredths. */
  readonly remains?: number
  /** What `prepare` returned when the payment was written. */
  readonly prepared?: PreparedStates
  /** 1 for the first time. */
  readonly attempt: number
  /** What the last attempt left. */
  readonly progress?: ConnectorState
  /** Where the caller reached us, without a slash at the end; unknown when recovery asks. */
  readonly publicUrl?: string
  /** Set when the shopper can be sent away: where the other side sends shopper and notices back to. */
  readonly addresses?: Addresses
  /** What a continuation had kept when recovery takes over. */
  readonly continued?: ConnectorState
  /** The outcome of 3-D Secure, for the authorization that follows. */
  readonly authentication?: Structure
}

/** Our own addresses for one payment, each with a token that ends in the merchant's tail (decisions, 17 and 43). */
export type Addresses = {
  /** redirect.url: shows the next hop. */
  readonly page: string
  /** Where the shopper's browser comes back, and where it comes back having given up. */
  readonly back: string
  readonly cancel: string
  /** For the other side's server; no browser ever sees it. */
  readonly notice: string
  /** A hidden frame that posts method data, and where the other side reports its end. */
  readonly method: string
  readonly methodDone: string
}

/** What a connector wants to find again at captures, refunds and reversals. Never card data. */
export type ConnectorState = Readonly<Record<string, string>>

/** What must be on disk before the first message leaves, for example its trace number, in the order of the ways it may go. Never card data. */
export type PreparedStates = readonly Readonly<Record<string, string>>[]

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
      readonly kept: ConnectorState
      /** What the other side calls the money that moved, where no other payment may be settled by the same. */
      readonly transaction?: string
      /** A capture that waits for a file of the acquirer that was kept: what the file says of it. */
      readonly collects?: Readonly<Record<string, string>>
      /** A slip that is issued, or an order to the bank for one. */
      readonly slip?: SlipIssue | SlipOrder
      /** Structures of the answer that the method fills, for example threeDSecure and virtualAccount. */
      readonly structures?: Structures
      /** Only a part was approved, which the channel takes: the amount is that part. */
      readonly part?: true
      /** What must be done after this answer: take all of it back, or release what a partial capture left of the hold. */
      readonly leaves?: 'reverse' | 'release'
    }
  | Redirect
  /** It certainly did not leave the house; `never`: at no earlier attempt either. `result`: when there is a better word than that the other side could not be reached. */
  | ({ readonly kind: 'notSent'; readonly why: string; readonly never?: true; readonly result?: ResultName } & Unsettled)
  /** It may have been carried out. `answered`: the other side spoke, and said nothing that proves anything. `afterSeconds`: when recovery begins, if that is
   * not the same for all whom the connector asks. */
  | ({ readonly kind: 'unknown'; readonly why: string; readonly answered?: true; readonly afterSeconds?: number } & Unsettled)

/** A slip as it is issued: whoever pays it pays by this number. */
export type SlipIssue = SlipOrder & {
  /** Without its check digit; no account gives one twice. */
  readonly number: string
  /** The merchant's own number for it, as the bank knows it: at most 15 of A-Z and 0-9. */
  readonly document: string
  /** `yyyy-MM-dd`. */
  readonly dueOn: string
  readonly barcode: string
  /** As people type it; of store slips the reference. */
  readonly line: string
  /** SHA-256 of the token of its page, in hex. */
  readonly linkHash: string
}

/** `order`: what a file to the bank has to say; absent where the account sends none. */
export type SlipOrder = { readonly account: string; readonly order?: 'entry' | 'writeOff' }

export type Unsettled = {
  /** Trying again leads nowhere until somebody has decided. */
  readonly needsDecision?: true
  /** What the next attempt is given: how far this one came. Never card data. */
  readonly progress?: ConnectorState
}

export type Structure = Readonly<Record<string, string>>
export type Structures = Readonly<Record<string, Structure>>

/** The shopper is sent away. The payment stays pending until somebody returns or the deadline ends it. */
export type Redirect = {
  readonly kind: 'redirect'
  readonly step: string
  /** What the other side calls what it has begun: it belongs to this payment alone, or the shopper is not sent away. */
  readonly transaction?: string
  /** Sealed until the return. Never the CVV. */
  readonly data: ConnectorState
  readonly hop: Hop
  /** Sealed apart, and erased when the continuation is taken or ends. */
  readonly keepsCvv?: true
  readonly endsAfterSeconds: number
  /** The result when nobody returns in time. */
  readonly endsAs: ResultName
  readonly details?: Readonly<Record<string, string>>
  readonly structures?: Structures
  /** What the merchant posts with the shopper to redirect.url; usually nothing. */
  readonly parameters?: readonly FormParameter[]
  /** Method data that a hidden frame posts before the shopper goes. */
  readonly precondition?: true
  /** Money may have moved without a return: the other side is asked before the payment ends. */
  readonly asksAtEnd?: true
}

export type FormParameter = { readonly name: string; readonly value: string }

/** What our page does with the shopper: goes on, posts a form, goes back to the shop because the other side needs more time, or collects what 3-D Secure wants to know of the browser. */
export type Hop =
  | { readonly kind: 'go'; readonly url: string }
  | { readonly kind: 'shop' }
  | { readonly kind: 'post'; readonly url: string; readonly parameters: readonly FormParameter[] }
  | {
      readonly kind: 'browser'
      readonly method?: { readonly url: string; readonly parameters: readonly FormParameter[] }
    }

/** What came back, checked against what was kept. Only `resume` goes on; a forged return changes nothing. */
export type ReturnResult =
  | { readonly kind: 'resume'; readonly event: ConnectorState }
  /** The result does not come with the browser; it is on its way from server to server. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'forged'; readonly why: string }

/** A notice has an answer for the server that sent it. */
export type NoticeResult = Exclude<ReturnResult, { kind: 'wait' }> & NoticeAnswer
export type NoticeAnswer = { readonly answer: string; readonly contentType: string }

export type Arrival = {
  readonly step: string
  readonly data: ConnectorState
  readonly values: ReadonlyMap<string, string>
  readonly cancelled?: true
}

/** An operation before it has an id: what is known when the payment is about to be written. */
export type OperationRequest = {
  readonly type: OperationType
  readonly channel: { readonly settings: ChannelSettings }
  readonly mode: Mode
  readonly brand: string
  readonly amount: number
  readonly currency: string
  /** First digits of the card number, at most eight; absent on operations that refer to a payment. */
  readonly bin?: string
  readonly reference?: { readonly kept: ConnectorState }
  readonly now: number
}

/** How an unknown outcome is settled: ask the other side, send the same again, or reverse it. */
export type Settlement = { readonly how: 'ask' | 'repeat' | 'reverse'; readonly afterSeconds: number }

export type Connector = {
  readonly name: string
  /** The request waits so long for an answer; then the payment is pending. */
  readonly answerWithinSeconds: number
  /** So much longer, where something goes before: an authentication. `step`: the one that a resumption goes on from. */
  secondsBefore?(operation: Operation, step?: string): number
  /** The operations that are implemented, each with its rule for unknown outcomes. */
  readonly operations: Readonly<Partial<Record<OperationType, Settlement>>>
  /** What it has refunded cannot be taken back. */
  readonly refundsStand?: true
  /** Whether a payment can be reversed in part, by what its answer kept. */
  partialReversal(kept: ConnectorState): boolean
  /** The name of what keeps an operation from being sent at all, for example an amount that its currency cannot express. */
  refuses?(asked: OperationRequest): ResultName | undefined
  /** What of the request's own parameters it cannot take. */
  refusesParameter?(values: Values): { readonly result: ResultName; readonly name: string; readonly message: string } | undefined
  /** Called before the payment is written, and kept with it. Synchronous: a transaction may be open. */
  prepare?(asked: OperationRequest): PreparedStates
  perform(operation: Operation, signal: AbortSignal): Promise<Reply>
  /** Only for operations settled by asking. */
  ask?(operation: Operation, signal: AbortSignal): Promise<Reply>
  /** Goes on after a return or a notice that `readReturn` or `readNotice` accepted. */
  resume?(
    operation: Operation,
    from: { readonly step: string; readonly data: ConnectorState; readonly event: ConnectorState },
    signal: AbortSignal,
  ): Promise<Reply>
  /** Pure: is this return the one that was waited for? */
  readReturn?(arrival: Arrival): ReturnResult
  readNotice?(arrival: Omit<Arrival, 'values'> & { readonly body: string }): NoticeResult
  /** The answer to a notice for a payment that is no longer waiting, or never was. `told`: what the payment's answer says, once it has one. */
  staleNotice?(body: string, told: () => Promise<Structures | undefined>): Promise<NoticeAnswer>
  /** Who is asked about a payment, where many payments wait together when it falls silent; empty or absent where nobody is asked. */
  askedAt?(payment: Pick<Operation, 'brand' | 'prepared'>): string
  /** Each link to those has a guard of its own against silence: nobody else has to rest them. */
  readonly guardsLinks?: true
  /** Called once; the connector hands over replies that come late or twice. */
  start?(late: LateReply, found: FoundReply): void
  stop?(): Promise<void>
}

/** Never fails: whoever takes the reply looks after it. */
export type LateReply = (merchantId: string, paymentId: string, reply: Reply) => void

/** For a reply whose payment this process does not remember: the payment is found by one of its prepared states, made at about `madeAt`
 * (milliseconds), and the reply is read as one to the operation. Never fails. */
export type FoundReply = (prepared: PreparedStates[number], madeAt: number, read: (operation: Operation) => Reply) => void
