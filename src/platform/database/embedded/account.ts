// Whom the server runs as. PostgreSQL refuses root, so root hands it to an unprivileged user that can reach the data folder.

import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import { childEnvironment } from '../../childEnvironment.ts'
import { FolderError } from '../folder.ts'
import type { Binaries } from './binaries.ts'

/** Whom the server's processes run as, and the program put in front of them that makes it so. */
export type SystemAccount = { name: string; uid: number; gid: number; prefix: string[]; options: SpawnOptions }

/** A user that is there for this database alone. */
const ownUser = 'tollgate'
/** Of nobody in particular: other programs run as it too, and whatever does can read and change the database. */
const sharedUser = 'nobody'

/**
 * PostgreSQL refuses to run as root. Root's gateway gives it to a user who can read nothing of root's, the keys among it: whoever has the database
 * already, the one that `user` names, or one of its own where there is such. Where folders on the way are closed to that user (/root is), setpriv leaves
 * a sandbox's server the one ability to pass and read. `strict`, for live mode, refuses that, and a user whom other programs share.
 */
export function chooseAccount(
  folder: string,
  cluster: string,
  binaries: Binaries,
  { strict, user }: { strict: boolean; user: string | undefined },
): SystemAccount {
  const env = childEnvironment() // no PG* variables of the surroundings
  const options: SpawnOptions = { cwd: '/', env }
  const own = process.getuid?.() ?? 0
  const clusterOwner = existsSync(cluster) ? statSync(cluster).uid : undefined
  if (own !== 0) {
    if (clusterOwner !== undefined && clusterOwner !== own) {
      const owner = accountOf(clusterOwner).name
      throw new FolderError(
        `The database in ${cluster} belongs to user ${owner}, but this gateway runs as ${accountOf(own).name}. ` +
          `Start it as before, or hand the folder over: chown -R ${accountOf(own).name} ${folder}`,
      )
    }
    return { ...accountOf(own), prefix: [], options }
  }
  if (user !== undefined && (user === 'root' || !isUser(user)))
    throw new FolderError(
      `EMBEDDED_USER names ${user}, whom PostgreSQL cannot run as: it must be a user of this machine, and not root.`,
    )
  const account = accountOf(clusterOwner || (user ?? (isUser(ownUser) ? ownUser : sharedUser)))
  if (user !== undefined && user !== account.name)
    throw new FolderError(
      `The database in ${cluster} belongs to user ${account.name}, but EMBEDDED_USER names ${user}: hand it over with chown -R ${user} ${cluster}`,
    )
  if (strict && account.name === sharedUser)
    throw new FolderError(
      `Other programs run as ${sharedUser} too, and could read and change the database: make a user of its own (useradd --system ${ownUser}, or another ` +
        `that EMBEDDED_USER names)${clusterOwner ? ` and hand it over (chown -R ${ownUser} ${cluster})` : ''}, or start the gateway as an ordinary user.`,
    )
  // Root's own is a cluster put back from a backup by root.
  if (clusterOwner === 0) execFileSync('chown', ['-hR', `${account.uid}:${account.gid}`, cluster], { env })
  letPass(folder)
  const barrier = firstClosed(folder, account) ?? firstClosed(binaries.postgres, account)
  if (barrier === undefined) return { ...account, prefix: [], options: { ...options, uid: account.uid, gid: account.gid } }
  const prefix = [
    'setpriv',
    `--reuid=${account.uid}`,
    `--regid=${account.gid}`,
    '--clear-groups',
    '--no-new-privs',
    ...['--inh-caps', '--ambient-caps', '--bounding-set'].map(set => `${set}=-all,+dac_read_search`),
    // Without it access(2), with which the server looks for its own files, ignores the ability (capabilities(7)).
    '--securebits=+no_setuid_fixup',
  ]
  const probe = strict ? undefined : spawnSync('setpriv', [...prefix.slice(1), binaries.postgres, '--version'], { cwd: '/', env })
  if (probe?.status === 0) return { ...account, prefix, options }
  throw new FolderError(
    `PostgreSQL does not run as root, and user ${account.name}, who runs it instead, cannot reach ${barrier}: ` +
      `let others pass that folder (chmod o+x ${barrier}), put the program and DATA_DIR elsewhere, or start the gateway as an ordinary user.`,
  )
}

const isUser = (name: string): boolean => knownUsers().some(([known]) => known === name)

const knownUsers = (): string[][] =>
  existsSync('/etc/passwd')
    ? readFileSync('/etc/passwd', 'utf8')
        .split('\n')
        .map(line => line.split(':'))
    : []

function accountOf(who: number | string): { name: string; uid: number; gid: number } {
  if (who === process.getuid?.()) {
    try {
      const { username, uid, gid } = userInfo()
      return { name: username, uid, gid }
    } catch {
      return { name: String(who), uid: Number(who), gid: process.getgid?.() ?? Number(who) }
    }
  }
  const found = knownUsers().find(([name, , uid]) => name === who || uid === String(who))
  if (found !== undefined) return { name: String(found[0]), uid: Number(found[2]), gid: Number(found[3]) }
  const uid = typeof who === 'number' ? who : 65534
  return { name: String(who), uid, gid: uid }
}

/** Others may pass a data folder of root's, and nothing more: what is in it has modes of its own. */
export function letPass(folder: string): void {
  if (process.getuid?.() === 0) chmodSync(folder, statSync(folder).mode | 0o001)
}

/** Of what the server works with beside its own files. Its abilities, where it has any, pass all folders. */
export function refuseClosed(folder: string, account: SystemAccount): void {
  const isRootsServer = process.getuid?.() === 0 && account.prefix.length === 0
  const barrier = isRootsServer ? firstClosed(realpathSync(folder), account) : undefined
  if (barrier !== undefined)
    throw new FolderError(
      `User ${account.name}, who runs the database, cannot reach ${folder}, where its archive is: let others pass ${barrier} (chmod o+x ${barrier}), or put the archive elsewhere.`,
    )
}

/** The first folder on the way, the last one included, that this user may not enter. */
function firstClosed(path: string, { uid, gid }: { uid: number; gid: number }): string | undefined {
  const above = path === dirname(path) ? undefined : firstClosed(dirname(path), { uid, gid })
  if (above !== undefined) return above
  const stat = statSync(path)
  const bit = stat.uid === uid ? 0o100 : stat.gid === gid ? 0o010 : 0o001
  return stat.mode & bit ? undefined : path
}

export function start(program: string, args: string[], account: SystemAccount, options: SpawnOptions): ChildProcess {
  const [command = program, ...rest] = [...account.prefix, program, ...args]
  return spawn(command, rest, { ...account.options, ...options })
}
