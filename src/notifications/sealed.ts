// Where notifications keep sealed records.

import { type SealedPlace, sealedColumn } from '../vault/store.ts'
import { endpointSecretPlace } from './endpoints/endpoint.ts'

export const sealedOfNotifications: readonly SealedPlace[] = [
  { what: 'secrets of endpoints', table: 'endpoints', id: 'id', bound: endpointSecretPlace, ...sealedColumn('sealed_secrets') },
]
