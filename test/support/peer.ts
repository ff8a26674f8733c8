// The other side of a line, in the hands of a test: it says nothing that the test does not say.

import assert from 'node:assert/strict'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { decode, encode, isMalformed, type Message } from '../../src/connectors/cards/iso8583/codec.ts'
import { exampleDialect } from '../../src/connectors/cards/iso8583/dialects.ts'
import { frame, splitter } from '../../src/connectors/cards/iso8583/framing.ts'
import { answerType } from '../../src/connectors/cards/iso8583/versions.ts'

const dialect = exampleDialect('1987')

export type Peer = {
  readonly server: Server
  readonly port: number
  /** What network messages were about. */
  readonly network: string[]
  messages: number
  /** Cuts all lines. */
  cut(): void
  stop(): void
}

/** Answers network messages by itself; all others are the test's. */
export async function startPeer(
  onMessage: (socket: Socket, message: Message) => void,
  answersNetwork: (message: Message, socket: Socket) => boolean = () => true,
  tls?: TlsOptions,
): Promise<Peer> {
  const sockets = new Set<Socket>()
  const talk = (socket: Socket) => {
    sockets.add(socket)
    const split = splitter()
    socket.on('error', () => {})
    socket.on('data', bytes => {
      for (const one of split.push(bytes) as Buffer[]) {
        const message = decode(one, dialect)
        assert.ok(!isMalformed(message))
        if (message.type !== '0800') {
          peer.messages++
          onMessage(socket, message)
        } else {
          peer.network.push(message.fields.get(70)!)
          if (answersNetwork(message, socket)) answerAll(socket, message)
        }
      }
    })
  }
  const server = tls ? createTlsServer(tls, talk) : createServer(talk)
  server.on('tlsClientError', () => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const peer: Peer = {
    server,
    port: (server.address() as { port: number }).port,
    network: [],
    messages: 0,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    stop() {
      server.close()
      peer.cut()
    },
  }
  return peer
}

/** Its request, approved. */
export const bytesOf = (message: Message): Buffer => {
  const bytes = encode({ type: answerType(message.type), fields: new Map([...message.fields, [39, '00']]) }, dialect)
  assert.ok(Buffer.isBuffer(bytes))
  return frame(bytes)
}
export const answerAll = (socket: Socket, message: Message): void => void socket.write(bytesOf(message))
