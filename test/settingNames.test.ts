// Names of settings: one that was mistyped is told before anything starts, other programs' variables are left alone, and no slip opens a sandbox.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { withoutSettings } from '../scripts/test/environment.ts'
import { readConfig } from '../src/start/config.ts'

const refusal = (environment: Record<string, string>): string => {
  try {
    readConfig(environment, '/nonexistent')
    return ''
  } catch (error) {
    return (error as Error).message
  }
}
const documented = [...readFileSync('docs/operating.md', 'utf8').matchAll(/^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|/gm)].flatMap(
  ([, names]) => [...names!.matchAll(/[A-Z_]+/g)].map(([name]) => name),
)

describe('a name that was mistyped', () => {
  for (const [given, meant] of [
    ['mode', 'MODE'],
    ['Mode', 'MODE'],
    ['Port', 'PORT'],
    ['RISK_RULE_FILE', 'RISK_RULES_FILE'],
    ['ACQUIRER_FILE', 'ACQUIRERS_FILE'],
    ['TRUSTED_PROXYS', 'TRUSTED_PROXY'],
    ['METRIC_PORT', 'METRICS_PORT'],
    ['SEALKEY_FILE', 'SEAL_KEY_FILE'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['public_url', 'PUBLIC_URL'],
    ['SANDBOX_HOST', 'SANDBOX_HOSTS'],
  ] as const)
    it(given, () => assert.equal(refusal({ [given]: '1' }), `${given} is not known: did you mean ${meant}?`))

  it('is found for each setting that is described, in small letters and with a letter too many', () => {
    assert.ok(documented.length > 25, documented.join())
    for (const name of documented) {
      assert.match(refusal({ [name.toLowerCase()]: '1' }), new RegExp(`did you mean ${name}\\?`))
      if (name.length > 7) assert.match(refusal({ [`${name}S`]: '1' }), new RegExp(`${name}S is not known: did you mean `))
    }
  })
})

it('variables of other programs are left alone, and whoever gives the right name too', () => {
  const others =
    'PATH HOME NODE MODEL PORTS SORT POST HOSTS HOSTNAME HOSTTYPE npm_config_port npm_package_json NODE_ENV NODE_PATH PUBLIC_DIR XDG_DATA_DIRS SSL_CERT \
SSL_KEY TLS_CA DB_URL REDIS_URL TEST_DATABASE_URL APP_PORT METRICS_HOST PROXY http_proxy HTTP_PROXY LOGNAME LANG TERM WORKER LOG_FILE KEY_FILE PGHOST TZ'
  assert.equal(refusal(Object.fromEntries(others.split(' ').map(name => [name, '1']))), '')
  assert.equal(refusal({ mode: 'dark', MODE: 'sandbox', METRIC_PORT: '1', METRICS_PORT: '9' }), '')
  assert.equal(refusal({ METRIC_PORT: '' }), '')
  assert.notEqual(refusal({ mode: 'live', MODE: '' }), '')
})

describe('an address of another', () => {
  const endpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT'
  for (const url of [
    'https://user:sEcret99@collector.example',
    'http://user@localhost:4318',
    'http://localhost:4318/?key=sEcret99',
  ])
    it(`has no secrets in it: ${url}`, () => {
      const told = refusal({ [endpoint]: url })
      assert.match(
        told,
        /^OTEL_EXPORTER_OTLP_ENDPOINT must hold no user name, password or query: .* OTEL_EXPORTER_OTLP_HEADERS\.$/,
      )
      assert.doesNotMatch(told, /sEcret99/)
    })
  it('may have a path', () => assert.equal(refusal({ [endpoint]: 'https://collector.example:4318/traces/' }), ''))
  for (const headers of ['x-key=%ZZ', 'x-key=a%0d%0ab'])
    it(`names the setting that cannot be decoded: ${headers}`, () =>
      assert.match(
        refusal({ [endpoint]: 'http://localhost:4318', OTEL_EXPORTER_OTLP_HEADERS: headers }),
        /^OTEL_EXPORTER_OTLP_HEADERS must be headers as name=value, percent-encoded/,
      ))
  it('names the setting of the database that cannot be decoded', () => {
    assert.equal(
      refusal({ DATABASE_URL: 'postgres://user:sEcret%C3%28@db/x' }),
      'DATABASE_URL has percent-encoded bytes that are no UTF-8.',
    )
    assert.equal(refusal({ DATABASE_URL: 'postgres://user:100%@db/x' }), '')
  })
  it('names the setting of a database that the driver does not understand, and nothing of its password', () => {
    const none = / is no address: in a password #, \/, \? and @ are written %23/
    const port = / has a port that is none: it must be from 1 to 65535/
    const unnamed = / has a \? with no name of a parameter behind it: in a password \? is written %3F/
    const pipe = join(mkdtempSync(join(tmpdir(), 'tollgate-pipe-')), 'pipe')
    execFileSync('mkfifo', [pipe])
    const wrong: [url: string, sentence: RegExp][] = [
      ['postgres://user:sEcret#1@db/x', none],
      ['postgres://user:sEcret/1@db/x', none],
      ['postgres://user:sEcret?1@db/x', unnamed],
      ['postgres://user:12?sEcret@db/x', unnamed],
      ['postgres://user:12?sEcret=1@db/x', unnamed],
      ['postgres://user:sEcret@db/x?sslmode=verify-full&sslmode=disable', / has the parameter sslmode twice\./],
      ['postgres://user:sEcret@db/x?ssl=false', / has a value of ssl that it cannot have\./],
      ['postgres://user:sEcret@db/x?sslmode=', / has a parameter without a value: sslmode\./],
      ['postgres://user:sEcret@db/x?sslMode=verify-full', / has a parameter that is not known: sslMode\./],
      ['postgres://user:sEcret@db/x?sslmode=verify-full&ssl_mode=verify-full', / has a parameter that is not known: ssl_mode\./],
      ['postgres://user:sEcret@db/x?sslkey=/', / names \/ as sslkey, which is no file\./],
      [`postgres://user:sEcret@db/x?sslrootcert=${pipe}`, / names .* as sslrootcert, which is no file\./],
      ['postgres://user:sEcret@[::1/x', none],
      ['postgres://user:sEcret@db:65536/x', none],
      ['postgres://user:sEcret@db/x?port=65536', port],
      ['postgres://user:sEcret@db/x?port=0', port],
      ['postgres://user:sEcret@db/x?port=x', / has a value of port that it cannot have\./],
      // What stands there the driver passes over, or takes for a part of something else.
      ['postgres://user:sEcret@db/x??sslmode=verify-full', unnamed],
      ['postgres://user:sEcret@db/x#?sslmode=verify-full', none],
      ['postgres://user:sEcret@db/x?connect_timeout=10#&sslmode=verify-full', none],
      ...[';', '?', '%26'].map((sign): [string, RegExp] => [
        `postgres://user:sEcret@db/x?connect_timeout=10${sign}sslmode=verify-full`,
        / has a value of connect_timeout that it cannot have\./,
      ]),
      ['postgres://user:sEcret@db/x?sslmode=verify_full', / has a value of sslmode that it cannot have\./],
      ['postgres://user:sEcret@db/x?ssl=yes', / has a value of ssl that it cannot have\./],
      ['postgres://user:pw@sEcret,x@db/x', none],
      // Beside a % that encodes nothing the driver reads none.
      ['postgres://user:sEcret%@db/x?ssl%6Dode=verify-full', / has a % that encodes nothing beside others/],
      ['postgres://user:sEcret@db/x?ssl%6Dode=verify-full', / has the name of a parameter encoded: sslmode\./],
      [
        'postgres://user:sEcret@db/x?target%5Fsession_attrs=read-only',
        / has the name of a parameter encoded: target_session_attrs\./,
      ],
      ['postgres://user:12/sEcret@db/x', none],
      ['postgres://user:12#sEcret@db/x', none],
      ['postgres://user:sEcret@db/x?sslrootcert=/nonexistent', / cannot be used: ENOENT: .*'\/nonexistent'/],
      ['db/x', / must begin with postgres/],
    ]
    for (const name of ['DATABASE_URL', 'REPORTING_DATABASE_URL']) {
      for (const [url, sentence] of wrong) {
        const told = refusal({ [name]: url })
        assert.match(told, new RegExp(`^${name}${sentence.source}`), url)
        assert.doesNotMatch(told, /sEcret|\n/)
      }
      for (const port of ['db:1', 'db:65535', '[::1]:5433', '%2Ftmp'])
        assert.equal(refusal({ [name]: `postgres://user:a%23b@${port}/x?port=65535` }), '')
    }
    assert.match(refusal({ DATABASE_URL: 'postgres://user:sEcret@a:5432,b:x/x' }), none)
    assert.equal(refusal({ DATABASE_URL: 'postgres://user:sEcret@a:5432,b:5433/x' }), '')
  })
  it('takes no list without an address for one of somebody whom alerts go to', () => {
    const all = { SMTP_URL: 'smtp://mail.example', ALERT_TO: 'a@b.example', ALERT_FROM: 'a@b.example' }
    assert.equal(refusal(all), '')
    for (const name of ['ALERT_TO', 'ALERT_FROM'])
      for (const nobody of ['', ',', ' ', ' , '])
        assert.equal(refusal({ ...all, [name]: nobody }), 'SMTP_URL, ALERT_TO and ALERT_FROM are needed together.')
    assert.equal(refusal({ SMTP_URL: '', ALERT_TO: '', ALERT_FROM: '' }), '')
  })
  it('names the setting of mail that cannot be decoded', () =>
    assert.match(
      refusal({ SMTP_URL: 'smtp://user:%ZZ@mail.example', ALERT_TO: 'a@b.example', ALERT_FROM: 'a@b.example' }),
      /^SMTP_URL must be smtp:/,
    ))
})

it('what configures a gateway does not reach the tests', () => {
  assert.deepEqual(withoutSettings(Object.fromEntries(documented.map(name => [name, '1']))), {})
})

describe('a sandbox, whose token is public', () => {
  const open = /the credentials of a sandbox are public: give MODE=live, or say SANDBOX_OPEN=yes/
  for (const environment of [
    { HOST: '0.0.0.0' },
    { HOST: '::' },
    { HOST: '198.51.100.7' },
    { HOST: 'pay.shop.com' },
    { PUBLIC_URL: 'https://pay.shop.com' },
    { PUBLIC_URL: 'https://pay.shop.com:8443' },
    { PUBLIC_URL: 'https://8.8.8.8' },
  ] as const)
    it(`is not open by ${JSON.stringify(environment)}, unless that is said aloud`, () => {
      assert.match(refusal(environment), open)
      assert.equal(refusal({ ...environment, SANDBOX_OPEN: 'yes' }), '')
    })
  it('stands on the own machine and in private networks', () => {
    for (const HOST of ['127.0.0.1', 'localhost', '::1', '10.1.2.3', '192.168.1.2', 'fd00::1'])
      assert.equal(refusal({ HOST }), '')
    for (const PUBLIC_URL of [
      'https://localhost',
      'https://10.1.2.3',
      'https://pay.home.arpa',
      'https://shop.test',
      'http://pay.shop.com',
    ])
      assert.equal(refusal({ PUBLIC_URL }), '')
    assert.match(refusal({ SANDBOX_OPEN: 'true' }), /SANDBOX_OPEN must be one of yes, no/)
  })
})
