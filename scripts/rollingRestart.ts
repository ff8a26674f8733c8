// Two gateways of an older build are replaced by two of a newer one, one after the other, while shops pay: `npm run rolling-restart -- v0.1.0` takes the
// build of a tag for the older. Without a tag this build is the older one, and the newer one is a copy of it with a migration more.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '../src/platform/database/embedded.ts'
import { claimFolder } from '../src/platform/database/folder.ts'
import { command, countLost, project, startGateway } from './highAvailability/gateway.ts'
import { startLoad } from './highAvailability/load.ts'
import { makePlace, until } from './highAvailability/programs.ts'

const place = makePlace()
const say = (what: object) => void process.stdout.write(`${JSON.stringify(what)}\n`)

const tag = process.argv[2]

function buildOf(tag: string): string {
  const build = emptyBuild(tag)
  execFileSync('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', tag, build], { cwd: project })
  return numbered(build, '0.0.9')
}

function newerBuild(): string {
  const build = emptyBuild('newer')
  for (const name of ['src', 'migrations', 'seeds', 'bin', 'docs', 'package.json', 'package-lock.json'])
    cpSync(join(project, name), join(build, name), { recursive: true, verbatimSymlinks: true })
  // What the older build knows is added to, never taken away or renamed: it goes on working until it is replaced.
  writeFileSync(
    join(build, 'migrations/9999_newer.sql'),
    'alter table payments add column newer text; create table newer (merchant_id uuid primary key);',
  )
  return numbered(build, '9.9.9')
}

function emptyBuild(name: string): string {
  const build = join(place.folder, name.replaceAll('/', '-'))
  mkdirSync(build)
  symlinkSync(join(project, 'node_modules'), join(build, 'node_modules'))
  return build
}

/** Its answers carry another buildNumber. */
function numbered(build: string, version: string): string {
  const described = JSON.parse(readFileSync(join(build, 'package.json'), 'utf8'))
  writeFileSync(join(build, 'package.json'), JSON.stringify({ ...described, version }))
  return build
}

try {
  const dataDir = join(place.folder, 'database')
  const claim = claimFolder(dataDir)
  const server = await startEmbedded({ dataDir, say() {} })
  const url = `postgresql://${server.user}@localhost/${server.database}?host=${encodeURIComponent(server.host)}&port=${server.port}`
  const [older, newer] = tag === undefined ? [project, newerBuild()] : [buildOf(tag), project]
  const numberOf = async ({ url, account }: { url: string; account: { entityId: string; accessToken: string } }) => {
    const answer = await fetch(`${url}/v1/resultcodes`, { headers: { Authorization: `Bearer ${account.accessToken}` } })
    return ((await answer.json()) as { buildNumber: string }).buildNumber
  }
  const running = [await startGateway(place, 'older one', url, older), await startGateway(place, 'older other', url, older)]
  const builds = new Set([await numberOf(running[0]!)])
  const urls = running.map(gateway => gateway.url)
  const load = startLoad(urls, running[0]!.account, 8)
  const more = async (what: string) => {
    const before = load.approvals()
    await until(what, async () => load.approvals() > before + 150)
  }
  await more('older builds carry payments')
  for (const at of [0, 1]) {
    await running[at]!.stop()
    await more('the other one carries them alone')
    running[at] = await startGateway(place, `newer ${at}`, url, newer)
    urls[at] = running[at]!.url
    builds.add(await numberOf(running[at]!))
    await more('two carry them again')
  }
  const result = await load.stop()
  const lost = await countLost(running[0]!, result.approved)
  const refused = await startGateway(place, 'older again', url, older).then(
    gateway => gateway.stop().then(() => 'it started'),
    (error: Error) => error.message.trim(),
  )
  const { approved, failed, repeated, longestPause } = result
  const doctor = command(running[0]!, 'doctor').trim().split('\n').at(-1)
  say({ builds: [...builds], approved: approved.length, lost, failed, repeated, longestPause, doctor, olderAgain: refused })
  if (lost > 0 || Object.keys(result.failed).length > 0 || builds.size < 2) process.exitCode = 1
  for (const gateway of running) await gateway.stop()
  await server.stop()
  claim.release()
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\n`)
  process.exitCode = 1
} finally {
  await place.clear()
}
process.exit()
