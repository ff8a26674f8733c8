// Sealed records are sealed anew under the newest key, in small steps beside a running gateway. Begun again it goes on with what is left.

import type { Random } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import type { Keys } from './keys.ts'
import { SealError, seal, unseal } from './seal.ts'
import { replaceSealed, type SealedPlace, type SealedRow, sealedOtherwise } from './store.ts'

/** A step holds the locks of so many rows. */
const rowsOfStep = 200
const first = { merchantId: '0'.repeat(32), id: '0'.repeat(32) }

export type RewrapResult = {
  readonly renewed: number /** Rows whose record does not open. */
  readonly broken: readonly string[]
}

export async function rewrap(db: Connection, keys: Keys, random: Random, place: SealedPlace): Promise<RewrapResult> {
  const broken: string[] = []
  let renewed = 0
  for (let after: Pick<SealedRow, 'merchantId' | 'id'> = first; ; ) {
    const rows = await sealedOtherwise(db, place, keys.seal[0]!.id, after, rowsOfStep)
    if (rows.length === 0) return { renewed, broken }
    const step: (SealedRow & { renewed: Buffer })[] = []
    for (const row of rows) {
      const bound = place.bound(row.merchantId, row.id)
      try {
        step.push({ ...row, renewed: seal(keys, random, bound, unseal(keys, bound, row.sealed)) })
      } catch (error) {
        if (!(error instanceof SealError)) throw error
        broken.push(`${row.merchantId} ${row.id}`)
      }
    }
    renewed += await replaceSealed(db, place, step)
    after = rows.at(-1)!
  }
}
