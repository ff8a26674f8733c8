// Which database the gateways of a cell work on, and whether it is the one that a file names: a copy of its files on another server is another one, and so is what
// served before a fail-over.

import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { keepMode } from '../src/platform/database/installation.ts'
import { databaseOfCell } from '../src/start/gatewayDatabase.ts'
import { withPool } from './support/database.ts'
import { eventually, type TestGateway, testGateway } from './support/gateway.ts'
import { type PostgresServer, postgresServers } from './support/postgres.ts'

const servers = postgresServers()
let cell: PostgresServer
let gateway: TestGateway
before(async () => {
  cell = await servers.server()
  const database = await cell.make('cell')
  await withPool(database.connection, pool => keepMode(pool, 'sandbox', Date.now()))
  gateway = await testGateway({ database })
})
after(async () => {
  await gateway.stop()
  await servers.stop()
})

const hostOf = ({ baseUrl }: { readonly baseUrl: string }): string => new URL(baseUrl).host
const databaseOn = (server: PostgresServer, ...gateways: string[]) =>
  withPool({ connectionString: server.urlOf('cell') }, pool => databaseOfCell(pool, gateways))
const saysOf = async () => (await (await fetch(`${gateway.baseUrl}/health/ready`)).json()) as Record<string, unknown>

/** Says this at /health/ready, as a gateway of another release would. */
async function gatewaySaying(says: Record<string, unknown>): Promise<{ readonly host: string; readonly server: Server }> {
  const server = createServer((_, response) => response.end(JSON.stringify(says))).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

test('a copy of its files that takes writes is another database, also for a gateway that lives while its own server begins anew', async () => {
  const { database, server } = await saysOf()
  assert.deepEqual(await databaseOn(cell, hostOf(gateway)), { database })
  await cell.stop()
  const copy = await servers.server([], cell)
  await cell.start()
  await copy.pool.query('select pg_promote()')
  await eventually(async () => (await saysOf()).server !== server && (await saysOf()).server !== undefined, 'it says the new one')
  assert.deepEqual(await databaseOn(cell, hostOf(gateway)), { database })
  const another = { why: `its gateway ${hostOf(gateway)} works on another database than the file names` }
  assert.deepEqual(await databaseOn(copy, hostOf(gateway)), another)
  assert.deepEqual(await databaseOn(copy, '127.0.0.1:9', hostOf(gateway)), another, 'one that answers is enough')
})

test('a gateway that does not say which server it is on is compared as far as it says, and one that says nothing is not believed', async () => {
  const { database, ...said } = await saysOf()
  const [older, oldest, stranger] = await Promise.all([{ database }, {}, { database: 'other' }].map(gatewaySaying))
  assert.deepEqual(await databaseOn(cell, older!.host), { database })
  assert.deepEqual(await databaseOn(cell, oldest!.host, older!.host), { database })
  assert.ok('why' in (await databaseOn(cell, older!.host, stranger!.host)))
  const unsure = 'none of its gateways says which database it works on: start one, and ask from its network'
  assert.deepEqual(await databaseOn(cell, oldest!.host, '127.0.0.1:9'), { database, unsure })
  assert.deepEqual(await databaseOn(cell), { database }, 'there is nobody to ask')
  assert.match(String(said.server), /^[0-9a-f]{32}$/)
  for (const { server } of [older!, oldest!, stranger!]) server.close()
})
