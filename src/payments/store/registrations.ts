// Registrations as payments write them: one that is made with a payment counts once that is approved.

import type { Mode } from '../../connectors/connector.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { keepCards, putCard } from '../../vault/cardStore.ts'
import type { SealedCard } from '../../vault/cards.ts'

export type NewRegistration = {
  /** A merchant, or a division. */
  readonly ownerId: string
  readonly id: string
  readonly channelId: string
  /** That it is made with; absent = it can be used at once. */
  readonly paymentId?: string
  readonly mode: Mode
  readonly brand: string
  /** JSON of a `RegistrationRecord`. */
  readonly record: string
  /** `eraseAfter` is what holds until the registration counts. */
  readonly card?: SealedCard & { readonly registeredUntil: string }
  readonly tokenId?: string
  /** Business time, milliseconds. */
  readonly madeAt: number
}

/** One that can be used is announced to its owner, or to the merchants of that division; false when there is one with this id. */
export async function insertRegistration(
  db: Connection,
  row: NewRegistration,
  recordedAt: number,
  merchantIds: readonly string[] = [row.ownerId],
): Promise<boolean> {
  const { rowCount } = await db.query(
    `with made as (
       insert into registrations (owner_id, id, channel_id, payment_id, usable, mode, brand, record, erase_after, token_id, made_at)
       values ($1, $2, $3, $4, $4::uuid is null, $5, $6, $7, $8, $9, $10) on conflict do nothing returning *),
     announced as (
       insert into events (merchant_id, payment_id, sequence, type, action, channel_id, root_id, occurred_at, recorded_at)
       select merchant, id, ${sequences.CREATED}, 'REGISTRATION', 'CREATED', channel_id, id, made_at, $11::timestamptz
         from made, unnest($12::uuid[]) as told (merchant) where usable)
     select id from made`,
    [
      row.ownerId,
      row.id,
      row.channelId,
      row.paymentId ?? null,
      row.mode,
      row.brand,
      row.record,
      row.card?.registeredUntil ?? null,
      row.tokenId ?? null,
      timeParameter(row.madeAt),
      timeParameter(recordedAt),
      merchantIds,
    ],
  )
  // Not for a twin: what was erased since must stay so.
  if (rowCount === 1 && row.card) await putCard(db, row.ownerId, row.id, row.card)
  return rowCount === 1
}

/** The events of a registration in their order: whoever hears of the last one late needs no earlier one. */
export const sequences = { CREATED: 1, UPDATED: 2, DELETED: 3 } as const

/**
 * A part of the statement that stores answers: of `ours` those that are approved confirm the registrations that they were made with, and tell those
 * that they pay with the network's name of the payment that began the agreement; simulators are no network. Both are announced.
 */
export const confirmRegistrations = `
  confirmed as (
    update registrations r
       set usable = true,
           network_transaction_id = coalesce(r.network_transaction_id, case when r.mode = ours.mode then ours.network_transaction end)
      from ours
     where r.owner_id = ours.registration_owner and r.id = ours.registration_id and ours.approved and r.deleted_at is null
       and (not r.usable or (r.network_transaction_id is null and r.mode = ours.mode and ours.network_transaction is not null))
    returning r.owner_id, r.id, r.erase_after, ours.merchant_id, ours.channel_id, ours.answered_at, ours.recorded_at,
              case when r.payment_id = ours.payment_id then 'CREATED' else 'UPDATED' end as action),
  card_kept as (${keepCards('confirmed', 'confirmed.owner_id', 'confirmed.id', 'confirmed.erase_after')} and confirmed.action = 'CREATED'),
  told as (
    insert into events (merchant_id, payment_id, sequence, type, action, channel_id, root_id, occurred_at, recorded_at)
    select merchant_id, id, case action when 'CREATED' then ${sequences.CREATED} else ${sequences.UPDATED} end, 'REGISTRATION', action, channel_id, id,
           answered_at, recorded_at from confirmed
    on conflict do nothing),`
