// Which build this is.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Figure } from './metrics.ts'

/** The same on every answer of one build: a hash of the program's version and lock file, and a date. */
export function buildNumber(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const lock = readFileSync(new URL('../../package-lock.json', import.meta.url))
  const hash = createHash('sha1').update(version).update(lock).digest('hex')
  return `${hash}@${version}`
}

/** Which build runs, for whoever watches several. */
export const buildFigure = (): Figure => {
  const [hash, version] = buildNumber().split('@') as [string, string]
  return {
    kind: 'gauge',
    name: 'tollgate_build_info',
    help: 'Always 1: the build that runs stands in the labels.',
    across: 'max',
    read: () => [[{ version, build: hash.slice(0, 8) }, 1]],
  }
}
