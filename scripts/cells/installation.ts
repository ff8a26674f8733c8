// Cells on one machine, each a gateway process with an embedded database of its own, and the HAProxy before them as `tollgate cells proxy` configures it.

import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { makePool } from '../../src/platform/database/connect.ts'
import { runningEmbedded } from '../../src/platform/database/find.ts'
import { freePort } from '../../test/support/freePort.ts'
import { project } from '../highAvailability/gateway.ts'
import { type Place, type Program, until } from '../highAvailability/programs.ts'
import { seedOf, shopOf } from './shops.ts'

export type RunningCell = {
  readonly name: string
  /** Numbers of its merchants at the beginning. */
  readonly numbers: readonly number[]
  /** Gateway and database are gone at once, as when the machine is. */
  kill(): void
  start(): Promise<void>
  sql<Row extends pg.QueryResultRow>(text: string): Promise<Row[]>
}

export type Installation = {
  readonly url: string
  readonly cells: readonly RunningCell[]
  /** Runs `bin/tollgate` with `--cells`; rejects with what it said when it ends with another code than 0. */
  tollgate(...words: string[]): Promise<string>
}

export async function startInstallation(
  place: Place,
  merchants: Readonly<Record<string, readonly number[]>>,
): Promise<Installation> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const common = {
    SEAL_KEY: '0b'.repeat(32),
    LOOKUP_KEY: '1c'.repeat(32),
    PUBLIC_URL: url,
    TRUSTED_PROXY: '127.0.0.1',
    DEMO_SHOP_PORT: 'off',
  }
  const file = join(place.folder, 'cells.json')
  const pid = join(place.folder, 'haproxy.pid')
  const planned = await Promise.all(
    Object.entries(merchants).map(async ([name, numbers]) => ({
      ...{ name, numbers, gatewayPort: await freePort(), dataDir: join(place.folder, name) },
    })),
  )
  const cells = planned.map(({ name, gatewayPort, dataDir }) => ({
    ...{ name, environment: { ...common, DATA_DIR: dataDir }, gateways: [`127.0.0.1:${gatewayPort}`] },
  }))
  writeFileSync(file, JSON.stringify({ map: 'cells.map', reload: ['sh', '-c', `kill -USR2 $(cat ${pid})`], cells }, null, 1), {
    mode: 0o600,
  })
  const running = planned.map(({ name, numbers, gatewayPort, dataDir }): RunningCell => {
    let program: Program
    const environment = { ...common, DATA_DIR: dataDir, PORT: String(gatewayPort) }
    const isReady = async () => (await fetch(`http://127.0.0.1:${gatewayPort}/health/ready`)).ok
    return {
      name,
      numbers,
      async start() {
        program = place.start(
          name,
          process.execPath,
          ['--disable-sigusr1', '--min-semi-space-size=16', join(project, 'src/main.ts')],
          environment,
          true,
        )
        await until(`${name} is ready`, async () => {
          if (program.child.exitCode !== null) throw new Error(place.log(name))
          return isReady()
        })
      },
      kill() {
        const [postmaster] = readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')
        process.kill(program.pid, 'SIGKILL')
        process.kill(Number(postmaster), 'SIGKILL')
      },
      async sql<Row extends pg.QueryResultRow>(text: string) {
        const pool = makePool(runningEmbedded(dataDir)!, 1, () => {})
        return pool
          .query<Row>(text)
          .then(({ rows }) => rows)
          .finally(() => pool.end())
      },
    }
  })
  await Promise.all(running.map(cell => cell.start()))

  const tollgate = (...words: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const env = { PATH: process.env.PATH, HOME: process.env.HOME }
      execFile(join(project, 'bin/tollgate'), [...words, '--cells', file], { env, timeout: 300_000 }, (error, stdout, stderr) =>
        error ? reject(new Error(`tollgate ${words.join(' ')}: ${stdout}${stderr}`)) : resolve(stdout),
      )
    })
  const configuration = join(place.folder, 'haproxy.cfg')
  const seed = join(place.folder, 'seed.json')
  const proxyText = await tollgate('cells', 'proxy', '--bind', `127.0.0.1:${port}`)
  writeFileSync(configuration, proxyText)
  writeFileSync(join(place.folder, 'cells.map'), '')
  place.start('haproxy', 'haproxy', ['-W', '-f', configuration, '-p', pid], {}, true)
  await until('the proxy listens', async () => (await fetch(`${url}/health`)).ok)
  for (const { name, numbers } of planned) {
    writeFileSync(seed, JSON.stringify(seedOf(numbers)), { mode: 0o600 })
    await tollgate('seed', seed, '--cell', name)
  }
  const shops = planned.flatMap(({ numbers }) => numbers.map(shopOf))
  await until('the proxy knows every merchant', async () => {
    const answers = await Promise.all(
      shops.map(({ channelId, token }) =>
        fetch(`${url}/v1/payments/${'0'.repeat(32)}?entityId=${channelId}`, { headers: { Authorization: `Bearer ${token}` } }),
      ),
    )
    return answers.every(({ status }) => status === 404)
  })
  return { url, cells: running, tollgate }
}
