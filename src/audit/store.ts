// The audit and the failed attempts to authenticate in the database.

import type pg from 'pg'
import { type Connection, timeParameter } from '../platform/database/connect.ts'
import { padded, perSize, quantised, valuesList } from '../platform/database/groupCommit.ts'
import { OperatorError } from '../platform/errors.ts'
import type { AuditRow } from './entry.ts'

/** How far the chain goes, as its seal says. */
export type Head = { readonly sequence: number; readonly proof: Buffer | null }
/** Where the next row is written. No hash before the first row, or when the row is gone. */
export type End = { readonly sequence: number; readonly hash: Buffer | null }

/** The head, locked until the transaction ends, with the hash of its row. One that is gone begins again. */
export async function lockHead(db: Connection): Promise<Head & End> {
  const lock = async () => (await db.query<Head>('select sequence, proof from audit_head for update')).rows[0]
  let head = await lock()
  if (!head) {
    await db.query('insert into audit_head (sequence) values (0) on conflict do nothing')
    head = await lock()
    if (!head) throw notKept()
  }
  // Read after the lock is had: the row of whoever held it before is committed now.
  const { rows } = await db.query<{ hash: Buffer }>('select hash from audit where sequence = $1', [head.sequence])
  return { ...head, hash: rows[0]?.hash ?? null }
}

/** The place of the last row, wherever it stands. */
export async function findEnd(db: Connection): Promise<End | undefined> {
  return (await db.query<End>('select sequence, hash from audit order by sequence desc limit 1')).rows[0]
}

/** Makes all that the transaction reads stand as at its first statement. */
export async function readOneMoment(db: Connection): Promise<void> {
  await db.query('set transaction isolation level repeatable read, read only')
}

export async function insertRow(db: Connection, row: AuditRow): Promise<void> {
  await db.query(
    `insert into audit (sequence, recorded_at, actor_kind, actor, address, action, entity_id, subject, result, details, hash)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      row.sequence,
      timeParameter(row.recordedAt),
      row.actorKind,
      row.actor,
      row.address,
      row.action,
      row.entityId,
      row.subject,
      row.result,
      row.details,
      row.hash,
    ],
  )
}

export async function moveHead(db: Connection, sequence: number, proof: Buffer): Promise<void> {
  await db.query('update audit_head set sequence = $1, proof = $2', [sequence, proof])
}

/** What cannot be told of is not done either. */
export const notKept = (): OperatorError =>
  new OperatorError(
    'The database did not keep the audit as it was written, so nothing was done: look at bin/tollgate audit verify.',
  )

/** What our triggers do, as migrations wrote it, with one blank where there are several. */
const functions: Readonly<Record<string, string>> = {
  refuse_change: `begin raise exception 'rows of % are never changed or taken out', tg_table_name; end`,
  refuse_elsewhere: `begin if current_setting('tollgate.forgets', true) is distinct from tg_argv[0] then raise exception using errcode = 'TG503', message = 'the merchant ' || tg_argv[0] || ' is served elsewhere'; end if; if tg_op = 'DELETE' then return old; end if; return new; end`,
  wake_deliveries: `declare chain record; goes_on boolean; begin for chain in select distinct c.merchant_id, c.endpoint_id, c.root_id from changed c where not c.behind and (c.state <> 'scheduled' or (c.attempts >= 8 and c.leased_until is null)) and exists (select from deliveries d where d.merchant_id = c.merchant_id and d.endpoint_id = c.endpoint_id and d.root_id = c.root_id and d.state = 'scheduled' and d.behind) and not exists (select from merchant_moves m where m.merchant_id = c.merchant_id and m.direction = 'arriving' and not m.here) order by c.merchant_id, c.endpoint_id, c.root_id loop -- On past those that keep nobody waiting: tried so often already, or ended at this moment. loop update deliveries d set behind = false from (select merchant_id, endpoint_id, position from deliveries where merchant_id = chain.merchant_id and endpoint_id = chain.endpoint_id and root_id = chain.root_id and state = 'scheduled' and behind order by position limit 1) first where d.merchant_id = first.merchant_id and d.endpoint_id = first.endpoint_id and d.position = first.position returning d.state <> 'scheduled' or (d.attempts >= 8 and d.leased_until is null) into goes_on; exit when not found or not goes_on; end loop; end loop; return null; end`,
}
const place = `(select relnamespace from pg_class where oid = to_regclass('entities'))`

/** What could change, swallow or hide rows of the audit, and is not of our making: each in words. None when all is as our migrations made it. */
export async function findStrangers(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ what: string }>(
    `with tables as (
       select name, rights, oid, relkind, relpersistence, relnamespace, relowner, relacl
         from (values ('audit', '{UPDATE,DELETE,TRUNCATE}'::text[]), ('audit_head', '{DELETE,TRUNCATE}')) as given (name, rights)
              left join pg_class on oid = to_regclass(name)),
     ours (name, trigger, type) as (values ('audit', 'audit_grows', 58), ('audit_head', 'audit_head_stays', 42)),
     triggers as (
       select name, tgname as trigger, tgtype as type, tgenabled = 'A' and proname = 'refuse_change' and pronamespace = ${place} as whole
         from pg_trigger join tables on tables.oid = tgrelid join pg_proc on pg_proc.oid = tgfoid where not tgisinternal)
     select name || ' is no plain table' as what
       from tables where relkind is distinct from 'r' or relpersistence <> 'p' or relnamespace <> ${place}
     union all
     select 'the trigger ' || trigger || ' of ' || name || ' was not made by Tollgate, or not like this'
       from triggers where (name, trigger, type, whole) not in (select name, trigger, type, true from ours)
     union all
     select 'the trigger ' || trigger || ' of ' || name || ' is gone'
       from ours where (name, trigger) not in (select name, trigger from triggers)
     union all
     select 'the function ' || given.name || ' is not as Tollgate made it'
       from json_each_text($1) as given (name, body) left join pg_proc on proname = given.name and pronamespace = ${place}
      where btrim(regexp_replace(prosrc, '[[:space:]]+', ' ', 'g')) is distinct from given.body or proconfig is not null
     union all
     select 'the owner of ' || name || ' may change its rows or take them out' from tables
      where exists (select from aclexplode(relacl) where grantee = relowner and privilege_type = any (rights))
     union all
     select 'the rule ' || rulename || ' of ' || name || ' was not made by Tollgate' from pg_rewrite join tables on tables.oid = ev_class
     union all
     select 'the policy ' || polname || ' of ' || name || ' was not made by Tollgate' from pg_policy join tables on tables.oid = polrelid
     union all
     select name || ' has tables below it' from pg_inherits join tables on tables.oid = inhparent
      order by what`,
    [JSON.stringify(functions)],
  )
  return rows.map(({ what }) => what)
}

/** The same of all other tables: what runs with a write to one of them runs in the transaction that tells of it, and may undo that. */
export async function findStrangersElsewhere(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ what: string }>(
    `with others as (
       select oid, relname as name from pg_class
        where relnamespace = ${place} and relkind in ('r', 'p') and relname not in ('audit', 'audit_head'))
     select 'the trigger ' || tgname || ' of ' || name || ' was not made by Tollgate' as what
       from pg_trigger join others on others.oid = tgrelid join pg_proc on pg_proc.oid = tgfoid
      where not tgisinternal and not (proname = any ($1) and pronamespace = ${place})
     union all
     select 'the rule ' || rulename || ' of ' || name || ' was not made by Tollgate' from pg_rewrite join others on others.oid = ev_class
      order by what limit 100`,
    [Object.keys(functions)],
  )
  return rows.map(({ what }) => what)
}

export async function readHead(db: Connection): Promise<Head | undefined> {
  const { rows } = await db.query<Head>('select sequence, proof from audit_head')
  return rows[0]
}

const columns = `sequence, recorded_at as "recordedAt", actor_kind as "actorKind", actor, address, action, entity_id as "entityId", subject, result,
  details, hash`

export async function readRowsAfter(db: Connection, sequence: number, limit: number): Promise<AuditRow[]> {
  const { rows } = await db.query<AuditRow>(`select ${columns} from audit where sequence > $1 order by sequence limit $2`, [
    sequence,
    limit,
  ])
  return rows
}

export type FailureKind = 'all' | 'address' | 'user' | 'credential'
export type LogInFailure = {
  readonly kind: FailureKind
  readonly subject: string
  readonly minute: number
  readonly failures: number
}

const addFailures = perSize(
  size => `
  insert into log_in_failures as counted (minute, kind, subject, failures, proof)
  select minute, kind, subject, failures, proof from (values ${valuesList(['timestamptz', 'text', 'text', 'integer', 'bytea'], size)})
      as given (minute, kind, subject, failures, proof)
   where kind is not null order by minute, kind, subject
  on conflict (minute, kind, subject) do update set failures = counted.failures + excluded.failures
  returning minute, kind, subject, failures`,
)

/** Shows that this installation wrote the row, whoever else may write to the table. */
export type ProvenFailure = LogInFailure & { readonly proof: Buffer }

/** Adds to what all processes counted and returns the sums. Each kind and subject of a minute once. */
export async function countFailures(pool: pg.Pool, added: readonly ProvenFailure[]): Promise<LogInFailure[]> {
  const size = quantised(added.length)
  const values = padded(
    added.flatMap(({ minute, kind, subject, failures, proof }) => [timeParameter(minute), kind, subject, failures, proof]),
    size * 5,
  )
  const { rows } = await pool.query<LogInFailure>({ name: `failures ${size}`, text: addFailures(size), values })
  return rows
}

/** Takes out what was counted in minutes that are over. */
export async function takeFailures(db: Connection, before: number): Promise<ProvenFailure[]> {
  const { rows } = await db.query<ProvenFailure>(
    `with over as (
       select minute, kind, subject from log_in_failures where minute < $1 order by minute, kind, subject for update skip locked)
     delete from log_in_failures f using over
      where f.minute = over.minute and f.kind = over.kind and f.subject = over.subject
     returning f.minute, f.kind, f.subject, f.failures, f.proof`,
    [timeParameter(before)],
  )
  return rows
}

/** The subjects that something was done to. */
export async function findSubjects(db: Connection, action: string): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ subject: string }>('select distinct subject from audit where action = $1', [action])
  return new Set(rows.map(({ subject }) => subject))
}
