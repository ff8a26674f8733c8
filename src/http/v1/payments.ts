// Payments by the interface: made, followed up, read.

import { catalogue } from '../../contract/results/catalogue.ts'
import type { Channel } from '../../merchants/directory.ts'
import type { PaymentResponse } from '../../payments/execute.ts'
import { type FollowUpRequest, followUp } from '../../payments/followUps/followUp.ts'
import type { Refusal } from '../../payments/initial/choose.ts'
import { chooseAuthentication } from '../../payments/initial/chooseAuthentication.ts'
import { type Choose, type PaymentRequest, pay } from '../../payments/initial/pay.ts'
import { currentRecord, type Readable, readPayment } from '../../payments/read/status.ts'
import { isId } from '../../platform/clock.ts'
import { type HttpAnswer, json, type Request, resultAnswer, saidAnswer } from '../answer.ts'
import { type Caller, keptTo } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import type { RequestFunction } from '../router.ts'
import { isHeldForMerchant } from '../underWay.ts'
import {
  type Admission,
  admit,
  admitRead,
  askedFor,
  identify,
  notFound,
  ruledChannel,
  tooManyReads,
  unlessAnswered,
} from './admission.ts'

/** A request that begins something by itself: a payment, or an authentication of a cardholder alone. */
const begin =
  (kind: 'payment' | 'threeDSecure', choose?: Choose) =>
  (admission: Admission): RequestFunction =>
  async request => {
    const admitted = await admitRuled(admission, request, kind)
    if (!('channel' in admitted)) return admitted
    return answerOf(admission.parts, request, admitted, await pay(admission.parts, admitted, choose))
  }

/** On the channel that is named, or ruled. What a form holds beside its parameters ends here. */
async function admitRuled(
  admission: Admission,
  request: Request,
  kind: 'payment' | 'threeDSecure',
): Promise<PaymentRequest | HttpAnswer> {
  const identified = identify(admission, request)
  if (!('caller' in identified)) return identified
  const admitted = await admit(admission, request, identified, ruledChannel(admission, identified), admission.checks[kind])
  return 'channel' in admitted ? admitted : unlessAnswered(admission, request, identified, admitted)
}

export const postPayment = begin('payment')
export const postThreeDSecure = begin('threeDSecure', chooseAuthentication)

export const postFollowUp =
  (admission: Admission): RequestFunction =>
  async (request, { id: referenceId = '' }) => {
    // An id that cannot be one of ours names no payment.
    const id = isId(referenceId) ? referenceId : '0'.repeat(32)
    const admitted = await admitFollowUp(admission, request, id)
    if (!('channel' in admitted)) return admitted
    const mayHold: FollowUpRequest['mayHold'] = fields =>
      isHeldForMerchant(admission.parts, request, admitted.channel.merchantId, fields)
    const said = await followUp(admission.parts, { ...admitted, referenceId: id, mayHold })
    if ('unknown' in said) {
      const { channel, values } = admitted
      return resultAnswer(admission.parts, request, 404, said.unknown, {
        entityId: channel.id,
        more: askedFor(values.get('paymentType'), values.get('paymentBrand')),
      })
    }
    return answerOf(admission.parts, request, admitted, said)
  }

async function admitFollowUp(admission: Admission, request: Request, id: string): Promise<PaymentRequest | HttpAnswer> {
  const identified = await identify(admission, request)
  if (!('caller' in identified)) return identified
  const channel = (await channelOfReference(admission.parts, identified.caller, id)) ?? ruledChannel(admission, identified)
  const admitted = await admit(admission, request, identified, channel, admission.checks.followUp)
  return 'channel' in admitted ? admitted : unlessAnswered(admission, request, identified, admitted)
}

/** One payment by its id; what is not meant is not there. `missing`: the status that says so. */
const readOne =
  (check: 'read' | 'query', missing: 400 | 404, isMeant = (_: Readable) => true) =>
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const admitted = admitRead(admission, request, admission.checks[check])
    if (!('caller' in admitted)) return admitted
    const refused = tooManyReads(admission, request, admitted.caller, id)
    if (refused) return refused
    const found = isId(id)
      ? await readPayment(admission.parts, admitted.caller.merchantId, id, keptTo(admitted.caller))
      : undefined
    return found && isMeant(found)
      ? json(200, currentRecord(admission.parts, found))
      : notFound(admission, request, admitted.caller, missing)
  }

export const getPayment = readOne('read', 404)
export const getThreeDSecure = readOne('read', 404, ({ type }) => type === '3D')
export const queryOne = readOne('query', 400)

export const resultCodes =
  ({ parts }: Admission): RequestFunction =>
  request => {
    const footer = resultAnswer(parts, request, 200, 'requestSucceeded')
    return { ...footer, before: codes, body: footer.body.slice(1) }
  }

/** The same bytes for all who ask: whoever asks often and reads slowly holds no copies. */
const codes = Buffer.from(
  `{"resultCodes":${JSON.stringify(Object.values(catalogue).map(([code, description]) => ({ code, description })))},`,
)

/** A merchant's capture, refund or reversal goes to the channel of its payment: a reversal has nothing that a rule could go by. */
async function channelOfReference(parts: HttpParts, { entity, merchantId }: Caller, id: string): Promise<Channel | undefined> {
  if (entity.kind === 'channel') return undefined
  const payment = await readPayment(parts, merchantId, id)
  const channel = payment && parts.directory.entity(payment.channelId)
  return channel?.kind === 'channel' ? channel : undefined
}

export function answerOf(
  parts: HttpParts,
  request: Request,
  { channel, values }: PaymentRequest,
  said: PaymentResponse | Refusal,
): HttpAnswer {
  parts.count.payment('refused' in said ? 'refused' : said.outcome)
  if (!('refused' in said)) return saidAnswer(said)
  const isLater = said.refused === 'tooManyAtOnce'
  return resultAnswer(parts, request, isLater ? 429 : 400, said.refused, {
    entityId: channel.id,
    ...(isLater && { headers: { 'Retry-After': '1' } }),
    more: askedFor(values.get('paymentType'), values.get('paymentBrand')),
    ...(said.parameterErrors && { parameterErrors: said.parameterErrors }),
  })
}
