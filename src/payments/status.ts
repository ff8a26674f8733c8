// Reading payments: one by its id, lists by merchantTransactionId or time.

import { wireTime } from '../clock.ts'
import type { Nested } from '../contract/nested.ts'
import type { Gateway } from '../gateway.ts'
import { pendingAnswers } from './announced.ts'
import { pendingRecord } from './carryOut.ts'
import type { Answered } from './payment.ts'
import { countPayments, findChain, findPayment, type Search, searchPayments } from './store/read.ts'

/** A payment with its answer, or with what it was answered while it waits. */
export type Readable = Answered & { readonly pendingBody?: string | undefined }

/** The payment as it reads now: its answer with the time of this reading, or pending. */
export function currentRecord(gateway: Gateway, payment: Readable): Nested {
  const record = givenRecord(gateway, payment)
  record.timestamp = wireTime(gateway.directory.businessTime(payment.merchantId))
  return record
}

/** The payment as it was answered: what lists show. */
export const givenRecord = (gateway: Gateway, payment: Readable): Nested =>
  JSON.parse(payment.answer?.body ?? payment.pendingBody ?? pendingRecord(gateway, payment).body)

export async function readPayment(gateway: Gateway, merchantId: string, id: string): Promise<Readable | undefined> {
  const payment = await findPayment(gateway.database.work, merchantId, id)
  return payment && (await readable(gateway, [payment]))[0]
}

/** Payments of one merchant; those that wait bring what they were answered. */
async function readable(gateway: Gateway, payments: readonly Answered[]): Promise<Readable[]> {
  const given = await pendingAnswers(
    gateway,
    payments.filter(({ answer }) => !answer),
  )
  return payments.map(payment => ({ ...payment, pendingBody: given.get(payment.id) }))
}

export type Page = { readonly records: readonly Nested[]; readonly pages: number }

/** One page of a search, oldest first. With linked transactions each payment brings the rest of its chain. */
export async function searchPage(
  gateway: Gateway,
  search: Search,
  limit: number,
  pageNo: number,
  linked: boolean,
): Promise<Page> {
  const db = gateway.database.work
  const found = await searchPayments(db, search, limit, (pageNo - 1) * limit)
  const payments = linked ? await withChains(gateway, found) : await readable(gateway, found)
  const pages = Math.max(1, Math.ceil((await countPayments(db, search)) / limit))
  return { records: payments.map(payment => givenRecord(gateway, payment)), pages }
}

/** A payment and, when asked for, all of its chain. */
export async function withChains(gateway: Gateway, payments: readonly Answered[]): Promise<Readable[]> {
  const seen = new Map<string, Answered>()
  for (const payment of payments) {
    if (seen.has(payment.id)) continue
    for (const one of await findChain(gateway.database.work, payment.merchantId, payment.rootId ?? payment.id))
      seen.set(one.id, one)
  }
  return readable(gateway, [...seen.values()])
}
