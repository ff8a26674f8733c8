// A limit: an HTTP server that reads the same form and answers the same bytes, headers included, and does nothing else. One process.

import { randomUUID } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { parse } from 'node:querystring'
import { orderOf, takeJobs } from './parts.ts'

/** An answer of the gateway: what is sent back, with a new id and the merchantTransactionId of the request. */
export type EchoOrder = { readonly answer: string; readonly headers: Readonly<Record<string, string>> }

const order = orderOf<EchoOrder>()
const answer = JSON.parse(order.answer)

const server = http.createServer((incoming, outgoing) => {
  const chunks: Buffer[] = []
  incoming.on('data', chunk => chunks.push(chunk))
  incoming.on('end', () => {
    const { merchantTransactionId } = parse(Buffer.concat(chunks).toString('utf8'))
    const body = JSON.stringify({ ...answer, id: randomUUID().replaceAll('-', ''), merchantTransactionId })
    outgoing.writeHead(200, { ...order.headers, 'Content-Length': Buffer.byteLength(body) })
    outgoing.end(body)
  })
})
server.listen(0, '127.0.0.1', () => takeJobs({ port: (server.address() as AddressInfo).port }, async () => ({})))
