// How fast a return is read, line by line each in a transaction of its own, and what that costs in memory; and that everything is in the books in the end.
// `npm run bench:returns -- 10000 100000` for files of so many lines, 1 % of them odd. The database is durable and new.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { importReturn, returnsOf } from '../../src/clearing/returns/importReturn.ts'
import { banks } from '../../src/connectors/slips/banks/banks.ts'
import { openDirectory } from '../../src/merchants/directory.ts'
import { applySeed, readSeed, sandboxSeed } from '../../src/merchants/seed.ts'
import { examine } from '../../src/payments/ledger/doctor.ts'
import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import { connect } from '../../src/platform/database/connect.ts'
import { startEmbedded } from '../../src/platform/database/embedded.ts'
import { claimFolder } from '../../src/platform/database/folder.ts'
import { migrate } from '../../src/platform/database/migrate.ts'
import { returnText, type ToldTitle } from '../../src/sandbox/slipBank/returnText.ts'
import { readConfig } from '../../src/start/config.ts'
import { startGateway } from '../../src/start/serve.ts'
import { sandbox, testKeys } from '../../test/support/gateway.ts'
import { boleto } from '../../test/support/slips.ts'

const sizes = process.argv.slice(2).map(Number)
if (sizes.length === 0) sizes.push(10_000, 100_000)
const say = (text: string) => process.stdout.write(`${text}\n`)
const account = {
  bank: '341',
  layout: 'cnab240',
  agency: '0057',
  account: '12345',
  accountDigit: '7',
  wallet: '110',
  agreement: '',
} as const

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
const claim = claimFolder(folder)
const server = await startEmbedded({ dataDir: folder, say: () => {} })
const { host, port, user, database: name } = server
const connection: pg.PoolConfig = { host, port, user, database: name, ssl: false, password: '' }
const pool = new pg.Pool({ ...connection, max: 2 })
pool.on('error', () => {})
await migrate(pool, new Date().toISOString())
await applySeed(pool, testKeys, systemClock, systemRandom, readSeed(sandboxSeed))
const config = readConfig({ PORT: '0', HOST: '127.0.0.1' }, '/nonexistent')
const gateway = await startGateway({
  config,
  keys: testKeys,
  connection,
  clock: systemClock,
  random: systemRandom,
  log: { debug() {}, info() {}, warn() {}, error: (fields, message) => say(`${message} ${JSON.stringify(fields)}`) },
  alone: true,
})
const database = connect(connection, systemClock, () => {})
const directory = await openDirectory(database, testKeys, systemClock, () => {})
const parts = { database, directory, clock: systemClock, random: systemRandom, keys: testKeys, build: 'bench' }
try {
  const answer = await fetch(`http://127.0.0.1:${gateway.port}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${sandbox.accessToken}` },
    body: new URLSearchParams(boleto),
  })
  const { id } = (await answer.json()) as { id: string }
  say(`${await commits(4, 3)} commits/s of one row each by 4 connections: the limit of this machine now`)
  let number = 10_000_000
  for (const [at, size] of sizes.entries()) {
    await copySlips(id, number, size)
    const bytes = Buffer.from(returnText(account, at + 1, '2026-12-02', titles(number, size)))
    number += size
    let heapMost = 0
    const lookEvery = Math.ceil(size / 50)
    let seen = 0
    const tell = () => {
      if (++seen % lookEvery === 0) heapMost = Math.max(heapMost, process.memoryUsage().heapUsed)
    }
    globalThis.gc?.()
    const started = performance.now()
    const report = await importReturn(parts, returnsOf(config.slips.get('itau-demo')!), `${size}.ret`, bytes, tell)
    const seconds = (performance.now() - started) / 1000
    if ('broken' in report) throw new Error(report.broken)
    const { recorded, refused, noted } = report
    say(
      `${String(size).padStart(7)} lines in ${seconds.toFixed(1)} s: ${Math.round(size / seconds)} lines/s; ${recorded} receipts, ${refused} questions, ${noted} notes; heap at most ${Math.round(heapMost / 2 ** 20)} MB, file ${Math.round(bytes.length / 2 ** 20)} MB`,
    )
    const { rows } = await pool.query(`select count(*) from payments where payment_type = 'RC'`)
    say(`        ${rows[0].count} receipts in the books`)
  }
  const { findings } = await examine(pool)
  say(findings.length === 0 ? 'The books agree.' : findings.map(one => JSON.stringify(one)).join('\n'))
  if (findings.length > 0) process.exitCode = 1
} finally {
  await directory.close()
  await database.close()
  await gateway.stop()
  await pool.end()
  await server.stop()
  claim.release()
  rmSync(folder, { recursive: true, force: true })
}

/** How many rows a second so many connections write, each in a transaction of its own. */
async function commits(connections: number, seconds: number): Promise<number> {
  await pool.query('create table commits (id bigserial primary key, at text)')
  const end = performance.now() + seconds * 1000
  const counts = await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new pg.Client(connection)
      await client.connect()
      let count = 0
      for (; performance.now() < end; count++) await client.query(`insert into commits (at) values ('now')`)
      await client.end()
      return count
    }),
  )
  await pool.query('drop table commits')
  return Math.round(counts.reduce((total, one) => total + one, 0) / seconds)
}

/** Of 200 lines one is on a number that is none of ours, and one is a note. */
function titles(first: number, count: number): ToldTitle[] {
  const bank = banks.get('341')!
  return Array.from({ length: count }, (_, at) => {
    const number = String(at % 200 === 77 ? 90_000_000 + at : first + at)
    return {
      number: `110${number}${bank.numberDigit(account, number)}`,
      occurrence: at % 200 === 99 ? '28' : '06',
      occurredOn: '2026-12-01',
      creditedOn: '2026-12-02',
      face: 123_45,
      paid: 123_45,
      receiver: '23700123',
    }
  })
}

/** Copies of a slip that the gateway issued, each with a number of its own. */
async function copySlips(id: string, first: number, count: number): Promise<void> {
  const copy = (table: string, key: string, more = '') =>
    pool.query(
      `insert into ${table} select (jsonb_populate_record(null::${table}, to_jsonb(one) || jsonb_build_object('${key}', lpad(to_hex($2::bigint + at), 32, '0')${more}))).*
         from ${table} one, generate_series(0, $3::int - 1) at where one.${key} = $1`,
      [id, first, count],
    )
  await copy('payments', 'id')
  await copy('answers', 'payment_id')
  await copy('events', 'payment_id', `, 'root_id', lpad(to_hex($2::bigint + at), 32, '0')`)
  await copy(
    'slips',
    'payment_id',
    `, 'number', ($2::bigint + at)::text, 'link_hash', '\\x' || lpad(to_hex($2::bigint + at), 64, '0')`,
  )
}
