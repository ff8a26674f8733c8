// Where shoppers who left come by, and where other servers tell of them.

import type { RequestFunction, Route } from '../../http/router.ts'
import { messageBodyMax } from '../../http/server.ts'
import type { PageParts } from '../parts.ts'
import { redirectPages } from './redirect.ts'

export function shopperRoutes(parts: PageParts): Route[] {
  const pages = redirectPages(parts)
  // Whoever looks whether a link leads anywhere takes no shopper's place.
  const opened = (path: string, answer: RequestFunction, more: Pick<Route, 'bodyMax'> = {}): Route[] =>
    (['GET', 'POST'] as const).map(method => ({ method, path, callers: 'browser', usesUp: true, ...more, answer }))
  return [
    ...opened('/r/{token}', pages.page),
    ...opened('/r/return/{token}', pages.back, { bodyMax: messageBodyMax }),
    ...opened('/r/cancel/{token}', pages.cancel),
    ...opened('/r/method/{token}', pages.method),
    ...opened('/r/methodDone/{token}', pages.methodDone),
    // Other servers write as their protocols want.
    {
      method: 'POST',
      path: '/r/notice/{token}',
      callers: 'anyone',
      body: 'anything',
      bodyMax: messageBodyMax,
      answer: pages.notice,
    },
  ]
}
