// Asking another server over HTTP. What certainly was not sent is told apart from what may have arrived.

export type Sent = { readonly status: number; readonly body: string }

export type Transport = (
  request: {
    readonly method: 'GET' | 'POST'
    readonly url: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  },
  signal: AbortSignal,
) => Promise<Sent>

/** The connection was never made: nothing can have been carried out. */
export class NotSent extends Error {}

const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])
const bodyMax = 1_000_000

export const httpTransport: Transport = async ({ method, url, headers, body }, signal) => {
  try {
    const response = await fetch(url, {
      method,
      redirect: 'error',
      signal,
      ...(headers && { headers: { ...headers } }),
      ...(body !== undefined && { body }),
    })
    const text = await response.text()
    if (text.length > bodyMax) throw new Error('the answer is too long')
    return { status: response.status, body: text }
  } catch (error) {
    const { code } = ((error as Error).cause ?? error) as { code?: string }
    if (code !== undefined && neverConnected.has(code)) throw new NotSent(code)
    throw new Error(`no answer (${code ?? (error as Error).name})`)
  }
}
