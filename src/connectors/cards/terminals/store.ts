// Terminals at acquirers in the database: who holds one, and which trace numbers are given out at an acquirer, to all of them together.

import { type Connection, timeParameter } from '../../../platform/database/connect.ts'

/** Trace numbers are taken so many at a time; what a dead process had left is lost, which is harmless. */
export const blockSize = 1000

/** Those that an installation may use, whole blocks; both ends are among them. */
export type TraceNumbers = { readonly from: number; readonly to: number }

/** `at`: how many blocks were taken before it. */
export type TakenBlock = { readonly at: number; readonly first: number }

/** The fence tells one holding of a terminal from the next. */
export type HeldTerminal = { readonly terminal: string; readonly fence: number }

/** Takes a free terminal, or renews the one that is held; undefined when none is free. A lease that ends far later than `until` was taken by a clock that was
 * wrong, and is free. `lines`: JSON, what people may see of the holder's. */
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
         where acquirer = $1 and terminal = any ($2) and (leased_by = $3 or leased_until is null or leased_until < $4 or leased_until > $5::timestamptz + ($5::timestamptz - $4))
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

/** A block of trace numbers that nobody else gets at this acquirer before the numbers begin anew; undefined when the terminal is another's. */
export async function takeBlock(
  db: Connection,
  acquirer: string,
  { terminal, fence }: HeldTerminal,
  acquirerId: string,
  { from, to }: TraceNumbers,
): Promise<TakenBlock | undefined> {
  const { rows } = await db.query<{ at: number }>(
    `insert into trace_numbers as taken (acquirer_id, blocks)
     select $4, 1 + coalesce((select max(next_trace) / ${blockSize} + $5 from terminals where next_trace > 1), 0)
      where exists (select from terminals where acquirer = $1 and terminal = $2 and fence = $3)
     on conflict (acquirer_id) do update set blocks = taken.blocks + 1
     returning blocks - 1 as at`,
    [acquirer, terminal, fence, idOf(acquirerId), Math.floor(blocksIn({ from, to }) / 2)],
  )
  const at = rows[0]?.at
  return at === undefined ? undefined : { at, first: from + (at % blocksIn({ from, to })) * blockSize }
}

/** As original data has it, with zeros before it. */
const idOf = (acquirerId: string): string => acquirerId.replace(/^0+(?=.)/, '')

/** Of a database that was put back: blocks that it does not know were taken. */
export async function passTraceNumbers(db: Connection): Promise<void> {
  await db.query('update trace_numbers set blocks = blocks + 233')
}

export const blocksIn = ({ from, to }: TraceNumbers): number => Math.floor((to - from + 1) / blockSize)

export async function countBlocks(db: Connection, acquirerId: string): Promise<number> {
  return (
    (await db.query<{ blocks: number }>('select blocks from trace_numbers where acquirer_id = $1', [idOf(acquirerId)])).rows[0]
      ?.blocks ?? 0
  )
}

export async function giveBackTerminal(db: Connection, acquirer: string, holder: string): Promise<void> {
  await db.query('update terminals set leased_by = null, leased_until = null where acquirer = $1 and leased_by = $2', [
    acquirer,
    holder,
  ])
}
