// Cells in this process, each a gateway with a database and merchants of its own, and the HAProxy before them that `tollgate cells proxy` configures.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Shop, seedOf, shopOf } from '../../scripts/cells/shops.ts'
import { inTransaction } from '../../src/platform/database/connect.ts'
import { keepMode } from '../../src/platform/database/installation.ts'
import { renewMap } from '../../src/start/cellMap.ts'
import { type Cells, readCells } from '../../src/start/cells.ts'
import { type ProxyOptions, proxyConfiguration } from '../../src/start/proxy.ts'
import { keepKeys } from '../../src/vault/keys.ts'
import { databaseUrl } from './database.ts'
import { freePort } from './freePort.ts'
import { eventually, type TestGateway, testGateway, testKeys } from './gateway.ts'

export const withoutHaproxy = spawnSync('haproxy', ['-v']).error ? 'haproxy is missing: apt-get install haproxy' : false

export type TestCells = {
  readonly url: string
  readonly file: string
  readonly given: Cells
  readonly gateways: Readonly<Record<string, TestGateway>>
  /** Of the proxy, as systemd runs it: it reads its files again at USR2. */
  readonly proxy: ChildProcess
  stop(): Promise<void>
}

/** `merchants`: the numbers of those in each cell. */
export async function startCells(
  merchants: Readonly<Record<string, readonly number[]>>,
  own: Record<string, string> = {},
): Promise<TestCells> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-cells-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const gateways: Record<string, TestGateway> = {}
  for (const [name, numbers] of Object.entries(merchants)) {
    gateways[name] = await testGateway({
      seed: seedOf(numbers),
      environment: { PORT: String(await freePort()), PUBLIC_URL: url, TRUSTED_PROXY: '127.0.0.1', ...own },
    })
    await inTransaction(gateways[name]!.pool, db => keepKeys(db, testKeys, Date.now()))
    await keepMode(gateways[name]!.pool, 'sandbox', Date.now())
  }
  const file = join(folder, 'cells.json')
  const reload = ['sh', '-c', `kill -USR2 $(cat ${join(folder, 'haproxy.pid')})`]
  const cells = Object.entries(gateways).map(([name, { baseUrl, connection }]) => ({
    name,
    environment: {
      DATABASE_URL: databaseUrl(connection),
      SEAL_KEY: Buffer.alloc(32, 1).toString('hex'),
      LOOKUP_KEY: Buffer.alloc(32, 2).toString('hex'),
    },
    gateways: [new URL(baseUrl).host],
  }))
  writeFileSync(file, JSON.stringify({ map: 'cells.map', reload, cells }), { mode: 0o600 })
  const given = readCells(file, {})
  const { reload: _, ...quiet } = given
  await renewMap(quiet)
  const { proxy } = await startProxy(given, folder, {}, port)
  const stop = async () => {
    proxy.kill('SIGTERM')
    for (const gateway of Object.values(gateways)) await gateway.stop().catch(() => {}) // a test may have stopped it
    rmSync(folder, { recursive: true, force: true })
  }
  const first = Object.values(merchants).map(([number]) => shopOf(number!))
  await eventually(
    async () => (await Promise.all(first.map(shop => isServed(url, shop)))).every(one => one),
    'the proxy serves every cell',
    20,
  ).catch(async error => {
    await stop()
    throw error
  })
  return {
    url,
    file,
    given,
    gateways,
    proxy,
    stop,
  }
}

/** As systemd runs it. Ends when it listens. `change` is for what no operator sets. */
export async function startProxy(
  given: Cells,
  folder: string,
  options: Partial<ProxyOptions> = {},
  wanted?: number,
  change = (text: string): string => text,
) {
  const port = wanted ?? (await freePort())
  const configuration = join(folder, 'haproxy.cfg')
  writeFileSync(configuration, change(proxyConfiguration(given, { bind: `127.0.0.1:${port}`, ...options })))
  const words = ['-W', '-f', configuration, '-p', join(folder, 'haproxy.pid')]
  const proxy = spawn('haproxy', words, { stdio: ['ignore', 'pipe', 'pipe'] })
  let told = ''
  for (const stream of [proxy.stdout!, proxy.stderr!]) stream.on('data', chunk => (told += chunk))
  const listens = async () => {
    if (proxy.exitCode !== null) throw new Error(told)
    const socket = net.connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').catch(() => undefined)
    socket.destroy()
    return isOpen
  }
  await eventually(listens, 'the proxy listens')
  return { port, proxy }
}

/** The processes of a proxy that work, the newest last. */
export const workersOf = ({ pid }: ChildProcess): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')

/** Milliseconds of processor time that the proxy has taken, all its threads together. */
export function proxyTime(proxy: ChildProcess): number {
  const worker = workersOf(proxy).at(-1)!
  const threads = readdirSync(`/proc/${worker}/task`).map(thread => `/proc/${worker}/task/${thread}/schedstat`)
  return threads.reduce((sum, path) => sum + Number(readFileSync(path, 'utf8').split(' ')[0]), 0) / 1e6
}

async function isServed(url: string, { channelId, token }: Shop): Promise<boolean> {
  const path = `/v1/payments/${'0'.repeat(32)}?entityId=${channelId}`
  const answer = await fetch(`${url}${path}`, { headers: { Authorization: `Bearer ${token}` } }).catch(() => undefined)
  return answer?.status === 404
}
