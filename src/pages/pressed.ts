// Answers of text that travel compressed.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { HttpAnswer, Request } from '../http/answer.ts'

const compress = promisify(gzip)

/** How many are compressed at a time: each takes 270 KB and a thread that payments need too. */
const atOnce = 2
let underWay = 0

/** Compressed for whoever takes that, as long as there is room; beside a crowd it travels as it stands. */
export async function pressed(request: Request, text: string, headers: HttpAnswer['headers']): Promise<HttpAnswer> {
  if (!takesGzip(request) || underWay >= atOnce) return answer(text, headers)
  underWay++
  try {
    return answer(await compress(text), headers)
  } finally {
    underWay--
  }
}

/** The same for a text that many ask for: compressed once, and kept beside the few others that were asked for last. */
export async function pressedOnce(request: Request, text: string, headers: HttpAnswer['headers']): Promise<HttpAnswer> {
  if (!takesGzip(request)) return answer(text, headers)
  const bytes = kept.get(text) ?? compress(text)
  bytes.catch(() => kept.delete(text)) // the next tries again
  kept.delete(text)
  kept.set(text, bytes)
  if (kept.size > keptMost) kept.delete(kept.keys().next().value!)
  return answer(await bytes, headers)
}

const kept = new Map<string, Promise<Buffer>>()
const keptMost = 20

/** With a weight of nothing it is what the caller does not take (RFC 9110, 12.4.2). */
const takesGzip = ({ headers }: Request): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*([,;]|$))/i.test(headers['accept-encoding'] ?? '')

const answer = (body: string | Buffer, headers: HttpAnswer['headers']): HttpAnswer => ({
  status: 200,
  body,
  headers: { ...headers, Vary: 'Accept-Encoding', ...(typeof body !== 'string' && { 'Content-Encoding': 'gzip' }) },
})
