// A payment is held while its shopper is away: the continuation is on disk before the redirect is told (decisions, 44).

import type { ConnectorState, Hop, Operation, Redirect } from '../../connectors/connector.ts'
import type { Nested } from '../../contract/nested.ts'
import { type ResultName, results } from '../../contract/results/results.ts'
import { seal, unseal } from '../../vault/seal.ts'
import type { PaymentResponse } from '../execute.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment } from '../payment.ts'
import { sealPending } from '../read/pendingAnswers.ts'
import { paymentRecord } from '../read/record.ts'
import { sideOf } from '../sides.ts'
import { insertContinuation } from './store.ts'
import { hashOf, tokenOf } from './tokens.ts'

/** What is sealed in a continuation. */
export type ContinuationData = {
  readonly data: ConnectorState
  readonly hop: Hop
  readonly endsAs: ResultName
  readonly asksAtEnd?: true
  /** The tokens of the addresses, because later steps hand out the same ones. */
  readonly page: string
  readonly notice: string
  /** The CVV waits beside it, where a crash of the server erases it. */
  readonly cvv?: true
}

export async function holdContinuation(
  parts: PaymentParts,
  payment: Payment,
  operation: Operation,
  redirect: Redirect,
): Promise<PaymentResponse> {
  const addresses = operation.addresses
  if (!addresses) throw new Error(`${payment.connector} redirects without addresses`)
  const now = parts.directory.businessTime(payment.merchantId)
  const body = JSON.stringify(
    paymentRecord(
      payment,
      {
        result: results.pending,
        ...(redirect.details && { details: redirect.details }),
        ...(redirect.structures && { structures: redirect.structures }),
        redirect: redirectOf(redirect, addresses),
      },
      parts.build,
      now,
    ),
  )
  const cvv = redirect.keepsCvv ? operation.card?.cvv : undefined
  const held: ContinuationData = {
    data: redirect.data,
    hop: redirect.hop,
    endsAs: redirect.endsAs,
    page: tokenOf(addresses.page),
    notice: tokenOf(addresses.notice),
    ...(redirect.asksAtEnd && { asksAtEnd: true }),
    ...(cvv !== undefined && { cvv: true }),
  }
  const { merchantId, id } = payment
  const real = parts.clock.real()
  await insertContinuation(
    parts.database.work,
    payment,
    {
      step: redirect.step,
      sealed: seal(parts.keys, parts.random, continuationPlace(merchantId, id), JSON.stringify(held)),
      ...(cvv !== undefined && { secret: seal(parts.keys, parts.random, challengeSecretPlace(merchantId, id), cvv) }),
      answer: sealPending(parts, payment, body),
      deadline: now + redirect.endsAfterSeconds * 1000,
      endsAt: real + redirect.endsAfterSeconds * 1000,
      pageHash: hashOf(parts, 'page', held.page),
      noticeHash: hashOf(parts, 'notice', held.notice),
      side: sideOf(parts.connectors.get(payment.connector), payment),
    },
    real,
  )
  return { outcome: 'pending', body }
}

/** redirect.url is always ours; parameters are always a list (decisions, 43). */
function redirectOf(redirect: Redirect, addresses: NonNullable<Operation['addresses']>): Nested {
  const parameters = (redirect.parameters ?? []).map(({ name, value }) => ({ name, value }))
  return {
    url: addresses.page,
    parameters,
    ...(parameters.length > 0 && { method: 'POST' }),
    ...(redirect.precondition && {
      preconditions: [
        {
          origin: 'iframe#hidden',
          waitUntil: 'iframe#onload',
          description: 'Hidden iframe post for 3D Secure 2.0',
          method: 'GET',
          url: addresses.method,
          parameters: [],
        },
      ],
    }),
  }
}

export const openContinuation = (parts: PaymentParts, merchantId: string, paymentId: string, sealed: Buffer): ContinuationData =>
  JSON.parse(unseal(parts.keys, continuationPlace(merchantId, paymentId), sealed))

export const openCvv = (parts: PaymentParts, merchantId: string, paymentId: string, secret: Buffer): string =>
  unseal(parts.keys, challengeSecretPlace(merchantId, paymentId), secret)

/** What binds a continuation, and a CVV, to its payment. */
export const continuationPlace = (merchantId: string, paymentId: string) => `continuation ${merchantId} ${paymentId}`
export const challengeSecretPlace = (merchantId: string, paymentId: string) => `continuation secret ${merchantId} ${paymentId}`
