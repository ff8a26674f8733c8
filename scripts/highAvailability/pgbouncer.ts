// PgBouncer between gateway and database: with sessions of its own the gateway works, with those of others it does not start. `npm run high-availability -- pgbouncer`

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/support/freePort.ts'
import type { Cluster } from './cluster.ts'
import { command, countLost, startGateway } from './gateway.ts'
import { startLoad } from './load.ts'
import { type Place, until } from './programs.ts'

export async function tryPooler(place: Place, cluster: Cluster): Promise<void> {
  const users = join(place.folder, 'users.txt')
  writeFileSync(users, '"tollgate" "tollgate-secret"\n')
  const { port } = await cluster.leader()
  const modes = [
    ['session', 0],
    ['transaction', 0],
    ['transaction', 1],
    ['statement', 0],
  ] as const
  for (const [mode, robin] of modes) {
    const listen = await freePort()
    const name = `pgbouncer ${mode} ${robin}`
    const words = { SERVER_PORT: port, LISTEN_PORT: listen, USERS: users, MODE: mode, ROBIN: robin }
    const pooler = place.start(name, '/usr/sbin/pgbouncer', [place.write(`${name}.ini`, 'pgbouncer.ini', words)])
    const url = `postgresql://tollgate:tollgate-secret@127.0.0.1:${listen}/tollgate`
    await until('the pooler listens', async () => place.log(name).includes('process up'))
    const outcome = await startGateway(place, `behind ${name}`, url).then(
      async gateway => {
        const load = startLoad([gateway.url], gateway.account, 8)
        await until('payments are made', async () => load.approvals() > 200)
        const { approved, failed, repeated } = await load.stop()
        const lost = await countLost(gateway, approved)
        const doctor = command(gateway, 'doctor').trim().split('\n').at(-1)
        await gateway.stop()
        return { approved: approved.length, lost, failed, repeated, doctor }
      },
      (error: Error) => error.message.trim(),
    )
    process.stdout.write(`${JSON.stringify({ pooler: mode, roundRobin: robin === 1, outcome }, null, 1)}\n`)
    if ((mode === 'session') !== (typeof outcome === 'object')) process.exitCode = 1
    await pooler.stop()
  }
}
