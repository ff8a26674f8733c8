// A folder in memory for all that tests write, where the machine has one: most of what a database costs here is making and removing its files.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processIdentity } from '../../src/platform/database/running.ts'

const memory = '/dev/shm'
const bytesLeast = 6 * 2 ** 30
const ours = /^tollgate-tests-(\d+)$/

/** None where memory is short, programs may not run there (as in many containers), or TMPDIR says where temporary files belong. */
export function inMemory(): { readonly path: string; remove(): void } | undefined {
  if (process.env.TMPDIR !== undefined || !hasRoom()) return undefined
  // What runs have left that were killed.
  for (const name of readdirSync(memory)) {
    const [, pid] = ours.exec(name) ?? []
    if (pid !== undefined && processIdentity(Number(pid)) === undefined)
      rmSync(join(memory, name), { recursive: true, force: true })
  }
  const path = join(memory, `tollgate-tests-${process.pid}`)
  const remove = () => rmSync(path, { recursive: true, force: true })
  try {
    mkdirSync(path, { mode: 0o755 })
    const program = join(path, 'runs')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    execFileSync(program)
    rmSync(program)
    return { path, remove }
  } catch {
    remove()
    return undefined
  }
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= bytesLeast
  } catch {
    return false
  }
}
