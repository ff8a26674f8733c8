// Open cases of a payment, and somebody who closes one.

import type { Pool } from 'pg'
import { thisProcess } from '../../src/audit/entry.ts'
import { type CaseDecision, closeCase } from '../../src/payments/cases/cases.ts'
import { findCases } from '../../src/payments/cases/store.ts'
import { type Clock, systemClock, systemRandom } from '../../src/platform/clock.ts'
import { testKeys } from './gateway.ts'

const most = 400

const casesOf = async (pool: Pool, subject: string) => (await findCases(pool, false, most)).filter(one => one.subject === subject)

/** The kinds of the open cases of a payment, the oldest first. */
export const openCases = async (pool: Pool, subject: string): Promise<string[]> =>
  (await casesOf(pool, subject)).map(({ kind }) => kind)

/** Closes the oldest open case of a payment; throws when there is none. */
export async function closeCaseOf(
  { pool, clock = systemClock }: { readonly pool: Pool; readonly clock?: Clock },
  subject: string,
  reason: string,
  decision?: CaseDecision,
): Promise<void> {
  const [found] = await casesOf(pool, subject)
  if (!found) throw new Error(`There is no open case of ${subject}.`)
  const parts = { keys: testKeys, clock, random: systemRandom, by: thisProcess('commandLine'), database: { work: pool } }
  await closeCase(parts, found.id, 'ann', reason, decision)
}
