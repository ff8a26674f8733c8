// The head of an answer. A proxy holds all of it before it passes anything on, nginx as it is installed in 4 KiB; what is longer it takes for a server that is
// down, and leaves that out for everybody. What makes heads long are addresses of shops, where a browser is to be sent.

import type { HttpAnswer } from './answer.ts'

/** With the status line and what Node adds it has some 200 bytes more. */
const headBytesMost = 3800

/** Names and values in turn. */
export function isTooLong(head: readonly string[]): boolean {
  let bytes = 0
  for (const text of head) bytes += text.length + 2
  return bytes > headBytesMost
}

/** The same answer with a page in the place of a redirect, which leads where that led. Throws when nothing leads anywhere. */
export function shortHead({ headers: { Location, ...headers } = {}, cookies }: HttpAnswer): HttpAnswer {
  if (Location === undefined) throw new Error('the head of an answer is too long')
  const address = inHtml(Location)
  return {
    status: 200,
    body: `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${address}"><title>…</title><p><a href="${address}">…</a>`,
    headers: {
      ...headers,
      'Content-Type': 'text/html;charset=UTF-8',
      'Cache-Control': 'no-store',
      'Content-Security-Policy': "default-src 'none'",
    },
    ...(cookies && { cookies }),
  }
}

const inHtml = (text: string): string => text.replace(/[^\w/:?=%.~-]/g, sign => `&#${sign.charCodeAt(0)};`)
