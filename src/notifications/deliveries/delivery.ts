// A delivery: one thing that one endpoint must be told, and what became of an attempt to tell it.

import { createHash } from 'node:crypto'
import type { Endpoint } from '../endpoints/endpoint.ts'

export type Delivery = {
  readonly merchantId: string
  readonly endpointId: string
  readonly position: number
  readonly notificationId: string
  readonly sequence: number
  readonly paymentId: string
  readonly eventSequence: number
  readonly rootId: string
  readonly url: string | null
  /** How many attempts were begun, this one included. */
  readonly attempts: number
  /** Business time. */
  readonly emittedAt: number
}

/** With what is needed to send it: its endpoint and its event. */
export type LeasedDelivery = Delivery &
  Pick<Endpoint, 'kind' | 'channelId' | 'fields' | 'wrapper' | 'sealedSecrets'> & {
    readonly endpointUrl: string | null
    readonly type: string
    readonly action: string | null
    readonly occurredAt: number
    /** The answer as it was given; absent while pending, then the payload is made of the payment alone (decisions, 39). */
    readonly body: string | null
  }

export type DeliveryAttempt = {
  readonly merchantId: string
  readonly endpointId: string
  readonly position: number
  readonly attempt: number
  /** Business time. */
  readonly attemptedAt: number
  readonly milliseconds: number
  readonly status: number | null
  readonly failure: string | null
  readonly answer: string
  readonly acknowledged: boolean
  readonly state: 'scheduled' | 'acknowledged' | 'given up'
  /** Real time of the next attempt. */
  readonly dueAt: number | null
}

/** The same for every attempt and every replay of one event at one endpoint, without having to be looked up. */
export const notificationId = (endpointId: string, paymentId: string, eventSequence: number): string =>
  createHash('sha256').update(`${endpointId} ${paymentId} ${eventSequence}`).digest('hex').slice(0, 32)
