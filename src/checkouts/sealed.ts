// Where checkouts keep sealed records.

import { type SealedPlace, sealedColumn } from '../vault/store.ts'
import { checkoutPlace } from './checkout.ts'

export const sealedOfCheckouts: readonly SealedPlace[] = [
  { what: 'checkouts', table: 'checkouts', id: 'id', bound: checkoutPlace, ...sealedColumn('sealed') },
]
