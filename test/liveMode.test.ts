// Live mode: what it refuses, each by name; whose database it is; which TLS is spoken; and that no debugger gets in.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHmac, hash, hkdfSync } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { readDirectoryFile, readWalletFile } from '../src/connectors/partners.ts'
import { httpTransport, NotSent } from '../src/connectors/transport.ts'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import { bitsOfChance } from '../src/merchants/access/secretStrength.ts'
import { applySeed, readSeed } from '../src/merchants/seed.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { readAcquirers } from '../src/start/acquirers.ts'
import { readConfig } from '../src/start/config.ts'
import { findTelling } from '../src/start/database.ts'
import { makeKeys } from '../src/vault/keys.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { databaseUrl, makeDatabase, type TestDatabase, withPool } from './support/database.ts'
import { freePort } from './support/freePort.ts'
import { eventually } from './support/gateway.ts'
import { acquirersFile } from './support/host.ts'
import { manyCommands, project, type Started, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-live-'))
const commands = manyCommands()
after(() => {
  commands.stop()
  rmSync(folder, { recursive: true, force: true })
})

const put = (name: string, content: string | object, mode = 0o600): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content), { mode })
  chmodSync(path, mode)
  return path
}

const sandboxToken = legacyToken('5a11d0000000000000000000000000f1', 'sandbox-only')

/** The key that the lookup key gives for keyed hashes. */
const hkdf = (hex: string) => Buffer.from(hkdfSync('sha256', Buffer.from(hex, 'hex'), Buffer.alloc(0), 'tollgate lookup', 32))

/** Always the same, and nothing that people make up. */
const keyOf = (name: string) => hash('sha256', `a key for tests, ${name}`)

const good = () => ({
  MODE: 'live',
  TRUSTED_PROXY: '10.0.0.0/8,::1',
  PUBLIC_URL: 'https://pay.example',
  SEAL_KEY_FILE: put('seal.key', keyOf('seal')),
  LOOKUP_KEY_FILE: put('lookup.key', keyOf('lookup')),
})

describe('live mode refuses by name', () => {
  const wallet = { endpoint: 'https://w.example/nvp', checkout: 'https://w.example', credentials: {} }
  const http = 'http://127.0.0.1:1/'
  const cases: readonly (readonly [what: string, change: () => Record<string, string>, sentence: RegExp])[] = [
    ['plain HTTP', () => ({ TRUSTED_PROXY: '' }), /refuses plain HTTP/],
    ['no public address', () => ({ PUBLIC_URL: '' }), /PUBLIC_URL is required, and must begin with https/],
    ['a public address without TLS', () => ({ PUBLIC_URL: 'http://pay.example' }), /PUBLIC_URL is required/],
    ['everybody as a proxy', () => ({ TRUSTED_PROXY: '0.0.0.0/0' }), /TRUSTED_PROXY trusts 0\.0\.0\.0\/0/],
    ['a network of three parts', () => ({ TRUSTED_PROXY: '10.0.0.0/8/0' }), /TRUSTED_PROXY must be addresses or networks/],
    ['half of the world as a proxy', () => ({ TRUSTED_PROXY: '10.0.0.1, 128.0.0.0/1' }), /TRUSTED_PROXY trusts 128\.0\.0\.0\/1/],
    ...[
      ['10.0.0.0/8', '11.0.0.0/8'],
      Array.from({ length: 3 }, (_, first) => `${first}.128.0.0/9`),
      ['10.0.0.0/8', '::ffff:11.0.0.0/104'],
      ['10.0.0.0/8', '64:ff9b::11.0.0.0/112'],
      ['10.0.0.0/9', '10.0.0.0/8', '11.0.0.0/16'],
      ['2001:db8::/32', '2001:db9::/48'],
      Array.from({ length: 514 }, (_, at) => `${at >> 7}.${(at & 127) * 2}.128.0/17`),
    ].map(
      networks =>
        [
          `nearly everybody as proxies, in parts: ${networks.join()}`,
          () => ({ TRUSTED_PROXY: networks.join() }),
          new RegExp(`TRUSTED_PROXY trusts ${networks.join(' and ')}, which`),
        ] as const,
    ),
    ['everybody as a proxy, by IPv6', () => ({ TRUSTED_PROXY: '::/0' }), /TRUSTED_PROXY trusts ::\/0/],
    ...[
      '::ffff:0:0/96',
      '::ffff:0.0.0.0/96',
      '::/32',
      '::/64',
      '::/80',
      '::ffff:0:0/97',
      '::ffff:0:0:0/96',
      '64:ff9b::/96',
      '64:ff9b:1::/48',
      '64:ff9b:1::/96',
    ].map(
      network =>
        [
          `everybody as a proxy, as ${network}`,
          () => ({ TRUSTED_PROXY: network }),
          /TRUSTED_PROXY trusts .*nearly everybody/,
        ] as const,
    ),
    [
      'more proxies than each request is compared with',
      () => ({ TRUSTED_PROXY: Array.from({ length: 1001 }, (_, at) => `10.0.${at >> 8}.${at & 255}`).join() }),
      /TRUSTED_PROXY must be 1000 addresses or networks at most, not 1001/,
    ],
    ...[',', ' ', ' , '].map(
      list => [`no proxy, said as ${JSON.stringify(list)}`, () => ({ TRUSTED_PROXY: list }), /refuses plain HTTP/] as const,
    ),
    ...['https://u:p@pay.example', 'https://pay.example\\@evil.example'].map(
      url => [`a public address as ${url}`, () => ({ PUBLIC_URL: url }), /PUBLIC_URL must be a scheme and a host/] as const,
    ),
    ...(
      [
        '--inspect',
        '"--inspect=0.0.0.0:1"',
        '--inspect_brk',
        '--report-on-signal',
        '--heapsnapshot-signal=SIGUSR2',
        '--heap-snapshot-on-oom',
      ] as const
    ).map(
      option =>
        [
          `a door for debuggers, ${option}`,
          () => ({ NODE_OPTIONS: `--no-warnings ${option}` }),
          /MODE=live: Node is started with --(inspect|report|heap-?snapshot)/,
        ] as const,
    ),
    ...(
      [
        ['--abort-on-uncaught-exception', 'opens the memory'],
        ['--tls-keylog=/dev/null', 'writes out what is sent'],
        ['--tls-"key"log=/dev/null', 'writes out what is sent'],
        ['"--tls-key\\log=/dev/null"', 'writes out what is sent'],
        ['--tls_keylog /dev/null', 'writes out what is sent'],
        ['--trace-tls', 'writes out what is sent'],
        ['--trace', 'writes out what is sent'],
        ['-trace', 'writes out what is sent'],
        ['--use-env-proxy', 'sends what goes out through another server'],
        ['--trace-event-categories=node,node.http', 'writes out what is sent'],
        ['--tls-min-v1.0', 'weakens TLS'],
        ['--tls-min-v1.1', 'weakens TLS'],
        ['--tls-cipher-list=ALL', 'weakens TLS'],
        ['--openssl-legacy-provider', 'weakens TLS'],
        ['--openssl-shared-config', 'weakens TLS'],
        ['--openssl-config=/dev/null', 'weakens TLS'],
        ['--security-revert=CVE-2023-46809', 'weakens TLS'],
        ['--insecure-http-parser', 'lets requests be read in two ways'],
        ['--experimental-config-file=node.json', 'takes options from a file'],
        ['--experimental-default-config-file', 'takes options from a file'],
      ] as const
    ).map(
      ([option, why]) =>
        [
          `the option ${option}`,
          () => ({ NODE_OPTIONS: `--no-warnings ${option}` }),
          new RegExp(`MODE=live: Node is started with --[a-z].*, which ${why}`),
        ] as const,
    ),
    ...(
      [
        ['NODE_TLS_REJECT_UNAUTHORIZED', '0', 'believes every certificate'],
        ['NODE_DEBUG', 'tls', 'writes out what is sent'],
        ['NODE_DEBUG_NATIVE', 'tls', 'writes out what is sent'],
        ['NODE_USE_ENV_PROXY', '1', 'sends what goes out through another server'],
      ] as const
    ).map(
      ([name, value, why]) =>
        [`${name}=${value}`, () => ({ [name]: value }), new RegExp(`${name} is set, which ${why}`)] as const,
    ),
    [
      'a seal key of zeros',
      () => ({ SEAL_KEY_FILE: put('zeros', '0'.repeat(64)) }),
      /first key of SEAL_KEY_FILE .*not made by chance/,
    ],
    [
      'a lookup key that counts',
      () => ({ LOOKUP_KEY_FILE: '', LOOKUP_KEY: '0123456789abcdef'.repeat(4) }),
      /first key of LOOKUP_KEY was not made by chance/,
    ],
    ['one key for both', () => ({ LOOKUP_KEY_FILE: put('same', keyOf('seal')) }), /LOOKUP_KEY_FILE .* begin with the same key/],
    ['a key file that is a pipe', () => ({ SEAL_KEY_FILE: pipe() }), /SEAL_KEY_FILE names .*, which is no file/],
    ['a certificate that is a pipe', () => ({ TLS_CERT: pipe(), TLS_KEY: pipe() }), /TLS_CERT names .*, which is no file/],
    [
      'a token of metrics that is a pipe',
      () => ({ METRICS_TOKEN_FILE: pipe() }),
      /METRICS_TOKEN_FILE names .*, which is no file/,
    ],
    [
      'a token of metrics that somebody made up',
      () => ({ METRICS_TOKEN_FILE: put('made-up', 'a'.repeat(16)) }),
      /METRICS_TOKEN_FILE holds a token that is too weak/,
    ],
    [
      'a certificate that is none',
      () => ({ TLS_CERT: put('empty.crt', 'none'), TLS_KEY: put('empty.key', 'none') }),
      /TLS_CERT and TLS_KEY hold no/,
    ],
    ['a seed file that is a pipe', () => ({ SEED_FILE: pipe() }), /SEED_FILE names .*, which is no file/],
    ['no keys', () => ({ SEAL_KEY_FILE: '', LOOKUP_KEY_FILE: '' }), /SEAL_KEY_FILE .*\n.*LOOKUP_KEY_FILE/],
    ['open metrics', () => ({ METRICS_PORT: '9000', HOST: '0.0.0.0' }), /METRICS_PORT is open to everybody on HOST 0\.0\.0\.0/],
    ['open metrics by name', () => ({ METRICS_PORT: '9000', HOST: 'pay.example' }), /METRICS_PORT is open/],
    [
      'a public key for SFTP',
      () => ({ SFTP_KEY_FILE: put('key.pub', 'ssh-ed25519 AAAA') }),
      /SFTP_KEY_FILE must hold a private key/,
    ],
    ['a short token of metrics', () => ({ METRICS_TOKEN_FILE: put('short', 'secret') }), /METRICS_TOKEN_FILE must hold a token/],
    ...(
      [
        'TLS_KEY',
        'SEED_FILE',
        'WALLET_FILE',
        'THREE_D_SECURE_FILE',
        'REDIRECT_METHODS_FILE',
        'SFTP_KEY_FILE',
        'METRICS_TOKEN_FILE',
      ] as const
    ).map(
      name =>
        [
          `a ${name} that others may read`,
          () => ({ [name]: put('open', '{}', 0o640) }),
          new RegExp(`${name} names .* which others may read`),
        ] as const,
    ),
    [
      'a wallet without TLS',
      () => ({ WALLET_FILE: put('wallet', { live: { ...wallet, endpoint: http } }) }),
      /WALLET_FILE: live\.endpoint .*https/,
    ],
    [
      'a wallet with a password in its address',
      () => ({ WALLET_FILE: put('wallet', { live: { ...wallet, endpoint: 'https://u:p@w.example/nvp' } }) }),
      /live\.endpoint must be an address with https, without a user name or password/,
    ],
    [
      'a redirect method with a password in its address',
      () => ({ REDIRECT_METHODS_FILE: put('methods', { MYBANK: method('https://u:p@b.example/') }) }),
      /MYBANK\.live\.start must be an address with http or https and no user name or password/,
    ],
    [
      'a directory server without TLS',
      () => ({ THREE_D_SECURE_FILE: put('ds', { external: { url: http, requestor } }) }),
      /THREE_D_SECURE_FILE: external\.url .*https/,
    ],
    [
      'a redirect method without TLS',
      () => ({ REDIRECT_METHODS_FILE: put('methods', { MYBANK: method(http) }) }),
      /REDIRECT_METHODS_FILE: MYBANK\.live\.start .*https/,
    ],
  ]
  if (process.getuid?.() === 0)
    for (const [what, spoil] of [
      ['another user has', (path: string) => chownSync(path, 1000, 0)],
      ['stands in a folder that others may write to', (path: string) => chmodSync(dirname(path), 0o777)],
      ['stands in a folder of another user', (path: string) => chownSync(dirname(path), 1000, 0)],
    ] as const)
      for (const name of [
        ...(['SEAL_KEY_FILE', 'LOOKUP_KEY_FILE', 'TLS_KEY', 'SEED_FILE', 'ACQUIRERS_FILE'] as const),
        ...(['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'OPENSSL_CONF'] as const),
      ])
        it(`a ${name} that ${what}`, () => {
          const place = mkdtempSync(join(folder, 'place-'))
          const path = join(place, 'file')
          writeFileSync(path, 'a'.repeat(64), { mode: 0o600 })
          spoil(path)
          assert.match(refusal({ [name]: path }), new RegExp(`${name} names .*/file, which (others|another user) may`))
        })
  it('a BACKUP_DIR that others may write to, which a sandbox of an ordinary user takes', () => {
    const place = mkdtempSync(join(folder, 'backups-'))
    assert.equal(refusal({ BACKUP_DIR: place }), '')
    chmodSync(place, 0o777)
    assert.match(refusal({ BACKUP_DIR: place }), /BACKUP_DIR names .*, which others may change: chmod go-w/)
    readConfig({ BACKUP_DIR: place }, folder)
  })
  it('a DATA_DIR that others may write to, replace or make', () => {
    const place = mkdtempSync(join(folder, 'data-'))
    const inside = join(place, 'inside')
    for (const path of [place, inside]) assert.equal(refusal({ DATA_DIR: path }), '', 'there or not')
    chmodSync(place, 0o777)
    assert.match(refusal({ DATA_DIR: place }), /DATA_DIR names .*, which others may change: chmod go-w/)
    assert.match(
      refusal({ DATA_DIR: inside }),
      new RegExp(`DATA_DIR names ${inside}, which others may replace, .*folder ${place}:`),
    )
    // Names are safe there, as in /tmp: of what is there, and not of what is made yet.
    chmodSync(place, 0o1777)
    assert.match(
      refusal({ DATA_DIR: join(inside, 'data') }),
      new RegExp(`others may make, who may write to the folder ${place}\\.`),
    )
    assert.equal(refusal({ DATA_DIR: inside, DATABASE_URL: 'postgres:///tollgate' }), '', 'nothing is made in it')
    mkdirSync(inside, { mode: 0o700 })
    assert.equal(refusal({ DATA_DIR: inside }), '')
    symlinkSync(place, join(folder, 'data-link'))
    assert.match(refusal({ DATA_DIR: join(folder, 'data-link/none') }), /others may make, who may write/)
    symlinkSync('round', join(folder, 'round'))
    assert.equal(refusal({ DATA_DIR: join(folder, 'round') }), '', 'which cannot be made, as the start says')
  })
  it('a NODE_PATH where others may put packages', () => {
    const place = mkdtempSync(join(folder, 'packages-'))
    assert.equal(refusal({ NODE_PATH: `/nonexistent:${place}` }), '')
    chmodSync(place, 0o777)
    assert.match(refusal({ NODE_PATH: `/nonexistent:${place}` }), new RegExp(`NODE_PATH names ${place}, which others may change`))
    assert.match(refusal({ NODE_PATH: `${place}/none:` }), new RegExp(`NODE_PATH names ${place}/none, which others may replace`))
  })
  it('a SSL_CERT_DIR of which one folder is such that others may put certificates there', () => {
    const place = mkdtempSync(join(folder, 'certificates-'))
    const own = mkdtempSync(join(folder, 'certificates-'))
    const all = [place, `${own}:${place}`, `${place}:${own}`, `:${own}::${place}:`]
    for (const list of all) assert.equal(refusal({ SSL_CERT_DIR: list }), '')
    chmodSync(place, 0o777)
    for (const list of all)
      assert.match(refusal({ SSL_CERT_DIR: list }), new RegExp(`SSL_CERT_DIR names ${place}, which others may change`))
    assert.match(
      refusal({ SSL_CERT_DIR: `${own}:${place}/none` }),
      new RegExp(`SSL_CERT_DIR names ${place}/none, which others may`),
    )
    assert.equal(refusal({ SSL_CERT_DIR: `${own}:${own}/none` }), '')
  })
  it('options between quotation marks, where a space ends none', () => {
    const place = mkdtempSync(join(folder, 'spaced '))
    const path = join(place, 'x "y\\.mjs')
    writeFileSync(path, '')
    const quoted = path.replace(/["\\]/g, '\\$&')
    const url = pathToFileURL(path).href
    const all = [
      `--require "${quoted}"`,
      `--req"uire=${quoted}"`,
      `-r "" "${quoted}"`,
      `--import "${url.replaceAll('%20', ' ')}"`,
      `--import FILE${url.slice(4)}`,
    ]
    for (const options of all) assert.equal(refusal({ NODE_OPTIONS: options }), '')
    chmodSync(place, 0o777)
    for (const options of all)
      assert.match(refusal({ NODE_OPTIONS: `--no-warnings  ${options}` }), /names .*y\\\.mjs, which others may replace/)
    assert.equal(
      refusal({ NODE_OPTIONS: '--title "not --inspect" --title "is \\"--inspect\\""' }),
      '',
      'what an option is given is no option',
    )
  })
  it('nothing that takes long, however long a token is', () => {
    const began = performance.now()
    assert.match(
      refusal({ METRICS_TOKEN_FILE: put('endless', `${'a'.repeat(2_000_000)}b`) }),
      /METRICS_TOKEN_FILE holds a token that is too weak/,
    )
    assert.ok(performance.now() - began < 5000)
    assert.equal(
      bitsOfChance(`${'a'.repeat(1016)}${keyOf('of its end')}`),
      bitsOfChance(`${'a'.repeat(1016)}${keyOf('of its end').slice(0, 8)}`),
    )
    assert.ok(bitsOfChance(`${keyOf('of its beginning')}${'a'.repeat(2000)}`) >= 128)
  })
  it('a folder of compiled code that others may write to, which Node would run in place of the program', () => {
    const place = mkdtempSync(join(folder, 'compiled-'))
    assert.equal(refusal({ NODE_COMPILE_CACHE: place }), '')
    chmodSync(place, 0o777)
    assert.match(refusal({ NODE_COMPILE_CACHE: place }), /NODE_COMPILE_CACHE names .*, which others may change/)
    const beside = mkdtempSync(join(project, 'node_modules/.cache/'))
    assert.equal(refusal({ NODE_COMPILE_CACHE: beside }), '', 'beside the program')
    chmodSync(beside, 0o777)
    assert.match(refusal({ NODE_COMPILE_CACHE: beside }), /NODE_COMPILE_CACHE names .*, which others may change/)
    rmSync(beside, { recursive: true })
  })
  for (const option of [
    '--require ',
    '"-r" ',
    '--import=file://',
    '--import "',
    '--loader=',
    '--experimental_loader ',
    '--env-file=',
    '--env-file-if-exists ',
  ])
    it(`a file that others may replace, which Node is to run first, by ${option}`, () => {
      const place = mkdtempSync(join(folder, 'first-'))
      const path = join(place, 'first.mjs')
      writeFileSync(path, '', { mode: 0o600 })
      const options = { NODE_OPTIONS: `--no-warnings ${option}${path}${option.endsWith('"') ? '"' : ''}` }
      assert.equal(refusal(options), '')
      if (option.startsWith('--env')) {
        chmodSync(path, 0o604)
        assert.match(
          refusal(options),
          /MODE=live: --env-file.* names \/.*\/first\.mjs, which others may read: set its mode to 0600/,
        )
      }
      chmodSync(place, 0o777)
      assert.match(refusal(options), /MODE=live: -.* names \/.*\/first\.mjs, which others may replace/)
      rmSync(path)
      assert.match(refusal(options), /first\.mjs, which others may (replace|make)/, 'nor what is still to come')
    })
  for (const option of [
    '-r package',
    '--require=package/register.js',
    '--import @scope/package',
    '--import=first.mjs',
    '--experimental-loader package',
    '-r ..',
    '"--import=data:text/javascript,import \\"package\\""',
  ])
    it(`a package that Node looks for in the working directory, by ${option}`, () =>
      assert.match(
        refusal({ NODE_OPTIONS: `--no-warnings ${option}` }),
        /MODE=live: -\S+ names \S.*, which is no path: Node looks for packages in the working directory/,
      ))
  if (process.getuid?.() === 0 && hasOpenssl) {
    const place = mkdtempSync(join(folder, 'open-'))
    const { cert, key } = makeCertificate(place, 'us')
    const macKey = join(place, 'mac.key')
    writeFileSync(macKey, '0'.repeat(32), { mode: 0o600 })
    chmodSync(place, 0o777)
    const files = { ca: cert, cert, key }
    const seen = (name: string) => new RegExp(`${name} names ${place}/[^ ]+, which others may replace`)
    const nested: readonly (readonly [string, (tls: object) => Record<string, string>])[] = [
      ['WALLET_FILE', tls => ({ WALLET_FILE: put('open-wallet', { live: { ...wallet, tls } }) })],
      [
        'THREE_D_SECURE_FILE',
        tls => ({ THREE_D_SECURE_FILE: put('open-ds', { live: { url: 'https://d.example', requestor, tls } }) }),
      ],
      [
        'REDIRECT_METHODS_FILE',
        tls => {
          const { live, ...rest } = method('https://b.example/')
          return { REDIRECT_METHODS_FILE: put('open-methods', { MYBANK: { ...rest, live: { ...live, tls } } }) }
        },
      ],
    ]
    for (const [name, change] of nested)
      it(`files of a ${name} that others may replace, which a sandbox takes`, () => {
        for (const file of ['ca', 'cert', 'key']) assert.match(refusal(change(files)), seen(`tls\\.${file}`))
        readConfig(change(files), folder)
      })
    it('files of an ACQUIRERS_FILE that others may replace, which a sandbox takes', () => {
      const given = acquirersFile(
        { north: [5001] },
        { tls: files, macKey, profile: { like: '1987', mac: { algorithm: 'cmac' } } },
      )
      for (const file of ['tls.ca', 'tls.cert', 'tls.key', 'macKey'])
        assert.throws(() => readAcquirers(given.path, 'live'), seen(file))
      assert.equal(readAcquirers(given.path).length, 1)
      given.remove()
    })
    for (const place of ['DATABASE_URL', 'REPORTING_DATABASE_URL']) {
      it(`another machine behind ${place} without TLS, unless it says so`, () => {
        const plain = new RegExp(`^MODE=live: ${place} reaches \\S+ without TLS`, 'm')
        for (const url of ['db/t', 'db.example:5433/t', '10.0.0.7/t', '[fd00::7]/t', 'u:p@x/t?host=db', 'localhost.example/t'])
          assert.match(refusal({ [place]: `postgres://${url}` }), plain, url)
        assert.match(refusal({ DATABASE_URL: 'postgres://localhost,db/t' }), /DATABASE_URL reaches db without TLS/)
        assert.match(refusal({ DATABASE_URL: 'postgres://127.db/t' }), /DATABASE_URL reaches 127\.db without TLS/)
        for (const url of [
          '/t',
          'localhost/t',
          '127.0.0.2:6432/t',
          '[::1]/t',
          '/t?host=/run/postgresql',
          'db/t?sslmode=verify-full',
        ])
          assert.equal(refusal({ [place]: `postgres://${url}` }), '', url)
        const common = mkdtempSync(join(tmpdir(), 'tollgate-sockets-'))
        const socket = new RegExp(`^MODE=live: ${place} reaches a socket in ${common}, which everybody may write to`, 'm')
        for (const [mode, sentence] of [
          [0o1777, socket],
          [0o2775, /^$/],
        ] as const) {
          chmodSync(common, mode)
          for (const url of [`/t?host=${common}`, `${encodeURIComponent(common)}/t`])
            assert.match(refusal({ [place]: `postgres://${url}` }), sentence, url)
        }
        const missing = join(common, 'not-there')
        chmodSync(common, 0o1777)
        assert.match(
          refusal({ [place]: `postgres:///t?host=${missing}` }),
          new RegExp(`reaches a socket in ${missing}, which others may make, who may write to the folder ${common}`),
        )
        if (process.getuid?.() === 0) {
          // A server's folder, whoever the server is; but nobody's who came first, or may move it away.
          const [open, of] = [join(common, 'of-a-server'), (path: string) => refusal({ [place]: `postgres:///t?host=${path}` })]
          mkdirSync(open)
          assert.equal(of(open), '')
          chmodSync(common, 0o777)
          assert.match(of(open), new RegExp(`others may replace, who may write to the folder ${common}`))
          chownSync(open, 65_534, 65_534)
          chmodSync(common, 0o1777)
          assert.match(of(open), new RegExp(`another user has made in the folder ${common}`))
          chmodSync(common, 0o755)
          assert.equal(of(open), '')
          const inner = join(open, 'run')
          mkdirSync(inner)
          assert.match(of(inner), new RegExp(`another user may replace, whose folder ${open} is`))
          chownSync(inner, 65_534, 65_534)
          assert.equal(of(inner), '')
          const link = join(common, 'link')
          symlinkSync(open, link)
          assert.equal(of(link), '')
          mkdirSync(join(common, 'of-somebody'))
          chownSync(join(common, 'of-somebody'), 1000, 1000)
          symlinkSync(open, join(common, 'of-somebody', 'link'))
          assert.match(of(join(common, 'of-somebody', 'link')), /another user may replace, whose folder/)
        }
        for (const said of ['sslmode=disable', 'sslmode=no-verify', 'ssl=0'])
          assert.equal(refusal({ [place]: `postgres://db/t?${said}` }), '', said)
        for (const [meant, sentence] of [
          ['no-verify', /reaches db without TLS, or whatever its certificate/],
          ['disable', /reaches db without TLS/],
          ['verify-full', /^$/],
        ] as const) {
          process.env.PGSSLMODE = meant
          assert.match(refusal({ [place]: 'postgres://db/t' }), sentence, meant)
          assert.equal(refusal({ [place]: 'postgres://127.0.0.1/t' }), '')
          delete process.env.PGSSLMODE
        }
      })
      it(`a key of ${place} that others may read`, () => {
        const open = put('open-key', 'x', 0o644)
        const url = `postgres://tollgate@db/tollgate?sslmode=verify-full&sslkey=${open}`
        for (const given of [url, url.replace('@db/', '@/').replace('?', '?host=db&')])
          assert.match(
            refusal({ [place]: given }),
            new RegExp(`sslkey of ${place} names \\S*open-key, which others may read: set its mode to 0600`),
          )
      })
      it(`files of ${place} that others may replace`, () => {
        const url = `postgres://tollgate@db/tollgate?sslmode=verify-full&sslrootcert=${cert}`
        for (const given of [url, url.replace('@db/', '@/').replace('?', '?host=db&')])
          assert.match(refusal({ [place]: given }), seen(`sslrootcert of ${place}`))
      })
    }
  }
  const pipe = () => {
    const path = join(mkdtempSync(join(folder, 'pipe-')), 'pipe')
    execFileSync('mkfifo', ['-m', '600', path])
    return path
  }
  const requestor = {
    id: 'i',
    name: 'n',
    url: 'https://shop.example',
    referenceNumber: 'r',
    acquirerBin: '400000',
    acquirerMerchantId: 'm',
    merchantCountryCode: '276',
    mcc: '5999',
  }
  const method = (url: string) => ({
    live: { start: url, status: url },
    fields: {},
    answer: { transactionId: 'i', redirect: 'r', status: 's' },
    statuses: {},
  })
  const refusal = (change: Record<string, string>): string => {
    try {
      readConfig({ ...good(), ...change }, folder)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  for (const [what, change, sentence] of cases) it(what, () => assert.match(refusal(change()), sentence))

  it('nothing of what is right', () => {
    assert.equal(refusal({}), '')
    assert.equal(refusal({ TRUSTED_PROXY: '10.0.0.0/8, 2001:db8::/32' }), '')
    assert.equal(refusal({ TRUSTED_PROXY: '10.0.0.0/8, 127.0.0.1, 10.0.0.0/9, ::ffff:10.0.0.0/104, 2001:db8::/32, ::1' }), '')
    const halves = Array.from({ length: 512 }, (_, at) => `${at >> 7}.${(at & 127) * 2}.128.0/17`)
    assert.equal(refusal({ TRUSTED_PROXY: halves.join() }), '', 'a /8 in parts')
    assert.equal(refusal({ TRUSTED_PROXY: Array.from({ length: 1000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`).join() }), '')
    assert.equal(refusal({ METRICS_PORT: '9000', HOST: '10.1.2.3' }), '')
    assert.equal(
      refusal({ METRICS_PORT: '9000', HOST: '0.0.0.0', METRICS_TOKEN_FILE: put('token', keyOf('metrics').slice(32)) }),
      '',
    )
    assert.equal(refusal({ REDIRECT_METHODS_FILE: put('methods', { MYBANK: method('https://b.example/') }) }), '')
    assert.equal(refusal({ WALLET_FILE: put('wallet', { live: wallet }) }), '')
  })

  it('lines to an acquirer without TLS, unless that is said aloud', () => {
    const plain = acquirersFile({ north: [5001] })
    assert.throws(() => readAcquirers(plain.path, 'live'), /acquirers\[0\] has lines without TLS/)
    assert.equal(readAcquirers(plain.path).length, 1)
    plain.remove()
    const said = acquirersFile({ north: [5001] }, { withoutTls: true })
    assert.equal(readAcquirers(said.path, 'live').length, 1)
    said.remove()
  })
})

describe('a token for live mode', () => {
  // Drawn once and for all: of a million hexadecimal texts of 20 bytes one shows so few letters that it is refused.
  const drawn = (at: number, bytes: number) => hash('sha256', `drawn ${at}`, 'buffer').subarray(0, bytes)
  it('holds 128 bits of chance if it was drawn with a little more', () => {
    for (let at = 0; at < 2000; at++) {
      for (const text of [drawn(at, 20).toString('hex'), drawn(at, 24).toString('base64'), drawn(at, 24).toString('base64url')])
        assert.ok(bitsOfChance(text) >= 128, text)
      for (const text of [drawn(at, 10).toString('hex'), drawn(at, 12).toString('base64url')])
        assert.ok(bitsOfChance(text) < 128, text)
    }
  })
  it('and none if people made it up', () => {
    for (const text of [
      'a'.repeat(64),
      'abc'.repeat(20),
      '0123456789abcdef'.repeat(4),
      'correct-horse-battery-staple',
      'our-shop-token-1',
      '5a11d0000000000000000000000000f1',
      'Passw0rd!Passw0rd!Passw0rd!Passw0rd!',
      'qwertyuiopasdfghjklzxcvbnm1234567890',
      '0987654321POIUYTREWQLKJHGFDSAMNBVCXZ',
      '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p!',
    ])
      assert.ok(bitsOfChance(text) < 128, text)
  })
  it('and not even the 64 of a password if it is made of words that everybody tries', () => {
    for (const text of [
      'Password123!',
      'P@ssw0rd12',
      'tollgate-live-production-token-0001-eu',
      '5f4dcc3b5aa765d61d8327deb882cf99', // MD5 of password
      '5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8', // SHA-1 of it
      'UGFzc3dvcmQxMjMh', // Base64 of Password123!
      '50617373776f7264313233212121', // hexadecimal of Password123!!!
    ])
      assert.ok(bitsOfChance(text) < 64, `${text} ${bitsOfChance(text)}`)
  })
})

describe('a live gateway and its database', () => {
  let database: TestDatabase
  let live: Record<string, string>
  let strong: string
  let printed: string
  before(async () => {
    database = await makeDatabase()
    strong = systemRandom.bytes(24).toString('hex')
    live = { ...good(), DATABASE_URL: databaseUrl(database.connection), DATA_DIR: join(folder, 'data'), SEED_FILE: seedFile({}) }
    const first = await startProcess(live)
    printed = first.printed()
    await first.stop()
  })
  after(() => database.drop())

  const merchant = '7e57c0de000000000000000000000001'
  const channel = '7e57c0de000000000000000000000002'
  const seedFile = (settings: object, token: object = { token: strong }, name = 'seed.json') =>
    put(name, {
      psp: { id: '7e57c0de00000000000000000000000a', name: 'PSP' },
      divisions: [
        {
          id: '7e57c0de00000000000000000000000d',
          name: 'Division',
          merchants: [{ id: merchant, name: 'Shop', channels: [{ id: channel, name: 'Shop EUR', settings }] }],
        },
      ],
      tokens: [{ label: 'shop', entities: [merchant], ...token }],
    })
  const refused = (environment: Record<string, string>) =>
    startProcess(environment).then(
      async started => assert.fail(`it started: ${await started.stop()}`),
      (error: Error) => {
        assert.match(error.message, /^it ended with 1:\n(The server of the database has .*\n)*Tollgate cannot start\./)
        assert.doesNotMatch(error.message, /\n\s+at /)
        return error.message
      },
    )
  const contents = () =>
    withPool(database.connection, async pool => [
      (await pool.query('select * from entities order by id')).rows,
      (await pool.query('select * from access_tokens order by id')).rows,
    ])

  it('says what of the server loses what was answered', async () => {
    for (const name of ['fsync', 'full_page_writes']) {
      const { rows } = await withPool(database.connection, pool => pool.query(`show ${name}`))
      assert.equal(printed.includes(`The server of the database has ${name} off: `), rows[0][name] === 'off', name)
    }
  })

  it('says what of the server writes the values of statements into its log, and what ends that', () =>
    withPool(database.connection, async pool => {
      const told = async (settings: Record<string, string>) => {
        // In the place of the server's own, which no role of a gateway may change.
        await pool.query('drop view if exists pg_temp.pg_settings')
        const values = Object.entries(settings).map(([name, setting]) => `('${name}', '${setting}')`)
        await pool.query(`create temp view pg_settings (name, setting) as values ${values}`)
        return (await findTelling(pool)).map(text => /has (\S+) on .* Set (\S+) to 0\.$/.exec(text)!.slice(1).join(' '))
      }
      assert.deepEqual(await findTelling(pool), [], 'as the server is')
      const still = {
        ...{
          log_statement: 'ddl',
          log_min_duration_statement: '-1',
          log_min_duration_sample: '-1',
          log_transaction_sample_rate: '0',
        },
        ...{ log_parameter_max_length: '-1', log_parameter_max_length_on_error: '0', 'auto_explain.log_min_duration': '-1' },
        'auto_explain.log_parameter_max_length': '-1',
        'pgaudit.log_parameter': 'off',
        ...{ 'auto_explain.log_verbose': 'on', debug_print_plan: 'off', debug_pretty_print: 'on' },
      }
      assert.deepEqual(await told(still), [])
      const own = 'log_parameter_max_length'
      const terse = { ...still, 'auto_explain.log_verbose': 'off' }
      for (const [name, setting, most] of [
        ['log_statement', 'mod', own],
        ['log_statement', 'all', own],
        ['log_min_duration_statement', '0', own],
        ['log_min_duration_sample', '250', own],
        ['log_transaction_sample_rate', '0.01', own],
        ['log_parameter_max_length_on_error', '-1', 'log_parameter_max_length_on_error'],
        ['auto_explain.log_min_duration', '1000', 'auto_explain.log_parameter_max_length'],
        ['pgaudit.log_parameter', 'on', 'pgaudit.log_parameter'],
      ] as const) {
        assert.deepEqual(await told({ ...terse, [name]: setting }), [`${name} ${most}`])
        assert.deepEqual(await told({ ...terse, [name]: setting, [most]: '0' }), [], name)
      }
      // Plans carry values without any parameter; a server of version 15 has no bound of auto_explain.
      const verbose = 'auto_explain.log_verbose'
      const { 'auto_explain.log_parameter_max_length': _, ...before16 } = still
      for (const server of [before16, { ...still, 'auto_explain.log_parameter_max_length': '0' }]) {
        const explained = { ...server, 'auto_explain.log_min_duration': '0' }
        assert.deepEqual(await told(explained), [`${verbose} ${verbose}`])
        assert.deepEqual(await told({ ...explained, [verbose]: 'off' }), [])
      }
      for (const name of ['debug_print_parse', 'debug_print_rewritten', 'debug_print_plan'])
        assert.deepEqual(await told({ ...still, log_parameter_max_length: '0', [name]: 'on' }), [`${name} ${name}`])
    }))

  it('a gateway that has forgotten its mode, and a command, are refused and change nothing', async () => {
    const before = await contents()
    for (const MODE of ['', 'sandbox']) {
      assert.match(await refused({ ...live, MODE, SEED_FILE: '' }), /belongs to live mode: set MODE=live/)
      const { code, out } = await commands.runIn({ ...live, MODE }, 'list')
      assert.equal(code, 1)
      assert.match(out, /belongs to live mode/)
    }
    assert.deepEqual(await contents(), before)
    assert.equal((await commands.runIn(live, 'list')).code, 0)
  })

  it('a command that has forgotten its mode is refused also where nothing says any more whose the database is', async () => {
    await withPool(database.connection, async pool => {
      const { rows } = await pool.query('delete from installation returning to_jsonb(installation) as row')
      assert.equal(rows.length, 1)
      try {
        const { code, out } = await commands.runIn({ ...live, MODE: '' }, 'list')
        assert.equal(code, 1)
        assert.match(out, /belongs to live mode/)
        assert.equal((await commands.runIn(live, 'list')).code, 0)
      } finally {
        await pool.query('insert into installation select (jsonb_populate_record(null::installation, $1)).*', [rows[0].row])
      }
    })
  })

  it('a second PSP is refused, of a seed as of the database', async () => {
    const second = put('second.json', { psp: { id: 'e7'.repeat(16), name: 'Second' } })
    const sentence = /An installation has one PSP, not 7e57c0de0{23}a \(PSP\) and (e7){16} \(Second\)/
    assert.match(await refused({ ...live, SEED_FILE: second }), sentence)
    await withPool(database.connection, async pool => {
      await pool.query(`insert into entities (id, kind, name, changed_at) values ($1, 'psp', 'Second', now())`, ['e7'.repeat(16)])
      try {
        assert.match(await refused(live), /has one PSP, not .*\(Second\)/)
      } finally {
        await pool.query('delete from entities where id = $1', ['e7'.repeat(16)])
      }
    })
  })

  it('a process that Node opens to debuggers is refused', async () => {
    const child = spawnSync(process.execPath, ['--report-on-signal', 'src/main.ts'], {
      cwd: project,
      env: live,
      encoding: 'utf8',
    })
    assert.equal(child.status, 1)
    assert.match(child.stderr, /Node is started with --report-on-signal/)
  })

  it("the sandbox's seed and other weak secrets are refused, by the start and by the command", async () => {
    const before = await contents()
    const sandboxSeed = put('sandbox-seed.json', readFileSync(join(project, 'seeds/sandbox.json'), 'utf8'))
    const cases = [
      [sandboxSeed, /tokens\[0\]\.password is too weak for live mode/],
      ...[
        'at-least-16-characters',
        'cGFzc3dvcmQtb2Ytb3VyLXNob3A', // password-of-our-shop
        sandboxToken,
        legacyToken(merchant, 'our-shop-1'),
        `${merchant}|our-shop-1`,
        ...(['latin1', 'utf16le'] as const).map(encoding => Buffer.from(`${merchant}|Größen1`, encoding).toString('base64')),
        Buffer.from('Händler1|Sommer2024', 'latin1').toString('base64'),
        ...['our-shop|x\x80ld-2024', 'ACME\\joe+1@shop.example|Sch\xf6n1'].map(text =>
          Buffer.from(text, 'latin1').toString('base64'),
        ),
      ].map((token, at) => [seedFile({}, { token }, `weak-${at}.json`), /tokens\[0\]\.token is too weak for live mode/] as const),
    ] as const
    for (const [path, sentence] of cases) {
      assert.match(await refused({ ...live, SEED_FILE: path }), sentence)
      const { code, out } = await commands.runIn(live, 'seed', path)
      assert.equal(code, 1)
      assert.match(out, sentence)
    }
    const path = seedFile({}, {}, 'open.json')
    chmodSync(path, 0o644)
    for (const words of [
      ['seed', path],
      ['token', 'create', '--entity', merchant, '--token-file', path],
    ]) {
      const { code, out } = await commands.runIn(live, ...words)
      assert.match(`${code} ${out}`, /^1 MODE=live: .* others may read: set its mode to 0600\.\n$/)
    }
    assert.deepEqual(await contents(), before)
  })

  it("what the score does not see is refused all the same if it is the sandbox's, and nothing is left of that seed", async () => {
    const before = await contents()
    const keys = makeKeys([Buffer.from(keyOf('seal'), 'hex')], Buffer.from(keyOf('lookup'), 'hex'))
    // As a sandbox reads the file, without a look at how strong its tokens are.
    const path = seedFile({ mode: 'live' }, { token: sandboxToken }, 'public.json')
    await assert.rejects(
      withPool(database.connection, pool => applySeed(pool, keys, systemClock, systemRandom, readSeed(path))),
      /public access token of the sandbox/,
    )
    assert.deepEqual(await contents(), before)
  })

  it('a database that holds the public token all the same is started, and the token revoked', async () => {
    const id = '7e57c0de00000000000000000000007b'
    const hash = createHmac('sha256', hkdf(keyOf('lookup')))
      .update(`token\u0000${sandboxToken}`)
      .digest()
    await withPool(database.connection, pool =>
      pool.query(
        `insert into access_tokens (token_hash, id, merchant_id, label, entities, legacy, created_at)
         values ($1, $2, $3, 'public', array[$3::uuid], false, now())`,
        [hash, id, merchant],
      ),
    )
    const gateway = await startProcess({ ...live, TRUSTED_PROXY: '127.0.0.1' })
    assert.match(gateway.printed(), /public access token of the sandbox was valid here/)
    await gateway.stop()
    const { rows } = await withPool(database.connection, pool =>
      pool.query(`select revoked_at is not null as revoked from access_tokens where id = $1`, [id]),
    )
    assert.deepEqual(rows, [{ revoked: true }])
    const { out } = await commands.runIn(live, 'audit', '--action', 'tokenRevoked', '--entity', merchant)
    assert.match(out, new RegExp(`gateway .*tokenRevoked.*${id}`))
  })

  it('an audit that was emptied is not begun anew by the next start', async () => {
    assert.equal((await commands.runIn(live, 'audit', 'verify')).code, 0)
    await withPool(database.connection, pool =>
      pool.query(`alter table audit disable trigger audit_grows; grant delete on audit to current_user; delete from audit;
        update audit_head set sequence = 0, proof = null; alter table audit enable always trigger audit_grows`),
    )
    await (await startProcess(live)).stop()
    const { code, out } = await commands.runIn(live, 'audit', 'verify')
    assert.equal(code, 1)
    assert.match(out, /head of the chain was not written by this installation/)
  })

  it('3-D Secure always, without anybody to ask, is refused by the name of the channel', async () => {
    const before = await contents()
    const path = seedFile({ mode: 'live', threeDSecure: 'always' })
    const sentence = new RegExp(`channel ${channel} \\(Shop EUR\\): threeDSecure is always, but`)
    assert.match(await refused({ ...live, SEED_FILE: path }), sentence)
    const { code, out } = await commands.runIn(live, 'seed', path)
    assert.equal(code, 1)
    assert.match(out, sentence)
    assert.deepEqual(await contents(), before)
    // One that is there already, because a directory server was.
    const set = (settings: object) =>
      withPool(database.connection, pool => pool.query('update entities set settings = $2 where id = $1', [channel, settings]))
    await set({ mode: 'live', threeDSecure: 'always' })
    assert.match(await refused(live), new RegExp(`MODE=live: Shop EUR \\(${channel}\\): threeDSecure is always, but`))
    await set({ mode: 'live' })
    await (await startProcess({ ...live, SEED_FILE: seedFile({ mode: 'live' }) })).stop()
  })
})

it("a sandbox's database is refused by live mode, with the very keys of the sandbox, and is found by its token if it is older", async () => {
  const database = await makeDatabase()
  const dataDir = join(folder, 'sandbox')
  const sandbox = { DATABASE_URL: databaseUrl(database.connection), DATA_DIR: dataDir }
  await (await startProcess(sandbox)).stop()
  const keys = { SEAL_KEY_FILE: join(dataDir, 'keys/seal.key'), LOOKUP_KEY_FILE: join(dataDir, 'keys/lookup.key') }
  const wrong = { ...good(), ...sandbox, ...keys }
  await assert.rejects(startProcess(wrong), /belongs to a sandbox, whose credentials are public/)
  // As one that was made before modes were written.
  await withPool(database.connection, pool => pool.query('delete from installation'))
  await assert.rejects(startProcess(wrong), /belongs to a sandbox/)
  await (await startProcess(sandbox)).stop()
  const { rows } = await withPool(database.connection, pool => pool.query('select mode from installation'))
  assert.deepEqual(rows, [{ mode: 'sandbox' }])
  await database.drop()
})

describe('TLS', { skip: !hasOpenssl && 'openssl is not installed' }, () => {
  let gateway: Started
  let port: number
  let database: TestDatabase
  let own: { cert: string; key: string }
  before(async () => {
    database = await makeDatabase()
    own = makeCertificate(folder, 'gateway')
    port = await freePort()
    gateway = await startProcess({
      ...good(),
      DATABASE_URL: databaseUrl(database.connection),
      DATA_DIR: join(folder, 'tls'),
      TLS_CERT: own.cert,
      TLS_KEY: own.key,
      PORT: String(port),
      PUBLIC_URL: 'https://localhost',
    })
  })
  after(async () => {
    await gateway?.stop()
    await database.drop()
  })

  const handshake = (options: ConnectionOptions): Promise<string> =>
    new Promise(resolve => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().name}`)
        socket.destroy()
      })
      socket.once('error', error => resolve(`refused: ${(error as { code?: string }).code}`))
    })

  it('is 1.2 or 1.3, with ECDHE and AEAD only', async () => {
    assert.match(await handshake({}), /^TLSv1\.3 TLS_/)
    assert.match(await handshake({ maxVersion: 'TLSv1.2' }), /^TLSv1\.2 ECDHE-RSA-AES/)
    for (const cipher of ['ECDHE-RSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES128-GCM-SHA256'])
      assert.equal(await handshake({ maxVersion: 'TLSv1.2', ciphers: cipher }), `TLSv1.2 ${cipher}`)
    for (const cipher of [
      'AES256-GCM-SHA384',
      'AES128-SHA',
      'ECDHE-RSA-AES256-SHA384',
      'DHE-RSA-AES256-GCM-SHA384',
      'ECDHE-RSA-AES128-SHA',
    ])
      assert.match(await handshake({ maxVersion: 'TLSv1.2', ciphers: `${cipher}:@SECLEVEL=0` }), /^refused/, cipher)
    for (const ecdhCurve of ['X25519', 'P-256']) assert.match(await handshake({ ecdhCurve }), /^TLSv1\.3 TLS_/, ecdhCurve)
    for (const ecdhCurve of ['ffdhe2048', 'P-384', 'P-521', 'X448'])
      assert.match(await handshake({ ecdhCurve }), /^refused/, `a key of ${ecdhCurve} is dear, and any stranger can ask for one`)
    assert.match(await handshake({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }), /^refused/)
  })

  it('no signal opens an inspector', async () => {
    const before = gateway.printed()
    process.kill(gateway.child.pid!, 'SIGUSR1')
    await eventually(async () => (await handshake({})).startsWith('TLS'), 'it goes on')
    const { stdout } = spawnSync('sh', ['-c', `cat /proc/${gateway.child.pid}/net/tcp 2>/dev/null`], { encoding: 'utf8' })
    assert.ok(!stdout.includes(':240D '), 'the inspector listens on port 9229')
    assert.equal(gateway.printed(), before)
  })

  it('nor serves a process whose inspector a signal of the first moment has opened, the one that starts all or one of several', async () => {
    for (const [which, sentence] of [
      ['true', /Somebody has opened the inspector of Node/],
      ['process.send', /Somebody has opened the inspector of Node[\s\S]*A worker ended at its start/],
    ] as const) {
      const made = await makeDatabase()
      const opened = `data:text/javascript,import { open } from 'node:inspector'; if (${which}) open(0, '127.0.0.1')`
      const keys = { SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32) }
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', opened, 'src/main.ts'], {
        cwd: project,
        env: {
          PATH: process.env.PATH,
          PORT: '0',
          WORKERS: '2',
          DATABASE_URL: databaseUrl(made.connection),
          DATA_DIR: folder,
          ...keys,
        },
        encoding: 'utf8',
        timeout: 60_000,
      })
      assert.equal(status, 1, stderr)
      assert.match(stderr, sentence)
      assert.doesNotMatch(stdout, /Ctrl-C stops it/)
      await made.drop()
    }
  })

  describe('towards a partner that asks who we are', () => {
    let partner: https.Server
    let us: { cert: string; key: string }
    let url: string
    before(async () => {
      const their = makeCertificate(folder, 'partner')
      us = makeCertificate(folder, 'us')
      partner = https.createServer(
        {
          cert: readFileSync(their.cert),
          key: readFileSync(their.key),
          ca: readFileSync(us.cert),
          requestCert: true,
          rejectUnauthorized: true,
        },
        (_, response) => response.end('{}'),
      )
      await new Promise<void>(resolve => partner.listen(0, '127.0.0.1', resolve))
      url = `https://localhost:${(partner.address() as AddressInfo).port}/`
    })
    after(() => new Promise(resolve => partner.close(resolve)))

    const files = () => ({ ca: 'partner.crt', cert: 'us.crt', key: 'us.key' })
    const ask = (tls?: Parameters<typeof httpTransport>[0]['tls']) =>
      httpTransport({ method: 'POST', url, body: 'x=1', ...(tls && { tls }) }, AbortSignal.timeout(5000))

    it('the certificate of the file is shown, and theirs is looked at', async () => {
      const settings = { endpoint: url, checkout: url, credentials: {}, tls: files() }
      const { live } = readWalletFile(JSON.stringify({ live: settings }), join(folder, 'wallet.json'))
      assert.deepEqual(await ask(live!.tls), { status: 200, body: '{}' })
      await assert.rejects(ask(), NotSent) // nobody vouches for them: nothing is sent
      await assert.rejects(ask({ ca: live!.tls!.ca! })) // they do not know us
    })

    it('files that are not there, hold nothing, or may be read by others, are named', () => {
      chmodSync(us.key, 0o644)
      const read = (tls: object) => () =>
        readDirectoryFile(JSON.stringify({ live: { url, requestor: {}, tls } }), join(folder, 'ds.json'))
      const wallet = (tls: object) => () =>
        readWalletFile(JSON.stringify({ live: { endpoint: url, checkout: url, credentials: {}, tls } }), join(folder, 'w.json'))
      assert.throws(wallet(files()), /live\.tls\.key names .*us\.key, which others may read/)
      assert.throws(wallet({ ...files(), ca: 'none.crt' }), /live\.tls\.ca names .*none\.crt, which cannot be read/)
      assert.throws(wallet({ cert: 'us.crt' }), /tls\.cert and tls\.key are needed together/)
      const whole = readFileSync(join(folder, 'partner.crt'), 'utf8')
      const der = Buffer.from(whole.replace(/-----.*-----|\s/g, ''), 'base64')
      const texts: [string, string | Buffer, isTaken?: true][] = [
        ['one', whole, true],
        ['two, with words beside them', `# ours\n${whole}\n# theirs\n${whole.replaceAll('\n', '\r\n')}`, true],
        ['one behind the mark of the order of its bytes', `\uFEFF${whole}`, true],
        ['one beside words about one', `# -----BEGIN CERTIFICATE----- begins it\n${whole}`, true],
        ['one that is commented out', whole.replace(/^/gm, '# ')],
        ['nothing', ''],
        ['words', 'hello\n'],
        ['a key', readFileSync(us.key)],
        ['a request', whole.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST')],
        ['no PEM', der],
        ['one that is cut short', whole.slice(0, whole.length / 2)],
        ['one without its last line', whole.slice(0, whole.lastIndexOf('-----END'))],
        ['a second that is cut short', whole + whole.slice(0, whole.length / 2)],
        ['one that is broken', whole.replace(/\n[A-Za-z0-9+/=]{20}/, '\n')],
      ]
      for (const [name, text, isTaken] of texts) {
        writeFileSync(join(folder, 'ca.pem'), text)
        if (isTaken) assert.deepEqual(wallet({ ca: 'ca.pem' })().live!.tls!.ca, Buffer.from(text), name)
        else assert.throws(wallet({ ca: 'ca.pem' }), /live\.tls\.ca names .*ca\.pem, which holds no certificate/, name)
      }
      assert.throws(read({ certificate: 'x' }), /live\.tls\.certificate is not known/)
      chmodSync(us.key, 0o600)
    })
  })
})

test('metrics are told to who has the token', async () => {
  const [port, token] = [await freePort(), 'metrics-token-of-16']
  const database = await makeDatabase()
  const gateway = await startProcess({
    DATABASE_URL: databaseUrl(database.connection),
    DATA_DIR: join(folder, 'metrics'),
    METRICS_PORT: String(port),
    METRICS_TOKEN_FILE: put('metrics-token', `${token}\n`),
  })
  const status = async (headers: Record<string, string>) => (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).status
  assert.equal(await status({}), 401)
  assert.equal(await status({ Authorization: 'Bearer metrics-token-of-17' }), 401)
  assert.equal(await status({ Authorization: `Bearer ${token}` }), 200)
  await gateway.stop()
  await database.drop()
})

test('cells reporting tells its password to nobody either', async () => {
  const environment = { DATABASE_URL: 'postgres://127.0.0.1:9/x' }
  const cells = (more: object) =>
    JSON.stringify({ map: 'm', cells: [{ name: 'one', environment: { ...environment, ...more }, gateways: ['127.0.0.1:9'] }] })
  const REPORTING_DATABASE_URL = 'postgres://reader:secret@192.0.2.2/x'
  for (const [mode, file] of [
    [{ MODE: 'live' }, cells({})],
    [{}, cells({ MODE: 'live' })],
  ] as const) {
    const path = put('cells.json', file, 0o600)
    const given = { DATA_DIR: folder, REPORTING_DATABASE_URL, ...mode }
    const { code, out } = await commands.runIn(given, 'cells', 'reporting', '--cells', path)
    assert.equal(code, 1)
    assert.match(out, /MODE=live: REPORTING_DATABASE_URL reaches 192\.0\.2\.2 without TLS/)
  }
})

test('no command takes a secret as an argument', async () => {
  for (const command of [['clock', 'show'], ['listen'], ['trigger', 'capture']]) {
    const { code, out } = await commands.runIn({ DATA_DIR: folder }, ...command, '--token', 'secret')
    assert.equal(code, 2)
    assert.match(out, /Unknown option '--token'/)
  }
})
