// The pages for developers. In a sandbox they are open, and begin with its public credentials; in live mode they are not served.

import { openApi } from '../../contract/openapi.ts'
import { resultAnswer } from '../../http/answer.ts'
import type { RequestFunction, Route } from '../../http/router.ts'
import { pageScript } from '../form/build.ts'
import type { PageParts } from '../parts.ts'
import { pressed } from '../pressed.ts'
import { codesPage } from './codes.ts'
import { eventsPage, type SandboxEvent } from './events.ts'
import { type DeveloperPage, developerPage } from './frame.ts'
import { operationNamed, operationPage, type Playground, referenceIndex } from './reference.ts'

export function developerRoutes(
  parts: PageParts,
  playground: Playground,
  events: Readonly<Record<string, SandboxEvent>>,
): Route[] {
  const script = pageScript(new URL('./browser/page.ts', import.meta.url))
  const page =
    (make: (...asked: Parameters<RequestFunction>) => DeveloperPage | undefined): RequestFunction =>
    (request, named) => {
      const made = make(request, named)
      if (!made) return resultAnswer(parts, request, 404, 'pathNotFound')
      const { body, headers } = developerPage(made, parts.random.bytes(16).toString('base64'))
      return pressed(request, body, headers)
    }
  const today = () => new Date(parts.directory.businessTime(merchantOf())).toISOString().slice(0, 10)
  const merchantOf = () => {
    const entity = parts.directory.entity(playground.entityId)
    return entity && 'merchantId' in entity ? entity.merchantId : ''
  }
  return [
    {
      method: 'GET',
      path: '/openapi.json',
      callers: 'anyone',
      cors: true,
      answer: request =>
        pressed(request, JSON.stringify({ ...openApi(), servers: [{ url: parts.publicUrl() }] }), {
          'Content-Type': 'application/json;charset=UTF-8',
        }),
    },
    {
      method: 'GET',
      path: '/docs/api',
      callers: 'anyone',
      answer: page(() => ({ title: 'API reference', place: 'reference', body: referenceIndex() })),
    },
    {
      method: 'GET',
      path: '/docs/api/{operation}',
      callers: 'anyone',
      answer: page((_, { operation = '' }) => {
        const found = operationNamed(operation)
        return (
          found && {
            title: found.says,
            place: 'reference',
            body: operationPage(found, parts.publicUrl(), today(), playground),
            script: script(),
          }
        )
      }),
    },
    {
      method: 'GET',
      path: '/docs/codes',
      callers: 'anyone',
      answer: page(({ query }) => {
        const asked = new URLSearchParams(query)
        const body = codesPage((asked.get('q') ?? '').slice(0, 200), asked.get('outcome') ?? '')
        return { title: 'Result codes', place: 'codes', body }
      }),
    },
    {
      method: 'GET',
      path: '/docs/events',
      callers: 'anyone',
      answer: page(() => ({
        title: 'Events',
        place: 'events',
        body: eventsPage(events, parts.publicUrl(), playground),
        script: script(),
      })),
    },
  ]
}
