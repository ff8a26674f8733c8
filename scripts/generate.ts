// Writes what is generated: docs/reference/* and migrations/schema.sql. `npm run generate`. With --check it only names each stale file;
// with --baseline it also renews test/baseline, on purpose, after a change of the interface that is meant.

import { mkdirSync, writeFileSync } from 'node:fs'
import { startTestServer, withPool } from '../test/support/database.ts'
import { baselinePath, generated, stale } from './generate/generated.ts'

const asked = process.argv.slice(2)
if (asked.some(word => word !== '--check' && word !== '--baseline')) {
  process.stderr.write('Usage: npm run generate [-- --check | --baseline]\n')
  process.exit(2)
}

const server = await startTestServer()
const files = await withPool(server.migrated, generated).finally(() => server.stop())
if (asked.includes('--check')) {
  const found = stale(files)
  for (const name of found) process.stdout.write(`stale: ${name}\n`)
  if (found.length > 0) {
    process.stdout.write('npm run generate writes them.\n')
    process.exitCode = 1
  }
} else {
  for (const [name, text] of files) {
    if (name === baselinePath && !asked.includes('--baseline')) continue
    mkdirSync(new URL('.', new URL(`../${name}`, import.meta.url)), { recursive: true })
    writeFileSync(new URL(`../${name}`, import.meta.url), text)
    process.stdout.write(`${name}\n`)
  }
}
