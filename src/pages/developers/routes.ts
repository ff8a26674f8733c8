// The pages for developers. In a sandbox they are open, and their forms begin with its public credentials; in live mode they are for those who are
// signed in to the back office, and nothing can be sent from them.

import { openApi } from '../../contract/openapi.ts'
import { type HttpAnswer, type Request, resultAnswer } from '../../http/answer.ts'
import type { PathValues, Route } from '../../http/router.ts'
import { pageScript } from '../form/build.ts'
import type { OfficeParts } from '../office/parts.ts'
import { officeRoute } from '../office/route.ts'
import type { PageParts } from '../parts.ts'
import { pressed } from '../pressed.ts'
import { codesPage } from './codes.ts'
import { eventsPage, type SandboxEvent } from './events.ts'
import { type DeveloperPage, developerPage } from './frame.ts'
import { operationNamed, operationPage, type Playground, referenceIndex } from './reference.ts'

/** What a sandbox lets be tried. */
export type Trying = { readonly playground: Playground; readonly events: Readonly<Record<string, SandboxEvent>> }

type DeveloperPlace = {
  readonly path: string
  readonly cors?: true
  answer(request: Request, named: PathValues): Promise<HttpAnswer> | HttpAnswer
}

export const developerRoutes = (parts: OfficeParts, trying: Trying | undefined): Route[] =>
  trying
    ? places(parts, trying).map(place => ({ ...place, method: 'GET', callers: 'anyone', cost: 64 }))
    : places(parts).map(({ path, answer }) =>
        officeRoute(parts, {
          method: 'GET',
          path,
          top: true,
          action: 'own',
          answer: (request, _, named) => answer(request, named),
        }),
      )

function places(parts: PageParts, trying?: Trying): DeveloperPlace[] {
  // It is long, and the same for all but where they reached us.
  let rest: string | undefined
  const document = (publicUrl: string): string => {
    rest ??= JSON.stringify({ ...openApi(), servers: undefined }).slice(1)
    return `{"servers":${JSON.stringify([{ url: publicUrl }])},${rest}`
  }
  const script = pageScript(new URL('./browser/page.ts', import.meta.url))
  const page = (path: string, make: (request: Request, named: PathValues) => DeveloperPage | undefined): DeveloperPlace => ({
    path,
    answer(request, named) {
      const made = make(request, named)
      if (!made) return resultAnswer(parts, request, 404, 'pathNotFound')
      const { body, headers } = developerPage(made, trying !== undefined, parts.random.bytes(16).toString('base64'))
      return pressed(request, body, headers)
    },
  })
  return [
    {
      path: '/openapi.json',
      cors: true,
      answer: request => pressed(request, document(request.publicUrl), { 'Content-Type': 'application/json;charset=UTF-8' }),
    },
    page('/docs/api', () => ({ title: 'API reference', place: 'reference', body: referenceIndex() })),
    page('/docs/api/{operation}', ({ publicUrl }, { operation = '' }) => {
      const found = operationNamed(operation)
      const body = found && operationPage(found, publicUrl, todayOf(parts, trying), trying?.playground)
      return found && body && { title: found.says, place: 'reference', body, script: script() }
    }),
    page('/docs/codes', ({ query }) => {
      const asked = new URLSearchParams(query)
      const body = codesPage((asked.get('q') ?? '').slice(0, 200), asked.get('outcome') ?? '')
      return { title: 'Result codes', place: 'codes', body }
    }),
    ...(trying
      ? [
          page('/docs/events', ({ publicUrl }) => ({
            title: 'Events',
            place: 'events',
            body: eventsPage(trying.events, publicUrl, trying.playground),
            script: script(),
          })),
        ]
      : []),
  ]
}

/** The day as the merchant of the examples has it, whose clock may be moved. */
function todayOf({ directory, clock }: PageParts, trying: Trying | undefined): string {
  const entity = trying && directory.entity(trying.playground.entityId)
  const now = entity && 'merchantId' in entity ? directory.businessTime(entity.merchantId) : clock.real()
  return new Date(now).toISOString().slice(0, 10)
}
