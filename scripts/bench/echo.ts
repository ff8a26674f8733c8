// A limit: an HTTP server that reads the same form and answers as many bytes of JSON, and does nothing else. One process.

import { randomUUID } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { parse } from 'node:querystring'
import { orderOf, takeJobs } from './parts.ts'

/** An answer of the gateway: what is sent back, with a new id and the merchantTransactionId of the request. */
export type EchoOrder = { readonly answer: string }

const answer = JSON.parse(orderOf<EchoOrder>().answer)

const server = http.createServer((incoming, outgoing) => {
  const chunks: Buffer[] = []
  incoming.on('data', chunk => chunks.push(chunk))
  incoming.on('end', () => {
    const { merchantTransactionId } = parse(Buffer.concat(chunks).toString('utf8'))
    const body = JSON.stringify({ ...answer, id: randomUUID().replaceAll('-', ''), merchantTransactionId })
    outgoing.writeHead(200, { 'Content-Type': 'application/json;charset=UTF-8', 'Content-Length': Buffer.byteLength(body) })
    outgoing.end(body)
  })
})
server.listen(0, '127.0.0.1', () => takeJobs({ port: (server.address() as AddressInfo).port }, async () => ({})))
