// Which licences a package may have: what is shipped, and what only builds and tests.

export type Package = {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly resolved?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly devOptional?: boolean
}
export type LockFile = { readonly name: string; readonly version: string; readonly packages: Readonly<Record<string, Package>> }

const allowed: ReadonlySet<string> = new Set([
  'Apache-2.0',
  'MIT',
  'MIT-0',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'Unlicense',
  'MIT OR Apache-2.0',
  '(MIT OR Apache-2.0)',
])

/** Used by tests alone, never shipped nor linked with what is: why each is harmless. */
const allowedInTests: Readonly<Record<string, string>> = {
  'axe-core': 'MPL-2.0: looks at our pages in tests',
  jxon: 'GPL v3, below iso_8583: another implementation that our messages are compared with',
  xmldom: 'LGPL-2.0 or MIT, below jxon: we choose MIT',
}

/** Named by the package's LICENSE alone, or by its package.json in an older way, so that the lock file leaves it out. */
const statedInFile: Readonly<Record<string, string>> = {
  'buildcheck 0.0.7': 'MIT',
  'cpu-features 0.0.10': 'MIT',
  'png-js 2.0.0': 'MIT',
  'ssh2 1.17.0': 'MIT',
}

/** The name of a package by its place below node_modules. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

/** Everything but the project itself. */
export const packagesOf = ({ packages }: LockFile): [path: string, one: Package][] =>
  Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, one]) => {
      const license = one.license ?? statedInFile[`${nameOf(path)} ${one.version}`]
      return [path, { ...one, ...(license !== undefined && { license }) }]
    })

/** A sentence for each package whose licence is not allowed. */
export function refusedLicences(lock: LockFile): string[] {
  return packagesOf(lock)
    .filter(([path, { license, dev }]) => !allowed.has(license ?? '') && !(dev && nameOf(path) in allowedInTests))
    .map(
      ([path, { version, license }]) =>
        `${nameOf(path)} ${version} has the licence ${license ?? 'none'}, which is not on the list.`,
    )
}
