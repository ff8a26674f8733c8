// Passkeys in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { lockCounted } from '../../platform/database/locks.ts'
import type { MadePasskey } from './webauthn.ts'

export type Passkey = MadePasskey & {
  readonly staffId: string
  readonly name: string
  readonly madeAt: number
  readonly usedAt: number | null
}

const columns = `id, staff_id as "staffId", name, algorithm, public_key as "publicKey", counter, made_at as "madeAt", used_at as "usedAt"`

/** False when the key is known, whoever has it, or somebody has as many as one may. Inside a transaction. */
export async function insertPasskey(db: Connection, passkey: Omit<Passkey, 'usedAt'>, most: number): Promise<boolean> {
  const { id, staffId, name, algorithm, publicKey, counter, madeAt } = passkey
  await lockCounted(db, 'passkeys', [staffId])
  const { rowCount } = await db.query(
    `insert into passkeys (id, staff_id, name, algorithm, public_key, counter, made_at) select $1, $2, $3, $4, $5, $6, $7
      where (select count(*) from passkeys where staff_id = $2) < $8 on conflict do nothing`,
    [id, staffId, name, algorithm, publicKey, counter, timeParameter(madeAt), most],
  )
  return rowCount === 1
}

export async function listPasskeys(db: Connection, staffId: string): Promise<Passkey[]> {
  const { rows } = await db.query<Passkey>(`select ${columns} from passkeys where staff_id = $1 order by made_at, id`, [staffId])
  return rows
}

/** Of two that use it at a time, the second waits; its person is locked first, see lockPeople. Those of people who were removed are gone with them. */
export async function lockPasskey(db: Connection, id: string): Promise<Passkey | undefined> {
  await db.query('select from staff where id = (select staff_id from passkeys where id = $1) for update', [id])
  const { rows } = await db.query<Passkey>(
    `select ${columns} from passkeys p where id = $1 and exists (select from staff s where s.id = p.staff_id and s.removed_at is null) for update`,
    [id],
  )
  return rows[0]
}

export async function markUsed(db: Connection, id: string, counter: number, now: number): Promise<void> {
  await db.query('update passkeys set counter = $2, used_at = $3 where id = $1', [id, counter, timeParameter(now)])
}

/** Its name, or undefined when somebody has no such key. */
export async function deletePasskey(db: Connection, staffId: string, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ name: string }>('delete from passkeys where staff_id = $1 and id = $2 returning name', [
    staffId,
    id,
  ])
  return rows[0]?.name
}

/** False when it was answered before. */
export async function takeChallenge(db: Connection, hash: Buffer, endsAt: number): Promise<boolean> {
  const { rowCount } = await db.query('insert into answered_challenges (hash, ends_at) values ($1, $2) on conflict do nothing', [
    hash,
    timeParameter(endsAt),
  ])
  return rowCount === 1
}
