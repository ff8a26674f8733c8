// After the load: is everything that was answered in the database, and was it forced to the disk?

import pg from 'pg'
import { transactionIdLength } from './request.ts'

/** The requests of one load: numbered from 0, those without a good answer named. */
export type Sent = { readonly prefix: string; readonly sent: number; readonly failed: readonly number[] }

/** Sentences about what is wrong; none when all is well. `answered` counts the payments looked for. */
export async function verify(
  connection: pg.PoolConfig,
  loads: readonly Sent[],
): Promise<{ readonly answered: number; readonly wrong: readonly string[] }> {
  const client = new pg.Client(connection)
  await client.connect()
  const wrong: string[] = []
  let answered = 0
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await client.query(`show ${setting}`)
    if (rows[0][setting] !== 'on') wrong.push(`${setting} is ${rows[0][setting]}`)
  }
  for (const { prefix, sent, failed } of loads) {
    const { rows } = await client.query(
      `with asked as (
         select $1::text || lpad(number::text, $2, '0') as merchant_transaction_id
           from generate_series(0, $3::integer - 1) as number where number <> all ($4::integer[])),
       found as (
         select merchant_transaction_id, count(p.id) as payments, count(a.payment_id) as answers, count(j.payment_id) as journal,
                count(e.payment_id) as events
           from asked
           left join payments p using (merchant_transaction_id)
           left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id and a.approved
           left join journal j on j.merchant_id = p.merchant_id and j.payment_id = p.id
           left join events e on e.merchant_id = p.merchant_id and e.payment_id = p.id
          group by merchant_transaction_id)
       select count(*)::integer as asked, coalesce(sum(least(payments, 1)), 0)::integer as payments,
              coalesce(sum(least(answers, 1)), 0)::integer as answers, coalesce(sum(least(journal, 1)), 0)::integer as journal,
              coalesce(sum(least(events, 1)), 0)::integer as events,
              (count(*) filter (where payments > 1))::integer as twice
         from found`,
      [prefix, transactionIdLength - prefix.length, sent, failed],
    )
    const { asked, twice, ...kinds } = rows[0] as Record<string, number> & { asked: number; twice: number }
    answered += asked
    for (const [kind, count] of Object.entries(kinds)) {
      if (count !== asked) wrong.push(`${prefix}: ${asked} payments were answered, ${count} have their row in ${kind}`)
    }
    if (twice > 0) wrong.push(`${prefix}: ${twice} payments are there more than once`)
  }
  await client.end()
  return { answered, wrong }
}
