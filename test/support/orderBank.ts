// A bank that begins nothing new for an order number that it has seen, and names its transactions by it.

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type OrderBank = {
  /** What it says of every transaction. */
  status: string
  /** What an answer about a transaction names, when not the one that was asked about. */
  names: string | undefined
  /** Transactions of which it was asked to give something back. */
  refunds: string[]
  /** Where it was asked to send notices, the last one last. */
  readonly hooks: string[]
  /** How often it was asked about a transaction. */
  looks: number
  /** How REDIRECT_METHODS_FILE describes it. */
  readonly method: object
  stop(): void
}

export async function startOrderBank(): Promise<OrderBank> {
  const server = http.createServer((incoming, outgoing) => {
    text(incoming)
      .then(body => {
        const form = new URLSearchParams(body)
        const say = (json: object) => outgoing.end(JSON.stringify(json))
        const [, what, transaction] = incoming.url!.split('/')
        if (what === 'begin') {
          bank.hooks.push(form.get('hook')!)
          return say({ ref: `tx of ${form.get('order')}`, go: 'https://bank.example/shopper', state: 'WAITING' })
        }
        const asked = decodeURIComponent(transaction!)
        if (what === 'look') bank.looks++
        if (what === 'refund') bank.refunds.push(asked)
        say({ ref: bank.names ?? asked, state: what === 'refund' ? 'PAID' : bank.status, sum: '92.00', cur: 'EUR' })
      })
      .catch(() => outgoing.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const bank: OrderBank = {
    status: 'WAITING',
    names: undefined,
    refunds: [],
    hooks: [],
    looks: 0,
    method: {
      external: { start: `${base}/begin`, status: `${base}/look/{transactionId}`, refund: `${base}/refund/{transactionId}` },
      fields: { order: '{merchantTransactionId}', hook: '{notice}' },
      answer: { transactionId: 'ref', redirect: 'go', status: 'state', amount: 'sum', currency: 'cur' },
      statuses: { PAID: '000.000.000', WAITING: '000.200.000', NO: '800.100.100' },
    },
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
  return bank
}
