// Two nodes with synchronous replication, payments under way, and the node that takes writes killed with -9: what was answered must be there, and the
// interruption is measured. `npm run high-availability`

import { missingPrograms, startCluster } from './cluster.ts'
import { command, countLost, startGateway } from './gateway.ts'
import { startLoad } from './load.ts'
import { freePort, makePlace, until, wait } from './programs.ts'

const missing = missingPrograms()
if (missing.length > 0)
  throw new Error(`Install postgresql-15, etcd-server, patroni, haproxy and pgbouncer first: ${missing.join(', ')} missing.`)

const place = makePlace()
try {
  const cluster = await startCluster(place)
  const proxyPort = await freePort()
  const [one, two] = cluster.nodes as [(typeof cluster.nodes)[0], (typeof cluster.nodes)[0]]
  const words = { PROXY_PORT: proxyPort, PORT1: one.port, PORT2: two.port, REST1: one.rest, REST2: two.rest }
  place.start('haproxy', '/usr/sbin/haproxy', ['-W', '-f', place.write('haproxy.cfg', 'haproxy.cfg', words)])
  const ways = {
    'several hosts': cluster.url,
    HAProxy: cluster.url.replace(/@[^/]*/, `@127.0.0.1:${proxyPort}`).replace(/\?.*/, ''),
  }
  for (const [way, url] of Object.entries(ways)) {
    const leader = await cluster.leader()
    const names = cluster.sql(leader, 'show synchronous_standby_names')
    const gateway = await until(`a gateway starts by ${way}`, () => startGateway(place, `gateway ${way}`, url), 20)
    const load = startLoad([gateway.url], gateway.account, 8)
    await until('payments are made', async () => load.approvals() > 200)
    const killedAt = load.approvals()
    cluster.kill(leader)
    await until('payments are made again', async () => load.approvals() > killedAt + 200, 120)
    const result = await load.stop()
    const lost = await countLost(gateway, result.approved)
    const doctor = command(gateway, 'doctor').trim().split('\n').at(-1)
    const duplicates =
      cluster.sql(await cluster.leader(), `select 1`) && command(gateway, 'notifications', 'check').trim().split('\n').at(-1)
    process.stdout.write(
      `${JSON.stringify({ way, synchronous_standby_names: names, killed: leader.name, approved: result.approved.length, lost, interruptionSeconds: result.longestPause / 1000, failed: result.failed, repeated: result.repeated, doctor, duplicates }, null, 1)}\n`,
    )
    if (lost > 0 || Object.keys(result.failed).length > 0) process.exitCode = 1
    await gateway.stop()
    // The node comes back, is wound back to where the other took over, and follows.
    const again = place.start(leader.name, '/usr/bin/patroni', [`${place.folder}/${leader.name}.yml`])
    Object.assign(leader, { patroni: again })
    const now = await cluster.leader()
    await until(
      'it follows',
      async () => cluster.sql(now, `select count(*) from pg_stat_replication where sync_state = 'sync'`) === '1',
      120,
    )
    await wait(1000)
  }
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\nWhat the programs said stands in ${place.folder}.\n`)
  process.exitCode = 1
} finally {
  if (process.exitCode === 1) process.stderr.write(place.log('node1').split('\n').slice(-15).join('\n'))
  await place.clear()
}
process.exit()
