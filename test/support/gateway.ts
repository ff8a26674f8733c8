// A gateway in this process on a port of its own and a database of its own, as a sandbox, and a client that speaks to it over HTTP.

import type pg from 'pg'
import { beginAudit } from '../../src/audit/chain.ts'
import { legacyToken } from '../../src/merchants/access/legacy.ts'
import { applySeed, readSeed, type Seed, sandboxSeed } from '../../src/merchants/seed.ts'
import { type Clock, type Random, systemClock, systemRandom } from '../../src/platform/clock.ts'
import { inTransaction } from '../../src/platform/database/connect.ts'
import type { Log } from '../../src/platform/log.ts'
import { readConfig } from '../../src/start/config.ts'
import { startGateway } from '../../src/start/serve.ts'
import { type Keys, keepKeys, makeKeys, readKeysInUse } from '../../src/vault/keys.ts'
import { makeDatabase, type TestDatabase, testPool } from './database.ts'
import { type Wire, wireTo } from './wire.ts'

export const testKeys: Keys = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 2))

export const sandbox = {
  entityId: '5a11d0000000000000000000000000c1',
  lenientEntityId: '5a11d0000000000000000000000000c2',
  merchantId: '5a11d0000000000000000000000000e1',
  divisionId: '5a11d0000000000000000000000000d1',
  userId: '5a11d0000000000000000000000000f1',
  password: 'sandbox-only',
  accessToken: legacyToken('5a11d0000000000000000000000000f1', 'sandbox-only'),
}

export const visa = {
  paymentBrand: 'VISA',
  'card.number': '4200000000000000',
  'card.holder': 'Jane Jones',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
}

export type Fields = Record<string, string>
// biome-ignore lint/suspicious/noExplicitAny: an answer of the interface, looked at field by field
export type Body = any
export type Reply = { readonly status: number; readonly body: Body; readonly text: string; readonly headers: Headers }

/** Speaks to one process. */
export type Client = {
  readonly baseUrl: string
  post(path: string, fields: Fields, headers?: Record<string, string>): Promise<Reply>
  get(path: string, query?: Fields, headers?: Record<string, string>): Promise<Reply>
  /** A payment on the strict channel with a good card. */
  pay(fields?: Fields): Promise<Reply>
  /** A capture, refund or reversal on the strict channel. */
  refer(id: string, fields: Fields, headers?: Record<string, string>): Promise<Reply>
  advance(by: string): Promise<Reply>
  stop(): Promise<void>
}

export type TestGateway = Client & {
  readonly pool: pg.Pool
  readonly connection: pg.PoolConfig
  readonly logged: readonly string[]
  readonly wire?: Wire
  /** One more gateway on the same database, as another process would be; with other keys if they are given. */
  another(keys?: Keys): Promise<Client>
  /** Stops this process's gateway and starts another on the same database, with other keys if they are given. */
  restart(keys?: Keys): Promise<void>
}

export type TestOptions = {
  readonly clock?: Clock
  /** Set: the clock given is to be compared with that of the database. */
  readonly watched?: true
  readonly random?: Random
  readonly seed?: Seed
  readonly environment?: Record<string, string>
  readonly alone?: boolean
  /** The gateway reaches its database through a wire that the test can cut; the test itself does not. */
  readonly wired?: true
  /** A migrated database of the test's own. */
  readonly database?: TestDatabase
  /** Where simulators of the test's own listen. */
  readonly simulatorsUrl?: string
  /** Less memory than the process has. */
  readonly heapBytes?: number
}

/** Whoever waits for a turn waits as long as it takes: what a test holds may be held for long on a slow machine. */
export const patient: Clock = {
  ...systemClock,
  after: (milliseconds, act) => systemClock.after(milliseconds === 5000 ? 600_000 : milliseconds, act),
}

export async function testGateway(options: TestOptions = {}): Promise<TestGateway> {
  const { clock = systemClock, random = systemRandom, alone = true } = options
  const ownTime = options.clock !== undefined && !options.watched
  const database = options.database ?? (await makeDatabase())
  const pool = testPool(database.connection, 4)
  await beginAudit(pool, testKeys)
  await applySeed(pool, testKeys, clock, random, readSeed(sandboxSeed))
  if (options.seed) await applySeed(pool, testKeys, clock, random, options.seed)
  const config = readConfig({ PORT: '0', HOST: '127.0.0.1', ...options.environment }, '/nonexistent')
  const logged: string[] = []
  const write = (level: string) => (fields: object, message: string) =>
    void logged.push(JSON.stringify({ level, message, ...fields }))
  const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const wire = options.wired && (await wireTo(database.connection))
  const connection = wire?.connection ?? database.connection
  const { simulatorsUrl, heapBytes } = options
  const more = { ...(simulatorsUrl && { simulatorsUrl }), ...(heapBytes && { heapBytes }) }
  const given = { config, connection, clock, random, log, ownTime, ...more }
  const start = async (isAlone = alone, keys = testKeys) => {
    await inTransaction(pool, db => keepKeys(db, keys, clock.real()))
    return startGateway({ ...given, keys, alone: isAlone })
  }
  const leave = async () => {
    await wire?.close()
    await pool.end()
    await database.drop()
  }
  let running = await start().catch(async (error: Error) => {
    await leave()
    throw error
  })

  return Object.assign(
    clientOf(() => running.port),
    {
      pool,
      connection: database.connection,
      logged,
      ...(wire && { wire }),
      async another(keys?: Keys) {
        const { port, stop } = await start(false, keys)
        return Object.assign(
          clientOf(() => port),
          { stop },
        )
      },
      async restart(keys?: Keys) {
        await running.stop()
        // The server ends sessions a moment after they are gone: those of keys that another does not hold are in its way.
        if (keys) await eventually(async () => (await readKeysInUse(pool)).length === 0, 'its sessions are gone')
        running = await start(alone, keys)
      },
      async stop() {
        await running.stop()
        await leave()
      },
    },
  )
}

/** `port` changes with a restart. */
function clientOf(port: () => number): Omit<Client, 'stop'> {
  const client: Omit<Client, 'stop'> = {
    get baseUrl() {
      return `http://127.0.0.1:${port()}`
    },
    post: (path, fields, headers = {}) =>
      exchange(`${client.baseUrl}${path}`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${sandbox.accessToken}`,
          'Content-Type': 'application/x-www-form-urlencoded; charset=UTF-8',
          ...headers,
        },
        body: new URLSearchParams(fields).toString(),
      }),
    get: (path, query = {}, headers = {}) =>
      exchange(`${client.baseUrl}${path}?${new URLSearchParams(query)}`, {
        headers: { Authorization: `Bearer ${sandbox.accessToken}`, ...headers },
      }),
    pay: (fields = {}) =>
      client.post('/v1/payments', {
        entityId: sandbox.entityId,
        paymentType: 'DB',
        amount: '92.00',
        currency: 'EUR',
        ...visa,
        ...fields,
      }),
    refer: (id, fields, headers) => client.post(`/v1/payments/${id}`, { entityId: sandbox.entityId, ...fields }, headers),
    advance: by => client.post('/sandbox/clock', { entityId: sandbox.entityId, advance: by }),
  }
  return client
}

async function exchange(url: string, init: RequestInit): Promise<Reply> {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, body: JSON.parse(text), text, headers: response.headers }
}

/** Tries until something holds, for what happens in the background. Who looks long looks less often: a look may be a whole command. */
export async function eventually<Value>(
  look: () => Promise<Value | undefined | false>,
  what: string,
  seconds = 90,
): Promise<Value> {
  for (const until = Date.now() + seconds * 1000; Date.now() < until; ) {
    const began = Date.now()
    const found = await look()
    if (found) return found
    const rest = Math.min(2 * (Date.now() - began), 500)
    await new Promise(resolve => setTimeout(resolve, Math.max(50, rest)))
  }
  throw new Error(`never happened: ${what}`)
}
