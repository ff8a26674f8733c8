// The directory server as we ask it: card ranges and authentications.

import type { Clock, Random } from '../../../platform/clock.ts'
import type { Log } from '../../../platform/log.ts'
import { NotSent, type Transport } from '../../transport.ts'
import type { Requestor } from './build.ts'
import { type CardRanges, findRange, methodUrlMost, type Range, rangesBounds } from './cardRanges.ts'
import { keepRanges } from './keptRanges.ts'
import {
  asksTooMuch,
  isWebAddress,
  messageBounds,
  ofType,
  parseMessage,
  readMessage,
  sameId,
  type ThreeDSecureMessage,
  wrongFields,
} from './messages.ts'
import { readRanges } from './readRanges.ts'

export type DirectoryServer = {
  readonly requestor: Requestor
  readonly random: Random
  /** The range that a card number lies in; undefined = it does not take part. */
  range(number: string, signal: AbortSignal): Promise<Range | undefined>
  authenticate(request: ThreeDSecureMessage, signal: AbortSignal): Promise<ThreeDSecureMessage | ProtocolFault>
  metrics(): DirectoryMetrics
}

export type DirectoryMetrics = {
  readonly counts: Readonly<Record<'PReq' | 'AReq', Ends>>
  readonly ranges: number
  /** Cards of payments, by whether a range has them. */
  readonly cards: { within: number; outside: number }
}
type Ends = { answered: number; failed: number }

/** Why there is no authentication, in the words that answers carry. */
export type ProtocolFault = { readonly errorCode: string; readonly errorDescription: string; readonly errorSource: string }

/** Whatever fields an issuer makes up, its message has a type. */
export const isFailure = (answer: ThreeDSecureMessage | ProtocolFault): answer is ProtocolFault => !('messageType' in answer)

/** The card takes no part. */
export const takesNoPart = ({ errorCode }: ProtocolFault): boolean => errorCode === '305'

/** Addresses of issuers, which browsers of shoppers are sent to: how long each may be (EMV 3-D Secure, table A.1). */
const addressMost = { acsURL: 2048, threeDSMethodURL: methodUrlMost } as const

const answerWithinMilliseconds = 5000
/** So much comes through ten megabits a second, and is read. Payments wait for no more than an answer takes. */
const rangesWithinMilliseconds = 30_000
/** Whoever watches over the log hears so often of a server that stays away. */
const toldEachMilliseconds = 600_000

export function directoryServer(options: {
  readonly requestor: Requestor
  readonly url: () => string
  /** Shoppers are sent to no address without TLS. */
  readonly httpsOnly: boolean
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}): DirectoryServer {
  const { requestor, httpsOnly, transport, clock, random, log } = options
  const counts: Record<'PReq' | 'AReq', Ends> = { PReq: { answered: 0, failed: 0 }, AReq: { answered: 0, failed: 0 } }
  const cards: DirectoryMetrics['cards'] = { within: 0, outside: 0 }
  const toldAt = new Map<string, number>()

  /** Payments go on without authentication where their channel says so: the log is where it is seen. */
  function tell(message: string, why: string): void {
    const now = clock.real()
    if (now - (toldAt.get(message) ?? Number.NEGATIVE_INFINITY) < toldEachMilliseconds) return
    toldAt.set(message, now)
    log.warn({ kind: new URL(options.url()).host, why }, message)
  }

  const inTime = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, clock.deadline(answerWithinMilliseconds)])

  const leads = (name: keyof typeof addressMost, address: unknown): address is string =>
    isWebAddress(address, addressMost[name]) && (!httpsOnly || address.startsWith('https:'))

  const ask = (message: ThreeDSecureMessage, signal: AbortSignal, { length: answerMost } = messageBounds) =>
    transport(
      {
        method: 'POST',
        url: options.url(),
        headers: { 'Content-Type': 'application/json;charset=UTF-8' },
        body: JSON.stringify(message),
        answerMost,
      },
      signal,
    )

  const kept = keepRanges(askForRanges, clock, why => {
    counts.PReq.failed++
    tell('a directory server gave no card ranges: those from before are used for a day, then nobody is authenticated', why)
  })

  async function askForRanges(): Promise<CardRanges> {
    const request = {
      messageType: 'PReq',
      messageVersion: '2.2.0',
      threeDSServerTransID: random.uuid(),
      threeDSServerRefNumber: requestor.referenceNumber,
    }
    const inTime = clock.deadline(rangesWithinMilliseconds)
    const { status, body } = await ask(request, inTime, rangesBounds)
    const ranges = await readRanges(body, inTime)
    if (!ranges) throw new Error(`the directory server sent no card ranges${saysNo(status, body)}`)
    if (ranges.count === 0) throw new Error('the directory server named no card range that we could use')
    if (ranges.unreadable > 0)
      tell('a directory server named card ranges that are none', `${ranges.unreadable} beside ${ranges.count}`)
    counts.PReq.answered++
    return ranges
  }

  return {
    requestor,
    random,
    metrics: () => ({ counts, ranges: kept.count(), cards }),
    async range(number, signal) {
      const ranges = await kept.take(() => inTime(signal))
      const found = findRange(ranges, number)
      cards[found ? 'within' : 'outside']++
      if (!found) return undefined
      const { version, methodUrl } = found
      return { version, ...(leads('threeDSMethodURL', methodUrl) && { methodUrl }) }
    },
    async authenticate(request, signal) {
      const answer = await authenticated(request, signal)
      const failed = isFailure(answer) && !takesNoPart(answer)
      counts.AReq[failed ? 'failed' : 'answered']++
      if (failed)
        tell(
          'an authentication failed at a directory server: withoutAuthentication of the channel decides',
          `error ${answer.errorCode}, found by ${answer.errorSource}`,
        )
      return answer
    },
  }

  async function authenticated(request: ThreeDSecureMessage, signal: AbortSignal): Promise<ThreeDSecureMessage | ProtocolFault> {
    try {
      const { body } = await ask(request, inTime(signal))
      const said = parseMessage(body)
      const answer = ofType('ARes', said)
      if (answer && isAnswerTo(answer, request) && !asksTooMuch(answer))
        return answer.transStatus !== 'C' || leads('acsURL', answer.acsURL) ? answer : leadsNowhere
      return refusalIn(said, request) ?? faultIn(said, request) ?? (answer && asksTooMuch(answer) ? asksForMore : noAnswer)
    } catch (error) {
      const why = error instanceof NotSent ? 'The directory server could not be reached' : 'The directory server did not answer'
      return { errorCode: '405', errorDescription: why, errorSource: 'D' }
    }
  }
}

const saysNo = (status: number, body: string): string => {
  const code = readMessage('Erro', body)?.errorCode
  return code === undefined ? (status === 200 ? '' : `, but status ${status}`) : `, but the error ${code}`
}

const isAnswerTo = (answer: ThreeDSecureMessage, request: ThreeDSecureMessage): boolean =>
  sameId(answer.threeDSServerTransID, request.threeDSServerTransID) && answer.messageVersion === request.messageVersion

/**
 * Who refuses is believed, whatever else of the message is malformed: only what lets a payment through must be wholly right. Of the rest what can be
 * read is kept, but not that the card takes no part, with which it would be authorized.
 */
function refusalIn(message: ThreeDSecureMessage | undefined, request: ThreeDSecureMessage): ThreeDSecureMessage | undefined {
  if (!message || !sameId(message.threeDSServerTransID, request.threeDSServerTransID)) return undefined
  if (message.transStatus !== 'R' && message.transStatus !== 'N') return undefined
  const wrong = wrongFields('ARes', { ...message, messageType: 'ARes' })
  if (message.transStatusReason === '13') wrong.push('transStatusReason')
  const right = Object.fromEntries(Object.entries(message).filter(([name]) => !wrong.includes(name)))
  return { ...right, messageType: 'ARes' }
}

/** An error that names another transaction says nothing of this one. */
function faultIn(message: ThreeDSecureMessage | undefined, request: ThreeDSecureMessage): ProtocolFault | undefined {
  const error = ofType('Erro', message)
  const about = error?.threeDSServerTransID
  if (!error || (about !== undefined && !sameId(about, request.threeDSServerTransID))) return undefined
  return {
    errorCode: String(error.errorCode),
    errorDescription: String(error.errorDescription),
    errorSource: String(error.errorComponent),
  }
}

const noAnswer: ProtocolFault = {
  errorCode: '101',
  errorDescription: 'The answer is no ARes of this transaction',
  errorSource: 'S',
}

const asksForMore: ProtocolFault = {
  errorCode: '202',
  errorDescription: 'The answer has a critical extension that is not recognized',
  errorSource: 'S',
}

const leadsNowhere: ProtocolFault = {
  errorCode: '203',
  errorDescription: 'acsURL is no address that a shopper may be sent to',
  errorSource: 'S',
}
