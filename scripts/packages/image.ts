// The image without an engine: carries out the Dockerfile itself, step by step in chroots of Debian, and starts what it made as an engine would: as its user, without
// any right, on a root that nobody can write to, with a folder for data and one for temporary files. Needs root. What an engine does beyond that (layers, networks,
// limits) is not tried.

import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { startTestServer } from '../../test/support/database.ts'
import { environmentOf, type Instruction, lastOf, readDockerfile, type Stage } from './dockerfile.ts'
import { end, payAt } from './running.ts'

const url = 'http://127.0.0.1:18080'
/** What is started reaches the database through this process, which must not wait for it. */
const exec = promisify(execFile)
const run = (program: string, ...words: string[]) =>
  execFileSync(program, words, { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
const quotedAll = (words: readonly string[]): string => words.map(quoted).join(' ')

export async function tryImage(project: string, say: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-image-'))
  try {
    const stages = readDockerfile(readFileSync(join(project, 'packaging/Dockerfile'), 'utf8'))
    const roots = new Map<string, string>()
    for (const { image, name = 'last', instructions } of stages) {
      const root = join(folder, name)
      layBase(image, root)
      const before = megabytes(root)
      for (const instruction of instructions) carryOut(instruction, root, project, roots)
      roots.set(name, root)
      say(`stage ${name}: ${megabytes(root) - before} MB above ${image}`)
    }
    await start(stages.at(-1)!, roots.get('last')!, folder, say)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const megabytes = (folder: string): number => Number(run('du', '-sm', '--apparent-size', folder).split('\t')[0])

/** Debian as debootstrap makes it, made once; for the image of Node also Node and npm, those of this machine. */
function layBase(image: string, root: string): void {
  const base = join(tmpdir(), 'tollgate-debian-bookworm')
  if (!existsSync(base)) {
    run('debootstrap', '--variant=minbase', 'bookworm', `${base}.new`)
    run('mv', `${base}.new`, base)
  }
  run('cp', '-a', base, root)
  cpSync('/etc/resolv.conf', join(root, 'etc/resolv.conf'), { dereference: true })
  if (!image.startsWith('node:')) return
  cpSync(process.execPath, join(root, 'usr/local/bin/node'))
  run('cp', '-a', join(realpathSync(run('sh', '-c', 'command -v npm').trim()), '../..'), join(root, 'usr/local/lib/npm'))
  writeFileSync(join(root, 'usr/local/bin/npm'), '#!/bin/sh\nexec node /usr/local/lib/npm/bin/npm-cli.js "$@"\n', { mode: 0o755 })
  inChroot(root, ['/bin/sh', '-c', 'apt-get update -qq && apt-get install -y -qq --no-install-recommends libstdc++6'])
}

/** Both stages work in /tollgate. */
const workFolder = '/tollgate'
const within = (root: string, path: string): string => join(root, path.startsWith('/') ? path : join(workFolder, path))

function carryOut({ name, flags, words }: Instruction, root: string, project: string, roots: ReadonlyMap<string, string>): void {
  if (name === 'WORKDIR') mkdirSync(join(root, words[0]!), { recursive: true })
  if (name === 'RUN') inChroot(root, words)
  if (name !== 'COPY') return
  const from = flags.from === undefined ? project : roots.get(flags.from)!
  const [to, target] = [words.at(-1)!, within(root, words.at(-1)!)]
  mkdirSync(to.endsWith('/') ? target : dirname(target), { recursive: true })
  // A folder's contents become those of the target, as COPY has it.
  for (const source of words.slice(0, -1))
    run('cp', '-a', '--no-preserve=ownership', ...(to.endsWith('/') ? [] : ['-T']), join(from, source), target)
}

/** With this machine's npm cache and certificates, because a registry may be reached through those alone. */
function inChroot(root: string, words: readonly string[]): void {
  for (const folder of ['npm-cache', 'etc/ssl/certs', workFolder]) mkdirSync(join(root, folder), { recursive: true })
  const npmrc = join(process.env.HOME ?? '/root', '.npmrc')
  if (existsSync(npmrc)) cpSync(npmrc, join(root, 'root/.npmrc'))
  const step = `mount --bind ${run('npm', 'config', 'get', 'cache').trim()} ${root}/npm-cache
mount --bind /etc/ssl/certs ${root}/etc/ssl/certs
cd ${root}
exec chroot . env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive npm_config_cache=/npm-cache \\
  npm_config_prefer_offline=true NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt sh -c 'cd ${workFolder} && exec "$@"' -- ${quotedAll(words)}`
  run('unshare', '--mount', '--', 'sh', '-ec', step)
}

async function start(stage: Stage, root: string, folder: string, say: (line: string) => void): Promise<void> {
  const database = await startTestServer()
  const { host, port, user, database: name } = database.connection as Readonly<Record<string, string | number>>
  // The embedded server has no port, and no other user may reach its socket.
  const door = createServer(near => {
    const far = connect(join(String(host), `.s.PGSQL.${port}`))
    for (const socket of [near, far]) socket.on('error', () => {})
    near.pipe(far).pipe(near)
  })
  await once(door.listen(0, '127.0.0.1'), 'listening')
  const data = join(folder, 'data')
  run('cp', '-a', join(root, 'data'), data)
  const [uid, gid] = lastOf(stage, 'USER').words[0]!.split(':')
  const settings = Object.entries({
    ...environmentOf(stage),
    PORT: new URL(url).port,
    SANDBOX_OPEN: 'yes',
    DEMO_SHOP_PORT: 'off',
    DATABASE_URL: `postgres://${user}@127.0.0.1:${(door.address() as AddressInfo).port}/${name}`,
  }).map(setting => setting.join('='))
  const inContainer = (words: readonly string[]): string[] => [
    ...['--mount', '--', 'sh', '-ec'],
    `mount --bind ${root} ${root}
mount -t proc -o subset=pid,hidepid=invisible proc ${root}/proc
mount --bind ${data} ${root}/data
mount -t tmpfs tmpfs ${root}/tmp
mount -o remount,bind,ro ${root}
cd ${root}
exec chroot . setpriv --reuid=${uid} --regid=${gid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all env -i ${quotedAll(settings)} \\
  sh -c 'cd ${lastOf(stage, 'WORKDIR').words[0]} && exec "$@"' -- ${quotedAll(words)}`,
  ]
  const gateway = spawn('unshare', inContainer(lastOf(stage, 'CMD').words), { stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    say(`a payment is answered ${await payAt(url, gateway)}`)
    await exec('unshare', inContainer(lastOf(stage, 'HEALTHCHECK').words))
    say('the health check ends with 0')
    const places = '/ /etc /tollgate /tollgate/node_modules /data /tmp'
    const look = `id -u; for place in ${places}; do touch $place/x 2>/dev/null && echo $place; done; command -v npm curl || true`
    const { stdout } = await exec('unshare', inContainer(['sh', '-c', look]))
    const [who, ...found] = stdout.trim().split('\n')
    say(`user ${who} can write to ${found.join(' and ')}`)
    if (who !== uid || found.join() !== '/data,/tmp')
      throw new Error('only /data and /tmp are to be written to, and npm and curl are not wanted')
  } finally {
    const [signal] = lastOf(stage, 'STOPSIGNAL').words
    const ended = await end(gateway, signal as NodeJS.Signals)
    say(`after ${signal} it ends with ${ended}`)
    if (ended !== 0) process.exitCode = 1
    door.close()
    await database.stop()
  }
}
