// Whether whoever acts may do so still. A request looks that up when it begins, and then waits: for a lock, for its turn, for a server that is called. So it is asked
// again where its act is told of, in the same transaction.

import type { Connection } from '../platform/database/connect.ts'
import type { Actor } from './entry.ts'

/** Whoever asked was dismissed, has another role or other entities, or is signed out since: nothing of the transaction is done. */
export class Dismissed extends Error {}

/** Inside a transaction, until whose end nobody takes away what this one found. */
export async function refuseDismissed(db: Connection, by: Actor | undefined): Promise<void> {
  if (by?.isStill && !(await by.isStill(db))) throw new Dismissed('Whoever asked for it may act no more.')
}

/** Who has acted, for telling what is done already: dismissed since or not. */
export const whoeverActed = ({ kind, id, address }: Actor): Actor => ({ kind, id, address })
