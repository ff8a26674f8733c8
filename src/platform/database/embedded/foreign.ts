// Whose database stands in DATA_DIR/postgres. One that no gateway has made may be another program's, running or not: nothing of it is changed, and nobody is
// sent a signal.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { FolderError } from '../folder.ts'
import { readOwn } from './ownFile.ts'
import { hasOurSocket } from './place.ts'
import { doorsFile, doorsHeading } from './role.ts'

export function refuseForeign(cluster: string): void {
  const own = process.getuid?.() ?? 0
  if (own !== 0 && statSync(cluster).uid !== own) return // it cannot be looked into, and chooseAccount says whose it is
  if (!existsSync(join(cluster, 'PG_VERSION')))
    throw new FolderError(`${cluster} exists but holds no database. Move it away, then start again.`)
  if (!isOurs(cluster))
    throw new FolderError(
      `The database in ${cluster} was made by no gateway: it is left as it is, and so is its server. Give the gateway a DATA_DIR of its own. ` +
        `If a gateway did make it, whose ${doorsFile} was replaced and whose server was last started by hand: put the line "${doorsHeading}" into that file.`,
    )
}

/** Its doors are the gateway's, among an operator's own perhaps. Those of the time before were not, and an operator may have put others there: it then says how its server was last started. */
function isOurs(cluster: string): boolean {
  const textOf = (name: string) => (existsSync(join(cluster, name)) ? readOwn(cluster, name).toString() : '')
  return (
    textOf(doorsFile)
      .split('\n')
      .some(line => line.startsWith(doorsHeading)) || hasOurSocket(textOf('postmaster.opts'))
  )
}
