// A change of both keys from its first command to its last, by files alone: each step is given twice, one is killed in its middle, and what the old keys sealed
// and hashed is served after them. And the other credentials of files: who replaces one leaves a row.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { systemRandom } from '../src/platform/clock.ts'
import { readConfig } from '../src/start/config.ts'
import { credentialsOf, figureOfCredentials, noteCredentials } from '../src/start/credentials.ts'
import { keyLine, readKeyLines, writeKeyLines } from '../src/vault/keyFile.ts'
import { makeKeys } from '../src/vault/keys.ts'
import { seal, unseal } from '../src/vault/seal.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { databaseUrl, makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually, sandbox, visa } from './support/gateway.ts'
import { type CommandRun, manyCommands, project, type Started, startProcess } from './support/process.ts'
import { keyPair } from './support/sftpServer.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-key-files-'))
const file = (name: string) => join(folder, 'keys', name)
const linesOf = (name: string) => readFileSync(file(name), 'utf8').trim().split('\n')
const idOf = (kind: 'seal' | 'lookup', hex: string) => makeKeys([Buffer.from(hex, 'hex')], Buffer.from(hex, 'hex'))[kind][0]!.id

let database: TestDatabase
let pool: pg.Pool
let environment: Record<string, string>
let commands: ReturnType<typeof manyCommands>
let gateway: Started
const old = { seal: '', lookup: '' }
let preauthorization = ''

const sftpKey = () => keyPair().private
before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 2)
  environment = {
    DATABASE_URL: databaseUrl(database.connection),
    DATA_DIR: folder,
    SFTP_KEY_FILE: join(folder, 'sftp.key'),
    METRICS_TOKEN_FILE: join(folder, 'metrics.token'),
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(environment.SFTP_KEY_FILE!, sftpKey(), { mode: 0o600 })
  writeFileSync(environment.METRICS_TOKEN_FILE!, 'a-token-of-sixteen-characters', { mode: 0o600 })
  gateway = await startProcess(environment)
  commands = manyCommands(environment)
})
after(async () => {
  commands.stop()
  await gateway.stop()
  await pool.end()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})
const restart = async () => {
  await gateway.stop()
  gateway = await startProcess(environment)
}
async function post(path: string, fields: Record<string, string>): Promise<{ status: number; body: { id: string } }> {
  const response = await fetch(`${gateway.sandbox.baseUrl}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${sandbox.accessToken}` },
    body: new URLSearchParams({ entityId: sandbox.entityId, amount: '92.00', currency: 'EUR', ...fields }),
  })
  return { status: response.status, body: (await response.json()) as { id: string } }
}
const ran: string[] = []
const well = async (...words: string[]): Promise<CommandRun> => {
  ran.push(`bin/tollgate ${words.join(' ')}`)
  const run = await commands.run(...words)
  assert.equal(run.code, 0, run.out)
  return run
}
const given = async (): Promise<string[]> => {
  const { keys } = JSON.parse((await well('keys', 'list', '--json')).stdout) as { keys: { kind: string; given: string }[] }
  return keys.map(({ kind, given }) => `${kind} ${given}`).sort()
}
const audited = async (action: string): Promise<{ subject: string; details: Record<string, string> }[]> =>
  JSON.parse((await well('audit', '--json', '--action', action)).stdout).rows

it('a new key is the second in its file, which nobody else may read, and stays the same when it is asked for again', async () => {
  preauthorization = (await post('/v1/payments', { ...visa, paymentType: 'PA' })).body.id
  for (const kind of ['seal', 'lookup'] as const) {
    old[kind] = linesOf(`${kind}.key`)[0]!
    const { out } = await well('keys', 'add', kind)
    const begun = (await audited('actBegun')).at(-1)!
    assert.deepEqual([begun.details.act, out.startsWith(`${begun.subject} is the second key`)], ['keyAdded', true])
    const [first, second] = linesOf(`${kind}.key`)
    assert.equal(first, old[kind])
    assert.match(out, new RegExp(`^${kind} ${idOf(kind, second!)} is the second key in .*keys prefer ${kind}\n$`))
    assert.equal(statSync(file(`${kind}.key`)).mode & 0o777, 0o600)
    writeFileSync(file(`${kind}.key.new`), 'what a killed command left')
    assert.equal((await well('keys', 'add', kind)).out, out)
    assert.deepEqual(linesOf(`${kind}.key`), [first, second])
    assert.ok(!out.includes(second!), 'a key is shown to nobody')
  }
  assert.deepEqual(await given(), ['lookup newest', 'lookup next', 'seal newest', 'seal next'])
})

it('a key file that is a link stays one: what it leads to gets the keys', () => {
  const [first, next] = ['1a'.repeat(32), '2b'.repeat(32)]
  const place = mkdtempSync(join(folder, 'linked-'))
  writeFileSync(join(place, 'real.key'), `${first}\n`, { mode: 0o600 })
  symlinkSync('real.key', join(place, 'seal.key'))
  writeKeyLines(join(place, 'seal.key'), [
    ...readKeyLines(join(place, 'seal.key'), 'seal'),
    keyLine('seal', Buffer.from(next, 'hex')),
  ])
  assert.equal(readFileSync(join(place, 'real.key'), 'utf8'), `${first}\n${next}\n`)
  assert.ok(lstatSync(join(place, 'seal.key')).isSymbolicLink())
  assert.deepEqual(readdirSync(place).sort(), ['real.key', 'seal.key'])
})

it('what cannot be told of is not done: no key is made, nothing is sealed anew or erased', async () => {
  const before = linesOf('seal.key')
  await pool.query(`create function swallow() returns trigger language plpgsql as $$ begin
      if new.action = 'actBegun' then return null; end if; return new; end $$;
    create trigger swallow before insert on audit for each row execute function swallow()`)
  try {
    // What stands there already is told of again, what does not is made.
    writeFileSync(file('seal.key'), `${before[0]}\n`, { mode: 0o600 })
    for (const words of ['keys add seal', 'keys rewrap', 'retention --run']) {
      const { code, out } = await commands.run(...words.split(' '))
      assert.deepEqual([code, /did not keep the audit as it was written, so nothing was done/.test(out)], [1, true], out)
    }
    assert.deepEqual(linesOf('seal.key'), before.slice(0, 1))
  } finally {
    await pool.query('drop function swallow cascade')
    writeFileSync(file('seal.key'), before.map(line => `${line}\n`).join(''), { mode: 0o600 })
  }
})

it('it becomes the first, once all gateways know it', async () => {
  await restart()
  for (const kind of ['seal', 'lookup'] as const) {
    const [first, second] = linesOf(`${kind}.key`)
    for (let times = 0; times < 2; times++) {
      const { out } = await well('keys', 'prefer', kind)
      assert.match(out, new RegExp(`^${kind} ${idOf(kind, second!)} is the first key`))
      assert.deepEqual(linesOf(`${kind}.key`), [second, first])
    }
  }
  await restart()
  assert.deepEqual(await given(), ['lookup newest', 'lookup older', 'seal newest', 'seal older'])
  for (const kind of ['seal', 'lookup']) {
    const none = await commands.run('keys', 'prefer', kind)
    assert.deepEqual([none.code, /^There is no new key in /.test(none.out)], [1, true])
  }
  const many = await commands.run('keys', 'add', 'lookup')
  assert.deepEqual([many.code, /^A change of the lookup key is under way/.test(many.out)], [1, true])
  assert.equal((await post(`/v1/payments/${preauthorization}`, { paymentType: 'CP' })).status, 200)
})

it('what was sealed is sealed anew by the next command when one is killed, and every record opens', async () => {
  const keys = makeKeys([Buffer.from(old.seal, 'hex')], Buffer.from(old.lookup, 'hex'))
  const ids = Array.from({ length: 6000 }, (_, at) => (at + 1).toString(16).padStart(32, '0'))
  await pool.query(
    `insert into sealed_cards select $1, id, sealed, '2999-01-01' from unnest($2::uuid[], $3::bytea[]) as given (id, sealed)`,
    [sandbox.merchantId, ids, ids.map(id => seal(keys, systemRandom, `card ${sandbox.merchantId} ${id}`, id))],
  )
  const [newest] = linesOf('seal.key')
  const anew = async () =>
    (
      await pool.query(`select 1 from sealed_cards where encode(substring(sealed from 2 for 4), 'hex') = $1`, [
        idOf('seal', newest!),
      ])
    ).rowCount!
  // One row in the middle is held: the command comes so far and no further.
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select 1 from sealed_cards where payment_id = $1 for update', [ids[3000]])
  const child = spawn(join(project, 'bin/tollgate'), ['keys', 'rewrap'], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    stdio: 'ignore',
  })
  const exit = once(child, 'exit')
  await eventually(async () => (await anew()) > 2000, 'some are sealed anew')
  child.kill('SIGKILL')
  await exit
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and query like '%sealed_cards%' and wait_event_type = 'Lock'`
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  await eventually(async () => (await pool.query(waiting)).rowCount === 0, 'its last step is over')
  await holder.query('rollback')
  holder.release()
  const done = await anew()
  assert.ok(done < 6000, 'it was killed before its end')
  const { keys: listed } = JSON.parse((await well('keys', 'list', '--json')).stdout) as {
    keys: { key: string; needs: string[] }[]
  }
  const left = listed.find(({ key }) => key === idOf('seal', old.seal))!.needs.find(need => need.endsWith('card numbers'))
  const all = (await pool.query('select 1 from sealed_cards')).rowCount!
  assert.equal(left, `${all - done} card numbers`)
  const begun = async () => (await audited('actBegun')).filter(({ details }) => details.act === 'sealedAnew')
  assert.deepEqual([(await begun()).length, (await audited('sealedAnew')).length], [1, 0], 'the killed one is told of')
  assert.match((await well('keys', 'rewrap')).out, new RegExp(`^card numbers: ${all - done} sealed anew`))
  assert.deepEqual([(await begun()).length, (await audited('sealedAnew'))[0]!.details['card numbers']], [2, all - done])
  const now = makeKeys([Buffer.from(newest!, 'hex')], Buffer.from(old.lookup, 'hex'))
  const { rows } = await pool.query<{ id: string; sealed: Buffer }>(
    `select payment_id::text as id, sealed from sealed_cards where erase_after = '2999-01-01'`,
  )
  for (const { id, sealed } of rows) {
    const hex = id.replaceAll('-', '')
    assert.equal(unseal(now, `card ${sandbox.merchantId} ${hex}`, sealed), hex)
  }
  assert.equal(rows.length, ids.length)
})

it('what nothing needs is taken out of its file, and kept beside it', async () => {
  await pool.query(`update key_checks set made_at = made_at - interval '73 hours', written_at = written_at - interval '73 hours'`) // three days later
  await well('search', 'rebuild')
  const { out } = await well('keys', 'retire', '--revoke-tokens')
  for (const kind of ['seal', 'lookup'] as const) {
    assert.match(out, new RegExp(`${kind} ${idOf(kind, old[kind])} is retired`))
    assert.deepEqual([linesOf(`${kind}.key`).length, linesOf(`${kind}.key.retired`)], [1, [old[kind]]])
    assert.equal(statSync(file(`${kind}.key.retired`)).mode & 0o777, 0o600)
    // Killed between the two files; or a machine whose file still has it.
    writeFileSync(file(`${kind}.key`), `${linesOf(`${kind}.key`)[0]}\n${old[kind]}\n`)
  }
  assert.deepEqual(await given(), ['lookup newest', 'lookup retired', 'seal newest', 'seal retired'])
  const again = await commands.run('keys', 'prefer', 'seal')
  assert.deepEqual([again.code, linesOf('seal.key')[1]], [1, old.seal], again.out)
  assert.match((await well('keys', 'retire')).out, /^No older key is left\.\nseal /)
  for (const kind of ['seal', 'lookup'] as const)
    assert.deepEqual([linesOf(`${kind}.key`).length, linesOf(`${kind}.key.retired`)], [1, [old[kind]]])
  chmodSync(file('lookup.key.retired'), 0o644)
  assert.match((await commands.run('audit')).out, /lookup\.key\.retired, which others may read/)
  chmodSync(file('lookup.key.retired'), 0o600)
  await restart()
  assert.equal((await post('/v1/payments', { ...visa, paymentType: 'PA' })).status, 200)
  for (const action of ['keyAdded', 'keyPreferred', 'keyRetired'])
    assert.deepEqual(
      [...new Set((await audited(action)).map(({ subject }) => subject.split(' ')[0]))].sort(),
      ['lookup', 'seal'],
      action,
    )
  assert.equal((await audited('sealedAnew')).length > 0, true)
})

it('another key for SFTP or token of the figures leaves a row at the next start, the same one none, whatever the lookup key', async () => {
  assert.deepEqual(await audited('credentialChanged'), []) // through three starts and a change of the lookup key
  writeFileSync(environment.SFTP_KEY_FILE!, sftpKey(), { mode: 0o600 })
  writeFileSync(environment.METRICS_TOKEN_FILE!, 'another-token-of-sixteen-characters', { mode: 0o600 })
  const listed = JSON.parse((await well('keys', 'list', '--json')).stdout).credentials as { name: string; fingerprint: string }[]
  assert.deepEqual(
    listed.map(({ name }) => name),
    ['SFTP_KEY_FILE', 'METRICS_TOKEN_FILE'],
  )
  assert.match((await well('keys', 'list')).stdout, /\n\ncredential +fingerprint +ends\nSFTP_KEY_FILE +SHA256:[\w+/]{43} +-\n/)
  await restart()
  const rows = await audited('credentialChanged')
  assert.deepEqual(
    rows.map(({ subject, details }) => [subject, details.now]),
    listed.map(({ name, fingerprint }) => [name, fingerprint]),
  )
  assert.ok(rows.every(({ details }) => details.before !== details.now && !JSON.stringify(details).includes('token-of')))
})

it('a certificate is known by its fingerprint and its end', { skip: hasOpenssl ? false : 'openssl is not here' }, async () => {
  const keys = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 2))
  const now = Date.now()
  const recorder = { keys, clock: { real: () => now } as never }
  const names: string[] = []
  for (const name of ['one', 'two']) {
    const { cert, key } = makeCertificate(folder, name)
    const credentials = await credentialsOf(readConfig({ TLS_CERT: cert, TLS_KEY: key, DATA_DIR: folder }, folder), keys)
    assert.match(credentials[0]!.fingerprints[0], /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    names.push(credentials[0]!.fingerprints[0])
    const [[labels, seconds]] = figureOfCredentials(credentials, recorder.clock).read() as [[object, number]]
    assert.deepEqual(labels, { credential: 'TLS_CERT' })
    assert.ok(Math.abs(seconds - 2 * 86_400) < 60, `${seconds}`)
    await noteCredentials(pool, recorder, credentials)
  }
  const { rows } = await pool.query(
    `select details from audit where action = 'credentialChanged' and subject = 'TLS_CERT' order by sequence desc`,
  )
  assert.equal(rows.length, 1)
  const { before, now: after, endsAt } = JSON.parse(rows[0].details)
  assert.deepEqual([before, after], names)
  assert.ok(Date.parse(endsAt) > now)
})

it('every command of the page on keys was run here', async () => {
  const { stderr } = await well('token', 'create', '--entity', sandbox.merchantId, '--output', join(folder, 'first.token'))
  const [, token] = /Token ([0-9a-f]{32}) acts for/.exec(stderr)!
  await well('token', 'rotate', token!, '--grace', '24h', '--output', join(folder, 'shop.token'))
  const made = await well('endpoints', 'create', '--entity', sandbox.merchantId, '--url', 'http://127.0.0.1:8099/told')
  const [, endpoint] = /endpoint {2}([0-9a-f]{32})/.exec(made.out)!
  const secrets = async () => JSON.parse((await well('endpoints', 'list', '--json')).stdout).endpoints[0].secrets
  assert.equal(await secrets(), 1)
  await well('endpoints', 'rotate', endpoint!)
  assert.equal(await secrets(), 2)
  await well('endpoints', 'rotate', endpoint!, '--finish')
  assert.equal(await secrets(), 1)
  const page = readFileSync(join(project, 'docs/operating-keys.md'), 'utf8')
  const told = [...page.matchAll(/^ {4,}(bin\/tollgate .*)$/gm)].map(([, command]) => command!)
  assert.ok(told.length >= 9)
  const named = { TOKEN: token!, ENDPOINT: endpoint!, 'shop.token': join(folder, 'shop.token') }
  const exact = told.map(command => Object.entries(named).reduce((text, [word, value]) => text.replace(word, value), command))
  assert.deepEqual(
    exact.filter(command => !ran.includes(command)),
    [],
  )
})
