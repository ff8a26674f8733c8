// What is made once for all starts, beside the program.

import { mkdirSync, statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { dirname, join } from 'node:path'
import { whoMayPlace } from './files.ts'

const folders = join(dirname(dirname(import.meta.dirname)), 'node_modules/.cache')

/**
 * What is found in it is run, so it is one in which nobody else could ever put anything, under whatever umask other things are made there. Undefined where there is
 * none, or it cannot be made: then everything is done anew each time.
 */
export function cacheFolder(name: string, cache = folders): string | undefined {
  const folder = join(cache, name)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const isClosed = (statSync(folder).mode & 0o077) === 0
    return isClosed && whoMayPlace(folder, { strict: false }) === undefined ? folder : undefined
  } catch {
    return undefined
  }
}

/** Half of the time of a start is for reading and compiling the program. What was loaded before this call is not kept. */
export function keepCompiled(): void {
  const folder = cacheFolder('compiled')
  if (folder !== undefined) enableCompileCache(folder)
}
