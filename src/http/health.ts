// For load balancers: is the process up, and does its database answer on every way that requests take?

import { unreachable } from '../platform/database/connect.ts'
import { resultAnswer } from './answer.ts'
import type { HttpParts } from './parts.ts'
import type { Route } from './router.ts'

const patienceMilliseconds = 2000
/** So long what was seen holds for all who ask: however many they are, the database is asked once. */
const holdsMilliseconds = 1000

export function healthRoutes(parts: HttpParts): Route[] {
  let seen: Promise<readonly string[]> | undefined
  let told = ''
  const look = (): Promise<readonly string[]> => {
    seen ??= unreachable(parts.database, parts.clock, patienceMilliseconds).then(names => {
      parts.clock.after(holdsMilliseconds, () => {
        seen = undefined
      })
      if (names.join() !== told && names.length > 0) parts.log.warn({ names }, 'the database does not answer')
      told = names.join()
      return names
    })
    return seen
  }
  return [
    {
      method: 'GET',
      path: '/health',
      callers: 'anyone',
      async answer(request) {
        return (await look()).length === 0
          ? resultAnswer(parts, request, 200, 'requestSucceeded')
          : resultAnswer(parts, request, 503, 'databaseUnavailable')
      },
    },
  ]
}
