// The pages about payments: to find them, to read what became of one, to act.

import type { OfficeParts } from '../parts.ts'
import type { OfficeRoute } from '../route.ts'
import { actRoutes } from './act.ts'
import { listRoutes } from './list.ts'
import { pageRoutes } from './payment.ts'
import { filterRoutes } from './savedFilters.ts'
import { transferRoutes } from './transfer.ts'

export const paymentRoutes = (parts: OfficeParts): OfficeRoute[] => [
  ...listRoutes(parts),
  ...filterRoutes(parts),
  ...pageRoutes(parts),
  ...actRoutes(parts),
  ...transferRoutes(parts),
]
