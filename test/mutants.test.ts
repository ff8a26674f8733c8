// The list of planted faults (`npm run mutants`) fits the code as it is: each fault can be planted, is a program, and names tests that exist.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { mutants, mutantsOf } from '../scripts/mutants/mutants.ts'
import { planted } from '../scripts/mutants/plant.ts'

const project = fileURLToPath(new URL('..', import.meta.url))

for (const mutant of mutants) {
  test(mutant.name, () => {
    const text = readFileSync(project + mutant.file, 'utf8')
    const faulty = planted(mutant, text)
    assert.ok(faulty, `${mutant.file} must hold exactly once: ${mutant.find}`)
    assert.notEqual(faulty, text)
    if (mutant.file.endsWith('.ts')) stripTypeScriptTypes(faulty) // throws at what is no program
    assert.ok(mutant.tests.length > 0)
    for (const name of mutant.tests) assert.ok(existsSync(`${project}test/${name}.test.ts`), `test/${name}.test.ts`)
  })
}

test('no two faults have one name', () => {
  assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length)
})

test('each fault stands in the list of the room where its file is', () => {
  const roomOf = (file: string) => /^src\/([^/]+)\//.exec(file)?.[1] ?? 'project'
  const elsewhere = Object.entries(mutantsOf).flatMap(([room, list]) => list.filter(({ file }) => roomOf(file) !== room))
  assert.deepEqual(
    elsewhere.map(({ name }) => name),
    [],
  )
})
