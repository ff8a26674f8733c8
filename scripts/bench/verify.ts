// After the load: is everything that was answered in the database, and was it forced to the disk?

import pg from 'pg'
import { examine } from '../../src/payments/ledger/doctor.ts'
import { type RequestType, transactionIdLength } from './request.ts'

/** The requests of one load: numbered from 0, their types in turns, those without a good answer named. */
export type Sent = {
  readonly prefix: string
  readonly types: readonly RequestType[]
  readonly sent: number
  readonly failed: readonly number[]
}

/** `wrong`: a sentence each; none when all is well. */
export type Verdict = { readonly answered: number; readonly wrong: readonly string[] }

/** Reservation and end, or release and claim. All others have one line. */
const twoLines: readonly RequestType[] = ['CP', 'RF', 'RV']

const asked = `
  with loads as (
    select * from jsonb_to_recordset($1) as load (prefix text, types text[], sent integer, failed integer[])),
  asked as (
    select prefix, prefix || lpad(number::text, $2 - length(prefix), '0') as merchant_transaction_id, types[1 + number % cardinality(types)] as type
      from loads, generate_series(0, sent - 1) as number where number <> all (failed)),
  payments_asked as (select * from asked where type <> 'read')`

const lookAtPayments = `${asked},
  stored as (
    select prefix, one.merchant_transaction_id, type, p.merchant_id, p.id, p.root_id from payments_asked one
      left join payments p on p.merchant_transaction_id = one.merchant_transaction_id and p.payment_type = type),
  found as (
    select prefix, merchant_transaction_id, type, count(id) as payments, max(root_id::text) as root,
           count(*) filter (where exists (select from answers a where a.merchant_id = s.merchant_id and a.payment_id = s.id and a.approved)) as answers,
           coalesce(sum((select count(*) from journal j where j.merchant_id = s.merchant_id and j.payment_id = s.id)), 0) as lines,
           count(*) filter (where exists (select from events e where e.merchant_id = s.merchant_id and e.payment_id = s.id and e.sequence = 2)) as events
      from stored s group by prefix, merchant_transaction_id, type)
  select prefix, (select count(*)::integer from payments_asked one where one.prefix = found.prefix) as asked,
         (count(*) filter (where payments = 1))::integer as "payments, each once", (count(*) filter (where answers = 1))::integer as "an approved answer",
         (count(*) filter (where lines = case when type = any ($3) then 2 else 1 end))::integer as "their journal lines",
         (count(*) filter (where events = 1))::integer as "an event",
         (count(distinct root) + count(*) filter (where type in ('DB', 'PA')))::integer as "a first payment of their own"
    from found group by prefix order by prefix`

/** The payments of the gateway: each once, with its answer, journal lines and event; and the books as the doctor reads them. */
export async function verify(connection: pg.PoolConfig, loads: readonly Sent[]): Promise<Verdict> {
  const pool = new pg.Pool({ ...connection, max: 1 })
  try {
    const wrong = await unsafeSettings(pool)
    const { rows } = await pool.query(lookAtPayments, [JSON.stringify(loads), transactionIdLength, twoLines])
    let answered = 0
    for (const { prefix, asked, ...found } of rows) {
      answered += asked
      for (const [what, count] of Object.entries(found))
        if (count !== asked) wrong.push(`${prefix}: ${asked} payments were answered, ${count} have ${what}`)
    }
    const { payments, findings } = await examine(pool)
    if (payments < answered) wrong.push(`${answered} payments were answered, the doctor sees ${payments}`)
    return { answered, wrong: [...wrong, ...findings] }
  } finally {
    await pool.end()
  }
}

/** The rows of the limit: each answer has one in both of its tables. */
export async function verifyPlain(connection: pg.PoolConfig, loads: readonly Sent[]): Promise<Verdict> {
  const pool = new pg.Pool({ ...connection, max: 1 })
  const count = (table: string) =>
    `(select count(distinct t.id) from asked join bench.${table} t using (merchant_transaction_id))::integer as ${table}`
  const { rows } = await pool.query(
    `${asked} select (select count(*) from asked)::integer as all, ${count('asked')}, ${count('answered')}`,
    [JSON.stringify(loads), transactionIdLength],
  )
  await pool.end()
  const { all, ...found } = rows[0] as Record<string, number> & { all: number }
  const wrong = Object.entries(found)
    .filter(([, rows]) => rows !== all)
    .map(([table, rows]) => `only HTTP and two plain rows: ${all} were answered, ${rows} have their row in ${table}`)
  return { answered: all, wrong }
}

async function unsafeSettings(pool: pg.Pool): Promise<string[]> {
  const wrong: string[] = []
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await pool.query(`show ${setting}`)
    if (rows[0][setting] !== 'on') wrong.push(`${setting} is ${rows[0][setting]}`)
  }
  return wrong
}
