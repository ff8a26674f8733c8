// The unit for systemd, judged by systemd itself: whether it reads it, and how much of the machine it leaves to the gateway (0 nothing, 10 all).

import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A line in systemd's own tenths. */
export const exposureMost = 20

export function judgeUnit(project: string): string {
  const unit = join(project, 'packaging/tollgate.service')
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-unit-'))
  try {
    // It looks for the program that the unit starts: there is one of that name below this root.
    execFileSync('mkdir', ['-p', join(folder, 'opt/tollgate/node_modules/.bin'), join(folder, 'etc/systemd/system')])
    writeFileSync(join(folder, 'opt/tollgate/node_modules/.bin/node'), '', { mode: 0o755 })
    copyFileSync(unit, join(folder, 'etc/systemd/system/tollgate.service'))
    const { status, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', `--root=${folder}`, '--recursive-errors=no', 'tollgate.service'],
      { encoding: 'utf8' },
    )
    if (status !== 0 || stderr.trim() !== '') throw new Error(`systemd-analyze verify: ${stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const { status, stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', `--threshold=${exposureMost}`, unit], {
    encoding: 'utf8',
  })
  const judged = /Overall exposure level.*$/m.exec(stdout)?.[0] ?? stdout
  if (status !== 0) throw new Error(judged)
  return judged
}
