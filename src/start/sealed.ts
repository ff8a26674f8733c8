// Where sealed records stand, in all rooms.

import { sealedOfCheckouts } from '../checkouts/sealed.ts'
import { sealedOrders } from '../clearing/remittance/write.ts'
import { sealedReturns } from '../clearing/returns/importReturn.ts'
import { sealedOfNotifications } from '../notifications/sealed.ts'
import { sealedOfPayments } from '../payments/sealed.ts'
import { sealedOfStaff } from '../staff/sealed.ts'
import { sealedCards } from '../vault/cards.ts'
import type { SealedPlace } from '../vault/store.ts'

export const sealedPlaces: readonly SealedPlace[] = [
  sealedCards,
  ...sealedOfPayments,
  ...sealedOfCheckouts,
  ...sealedOfNotifications,
  sealedReturns,
  sealedOrders,
  ...sealedOfStaff,
]
