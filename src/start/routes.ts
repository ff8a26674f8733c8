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
import { forMerchants, forOffice, forShoppers } from '../platform/database/connect.ts'
import type { DueSource } from '../platform/due/source.ts'
import { sandboxRoutes } from '../sandbox/routes.ts'
import { triggers } from '../sandbox/triggers.ts'
import { sandboxCredentials } from '../sandbox/welcome.ts'
import type { Gateway } from './assemble.ts'

/** Without sockets nobody looks after the process. */
const alwaysReady: Readiness = { checks: {}, says: async () => ({}), mayKnow: () => false }

export const routesOf = (
  gateway: Gateway,
  sources: readonly DueSource[],
  simulatorsUrl?: string,
  readiness: Readiness = alwaysReady,
): Route[] => {
  const { database, clock } = gateway
  const ofMerchants = { ...gateway, database: forMerchants(database, clock) }
  const ofShoppers = { ...gateway, database: forShoppers(database, clock) }
  const ofStaff = { ...gateway, database: forOffice(database, clock) }
  return [
    ...v1Routes(ofMerchants, ofShoppers),
    ...shopperRoutes(ofShoppers),
    ...formRoutes(ofShoppers),
    ...slipRoutes(ofShoppers),
    ...officeRoutes(ofStaff),
    ...healthRoutes(gateway, readiness),
    ...developerRoutes(
      ofStaff,
      gateway.sandbox ? { playground: sandboxCredentials('', readSeed(sandboxSeed)), events: triggers } : undefined,
    ),
    ...(gateway.sandbox ? sandboxRoutes(ofStaff, sources, simulatorsUrl) : []),
  ]
}
