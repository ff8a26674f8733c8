// What a process says of itself to whoever looks after it: alive, able to serve, and to those who may know what it lacks.
import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Request } from '../src/http/answer.ts'
import { healthRoutes } from '../src/http/health.ts'
import type { HttpParts } from '../src/http/parts.ts'
import { router } from '../src/http/router.ts'
import { makeServer } from '../src/http/server.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { poolNames } from '../src/platform/database/connect.ts'
import { eventually, type TestGateway, testGateway } from './support/gateway.ts'

describe('health', () => {
  let gateway: TestGateway
  let ahead = 0
  before(async () => {
    let ticks: (() => void)[] = []
    // The clock of this machine, with the watch over it at hand.
    const clock = {
      ...systemClock,
      real: () => systemClock.real() + ahead,
      every: (milliseconds: number, act: () => void) => {
        ticks = [...ticks, ...(milliseconds === 60_000 ? [act] : [])]
        return systemClock.every(milliseconds, act)
      },
    }
    gateway = await testGateway({ clock, watched: true, wired: true, environment: { TRUSTED_PROXY: '127.0.0.1' } })
    look = () => {
      for (const tick of ticks) tick()
    }
  })
  after(() => gateway.stop())
  let look: () => void

  const ready = async (headers = {}) => gateway.get('/health/ready', {}, headers)
  const isReady = () => eventually(async () => (await ready()).status === 200, 'it is ready')
  /** From this machine the names are told, through the proxy to a stranger they are not. */
  const lacks = async (...names: string[]) => {
    const { body } = await eventually(
      async () => {
        const answer = await ready()
        return answer.status === 503 && answer.body.notReady?.join() === names.join() && answer
      },
      `it lacks ${names}`,
      20,
    )
    assert.equal(body.result.code, '800.800.801')
    const told = await ready({ 'X-Forwarded-For': '203.0.113.9' })
    assert.equal(told.status, 503)
    assert.equal(told.body.notReady, undefined)
    assert.equal((await gateway.get('/health/live')).status, 200)
  }

  it('is ready when all is there', async () => {
    for (const path of ['/health', '/health/live', '/health/ready']) assert.equal((await gateway.get(path)).status, 200, path)
  })

  it('names a migration that is missing, and no other build that has more', async () => {
    await gateway.pool.query(`insert into migrations (name, checksum, applied_at) values ('9999_later.sql', '', now())`)
    await isReady()
    await gateway.pool.query(`update migrations set name = 'x' || name where name like '0001%'`)
    await lacks('migrations')
    await gateway.pool.query(`update migrations set name = substr(name, 2) where name like 'x%'`)
    await isReady()
  })

  it('names keys that others write with and that it does not have', async () => {
    await gateway.pool.query(`insert into key_checks (name, proof, made_at) values ('seal 01020304', '\\x00', now())`)
    await lacks('keys')
    await gateway.pool.query(`delete from key_checks where name = 'seal 01020304'`)
    await isReady()
  })

  it('names a clock that is wrong, and lives on', async () => {
    ahead = 31_000
    look()
    await lacks('clock')
    assert.equal((await gateway.pay()).status, 503)
    ahead = 0
    look()
    await isReady()
    assert.equal((await gateway.pay()).status, 200)
  })

  it('names each way to the database that is silent, and lives on', async () => {
    gateway.wire!.silence()
    await lacks(...['work', 'chains', 'paymentLane', 'answerLane'].map(name => `database ${name}`))
    assert.equal((await gateway.get('/health')).status, 503)
    gateway.wire!.resume()
    await isReady()
  })
})

it('what is worth a word is said where it is known in time, and keeps nobody from being ready', async () => {
  const timers: (() => void)[] = []
  const clock = {
    ...systemClock,
    after(_: number, act: () => void) {
      timers.push(act)
      return { cancel() {}, unref: () => undefined as never }
    },
  }
  const pool = { query: async () => {} }
  const database = Object.fromEntries(poolNames.map(name => [name, pool]))
  const parts = { database, random: systemRandom, clock, build: 'test', log: {} } as unknown as HttpParts
  const saying = async (says: () => Promise<Record<string, string>>) => {
    const ready = healthRoutes(parts, { checks: {}, says, mayKnow: () => true })[2]!
    const answer = ready.answer({ query: '', headers: {}, number: '0'.repeat(32) } as unknown as Request, {})
    await new Promise(setImmediate)
    for (const act of timers.splice(0)) act()
    const { status, body } = await answer
    return [status, JSON.parse(String(body)).word]
  }
  assert.deepEqual(await saying(async () => ({ word: 'here' })), [200, 'here'])
  assert.deepEqual(await saying(() => Promise.reject(new Error('away'))), [200, undefined])
  assert.deepEqual(await saying(() => new Promise(() => {})), [200, undefined])
})

it('in live mode behind a proxy whoever looks after the process needs neither, and all others do', async () => {
  const quiet = () => {}
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const parts = {
    random: systemRandom,
    clock: systemClock,
    build: 'test',
    count: { request: quiet },
    publicUrl: () => '',
    log,
  } as unknown as HttpParts
  const other = { method: 'GET', path: '/other', callers: 'anyone', answer: () => ({ status: 200, body: '{}' }) } as const
  const [, live] = healthRoutes(parts, { checks: {}, says: async () => ({}), mayKnow: () => true })
  const server = makeServer(parts, router(parts, [live!, other]), {
    trustedProxies: new BlockList(),
    requireForwardedTls: true,
    hosts: {},
    refusal: () => undefined,
  })
  const port = await server.listen(0, '127.0.0.1')
  const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
  assert.deepEqual([await status('/health/live'), await status('/other')], [200, 403])
  await server.close()
})
