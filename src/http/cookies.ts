// Cookies: how one is read from a request, and said in an answer. None is for scripts, and none goes along when another site sends a form.

import type { Request } from './answer.ts'

/** As ours are at the longest. */
const bytesMost = 64

/** What the browser holds under a name, when it can be ours. */
export function cookieOf({ headers }: Pick<Request, 'headers'>, name: string): string | undefined {
  const found = (headers.cookie ?? '').split(/; */).find(one => one.startsWith(`${name}=`))
  const value = found?.slice(name.length + 1)
  return value !== undefined && Buffer.byteLength(value) <= bytesMost ? value : undefined
}

/** For as long as the browser runs, unless `seconds` are given. */
export type Cookie = { readonly path: string; readonly seconds?: number; readonly isSecure: boolean }

/** The value of a Set-Cookie. */
export const setCookie = (name: string, value: string, { path, seconds, isSecure }: Cookie): string =>
  `${name}=${value}; Path=${path}${seconds === undefined ? '' : `; Max-Age=${seconds}`}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
