// The receivers of docs/reference/notifications.md, as they stand there: they decrypt what the gateway sends, in both wrappings, and refuse
// the rest. A language that this machine cannot run is left out.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { onTheWire, type Wrapper } from '../src/notifications/notification.ts'
import { freePort } from './support/freePort.ts'
import { eventually } from './support/gateway.ts'

const page = readFileSync(new URL('../docs/reference/notifications.md', import.meta.url), 'utf8')
const secret = Buffer.alloc(32, 5)
const text = JSON.stringify({ type: 'PAYMENT', payload: { id: 'abc', result: { code: '000.100.110' } } })

type Language = {
  readonly name: string
  readonly fence: string
  readonly file: string
  readonly program: string
  readonly runs: () => boolean
}
const works = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: 'ignore', timeout: 120_000 }).status === 0
const languages: readonly Language[] = [
  { name: 'Node.js', fence: 'js', file: 'receiver.mjs', program: process.execPath, runs: () => true },
  {
    name: 'Python',
    fence: 'python',
    file: 'receiver.py',
    program: 'python3',
    runs: () => works('python3', '-c', 'import cryptography'),
  },
  { name: 'Java', fence: 'java', file: 'Receiver.java', program: 'java', runs: () => works('javac', '-version') },
]

for (const { name, fence, file, program, runs } of languages) {
  test(`the receiver in ${name}`, async t => {
    if (!runs()) return t.skip(`${program} is not here`)
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const code = new RegExp(`\`\`\`${fence}\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!
    writeFileSync(join(folder, file), code)
    const port = await freePort()
    const receiver = spawn(program, [join(folder, file)], {
      env: { ...process.env, PORT: String(port), SECRET: secret.toString('hex') },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    t.after(() => receiver.kill('SIGKILL'))
    let said = ''
    receiver.stdout.on('data', chunk => {
      said += chunk
    })
    const send = async (wrapper: Wrapper, secrets = [secret]) => {
      const sending = { id: '1', sequence: 1, attempt: 1, seconds: 1, wrapper, secrets, iv: Buffer.alloc(12, 3) }
      const { headers, body } = onTheWire(text, sending)
      return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status
    }
    const first = await eventually(() => send('none').catch(() => undefined), `${name} listens`, 60)
    assert.equal(first, 204)
    assert.equal(await send('json'), 204)
    assert.equal(await send('none', [Buffer.alloc(32, 6)]), 400)
    await eventually(async () => said.split('000.100.110').length === 3, 'both were decrypted')
  })
}
