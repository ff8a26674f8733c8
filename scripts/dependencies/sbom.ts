// The bill of materials: what this version is made of, as CycloneDX 1.6, written from the lock file. Where a package carries libraries of others, their files
// are named too: no registry warns of them.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type LockFile, nameOf, type Package, packagesOf } from './licences.ts'

type Component = {
  readonly type: 'library' | 'file'
  readonly name: string
  readonly version?: string
  readonly purl?: string
  readonly scope?: 'required' | 'optional' | 'excluded'
  readonly licenses?: readonly { readonly license: { readonly name: string } }[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly components?: readonly Component[]
}

export type Sbom = {
  readonly bomFormat: 'CycloneDX'
  readonly specVersion: '1.6'
  readonly version: 1
  readonly metadata: {
    readonly timestamp: string
    readonly component: { readonly type: 'application'; readonly name: string; readonly version: string }
  }
  readonly components: readonly Component[]
}

export const sbomOf = (lock: LockFile, project: string, at: Date): Sbom => ({
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: { timestamp: at.toISOString(), component: { type: 'application', name: lock.name, version: lock.version } },
  components: packagesOf(lock).map(([path, one]) => componentOf(path, one, project)),
})

function componentOf(path: string, { version, license, integrity, dev, optional }: Package, project: string): Component {
  const name = nameOf(path)
  const carried = librariesIn(join(project, path))
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    // Excluded: only builds and tests use it.
    scope: dev ? 'excluded' : optional ? 'optional' : 'required',
    ...(license !== undefined && { licenses: [{ license: { name: license } }] }),
    ...(integrity?.startsWith('sha512-') && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
    }),
    ...(carried.length > 0 && { components: carried }),
  }
}

/** Shared libraries below an installed package. OpenSSL's file says which version it is. */
function librariesIn(folder: string): Component[] {
  if (!existsSync(join(folder, 'native'))) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(path => /\.(so(\.[\d.]+)?|dylib)$/.test(path))
    .sort()
    .map(path => {
      const bytes = readFileSync(join(folder, path))
      const version = basename(path).startsWith('libcrypto')
        ? /OpenSSL (\d+\.\d+\.\d+[a-z]?)\b/.exec(bytes.toString('latin1'))?.[1]
        : undefined
      return {
        type: 'file' as const,
        name: basename(path),
        ...(version !== undefined && { version: `OpenSSL ${version}` }),
        hashes: [{ alg: 'SHA-256', content: createHash('sha256').update(bytes).digest('hex') }],
      }
    })
}
