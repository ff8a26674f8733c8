// For load balancers: is the process up, and does its database answer on every way that requests take?

import { unreachable } from '../platform/database/connect.ts'
import { resultAnswer } from './answer.ts'
import type { HttpParts } from './parts.ts'
import type { Route } from './router.ts'

const patienceMilliseconds = 2000

export const healthRoutes = (parts: HttpParts): Route[] => [
  {
    method: 'GET',
    path: '/health',
    callers: 'anyone',
    async answer(request) {
      const names = await unreachable(parts.database, parts.clock, patienceMilliseconds)
      if (names.length === 0) return resultAnswer(parts, request, 200, 'requestSucceeded')
      parts.log.warn({ names }, 'the database does not answer')
      return resultAnswer(parts, request, 503, 'databaseUnavailable')
    },
  },
]
