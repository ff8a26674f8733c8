// What a killed gateway left running: its database server is stopped before a new one starts on the same folder.

import { spawnSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from '../../childEnvironment.ts'
import { systemClock } from '../../clock.ts'
import { FolderError } from '../folder.ts'
import { isSameProcess, processIdentity } from '../running.ts'
import { readOwn, removeFolder, writeOwn } from './ownFile.ts'
import { patienceMs } from './place.ts'
import { readServerFile, serverFile } from './serverFile.ts'

/** Stops the server that a killed gateway left on this folder. Nothing is ever sent to a process that is not it. */
export async function stopOrphan(cluster: string, say: (text: string) => void): Promise<void> {
  let text: string
  try {
    text = readOwn(cluster, serverFile).toString()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    if (error instanceof FolderError) throw error
    throw new FolderError(`${join(cluster, serverFile)} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  const { pid } = readServerFile(text)
  const identity = processIdentity(pid)
  if (identity === undefined || !isServerOn(pid, cluster)) {
    // A pid that is somebody else's since a crash of the machine, or a dead process that nobody collects, PostgreSQL takes
    // for a living server. It passes over its parent's pid, and still looks for sessions that outlived the old server;
    // deleting the file would prevent that.
    writeOwn(cluster, serverFile, text.replace(/^.*/, String(process.pid)))
    return
  }
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

/** Clears away what a command that was killed has put together in a folder of its own, with the server that it had started there. */
export async function clearDraft(draft: string, say: (text: string) => void): Promise<void> {
  const cluster = join(draft, 'postgres')
  await stopOrphan(cluster, say)
  removeFolder(draft)
}

/** Whether the process is a PostgreSQL server whose data folder this is: its working folder, or else its arguments, say so. */
function isServerOn(pid: number, cluster: string): boolean {
  if (process.platform !== 'linux') {
    const asked = { encoding: 'utf8', env: childEnvironment() } as const
    const line = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], asked).stdout ?? ''
    return line.includes('postgres') && line.includes(` -D ${cluster} `)
  }
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    if (!/(^|\/)postgres$/.test(args[0] ?? '')) return false
    return args[args.indexOf('-D') + 1] === cluster || readlinkSync(`/proc/${pid}/cwd`) === cluster
  } catch {
    return false // ended in this moment, or not ours to look at
  }
}
