// Finds the route of a request. A route is a record: every room gives its own, `start` puts them into one table, and nothing but the record says what a
// path takes.

import { notBuilt } from '../contract/notBuilt.ts'
import { askedBy } from '../platform/database/fairPool.ts'
import { decoded } from '../platform/network.ts'
import { type HttpAnswer, type Request, resultAnswer, tooManyAtOnce } from './answer.ts'
import { isForeign } from './host.ts'
import type { HttpParts } from './parts.ts'
import { countUnderWay, isHeldAsItCame, isWithinNetwork, type UnderWay } from './underWay.ts'

/** Several slashes are one. */
export const plainPath = (path: string): string => path.replace(/\/{2,}/g, '/')

/** Segments of the path by their names, decoded. */
export type PathValues = Readonly<Record<string, string>>
export type RequestFunction = (request: Request, named: PathValues) => HttpAnswer | Promise<HttpAnswer>

export type Route = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** `{id}` names a segment, wherever it stands; `{rest…}` at the end names all that follow. */
  readonly path: string
  /** A merchant's server with its credentials; a browser that comes by itself; whoever likes. */
  readonly callers: 'token' | 'browser' | 'anyone'
  /** What a POST may carry; `form` when absent. */
  readonly body?: 'form' | 'anything'
  /** The most bytes of a body; the server's own limit for such callers when absent. */
  readonly bodyMax?: number
  /** Scripts of all sites may read the answer. */
  readonly cors?: true
  /** Answered also while no request is taken, and without the TLS that a proxy must have spoken: it is asked by whoever looks after the process. */
  readonly always?: true
  /** Asking for it uses something up: whoever only looks whether it is there, by a HEAD, is refused. */
  readonly usesUp?: true
  /** By whose name may so much be sent? Asked when only its head has come. The body of nobody else (undefined) is read: `answer` is given none, and says why. */
  admits?(request: Request): Promise<string | undefined>
  /** What it takes before its caller is known: as much as so many others, which share the turns of their network. */
  readonly cost?: number
  readonly answer: RequestFunction
}

/** Where a request goes. `name` is the route's path, for logs: the path itself is made by its caller. */
export type Destination = {
  readonly name: string
  readonly route?: Route
  /** Asked where it is there, before the body is read. */
  admits?(request: Request): Promise<string | undefined>
  answer(request: Request): HttpAnswer | Promise<HttpAnswer>
}
export type Router = (method: string, path: string) => Destination

/** A word, or the name that a segment is given, or that of all that follow. */
type Segment = { readonly word: string } | { readonly name: string; readonly rest: boolean }
type RoutePath = { readonly path: string; readonly segments: readonly Segment[]; readonly methods: Map<string, Route> }

export function router(parts: HttpParts, routes: readonly Route[]): Router {
  const underWay = countUnderWay()
  const places = new Map<string, RoutePath>()
  for (const route of routes) {
    const { path, method } = route
    if (!places.has(path)) places.set(path, { path, segments: path.split('/').map(readSegment), methods: new Map() })
    places.get(path)!.methods.set(method, route)
  }
  // Names of segments are tried after words: `/r/return/{id}` before `/r/{kind}/{id}`.
  const patterns = [...places.values()].filter(({ path }) => path.includes('{')).sort((a, b) => wordsOf(b) - wordsOf(a))

  function find(path: string): { place: RoutePath; named: PathValues } | undefined {
    const place = path.includes('{') ? undefined : places.get(path)
    if (place) return { place, named: nothing }
    const segments = path.split('/')
    for (const place of patterns) {
      const named = namesIn(place.segments, segments)
      if (named) return { place, named }
    }
    return undefined
  }

  return (method, path) => {
    const found = find(path)
    if (!found)
      return { name: 'elsewhere', answer: request => resultAnswer(parts, request, 404, notBuilt(path) ?? 'pathNotFound') }
    const { methods, path: name } = found.place
    // Without its body, which the server leaves out, the answer to a HEAD is that to a GET.
    const got = methods.get('GET')
    const hasHead = got !== undefined && !got.usesUp
    const route = method === 'HEAD' ? (hasHead ? got : undefined) : methods.get(method)
    if (route) {
      const { admits } = route
      return {
        ...{ name, route },
        ...(admits && { admits: request => admittedAs(underWay, admits, request) }),
        answer: request => answerOf(parts, underWay, route, request, found.named),
      }
    }
    const forBrowsers = [...methods.values()].some(({ callers, cors }) => callers === 'browser' || cors)
    const allow = [...methods.keys(), ...(hasHead ? ['HEAD'] : []), ...(forBrowsers ? ['OPTIONS'] : [])].join(', ')
    return {
      name,
      answer: request =>
        method === 'OPTIONS' && forBrowsers
          ? preflight(allow)
          : resultAnswer(parts, request, 405, 'methodNotAllowed', { headers: { Allow: allow } }),
    }
  }
}

function answerOf(
  parts: HttpParts,
  underWay: UnderWay,
  route: Route,
  request: Request,
  named: PathValues,
): HttpAnswer | Promise<HttpAnswer> {
  const isWithin =
    route.callers === 'token' ||
    (isWithinNetwork(underWay, request) && (route.callers === 'anyone' || isHeldAsItCame(parts, request)))
  if (!isWithin) return tooManyAtOnce(parts, request)
  // A sandbox's credentials are public: a page of another site must not use them from a developer's browser.
  if (parts.sandbox && route.callers === 'token' && isForeign(request, parts.publicUrl()))
    return resultAnswer(parts, request, 403, 'foreignOrigin')
  const asked: Request = request.method === 'HEAD' ? { ...request, method: 'GET' } : request
  return askedBy(request.networks, () => route.answer(asked, named))
}

/** While it is looked at it counts as one that is under way. What fails here fails again where it is answered. */
async function admittedAs(
  underWay: UnderWay,
  admits: NonNullable<Route['admits']>,
  request: Request,
): Promise<string | undefined> {
  const asked: Request = { ...request, whenAnswered: [] }
  try {
    return isWithinNetwork(underWay, asked) ? await askedBy(asked.networks, () => admits(asked)) : undefined
  } catch {
    return undefined
  } finally {
    for (const done of asked.whenAnswered) done()
  }
}

const nothing: PathValues = {}

function readSegment(text: string): Segment {
  const [, name, rest] = /^\{(\w+)(…?)\}$/.exec(text) ?? []
  return name === undefined ? { word: text } : { name, rest: rest !== '' }
}

const wordsOf = ({ segments }: RoutePath): number => segments.filter(segment => 'word' in segment).length

function namesIn(pattern: readonly Segment[], segments: readonly string[]): PathValues | undefined {
  const named: Record<string, string> = {}
  for (const [at, expected] of pattern.entries()) {
    const segment = segments[at]
    if ('word' in expected) {
      if (expected.word !== segment) return undefined
    } else if (expected.rest) {
      named[expected.name] = segments.slice(at).join('/')
      return named
    } else {
      if (!segment) return undefined
      named[expected.name] = decoded(segment) ?? segment // what is not even a name will not be found
    }
  }
  return segments.length === pattern.length ? named : undefined
}

/** What a browser asks before a script of another site may send something: no credentials travel. */
const preflight = (allow: string): HttpAnswer => ({
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
