// Files of operators.

import { statSync } from 'node:fs'

/** False for what is not there: that has a message of its own. */
export function othersMayRead(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && (stat.mode & 0o077) !== 0
}
