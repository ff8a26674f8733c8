// A limit: the gateway itself with storage taken out. The same server, routes, directory, rules, seal and connector; the two lanes say at
// once that a row is stored.

import type pg from 'pg'
import { httpTransport } from '../../src/connectors/transport.ts'
import { router } from '../../src/http/router.ts'
import { makeServer } from '../../src/http/server.ts'
import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import { connect } from '../../src/platform/database/connect.ts'
import { caller } from '../../src/platform/egress/call.ts'
import { makeLog } from '../../src/platform/log.ts'
import { assemble } from '../../src/start/assemble.ts'
import { readConfig } from '../../src/start/config.ts'
import { routesOf } from '../../src/start/routes.ts'
import { orderOf, takeJobs } from './parts.ts'

/** The database is read for the directory only. */
export type StubOrder = { readonly dataDir: string; readonly connection: pg.PoolConfig }

const { dataDir, connection } = orderOf<StubOrder>()
const config = readConfig({ DATA_DIR: dataDir }, dataDir)
const log = makeLog(config.logLevel)
const keys = config.keys(() => systemRandom.bytes(32))
const fail = (error: Error) => {
  throw error
}
const database = connect(connection, systemClock, fail)
const { gateway, sources } = await assemble({
  config,
  keys,
  clock: systemClock,
  random: systemRandom,
  database,
  log,
  publicUrl: () => '',
  onError: fail,
  lanes: { insertPayment: async () => true, insertAnswer: async () => true },
  network: { call: caller(systemClock, config.egress, async () => []), transport: httpTransport, acquirers: [] },
})
const server = makeServer(gateway, router(gateway, routesOf(gateway, sources)), {
  trustedProxies: config.trustedProxies,
  hosts: { names: config.sandboxHosts },
  requireForwardedTls: false,
  refusal: () => undefined,
})
const port = await server.listen(0, '127.0.0.1')
takeJobs({ port }, async () => ({}))
