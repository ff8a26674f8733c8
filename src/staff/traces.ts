// What the audit is told of somebody of the staff: on the first of the entities that they work for, whose administrators see it then, as they see that
// somebody was added.

import { type Recorder, record } from '../audit/chain.ts'
import type { AuditEntry } from '../audit/entry.ts'
import type { Connection } from '../platform/database/connect.ts'
import { findPerson } from './store.ts'

/** `staffId` null: who came in by the door of a sandbox works for nobody. */
export async function recordOfPerson(
  db: Connection,
  recorder: Recorder,
  staffId: string | null,
  entry: Omit<AuditEntry, 'entityId' | 'subject'>,
): Promise<void> {
  const person = staffId === null ? undefined : await findPerson(db, 'id', staffId)
  await record(db, recorder, [{ ...entry, entityId: person?.entities[0], subject: staffId ?? '' }])
}
