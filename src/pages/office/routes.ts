// All pages of the back office: every folder beside this file gives its own.

import type { Route } from '../../http/router.ts'
import { accountRoutes } from './account/routes.ts'
import { approvalRoutes } from './approvals/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { caseRoutes } from './cases/routes.ts'
import { entityRoutes } from './entities/routes.ts'
import { exportRoutes } from './exports/routes.ts'
import { fileRoutes } from './files/routes.ts'
import { overviewRoutes } from './overview/routes.ts'
import type { OfficeParts } from './parts.ts'
import { paymentRoutes } from './payments/routes.ts'
import { peopleRoutes } from './people/routes.ts'
import { reportPages } from './reports/routes.ts'
import { riskRoutes } from './risk/routes.ts'
import { type OfficeRoute, officeRoute, openRoute } from './route.ts'
import { scheduleRoutes } from './schedules/routes.ts'
import { openRoutes, sessionRoutes } from './signIn/routes.ts'
import { webhookRoutes } from './webhooks/routes.ts'
import { workRoutes } from './work/routes.ts'

/** Those that need somebody signed in: what tests of permissions go through, one by one. */
export const signedInRoutes = (parts: OfficeParts): OfficeRoute[] => [
  ...sessionRoutes(parts),
  ...accountRoutes(parts),
  ...paymentRoutes(parts),
  ...overviewRoutes(parts),
  ...reportPages(parts),
  ...exportRoutes(parts),
  ...scheduleRoutes(parts),
  ...caseRoutes(parts),
  ...fileRoutes(parts),
  ...approvalRoutes(parts),
  ...workRoutes(parts),
  ...riskRoutes(parts),
  ...entityRoutes(parts),
  ...webhookRoutes(parts),
  ...peopleRoutes(parts),
  ...auditRoutes(parts),
]

export const officeRoutes = (parts: OfficeParts): Route[] => [
  ...openRoutes(parts).map(route => openRoute(parts, route)),
  ...signedInRoutes(parts).map(route => officeRoute(parts, route)),
]
