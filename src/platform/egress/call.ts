// One guarded call to a merchant's server: to a checked address, without following redirects, within a total time, reading no more
// of the answer than is worth keeping.

import { writtenBeginning } from '../../contract/cardNumbers.ts'
import type { Clock, Timer } from '../clock.ts'
import { handshakeRests } from '../handshakeRests.ts'
import { type AskOptions, ask } from '../http.ts'
import { receiversTls } from '../tls.ts'
import { type Egress, findTarget, type Resolve, urlRefusal } from './address.ts'

export type Call = {
  /** Whom it is for: a merchant, whose other calls wait when a handshake costs us too much. */
  readonly owner: string
  readonly method: 'POST' | 'GET'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export type CallResult = {
  /** Absent when no answer came; then `failure` says why. */
  readonly status?: number
  readonly failure?: string
  /** The beginning of what was answered, without card numbers and CVVs: receivers repeat what they are sent, and show what else they hold. */
  readonly answer: string
  readonly milliseconds: number
  /** Seconds that the receiver asks us to wait. */
  readonly retryAfter?: number
  /** Nobody was called: the URL itself may not be called, now or later. */
  readonly forbidden?: true
  /** It said nothing for as long as it was waited for. */
  readonly silent?: true
  /** Our own process ended: this says nothing about the receiver. */
  readonly brokenOff?: true
}

export type PlaceCall = (call: Call) => Promise<CallResult>

export type CallLimits = { readonly seconds: number; readonly answerBytes: number; readonly bodySeconds: number }

/** The status decides; of the body only the beginning is waited for, and not for long. `answerBytes` are kept, twice as many are read, so that a number is seen which is cut. */
export const callLimits: CallLimits = { seconds: 30, answerBytes: 512, bodySeconds: 2 }

/** Of head and body; more is not read, whatever it is. */
const readMost = 256 * 1024

/** `ended` breaks off what is under way when the process stops. */
export function caller(
  clock: Clock,
  egress: Egress,
  resolve: Resolve,
  ended?: AbortSignal,
  limits: CallLimits = callLimits,
): PlaceCall {
  const restOf = handshakeRests(clock)
  return async call => {
    const started = clock.elapsed()
    const milliseconds = () => Math.round(clock.elapsed() - started)
    const target = await within(clock, findTarget(call.url, egress, resolve), limits.seconds)
    if (target === 'tooLate')
      return { failure: 'the name was not resolved in time', silent: true, answer: '', milliseconds: milliseconds() }
    if ('refused' in target) {
      const forGood = urlRefusal(call.url, egress) !== undefined
      return {
        failure: `the URL ${target.refused}`,
        answer: '',
        milliseconds: milliseconds(),
        ...(forGood && { forbidden: true }),
      }
    }
    return new Promise(done => {
      let over = false
      const chunks: Buffer[] = []
      let length = 0
      const end = (rest: Omit<CallResult, 'answer' | 'milliseconds'>, isWhole = false) => {
        if (over) return
        over = true
        timer.cancel()
        ended?.removeEventListener('abort', breakOff)
        const text = Buffer.concat(chunks).toString('utf8')
        done({ ...rest, answer: printable(writtenBeginning(text, limits.answerBytes, isWhole)), milliseconds: milliseconds() })
        request.destroy()
      }
      const options: AskOptions = {
        ...receiversTls,
        rest: restOf(call.owner),
        method: call.method,
        headers: {
          'User-Agent': 'Tollgate',
          Accept: '*/*',
          Connection: 'close',
          ...call.headers,
          ...(call.body !== undefined && { 'Content-Length': String(Buffer.byteLength(call.body)) }),
        },
        family: target.family,
        maxHeaderSize: 16_384,
        // Whatever name it is asked for, the answer is the address that was checked.
        lookup: (_name, { all }, found) => {
          const { address, family } = target
          if (all) (found as (error: null, list: { address: string; family: number }[]) => void)(null, [{ address, family }])
          else found(null, address, family)
        },
      }
      const request = ask(target.url, options, readMost)
      request.once('response', response => {
        const status = response.statusCode ?? 0
        const retryAfter = Number(response.headers['retry-after'])
        const answered = { status, ...(Number.isFinite(retryAfter) && retryAfter > 0 && { retryAfter }) }
        timer.cancel() // from here on the status decides, whatever becomes of the body
        const bodyTimer = clock.after(limits.bodySeconds * 1000, () => end(answered))
        const finish = () => {
          bodyTimer.cancel()
          end(answered, response.complete)
        }
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          length += chunk.length
          if (length >= 2 * limits.answerBytes) finish()
        })
        response.on('end', finish)
        response.on('error', finish)
        response.on('close', finish)
      })
      const timer = clock.after(limits.seconds * 1000, () =>
        end({ failure: `no answer within ${limits.seconds} s`, silent: true }),
      )
      const breakOff = () => end({ failure: 'the gateway stopped', brokenOff: true })
      ended?.addEventListener('abort', breakOff)
      request.on('error', (error: Error & { code?: string }) => end({ failure: error.code ?? error.message }))
      request.end(call.body)
    })
  }
}

/** 2xx, and nothing else: a redirect is a failure. */
export const isAcknowledged = ({ status }: CallResult): boolean => status !== undefined && status >= 200 && status < 300

const printable = (text: string): string => text.replace(/[^\P{C}\n\t]/gu, '\ufffd')

async function within<Value>(clock: Clock, work: Promise<Value>, seconds: number): Promise<Value | 'tooLate'> {
  let timer: Timer | undefined
  const tooLate = new Promise<'tooLate'>(resolve => {
    timer = clock.after(seconds * 1000, () => resolve('tooLate'))
  })
  const first = await Promise.race([work, tooLate])
  timer?.cancel()
  return first
}
