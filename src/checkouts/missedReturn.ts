// The missed return: the shopper paid in the hosted form and the merchant did not read the status. 29 minutes after the checkout was made
// its shopperResultUrl is called once, with the same query as the shopper's browser would bring. A checkout schedules it when the shopper
// presses pay, and cancels it when the status is read (decisions, 42).

import { withStatusPath } from '../contract/statusPath.ts'
import type { NotificationParts } from '../notifications/parts.ts'
import type { Connection } from '../platform/database/connect.ts'
import type { Silences } from '../platform/due/silence.ts'
import { addDue, cancelDue } from '../platform/due/store.ts'
import type { DueHandler, DueSides } from '../platform/due/worker.ts'
import { hostOf } from '../platform/http.ts'

export const missedReturnMinutes = 29

/** A shopper who pressed pay, and where the shop is. */
export type PressedPay = {
  readonly merchantId: string
  /** The checkout as 32 hex characters. */
  readonly subjectId: string
  /** Its id and path as the shopper's browser carries them. */
  readonly id: string
  readonly resourcePath: string
  readonly shopperResultUrl: string
  /** Business time of its end. */
  readonly expiresAt: number
}

const kind = 'missedReturn'

/** Pressing pay after minute 29 makes it due at once. Pressing again changes nothing. */
export async function scheduleMissedReturn(
  { clock, directory }: Pick<NotificationParts, 'clock' | 'directory'>,
  db: Connection,
  pressed: PressedPay,
): Promise<void> {
  const { merchantId, subjectId, id, resourcePath, shopperResultUrl, expiresAt } = pressed
  // A minute before the end; a link lives for longer than anybody would wait.
  const left = Math.min(expiresAt - 60_000 - directory.businessTime(merchantId), missedReturnMinutes * 60_000)
  await addDue(
    db,
    kind,
    merchantId,
    subjectId,
    clock.real() + left,
    { id, resourcePath, shopperResultUrl },
    hostOf(shopperResultUrl),
  )
}

export const cancelMissedReturn = (db: Connection, merchantId: string, subjectId: string): Promise<boolean> =>
  cancelDue(db, kind, merchantId, subjectId)

export type MissedReturnParts = NotificationParts & {
  /** Merchants whose shops said nothing when they were called. */
  readonly silentShops: Silences
}

/** Of calls that a gateway wrote which did not say whom it calls. */
export const findShopHosts: DueSides<unknown> = async (_, items) =>
  new Map(
    items.flatMap(item => {
      const { shopperResultUrl } = item.details as Partial<PressedPay>
      const host = item.kind === kind && shopperResultUrl !== undefined ? hostOf(shopperResultUrl) : ''
      return host === '' ? [] : [[item, host] as const]
    }),
  )

/** Called once, whatever the answer. A process killed in the middle may leave a second call: better than none. */
export const missedReturn: DueHandler<MissedReturnParts> = async (parts, { merchantId, details }) => {
  const { id, resourcePath, shopperResultUrl } = details as Pick<PressedPay, 'id' | 'resourcePath' | 'shopperResultUrl'>
  const called = await parts.call({
    owner: merchantId,
    method: 'GET',
    url: withStatusPath(shopperResultUrl, id, resourcePath),
    headers: {},
  })
  if (called.brokenOff) return { again: parts.clock.real() }
  parts.silentShops.note(merchantId, called.silent === true)
  parts.log.info(
    {
      kind,
      entityId: merchantId,
      ...(called.status !== undefined && { status: called.status }),
      ...(called.failure !== undefined && { why: called.failure }),
    },
    'the shopperResultUrl was called for a missed return',
  )
  parts.count.attempt(called.status === undefined ? 'failed' : 'acknowledged')
  return 'done'
}
