// Proofs of the keys in the database: a keyed value for each, never a key.

import type { Connection } from '../database/connect.ts'

export type Proof = { readonly name: string; readonly proof: Buffer }

/** The first proof under a name stays. */
export async function keepProof(db: Connection, name: string, proof: Buffer): Promise<void> {
  await db.query('insert into key_checks (name, proof) values ($1, $2) on conflict (name) do nothing', [name, proof])
}

/** Until the transaction ends nobody else keeps a proof. */
export async function lockProofs(db: Connection): Promise<void> {
  await db.query('lock table key_checks in share row exclusive mode')
}

/** None in a database that no gateway has used yet. */
export async function readProofs(db: Connection): Promise<Proof[]> {
  const { rows } = await db.query<{ there: boolean }>(`select to_regclass('key_checks') is not null as there`)
  if (!rows[0]!.there) return []
  return (await db.query<Proof>('select name, proof from key_checks')).rows
}
