// The checks that need no running gateway: types, lint and format, generated files. `npm run check`.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const project = fileURLToPath(new URL('..', import.meta.url))
const bin = (name: string) => `${project}node_modules/.bin/${name}`

const checks: readonly (readonly [what: string, program: string, ...args: string[]])[] = [
  ['types', bin('tsc'), '-p', '.'],
  ['types of what browsers run', bin('tsc'), '-p', 'src/pages/form/browser'],
  ['types of the pages for developers', bin('tsc'), '-p', 'src/pages/developers/browser'],
  ['types of the office', bin('tsc'), '-p', 'src/pages/office/browser'],
  ['lint and format', bin('biome'), 'check', '--error-on-warnings', 'src', 'test', 'scripts'],
  ['promises that nobody waits for', process.execPath, '--disable-sigusr1', 'scripts/floating.ts'],
  ['generated files', process.execPath, '--disable-sigusr1', 'scripts/generate.ts', '--check'],
]

for (const [what, program, ...args] of checks) {
  const { status } = spawnSync(program, args, { cwd: project, stdio: 'inherit' })
  process.stdout.write(`${what}: ${status === 0 ? 'ok' : 'FAILED'}\n`)
  if (status !== 0) process.exitCode = 1
}
