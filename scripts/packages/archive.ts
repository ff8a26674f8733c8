// The release as an operator takes it: unpacked into an empty folder, packages installed from its lock file by `npm start` itself, a payment made, stopped.

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { end, payAt } from './running.ts'

const url = 'http://127.0.0.1:18081'

export async function tryArchive(project: string, say: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-release-'))
  try {
    execFileSync(process.execPath, ['--disable-sigusr1', 'scripts/release.ts', folder], {
      cwd: project,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: folder, stdio: 'inherit' })
    const archive = readdirSync(folder).find(file => file.endsWith('.tar.gz'))!
    execFileSync('tar', ['-xzf', archive], { cwd: folder })
    const unpacked = join(folder, archive.replace('.tar.gz', ''))
    const began = performance.now()
    const { PATH, HOME } = process.env
    const path = PATH!
      .split(':')
      .filter(one => !one.endsWith('node_modules/.bin'))
      .join(':')
    const settings = { PATH: path, HOME, PORT: new URL(url).port, DEMO_SHOP_PORT: 'off', DATA_DIR: join(folder, 'data') }
    const gateway = spawn('npm', ['start'], { cwd: unpacked, env: settings, stdio: ['ignore', 'ignore', 'inherit'] })
    try {
      say(
        `${archive}: a payment is answered ${await payAt(url, gateway)}, ${Math.round((performance.now() - began) / 1000)} s after npm start`,
      )
    } finally {
      const ended = await end(gateway, 'SIGTERM')
      say(`after SIGTERM it ends with ${ended}`)
      if (ended !== 0) process.exitCode = 1
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
