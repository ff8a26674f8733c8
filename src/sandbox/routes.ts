// What only a sandbox answers: its clock, its listener, and the other side's pages.

import type { Route } from '../http/router.ts'
import type { DueSource } from '../platform/due/source.ts'
import { sandboxClock } from './clock.ts'
import { type ConsoleParts, consoleRoutes } from './console/routes.ts'
import { forwardTo } from './forward.ts'
import { readNotifications } from './notifications.ts'
import type { SandboxParts } from './parts.ts'

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
      : (['GET', 'POST'] as const).map(
          (method): Route => ({
            method,
            path: '/simulators/{rest…}',
            callers: 'browser',
            body: 'anything',
            answer: forwardTo(simulatorsUrl),
          }),
        )),
  ]
}
