// Asking another server over HTTP. What certainly was not sent is told apart from what may have arrived.

import type { TLSSocket } from 'node:tls'
import { answerBounds } from '../platform/answerText.ts'
import { ask } from '../platform/http.ts'
import { type ClientTls, spokenTls } from '../platform/tls.ts'

export type HttpReply = { readonly status: number; readonly body: string }

export type Transport = (
  request: {
    readonly method: 'GET' | 'POST'
    readonly url: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
    /** Bytes of the answer's body; a longer one is none. */
    readonly answerMost?: number
    /** Whom to trust, and our own certificate, when the other side asks for one. */
    readonly tls?: ClientTls
  },
  signal: AbortSignal,
) => Promise<HttpReply>

/** The connection was never made: nothing can have been carried out. */
export class NotSent extends Error {}

/** A connection for each call: one that is used again may be closed by the other side just then, and nobody would know what has arrived. */
export const httpTransport: Transport = ({ method, url, headers, body, answerMost = answerBounds.length, tls }, signal) =>
  new Promise((resolve, reject) => {
    let connected = false
    const failed = (error: Error & { code?: string }) => {
      const why = error.code ?? error.name
      reject(connected ? new Error(`no answer (${why})`) : new NotSent(why))
    }
    const options = {
      method,
      signal,
      headers: { ...headers, ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }) },
    }
    const request = ask(url, { ...options, ...spokenTls, ...tls }, 2 * answerMost)
    request.once('error', failed)
    request.once('socket', socket => {
      // What is written before the other side has proved who it is stays here.
      socket.once((socket as TLSSocket).encrypted ? 'secureConnect' : 'connect', () => {
        connected = true
      })
    })
    request.once('response', response => {
      const status = response.statusCode ?? 0
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > answerMost) response.destroy(new Error('the answer is too long'))
        chunks.push(chunk)
      })
      response.once('error', failed)
      response.once('end', () => {
        if (status >= 300 && status < 400) reject(new Error('no answer (it leads elsewhere)'))
        else resolve({ status, body: Buffer.concat(chunks).toString('utf8') })
      })
    })
    request.end(body)
  })
