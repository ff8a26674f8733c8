// What of a database belongs to a merchant, and goes with it to another cell: every table with a column for the merchant or the owner, found in the
// catalogue, so that a new one is not forgotten; beside them what is reached in another way. All others stay, each for a reason: the test of moves names a
// table that stands in neither.

import type { Connection } from '../../platform/database/connect.ts'

export type MovedTable = {
  readonly name: string
  /** Whose a row is, in SQL: `$1` is the merchant. */
  readonly condition: string
  /** The column that names the merchant; absent where rows are reached through another table. */
  readonly owner?: string
  /** The primary key, each column with its type. */
  readonly key: readonly { readonly name: string; readonly type: string }[]
  readonly columns: readonly string[]
  /** About how many bytes a row is, in SQL: PostgreSQL knows them without reading what is long. */
  readonly size: string
}

/** Tables that stay where they are, by the reason. */
// biome-ignore format: a reason in few lines
export const staysInCell: readonly (readonly [why: string, tables: string])[] = [
  ['who did what in this cell: both audits tell of the move', 'audit audit_head log_in_failures'],
  ['from where right passwords came to this cell: the other one has its own, from the next that it takes', 'known_places'],
  ['the staff of this cell: whoever works for the merchant is invited in the other one', 'answered_challenges passkeys recovery_codes saved_filters sign_in_attempts staff staff_links staff_sessions'],
  ['files that were exchanged with acquirers by this cell, and its days with them: captures that wait for a file go, those in a file stay with it', 'capture_files clearing_files clearing_lines day_totals settled_days'],
  ['files of archived payments lie where this cell wrote them: a merchant who has any does not move', 'archived_payments archives closing_sums'],
  ['parts of this installation', 'beats credentials form_scripts installation key_checks merchant_moves migrations reporting_sources sweeps terminals trace_numbers'],
  ['asked for by somebody of the staff, and gone after three days', 'exports'],
]

/**
 * What is never set back and never taken away, in no cell: a number that is given twice is two slips that a bank cannot tell apart. It goes behind the fence, when nobody
 * gives any out.
 */
export const numberCounters = 'slip_numbers'

/** What a bank sends and takes goes on in a cell that has left its account: files come once more, what was sent is taken away. */
export const ofAccounts: ReadonlySet<string> = new Set([numberCounters, 'order_files', 'return_files', 'transfer_files'])

/** Bank accounts of a merchant, $1. While it is forgotten the rows that name them go first. */
export const ownAccounts = `select account from slips where merchant_id = $1 union select account from refund_transfers where merchant_id = $1
   union select unnest(accounts) from merchant_moves where merchant_id = $1 and state = 'forgetting'`
const ofOthers = (table: string) => `except select account from ${table} where merchant_id <> $1 and account in (${ownAccounts})`

/** Reached through another table. Bank accounts carry slips of one merchant alone: where they do not, nothing of them is this merchant's. */
const reached: Readonly<Record<string, string>> = {
  file_pieces: 'file_id in (select unnest(array[file_id, making_id]) from owed_files where owner_id = $1)',
  ...Object.fromEntries(
    [...ofAccounts].map(name => [name, `account in ((${ownAccounts}) ${ofOthers('slips')} ${ofOthers('refund_transfers')})`]),
  ),
}

/** Of these only a part goes. */
const parts: Readonly<Record<string, string>> = { collected_captures: 'sequence is null', claimed_transactions: 'not contested' }

/** Others refer to these. */
const first = ['entities', 'access_tokens', 'operator_cases', 'owed_files', 'slips', 'transfer_files']

export const isReferredTo = ({ name }: MovedTable): boolean => first.includes(name)

/** In the order in which they are copied. */
export async function movedTables(db: Connection): Promise<readonly MovedTable[]> {
  const { rows } = await db.query<Omit<MovedTable, 'condition' | 'owner'>>(
    `select c.relname as name,
            (select json_agg(json_build_object('name', quote_ident(a.attname), 'type', format_type(a.atttypid, a.atttypmod)) order by at)
               from pg_index i cross join unnest(i.indkey::smallint[]) with ordinality as k (num, at)
               join pg_attribute a on a.attrelid = c.oid and a.attnum = k.num
              where i.indrelid = c.oid and i.indisprimary) as key,
            (select json_agg(quote_ident(a.attname) order by a.attnum) from pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
            (select string_agg(case when a.attlen > 0 then a.attlen::text
                                    when a.atttypid in ('text'::regtype, 'bytea'::regtype) then format('coalesce(octet_length(%I), 0)', a.attname)
                                    else format('coalesce(octet_length(%I::text), 0)', a.attname) end, ' + ')
               from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as size
       from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by c.relname`,
  )
  const stays = new Set(staysInCell.flatMap(([, tables]) => tables.split(' ')))
  const found = rows
    .filter(({ name }) => !stays.has(name))
    .map(row => {
      const owner = ['merchant_id', 'owner_id'].find(column => row.columns.includes(column))
      const own = [owner && `${owner} = $1`, parts[row.name]].filter(part => part !== undefined).join(' and ')
      const condition = reached[row.name] ?? own
      return { ...row, condition, ...(owner !== undefined && reached[row.name] === undefined && { owner }) }
    })
  const place = ({ name }: MovedTable) => (first.includes(name) ? first.indexOf(name) : first.length)
  return found.sort((one, other) => place(one) - place(other))
}

/** Secrets of minutes: they are erased in both cells when their time is over, whoever serves the merchant. */
export const erasedAnyway: ReadonlySet<string> = new Set(['challenge_secrets'])
