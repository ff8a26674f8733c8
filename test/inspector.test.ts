// No process of ours opens an inspector when it is sent SIGUSR1: the gateway, its workers, the sandbox's acquirer host, commands, and what npm starts.

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { eventually, visa } from './support/gateway.ts'
import { project, type Started, startProcess } from './support/process.ts'

const read = (path: string) => readFileSync(join(project, path), 'utf8')
const filesIn = (folder: string): string[] =>
  readdirSync(join(project, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(ts|mjs|js)$/.test(name))
    .map(name => join(folder, name))

describe('every Node that is started is told to take no such signal', () => {
  it('by npm; what runs before there is a Node of ours keeps it shut by itself', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const started = Object.entries(scripts).filter(([, line]) => !line.startsWith('node scripts/setup.mjs '))
    assert.ok(started.length > 20)
    for (const [name, line] of started) assert.match(line, /^(?:exec )?node --disable-sigusr1 /, name)
    assert.match(read('scripts/setup.mjs'), /^process\.on\('SIGUSR1', \(\) => \{\}\)/m)
  })
  it('in images, units and by bin/tollgate', () => {
    for (const path of ['packaging/Dockerfile', 'packaging/tollgate.service', 'bin/tollgate']) {
      const lines = read(path)
        .split('\n')
        .filter(line => /^(?:CMD|HEALTHCHECK|ExecStart)|exec "\$node"/.test(line))
      assert.ok(lines.length > 0, path)
      for (const line of lines) assert.match(line, /node", "--disable-sigusr1"|node"? --disable-sigusr1 /, path)
    }
  })
  it('by another process of ours', () => {
    const starts = ['src', 'scripts']
      .flatMap(filesIn)
      .flatMap(path => [...read(path).matchAll(/process\.execPath,\s*(.{0,60})/gs)].map(([, words]) => [path, words!] as const))
    const known = /^\[?\s*(?:'--disable-sigusr1'|\.\.\.nodeOptions|\.\.\.process\.execArgv)/
    const others = starts.filter(([, words]) => !known.test(words)).map(([path]) => path)
    assert.ok(starts.length > 10)
    assert.deepEqual(others, ['scripts/packages/image.ts'], 'this one copies it')
  })
})

describe('none of these opens an inspector', { skip: process.platform !== 'linux' && 'needs /proc' }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-inspector-'))
  let gateway: Started
  let command: ChildProcess
  let alone: ChildProcess
  let complaints = ''
  const hear = (child: ChildProcess): ChildProcess => {
    child.stderr!.on('data', chunk => {
      complaints += chunk
    })
    return child
  }
  before(async () => {
    // Started without the option: they keep the door shut by themselves.
    gateway = await startProcess({ DATA_DIR: join(folder, 'data'), WORKERS: '2' })
    await pay()
    const env = { PATH: process.env.PATH, DATA_DIR: join(folder, 'data') }
    const listen = ['src/cli/main.ts', 'listen', '--forward-to', 'http://127.0.0.1:9/']
    command = hear(spawn(process.execPath, listen, { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] }))
    alone = hear(
      spawn(process.execPath, ['src/sandbox/acquirerHost/main.ts'], { cwd: project, stdio: ['ignore', 'pipe', 'pipe'] }),
    )
    await once(alone.stdout!, 'data')
    await eventually(async () => complaints.includes('Listening as'), 'the command waits')
  })
  after(async () => {
    for (const child of [command, alone]) {
      child?.kill('SIGKILL')
      if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** By the acquirer host, which is a process from then on. */
  async function pay(): Promise<void> {
    const { baseUrl, entityId, accessToken } = gateway.sandbox
    const fields = { entityId, paymentType: 'DB', amount: '1.00', currency: 'EUR', testMode: 'EXTERNAL', ...visa }
    const headers = { Authorization: `Bearer ${accessToken}` }
    const response = await fetch(`${baseUrl}/v1/payments`, { method: 'POST', body: new URLSearchParams(fields), headers })
    assert.equal(response.status, 200, await response.text())
  }
  const childrenOf = (pid: number): { pid: number; line: string }[] =>
    execFileSync('ps', ['-ww', '-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
      .split('\n')
      .flatMap(text => {
        const [, child, parent, line] = /^ *(\d+) +(\d+) +(.*)/.exec(text) ?? []
        return Number(parent) === pid && line!.includes('.ts') ? [{ pid: Number(child), line: line! }] : []
      })
  /** The ports at which a process listens. */
  const portsOf = (pid: number): string[] => {
    const sockets = new Set(
      readdirSync(`/proc/${pid}/fd`).flatMap(name => {
        try {
          return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? []
        } catch {
          return [] // closed meanwhile
        }
      }),
    )
    return ['tcp', 'tcp6'].flatMap(kind =>
      readFileSync(`/proc/${pid}/net/${kind}`, 'utf8')
        .split('\n')
        .map(line => line.trim().split(/\s+/))
        .flatMap(([, local, , state, , , , , , inode]) => (state === '0A' && sockets.has(inode!) ? [local!] : [])),
    )
  }

  it('whichever of them is sent SIGUSR1', async () => {
    const below = childrenOf(gateway.child.pid!).flatMap(child => [child, ...childrenOf(child.pid)])
    const hosts = below.filter(({ line }) => line.includes('acquirerHost/main.ts'))
    assert.ok(hosts.length > 0, 'the acquirer host runs')
    assert.equal(below.length - hosts.length, 2, 'two workers')
    const all = [gateway.child.pid!, command.pid!, alone.pid!, ...below.map(({ pid }) => pid)]
    const before = all.map(portsOf)
    const printed = gateway.printed()
    for (const pid of all) process.kill(pid, 'SIGUSR1')
    await pay()
    // One that takes the signal says so, also when the port of inspectors is taken.
    const opened = () => /Debugger|inspector/i.test(gateway.printed().slice(printed.length) + complaints)
    const until = Date.now() + 1000
    await eventually(async () => opened() || Date.now() > until, 'a moment passes')
    assert.equal(opened(), false, gateway.printed().slice(printed.length) + complaints)
    assert.deepEqual(all.map(portsOf), before)
    assert.deepEqual(
      [gateway.child, command, alone].map(({ exitCode, signalCode }) => exitCode ?? signalCode),
      [null, null, null],
    )
  })
})
