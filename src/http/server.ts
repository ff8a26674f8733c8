// The edge: node:http or node:https in front of the route table. Reads the request within limits, writes every answer in one piece.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BlockList, Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { Charset } from '../contract/form.ts'
import { limits } from '../contract/limits.ts'
import type { ResultName } from '../contract/results/results.ts'
import { randomHex } from '../platform/clock.ts'
import { isElsewhere } from '../platform/database/elsewhere.ts'
import { isUnavailable } from '../platform/database/errors.ts'
import { ReportingAway } from '../platform/database/reporting.ts'
import { http, https } from '../platform/http.ts'
import { networksAround } from '../platform/network.ts'
import { servedTls } from '../platform/tls.ts'
import { byRecords, rawOf } from '../platform/tlsRecords.ts'
import { isRecorded } from '../reporting/requests/keep.ts'
import type { RequestTrace } from '../reporting/requests/record.ts'
import { addressOf, callerHeader, isListed, ofMerchant } from './address.ts'
import { type HttpAnswer, type Request, resultAnswer } from './answer.ts'
import { linesOf, noteRefusal } from './authenticate.ts'
import { type Connections, headersMost, maxima, type Patience, pieceBytes, watchConnections } from './connections.ts'
import { noteFailure } from './failure.ts'
import { greetingsInTurn } from './handshakes.ts'
import { isTooLong, shortHead } from './head.ts'
import { type HostRules, hostRefusal, reachedAt } from './host.ts'
import { type Listening, listen } from './listening.ts'
import type { HttpParts } from './parts.ts'
import { largeBodyBytes } from './rates.ts'
import { type Destination, plainPath, type Router } from './router.ts'
import { fairTurns } from './turns.ts'

export const bodyMax = limits.bodyMaxBytes
export const browserBodyMax = limits.shoppersBodyMaxBytes
/** A message of 3-D Secure has extensions of up to 80 kB, and goes through a browser as base64. */
export const messageBodyMax = 128 * 1024

export type ServerOptions = {
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
  readonly trustedProxies: BlockList
  readonly hosts: HostRules
  /** How long is waited for what; the standard when absent. */
  readonly patience?: Patience
  /** Live mode behind a proxy: a request must have come to the proxy over TLS. */
  readonly requireForwardedTls: boolean
  /** Names why no request is taken at the moment, if so. */
  refusal(): ResultName | undefined
  /** Sees each request and its answer; absent = nothing is traced. */
  readonly trace?: TraceRequest
  /** Takes what is known of a request of the interface when its answer is given. */
  record?(trace: RequestTrace): void
}

type Answering = HttpAnswer | Promise<HttpAnswer>
type TraceRequest = (destination: Destination, request: Request, work: () => Answering) => Answering

export type Server = { listen(port: number, host: string): Promise<number>; close(): Promise<void> }

const httpOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  requireHostHeader: false, // a missing one is refused below, in JSON like everything else
}

// What the live platform sends, so that clients and scanners see the same.
const common = [
  'Pragma',
  'no-cache',
  'Strict-Transport-Security',
  'max-age=63072000; includeSubdomains; preload',
  'X-Content-Type-Options',
  'nosniff',
  'X-XSS-Protection',
  '1; mode=block',
] as const
/** What is no page: shown by a browser it may load nothing and stand in no frame. */
const noPage = ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"] as const
const headers = [
  'Content-Type',
  'application/json;charset=UTF-8',
  'Cache-Control',
  'private, no-cache, no-store',
  ...noPage,
  ...common,
] as const

const writtenHeaders = headers.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')

export function makeServer(parts: HttpParts, find: Router, options: ServerOptions): Server {
  let closing = false
  let entrance: Listening | undefined
  const turns = fairTurns(
    setImmediate,
    () => parts.clock.elapsed(),
    go => parts.clock.after(1, go),
  )
  const traced: TraceRequest = options.trace ?? ((_destination, _request, work) => work())
  const streams = new Set<ServerResponse>()
  const isProxy = (address: string): boolean => isListed(options.trustedProxies, address)
  const connections = watchConnections(parts.clock, options.patience, isProxy, (socket, caller) =>
    refuseUnread(socket, 429, 'tooManyRequests', 'Retry-After: 1\r\n', caller),
  )

  const listener = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (incoming.rawHeaders.length > 2 * headersMost) return void refuseUnread(incoming.socket, 431, 'headersTooLarge')
    const caller = callerOf(incoming)
    const networks = networksAround(caller)
    const lines = linesOf(parts, incoming.headers.authorization, { address: caller, networks })
    const ofMerchant = lines === networks ? undefined : lines[0]
    if (!connections.asked(incoming, outgoing, caller, ofMerchant)) return
    const started = parts.clock.elapsed()
    // What stands behind such a request may be lost in Node's change of protocols, which is none here.
    if (incoming.headers.upgrade !== undefined) outgoing.shouldKeepAlive = false
    const number = randomHex(parts.random)
    const target = targetOf(incoming)
    const destination = find(incoming.method ?? 'GET', target.path)
    const { admits, route } = destination
    const most = route?.bodyMax ?? (route?.callers === 'browser' ? browserBodyMax : bodyMax)
    const came = { bytes: 0, isInTurn: false }
    const request = requestOf(incoming, target, { address: caller, networks, lines }, number, came)
    const inTurn = (bytes: number, begin: () => void) => {
      const leave = turns.turn(request.lines, bytes + request.query.length, route?.cost ?? 1, begin)
      // Whoever has gone would hold all that he sent, in a line that counts nobody who has gone.
      if (leave) connections.stands(incoming, leave)
    }
    const come = (bytes: number, unread?: Unread) =>
      inTurn(bytes, () => {
        const body = unread ? '' : connections.begins(incoming)
        if (body === undefined) return // nothing was begun, and nobody is there to whom it could be said
        request.body = body
        came.bytes = bytes
        came.isInTurn = true
        serve(destination, request, incoming, outgoing, unread, started)
        came.isInTurn = false
      })
    const cut = (unread: Unread) => {
      connections.cuts(incoming)
      come(0, unread)
    }
    const read = () => readBody(incoming, { caller, ofMerchant }, most, connections, come)
    const unfit = unfitOf(incoming)
    if (unfit) cut(unfit)
    else if (!admits) read()
    else
      inTurn(
        0,
        () =>
          void admits(request)
            .then(name => {
              if (name === undefined) return cut('unadmitted')
              if (!connections.knows(incoming, name)) return cut([429, 'tooManyAtOnce'])
              read()
            })
            .catch(error => {
              failed(destination, request, error)
              outgoing.destroy()
            }),
      )
  }

  /** Whoever goes meanwhile has his work done all the same: it holds no more than what is under way. */
  function again<Value>(lines: readonly string[], bytes: number, work: () => Value): Promise<Value> {
    const inContext = AsyncLocalStorage.snapshot() // another begins the turn
    return new Promise((done, refused) => {
      const begin = () => {
        try {
          done(inContext(work))
        } catch (error) {
          refused(error)
        }
      }
      turns.turn(lines, bytes, 1, begin)
    })
  }

  /** What may not be read to its end, or was meant for another, is the last of its connection: nothing behind it is looked at. */
  function unfitOf(incoming: IncomingMessage): Unread | undefined {
    if (!/^1\.[01]$/.test(incoming.httpVersion)) return [400, 'malformedRequest']
    const misdirected = hostRefusal(incoming, options.hosts)
    if (misdirected) return [400, misdirected]
    const coding = incoming.headers['transfer-encoding']
    // Whoever stands before us and speaks an older HTTP does not see where such a body ends (RFC 9112, 6.1).
    if (coding !== undefined && incoming.httpVersion !== '1.1') return [400, 'malformedRequest']
    return /^(chunked)?$/i.test(coding ?? '') ? undefined : [501, 'transferCodingUnknown']
  }

  function serve(
    destination: Destination,
    request: Request,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    unread: Unread | undefined,
    started: number,
  ): void {
    const { method, path, number } = request
    // At once: the turn counts how long it takes.
    new Promise<HttpAnswer>(done => done(traced(destination, request, () => answer(destination, request, incoming, unread))))
      .catch(error => failed(destination, request, error))
      .then(made => send(request, incoming, outgoing, made, destination.route?.cors))
      // What cannot be written, for a character that no header may have, is a failure like any other.
      .catch(error => send(request, incoming, outgoing, failed(destination, request, error)))
      .then(({ made, sending }) => {
        const took = parts.clock.elapsed() - started
        const milliseconds = Math.round(took)
        const { status, body } = made
        parts.count.request(destination.name, status, took)
        noteRefusal(parts, request, made)
        parts.log.debug({ ndc: number, method, route: destination.name, status, milliseconds }, 'answered')
        if (isRecorded(method, path, destination.route?.callers))
          options.record?.({
            ...{ method, path, status, milliseconds, number, at: parts.clock.real(), route: destination.name },
            ...request.seen,
            ...(typeof body === 'string' && { answer: body }),
          })
        return sending
      })
      .catch(error => {
        failed(destination, request, error)
        outgoing.destroy()
      })
      .finally(() => {
        for (const done of request.whenAnswered) done()
      })
  }

  function answer(
    destination: Destination,
    request: Request,
    incoming: IncomingMessage,
    unread: Unread | undefined,
  ): HttpAnswer | Promise<HttpAnswer> {
    const always = destination.route?.always
    const refusal = closing ? 'shuttingDown' : always ? undefined : options.refusal()
    if (refusal) return resultAnswer(parts, request, 503, refusal)
    if (typeof unread === 'object') return resultAnswer(parts, request, ...unread)
    if (options.requireForwardedTls && !always && !isForwardedTls(incoming))
      return resultAnswer(parts, request, 403, 'tlsRequired')
    if (request.method === 'POST' && destination.route?.body !== 'anything' && !isForm(incoming))
      return resultAnswer(parts, request, 415, 'wrongContentType')
    return destination.answer(request)
  }

  /** What must not happen becomes one 500 that carries its number; the log has the cause. */
  function failed({ name }: Destination, request: Request, error: unknown): HttpAnswer {
    noteFailure(parts, request, name, error)
    if (isElsewhere(error)) return { ...resultAnswer(parts, request, 503, 'merchantElsewhere'), headers: { 'Retry-After': '2' } }
    const away = error instanceof ReportingAway ? 'reportingAway' : isUnavailable(error) ? 'databaseUnavailable' : undefined
    return away === undefined
      ? resultAnswer(parts, request, 500, 'internalError')
      : { ...resultAnswer(parts, request, 503, away), headers: { 'Retry-After': '5' } }
  }

  /** The last of a connection: what is no request, or none that is looked at. */
  function refuseUnread(socket: Socket, status: number, name: ResultName, header = '', address = ''): void {
    connections.closeSoon(socket)
    if (!socket.writable || connections.isOwed(socket)) return // this is no answer to what was asked before
    const networks = networksAround(address)
    const request: Request = {
      method: '',
      path: '',
      query: '',
      headers: {},
      body: '',
      charset: 'utf-8',
      address,
      networks,
      lines: networks,
      publicUrl: '',
      number: randomHex(parts.random),
      isGone: () => socket.destroyed,
      isServers: () => {},
      inTurn: work => work(),
      whenAnswered: [],
      seen: {},
    }
    const made = resultAnswer(parts, request, status, name)
    const { body } = made
    parts.count.request('unread', status, 0)
    noteRefusal(parts, request, made)
    socket.end(
      `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${writtenHeaders}${header}Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
  }

  /** `sending`: until all that is made on the way was taken, or nobody takes it any more. */
  function send(
    request: Request,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    made: HttpAnswer,
    cors?: true,
  ): { made: HttpAnswer; sending?: Promise<void> } {
    const { status, before, body, headers: more, cookies = [] } = made
    if (outgoing.destroyed) return { made }
    const extra = more ? Object.entries(more).flat() : []
    const whole = typeof body === 'string' || Buffer.isBuffer(body)
    const length = (before?.length ?? 0) + (typeof body === 'string' ? Buffer.byteLength(body) : whole ? body.length : 0)
    const head = [
      // A page brings its own type, caching and policy, and is not for other sites' scripts.
      ...(more?.['Content-Type'] === undefined ? headers : common),
      ...(more?.['Content-Type'] === undefined || bringsPolicy(more) ? [] : noPage),
      ...extra,
      ...cookies.flatMap(cookie => ['Set-Cookie', cookie]),
      ...(cors ? ['Access-Control-Allow-Origin', '*'] : []),
      ...(request.seen.caller?.tokenId !== undefined && isTrusted(incoming.socket) ? [callerHeader, ofMerchant] : []),
      ...(whole ? ['Content-Length', String(length)] : []),
      // Node ends a connection with it, also where requests behind it are carried out: their answers would be lost.
      ...(closing && !more?.Connection && connections.isLast(incoming) ? ['Connection', 'close'] : []),
    ]
    if (isTooLong(head)) return send(request, incoming, outgoing, shortHead(made), cors)
    outgoing.writeHead(status, head)
    connections.answers(incoming, length)
    turns.spent(request.lines, status === 429 ? length + refusedBytes : length)
    if (outgoing.destroyed) return { made } // it was one too many
    if (before) outgoing.write(before)
    if (whole && body.length <= pieceBytes) {
      // Of a text Node keeps what is not taken yet on the heap.
      outgoing.end(length > heapBytesMost && typeof body === 'string' ? Buffer.from(body) : body)
      return { made }
    }
    // A stream has no end of its own that a stop could wait for, and its reader leaves when it likes.
    const isStream = more?.['Content-Type']?.startsWith('text/event-stream') === true
    if (isStream) {
      streams.add(outgoing)
      outgoing.once('close', () => streams.delete(outgoing))
    }
    // What breaks on the way breaks the connection: half an answer must not look whole.
    const sending = pipeline(whole ? inPieces(body) : body, outgoing).catch((error: Error) => {
      if (!isStream) parts.log.warn({ why: error.message }, 'an answer was broken off on its way')
    })
    return isStream ? { made } : { made, sending }
  }

  function requestOf(
    incoming: IncomingMessage,
    { path, query }: RequestTarget,
    caller: Pick<Request, 'address' | 'networks' | 'lines'>,
    number: string,
    came: { readonly bytes: number; readonly isInTurn: boolean },
  ): Request {
    const reached = reachedAt(schemeOf(incoming), incoming)
    return {
      ...caller,
      method: incoming.method ?? 'GET',
      path,
      query,
      headers: incoming.headers as Request['headers'],
      body: '',
      charset: charsetOf(incoming.headers['content-type']) ?? 'utf-8',
      publicUrl: (options.hosts.followed && reached) || parts.publicUrl(),
      reachedAt: reached,
      number,
      isGone: () => incoming.socket.destroyed,
      isServers: merchantId => connections.isServers(incoming, merchantId),
      inTurn: work => (came.isInTurn ? work() : again(caller.lines, came.bytes, work)),
      whenAnswered: [],
      seen: {},
    }
  }

  const callerOf = ({ socket, headers }: IncomingMessage): string =>
    addressOf(socket.remoteAddress ?? '', headers['x-forwarded-for'] as string, options.trustedProxies)

  const schemeOf = (incoming: IncomingMessage) => (options.tls || isForwardedTls(incoming) ? 'https' : 'http')
  const isForwardedTls = ({ socket, headers }: IncomingMessage): boolean =>
    isTrusted(socket) && headers['x-forwarded-proto'] === 'https'

  const isTrusted = ({ remoteAddress }: Socket): boolean => remoteAddress !== undefined && isProxy(remoteAddress)

  const server = options.tls
    ? byRecords(
        https.createServer({ ...httpOptions, ...options.tls, ...servedTls }, listener),
        { took: connections.deciphers, threwAway: connections.throwsAway },
        greetingsInTurn(connections.isMerchants, isProxy),
      )
    : http.createServer(httpOptions, listener)
  Object.assign(server, maxima)
  server.on('connection', options.tls ? connections.begun : connections.opened)
  server.on('secureConnection', socket => connections.secured(socket, rawOf(socket)))
  server.on('checkExpectation', listener) // an expectation that nobody knows is no reason to refuse
  // Closed without a word, a proxy would take it for a gateway that is down.
  server.on('connect', ({ socket }: IncomingMessage) => refuseUnread(socket, 405, 'methodNotAllowed', 'Allow: GET, POST\r\n'))
  server.on('clientError', ({ code }: Error & { code?: string }, socket: Socket) => {
    if (code === 'HPE_HEADER_OVERFLOW') refuseUnread(socket, 431, 'headersTooLarge')
    else refuseUnread(socket, code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400, 'malformedRequest')
  })

  return {
    async listen(port, host) {
      entrance = await listen(server, port, host, address => connections.admits(address, options.tls !== undefined))
      return entrance.port
    },
    async close() {
      closing = true
      const closed = entrance?.close()
      for (const stream of streams) stream.destroy()
      connections.closeOwed()
      connections.closeAll('idle')
      connections.closeAll('unsecured')
      // From here on Node closes nobody whose request does not come: what is on its way has two seconds.
      const silent = parts.clock.every(2000, () => connections.closeAll('unowed'))
      const hurry = parts.clock.after(40_000, () => connections.closeAll('every'))
      await closed
      for (const timer of [silent, hurry]) timer.cancel()
      connections.stop()
    },
  }
}

const heapBytesMost = 16 * 1024

/** Who asks again at once when he was refused would fill every turn, and what others are owed needs many of them: a refusal is as large as this for the turns of his network. */
const refusedBytes = 64 * 1024

type RequestTarget = Pick<Request, 'path' | 'query'>

function targetOf({ url = '/' }: IncomingMessage): RequestTarget {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '') // it may be a whole address, as proxies send it
  const mark = target.indexOf('?')
  const path = plainPath(mark < 0 ? target : target.slice(0, mark))
  return {
    path: path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path,
    query: mark < 0 ? '' : target.slice(mark + 1),
  }
}

function* inPieces(body: string | Buffer): Generator<Buffer> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

/** Why a request is answered without its body; its route says so of whom it does not admit. */
type Unread = readonly [status: number, name: ResultName] | 'unadmitted'

/** Reads the body, one character a byte, and has the connection keep it; says how many bytes it has, and why it is not read where it is too large. What comes in many
 * small pieces is copied: each would keep the whole buffer that it came in. */
function readBody(
  incoming: IncomingMessage,
  { caller, ofMerchant }: { readonly caller: string; readonly ofMerchant: string | undefined },
  bodyMax: number,
  { cuts, keeps, sends, takes, waits }: Connections,
  done: (bytes: number, unread?: Unread) => void,
): void {
  let body: Buffer = Buffer.alloc(0)
  let length = 0
  let over = false
  incoming.on('data', (chunk: Buffer) => {
    const at = length
    length += chunk.length
    if (at > 0 && !takes(incoming.socket, chunk.length, caller, ofMerchant)) return
    if (length > largeBodyBytes && !sends(incoming, chunk.length, ofMerchant)) return
    if (!over) keeps(incoming, chunk.length)
    if (length > bodyMax) {
      if (over) return
      over = true
      cuts(incoming)
      done(0, [413, 'bodyTooLarge'])
    } else if (at === 0) body = chunk.length > 1024 ? chunk : Buffer.from(chunk)
    else {
      if (length > body.length) body = grown(body, at, Math.min(Math.max(2 * length, 4096), bodyMax))
      chunk.copy(body, at)
    }
  })
  incoming.on('end', () => {
    if (over) return
    waits(incoming, body.toString('latin1', 0, length))
    body = Buffer.alloc(0) // the request is kept until its answer is gone, its bytes need not be
    done(length)
  })
  incoming.on('error', () => {}) // a caller that went away
}

function grown(body: Buffer, used: number, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size)
  body.copy(larger, 0, 0, used)
  return larger
}

/** A redirect shows nothing, and leads on inside of frames too. */
const bringsPolicy = (more: NonNullable<HttpAnswer['headers']>): boolean =>
  more['Content-Security-Policy'] !== undefined || more.Location !== undefined

/** A form as it is, in a charset that we read. */
const isForm = ({ headers }: IncomingMessage): boolean =>
  /^(application\/x-www-form-urlencoded\s*(;|$)|$)/i.test(headers['content-type'] ?? '') &&
  charsetOf(headers['content-type']) !== undefined &&
  /^(identity)?$/i.test(headers['content-encoding'] ?? '')

const charsets: Readonly<Record<string, Charset>> = {
  'utf-8': 'utf-8',
  utf8: 'utf-8',
  'iso-8859-1': 'iso-8859-1',
  'windows-1252': 'windows-1252',
}

/** UTF-8 where none is named; undefined for one that we do not read. */
function charsetOf(type = ''): Charset | undefined {
  const named = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(type)?.[1]?.toLowerCase()
  return named === undefined ? 'utf-8' : Object.hasOwn(charsets, named) ? charsets[named] : undefined
}
