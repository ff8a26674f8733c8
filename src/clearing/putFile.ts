// Files that the other side fetches from a folder.

import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, type Random, timeOrderedId } from '../platform/clock.ts'
import { isPartOf, partName, readPlainFile, syncFolder } from '../platform/files.ts'

/** Whole or not there: under its name only when all of it is on disk. What is there already with other bytes is another's, and stays. */
export function putFile(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  folder: string,
  name: string,
  content: string,
): void {
  const path = join(folder, name)
  if (existsSync(path)) {
    if (readPlainFile(path, 'noLink').toString() !== content) throw new Error(`${path} is there already, and is not ours`)
  } else {
    // What somebody left who died in between; whoever writes one now begins again.
    for (const left of readdirSync(folder)) if (isPartOf(left, hidden(name))) rmSync(join(folder, left))
    const part = join(folder, partName(hidden(name), timeOrderedId(clock.real(), random)))
    writeFileSync(part, content, { flag: 'wx', mode: 0o600, flush: true })
    renameSync(part, path)
  }
  syncFolder(folder)
}

const hidden = (name: string): string => `.${name}`
