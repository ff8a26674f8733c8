// What a killed gateway left running: its database server is stopped before a new one starts on the same folder.

import { spawnSync } from 'node:child_process'
import { readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from '../../childEnvironment.ts'
import { systemClock } from '../../clock.ts'
import { FolderError } from '../folder.ts'
import { isSameProcess, processIdentity } from '../running.ts'
import { readOwn, removeFolder, writeOwn } from './ownFile.ts'
import { hasOurSocket, patienceMs } from './place.ts'
import { readServerFile, serverFile } from './serverFile.ts'

/** Stops the server that a killed gateway left on this folder. Nothing is ever sent to a process that is not it. */
export async function stopOrphan(cluster: string, say: (text: string) => void): Promise<void> {
  const text = textOfServer(cluster)
  if (text === undefined) return
  const { pid } = readServerFile(text)
  const identity = processIdentity(pid)
  const commandLine = identity === undefined ? undefined : serverOn(pid, cluster)
  if (identity === undefined || commandLine === undefined) return
  if (!hasOurSocket(commandLine))
    throw new FolderError(`A database server that no gateway has started runs on ${cluster} (pid ${pid}). Stop it first.`)
  say(`Stopping the database server that an earlier gateway left running (pid ${pid}) ...`)
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    // fast shutdown; then at once, to be recovered at the next start
    try {
      process.kill(pid, signal)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ESRCH')
        throw new FolderError(`A database server of another user runs on ${cluster} (pid ${pid}). Stop it first.`)
    }
    for (const until = systemClock.real() + patienceMs; systemClock.real() < until; await systemClock.sleep(25)) {
      if (!isSameProcess(pid, identity)) return
    }
  }
  throw new FolderError(`The database server on ${cluster} (pid ${pid}) does not stop. Stop it by hand, then start again.`)
}

/**
 * A pid that is somebody else's since a crash of the machine, or a dead process that nobody collects, PostgreSQL takes for a living server. It passes over
 * its parent's pid, and still looks for sessions that outlived the old server; deleting the file would prevent that. A server that cannot be seen from here
 * would end at another's pid: whoever writes it has asked its socket before.
 */
export function takeServerFile(cluster: string): void {
  const text = textOfServer(cluster)
  if (text !== undefined) writeOwn(cluster, serverFile, text.replace(/^.*/, String(process.pid)))
}

function textOfServer(cluster: string): string | undefined {
  try {
    return readOwn(cluster, serverFile).toString()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (error instanceof FolderError) throw error
    throw new FolderError(`${join(cluster, serverFile)} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/** Clears away what a command that was killed has put together in a folder of its own, with the server that it had started there. */
export async function clearDraft(draft: string, say: (text: string) => void): Promise<void> {
  const cluster = join(draft, 'postgres')
  await stopOrphan(cluster, say)
  removeFolder(draft)
}

/** The command line of a process that is a PostgreSQL server whose data folder this is: its working folder, or else its arguments, say so. */
function serverOn(pid: number, cluster: string): string | undefined {
  if (process.platform !== 'linux') {
    const asked = { encoding: 'utf8', env: childEnvironment() } as const
    const line = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], asked).stdout ?? ''
    return line.includes('postgres') && line.includes(` -D ${cluster} `) ? line : undefined
  }
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    if (!/(^|\/)postgres$/.test(args[0] ?? '')) return undefined
    const isItsFolder = args[args.indexOf('-D') + 1] === cluster || readlinkSync(`/proc/${pid}/cwd`) === realpathSync(cluster)
    return isItsFolder ? args.join(' ') : undefined
  } catch {
    return undefined // ended in this moment, or not ours to look at
  }
}
