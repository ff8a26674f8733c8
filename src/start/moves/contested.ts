// A transaction of a bank settles one payment of a database. Two cells may each have a payment with the same one, where the bank was given the same order number:
// when such a merchant moves, the other payment keeps the transaction, somebody hears of both, and the claim of this one stays behind.

import type { RedirectMethod } from '../../connectors/bankTransfer/redirectMethods.ts'
import { openCase } from '../../payments/cases/cases.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import type { Log } from '../../platform/log.ts'
import type { MoveParts } from './move.ts'
import { isOneOfCells } from './putBack.ts'
import { holdMove, type Move } from './store.ts'

type HeldTransaction = {
  readonly connector: string
  readonly brand: string
  readonly transaction: string
  readonly paymentId: string
}
type ContestedTransaction = HeldTransaction & { readonly otherMerchant: string; readonly otherPayment: string }

const page = 2000
const columns = 'connector, brand, transaction_id as transaction, payment_id as "paymentId"'
const key = `connector collate "C", brand collate "C", transaction_id collate "C"`

/** Before the fence, which keeps everybody from writing. What is found after it makes the move end, and is found here when the command is given again. */
export async function leaveContested({ source, target, merchantId, tell }: MoveParts, move: Move): Promise<void> {
  const contests = await findContests(source.database.work, target.database.work, merchantId)
  await inTransaction(source.database.work, async db => {
    await holdMove(db, move, 'copying')
    for (const { transaction, paymentId, otherMerchant, otherPayment } of await markContested(db, merchantId, contests)) {
      const why = `${target.name}, to which the merchant goes, has the payment ${otherPayment} with the same transaction ${transaction}: what this payment has stays as it is, and nothing more approves it`
      await openCase(db, source, { kind: 'transactionTaken', merchantId, subject: paymentId, details: { why, transaction } })
      tell(
        'copied',
        `The transaction ${transaction} of its payment ${paymentId} is that of the payment ${otherPayment} of the merchant ${otherMerchant} in ${target.name}, which keeps it: a case says so.`,
      )
    }
  })
}

async function findContests(here: Connection, there: Connection, merchantId: string): Promise<ContestedTransaction[]> {
  const contests: ContestedTransaction[] = []
  for (let after = ['', '', '']; ; ) {
    const { rows } = await here.query<HeldTransaction>(
      `select ${columns} from claimed_transactions where merchant_id = $1 and (${key}) > ($2, $3, $4) order by ${key} limit ${page}`,
      [merchantId, ...after],
    )
    const { rows: taken } = await there.query<ContestedTransaction>(
      `select o.connector, o.brand, o.transaction_id as transaction, own.payment as "paymentId", o.merchant_id as "otherMerchant", o.payment_id as "otherPayment"
         from unnest($2::text[], $3::text[], $4::text[], $5::uuid[]) own (connector, brand, transaction, payment)
         join claimed_transactions o on o.connector = own.connector and o.brand = own.brand and o.transaction_id = own.transaction
        where o.merchant_id <> $1`,
      [merchantId, ...(['connector', 'brand', 'transaction', 'paymentId'] as const).map(name => rows.map(row => row[name]))],
    )
    contests.push(...taken)
    const last = rows.at(-1)
    if (!last || rows.length < page) return contests
    after = [last.connector, last.brand, last.transaction]
  }
}

/** What is contested no more goes along. Returns what was not known before. */
async function markContested(
  db: Connection,
  merchantId: string,
  contests: readonly ContestedTransaction[],
): Promise<ContestedTransaction[]> {
  const keys = (['connector', 'brand', 'transaction'] as const).map(name => contests.map(contest => contest[name]))
  const isContested = '(connector, brand, transaction_id) in (select * from unnest($2::text[], $3::text[], $4::text[]))'
  await db.query(
    `update claimed_transactions set contested = false where merchant_id = $1 and contested and not (${isContested})`,
    [merchantId, ...keys],
  )
  const { rows } = await db.query<HeldTransaction>(
    `update claimed_transactions set contested = true where merchant_id = $1 and not contested and ${isContested} returning ${columns}`,
    [merchantId, ...keys],
  )
  return contests.filter(contest =>
    rows.some(row => row.paymentId === contest.paymentId && row.transaction === contest.transaction),
  )
}

/** A method of several cells that gives its bank another number than ours: no refusal, because a bank that begins a transaction of its own with each start is paid for each. */
export async function warnOfSharedNumbers(db: Connection, methods: readonly RedirectMethod[], log: Log): Promise<void> {
  const isOurs = ({ fields, endpoints }: RedirectMethod) =>
    [...Object.values(fields), ...Object.values(endpoints).map(({ start }) => start)].some(text => text.includes('{paymentId}'))
  const brands = methods.filter(method => !isOurs(method)).map(({ brand }) => brand)
  if (brands.length === 0 || !(await isOneOfCells(db))) return
  const why = `${brands.join(', ')}: \`fields\` do not give the bank {paymentId}, and a number of the shop may be that of another cell's payment too`
  log.warn({ why }, 'a transaction of a bank may settle payments of two cells')
}
