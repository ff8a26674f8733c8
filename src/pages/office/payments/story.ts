// Everything that is known of a chain of payments, read for one page: the chain, its books, what merchants were told, what came in, what is still to be done.

import { deliveriesOf, listAttempts } from '../../../notifications/deliveries/store.ts'
import { listEndpoints } from '../../../notifications/endpoints/store.ts'
import type { OperatorCase } from '../../../payments/cases/store.ts'
import { casesAbout } from '../../../payments/cases/store.ts'
import { findJournal, type JournalLine } from '../../../payments/ledger/store.ts'
import { type Readable, readable } from '../../../payments/read/status.ts'
import { findChain, findRoot } from '../../../payments/store/read.ts'
import { type TransferRow, transfersAbout } from '../../../payments/transfers/store.ts'
import { dueAbout } from '../../../platform/due/store.ts'
import { findRequests, type RequestRow } from '../../../reporting/requests/store.ts'
import type { OfficeParts } from '../parts.ts'

export type ToldNotification = Awaited<ReturnType<typeof deliveriesOf>>[number] & {
  readonly url: string | null
  readonly tries: Awaited<ReturnType<typeof listAttempts>>
}

export type Story = {
  /** The payment that the page is about. */
  readonly payment: Readable
  readonly root: Readable
  /** Root and followers, oldest first. */
  readonly chain: readonly Readable[]
  readonly journal: readonly JournalLine[]
  readonly told: readonly ToldNotification[]
  readonly requests: readonly RequestRow[]
  readonly due: Awaited<ReturnType<typeof dueAbout>>
  readonly cases: readonly OperatorCase[]
  /** The orders of those refunds that are transferred. */
  readonly transfers: readonly TransferRow[]
}

const dueKinds = ['recover', 'reverse', 'release', 'capture', 'redirectExpiry']
const requestsMost = 50

export async function readStory(parts: OfficeParts, merchantId: string, id: string): Promise<Story | undefined> {
  const db = parts.database.work
  const rootId = /^[0-9a-f]{32}$/.test(id) ? await findRoot(db, merchantId, id) : undefined
  if (rootId === undefined) return undefined
  const chain = await readable(parts, await findChain(db, merchantId, rootId))
  const ids = chain.map(one => one.id)
  const endpoints = new Map((await listEndpoints(db, merchantId)).map(one => [one.id, one]))
  const told: ToldNotification[] = []
  for (const one of await deliveriesOf(db, merchantId, [...endpoints.keys()], ids)) {
    const tries = one.attempts === 0 ? [] : await listAttempts(db, merchantId, one.endpointId, one.position)
    told.push({ ...one, url: endpoints.get(one.endpointId)?.url ?? null, tries })
  }
  return {
    payment: chain.find(one => one.id === id)!,
    root: chain.find(one => one.id === rootId)!,
    chain,
    journal: await findJournal(db, merchantId, ids),
    told,
    requests: await findRequests(db, { merchantIds: [merchantId], paymentId: id }, requestsMost),
    due: await dueAbout(db, merchantId, dueKinds, ids),
    cases: await casesAbout(db, merchantId, ids),
    transfers: await transfersAbout(db, merchantId, ids),
  }
}
