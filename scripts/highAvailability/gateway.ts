// A gateway of a build, on a database that others share.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/freePort.ts'
import type { Account } from './load.ts'
import { type Place, type Program, until } from './programs.ts'

export const project = fileURLToPath(new URL('../..', import.meta.url))

export type Gateway = Program & {
  readonly url: string
  readonly account: Account
  readonly environment: Readonly<Record<string, string>>
}

/** Rejects with what it printed when it ends before it is ready. */
export async function startGateway(place: Place, name: string, databaseUrl: string, build = project): Promise<Gateway> {
  const port = await freePort()
  const dataDir = join(place.folder, 'gateways') // of all: they share their keys
  const environment = { DATABASE_URL: databaseUrl, DATA_DIR: dataDir, PORT: String(port), DEMO_SHOP_PORT: 'off' }
  const program = place.start(name, process.execPath, ['--disable-sigusr1', join(build, 'src/main.ts')], environment, true)
  const url = `http://127.0.0.1:${port}`
  await until(`${name} is ready`, async () => {
    if (program.child.exitCode !== null) return true
    return place.log(name).includes('Ctrl-C stops it.') && (await fetch(`${url}/health`)).ok
  })
  if (program.child.exitCode !== null) throw new Error(place.log(name))
  const account = existsSync(join(dataDir, 'sandbox.json')) ? JSON.parse(readFileSync(join(dataDir, 'sandbox.json'), 'utf8')) : {}
  return { ...program, url, account, environment }
}

/** What `bin/tollgate` prints; throws when it ends with another code than 0. */
export const command = ({ environment }: Gateway, ...words: string[]): string =>
  execFileSync(join(project, 'bin/tollgate'), words, { env: { PATH: process.env.PATH, ...environment }, encoding: 'utf8' })

/** How many answered payments the gateway does not have as they were answered. */
export async function countLost({ url, account }: Gateway, ids: readonly string[]): Promise<number> {
  let lost = 0
  for (const id of ids) {
    const answer = await fetch(`${url}/v1/payments/${id}?entityId=${account.entityId}`, {
      headers: { Authorization: `Bearer ${account.accessToken}` },
    })
    const { result } = (await answer.json()) as { result: { code: string } }
    if (result.code !== '000.100.110') lost++
  }
  return lost
}
