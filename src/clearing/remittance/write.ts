// Order files to banks, as due work that any process may take: one row for each account. What waits gets a number and is written down with its bytes in one
// transaction, then put on disk, then marked. Whoever comes after a dead process goes on where it stopped.

import type { BankSlipAccount, SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { payerOf, todayAt } from '../../connectors/slips/request.ts'
import { nobody } from '../../payments/cases/cases.ts'
import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Database, inTransaction } from '../../platform/database/connect.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import type { Log } from '../../platform/log.ts'
import type { Keys } from '../../vault/keys.ts'
import { seal, unseal } from '../../vault/seal.ts'
import { type SealedPlace, sealedColumn } from '../../vault/store.ts'
import { fileSeries, waitsForRelease, whileHeld } from '../fileSeries.ts'
import { putFile } from '../putFile.ts'
import { subjectOf } from '../reconciliation/store.ts'
import { orderFileName, orderText } from './orderFile.ts'
import { findUnwrittenOrders, insertOrderFile, lockOrders, markOrdersWritten, nextOrderFile } from './store.ts'

export type OrderFileParts = {
  readonly database: Pick<Database, 'work'>
  readonly clock: Clock
  readonly random: Random
  readonly keys: Keys
  readonly log: Log
  readonly slipAccounts: SlipAccounts
}

const everyMilliseconds = 15 * 60_000
/** A lot numbers its segments, two for each title, with five digits. */
const linesMost = 40_000

const orderFilePlace = (_: string, id: string): string => `order file ${id}`

export const sealedOrders: SealedPlace = {
  what: 'order files that are not on disk yet',
  table: 'order_files',
  id: 'id',
  bound: orderFilePlace,
  ...sealedColumn('sealed'),
}

const sending = (account: SlipAccount | undefined) =>
  account?.kind === 'bank' && account.remittance ? { account, folder: account.remittance.folder } : undefined

/** Called at every start. */
export async function beginOrderFiles(parts: OrderFileParts): Promise<void> {
  const { database, clock, slipAccounts } = parts
  for (const [name, account] of slipAccounts) {
    if (!sending(account)) continue
    await waitsForRelease(parts, fileSeries.orders, name)
    await addDue(database.work, 'orderFile', nobody, subjectOf('orders', name), clock.real(), { account: name })
  }
}

/** Due work of kind `orderFile`. Files go out in the order of their numbers. */
export const orderFile: DueHandler<OrderFileParts> = async (parts, { details }) => {
  const again = { again: parts.clock.real() + everyMilliseconds }
  const sender = sending(parts.slipAccounts.get((details as { account: string }).account))
  if (!sender) return again // it may come back
  const { account, folder } = sender
  const db = parts.database.work
  const held = await whileHeld(parts, fileSeries.orders, account.name, again)
  if (held) return held
  do {
    for (const file of await findUnwrittenOrders(db, account.name)) {
      putFile(parts, folder, file.name, unseal(parts.keys, orderFilePlace(nobody, file.id), file.sealed))
      await markOrdersWritten(db, file, parts.clock.real())
      parts.log.info({ why: `${account.name}: ${file.name}` }, 'an order file was written')
    }
  } while (await assignOrders(parts, account))
  return again
}

/** Gives what waits the next number; false when nothing waits, or another process was first. */
function assignOrders({ database, clock, random, keys }: OrderFileParts, account: BankSlipAccount): Promise<boolean> {
  return inTransaction(database.work, async db => {
    const orders = await lockOrders(db, account.name, linesMost)
    if (orders.length === 0) return false
    const sequence = await nextOrderFile(db, account.name)
    const day = todayAt(account, clock.real())
    const lines = orders.map(({ fields, ...order }) => ({ ...order, payer: payerOf(new Map(fields)) }))
    const id = timeOrderedId(clock.real(), random)
    const sealed = seal(keys, random, orderFilePlace(nobody, id), orderText(account, sequence, day, lines))
    const file = { id, account: account.name, sequence, day, name: orderFileName(account.name, sequence), sealed }
    return insertOrderFile(db, file, orders, clock.real())
  })
}
