// All routes of a process: every room gives its own.

import { healthRoutes, type Readiness } from '../http/health.ts'
import type { Route } from '../http/router.ts'
import { v1Routes } from '../http/v1/routes.ts'
import { readSeed, sandboxSeed } from '../merchants/seed.ts'
import { developerRoutes } from '../pages/developers/routes.ts'
import { formRoutes } from '../pages/form/routes.ts'
import { officeRoutes } from '../pages/office/routes.ts'
import { shopperRoutes } from '../pages/shopper/routes.ts'
import { slipRoutes } from '../pages/slip/routes.ts'
import { forOffice, forShoppers } from '../platform/database/connect.ts'
import type { DueSource } from '../platform/due/source.ts'
import { sandboxRoutes } from '../sandbox/routes.ts'
import { triggers } from '../sandbox/triggers.ts'
import { sandboxCredentials } from '../sandbox/welcome.ts'
import type { Gateway } from './assemble.ts'

const officeOf = (gateway: Gateway): Gateway => ({ ...gateway, database: forOffice(gateway.database) })

/** Without sockets nobody looks after the process. */
const alwaysReady: Readiness = { checks: {}, says: async () => ({}), mayKnow: () => false }

export const routesOf = (
  gateway: Gateway,
  sources: readonly DueSource[],
  simulatorsUrl?: string,
  readiness: Readiness = alwaysReady,
): Route[] => {
  const ofShoppers = { ...gateway, database: forShoppers(gateway.database, gateway.clock) }
  return [
    ...v1Routes(gateway, ofShoppers),
    ...shopperRoutes(ofShoppers),
    ...formRoutes(ofShoppers),
    ...slipRoutes(ofShoppers),
    ...officeRoutes(officeOf(gateway)),
    ...healthRoutes(gateway, readiness),
    ...developerRoutes(
      officeOf(gateway),
      gateway.sandbox ? { playground: sandboxCredentials('', readSeed(sandboxSeed)), events: triggers } : undefined,
    ),
    ...(gateway.sandbox ? sandboxRoutes(officeOf(gateway), sources, simulatorsUrl) : []),
  ]
}
