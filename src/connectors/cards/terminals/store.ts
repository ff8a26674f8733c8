// Terminals at acquirers in the database: who holds one, and which trace numbers are given out.

import { type Connection, timeParameter } from '../../../platform/database/connect.ts'

/** Trace numbers are taken so many at a time; what a dead process had left is lost, which is harmless. */
export const blockSize = 1000
const lastTrace = 999_000

/** The fence tells one holding of a terminal from the next. */
export type HeldTerminal = { readonly terminal: string; readonly fence: number }

/** Takes a free terminal, or renews the one that is held; undefined when none is free. `lines`: JSON, what people may see of the holder's. */
export async function leaseTerminal(
  db: Connection,
  acquirer: string,
  names: readonly string[],
  holder: string,
  now: number,
  until: number,
  lines: string,
): Promise<HeldTerminal | undefined> {
  await db.query('insert into terminals (acquirer, terminal) select $1, unnest($2::text[]) on conflict do nothing', [
    acquirer,
    names,
  ])
  const { rows } = await db.query<HeldTerminal>(
    `update terminals set leased_by = $3, leased_until = $5, lines = $6, seen_at = $4, fence = fence + (leased_by is distinct from $3)::int
      where (acquirer, terminal) = (
        select acquirer, terminal from terminals
         where acquirer = $1 and terminal = any ($2) and (leased_by = $3 or leased_until is null or leased_until < $4)
         order by leased_by is not distinct from $3 desc, terminal limit 1 for update skip locked)
      returning terminal, fence`,
    [acquirer, names, holder, timeParameter(now), timeParameter(until), lines],
  )
  return rows[0]
}

/** For a process that is alone on its database: whoever held a terminal is dead. */
export async function releaseTerminals(db: Connection): Promise<void> {
  await db.query('update terminals set leased_by = null, leased_until = null where leased_by is not null')
}

export type TerminalState = {
  readonly acquirer: string
  readonly terminal: string
  readonly leasedUntil: number | null
  readonly seenAt: number | null
  /** JSON text. */
  readonly lines: string | null
}

export async function findTerminals(db: Connection): Promise<TerminalState[]> {
  const { rows } = await db.query<TerminalState>(
    `select acquirer, terminal, leased_until as "leasedUntil", seen_at as "seenAt", lines from terminals order by acquirer, terminal`,
  )
  return rows
}

/** The first of a block of trace numbers that nobody else gets before the numbers begin anew; undefined when the terminal is another's. */
export async function takeBlock(
  db: Connection,
  acquirer: string,
  { terminal, fence }: HeldTerminal,
): Promise<number | undefined> {
  const { rows } = await db.query<{ first: number }>(
    `update terminals set next_trace = case when next_trace + ${blockSize} > ${lastTrace} then 1 else next_trace + ${blockSize} end
      where acquirer = $1 and terminal = $2 and fence = $3
      returning case when next_trace = 1 then ${lastTrace - blockSize + 1} else next_trace - ${blockSize} end as first`,
    [acquirer, terminal, fence],
  )
  return rows[0]?.first
}

export async function giveBackTerminal(db: Connection, acquirer: string, holder: string): Promise<void> {
  await db.query('update terminals set leased_by = null, leased_until = null where acquirer = $1 and leased_by = $2', [
    acquirer,
    holder,
  ])
}
