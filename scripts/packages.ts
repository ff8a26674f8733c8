// Tries what an installation is made of, as far as this machine can: `npm run packages`, or by name, `npm run packages -- image units`. What lacks its tool is named as not run, and
// the rest goes on.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { tryArchive } from './packages/archive.ts'
import { tryImage } from './packages/image.ts'
import { lint } from './packages/lint.ts'
import { judgeUnit } from './packages/units.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const say = (line: string) => void process.stdout.write(`  ${line}\n`)

/** `needs`: programs of the machine; all but `units` also the npm registry, and `image` to be root. */
const trials: Readonly<Record<string, { readonly needs: readonly string[]; run(): void | Promise<void> }>> = {
  lint: { needs: ['npm'], run: () => lint(project, say) },
  units: { needs: ['systemd-analyze'], run: () => say(judgeUnit(project)) },
  archive: { needs: ['git', 'tar', 'sha256sum', 'curl'], run: () => tryArchive(project, say) },
  image: { needs: ['debootstrap', 'unshare', 'setpriv'], run: () => tryImage(project, say) },
}

const asked = process.argv.slice(2)
for (const name of asked.length > 0 ? asked : Object.keys(trials)) {
  const trial = trials[name]
  if (!trial) throw new Error(`${name} is none of ${Object.keys(trials).join(', ')}`)
  const missing = trial.needs.filter(program => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
  process.stdout.write(missing.length > 0 ? `${name}: NOT RUN, ${missing.join(' and ')} are not here\n` : `${name}:\n`)
  if (missing.length > 0) continue
  try {
    await trial.run()
  } catch (error) {
    process.stdout.write(`${name}: FAILED, ${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
