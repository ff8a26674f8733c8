// Where staff keeps sealed records.

import { type SealedPlace, sealedColumn } from '../vault/store.ts'
import { totpPlace } from './factors.ts'
import { orderPlace } from './orders/orders.ts'

export const sealedOfStaff: readonly SealedPlace[] = [
  {
    what: 'second factors',
    table: 'staff',
    owner: 'id',
    id: 'id',
    bound: (_, id) => totpPlace(id),
    ...sealedColumn('sealed_totp'),
  },
  {
    what: 'bank details that wait for a colleague',
    table: 'staff_orders',
    id: 'id',
    bound: orderPlace,
    ...sealedColumn('sealed'),
  },
]
