// Cookies: how one is read from a request, and said in an answer. None is for scripts, and none goes along when another site sends a form.

import type { Request } from './answer.ts'

/** As ours are at the longest. */
const bytesMost = 64

/** What the browser holds under a name, when it can be ours. */
export function cookieOf({ headers }: Pick<Request, 'headers'>, name: string): string | undefined {
  const { cookie = '' } = headers
  for (let at = 0, end: number; at < cookie.length; at = end + 1) {
    const next = cookie.indexOf(';', at)
    end = next < 0 ? cookie.length : next
    while (cookie[at] === ' ') at++
    if (!cookie.startsWith(`${name}=`, at)) continue
    const value = cookie.slice(at + name.length + 1, end)
    return Buffer.byteLength(value) <= bytesMost ? value : undefined
  }
}

/** For as long as the browser runs, unless `seconds` are given. */
export type Cookie = { readonly path: string; readonly seconds?: number; readonly isSecure: boolean }

/** The value of a Set-Cookie. */
export const setCookie = (name: string, value: string, { path, seconds, isSecure }: Cookie): string =>
  `${name}=${value}; Path=${path}${seconds === undefined ? '' : `; Max-Age=${seconds}`}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
