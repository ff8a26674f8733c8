// Two PostgreSQL nodes under Patroni, with etcd, on this machine: `patroni.yml` beside this file says how. Debian's packages.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/support/freePort.ts'
import { type Place, type Program, until } from './programs.ts'

export type Node = { readonly name: string; readonly port: number; readonly rest: number; readonly patroni: Program }
export type Cluster = {
  readonly nodes: readonly Node[]
  /** As the gateway is given it. */
  readonly url: string
  leader(): Promise<Node>
  /** SQL as superuser on a node. */
  sql(node: Node, statement: string, database?: string): string
  /** As if the machine had lost its power: Patroni and PostgreSQL at once. */
  kill(node: Node): void
}

export const binaries = '/usr/lib/postgresql/15/bin'

/** What is not installed, of all that the scripts of this folder use. */
export const missingPrograms = (): string[] =>
  [`${binaries}/postgres`, '/usr/bin/etcd', '/usr/bin/patroni', '/usr/sbin/haproxy', '/usr/sbin/pgbouncer'].filter(
    path => !existsSync(path),
  )

export async function startCluster(place: Place): Promise<Cluster> {
  const [client, peer] = [await freePort(), await freePort()]
  const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
  place.start('etcd', '/usr/bin/etcd', [
    ...['--data-dir', join(place.folder, 'etcd'), '--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`],
  ])
  await until('etcd answers', async () => (await fetch(`${clientUrl}/health`)).ok)
  const nodes: Node[] = []
  for (const name of ['node1', 'node2']) {
    const [port, rest] = [await freePort(), await freePort()]
    const words = { NODE: name, FOLDER: place.folder, PORT: port, REST_PORT: rest, ETCD: `127.0.0.1:${client}`, PG_BIN: binaries }
    const patroni = place.start(name, '/usr/bin/patroni', [place.write(`${name}.yml`, 'patroni.yml', words)])
    nodes.push({ name, port, rest, patroni })
    if (name === 'node1') await until('the first node leads', () => isLeader(nodes[0]!))
  }
  const sql = ({ port }: Node, statement: string, database = 'postgres'): string =>
    execFileSync(`${binaries}/psql`, ['-h', place.folder, '-p', String(port), '-U', 'postgres', '-Atqc', statement, database], {
      encoding: 'utf8',
    }).trim()
  await follows(nodes[0]!)
  sql(nodes[0]!, `create role tollgate login password 'tollgate-secret'`)
  sql(nodes[0]!, 'create database tollgate owner tollgate')
  return {
    nodes,
    url: `postgresql://tollgate:tollgate-secret@${nodes.map(({ port }) => `127.0.0.1:${port}`)}/tollgate?target_session_attrs=read-write`,
    leader: () =>
      until('a node leads', async () =>
        (await Promise.all(nodes.map(async node => (await isLeader(node).catch(() => false)) && node))).find(node => node),
      ),
    sql,
    kill(node) {
      const [postmaster] = readFileSync(join(place.folder, node.name, 'postmaster.pid'), 'utf8').split('\n') as [string]
      const sessions = execFileSync('ps', ['-o', 'pid=', '--ppid', postmaster], { encoding: 'utf8' }).trim().split(/\s+/)
      for (const pid of [node.patroni.pid, Number(postmaster), ...sessions.map(Number)]) process.kill(pid, 'SIGKILL')
    },
  }
}

/** Patroni itself must know that the other node has all: before that it would promote nobody. */
export const follows = (leader: Node): Promise<unknown> =>
  until(
    'the other node follows',
    async () => {
      const { members } = (await (await fetch(`http://127.0.0.1:${leader.rest}/cluster`)).json()) as {
        members: { role: string }[]
      }
      return members.some(({ role }) => role === 'sync_standby')
    },
    120,
  )

const isLeader = async ({ rest }: Node): Promise<boolean> => (await fetch(`http://127.0.0.1:${rest}/primary`)).status === 200
