// Two PostgreSQL nodes with synchronous replication under Patroni, and what an operator should know of them, tried: `npm run high-availability` does
// all, `-- failover` (or `pooler`, `backup`) one. Debian's packages: postgresql-15 etcd-server patroni haproxy pgbouncer.

import { tryBackup } from './backup.ts'
import { missingPrograms, startCluster } from './cluster.ts'
import { tryFailover } from './failover.ts'
import { tryPooler } from './pgbouncer.ts'
import { makePlace } from './programs.ts'

const trials = { failover: tryFailover, pooler: tryPooler, backup: tryBackup }
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(trials)
const missing = missingPrograms()
if (missing.length > 0) {
  process.stderr.write(
    `Not installed: ${missing.join(', ')}. apt-get install postgresql-15 etcd-server patroni haproxy pgbouncer\n`,
  )
  process.exit(1)
}
const place = makePlace()
try {
  const cluster = await startCluster(place)
  for (const name of names) await trials[name as keyof typeof trials](place, cluster)
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\n${place.log('node1').split('\n').slice(-15).join('\n')}\n`)
  process.exitCode = 1
} finally {
  await place.clear()
}
process.exit()
