// A server of one's own is backed up by PostgreSQL's tools: an archive of its WAL and pg_basebackup, restored to a moment between two payments. The
// commands are those of docs/operating-availability.md.

import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/support/freePort.ts'
import { binaries, type Cluster } from './cluster.ts'
import { command, countLost, startGateway } from './gateway.ts'
import { startLoad } from './load.ts'
import { type Place, until } from './programs.ts'

export async function tryBackup(place: Place, cluster: Cluster): Promise<void> {
  const leader = await cluster.leader()
  const [archive, base, restored] = ['archive', 'base', 'restored'].map(name => join(place.folder, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(archive)
  if (place.user) chownSync(archive, place.user.uid, place.user.gid)
  // archive_mode wants a restart: Patroni does it on both nodes.
  const settings = { archive_mode: 'on', archive_timeout: 60, archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f` }
  for (const { rest } of cluster.nodes)
    await fetch(`http://127.0.0.1:${rest}/config`, {
      method: 'PATCH',
      body: JSON.stringify({ postgresql: { parameters: settings } }),
    })
  await until(
    'the setting has come',
    async () => cluster.sql(leader, `select pending_restart from pg_settings where name = 'archive_mode'`) === 't',
  )
  for (const { rest } of cluster.nodes) await fetch(`http://127.0.0.1:${rest}/restart`, { method: 'POST', body: '{}' })
  await until('the archive is on', async () => cluster.sql(leader, 'show archive_mode') === 'on')
  const gateway = await until('a gateway starts', () => startGateway(place, 'gateway with archive', cluster.url))
  const first = startLoad([gateway.url], gateway.account, 4)
  await until('payments are made', async () => first.approvals() > 50)
  const asUser = { ...place.user, stdio: 'pipe' as const, encoding: 'utf8' as const }
  const password = { PGPASSWORD: 'replicator-secret', PATH: process.env.PATH }
  const backup = ['-h', '127.0.0.1', '-p', String(leader.port), '-U', 'replicator', '-D', base, '-X', 'stream', '-c', 'fast']
  execFileSync(`${binaries}/pg_basebackup`, backup, { ...asUser, env: password })
  const { approved } = await first.stop()
  execFileSync(`${binaries}/pg_verifybackup`, [base], asUser)
  const moment = await until('a moment', async () =>
    cluster.sql(leader, `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00')`),
  )
  const second = startLoad([gateway.url], gateway.account, 1)
  await until('payments are made after it', async () => second.approvals() > 5)
  const after = (await second.stop()).approved
  await gateway.stop()
  const last = cluster.sql(leader, 'select pg_walfile_name(pg_switch_wal())')
  await until('it is archived', async () => cluster.sql(leader, 'select last_archived_wal from pg_stat_archiver') >= last)
  execFileSync('cp', ['-a', base, restored])
  writeFileSync(join(restored, 'recovery.signal'), '')
  const port = await freePort()
  const options = {
    listen_addresses: '127.0.0.1',
    port,
    restore_command: `cp ${archive}/%f %p`,
    recovery_target_time: moment,
    recovery_target_action: 'promote',
    unix_socket_directories: place.folder,
    synchronous_standby_names: '',
    archive_mode: 'off',
  }
  writeFileSync(
    join(restored, 'postgresql.auto.conf'),
    Object.entries(options)
      .map(([name, value]) => `${name} = '${value}'\n`)
      .join(''),
  )
  writeFileSync(join(restored, 'pg_hba.conf'), 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n')
  writeFileSync(join(restored, 'postgresql.conf'), 'max_connections = 200\n')
  const server = place.start('restored', `${binaries}/postgres`, ['-D', restored])
  const there = await until('a gateway starts on what was restored', () =>
    startGateway(place, 'gateway on the restored', `postgresql://tollgate:tollgate-secret@127.0.0.1:${port}/tollgate`),
  )
  const lost = await countLost(there, approved)
  const undone = await countLost(there, after)
  const doctor = command(there, 'doctor').trim().split('\n').at(-1)
  process.stdout.write(
    `${JSON.stringify({ backup: 'pg_basebackup', moment, before: approved.length, lost, after: after.length, undone, doctor }, null, 1)}\n`,
  )
  if (lost > 0 || undone !== after.length) process.exitCode = 1
  await there.stop()
  await server.stop('SIGINT')
}
