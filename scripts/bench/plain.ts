// The limit: an HTTP server that reads the same form, writes one row as long as a payment into each of two tables, and answers the same bytes, headers
// included; it does nothing else. One process. Each table has a lane: a connection whose statements take all rows that wait, up to 128.

import { randomUUID } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { parse } from 'node:querystring'
import pg from 'pg'
import { batchMax, padded, perSize, quantised, valuesList } from '../../src/platform/database/groupCommit.ts'
import { orderOf, takeJobs } from './parts.ts'
import { makeTables, rowColumns, rowOf, rowTypes } from './rows.ts'

/** An answer of the gateway: what is sent back, with a new id and the merchantTransactionId of the request. */
export type SampleAnswer = { readonly answer: string; readonly headers: Readonly<Record<string, string>> }
export type PlainOrder = SampleAnswer & { readonly connection: pg.PoolConfig }

const order = orderOf<PlainOrder>()
const answer = JSON.parse(order.answer)

const client = new pg.Client(order.connection)
await client.connect()
await makeTables(client, { asked: 'payments', answered: 'payments' })
await client.end()
const [asked, answered] = [await openLane('asked'), await openLane('answered')]

const server = http.createServer((incoming, outgoing) => {
  const chunks: Buffer[] = []
  incoming.on('data', chunk => chunks.push(chunk))
  incoming.on('end', () => {
    const form = Buffer.concat(chunks).toString('utf8')
    const merchantTransactionId = String(parse(form).merchantTransactionId)
    asked(rowOf(merchantTransactionId, form), () => {
      const body = JSON.stringify({ ...answer, id: randomUUID().replaceAll('-', ''), merchantTransactionId })
      answered(rowOf(merchantTransactionId, body), () => {
        outgoing.writeHead(200, { ...order.headers, 'Content-Length': Buffer.byteLength(body) })
        outgoing.end(body)
      })
    })
  })
})
server.listen(0, '127.0.0.1', () => takeJobs({ port: (server.address() as AddressInfo).port }, async () => ({})))

/** A limit that cannot write is none. */
function end(error: Error): void {
  process.stderr.write(`${error.stack}\n`)
  process.exit(1)
}

type Lane = (row: unknown[], stored: () => void) => void

async function openLane(table: string): Promise<Lane> {
  const client = new pg.Client(order.connection)
  await client.connect()
  // The product's statements take few sizes too: rows that are missing are nulls.
  const text = perSize(
    size => `insert into bench.${table} (${rowColumns})
               select * from (values ${valuesList(rowTypes, size)}) as given (${rowColumns}) where id is not null`,
  )
  let waiting: { readonly row: unknown[]; stored(): void }[] = []
  let writing = false
  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax)
      waiting = waiting.slice(batchMax)
      const size = quantised(batch.length)
      const values = padded(
        batch.flatMap(({ row }) => row),
        size * rowTypes.length,
      )
      await client.query({ name: `${table} ${size}`, text: text(size), values })
      for (const { stored } of batch) stored()
    }
    writing = false
  }
  return (row, stored) => {
    waiting.push({ row, stored })
    if (writing) return
    writing = true
    // As the product does: requests that were read together are written together.
    setImmediate(() => drain().catch(end))
  }
}
