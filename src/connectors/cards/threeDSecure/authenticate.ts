// The authentication before an authorization: a connector around the connector for cards. Without addresses to send a shopper to it passes
// everything through. The result of a challenge comes from the RReq of the directory server, never from the browser.

import type { ResultName } from '../../../contract/results/results.ts'
import type {
  Connector,
  ConnectorState,
  NoticeAnswer,
  NoticeResult,
  Operation,
  Redirect,
  Reply,
  ReturnResult,
  Structure,
  Structures,
} from '../../connector.ts'
import { browserGiven, browserNames, buildAReq, buildCReq, buildRRes, enrolmentAsked, methodData } from './build.ts'
import type { Range } from './cardRanges.ts'
import { type DirectoryServer, isFailure, type ProtocolFault, takesNoPart } from './directory.ts'
import {
  asksTooMuch,
  decodeMessage,
  encodeMessage,
  errorMessage,
  readMessage,
  sameId,
  type ThreeDSecureMessage,
} from './messages.ts'
import { type AuthenticationAction, actionOf, eciOf, isFailedEci, type Status } from './statuses.ts'

/** A challenge that is not finished in ten minutes is abandoned. */
const challengeSeconds = 600

/** Card ranges and the issuer's answer. */
const authenticationSeconds = 12

/** Without a directory server authentication is never to be had: the channel's setting decides, like anywhere else. */
export function withThreeDSecure(inner: Connector, directory: DirectoryServer | undefined): Connector {
  const flow = authentication(inner, directory)
  return {
    ...inner,
    secondsBefore: (operation, step) => (authenticates(operation) && step !== 'challenge' ? authenticationSeconds : 0),
    perform: (operation, signal) => (authenticates(operation) ? flow.begin(operation, signal) : inner.perform(operation, signal)),
    resume: (operation, { step, data, event }, signal) =>
      step === 'browser' ? flow.ask(operation, data, event, signal) : flow.conclude(operation, data, event, signal),
    readReturn,
    readNotice,
    staleNotice,
  }
}

const authenticates = ({ addresses, attempt, recovering }: Operation): boolean =>
  addresses !== undefined && attempt === 1 && !recovering

function authentication(inner: Connector, directory: DirectoryServer | undefined) {
  async function begin(operation: Operation, signal: AbortSignal): Promise<Reply> {
    if (!directory) {
      const failure = { errorCode: '405', errorDescription: 'No directory server is configured', errorSource: 'S' }
      return without(operation, failure, 'threeDSecureRejectedByConfiguration', signal)
    }
    let range: Range | undefined
    try {
      range = await directory.range(operation.card!.number, signal)
    } catch (error) {
      const failure = { errorCode: '405', errorDescription: (error as Error).message, errorSource: 'D' }
      return without(operation, failure, 'threeDSecureRejectedByDirectoryError', signal)
    }
    const { mode, fields, channel } = operation
    const forced = mode === 'internal' && enrolmentAsked(mode, fields, channel.settings) === true
    if (!range && !forced) return notEnrolled(operation, signal)
    const { version, methodUrl } = range ?? { version: '2.2.0' }
    const data: ConnectorState = { transId: directory.random.uuid(), version }
    const browser = browserGiven(operation.fields)
    if (methodUrl === undefined && browser) return ask(operation, data, browser, signal)
    const method = methodUrl !== undefined && {
      url: methodUrl,
      parameters: [{ name: 'threeDSMethodData', value: methodData(data.transId!, operation.addresses!.methodDone) }],
    }
    return {
      ...challengeOf(operation),
      step: 'browser',
      data: methodUrl === undefined ? data : { ...data, method: 'true' },
      hop: { kind: 'browser', ...(method && { method }) },
      ...(method && { precondition: true }),
    }
  }

  /** Sends the AReq. What the merchant knows of the browser counts, what our page has seen fills the gaps. */
  async function ask(operation: Operation, data: ConnectorState, seen: ConnectorState, signal: AbortSignal): Promise<Reply> {
    if (!directory) return { kind: 'unknown', why: 'the directory server is not configured any more' }
    const browser = { ...seen, ...browserGiven(operation.fields) }
    const completed = data.method === undefined ? 'U' : seen.mark === 'methodDone' ? 'Y' : 'N'
    const request = buildAReq(
      operation,
      directory.requestor,
      { transId: data.transId!, version: data.version! },
      completed,
      browser,
    )
    const answer = await directory.authenticate(request, signal)
    if (isFailure(answer) && takesNoPart(answer)) return notEnrolled(operation, signal)
    if (isFailure(answer)) return without(operation, answer, refusalOf(answer), signal)
    const status = answer.transStatus as Status
    const action = actionOf(status, text(answer.transStatusReason), false, undefined)
    const said = structureOf(operation.brand, status, answer, { version: data.version!, flow: 'frictionless' })
    if (action.kind !== 'challenge') return act(operation, action, said, signal)
    const ids = {
      ...data,
      acsTransId: String(answer.acsTransID),
      dsTransId: String(answer.dsTransID),
      mandated: said.challengeMandatedIndicator ?? 'N',
    }
    const parameters = [
      { name: 'creq', value: encodeMessage(buildCReq(ids, browser.challengeWindow)) },
      { name: 'threeDSSessionData', value: Buffer.from(operation.paymentId).toString('base64url') },
    ]
    return {
      ...challengeOf(operation),
      step: 'challenge',
      data: ids,
      hop: action.decoupled ? { kind: 'shop' } : { kind: 'post', url: String(answer.acsURL), parameters },
    }
  }

  /** The RReq has come. */
  function conclude(operation: Operation, data: ConnectorState, event: ConnectorState, signal: AbortSignal): Promise<Reply> {
    const status = event.transStatus as Status
    const action = actionOf(status, event.transStatusReason, true, event.challengeCancel)
    const said = structureOf(
      operation.brand,
      status,
      { ...event, dsTransID: data.dsTransId, acsTransID: data.acsTransId },
      {
        version: data.version!,
        flow: 'challenge',
        challengeMandatedIndicator: data.mandated!,
      },
    )
    return act(operation, action, said, signal)
  }

  async function act(operation: Operation, action: AuthenticationAction, said: Structure, signal: AbortSignal): Promise<Reply> {
    // Of two words of the issuer that contradict each other the lower one stands.
    if (action.kind === 'authorize' && action.shifts && isFailedEci(operation.brand, said.eci))
      return without(operation, said, 'threeDSecureRejectedAsUnavailable', signal)
    if (action.kind === 'authorize') return authorize(operation, said, signal)
    if (action.kind === 'unavailable') return without(operation, said, action.refusal, signal)
    return refuse(operation, action.kind === 'refuse' ? action.refusal : 'threeDSecureRejected', said)
  }

  /** Authentication could not be had: the channel decides (decisions, 45). */
  const without = (
    operation: Operation,
    said: Structure | ProtocolFault,
    refusal: ResultName,
    signal: AbortSignal,
  ): Promise<Reply> =>
    operation.channel.settings.withoutAuthentication === 'refuse' && operation.type !== '3D'
      ? Promise.resolve(refuse(operation, refusal, said))
      : authorize(operation, said, signal)

  const notEnrolled = (operation: Operation, signal: AbortSignal) =>
    without(operation, { enrolled: 'false' }, 'threeDSecureRejectedOutsideIssuerRanges', signal)

  async function authorize(operation: Operation, said: Structure, signal: AbortSignal): Promise<Reply> {
    const { addresses: _used, ...rest } = operation
    const reply = await inner.perform({ ...rest, authentication: said }, signal)
    return reply.kind === 'answer' ? { ...reply, structures: { ...reply.structures, threeDSecure: told(said) } } : reply
  }

  return { begin, ask, conclude }
}

/** Behind an authentication that stands alone nothing is authorized: no CVV is kept for it. */
const challengeOf = ({ type }: Operation): Pick<Redirect, 'kind' | 'keepsCvv' | 'endsAfterSeconds' | 'endsAs'> => ({
  kind: 'redirect',
  ...(type !== '3D' && { keepsCvv: true }),
  endsAfterSeconds: challengeSeconds,
  endsAs: 'threeDSecureAbandoned',
})

const refuse = ({ amount, currency }: Operation, result: ResultName, said: Structure): Reply => ({
  kind: 'answer',
  result,
  amount,
  currency,
  details: { ExtendedDescription: 'The cardholder was not authenticated; nothing was authorized' },
  kept: {},
  structures: { threeDSecure: told(said) },
})

/** `enrolled` is for the connector inside only. */
function told({ enrolled: _inside, ...said }: Structure): Structure {
  return said
}

const refusalOf = ({ errorSource }: ProtocolFault): ResultName =>
  errorSource === 'D' ? 'threeDSecureRejectedByDirectoryError' : 'threeDSecureRejectedByTechnicalError'

/** threeDSecure of the answer. */
function structureOf(brand: string, status: Status, message: ThreeDSecureMessage | ConnectorState, more: Structure): Structure {
  const eci = eciOf(brand, status, text(message.transStatusReason), text(message.eci))
  const said: Record<string, string | undefined> = {
    eci,
    verificationId: isFailedEci(brand, eci) ? undefined : proofOf(status, message.authenticationValue),
    ...more,
    authenticationStatus: status,
    transactionStatusReason: text(message.transStatusReason),
    dsTransactionId: text(message.dsTransID),
    acsTransactionId: text(message.acsTransID),
    authenticationType: text(message.authenticationType),
    cardHolderInfo: text(message.cardholderInfo),
    challengeMandatedIndicator: more.challengeMandatedIndicator ?? text(message.acsChallengeMandated),
  }
  return Object.fromEntries(Object.entries(said).filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** Proof of an authentication, where there was one. */
const proofOf = (status: unknown, value: unknown): string | undefined =>
  status === 'Y' || status === 'A' ? text(value) : undefined

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** The page's report of the browser, or the CRes that the issuer's page posts: the latter only ends the waiting. */
function readReturn({
  step,
  data,
  values,
}: {
  step: string
  data: ConnectorState
  values: ReadonlyMap<string, string>
}): ReturnResult {
  if (step === 'browser') {
    if (!values.has('browser')) return { kind: 'forged', why: 'the browser has not begun' }
    const event = Object.fromEntries(
      [...browserNames, 'ip'].flatMap(name => {
        const value = values.get(name)
        return value !== undefined && value !== '' && (shapes[name] ?? anything).test(value) ? [[name, value]] : []
      }),
    )
    return { kind: 'resume', event }
  }
  const sent = values.get('cres')
  if (sent === undefined) return { kind: 'wait' }
  const answer = decodeMessage('CRes', sent)
  if (!answer) return { kind: 'forged', why: 'the CRes is not well-formed' }
  return isOurs(answer, data) ? { kind: 'wait' } : { kind: 'forged', why: 'the CRes belongs to another transaction' }
}

const anything = /^[^\u0000-\u001f]{1,2048}$/u
const shapes: Readonly<Record<string, RegExp>> = {
  language: /^[A-Za-z0-9-]{1,35}$/,
  screenHeight: /^\d{1,6}$/,
  screenWidth: /^\d{1,6}$/,
  screenColorDepth: /^\d{1,2}$/,
  timezone: /^-?\d{1,4}$/,
  javaEnabled: /^(true|false)$/,
  javascriptEnabled: /^(true|false)$/,
  challengeWindow: /^0?[1-5]$/,
}

function readNotice({ step, data, body }: { step: string; data: ConnectorState; body: string }): NoticeResult {
  const request = readMessage('RReq', body)
  if (!request) return { kind: 'forged', why: 'the RReq is not well-formed', ...noticeError('203', 'The RReq is malformed') }
  if (step !== 'challenge' || !isOurs(request, data) || !sameId(request.dsTransID, data.dsTransId))
    return {
      kind: 'forged',
      why: 'the RReq belongs to another transaction',
      ...noticeError('301', 'The transaction id is not recognized'),
    }
  if (asksTooMuch(request))
    return { kind: 'forged', why: 'an extension is critical', ...noticeError('202', 'A critical extension is not recognized') }
  const isGood = request.transStatus === 'Y' || request.transStatus === 'A'
  if (isGood && request.challengeCancel !== undefined)
    return {
      kind: 'forged',
      why: 'the RReq contradicts itself',
      ...noticeError('203', 'challengeCancel does not go with transStatus'),
    }
  const names = ['transStatus', 'transStatusReason', 'authenticationValue', 'eci', 'authenticationType', 'challengeCancel']
  const event = Object.fromEntries(
    names.flatMap(name => (typeof request[name] === 'string' ? [[name, request[name] as string]] : [])),
  )
  return { kind: 'resume', event, ...acknowledged(request) }
}

/** The result that was taken is acknowledged again: the first word may have been lost on its way. Any other comes too late. */
async function staleNotice(body: string, told: () => Promise<Structures | undefined>): Promise<NoticeAnswer> {
  const request = readMessage('RReq', body)
  const said = request && (await told())?.threeDSecure
  const isTaken =
    said?.flow === 'challenge' &&
    request!.messageVersion === said.version &&
    sameId(request!.dsTransID, said.dsTransactionId) &&
    sameId(request!.acsTransID, said.acsTransactionId) &&
    request!.transStatus === said.authenticationStatus &&
    (said.verificationId === undefined || said.verificationId === request!.authenticationValue)
  return isTaken ? acknowledged(request!) : noticeError('301', 'The transaction id is not one that waits for a result')
}

const acknowledged = (request: ThreeDSecureMessage): NoticeAnswer => ({
  answer: JSON.stringify(buildRRes(request)),
  contentType: json,
})

const isOurs = (message: ThreeDSecureMessage, data: ConnectorState): boolean =>
  sameId(message.threeDSServerTransID, data.transId) &&
  sameId(message.acsTransID, data.acsTransId) &&
  message.messageVersion === data.version

const json = 'application/json;charset=UTF-8'
const noticeError = (code: '202' | '203' | '301', description: string): NoticeAnswer => ({
  answer: JSON.stringify(errorMessage(code, description, 'RReq')),
  contentType: json,
})
