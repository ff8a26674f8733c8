// Which processes are really alive. A pid alone proves nothing: after a crash or a restart of the machine the same number
// belongs to somebody else. So every file of ours that names a pid carries the identity of the process beside it.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '../childEnvironment.ts'

/**
 * Tells scripts/setup.mjs that this clone's node_modules is in use, until this process ends.
 * Where node_modules cannot be written, nobody who could change it needs telling: marking is skipped.
 */
export function markRunning(): void {
  const marker = fileURLToPath(new URL(`../../../node_modules/.tollgate-running-${process.pid}`, import.meta.url))
  try {
    writeFileSync(marker, `${processIdentity(process.pid)}\n`)
    process.once('exit', () => rmSync(marker, { force: true })) // also when the start is refused
  } catch {}
}

/** True while the process that had this identity runs. When in doubt it is: the doubtful case must never cost data. */
export function isSameProcess(pid: number, identity: string): boolean {
  const now = processIdentity(pid)
  return now !== undefined && (now === identity || now === 'alive' || identity === 'alive')
}

/**
 * What tells this process from every other that ever had its pid: boot and start time; undefined when none runs.
 * 'alive' where the system does not tell more. scripts/setup.mjs has the same lines in JavaScript; change both.
 */
export function processIdentity(pid: number): string | undefined {
  if (!exists(pid)) return undefined
  try {
    if (process.platform !== 'linux') {
      const asked = { encoding: 'utf8', env: childEnvironment() } as const
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], asked).trim() || undefined
    }
    const fields = statFields(pid)
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined // dead, only not yet collected by its parent
    return `${bootName()}/${fields[19]}`
  } catch {
    return exists(pid) ? 'alive' : undefined // /proc may hide other users' processes
  }
}

/**
 * Where a pid names a process: in another PID namespace, as of a container, and on another machine the same number is another's. A machine keeps its name when it
 * starts again; of a container nothing is sure to be its own for longer than the machine runs. '' where the system does not tell.
 */
export function processPlace(): string {
  try {
    const namespace = readlinkSync('/proc/self/ns/pid')
    return `${(namespace === firstNamespace && machineName()) || bootName()} ${namespace}`
  } catch {
    return ''
  }
}

/** The one that the kernel begins with (PROC_PID_INIT_INO in linux/proc_ns.h). */
const firstNamespace = 'pid:[4026531836]'
/** The kernel's, from its start to its end. */
export const bootName = () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
const machineName = () => (existsSync('/etc/machine-id') ? readFileSync('/etc/machine-id', 'utf8').trim() : '')

/** Ends all that this process has started, and what that has, at once: nothing of it is finished. */
export function killDescendants(): void {
  for (const signal of ['SIGSTOP', 'SIGKILL'] as const) // who stands still starts nothing while the others are looked for
    for (const pid of descendants(process.pid, parentsOfAll())) {
      try {
        process.kill(pid, signal)
      } catch {} // it has ended
    }
}

const descendants = (of: number, parents: readonly (readonly [pid: number, parent: number])[]): number[] =>
  parents.filter(([, parent]) => parent === of).flatMap(([pid]) => [pid, ...descendants(pid, parents)])

function parentsOfAll(): [pid: number, parent: number][] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8', env: childEnvironment() }).trim().split('\n')
    return lines.map(line => line.trim().split(/ +/).map(Number) as [number, number])
  }
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        return [[Number(name), Number(statFields(Number(name))[1])]]
      } catch {
        return [] // it has ended
      }
    })
}

/** From the third on: the second is the program's name in parentheses and may itself hold spaces and parentheses (proc(5)). */
function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function exists(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // it is there, but belongs to someone else
  }
}
