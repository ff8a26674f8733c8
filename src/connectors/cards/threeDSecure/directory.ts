// The directory server as we ask it: card ranges, kept for an hour, and authentications.

import type { Clock, Random } from '../../../platform/clock.ts'
import { NotSent, type Transport } from '../../transport.ts'
import type { Requestor } from './build.ts'
import { readMessage, type ThreeDSecureMessage } from './messages.ts'

export type DirectoryServer = {
  readonly requestor: Requestor
  readonly random: Random
  /** The range that a card number lies in; undefined = it does not take part. */
  range(number: string, signal: AbortSignal): Promise<Range | undefined>
  authenticate(request: ThreeDSecureMessage, signal: AbortSignal): Promise<ThreeDSecureMessage | ProtocolFault>
}

export type Range = { readonly version: string; readonly methodUrl?: string }

/** Why there is no authentication, in the words that answers carry. */
export type ProtocolFault = { readonly errorCode: string; readonly errorDescription: string; readonly errorSource: string }

export const isFailure = (answer: ThreeDSecureMessage | ProtocolFault): answer is ProtocolFault => 'errorSource' in answer

type CardRange = { startRange: string; endRange: string; acsEndProtocolVersion: string; threeDSMethodURL?: string }

const rangesKeptMilliseconds = 3_600_000
const answerWithinMilliseconds = 5000

export function directoryServer(options: {
  readonly requestor: Requestor
  readonly url: () => string
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
}): DirectoryServer {
  const { requestor, transport, clock, random } = options
  let kept: { readonly at: number; readonly ranges: readonly CardRange[] } | undefined

  const ask = (message: ThreeDSecureMessage, signal: AbortSignal) =>
    transport(
      {
        method: 'POST',
        url: options.url(),
        headers: { 'Content-Type': 'application/json;charset=UTF-8' },
        body: JSON.stringify(message),
      },
      AbortSignal.any([signal, clock.deadline(answerWithinMilliseconds)]),
    )

  async function ranges(signal: AbortSignal): Promise<readonly CardRange[]> {
    if (kept && clock.real() - kept.at < rangesKeptMilliseconds) return kept.ranges
    const { body } = await ask(
      {
        messageType: 'PReq',
        messageVersion: '2.2.0',
        threeDSServerTransID: random.uuid(),
        threeDSServerRefNumber: requestor.referenceNumber,
      },
      signal,
    )
    const answer = readMessage('PRes', body)
    if (!answer) throw new Error('the directory server sent no card ranges')
    kept = { at: clock.real(), ranges: (answer.cardRangeData as CardRange[]).filter(isRange) }
    return kept.ranges
  }

  return {
    requestor,
    random,
    async range(number, signal) {
      const found = (await ranges(signal)).find(
        ({ startRange, endRange }) => startRange.length === number.length && startRange <= number && number <= endRange,
      )
      return (
        found && {
          version: found.acsEndProtocolVersion,
          ...(found.threeDSMethodURL !== undefined && { methodUrl: found.threeDSMethodURL }),
        }
      )
    },
    async authenticate(request, signal) {
      try {
        const { body } = await ask(request, signal)
        const answer = readMessage('ARes', body)
        if (answer && answer.threeDSServerTransID === request.threeDSServerTransID) return answer
        const error = readMessage('Erro', body)
        if (!error) return { errorCode: '101', errorDescription: 'The answer is no ARes of this transaction', errorSource: 'S' }
        return {
          errorCode: String(error.errorCode),
          errorDescription: String(error.errorDescription),
          errorSource: String(error.errorComponent),
        }
      } catch (error) {
        const why = error instanceof NotSent ? 'The directory server could not be reached' : 'The directory server did not answer'
        return { errorCode: '405', errorDescription: why, errorSource: 'D' }
      }
    },
  }
}

const isRange = (range: CardRange): boolean =>
  /^\d{13,19}$/.test(range?.startRange) && /^\d{13,19}$/.test(range.endRange) && /^2\.[12]\.0$/.test(range.acsEndProtocolVersion)
