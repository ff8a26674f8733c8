// Hands a page below /simulators/ to the simulators' server: a sandbox shows them under the gateway's own address.

import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { RequestFunction } from '../http/router.ts'
import { http } from '../platform/http.ts'

const passedOn = ['accept-language', 'content-type']
const passedBack = ['content-type', 'location', 'content-security-policy', 'referrer-policy', 'cache-control']

/** A few connections that are kept: whatever else is asked there opens one, and would wait behind as many as there are pages to hand on. */
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })

export const forwardTo =
  (url: string): RequestFunction =>
  async ({ method, query, headers, body }) => {
    const asked = http.request(`${url}${query === '' ? '' : `?${query}`}`, {
      agent,
      method,
      headers: Object.fromEntries(passedOn.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]]]))),
    })
    // Heard to the end: a connection may break when the head of its answer has come.
    const answered = new Promise<IncomingMessage>((resolve, reject) => asked.once('response', resolve).on('error', reject))
    asked.end(method === 'GET' || method === 'HEAD' ? undefined : Buffer.from(body, 'latin1'))
    const response = await answered
    const back = passedBack.flatMap(name => {
      const value = response.headers[name]
      return value === undefined ? [] : [[name.replace(/(^|-)[a-z]/g, letter => letter.toUpperCase()), value] as const]
    })
    return {
      status: response.statusCode ?? 500,
      body: await text(response),
      headers: { 'Content-Type': 'text/plain', ...Object.fromEntries(back) },
    }
  }
