// Where staff keeps sealed records.

import { type SealedPlace, sealedColumn } from '../vault/store.ts'
import { totpPlace } from './factors.ts'

export const sealedOfStaff: readonly SealedPlace[] = [
  {
    what: 'second factors',
    table: 'staff',
    owner: 'id',
    id: 'id',
    bound: (_, id) => totpPlace(id),
    ...sealedColumn('sealed_totp'),
  },
]
