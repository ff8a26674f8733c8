// For load balancers and for whoever starts and stops processes: /health, is the process up and does its database answer on every way that requests take;
// /health/live, does the process answer; /health/ready, is all there that requests need. None brings anything, so none is refused for what it lacks.

import type { Clock } from '../platform/clock.ts'
import { unreachable } from '../platform/database/connect.ts'
import { resultAnswer } from './answer.ts'
import type { HttpParts } from './parts.ts'
import type { Route } from './router.ts'

const patienceMilliseconds = 2000
/** So long what was seen holds for all who ask: however many they are, the database is asked once. */
const holdsMilliseconds = 1000

/** What else must be in order, by its name. What throws is not. */
export type ReadyChecks = Readonly<Record<string, () => boolean | Promise<boolean>>>

export type Readiness = {
  readonly checks: ReadyChecks
  /** What else is worth a word, as it is now. What is late or fails is not said, and keeps nobody from being ready. */
  says(): Promise<Readonly<Record<string, string>>>
  /** Whether the names of what is not ready are for this address: they say what a gateway stands on. */
  mayKnow(address: string): boolean
}

export function healthRoutes(parts: HttpParts, { checks, says, mayKnow }: Readiness): Route[] {
  const pools = seenFor(parts.clock, () => unreachable(parts.database, parts.clock, patienceMilliseconds))
  const others = seenFor(parts.clock, () => failing(parts.clock, checks))
  const words = seenFor(parts.clock, () => inTime(parts.clock, says, {}))
  let told = ''
  const tell = (names: readonly string[], message: string): void => {
    if (names.join() !== told && names.length > 0) parts.log.warn({ names }, message)
    told = names.join()
  }
  const look = async (): Promise<readonly string[]> => {
    const names = await pools()
    tell(names, 'the database does not answer')
    return names
  }
  const route = (path: string, answer: Route['answer']): Route => ({
    method: 'GET',
    path,
    callers: 'anyone',
    always: true,
    answer,
  })
  return [
    route('/health', async request =>
      (await look()).length === 0
        ? resultAnswer(parts, request, 200, 'requestSucceeded')
        : resultAnswer(parts, request, 503, 'databaseUnavailable'),
    ),
    route('/health/live', request => resultAnswer(parts, request, 200, 'requestSucceeded')),
    route('/health/ready', async request => {
      const isKnown = mayKnow(request.address)
      const [silent, wrong, said] = await Promise.all([look(), others(), isKnown ? words() : {}])
      // Without a database the rest is not known to be wrong.
      const notReady = silent.length > 0 ? silent.map(name => `database ${name}`) : [...wrong]
      const details = isKnown ? { more: { ...said, ...(notReady.length > 0 && { notReady }) } } : {}
      if (notReady.length === 0) return resultAnswer(parts, request, 200, 'requestSucceeded', details)
      return resultAnswer(parts, request, 503, 'notReady', details)
    }),
  ]
}

/** The same for all who ask within a second. */
function seenFor<Value>(clock: Clock, look: () => Promise<Value>): () => Promise<Value> {
  let seen: Promise<Value> | undefined
  return () => {
    seen ??= look().finally(() =>
      clock.after(holdsMilliseconds, () => {
        seen = undefined
      }),
    )
    return seen
  }
}

async function failing(clock: Clock, checks: ReadyChecks): Promise<readonly string[]> {
  const names = Object.keys(checks)
  const found = await Promise.all(names.map(name => inTime(clock, checks[name]!, false)))
  return names.filter((_, at) => !found[at])
}

/** `otherwise`: where it throws, or takes too long. */
const inTime = <Value>(clock: Clock, look: () => Value | Promise<Value>, otherwise: Value): Promise<Value> =>
  new Promise(resolve => {
    const timer = clock.after(patienceMilliseconds, () => resolve(otherwise))
    Promise.resolve()
      .then(look)
      .then(resolve, () => resolve(otherwise))
      .finally(() => timer.cancel())
  })
