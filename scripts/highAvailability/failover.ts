// Payments are under way, and the node that takes writes is killed with -9: what was answered must be there, once, and the interruption is measured. The
// database is one of several cells, and a gateway begins meanwhile that cannot know whether it was put back: the one that lived through it serves everybody again.

import { freePort } from '../../test/support/freePort.ts'
import { type Cluster, follows } from './cluster.ts'
import { command, countLost, startGateway } from './gateway.ts'
import { startLoad } from './load.ts'
import { type Place, until } from './programs.ts'

export async function tryFailover(place: Place, cluster: Cluster): Promise<void> {
  const proxyPort = await freePort()
  const [one, two] = cluster.nodes as [Cluster['nodes'][0], Cluster['nodes'][0]]
  const words = { PROXY_PORT: proxyPort, PORT1: one.port, PORT2: two.port, REST1: one.rest, REST2: two.rest }
  place.start('haproxy', '/usr/sbin/haproxy', ['-W', '-f', place.write('haproxy.cfg', 'haproxy.cfg', words)])
  const ways = {
    'several hosts': cluster.url,
    HAProxy: cluster.url.replace(/@[^/]*/, `@127.0.0.1:${proxyPort}`).replace(/\?.*/, ''),
  }
  for (const [way, url] of Object.entries(ways)) {
    const leader = await cluster.leader()
    const standbyNames = cluster.sql(leader, 'show synchronous_standby_names')
    const gateway = await startGateway(place, `gateway by ${way}`, url)
    cluster.sql(leader, 'update installation set in_cells = true', 'tollgate') // as `tollgate cells map` writes it
    const load = startLoad([gateway.url], gateway.account, 8)
    await until('payments are made', async () => load.approvals() > 200)
    const before = load.approvals()
    cluster.kill(leader)
    const begins = until('another gateway begins', () => startGateway(place, `gateway meanwhile by ${way}`, url), 120)
    await until('payments are made again', async () => load.approvals() > before + 200, 120)
    const begun = await begins
    const heldFirst = place.log(`gateway meanwhile by ${way}`).includes('merchants are refused')
    const { approved, takenBack, longestPause, failed, repeated } = await load.stop()
    const lost = await countLost(gateway, approved)
    await until('the gateway that began meanwhile serves', async () => (await countLost(begun, approved.slice(-1))) === 0)
    const doctor = command(gateway, 'doctor').trim().split('\n').at(-1)
    const now = await cluster.leader()
    const twice = cluster.sql(
      now,
      `select count(*) from (select from payments where payment_type = 'DB' group by merchant_transaction_id having count(*) > 1) one`,
      'tollgate',
    )
    const held = cluster.sql(now, 'select count(*) from merchant_moves where put_back_at is not null', 'tollgate')
    const filesHeld = cluster.sql(now, 'select files_held from installation', 'tollgate')
    const told = {
      way,
      heldFirst,
      held,
      filesHeld,
      standbyNames,
      killed: leader.name,
      approved: approved.length,
      lost,
      twice,
      interruptionSeconds: longestPause / 1000,
    }
    process.stdout.write(`${JSON.stringify({ ...told, takenBack, failed, repeated, doctor }, null, 1)}\n`)
    if (lost > 0 || twice !== '0' || held !== '0' || filesHeld !== 'f' || Object.keys(failed).length > 0) process.exitCode = 1
    await gateway.stop()
    await begun.stop()
    // The node comes back, is wound back to where the other took over, and follows.
    Object.assign(leader, { patroni: place.start(leader.name, '/usr/bin/patroni', [`${place.folder}/${leader.name}.yml`]) })
    await follows(now)
  }
}
