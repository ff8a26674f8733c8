// A merchant's server that takes notifications: it remembers what came and answers as a test tells it.

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { decrypt } from '../../src/notifications/cipher.ts'

export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  readonly status: number
}

export type Receiver = {
  readonly url: string
  readonly received: Received[]
  /** What to answer: a status, now or later, or `hang`. */
  answer: (received: Omit<Received, 'status'>) => number | 'hang' | Promise<number>
  close(): Promise<void>
}

export async function startReceiver(answer: Receiver['answer'] = () => 200, port = 0): Promise<Receiver> {
  const received: Received[] = []
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const one = {
        method: request.method!,
        path: request.url!,
        headers: request.headers as Received['headers'],
        text: Buffer.concat(chunks).toString(),
      }
      const answer = receiver.answer(one)
      received.push({ ...one, status: typeof answer === 'number' ? answer : 0 })
      if (answer === 'hang') return
      Promise.resolve(answer)
        .then(status =>
          response.writeHead(status, status === 302 ? { Location: `${receiver.url}/elsewhere` } : {}).end(`said ${status}`),
        )
        .catch(() => response.destroy())
    })
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  server.unref() // a test that fails before it closes this must end all the same
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return receiver
}

/** The envelope, decrypted whatever the wrapper. */
// biome-ignore lint/suspicious/noExplicitAny: an envelope, looked at field by field
export function opened({ headers, text }: Pick<Received, 'headers' | 'text'>, secret: string): any {
  const iv = headers['x-initialization-vector']
  if (iv === undefined) return JSON.parse(text)
  const body = text.startsWith('{') ? (JSON.parse(text) as { encryptedBody: string }).encryptedBody : text
  const clear = decrypt(Buffer.from(secret, 'hex'), { iv, tag: headers['x-authentication-tag']!, body })
  return clear === undefined ? undefined : JSON.parse(clear)
}
