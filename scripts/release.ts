// Makes the release of the commit that is checked out: an archive of what runs, the bill of materials, and their sums. `npm run release [-- FOLDER]`. The same commit
// gives the same bytes: nothing of the day, the machine or the working folder is in them.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { LockFile } from './dependencies/licences.ts'
import { sbomOf } from './dependencies/sbom.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const folder = resolve(process.argv[2] ?? join(project, 'release'))

// Packages are not among them: those of one system are 300 MB, and the lock file names them all by their hashes.
const contents = [
  ...['package.json', 'package-lock.json', '.npmrc', 'scripts/setup.mjs'],
  ...['bin', 'src', 'migrations', 'seeds', 'packaging'],
  ...['docs', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE'],
]

const git = (...words: string[]): Buffer => execFileSync('git', words, { cwd: project, maxBuffer: 2 ** 30 })
const [commit, time] = git('show', '--no-patch', '--format=%H %cI', 'HEAD').toString().trim().split(' ') as [string, string]
const lock: LockFile = JSON.parse(git('show', 'HEAD:package-lock.json').toString())
const name = `tollgate-${lock.version}`

// Modes do not depend on the umask of who makes it.
const tar = git('-c', 'tar.umask=0022', 'archive', '--format=tar', `--prefix=${name}/`, 'HEAD', '--', ...contents)
const files: readonly (readonly [name: string, bytes: Buffer])[] = [
  [`${name}.tar.gz`, gzipSync(tar, { level: 9 })],
  [`${name}.cdx.json`, Buffer.from(`${JSON.stringify(sbomOf(lock, project, new Date(time)), null, 2)}\n`)],
]
const sums = files.map(([file, bytes]) => `${createHash('sha256').update(bytes).digest('hex')}  ${file}\n`).join('')
mkdirSync(folder, { recursive: true })
for (const [file, bytes] of [...files, ['SHA256SUMS', sums] as const]) writeFileSync(join(folder, file), bytes)
process.stdout.write(`The release of ${commit} is in ${folder}:\n${sums}`)
