// The route table: one line a path.

import { notBuilt } from '../contract/notBuilt.ts'
import { unreachable } from '../database/connect.ts'
import type { DueSource } from '../due/advance.ts'
import type { PendingPayload } from '../events/deliveries/deliver.ts'
import type { Gateway } from '../gateway.ts'
import { redirectPages } from '../pages/redirect/redirect.ts'
import { type Answer, type Request, told } from './answer.ts'
import { readNotifications } from './notifications.ts'
import { sandboxClock } from './sandbox.ts'
import { type RequestFunction, v1 } from './v1.ts'

type Route = readonly [method: string, path: string, answer: RequestFunction]

/** Where browsers come by themselves, without credentials (decisions, 21). */
const forBrowsers = (path: string): boolean =>
  path === '/v1/resultcodes' || (path.startsWith('/r/') && !path.startsWith('/r/notice/'))

export type Router = (request: Request) => Promise<Answer> | Answer

export function routes(gateway: Gateway, sources: readonly DueSource[], pendingPayload: PendingPayload): Route[] {
  const interfaceOne = v1(gateway)
  const pages = redirectPages(gateway)
  return [
    ['POST', '/v1/payments', interfaceOne.postPayment],
    ['GET', '/v1/payments', interfaceOne.queryList],
    ['POST', '/v1/payments/{id}', interfaceOne.postFollowUp],
    ['GET', '/v1/payments/{id}', interfaceOne.getPayment],
    ['GET', '/v1/query', interfaceOne.queryList],
    ['GET', '/v1/query/{id}', interfaceOne.queryOne],
    ['GET', '/v3/query', interfaceOne.v3List],
    ['GET', '/v3/query/{id}', interfaceOne.v3One],
    ['GET', '/v1/resultcodes', interfaceOne.resultCodes],
    ['POST', '/v1/threeDSecure', interfaceOne.postThreeDSecure],
    ['GET', '/v1/threeDSecure/{id}', interfaceOne.getThreeDSecure],
    ['GET', '/r/{id}', pages.page],
    ['POST', '/r/{id}', pages.page],
    ['GET', '/r/return/{id}', pages.back],
    ['POST', '/r/return/{id}', pages.back],
    ['GET', '/r/cancel/{id}', pages.cancel],
    ['POST', '/r/cancel/{id}', pages.cancel],
    ['GET', '/r/method/{id}', pages.method],
    ['POST', '/r/method/{id}', pages.method],
    ['GET', '/r/methodDone/{id}', pages.methodDone],
    ['POST', '/r/methodDone/{id}', pages.methodDone],
    ['POST', '/r/notice/{id}', pages.notice],
    ['GET', '/health', health(gateway)],
    ...(gateway.sandbox
      ? ([
          ['POST', '/sandbox/clock', sandboxClock(gateway, sources)],
          ['POST', '/sandbox/notifications', readNotifications(gateway, pendingPayload)],
        ] satisfies Route[])
      : []),
  ]
}

/** `simulators`: what a sandbox serves below /simulators/. */
export function router(gateway: Gateway, table: readonly Route[], simulators?: Router): Router {
  const paths = new Map<string, Map<string, RequestFunction>>()
  for (const [method, path, answer] of table) paths.set(path, (paths.get(path) ?? new Map()).set(method, answer))
  return request => {
    const { method, path } = request
    if (simulators && path.startsWith('/simulators/')) return simulators(request)
    const slash = path.lastIndexOf('/')
    const plain = path.includes('{') ? undefined : paths.get(path)
    const methods = plain ?? (slash < path.length - 1 ? paths.get(`${path.slice(0, slash)}/{id}`) : undefined)
    if (!methods) return told(gateway, request, 404, notBuilt(path) ?? 'pathNotFound')
    // Without its body, which the server leaves out, the answer to a HEAD is that to a GET.
    const answer = methods.get(method === 'HEAD' ? 'GET' : method)
    if (answer)
      return answer(method === 'HEAD' ? { ...request, method: 'GET' } : request, plain ? '' : decodedId(path.slice(slash + 1)))
    const allow = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), ...(forBrowsers(path) ? ['OPTIONS'] : [])].join(
      ', ',
    )
    if (method === 'OPTIONS' && forBrowsers(path)) return preflight(allow)
    return told(gateway, request, 405, 'methodNotAllowed', { headers: { Allow: allow } })
  }
}

/** The route that a path belongs to, as logs name it: the path itself is made by its caller. */
export function routeNames(table: readonly Route[]): (path: string) => string {
  const names = new Set(table.map(([, path]) => path))
  return path => {
    const withId = `${path.slice(0, path.lastIndexOf('/'))}/{id}`
    return [path, withId].find(name => names.has(name)) ?? (path.startsWith('/simulators/') ? '/simulators' : 'elsewhere')
  }
}

/** What a browser asks before a script of another site may send something: no credentials travel. */
const preflight = (allow: string): Answer => ({
  status: 200,
  body: '',
  headers: {
    'Content-Type': 'text/plain',
    Allow: allow,
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': 'Content-Type',
    'Access-Control-Max-Age': '86400',
  },
})

/** An id that is not even a name stays what it is: it will not be found. */
function decodedId(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    return raw
  }
}

const healthMilliseconds = 2000

/** For load balancers: is the process up, and does its database answer on every way that requests take? */
function health(gateway: Gateway): RequestFunction {
  return async request => {
    const names = await unreachable(gateway.database, healthMilliseconds)
    if (names.length === 0) return told(gateway, request, 200, 'requestSucceeded')
    gateway.log.warn({ names }, 'the database does not answer')
    return told(gateway, request, 503, 'databaseUnavailable')
  }
}
