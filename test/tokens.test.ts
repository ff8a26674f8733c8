// Access tokens that are made and followed by hand, as the callers see them: what is printed pays at once, what was followed pays no more, and a
// command that is killed at any of its steps leaves nobody without a valid token.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pendingsOf } from '../src/cli/token.ts'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import { sandboxSeed } from '../src/merchants/seed.ts'
import { readConfig } from '../src/start/config.ts'
import { databaseUrl, makeDatabase, type TestDatabase, testPool, withPool } from './support/database.ts'
import { eventually, sandbox, visa } from './support/gateway.ts'
import { commandLine, manyCommands, project, type Started, startProcess } from './support/process.ts'
import { wireTo } from './support/wire.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-tokens-'))
const file = (name: string) => join(folder, name)
let database: TestDatabase
let gateway: Started
let environment: Record<string, string>
before(async () => {
  database = await makeDatabase()
  environment = { DATA_DIR: join(folder, 'data'), DATABASE_URL: databaseUrl(database.connection) }
  gateway = await startProcess(environment)
})
after(async () => {
  commands.stop()
  await gateway.stop()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

const commands = manyCommands()
/** Where a token for a file waits until it is valid. */
const pendingOf = (name: string) => pendingsOf(readConfig(environment, folder).keys(), file(name))[0]!
const tollgate = (...words: string[]) => commands.runIn(environment, ...words)
const status = async (token: string, entityId = sandbox.entityId): Promise<number> => {
  const answer = await fetch(`${gateway.sandbox.baseUrl}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: new URLSearchParams({ entityId, amount: '1.00', currency: 'EUR', paymentType: 'DB', ...visa }),
  })
  return answer.status
}
/** The gateway is told by the database, a moment after the command has ended. */
const becomes = (token: string, wanted: number) =>
  eventually(async () => (await status(token)) === wanted, `${wanted} for the token`)
const idIn = (text: string) => /Token ([0-9a-f]{32}) acts for/.exec(text)![1]!

async function created(...more: string[]): Promise<{ token: string; id: string }> {
  const { code, stdout, stderr } = await tollgate('token', 'create', '--entity', sandbox.merchantId, ...more)
  assert.equal(code, 0, stderr)
  return { token: stdout.trim(), id: idIn(stderr) }
}
type Row = { action: string; subject: string; entityId: string; details: Record<string, unknown> }
const audited = async (action: string, subject: string): Promise<Row | undefined> =>
  (JSON.parse((await tollgate('audit', '--json', '--action', action)).stdout).rows as Row[]).findLast(
    row => row.subject === subject,
  )

describe('whose database goes away', () => {
  async function cutAt(text: string, after: string, ...words: string[]) {
    const wire = await wireTo(database.connection)
    wire.resetAtAnswerTo(text, after)
    const ended = await commandLine({ ...environment, DATABASE_URL: databaseUrl(wire.connection) }, ...words)
    await wire.close()
    return ended
  }
  /** Passes the end of the transaction on that writes a token, and not that it has ended. */
  const cutAtCommit = (...words: string[]) => cutAt('commit', 'insert into access_tokens', ...words)

  it('at the end of its transaction: it does not say that nothing was changed', async () => {
    const { code, stdout, stderr } = await cutAtCommit('token', 'create', '--entity', sandbox.merchantId)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /\nNobody knows whether the token was made: look at the last one of `tollgate list`, and revoke it, or keep/,
    )
    assert.doesNotMatch(stderr, /Nothing was changed|\n {4}at /)
    await becomes(stdout.trim(), 200)
  })
  it('and given again, the one that was made is in its file', async () => {
    const order = ['token', 'create', '--entity', sandbox.merchantId, '--output', file('cut')]
    const first = await cutAtCommit(...order)
    assert.equal(first.code, 1)
    assert.match(first.stderr, /\nNobody knows whether the token was made: give the same command again\.\n$/)
    const made = readFileSync(pendingOf('cut'), 'utf8')
    const again = await tollgate(...order)
    assert.deepEqual([again.code, readFileSync(file('cut'), 'utf8')], [0, made], again.stderr)
    await becomes(made.trim(), 200)
  })
  it('while it reads: a sentence says so', async () => {
    const { code, out } = await cutAt('from access_tokens', 'from access_tokens', 'list')
    assert.equal(code, 1)
    assert.match(out, /^The database went away \([^\n]+\)\. Look at what is there before you do this again: .*\n$/)
  })
})

describe('token create', () => {
  it('has a name that may stand anywhere: without a card number, a line of 100 characters, all of them seen', async () => {
    const named = (label: string) => tollgate('token', 'create', '--entity', sandbox.merchantId, '--label', label)
    for (const label of ['', ' ', 'x'.repeat(101), 'a\u202eb', 'a\x1b[2Jb', 'a\nb', 'a\u200db'])
      assert.equal((await named(label)).code, 2, label)
    const { code, stderr } = await named(`${'x'.repeat(76)} 4916843719526087 cvv123`)
    assert.equal(code, 0, stderr)
    const row = await audited('tokenMade', idIn(stderr))
    const { rows } = await withPool(database.connection, pool =>
      pool.query(`select label from access_tokens where replace(id::text, '-', '') = $1`, [idIn(stderr)]),
    )
    const shown = `${'x'.repeat(76)} 491684…6087 cvv…`
    assert.deepEqual([rows, row!.details.label], [[{ label: shown }], shown])
  })

  it('prints a token alone, which pays at once in a gateway that runs, and leaves a trace without it', async () => {
    const { stdout, stderr, code } = await tollgate('token', 'create', '--entity', sandbox.merchantId, '--label', 'shop')
    assert.equal(code, 0)
    assert.match(stdout, /^[\w-]{43}\n$/)
    const token = stdout.trim()
    await becomes(token, 200)
    assert.ok(!stderr.includes(token))
    const row = await audited('tokenMade', idIn(stderr))
    assert.deepEqual(row!.details, { label: 'shop', entities: [sandbox.merchantId], legacy: false })
    const everything = JSON.stringify(
      await withPool(database.connection, pool => pool.query('select * from audit, access_tokens')),
    )
    assert.ok(!everything.includes(token))
  })

  it('acts for what it was made for, and for no other channel', async () => {
    const { code, stdout } = await tollgate('token', 'create', '--entity', sandbox.lenientEntityId, sandbox.lenientEntityId)
    assert.equal(code, 0)
    const token = stdout.trim()
    await eventually(async () => (await status(token, sandbox.lenientEntityId)) === 200, 'its channel')
    assert.equal(await status(token), 403)
  })

  it('leaves files of a like name as they are, and those that another command writes', async () => {
    const create = (name: string) => tollgate('token', 'create', '--entity', sandbox.merchantId, '--output', file(name))
    writeFileSync(file('like.new'), 'of somebody else')
    assert.equal((await create('like')).code, 0)
    assert.equal(readFileSync(file('like.new'), 'utf8'), 'of somebody else')
    assert.equal((await create('pair.new')).code, 0)
    const first = readFileSync(file('pair.new'), 'utf8')
    assert.equal((await create('pair')).code, 0)
    assert.equal(readFileSync(file('pair.new'), 'utf8'), first)
    const second = readFileSync(file('pair'), 'utf8')
    assert.notEqual(second, first)
    for (const token of [first, second]) await becomes(token.trim(), 200)
    const folders = await tollgate('token', 'create', '--entity', sandbox.merchantId, '--output', '')
    assert.deepEqual([folders.code, /is there already/.test(folders.out)], [1, true], 'a folder is no file')
  })

  it('writes it to a file that nobody else may read, and never over another', async () => {
    const { stdout, code } = await tollgate('token', 'create', '--entity', sandbox.merchantId, '--output', file('one'))
    assert.deepEqual([code, stdout], [0, ''])
    assert.equal(statSync(file('one')).mode & 0o777, 0o600)
    await becomes(readFileSync(file('one'), 'utf8').trim(), 200)
    const again = await tollgate('token', 'create', '--entity', sandbox.merchantId, '--output', file('one'))
    assert.deepEqual([again.code, again.out], [1, `${file('one')} is there already: take it away, or name another file.\n`])
    const nowhere = await tollgate('token', 'create', '--entity', sandbox.merchantId, '--output', '/nonexistent/one')
    assert.deepEqual([nowhere.code, nowhere.out], [1, '/nonexistent/one cannot be written (ENOENT). Nothing was changed.\n'])
  })

  it('takes one that callers know from a file, unless it is weak', async () => {
    const known = '9Qk2vX7mLr4TzB8nWc3HfYpD6sJg5aEu'
    writeFileSync(file('known'), `${known}\n`, { mode: 0o600 })
    const make = () => tollgate('token', 'create', '--entity', sandbox.merchantId, '--token-file', file('known'))
    const { code, out } = await make()
    assert.equal(code, 0, out)
    assert.ok(!out.includes(known))
    await becomes(known, 200)
    assert.deepEqual([(await make()).code, (await make()).out], [1, 'The token is there already, or was once.\n'])
    writeFileSync(file('known'), 'correct-horse-battery-staple')
    assert.deepEqual([(await make()).code, (await make()).out], [1, 'The token is too weak: it must hold 128 bits of chance.\n'])
    writeFileSync(file('known'), legacyToken('9Qk2vX7mLr4TzB8nWc3HfYpD6sJg5aEu', 'our-shop'))
    assert.match((await make()).out, /^The token is a user id and a password in another spelling/)
    const others = '7Hs4cN9pVx2QmT6kZr8bJwYfLd3gUaEo'
    for (const sent of [`Bearer ${others}`, `"${others}"`, `${others}ü`]) {
      writeFileSync(file('known'), sent)
      assert.match((await make()).out, /^No caller could send the token: /, sent)
    }
    writeFileSync(file('known'), `${others}._~+/=-`)
    const made = await make()
    assert.equal(made.code, 0, made.out)
    await becomes(`${others}._~+/=-`, 200)
  })

  it('names what cannot be, and prints no token then', async () => {
    const strangers = ['0'.repeat(32), '1'.repeat(32)]
    const unknown = await tollgate('token', 'create', '--entity', strangers[0]!, sandbox.merchantId, strangers[1]!)
    assert.deepEqual([unknown.code, unknown.out], [1, strangers.map(id => `There is no entity ${id}.\n`).join('')])
    const malformed = await tollgate('token', 'create', '--entity', 'shop')
    assert.deepEqual([malformed.code, malformed.out], [2, '--entity must be 32 lower-case hex characters.\n'])
    assert.equal((await tollgate('token', 'create')).code, 2)
  })
})

describe('token rotate', () => {
  it('revokes the old one at once, for the same entities and under the same name', async () => {
    const old = await created('--label', 'till')
    await becomes(old.token, 200)
    const { code, stdout, stderr } = await tollgate('token', 'rotate', old.id)
    assert.equal(code, 0, stderr)
    await becomes(stdout.trim(), 200)
    await becomes(old.token, 403)
    const made = await audited('tokenMade', idIn(stderr))
    assert.deepEqual(made!.details, { label: 'till', entities: [sandbox.merchantId], legacy: false, follows: old.id })
    const ended = await audited('tokenRevoked', old.id)
    assert.equal(ended!.details.followedBy, idIn(stderr))
    const again = await tollgate('token', 'rotate', old.id)
    assert.equal(again.code, 1)
    assert.match(again.out, /^The token [0-9a-f]{32} is revoked or was followed already; its end is 20\S+Z\.\n$/)
  })

  it('leaves the old one its grace, to the moment and without being told again', async () => {
    const old = await created()
    await becomes(old.token, 200)
    const { stdout, stderr } = await tollgate('token', 'rotate', old.id, '--grace', '1h')
    assert.match(stderr, new RegExp(`Token ${old.id} is valid until 20`))
    await becomes(stdout.trim(), 200)
    assert.equal(await status(old.token), 200)
    // An hour later: what the gateway has in memory is all that it goes by.
    await withPool(database.connection, pool =>
      pool.query(`update access_tokens set revoked_at = now() + interval '3 seconds' where id = $1`, [old.id]),
    )
    await withPool(database.connection, pool => pool.query(`select pg_notify('tollgate_directory', '')`))
    const [{ until }] = await withPool(
      database.connection,
      async pool =>
        (await pool.query<{ until: number }>(`select revoked_at as until from access_tokens where id = $1`, [old.id])).rows as [
          { until: number },
        ],
    )
    await becomes(old.token, 403)
    assert.ok(Date.now() >= Number(until))
  })

  it('a token in its grace can be revoked at once', async () => {
    const old = await created()
    await tollgate('token', 'rotate', old.id, '--grace', '30d')
    await becomes(old.token, 200)
    assert.equal((await tollgate('revoke', old.id)).code, 0)
    await becomes(old.token, 403)
    assert.equal((await tollgate('revoke', old.id)).code, 1)
  })

  it('two at a time make one that follows', async () => {
    const old = await created()
    const both = await Promise.all(['', ''].map(() => commandLine(environment, 'token', 'rotate', old.id, '--grace', '1h')))
    assert.deepEqual(both.map(({ code }) => code).sort(), [0, 1])
    const loser = both.find(({ code }) => code === 1)!
    if (loser.stdout !== '') assert.match(loser.stderr, /Nothing was changed: the token above is not valid\.\n$/)
    const winner = both.find(({ code }) => code === 0)!
    await becomes(winner.stdout.trim(), 200)
    if (loser.stdout !== '') assert.equal(await status(loser.stdout.trim()), 403)
  })

  it('two at a time with one file leave the token in it that is valid', async () => {
    for (let round = 0; round < 3; round++) {
      const old = await created()
      const output = join(mkdtempSync(join(tmpdir(), 'tollgate-token-')), 'shop.token')
      const words = ['token', 'rotate', old.id, '--output', output]
      const both = await Promise.all(['', '', ''].map(() => commandLine(environment, ...words)))
      assert.deepEqual(both.map(({ code }) => code).sort(), [0, 1, 1])
      await becomes(readFileSync(output, 'utf8').trim(), 200)
      assert.deepEqual(readdirSync(dirname(output)), ['shop.token'])
    }
  })

  it('wrong words are told', async () => {
    const cases: [words: string[], code: number, sentence: RegExp][] = [
      [['0'.repeat(32)], 1, /^There is no token 0{32}\.\n$/],
      [['till'], 2, /^A token is named by the 32 hex characters/],
      [['0'.repeat(32), '--grace', 'soon'], 2, /^--grace must be a number and ms, s, m, h or d/],
    ]
    for (const [words, code, sentence] of cases) {
      const told = await tollgate('token', 'rotate', ...words)
      assert.equal(told.code, code)
      assert.match(told.out, sentence)
    }
  })
})

describe('a command that is killed', () => {
  /** Runs until it waits for the audit, which is held, and is killed there: all of its steps before the end are done. */
  async function killedBeforeTheEnd(...words: string[]): Promise<void> {
    const pool = testPool(database.connection, 2)
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select * from audit_head for update')
    const child: ChildProcess = execFile(join(project, 'bin/tollgate'), words, {
      env: { PATH: process.env.PATH, ...environment },
    })
    await eventually(async () => {
      const { rows } = await pool.query(
        // The one that has written a token; the gateway may wait there too.
        `select from pg_stat_activity as waiting where datname = current_database() and wait_event_type = 'Lock' and query like '%audit_head%'
            and exists (select from pg_locks where pid = waiting.pid and relation = 'access_tokens'::regclass and mode = 'RowExclusiveLock')`,
      )
      return rows.length > 0
    }, 'it waits for the audit')
    child.kill('SIGKILL')
    await once(child, 'exit')
    await holder.query('rollback')
    holder.release()
    // What the dead one had begun is rolled back when the server notices.
    await eventually(async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
      )
      return rows.length === 0
    }, 'its transaction is gone')
    await pool.end()
  }

  it('before the new one is valid: the old one goes on, and the next run does it', async () => {
    const old = await created()
    await killedBeforeTheEnd('token', 'rotate', old.id, '--output', file('killed'))
    assert.equal(existsSync(file('killed')), false)
    assert.equal(await status(readFileSync(pendingOf('killed'), 'utf8').trim()), 403)
    await becomes(old.token, 200)
    const { code, out } = await tollgate('token', 'rotate', old.id, '--output', file('killed'))
    assert.equal(code, 0, out)
    await becomes(readFileSync(file('killed'), 'utf8').trim(), 200)
    await becomes(old.token, 403)
    assert.deepEqual(
      readdirSync(folder).filter(name => name.includes('killed')),
      ['killed'],
    )
  })

  it('after it: the next run does the last step and makes no other', async () => {
    const old = await created()
    await tollgate('token', 'rotate', old.id, '--output', file('late'))
    const token = readFileSync(file('late'), 'utf8')
    renameSync(file('late'), pendingOf('late')) // as a kill before the last step leaves it
    const { code, stderr } = await tollgate('token', 'rotate', old.id, '--output', file('late'))
    assert.equal(code, 0, stderr)
    assert.match(stderr, /^An earlier run was ended before its last step, which is done now\.\n/)
    assert.equal(readFileSync(file('late'), 'utf8'), token)
    await becomes(token.trim(), 200)
  })

  it('what an earlier command left is not taken for this one', async () => {
    await tollgate('token', 'create', '--entity', sandbox.merchantId, '--output', file('other'))
    renameSync(file('other'), pendingOf('other'))
    chmodSync(pendingOf('other'), 0o600)
    const old = await created()
    const { code, out } = await tollgate('token', 'rotate', old.id, '--output', file('other'))
    assert.equal(code, 1)
    assert.match(out, /\.other\.[0-9a-f]{32} holds the valid token [0-9a-f]{32} of an earlier command/)
    await becomes(old.token, 200)
  })
})

it('a seed that names an id twice, one below itself, is refused in a sentence', async () => {
  const { psp, divisions, tokens } = JSON.parse(readFileSync(sandboxSeed, 'utf8'))
  const [id, name] = [sandbox.entityId, 'Below itself']
  const merchants = [{ id, name, channels: [{ id, name }] }]
  const own = { ...tokens[0], entities: [id] }
  writeFileSync(file('circle.json'), JSON.stringify({ psp, divisions: [{ ...divisions[0], merchants }], tokens: [own] }))
  const { code, out } = await tollgate('seed', file('circle.json'))
  assert.equal(code, 1)
  assert.match(out, /the id stands twice in the file/)
})

it('a seed of before does not bring a followed token back', async () => {
  const { psp } = JSON.parse(readFileSync(sandboxSeed, 'utf8'))
  const token = 'w8Yt3Kq9Zs5Vb2Nx7Lm4Rc6Hd1Fg0Pj'
  writeFileSync(file('seed.json'), JSON.stringify({ psp, tokens: [{ label: 'desk', token, entities: [sandbox.merchantId] }] }))
  assert.equal((await tollgate('seed', file('seed.json'))).code, 0)
  await becomes(token, 200)
  const { tokens } = JSON.parse((await tollgate('list', '--json')).stdout) as { tokens: { id: string; label: string }[] }
  await tollgate('token', 'rotate', tokens.find(({ label }) => label === 'desk')!.id)
  await becomes(token, 403)
  assert.match((await tollgate('seed', file('seed.json'))).out, /The token desk is revoked and stays so\./)
  assert.equal(await status(token), 403)
})
