// Long chains, without the time that making each of their payments takes.

import type pg from 'pg'

/** Puts copies of a capture, refund or reversal with its answer into its chain. */
export async function growChain(pool: pg.Pool, followerId: string, count: number): Promise<void> {
  const columns = async (table: string, id: string) => {
    const { rows } = await pool.query(`select column_name as name from information_schema.columns where table_name = $1`, [table])
    const names = rows.map(({ name }) => name)
    return [names, names.map(name => (name === id ? 'made.id' : `one.${name}`))]
  }
  const [payments, paymentValues] = await columns('payments', 'id')
  const [answers, answerValues] = await columns('answers', 'payment_id')
  await pool.query(
    `with made as (select gen_random_uuid() as id from generate_series(1, ${count})),
      grown as (insert into payments (${payments}) select ${paymentValues} from payments one, made where one.id = '${followerId}')
     insert into answers (${answers}) select ${answerValues} from answers one, made where one.payment_id = '${followerId}'`,
  )
}
