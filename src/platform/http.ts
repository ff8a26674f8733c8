// HTTP of Node, without what an import of it brings along: an import reads every export once, and one of them loads a whole client of its own.

import type { ClientRequest, IncomingMessage, Server, ServerResponse } from 'node:http'
import type { RequestOptions } from 'node:https'
import type { NetConnectOpts, Socket } from 'node:net'
import { parseUrl } from '../contract/url.ts'
import type { HandshakeRest } from './handshakeRests.ts'
import { lackOf, stopParsing, watchAnswer } from './parsing.ts'
import { connectByRecords } from './tlsRecords.ts'

export const http = process.getBuiltinModule('node:http')
export const https = process.getBuiltinModule('node:https')

/** For a small server: one request of each connection, without a body. Its answer closes the connection, and what comes behind its head is not even looked at. */
export function takeOnly({ socket }: IncomingMessage, response: ServerResponse): void {
  stopParsing(socket)
  response.shouldKeepAlive = false
}

/** For a small server: one connection more than `most` takes the place of that which is there for longest, so that whoever says nothing keeps nobody out. */
export function boundConnections(server: Server, most: number): void {
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    socket.once('close', () => sockets.delete(socket))
    if (sockets.add(socket).size > most) sockets.values().next().value!.destroy()
  })
}

/** Makes a connection of its own for each call. */
const connecting = new https.Agent()
connecting.createConnection = options => connectByRecords(options as NetConnectOpts)

/** `rest`: where the server is of somebody's choice. */
export type AskOptions = RequestOptions & { readonly rest?: HandshakeRest }

/** Asks another server, over a connection of its own, which ends when more than `bytesMost` are answered. */
export function ask(url: string | URL, options: AskOptions, bytesMost: number): ClientRequest {
  const request =
    new URL(url).protocol === 'https:'
      ? https.request(url, { ...options, agent: connecting })
      : http.request(url, { ...options, agent: false })
  boundAnswer(request, bytesMost)
  return request
}

/** Answers of one call that only say that another will come. */
const interimMost = 8
/** Pieces of one answer by what they lack: those of its body, and readings that brought nothing of one. */
const smallPiecesMost = 1024

/**
 * Ends a call with an error when its answer does not come to its end: Node bounds its head and we its body, but nobody how often the other side may say
 * that it goes on, or in how many pieces, which takes more of the event loop than of the other side. Of one that goes on in another protocol Node would tell nobody.
 */
function boundAnswer(request: ClientRequest, bytesMost: number): void {
  let interim = 0
  let bytes = 0
  let small = 0
  let isAnswered = false
  let isOfBody = false
  request.once('response', () => {
    isAnswered = true
  })
  request.once('upgrade', (_, socket) => {
    socket.destroy()
    request.emit('error', new Error('it went on in another protocol'))
  })
  request.once('socket', socket => {
    const end = (why: string) => {
      stop()
      request.destroy(new Error(why))
    }
    const piece = (length: number) => {
      small += lackOf(length)
      if (small > smallPiecesMost) end('the answer came in too many pieces')
    }
    const pieceOfBody = (length: number) => {
      isOfBody = true
      piece(length)
    }
    const stop = watchAnswer(socket, pieceOfBody, () => isAnswered)
    request.on('information', () => {
      if (++interim > interimMost) end('it said too often that an answer will come')
    })
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMost) end('the answer is too long')
      else if (!isOfBody) piece(chunk.length)
      isOfBody = false
    })
  })
}

/** Whose server an address names; empty for what is no address. */
export const hostOf = (url: string): string => nameOfHost(parseUrl(url)?.host ?? '')

/** The same for each way to write a name, with a port or without. */
export const nameOfHost = (host: string): string => host.toLowerCase().replace(/\.(?=$|:)/, '')
