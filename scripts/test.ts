// Runs all tests against one throw-away PostgreSQL server. `npm test -- test/rules.test.ts` runs some.

import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startTestServer } from '../test/support/database.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const asked = process.argv.slice(2)
const files =
  asked.length > 0
    ? asked
    : readdirSync(`${project}test`)
        .filter(name => name.endsWith('.test.ts'))
        .map(name => `test/${name}`)

const server = await startTestServer()
const tests = spawn(process.execPath, ['--test', '--test-concurrency=2', '--test-timeout=300000', ...files], {
  cwd: project,
  stdio: 'inherit',
  env: { ...process.env, TEST_SERVER: JSON.stringify(server.connection) },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tests.kill(signal))
const code = await new Promise<number>(resolve => tests.once('exit', (code, signal) => resolve(signal ? 1 : (code ?? 1))))
await server.stop()
process.exitCode = code
