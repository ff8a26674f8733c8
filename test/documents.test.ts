// What documents say is there: links lead somewhere, the first curl line is the one that is printed, every setting is explained.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { capacityTables } from '../scripts/scale.ts'
import { standardBrands } from '../src/contract/brands.ts'
import { hasLuhnDigit } from '../src/contract/luhn.ts'
import { groupSettings } from '../src/merchants/settings.ts'
import { sizes } from '../src/platform/database/connect.ts'
import { cardOutcomes } from '../src/sandbox/cards.ts'
import { testCards } from '../src/sandbox/testCards.ts'
import { curlLine } from '../src/sandbox/welcome.ts'
import { sandbox } from './support/gateway.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(project + path, 'utf8')
const filesIn = (folder: string, ending: string) =>
  readdirSync(project + folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith(ending))
    .map(name => `${folder}/${name}`)

const pages = [...readdirSync(project).filter(name => name.endsWith('.md')), ...filesIn('docs', '.md')]

test('links lead to files and to headings', () => {
  for (const page of pages) {
    for (const [, target] of read(page).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [path, heading] = target!.split('#') as [string, string?]
      const file = path === '' ? page : new URL(path, `file:///${page}`).pathname.slice(1)
      assert.ok(existsSync(project + file), `${page} links to ${target}`)
      if (heading === undefined) continue
      const headings = [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, text]) => text!.toLowerCase().replaceAll(' ', '-'))
      assert.ok(headings.includes(heading), `${page} links to ${target}`)
    }
  }
})

test('the connections of a process are counted', () => {
  const [pools, listening] = [Object.values(sizes).reduce((sum, { max }) => sum + max, 0), 1]
  assert.match(read('docs/operating.md'), new RegExp(`Each process takes up to ${pools + listening} connections`))
})

test('the tables of capacity are made of the figures that stand in performance.md', () => {
  assert.ok(read('docs/scale.md').includes(capacityTables(read('docs/performance.md'))), 'npm run scale')
})

test('the curl line of the README is the one that a start prints', () => {
  const line = curlLine({ baseUrl: 'http://127.0.0.1:8080', entityId: sandbox.entityId, accessToken: sandbox.accessToken })
  assert.ok(read('README.md').includes(`\n    ${line}\n`))
})

test('every setting is explained in operating.md', () => {
  const page = read('docs/operating.md')
  const environment = [...read('src/start/config.ts').matchAll(/(?:setting|oneOf|whole|file)\('([A-Z_]+)'/g)].map(
    ([, name]) => name!,
  )
  assert.ok(environment.length >= 10)
  const names = [...environment, ...Object.keys(groupSettings.entries)]
  assert.deepEqual(
    names.filter(name => !page.includes(`\`${name}\``)),
    [],
  )
})

test('numbers of decisions that comments cite are in the list of open points', () => {
  const points = new Set([...read('docs/decisions/open-points.md').matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => number!))
  assert.equal(points.size, 69)
  for (const path of [...filesIn('src', '.ts'), ...filesIn('test', '.ts')]) {
    for (const [, numbers] of read(path).matchAll(/\(decisions, ([\d, ]+)\)/g)) {
      for (const number of numbers!.split(/, */)) assert.ok(points.has(number), `${path} cites ${number}`)
    }
  }
})

test('test cards are cards of their brand', () => {
  for (const [brand, number, cvvDigits] of testCards) {
    assert.ok(hasLuhnDigit(number) && standardBrands.named(brand)?.lengths.includes(number.length), number)
    assert.equal(standardBrands.named(brand)?.cvvLength, cvvDigits, number)
    assert.ok((cardOutcomes[number] ?? 'succeeded') === 'succeeded', `${number} is approved`)
  }
  for (const number of Object.keys(cardOutcomes)) assert.ok(hasLuhnDigit(number), number)
})

test('every line of the security checklist has a verdict, and the tests that it names are there', () => {
  const lines = read('docs/security-checklist.md').split('\n')
  const rows = lines.filter(line => /^\| \d/.test(line)).map(line => line.split('|').map(cell => cell.trim()))
  assert.ok(rows.length > 150)
  for (const [, line, , verdict, why] of rows) {
    assert.ok(['pass', 'fail', 'n/a', 'operator'].includes(verdict!), `${line}: ${verdict}`)
    assert.ok(why !== '' || verdict === 'operator' || verdict === 'n/a', `${line} says nothing`)
    for (const [, name] of why!.matchAll(/`(\w+\.(?:test\.ts|http))`/g))
      assert.ok(existsSync(`${project}test/${name!.endsWith('.http') ? 'scenarios/' : ''}${name}`), `${line} names ${name}`)
  }
})
