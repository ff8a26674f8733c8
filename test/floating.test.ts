// What the check of promises that nobody waits for finds, and what it lets pass.

import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { floatingPromises } from '../scripts/floating.ts'

const head = `
declare function work(): Promise<void>
declare function maybe(): Promise<void> | undefined
declare function on(event: string, listener?: (...words: string[]) => void): void
declare function ask(take: () => Promise<void>): void
const safe = () => work().catch(() => {})
`
const floats = [
  'work()',
  'void work()',
  'maybe()',
  'work().then(() => {})',
  'work().finally(() => {})',
  'void work().then(() => work())',
  'on("end", work)',
  'on("end", async () => { await work() })',
  'on("end", () => void work())',
  'on("end", () => { work() })',
  ';[1].forEach(async () => { await work() })',
  'new Promise<void>(async resolve => { await work(); resolve() }).catch(() => {})',
  'export const options = { listener: work } satisfies { listener: () => void }',
]
const passes = [
  'await work()',
  'work().catch(() => {})',
  'work().catch(() => {}).finally(() => work())',
  'work().then(() => {}, () => {})',
  'on("end", safe)',
  'on("end", () => work().catch(() => {}))',
  'ask(work)',
  'export let kept = work()',
  'kept = work()',
]

test('each is found, and what is waited for or caught is not', () => {
  const folder = `${realpathSync(mkdtempSync(join(tmpdir(), 'tollgate-floating-')))}/`
  writeFileSync(
    join(folder, 'tsconfig.json'),
    '{ "compilerOptions": { "target": "es2024", "module": "esnext", "strict": true, "types": [] } }',
  )
  writeFileSync(join(folder, 'one.ts'), [head, ...floats, ...passes].join('\n'))
  const first = head.split('\n').length + 1
  const found = floatingPromises(folder).map(text => Number(/:(\d+) /.exec(text)![1]) - first)
  rmSync(folder, { recursive: true })
  assert.deepEqual(
    found.map(at => [...floats, ...passes][at]),
    floats,
  )
})
