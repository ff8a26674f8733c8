// What must not happen, as the log tells it: whoever watches over the house looks at each.

import { isElsewhere } from '../platform/database/elsewhere.ts'
import { isCrowd } from '../platform/database/errors.ts'
import type { Request } from './answer.ts'
import type { HttpParts } from './parts.ts'

/** `route`: its path as the table of routes has it, for the caller makes the path itself. */
export function noteFailure({ log }: Pick<HttpParts, 'log'>, request: Request, route: string, error: unknown): void {
  if (isElsewhere(error)) return // a merchant who is moved: the same request is to be sent again
  const { number: ndc, method, address } = request
  const { message, code } = error as Error & { code?: string }
  if (isCrowd(error)) log.warn({ ndc, method, route, address, why: message }, 'a caller found no turn')
  else log.error({ ndc, method, route, why: code === undefined ? message : `${code} ${message}` }, 'a request failed')
}
