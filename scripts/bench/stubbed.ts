// A limit: the gateway itself with storage taken out. The same server, routes, directory, rules, seal and connector; the two lanes say at
// once that a row is stored. Only the bench puts a gateway together like this.

import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { limitFailures } from '../../src/audit/failures.ts'
import { systemClock, systemRandom } from '../../src/clock.ts'
import { readConfig } from '../../src/config.ts'
import { connect } from '../../src/database/connect.ts'
import { caller } from '../../src/events/call.ts'
import type { Gateway } from '../../src/gateway.ts'
import { router, routes } from '../../src/http/routes.ts'
import { makeServer } from '../../src/http/server.ts'
import { makeLog } from '../../src/log.ts'
import { openDirectory } from '../../src/merchants/directory.ts'
import { makeCount } from '../../src/metrics.ts'
import { cardSimulator } from '../../src/simulators/cards.ts'
import { buildNumber } from '../../src/start/gateway.ts'
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
const database = connect(connection, fail)
const gateway: Gateway = {
  clock: systemClock,
  random: systemRandom,
  keys,
  directory: await openDirectory(database, keys, systemClock, fail),
  database,
  failures: limitFailures(database.work, fail),
  connectors: new Map([['simulator', cardSimulator(milliseconds => wait(milliseconds))]]),
  egress: config.egress,
  call: caller(config.egress, async () => []),
  methods: new Map(),
  cardBrands: config.cardBrands,
  publicUrl: () => '',
  log,
  count: makeCount(),
  payments: async () => true,
  answers: async () => true,
  build: buildNumber(),
  sandbox: true,
}
const server = makeServer(
  gateway,
  router(
    gateway,
    routes(gateway, [], async () => ''),
  ),
  {
    trustedProxies: config.trustedProxies,
    hosts: { names: config.sandboxHosts },
    requireForwardedTls: false,
    routeName: path => path,
    refusal: () => undefined,
  },
)
const port = await server.listen(0, '127.0.0.1')
takeJobs({ port }, async () => ({}))
