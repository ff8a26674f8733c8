// Hands a page below /simulators/ to the simulators' server: a sandbox shows them under the gateway's own address.

import type { RequestFunction } from '../http/router.ts'

const passedOn = ['accept-language', 'content-type']
const passedBack = ['content-type', 'location', 'content-security-policy', 'referrer-policy', 'cache-control']

export const forwardTo =
  (url: string): RequestFunction =>
  async ({ method, query, headers, body }) => {
    const response = await fetch(`${url}${query === '' ? '' : `?${query}`}`, {
      method,
      redirect: 'manual',
      headers: Object.fromEntries(passedOn.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]]]))),
      ...(method !== 'GET' && method !== 'HEAD' && { body: Buffer.from(body, 'latin1') }),
    })
    const back = passedBack.flatMap(name => {
      const value = response.headers.get(name)
      return value === null ? [] : [[name.replace(/(^|-)[a-z]/g, letter => letter.toUpperCase()), value] as const]
    })
    return {
      status: response.status,
      body: await response.text(),
      headers: { 'Content-Type': 'text/plain', ...Object.fromEntries(back) },
    }
  }
