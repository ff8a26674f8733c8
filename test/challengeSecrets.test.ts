// The CVV while its shopper is away, as somebody would look for it who has the disk, a backup or the write-ahead log, and the seal key with it:
// what could be opened is nowhere but in one file that no log and no standby carries, and after the payment not even there.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { eraseSecrets } from '../src/payments/redirects/store.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { testPool } from './support/database.ts'
import { eventually, visa } from './support/gateway.ts'
import { type Started, startProcess } from './support/process.ts'
import { makeShopper } from './support/shopper.ts'

const dataDir = join(mkdtempSync(join(tmpdir(), 'tollgate-challenge-')), 'data')
const shop = 'http://127.0.0.1:9/back'

let gateway: Started
let pool: pg.Pool
const open = async () => {
  gateway = await startProcess({ DATA_DIR: dataDir, LOG_LEVEL: 'warn' })
  pool = testPool(runningEmbedded(dataDir)!, 4)
}
const close = async () => {
  await pool.end()
  await gateway.stop()
}
before(open)
after(async () => {
  await close()
  rmSync(join(dataDir, '..'), { recursive: true, force: true })
})

type Away = { readonly id: string; readonly redirect: { readonly url: string } }

// biome-ignore lint/suspicious/noExplicitAny: an answer of the interface, looked at field by field
const call = async (path: string, body?: Record<string, string>): Promise<any> => {
  const { baseUrl, entityId, accessToken } = gateway.sandbox
  const query = body ? '' : `?entityId=${entityId}`
  const response = await fetch(`${baseUrl}${path}${query}`, {
    headers: { Authorization: `Bearer ${accessToken}` },
    ...(body && { method: 'POST', body: new URLSearchParams({ entityId, ...body }) }),
  })
  return response.json()
}

const sendAway = (): Promise<Away> =>
  call('/v1/payments', {
    ...visa,
    'card.number': '4200000000000018',
    'card.cvv': '789',
    paymentType: 'DB',
    amount: '92.00',
    currency: 'EUR',
    shopperResultUrl: shop,
    'customParameters[3DS2_enrolled]': 'true',
  })

async function comeBack({ id, redirect }: Away): Promise<string> {
  const page = `${gateway.sandbox.baseUrl}/r/${redirect.url.split('/').at(-1)}`
  const seen = await makeShopper().walk(`${page}?auto=approve`, gateway.sandbox.baseUrl)
  assert.ok(seen.location?.startsWith(shop), seen.text)
  return (await call(`/v1/payments/${id}`)).result.code
}

/** What no other record has: how the payment's record begins behind the wrapped key, which it shares with others. */
async function sealedBytes(table: 'challenge_secrets' | 'continuations', id: string): Promise<Buffer> {
  const { rows } = await pool.query<{ sealed: Buffer }>(`select sealed from ${table} where payment_id = $1`, [id])
  assert.equal(rows.length, 1)
  return rows[0]!.sealed.subarray(65, 93)
}
const sealedCvv = (id: string): Promise<Buffer> => sealedBytes('challenge_secrets', id)

/** Files of the data folder that hold any of the bytes, the write-ahead log among what is searched. The server writes an unlogged table when it stops. */
async function filesWith(...wanted: readonly Buffer[]): Promise<string[]> {
  await close()
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  assert.ok(files.some(path => /pg_wal\/[0-9A-F]{24}$/.test(path)))
  const found = files.filter(path => {
    const content = readFileSync(path)
    return wanted.some(bytes => content.includes(bytes))
  })
  await open()
  return found
}

/** Changes when the table gets another file. */
const fileOf = async (): Promise<string> =>
  (await pool.query<{ path: string }>(`select pg_relation_filepath('challenge_secrets') as path`)).rows[0]!.path

/** Whoever looks at the table at that moment, as the server itself now and then does, puts it off. */
async function erased(now: number): Promise<void> {
  const isEmpty = async () => {
    await eraseSecrets(pool, now)
    const { rows } = await pool.query<{ bytes: number }>(`select pg_relation_size('challenge_secrets')::int as bytes`)
    return rows[0]!.bytes === 0
  }
  await eventually(isEmpty, 'the file of the table is empty')
}

describe('the CVV of a challenge', () => {
  it('is in no log, no standby and no base backup while the shopper is away: only in the file of a table that none of them carries', async () => {
    const away = await sendAway()
    const sealed = await sealedCvv(away.id)
    const logged = await sealedBytes('continuations', away.id)
    const found = await filesWith(sealed)
    assert.equal(found.length, 1, found.join())
    // No table that is written to the log, whichever file the unlogged one has now.
    const { rows: inLog } = await pool.query<{ path: string }>(
      `select pg_relation_filepath(oid) as path from pg_class where relpersistence = 'p' and relkind in ('r', 'i', 't')`,
    )
    assert.ok(!inLog.some(({ path }) => found[0] === join(dataDir, 'postgres', path)) && !found[0]!.includes('pg_wal'), found[0])
    assert.ok(
      (await filesWith(logged)).some(path => path.includes('pg_wal')),
      'what is logged is found',
    )
    assert.equal(await comeBack(away), '000.100.110', 'a clean stop keeps it')
    assert.ok(!gateway.printed().includes('the CVV is gone'))
  })

  it('is not kept for an authentication that stands alone, behind which nothing is authorized', async () => {
    const { id, result, redirect } = await call('/v1/threeDSecure', {
      ...visa,
      'card.number': '4200000000000018',
      'card.cvv': '789',
      amount: '92.00',
      currency: 'EUR',
      shopperResultUrl: shop,
    })
    assert.equal(result.code, '000.200.000')
    assert.equal((await pool.query('select from continuations where payment_id = $1', [id])).rowCount, 1)
    assert.equal((await pool.query('select from challenge_secrets where payment_id = $1', [id])).rowCount, 0)
    assert.equal(await comeBack({ id, redirect }), '000.100.110')
  })

  it('is not sampled: the statistics of the planner are tables as others are, with a log', async () => {
    const away = await Promise.all(Array.from({ length: 8 }, sendAway))
    const sealed = await Promise.all(away.map(({ id }) => sealedCvv(id)))
    // Nothing but the settings of its columns keeps them: what a migration has forgotten is seen here, whoever analyzes.
    await pool.query('analyze')
    const { rows } = await pool.query(`select attname from pg_stats where tablename = 'challenge_secrets'`)
    assert.deepEqual(rows, [])
    assert.equal((await filesWith(...sealed)).length, 1, 'the file of its table')
    assert.equal(await comeBack(away[0]!), '000.100.110')
    await erased(Date.now() + 11 * 60_000)
    assert.deepEqual(await filesWith(...sealed), [], 'nor afterwards')
  })

  it('is in no file at all once the payment went on', async () => {
    const away = await sendAway()
    const sealed = await sealedCvv(away.id)
    assert.equal(await comeBack(away), '000.100.110')
    await erased(Date.now())
    assert.deepEqual(await filesWith(sealed), [])
  })

  it('is not waited for by payments while somebody reads the table for long, and is erased afterwards', async () => {
    const away = await sendAway()
    const sealed = await sealedCvv(away.id)
    const dump = await pool.connect()
    try {
      await dump.query('begin')
      await dump.query('select count(*) from challenge_secrets')
      assert.equal(await comeBack(away), '000.100.110')
      const begun = performance.now()
      await eraseSecrets(pool, Date.now())
      assert.ok(performance.now() - begun < 3000, 'whoever needs the table stands behind it for a quarter of a second')
    } finally {
      await dump.query('commit')
      dump.release()
    }
    await erased(Date.now())
    assert.deepEqual(await filesWith(sealed), [])
  })

  it('is in no file either while a transaction is open that began before, and that of a challenge that goes on stays', async () => {
    const [away, goesOn] = await Promise.all([sendAway(), sendAway()])
    const [sealed, kept] = await Promise.all([sealedCvv(away.id), sealedCvv(goesOn.id)])
    const earlier = testPool(runningEmbedded(dataDir)!, 1)
    const connection = await earlier.connect()
    connection.on('error', () => {}) // the server stops before it ends
    await connection.query('begin isolation level repeatable read')
    await connection.query('select count(*) from entities')
    assert.equal(await comeBack(away), '000.100.110')
    const file = await fileOf()
    const isAnew = async () => {
      await eraseSecrets(pool, Date.now())
      return (await fileOf()) !== file
    }
    await eventually(isAnew, 'the table has another file')
    assert.deepEqual(await sealedCvv(goesOn.id), kept)
    const { rows } = await connection.query('select pg_current_xact_id_if_assigned() is null as open')
    assert.deepEqual(rows, [{ open: true }])
    const found = await filesWith(sealed)
    connection.release(true)
    await earlier.end()
    assert.deepEqual(found, [])
    assert.equal((await filesWith(kept)).length, 1)
    assert.equal(await comeBack(goesOn), '000.100.110')
    assert.ok(!gateway.printed().includes('the CVV is gone'))
  })

  it('is not lost when it comes, or is taken, while the file is made anew', async () => {
    const goesOn = await sendAway()
    const waiting = async (mode: string) => {
      const { rows } = await pool.query<{ count: number }>(
        `select count(*)::int as count from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
          where l.relation = 'challenge_secrets'::regclass and l.mode = $1 and not l.granted`,
        [mode],
      )
      return rows[0]!.count > 0
    }
    const comes = await pool.connect()
    const [file, id] = [await fileOf(), goesOn.id.replace(/^.{4}/, 'ffff')]
    let taken: Promise<unknown> | undefined
    try {
      // A quarter of a second is what the erasing waits for: who is slow here finds that it gave up, and begins again.
      for (let missed = true; missed; ) {
        await comes.query('begin')
        await comes.query(
          `insert into challenge_secrets select merchant_id, $2, '', now() + interval '10 minutes' from payments where id = $1`,
          [goesOn.id, id],
        )
        const erasing = eraseSecrets(pool, Date.now())
        await eventually(() => waiting('AccessExclusiveLock'), 'the erasing waits for who writes')
        taken ??= comeBack(goesOn)
        await comes.query('commit')
        await erasing
        missed = (await fileOf()) === file
        if (missed) await comes.query('delete from challenge_secrets where payment_id = $1', [id])
      }
    } finally {
      comes.release(true)
    }
    assert.equal((await pool.query('select from challenge_secrets where payment_id = $1', [id])).rowCount, 1)
    assert.equal(await taken, '000.100.110')
    assert.ok(!gateway.printed().includes('the CVV is gone'))
  })

  it('is erased when its time is over, whatever became of the payment', async () => {
    const away = await sendAway()
    await eraseSecrets(pool, Date.now())
    await sealedCvv(away.id)
    await eraseSecrets(pool, Date.now() + 11 * 60_000)
    assert.equal((await pool.query('select 1 from challenge_secrets')).rowCount, 0)
  })

  it('does not outlive a crash of the server: the payment goes on without it', async () => {
    const away = await sendAway()
    const sealed = await sealedCvv(away.id)
    await pool.end()
    process.kill(Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
    await new Promise(ended =>
      gateway.child.exitCode === null && gateway.child.signalCode === null ? gateway.child.once('exit', ended) : ended(undefined),
    )
    await open()
    assert.equal((await pool.query('select 1 from challenge_secrets')).rowCount, 0)
    assert.equal(await comeBack(away), '000.100.110')
    assert.match(gateway.printed(), /the CVV is gone with a crash of the database/)
    assert.deepEqual(await filesWith(sealed), [])
  })
})
