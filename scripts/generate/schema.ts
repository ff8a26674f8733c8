// migrations/schema.sql: what all migrations make, read back from the database's catalogue, in an order that does not change.
// It is read as a diff in reviews; the gateway itself runs the migrations.

import type pg from 'pg'

type Column = {
  table: string
  unlogged: boolean
  options: string | null
  name: string
  type: string
  required: boolean
  otherwise: string | null
  identity: string
  generated: string
  isUnsampled: boolean
}
type Constraint = { table: string; name: string; kind: string; definition: string }
type Named = { table: string; definition: string }

export async function schemaText(database: pg.Pool): Promise<string> {
  const columns = await rowsOf<Column>(database, columnsQuery)
  const constraints = await rowsOf<Constraint>(database, constraintsQuery)
  const indexes = await rowsOf<Named>(database, indexesQuery)
  const routines = await rowsOf<Named>(database, routinesQuery)
  const triggers = await rowsOf<Named>(database, triggersQuery)
  const tables = [...new Set(columns.map(({ table }) => table))]
  const keys = constraints.filter(({ kind }) => kind === 'f')
  const parts = [
    '-- Written by `npm run generate` from a migrated database: the sum of all migrations, to be read, never run by the gateway.',
    ...routines.map(({ definition }) => `${definition.trim()};`),
    ...tables.map(table => tableText(table, columns, constraints, indexes)),
    ...keys.map(({ table, name, definition }) => `alter table ${table} add constraint ${name} ${definition};`),
    ...triggers.map(({ definition }) => `${definition};`),
  ]
  return `${parts.join('\n\n')}\n`
}

function tableText(
  table: string,
  columns: readonly Column[],
  constraints: readonly Constraint[],
  indexes: readonly Named[],
): string {
  const own = <Row extends { table: string }>(rows: readonly Row[]) => rows.filter(row => row.table === table)
  const inside = [
    ...own(columns).map(columnText),
    ...own(constraints)
      .filter(({ kind }) => kind !== 'f')
      .map(({ name, definition }) => `constraint ${name} ${definition}`),
  ]
  const unlogged = own(columns).some(column => column.unlogged) ? 'unlogged ' : ''
  const options = own(columns)[0]!.options
  const unsampled = own(columns).filter(column => column.isUnsampled)
  const lines = [
    `create ${unlogged}table ${table} (\n  ${inside.join(',\n  ')}\n)${options === null ? '' : ` with (${options})`};`,
    ...unsampled.map(({ name }) => `alter table ${table} alter column ${name} set statistics 0;`),
    ...own(indexes).map(({ definition }) => `${definition};`),
  ]
  return lines.join('\n')
}

function columnText({ name, type, required, otherwise, identity, generated }: Column): string {
  const value =
    generated === 's'
      ? ` generated always as (${otherwise}) stored`
      : identity !== ''
        ? ` generated ${identity === 'a' ? 'always' : 'by default'} as identity`
        : otherwise === null
          ? ''
          : ` default ${otherwise}`
  return `${name} ${type}${required ? ' not null' : ''}${value}`
}

const rowsOf = async <Row extends pg.QueryResultRow>(database: pg.Pool, query: string): Promise<Row[]> =>
  (await database.query<Row>(query)).rows

// Columns keep the order of the migrations; everything else goes by name.
const columnsQuery = `
  select quote_ident(c.relname) as table, c.relpersistence = 'u' as unlogged, array_to_string(c.reloptions, ', ') as options, quote_ident(a.attname) as name, format_type(a.atttypid, a.atttypmod) as type,
         a.attnotnull as required, pg_get_expr(d.adbin, d.adrelid) as otherwise, a.attidentity as identity, a.attgenerated as generated,
         coalesce(a.attstattarget = 0, false) as "isUnsampled"
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
   order by c.relname collate "C", a.attnum`

// Newer servers also list each not null as a constraint; the column says it already.
const constraintsQuery = `
  select quote_ident(c.relname) as table, quote_ident(o.conname) as name, o.contype as kind, pg_get_constraintdef(o.oid) as definition
    from pg_constraint o
    join pg_class c on c.oid = o.conrelid
   where c.relnamespace = 'public'::regnamespace and o.contype in ('p', 'u', 'c', 'x', 'f')
   order by c.relname collate "C", array_position(array['p', 'u', 'x', 'c', 'f'], o.contype::text), o.conname collate "C"`

const indexesQuery = `
  select quote_ident(c.relname) as table, replace(pg_get_indexdef(i.indexrelid), ' ON public.', ' ON ') as definition
    from pg_index i
    join pg_class c on c.oid = i.indrelid
    join pg_class n on n.oid = i.indexrelid
   where c.relnamespace = 'public'::regnamespace
     and not exists (select 1 from pg_constraint o where o.conindid = i.indexrelid and o.contype in ('p', 'u', 'x'))
   order by c.relname collate "C", n.relname collate "C"`

const routinesQuery = `
  select p.proname as table, pg_get_functiondef(p.oid) as definition
    from pg_proc p
   where p.pronamespace = 'public'::regnamespace and p.prokind in ('f', 'p')
   order by p.proname collate "C", p.oid`

const triggersQuery = `
  select c.relname as table, pg_get_triggerdef(t.oid) as definition
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
   where c.relnamespace = 'public'::regnamespace and not t.tgisinternal
   order by c.relname collate "C", t.tgname collate "C"`
