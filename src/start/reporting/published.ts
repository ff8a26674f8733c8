// What cells publish for their reporting database: the tables that searches and reports read, and nothing that is sealed. A row of one key may come from two cells,
// when its merchant was moved, in any order; which of them counts is said here.

export type PublishedTable = {
  readonly table: string
  readonly key: readonly string[]
  /** Those that are published; all when absent. What else the table demands, it does not demand there. */
  readonly columns?: readonly string[]
  /** What a row that comes for the first time, or again, does beside, in SQL. */
  readonly does?: (schema: string) => string
  /** Whether the row `new` takes the place of `known`, in SQL; absent: rows never change, and the first stays. */
  readonly counts?: string
}

const payment = ['merchant_id', 'payment_id'] as const

/** Cells publish no deletions; but a payment that is archived leaves with what comes in its place, in the transaction of its sums. */
const leaves = ['answers', 'journal', 'settled_bookings', 'searched_payments']
const takeOut = (schema: string): string =>
  [...leaves.map(table => [table, 'payment_id']), ['payments', 'id']]
    .map(
      ([table, id]) =>
        `delete from ${schema}.${table} gone where gone.merchant_id = new.merchant_id and gone.${id} = new.payment_id;`,
    )
    .join(' ')

// biome-ignore format: one line a table
export const published: readonly PublishedTable[] = [
  { table: 'payments',          key: ['merchant_id', 'id'] },
  { table: 'answers',           key: payment },
  { table: 'journal',           key: [...payment, 'line'] },
  { table: 'settled_bookings',  key: [...payment, 'kind'],  counts: `known.outcome = 'otherAmount' or new.outcome = 'matched'` },
  { table: 'searched_payments', key: payment,               counts: `coalesce(new.written_at, '-infinity') >= coalesce(known.written_at, '-infinity')` },
  { table: 'redirects',         key: payment,               columns: [...payment, 'made_at'] },
  { table: 'entities',          key: ['id'],                counts: 'new.changed_at >= known.changed_at', columns: ['id', 'kind', 'parent_id', 'merchant_id', 'name', 'changed_at'] },
  { table: 'closing_sums',      key: ['merchant_id', 'day', 'archive_id', 'channel_id', 'mode', 'currency', 'debit', 'credit', 'kind'], counts: 'true' },
  { table: 'archived_payments', key: payment,               counts: 'true', does: takeOut },
  { table: 'beats',             key: ['source'],            counts: 'new.id <> known.id or new.beat_at >= known.beat_at' },
]

/** `table (columns)`, as a publication names it. */
export const publishedText = published
  .map(({ table, columns }) => (columns ? `${table} (${columns.join(', ')})` : table))
  .join(', ')

export const takingTrigger = (table: string): string => `take_${table}`

/**
 * The function that takes the rows of a table in the reporting database, and its trigger. A second insert of one key would stop a subscription for good; here
 * it takes the place of the row that is known, or is left out. Whoever applies has no search path.
 */
export function takingText(schema: string, { table, key, counts, does }: PublishedTable): string[] {
  const [whole, name] = [`${schema}.${table}`, takingTrigger(table)]
  const same = key.map(column => `t.${column} = new.${column}`).join(' and ')
  return [
    `create or replace function ${schema}.${name}() returns trigger language plpgsql as $$
declare known ${whole};
begin
  ${does?.(schema) ?? ''}
  if tg_op = 'UPDATE' then known := old;
  else
    select * into known from ${whole} t where ${same};
    if not found then return new; end if;
  end if;
  if not (${counts ?? 'false'}) then return null; end if;
  if tg_op = 'INSERT' then delete from ${whole} t where ${same}; end if;
  return new;
end $$`,
    `create or replace trigger ${name} before insert or update on ${whole} for each row execute function ${schema}.${name}()`,
    `alter table ${whole} enable replica trigger ${name}`,
  ]
}
