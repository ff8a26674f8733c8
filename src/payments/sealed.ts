// Where sealed records stand. Whoever seals something into another place adds it here: a key retires only when no record needs it.

import { secretPlace as endpointPlace } from '../events/endpoints/endpoint.ts'
import type { SealedPlace } from '../vault/store.ts'
import { pendingPlace } from './announced.ts'
import { sealPlace } from './pay.ts'
import { place as continuationPlace, secretPlace } from './redirects/hold.ts'

const column = (name: string) => ({ sealed: name, replace: (value: string) => `${name} = ${value}` })

export const sealedPlaces: readonly SealedPlace[] = [
  { what: 'card numbers', table: 'sealed_cards', id: 'payment_id', bound: sealPlace, ...column('sealed') },
  { what: 'shoppers away', table: 'continuations', id: 'payment_id', bound: continuationPlace, ...column('sealed') },
  { what: 'pending answers', table: 'pending_answers', id: 'payment_id', bound: pendingPlace, ...column('sealed') },
  { what: 'CVVs of challenges', table: 'challenge_secrets', id: 'payment_id', bound: secretPlace, ...column('sealed') },
  { what: 'secrets of endpoints', table: 'endpoints', id: 'id', bound: endpointPlace, ...column('sealed_secrets') },
  {
    // What recovery inherited from a continuation.
    what: 'resumed payments',
    table: 'due_work',
    id: 'subject_id',
    bound: continuationPlace,
    sealed: `decode(details ->> 'sealed', 'base64')`,
    replace: value => `details = jsonb_set(details, '{sealed}', to_jsonb(encode(${value}, 'base64')))`,
  },
]
