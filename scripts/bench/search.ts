// How long does a search take among many payments, and the export of them all? The product's own, by each kind of thing that is looked for, in a projection
// of so many rows. Rows are made by the database, a portion at a time, and nothing here grows with them.
// `node scripts/bench/search.ts [rows, 5000000] [rounds, 50]`

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import { connect, type Database } from '../../src/platform/database/connect.ts'
import { startEmbedded } from '../../src/platform/database/embedded.ts'
import { claimFolder } from '../../src/platform/database/folder.ts'
import { migrate } from '../../src/platform/database/migrate.ts'
import { makeExport } from '../../src/reporting/exports/export.ts'
import { findExport, insertExport } from '../../src/reporting/exports/store.ts'
import { emailHashes } from '../../src/reporting/search/found.ts'
import { searchPayments } from '../../src/reporting/search/search.ts'
import { type SearchTerms, understand } from '../../src/reporting/search/terms.ts'
import { makeKeys } from '../../src/vault/keys.ts'
import { makeDataFolder } from './gateway.ts'
import { residentMegabytes } from './parts.ts'

const [rows, rounds] = [Number(process.argv[2] ?? 5_000_000), Number(process.argv[3] ?? 50)]
const merchantId = '6'.repeat(32)
const keys = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 2))
const pageSize = 50
const say = (text: string) => void process.stdout.write(`${text}\n`)

// One shopper in a thousand has the address, one payment in ten is declined, one in fifty is a refund; amounts, cards and numbers are spread.
const fill = `insert into searched_payments (merchant_id, payment_id, root_id, channel_id, received_at, mode, payment_type, brand, amount, currency, result, outcome,
    merchant_transaction_id, invoice, bin, last_four, email_hash, descriptor, slip_number, reference)
  select $1, lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, $1, '2026-01-01'::timestamptz + n * interval '3 seconds', 'live',
         case when n % 50 = 0 then 'RF' else 'DB' end, (array['VISA', 'MASTER', 'AMEX'])[1 + n % 3], 100 + (n * 7919) % 99991, 'EUR',
         case when n % 10 = 0 then '800.100.152' else '000.000.000' end, case when n % 10 = 0 then 'rejected' else 'success' end,
         'order-' || n, 'invoice-' || n, lpad(((n * 31) % 9000 + 400000)::text, 6, '0'), lpad(((n * 7907) % 10000)::text, 4, '0'),
         case when n % 1000 = 0 then $2::bytea end, 'shop ' || n, null, lpad(n::text, 12, '0')
    from generate_series($3::bigint, $4::bigint) n`

const middle = Math.floor(rows / 2)
const searches: Readonly<Record<string, readonly SearchTerms[]>> = {
  'the newest': [{}],
  'an id': understand(middle.toString(16).padStart(32, '0')),
  'an order number': understand(`order-${middle}`),
  'an amount': understand('92.00'),
  'an amount and a brand': understand('92.00 VISA'),
  'last four digits': understand('****0042'),
  'a whole card': [{ bin: '400042', lastFour: '0042' }],
  'an e-mail address': understand('jane@example.org'),
  'an e-mail address that nobody has': understand('john@example.org'),
  'a reference': understand(String(middle).padStart(12, '0')),
  'refunds of a day': understand('RF 2026-01-02'),
  'what was declined': understand('rejected'),
  'what nobody has had': understand('error'),
  'nothing that there is': understand('nothing-like-this'),
}

const folder = makeDataFolder()
const claim = claimFolder(folder.path)
const server = await startEmbedded({ dataDir: folder.path, say })
try {
  const connection = {
    host: server.host,
    port: server.port,
    user: server.user,
    database: server.database,
    ssl: false,
    password: '',
  }
  const client = new pg.Pool({ ...connection, max: 1 })
  await migrate(client, new Date().toISOString())
  const step = 100_000
  for (let at = 1; at <= rows; at += step) {
    await client.query(fill, [merchantId, emailHashes(keys, 'jane@example.org')[0], at, Math.min(rows, at + step - 1)])
    if ((at - 1) % (10 * step) === 0 && at > 1) say(`${at - 1} rows, ${here()} MB here`)
  }
  await client.query('vacuum analyze searched_payments')
  const { rows: sizes } = await client.query(
    `select pg_size_pretty(pg_table_size('searched_payments')) as heap, pg_size_pretty(pg_indexes_size('searched_payments')) as indexes`,
  )
  await client.end()
  say(`${rows} payments: ${sizes[0].heap}, indexes ${sizes[0].indexes}; a page of ${pageSize}, ${rounds} times, milliseconds`)
  const database = connect(connection, systemClock, () => {})
  for (const [name, any] of Object.entries(searches)) {
    const times: number[] = []
    let found = 0
    for (let round = 0; round < rounds; round++) {
      const began = performance.now()
      found = (await searchPayments({ database, keys }, [merchantId, randomBytes(16).toString('hex')], any, pageSize)).length
      times.push(performance.now() - began)
    }
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.min(rounds - 1, Math.floor(rounds * share))]!.toFixed(1).padStart(7)
    say(`${name.padEnd(36)} median ${at(0.5)}  p95 ${at(0.95)}  found ${found}`)
  }
  const megabytes = await exportAll(database)
  say(`${megabytes} MB here at most`)
  await database.close()
} finally {
  await server.stop()
  claim.release()
  folder.remove()
}

/** What this process holds, in megabytes; 0 where nobody can tell. */
function here(): number {
  return Math.round(residentMegabytes([process.pid]) ?? 0)
}

/** Step by step, as due work makes it, until it is made or larger than a file may be. The most megabytes that this process had. */
async function exportAll(database: Database): Promise<number> {
  const id = '7'.repeat(32)
  const row = { id, askedBy: 'bench', askedAt: 0, endsAt: 1e13, merchants: [merchantId], name: 'payments.csv' }
  await insertExport(database.work, row, { kind: 'payments', merchants: [merchantId], any: [{}] })
  const parts = { clock: systemClock, random: systemRandom, database }
  const began = performance.now()
  let most = 0
  for (let state = 'making'; state === 'making'; state = (await findExport(database.work, id))!.state) {
    await makeExport(parts, { subjectId: id } as Parameters<typeof makeExport>[1])
    most = Math.max(most, here())
  }
  const seconds = (performance.now() - began) / 1000
  const { records, total, bytes, state } = (await findExport(database.work, id))!
  say(
    `an export of ${records} of ${total}: ${state}, ${(bytes / 2 ** 20).toFixed(0)} MB, ${Math.round(records / seconds)} records a second`,
  )
  return most
}
