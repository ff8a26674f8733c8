// What stands in the database beside rows: all in our schema that can change, hide or swallow what is written, and from everywhere else what could run in
// our place. Read with nothing on the search path but PostgreSQL's own, so that nobody's function or operator answers instead.

import type { Connection } from '../../platform/database/connect.ts'

/** One thing. `of`: the table that it belongs to, else empty. `definition`: its text, the same on every version of PostgreSQL; our schema is called `~` in it. */
export type Definition = {
  readonly kind: string
  readonly of: string
  readonly name: string
  readonly definition: string
}

/** What our schema and its definitions are read with. */
export type DefinitionsAsked = {
  /** Of these alone; absent = of all, and what is strange in other schemas. */
  readonly tables?: readonly string[]
  /** Looked for in other schemas too. */
  readonly names: readonly string[]
}

/** More than an installation has of all, so that who makes millions of things keeps nobody busy. */
const most = 20_000

/** Belongs to an extension whose things only a superuser can have put there: who owns an extension may call own functions a part of it. */
const excused = (table: string, oid: string, owner: string) =>
  `exists (select from pg_depend d where d.classid = '${table}'::regclass and d.objid = ${oid} and d.deptype = 'e')
     and exists (select from pg_roles r where r.oid = ${owner} and r.rolsuper)`

const kinds = `case c.relkind when 'r' then 'table' when 'p' then 'partitioned table' when 'v' then 'view' when 'm' then 'materialized view'
  when 'f' then 'foreign table' else 'sequence' end`

/** $1: our schema, $2: whether all is asked for, $3: the tables that are asked for otherwise, $4: names of ours. Things that initdb made have lower numbers. */
const inOurSchema = `
  relations as materialized (
    select c.oid, c.relname::text as name, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.relowner, c.relacl
      from pg_class c
     where c.relnamespace = $1::oid and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and ($2::boolean or c.relname::text = any ($3::text[]))
       and not (${excused('pg_class', 'c.oid', 'c.relowner')})),
  lines (kind, "of", name, definition) as (
    select ${kinds}, '', c.name,
           concat_ws(', ', case c.relpersistence when 'p' then 'permanent' when 'u' then 'unlogged' else 'temporary' end,
             case when c.relrowsecurity then 'row security' end, case when c.relforcerowsecurity then 'forced' end,
             case when c.relkind in ('r', 'p') and c.relreplident <> 'd' then 'replica identity ' || c.relreplident::text end,
             (select concat_ws(' ', format_type(s.seqtypid, null), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle)
                from pg_sequence s where s.seqrelid = c.oid))
      from relations c
    union all
    select 'column', c.name, a.attname::text,
           concat_ws(' ', format_type(a.atttypid, a.atttypmod), case when a.attcollation <> t.typcollation then 'collate ' || a.attcollation::regcollation::text end,
             case when a.attnotnull then 'not null' end, 'identity ' || nullif(a.attidentity::text, ''), 'generated ' || nullif(a.attgenerated::text, ''),
             'default ' || pg_get_expr(d.adbin, d.adrelid))
      from relations c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and c.relkind <> 'S'
           join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    union all
    select 'constraint', case when o.conrelid = c.oid then c.name else o.conrelid::regclass::text end, o.conname::text, pg_get_constraintdef(o.oid)
      from relations c join pg_constraint o on o.conrelid = c.oid or (o.confrelid = c.oid and o.conrelid not in (select oid from relations))
     where o.contype in ('p', 'u', 'c', 'x', 'f')
    union all
    select 'index', c.name, n.relname::text,
           case when i.indisunique then 'unique ' else '' end
             || substr(case when n.reloptions is null then pg_get_indexdef(n.oid) else regexp_replace(pg_get_indexdef(n.oid), ' WITH \\([^)]*\\)', '') end,
                  length('CREATE ' || case when i.indisunique then 'UNIQUE ' else '' end || 'INDEX ' || quote_ident(n.relname::text) || ' ON ') + 1)
             || case when exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = n.oid and d.refclassid = 'pg_proc'::regclass)
                     then ' calling functions' else '' end
             || case when i.indisvalid and i.indisready then '' else ' not valid' end
      from relations c join pg_index i on i.indrelid = c.oid join pg_class n on n.oid = i.indexrelid
    union all
    select 'trigger', t."of", t.name, t.definition || t.enabled
      from (select c.name as "of", t.tgname::text as name, pg_get_triggerdef(t.oid) as definition, ' ' || t.tgenabled::text as enabled
              from relations c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal
            offset 0) t -- called once for each: that function sees what is there by then, and nothing where it was dropped since we began to look
     where t.definition is not null
    union all
    select 'check', c.name, coalesce(o.conname::text, t.tgname::text),
           string_agg(t.tgfoid::regproc::text || ' ' || t.tgtype::text || ' ' || t.tgenabled::text, ', ' order by t.tgfoid::regproc::text)
      from relations c join pg_trigger t on t.tgrelid = c.oid and t.tgisinternal left join pg_constraint o on o.oid = t.tgconstraint
     group by c.name, coalesce(o.conname::text, t.tgname::text)
    union all
    select 'rule', c.name, w.rulename::text, pg_get_ruledef(w.oid) || ' ' || w.ev_enabled::text
      from relations c join pg_rewrite w on w.ev_class = c.oid where c.relkind not in ('v', 'm')
    union all
    select 'publication', c.name, p.pubname::text, ''
      from relations c join pg_publication_rel l on l.prrelid = c.oid join pg_publication p on p.oid = l.prpubid
     where c.name in ('audit', 'audit_head', 'log_in_failures', 'known_places') and (l.prqual is not null or l.prattrs is not null)
    union all
    select 'policy', c.name, p.polname::text, '' from relations c join pg_policy p on p.polrelid = c.oid
    union all
    select 'table below', c.name, h.inhrelid::regclass::text, '' from relations c join pg_inherits h on h.inhparent = c.oid
    union all
    select 'table above', c.name, h.inhparent::regclass::text, '' from relations c join pg_inherits h on h.inhrelid = c.oid where c.relkind <> 'S'
    union all
    select distinct 'right', c.name,
           case g.grantee when 0 then 'everybody' when c.relowner then 'the owner' else 'the role ' || g.grantee::regrole::text end, ''
      from relations c cross join lateral (
             select grantee, privilege_type from aclexplode(coalesce(c.relacl, acldefault('r', c.relowner)))
             union all
             select x.grantee, x.privilege_type from pg_attribute a cross join lateral aclexplode(a.attacl) as x where a.attrelid = c.oid) as g
     where c.name in ('audit', 'audit_head')
       and (g.privilege_type in ('DELETE', 'TRUNCATE') or g.privilege_type = 'UPDATE' and c.name = 'audit')
    union all
    select case p.prokind when 'a' then 'aggregate' when 'p' then 'procedure' else 'function' end, '', p.oid::regprocedure::text,
           case when p.pronamespace = $1::oid and p.prokind <> 'a'
                then encode(sha256(convert_to(replace(pg_get_functiondef(p.oid), (select ours from here), '~.'), 'UTF8')), 'hex') else '' end
      from pg_proc p
     where p.oid >= 16384 and ($2::boolean or p.pronamespace = $1::oid and p.proname::text = any ($4::text[])) and not (${excused('pg_proc', 'p.oid', 'p.proowner')})`

const everywhere = `
    union all
    select 'setting', '', 'session_replication_role=replica of ' || case r.setrole when 0 then 'all roles' else r.setrole::regrole::text end, ''
      from pg_db_role_setting r cross join lateral unnest(r.setconfig) as one (text)
     where $2::boolean and one.text = 'session_replication_role=replica'
       and (r.setdatabase = (select d.oid from pg_database d where d.datname = current_database())
            or r.setdatabase = 0 and (r.setrole = 0 or r.setrole = (select u.oid from pg_roles u where u.rolname = session_user)
                                      or r.setrole = (select c.relowner from relations c where c.name = 'audit')))
    union all
    select ${kinds}, '', quote_ident(s.nspname::text) || '.' || quote_ident(c.relname::text), ''
      from pg_class c join pg_namespace s on s.oid = c.relnamespace
     where $2::boolean and c.relnamespace <> $1::oid and c.relkind in ('r', 'p', 'v', 'm', 'f') and c.relname::text = any ($4::text[])
       and s.nspname::text !~ '^pg_' and s.nspname::text <> 'information_schema'
    union all
    select 'type', '', t.oid::regtype::text, ''
      from pg_type t left join pg_class c on c.oid = t.typrelid
     where $2::boolean and t.oid >= 16384 and (t.typrelid = 0 or c.relkind = 'c') and not exists (select from pg_type e where e.typarray = t.oid)
       and not (${excused('pg_type', 't.oid', 't.typowner')})
    union all
    select 'operator', '', o.oid::regoperator::text, '' from pg_operator o
     where $2::boolean and o.oid >= 16384 and not (${excused('pg_operator', 'o.oid', 'o.oprowner')})
    union all
    select 'operator class', '', o.opcname::text || ' of ' || o.opcintype::regtype::text, '' from pg_opclass o
     where $2::boolean and o.oid >= 16384 and not (${excused('pg_opclass', 'o.oid', 'o.opcowner')})
    union all
    select 'conversion', '', o.conname::text, '' from pg_conversion o
     where $2::boolean and o.oid >= 16384 and not (${excused('pg_conversion', 'o.oid', 'o.conowner')})
    union all
    select 'language', '', l.lanname::text, '' from pg_language l
     where $2::boolean and l.oid >= 16384 and not (${excused('pg_language', 'l.oid', 'l.lanowner')})
    union all
    select 'cast', '', x.castsource::regtype::text || ' as ' || x.casttarget::regtype::text, '' from pg_cast x
     where $2::boolean and x.oid >= 16384 and not exists (select from pg_depend d where d.classid = 'pg_cast'::regclass and d.objid = x.oid and d.deptype = 'e')
    union all
    select 'event trigger', '', e.evtname::text, '' from pg_event_trigger e
     where $2::boolean and not (${excused('pg_event_trigger', 'e.oid', 'e.evtowner')})`

/** Merchants whom this database does not serve, of the very moment at which the fences around them are read. `schema`: where the moves stand, quoted. */
const away = (schema: string) =>
  `(select coalesce(json_agg(replace(merchant_id::text, '-', '')), '[]') from ${schema}.merchant_moves where not here)`

/** `away`: a list as JSON. */
const definitions = (away: string) => `
  with here as (select quote_ident(nspname::text) || '.' as ours from pg_namespace where oid = $1::oid), ${inOurSchema} ${everywhere})
  select lines, ${away} as away, set_config('search_path', $5, true) from (select coalesce(json_agg(line), '[]') as lines from (
    select kind, replace("of", ours, '~.') as "of", replace(name, ours, '~.') as name, replace(definition, ours, '~.') as definition
      from lines cross join here
     order by lines.kind collate "C", lines."of" collate "C", lines.name collate "C", lines.definition collate "C" limit ${most}) line) read`

export type ReadDefinitions = {
  readonly applied: ReadonlySet<string>
  readonly definitions: readonly Definition[]
  /** Ids of merchants whom this database does not serve; of all alone. */
  readonly away: ReadonlySet<string>
}

/** Where the table `audit` stands that our statements mean. All else of ours has to stand beside it. With the names of the migrations that were applied. */
export async function readDefinitions(db: Connection, { tables, names }: DefinitionsAsked): Promise<ReadDefinitions> {
  const { rows } = await db.query<{ schema: string | null; moves: string | null; path: string; applied: string[] }>(
    `select (select c.relnamespace::pg_catalog.text from pg_catalog.pg_class c
              where c.oid operator(pg_catalog.=) pg_catalog.to_regclass('audit'::pg_catalog.text)::pg_catalog.oid) as schema,
            (select pg_catalog.quote_ident(n.nspname::pg_catalog.text) from pg_catalog.pg_class c
               join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
              where c.relname operator(pg_catalog.=) 'merchant_moves'::pg_catalog.name and c.relkind operator(pg_catalog.=) 'r'::pg_catalog."char"
                and c.relnamespace operator(pg_catalog.=) (select a.relnamespace from pg_catalog.pg_class a
                     where a.oid operator(pg_catalog.=) pg_catalog.to_regclass('audit'::pg_catalog.text)::pg_catalog.oid)) as moves,
            pg_catalog.current_setting('search_path'::pg_catalog.text) as path, array(select name from migrations order by name limit 10000) as applied`,
  )
  const { schema, moves, path, applied } = rows[0]!
  if (schema === null) return { applied: new Set(applied), definitions: [], away: new Set() }
  await db.query('set local search_path = pg_catalog, pg_temp')
  // Put back by the same statement, when all is read.
  const text = definitions(tables === undefined && moves !== null ? away(moves) : `'[]'::json`)
  const read = await db.query<{ lines: Definition[]; away: string[] }>(text, [
    schema,
    tables === undefined,
    tables ?? [],
    names,
    path,
  ])
  return { applied: new Set(applied), definitions: read.rows[0]!.lines, away: new Set(read.rows[0]!.away) }
}
