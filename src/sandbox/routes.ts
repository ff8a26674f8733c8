// What only a sandbox answers: its clock, its listener, and the other side's pages.

import type { Route } from '../http/router.ts'
import type { DueSource } from '../platform/due/source.ts'
import { sandboxClock } from './clock.ts'
import { type ConsoleParts, consoleRoutes } from './console/routes.ts'
import { forwardTo } from './forward.ts'
import { readNotifications } from './notifications.ts'
import type { SandboxParts } from './parts.ts'

/**
 * Where browsers are sent. What servers ask each other (the directory, the wallet's NVP, transfers and their refunds) is no page and not reached here, but at the
 * simulators' own address alone: a page of another site can post to what stands below the gateway's, and cannot guess that one.
 */
const simulatorPages: readonly (readonly [method: 'GET' | 'POST', page: string])[] = [
  ['POST', 'acs/method'],
  ['POST', 'acs/challenge'],
  ['POST', 'acs/answer'],
  ['GET', 'wallet/checkout'],
  ['POST', 'wallet/decide'],
  ['GET', 'bank/pay'],
  ['POST', 'bank/decide'],
]

/** `simulatorsUrl`: where the simulators' server listens. */
export function sandboxRoutes(
  parts: SandboxParts & ConsoleParts,
  sources: readonly DueSource[],
  simulatorsUrl?: string,
): Route[] {
  return [
    { method: 'POST', path: '/sandbox/clock', callers: 'token', answer: sandboxClock(parts, sources) },
    { method: 'POST', path: '/sandbox/notifications', callers: 'token', answer: readNotifications(parts) },
    ...consoleRoutes(parts, sources),
    ...(simulatorsUrl === undefined
      ? []
      : simulatorPages.map(
          ([method, page]): Route => ({
            method,
            path: `/simulators/${page}`,
            callers: 'browser',
            body: 'anything',
            answer: forwardTo(`${simulatorsUrl}/${page}`),
          }),
        )),
  ]
}
