// Where payments keep sealed records. Whoever seals something into another place adds it here: a key retires only when no record needs it.

import { type SealedPlace, sealedColumn } from '../vault/store.ts'
import { pendingPlace } from './read/pendingAnswers.ts'
import { challengeSecretPlace, continuationPlace } from './redirects/continuation.ts'
import { transferPlace } from './transfers/transfer.ts'

export const sealedOfPayments: readonly SealedPlace[] = [
  { what: 'shoppers away', table: 'continuations', id: 'payment_id', bound: continuationPlace, ...sealedColumn('sealed') },
  { what: 'pending answers', table: 'pending_answers', id: 'payment_id', bound: pendingPlace, ...sealedColumn('sealed') },
  {
    what: 'CVVs of challenges',
    table: 'challenge_secrets',
    id: 'payment_id',
    bound: challengeSecretPlace,
    ...sealedColumn('sealed'),
  },
  { what: 'bank details', table: 'refund_transfers', id: 'payment_id', bound: transferPlace, ...sealedColumn('sealed') },
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
