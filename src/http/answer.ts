// What a request function is given and what it returns. Neither knows sockets or a framework.

import type { Charset } from '../contract/form.ts'
import type { ParameterError } from '../contract/formCheck.ts'
import type { Nested } from '../contract/nested.ts'
import { isGood, type ResultName, results } from '../contract/results/results.ts'
import type { PaymentResponse } from '../payments/execute.ts'
import { plainRecord } from '../payments/read/record.ts'
import { isId } from '../platform/clock.ts'
import { lagSeconds } from '../platform/database/reporting.ts'
import type { RequestTrace } from '../reporting/requests/record.ts'
import type { HttpParts } from './parts.ts'

export type Request = {
  readonly method: string
  readonly path: string
  /** What stands behind the question mark, undecoded, one character a byte. */
  readonly query: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** One character a byte; `charset` is what they are written in. Taken once. */
  body: string
  readonly charset: Charset
  /** Address of the caller, as far as trusted proxies tell. */
  readonly address: string
  /** That address, or its /64 of IPv6, and those around it. */
  readonly networks: readonly string[]
  /** In whose line it waits for its turn: its merchant's, where a token says who that is (`linesOf`), else that of its networks. */
  readonly lines: readonly string[]
  /** Where the caller reaches us, without a slash at the end: addresses of ours that it is given begin so (decisions, 68). */
  readonly publicUrl: string
  /** The origin by which this request reached us. */
  readonly reachedAt?: string | undefined
  /** 32 hex characters of this request. */
  readonly number: string
  /** Nobody is there any more to whom it could be answered. */
  isGone(): boolean
  /** To be called when a token of ours was found in it. */
  isServers(merchantId: string): void
  /** Does work that costs what its sender likes in a turn of his line: at once where this is still the one in which the request was begun. */
  inTurn<Value>(work: () => Value): Value | Promise<Value>
  /** What is done when its answer is gone. */
  readonly whenAnswered: (() => void)[]
  /** What it turned out to be, for its record. */
  readonly seen: Partial<Pick<RequestTrace, 'form' | 'caller'>>
}

/** The body, once: a request is kept until its answer is gone, and what stood in it need not be. */
export function takeBody(request: Request): string {
  const { body } = request
  request.body = ''
  return body
}

/** JSON, unless the headers name another Content-Type. */
export type HttpAnswer = {
  readonly status: number
  /** Stands before the body: bytes that many answers share. */
  readonly before?: Buffer
  /** Bytes bring their Content-Type. Texts one after the other are sent as they come, without a length. */
  readonly body: string | Buffer | AsyncIterable<string>
  readonly headers?: Readonly<Record<string, string>>
  /** Each as cookies.ts writes it. */
  readonly cookies?: readonly string[]
  /** What it says, and to which token where one is known, for the log. */
  readonly result?: ResultName
  readonly tokenId?: string
}

/** A payment's answer: good outcomes are 200, others 400 (decisions, 20). */
export const saidAnswer = ({ outcome, body }: PaymentResponse): HttpAnswer => ({ status: isGood(outcome) ? 200 : 400, body })

export type TextAnswer = HttpAnswer & { readonly body: string }

export const json = (status: number, record: Nested): TextAnswer => ({ status, body: JSON.stringify(record) })

/** Sends a browser on by a GET; who it comes from is not told there. */
export const redirectAnswer = (url: string): HttpAnswer => ({
  status: 303,
  body: '',
  headers: { Location: new URL(url).href, 'Content-Type': 'text/plain', 'Referrer-Policy': 'no-referrer' },
})

/** Every request has its own ndc; an entity that is named in a well-formed way stands in front. */
export const ndcOf = (request: Request, entityId: string | undefined): string =>
  entityId !== undefined && isId(entityId) ? `${entityId}_${request.number}` : request.number

/** A table as a file, to be kept under this name. */
export const fileAnswer = ({ name, lines }: { readonly name: string; readonly lines: AsyncIterable<string> }): HttpAnswer => ({
  status: 200,
  body: lines,
  headers: { 'Content-Type': 'text/csv;charset=UTF-8;header=present', 'Content-Disposition': `attachment; filename="${name}"` },
})

/** What was read in a database that follows ours says how old it is (RFC 9111, 5.1). */
export function aged({ database, clock }: HttpParts, made: HttpAnswer): HttpAnswer {
  const age = made.status === 200 ? lagSeconds(database.reporting, clock.real()) : undefined
  return age === undefined ? made : { ...made, headers: { ...made.headers, Age: String(age) } }
}

export type ResultDetails = {
  readonly entityId?: string | undefined
  /** The name of a checkout, whose answers carry it. */
  readonly ndc?: string | undefined
  readonly more?: Nested
  readonly parameterErrors?: readonly ParameterError[]
  readonly headers?: HttpAnswer['headers']
  /** Who was turned away, for the log. */
  readonly tokenId?: string | undefined
}

/** An answer that is no payment: a result with build number, time and ndc. */
export function resultAnswer(
  parts: HttpParts,
  request: Request,
  status: number,
  name: ResultName,
  { entityId, ndc = ndcOf(request, entityId), more, parameterErrors, headers, tokenId }: ResultDetails = {},
): TextAnswer {
  const record = plainRecord(results[name], parts.build, timeOf(parts, entityId), ndc, more, parameterErrors)
  const asked = headers ?? headersOf[status]
  return { ...json(status, record), result: name, ...(asked && { headers: asked }), ...(tokenId && { tokenId }) }
}

/** Others of the same caller are under way, and end soon. */
export const tooManyAtOnce = (parts: HttpParts, request: Request): TextAnswer =>
  resultAnswer(parts, request, 429, 'tooManyAtOnce', { headers: { 'Retry-After': '1' } })

/** What a status asks of its answer: how to say who is calling (RFC 6750), and when to come again, at the latest. */
const headersOf: Readonly<Record<number, HttpAnswer['headers']>> = {
  401: { 'WWW-Authenticate': 'Bearer realm="Tollgate"' },
  429: { 'Retry-After': '60' },
}

/** The business time of the merchant whose entity is named, so that its answers stay in order when its clock is moved. */
function timeOf(parts: HttpParts, entityId: string | undefined): number {
  const entity = entityId === undefined ? undefined : parts.directory.entity(entityId)
  return entity && 'merchantId' in entity ? parts.directory.businessTime(entity.merchantId) : parts.clock.real()
}
