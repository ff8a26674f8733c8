// Answers of text that travel compressed.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { HttpAnswer, Request } from '../http/answer.ts'

/** Compressed for whoever takes that. */
export async function pressed(
  { headers: asked }: Request,
  text: string,
  headers: Readonly<Record<string, string>>,
): Promise<HttpAnswer> {
  const isTaken = /\bgzip\b/.test(asked['accept-encoding'] ?? '')
  return {
    status: 200,
    body: isTaken ? await promisify(gzip)(text) : text,
    headers: { ...headers, Vary: 'Accept-Encoding', ...(isTaken && { 'Content-Encoding': 'gzip' }) },
  }
}
