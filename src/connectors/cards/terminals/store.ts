// Terminals at acquirers in the database: who holds one, and which trace numbers are given out.

import { type Connection, timeParameter } from '../../../platform/database/connect.ts'

/** Trace numbers are taken so many at a time; what a dead process had left is lost, which is harmless. */
export const blockSize = 1000
const lastTrace = 999_000

/** Takes a free terminal, or renews the one that is held; the name of it, or undefined when none is free. */
export async function leaseTerminal(
  db: Connection,
  acquirer: string,
  names: readonly string[],
  holder: string,
  now: number,
  until: number,
): Promise<string | undefined> {
  await db.query('insert into terminals (acquirer, terminal) select $1, unnest($2::text[]) on conflict do nothing', [
    acquirer,
    names,
  ])
  const { rows } = await db.query<{ terminal: string }>(
    `update terminals set leased_by = $3, leased_until = $5
      where (acquirer, terminal) = (
        select acquirer, terminal from terminals
         where acquirer = $1 and terminal = any ($2) and (leased_by = $3 or leased_until is null or leased_until < $4)
         order by leased_by is not distinct from $3 desc, terminal limit 1 for update skip locked)
      returning terminal`,
    [acquirer, names, holder, timeParameter(now), timeParameter(until)],
  )
  return rows[0]?.terminal
}

/** The first of a block of trace numbers that nobody else gets before the numbers begin anew. */
export async function takeBlock(db: Connection, acquirer: string, terminal: string): Promise<number> {
  const { rows } = await db.query<{ first: number }>(
    `update terminals set next_trace = case when next_trace + ${blockSize} > ${lastTrace} then 1 else next_trace + ${blockSize} end
      where acquirer = $1 and terminal = $2
      returning case when next_trace = 1 then ${lastTrace - blockSize + 1} else next_trace - ${blockSize} end as first`,
    [acquirer, terminal],
  )
  return rows[0]!.first
}

export async function giveBackTerminal(db: Connection, acquirer: string, holder: string): Promise<void> {
  await db.query('update terminals set leased_by = null, leased_until = null where acquirer = $1 and leased_by = $2', [
    acquirer,
    holder,
  ])
}
