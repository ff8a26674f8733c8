// Registrations by the interface: made, read, paid with, deleted.

import type { Nested } from '../../contract/nested.ts'
import type { ResultName } from '../../contract/results/results.ts'
import { pay } from '../../payments/initial/pay.ts'
import { refuseElsewhere } from '../../platform/database/elsewhere.ts'
import { takeTurns } from '../../platform/database/turns.ts'
import { chooseRegistration, storeRegistration } from '../../registrations/create.ts'
import { deleteRegistration } from '../../registrations/erase.ts'
import { registrationRecord } from '../../registrations/record.ts'
import type { Registration } from '../../registrations/store.ts'
import { usableRegistration, withRegistration } from '../../registrations/use.ts'
import { type HttpAnswer, json, ndcOf, type Request, resultAnswer } from '../answer.ts'
import { actorOf, type Caller } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import type { RequestFunction } from '../router.ts'
import { type Admission, admit, admitRead, askedFor, identify, ruledChannel, unlessAnswered } from './admission.ts'
import { answerOf } from './payments.ts'

export const postRegistration =
  (admission: Admission): RequestFunction =>
  async request => {
    const { parts } = admission
    const identified = identify(admission, request, { action: 'register' })
    if (!('caller' in identified)) return identified
    const admitted = await admit(
      admission,
      request,
      identified,
      ruledChannel(admission, identified),
      admission.checks.registration,
    )
    if (!('channel' in admitted)) return admitted
    const { caller } = identified
    const row = chooseRegistration(parts, admitted, caller.merchantId, request.number)
    const stored = 'refused' in row ? row : await storeRegistration(parts, row, admitted.key)
    if (!('refused' in stored))
      return stored.deletedAt === null
        ? json(200, recordOf(parts, caller, stored))
        : unusable(parts, request, caller, 'registrationDeleted', { id: stored.id }) // what is sent again after that
    return resultAnswer(parts, request, 400, stored.refused, {
      entityId: caller.entityId,
      // What was refused has an id, as everything that is refused for its card has one.
      more: { ...(stored.stored && { id: request.number }), ...askedFor(undefined, admitted.values.get('paymentBrand')) },
      ...(stored.parameterErrors && { parameterErrors: stored.parameterErrors }),
    })
  }

export const getRegistration =
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const { parts } = admission
    const admitted = admitRead(admission, request, admission.checks.read, 'register')
    if (!('caller' in admitted)) return admitted
    const { caller } = admitted
    const found = await usableRegistration(parts, caller.entityId, id)
    return typeof found === 'string'
      ? unusable(parts, request, caller, found)
      : json(200, recordOf(parts, caller, found, ndcOf(request, caller.entityId)))
  }

export function removeRegistration(admission: Admission): RequestFunction {
  const { parts } = admission
  // Each ends in the audit, which takes one at a time: those of one owner wait here, and not with the connections of everybody's readings.
  const inTurn = takeTurns(parts.clock, turnSeconds, turnsWaiting)
  return async (request, { id = '' }) => {
    const admitted = admitRead(admission, request, admission.checks.read, 'register')
    if (!('caller' in admitted)) return admitted
    const { caller } = admitted
    const found = await usableRegistration(parts, caller.entityId, id)
    if (typeof found === 'string')
      return unusable(parts, request, caller, found === 'registrationInvalid' ? 'cannotDeregister' : found)
    if (!mayEnd(parts, caller, found))
      return resultAnswer(parts, request, 403, 'entityNotTheTokens', { entityId: caller.entityId, tokenId: caller.token.id })
    const by = actorOf(request, caller)
    const refused = await inTurn(found.ownerId, () => deleteRegistration({ ...parts, by }, found))
    return refused === undefined
      ? json(200, { ...recordOf(parts, caller, found, ndcOf(request, caller.entityId)), paymentType: 'DR' })
      : unusable(parts, request, caller, refused)
  }
}
const turnSeconds = 10
const turnsWaiting = 2000

/** Whoever may store some for its owner. That of a division is used by all its merchants, and is for none of them to end. */
const mayEnd = ({ directory }: HttpParts, { token, merchantId }: Caller, { ownerId }: Registration): boolean =>
  ownerId === merchantId || directory.may(token, 'register', ownerId)

export const postRegistrationPayment =
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const { parts } = admission
    const identified = identify(admission, request)
    if (!('caller' in identified)) return identified
    const { caller } = identified
    const judge = admission.checks.registrationPayment
    const refuse = (refused: HttpAnswer) => unlessAnswered(admission, request, identified, refused)
    const admitted = await admit(admission, request, identified, ruledChannel(admission, identified), judge)
    if (!('channel' in admitted)) return refuse(admitted)
    const found = await usableRegistration(parts, caller.entityId, id)
    if (typeof found === 'string') return refuse(await unusable(parts, request, caller, found))
    const paying = await withRegistration(parts, admitted, found)
    if (typeof paying === 'string') return refuse(await unusable(parts, request, caller, paying))
    return answerOf(parts, request, admitted, await pay(parts, paying))
  }

/** As it reads now, at the time of its merchant. */
const recordOf = ({ directory, build }: HttpParts, { merchantId }: Caller, found: Registration, ndc?: string): Nested =>
  registrationRecord(found, build, directory.businessTime(merchantId), ndc)

/** Nobody has such an id: 404. It is there, and cannot be used: 400. */
async function unusable(
  parts: HttpParts,
  request: Request,
  { entityId, merchantId }: Caller,
  name: ResultName,
  more?: Nested,
): Promise<HttpAnswer> {
  const status = name === 'registrationDoesNotExist' ? 404 : 400
  if (status === 404) await refuseElsewhere(parts.database.work, merchantId)
  return resultAnswer(parts, request, status, name, { entityId, ...(more && { more }) })
}
