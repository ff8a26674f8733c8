// Files of operators.

import { realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** False for what is not there: that has a message of its own. */
export function othersMayRead(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && (stat.mode & 0o077) !== 0
}

/** Who else could put something else in the place of a file; undefined when nobody could, or when it is not there. */
export function whoMayReplace(path: string): string | undefined {
  if (!statSync(path, { throwIfNoEntry: false })) return undefined
  const real = realpathSync(path)
  const stat = statSync(real)
  if (isOfOthers(stat)) return 'another user may change: it must belong to the user of the gateway, or to root'
  if ((stat.mode & 0o022) !== 0) return 'others may change: set its mode to 0600'
  for (let folder = dirname(real); ; folder = dirname(folder)) {
    const stat = statSync(folder)
    if (isOfOthers(stat)) return `another user may replace, whose folder ${folder} is`
    // In a folder with the sticky bit, as /tmp, names are safe from others.
    if ((stat.mode & 0o022) !== 0 && (stat.mode & 0o1000) === 0)
      return `others may replace, who may write to the folder ${folder}: chmod go-w ${folder}`
    if (folder === dirname(folder)) return undefined
  }
}

const isOfOthers = ({ uid }: Stats): boolean => ![0, process.getuid?.() ?? uid].includes(uid)

/** Not a folder, and no pipe that would be waited for. */
export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true
