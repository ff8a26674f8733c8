// docs/cryptography.md names every place where something is encrypted, signed or hashed, with its algorithms, and none that is not there.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { project } from './support/process.ts'

const sources = readdirSync(join(project, 'src'), { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts'))
  .map(name => `src/${name}`)
const read = (path: string) => readFileSync(join(project, path), 'utf8')
const inventory = read('docs/cryptography.md')

const works =
  /\b(create(Hash|Hmac|Cipheriv|Decipheriv|Sign|Verify|ECDH|DiffieHellman)|hkdf(Sync)?|argon2(Sync)?|pbkdf2(Sync)?|scrypt(Sync)?|hash|sign|verify)\(/
const ofNode = /import \{([^}]*)\} from 'node:crypto'/
const algorithms = /'((?:id-)?(?:aes|des-ede)[\w-]*|argon2id|md5|sha\d+)'/g

const workers = sources.filter(path => works.test(ofNode.exec(read(path))?.[1]?.replaceAll(/\b(\w+)\b/g, '$1(') ?? ''))

it('all places are named', () => {
  assert.ok(workers.length > 25, `${workers.length}`)
  assert.deepEqual(
    workers.filter(path => !inventory.includes(`\`${path}\``)),
    [],
  )
})

it('all algorithms are named where they are used', () => {
  const unnamed = workers.flatMap(path => {
    const said = inventory.split('\n').find(line => line.includes(`\`${path}\``)) ?? ''
    const hashes = inventory.slice(inventory.indexOf('## Hashes without a key'))
    const used = new Set([...read(path).matchAll(algorithms)].map(([, name]) => name!))
    return [...used]
      .filter(name => !said.includes(`\`${name}\``) && !(hashes.includes(said) && hashes.includes(`\`${name}\``)))
      .map(name => `${name} of ${path}`)
  })
  assert.deepEqual(unnamed, [])
})

it('nothing else is named', () => {
  const named = [...inventory.matchAll(/`(src\/[\w/]+\.ts)`/g)].map(([, path]) => path!)
  assert.deepEqual(
    named.filter(path => !existsSync(join(project, path))),
    [],
  )
})
