// Programs that a set-up consists of: started in a folder of its own, written to a log there, and ended with it, last started first.

import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, createWriteStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Program = { readonly child: ChildProcess; readonly pid: number; stop(signal?: NodeJS.Signals): Promise<void> }

export const wait = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Asks until it gets an answer; what is thrown is none. */
export async function until<Value>(what: string, look: () => Promise<Value | undefined | false>, seconds = 90): Promise<Value> {
  let why: unknown
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await wait(100)) {
    const found = await look().catch(error => {
      why = error
    })
    if (found) return found
  }
  throw new Error(`Waited ${seconds} s in vain: ${what}. ${why ?? ''}`)
}

/** A place with programs of one user of the machine. PostgreSQL does not run as root. */
export function makePlace() {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-ha-'))
  const owner = process.getuid?.() === 0 ? statSync('/var/lib/postgresql', { throwIfNoEntry: false }) : undefined
  const user = owner && { uid: owner.uid, gid: owner.gid }
  // Root's gateways take no data folder in one of another user: here each has his own names.
  chmodSync(folder, user ? 0o1777 : 0o755)
  const programs: Program[] = []
  const start = (
    name: string,
    command: string,
    args: readonly string[],
    env: Record<string, string> = {},
    own = false,
  ): Program => {
    const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' })
    const child = spawn(command, args, {
      cwd: folder,
      detached: true,
      env: { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C.UTF-8', ...env },
      ...(own ? {} : user),
    })
    child.stdout!.pipe(log)
    child.stderr!.pipe(log)
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
    const program: Program = {
      child,
      pid: child.pid!,
      async stop(signal = 'SIGTERM') {
        if (child.exitCode === null && child.signalCode === null) child.kill(signal)
        await Promise.race([ended, wait(20_000).then(() => process.kill(-child.pid!, 'SIGKILL'))])
      },
    }
    programs.push(program)
    return program
  }
  return {
    folder,
    /** Whoever the programs run as. */
    user,
    start,
    /** A file made of one beside this script, with words put in. */
    write(name: string, template: string, words: Readonly<Record<string, string | number>>): string {
      const text = readFileSync(new URL(template, import.meta.url), 'utf8')
      const path = join(folder, name)
      const longestFirst = Object.keys(words).sort((one, other) => other.length - one.length)
      writeFileSync(
        path,
        text.replace(new RegExp(`\\b(${longestFirst.join('|')})\\b`, 'g'), word => String(words[word])),
      )
      chmodSync(path, 0o644)
      return path
    },
    log: (name: string) => readFileSync(join(folder, `${name}.log`), 'utf8'),
    async clear() {
      for (const program of programs.reverse()) await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
export type Place = ReturnType<typeof makePlace>
