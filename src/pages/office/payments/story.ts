// What is known of a chain of payments, read for one page: the chain, its books, what merchants were told, what came in, what is still to be done.

import { deliveriesOf, triesOf } from '../../../notifications/deliveries/store.ts'
import { listEndpoints } from '../../../notifications/endpoints/store.ts'
import type { OperatorCase } from '../../../payments/cases/store.ts'
import { casesAbout } from '../../../payments/cases/store.ts'
import { findJournal, type JournalLine } from '../../../payments/ledger/store.ts'
import type { PaymentState } from '../../../payments/payment.ts'
import { type Readable, readable } from '../../../payments/read/status.ts'
import { findChain, findPayment } from '../../../payments/store/read.ts'
import { type TransferRow, transfersAbout } from '../../../payments/transfers/store.ts'
import { dueAbout } from '../../../platform/due/store.ts'
import { findRequests, type RequestRow } from '../../../reporting/requests/store.ts'
import type { OfficeParts } from '../parts.ts'

export type ToldNotification = Awaited<ReturnType<typeof deliveriesOf>>[number] & {
  readonly url: string | null
  /** Oldest first. */
  readonly tries: Awaited<ReturnType<typeof triesOf>>
}

export type Story = {
  /** The payment that the page is about. */
  readonly payment: Readable
  readonly root: Readable
  /** The first, that of the page and the newest, oldest first. */
  readonly chain: readonly Readable[]
  /** All that refers to the first. */
  readonly followers: readonly PaymentState[]
  readonly journal: readonly JournalLine[]
  readonly told: readonly ToldNotification[]
  readonly requests: readonly RequestRow[]
  readonly due: Awaited<ReturnType<typeof dueAbout>>
  readonly cases: readonly OperatorCase[]
  /** The orders of those refunds that are transferred. */
  readonly transfers: readonly TransferRow[]
}

const dueKinds = ['recover', 'reverse', 'release', 'capture', 'redirectExpiry']
const [drawnMost, toldMost, triesMost, requestsMost] = [100, 100, 300, 50]

/** A payment by the id in an address. */
export const paymentAt = async ({ database }: OfficeParts, merchantId: string, id: string): Promise<PaymentState | undefined> =>
  /^[0-9a-f]{32}$/.test(id) ? findPayment(database.work, merchantId, id) : undefined

export async function readStory(parts: OfficeParts, merchantId: string, id: string): Promise<Story | undefined> {
  const db = parts.database.work
  const named = await paymentAt(parts, merchantId, id)
  if (!named) return undefined
  const rootId = named.rootId ?? id
  const all = await findChain(db, merchantId, rootId)
  const drawn = all.filter((one, at) => one.id === rootId || one.id === id || at >= all.length - drawnMost)
  const chain = await readable(parts, drawn)
  const ids = chain.map(one => one.id)
  const endpoints = new Map((await listEndpoints(db, [merchantId])).map(one => [one.id, one]))
  const told = (await deliveriesOf(db, merchantId, [...endpoints.keys()], ids, toldMost)).reverse()
  const tries = Map.groupBy((await triesOf(db, merchantId, told, triesMost)).reverse(), nameOf)
  return {
    payment: chain.find(one => one.id === id)!,
    root: chain.find(one => one.id === rootId)!,
    chain,
    followers: all.filter(one => one.id !== rootId),
    journal: await findJournal(db, merchantId, ids),
    told: told.map(one => ({ ...one, url: endpoints.get(one.endpointId)?.url ?? null, tries: tries.get(nameOf(one)) ?? [] })),
    requests: await findRequests(db, { merchantIds: [merchantId], paymentId: id }, requestsMost),
    due: await dueAbout(db, merchantId, dueKinds, ids),
    cases: await casesAbout(db, merchantId, ids),
    transfers: await transfersAbout(db, merchantId, ids),
  }
}

const nameOf = ({ endpointId, position }: Pick<ToldNotification, 'endpointId' | 'position'>) => `${endpointId} ${position}`
