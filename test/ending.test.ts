// How a gateway ends, whatever ends it: in order, and with nothing left behind.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { databaseUrl, makeDatabase } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { project, runningOn, type Started, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-ending-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const started = new Set<Started>()
const start = async (environment: Record<string, string>) => {
  const gateway = await startProcess(environment)
  started.add(gateway)
  return gateway
}
after(() => {
  for (const { child } of started) child.kill() // only what a failed test has left
})

const nothingLeft = (dataDir: string) => assert.deepEqual(runningOn(dataDir), [])
const alive = async ({ sandbox }: Started) => {
  const { status } = await fetch(`${sandbox.baseUrl}/health`, { signal: AbortSignal.timeout(5000) })
  assert.equal(status, 200)
}

describe('a gateway', () => {
  it('told to stop at any moment of its start leaves nothing behind, and the next start finds its folder in order', async () => {
    const dataDir = join(folder, 'early')
    for (let moment = 100; moment < 2000; moment += 250) {
      const child = spawn(process.execPath, ['src/main.ts'], {
        cwd: project,
        env: { PATH: process.env.PATH, PORT: '0', DATA_DIR: dataDir },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const ended = once(child, 'exit')
      await wait(moment) // any moment will do: what is claimed holds for all
      child.kill('SIGTERM')
      await ended
      nothingLeft(dataDir)
      if (moment % 200 === 0) rmSync(dataDir, { recursive: true, force: true }) // the start that makes the database, too
    }
    const gateway = await start({ DATA_DIR: dataDir })
    await alive(gateway)
    assert.equal(await gateway.stop('SIGTERM'), 0)
    nothingLeft(dataDir)
  })

  it('started by npm stops when npm is told to', async () => {
    const dataDir = join(folder, 'npm')
    const npm = spawn('npm', ['start'], {
      cwd: project,
      env: { ...process.env, PORT: '0', DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let printed = ''
    npm.stdout.on('data', chunk => {
      printed += chunk
    })
    await eventually(async () => printed.includes('Ctrl-C stops it.'), 'npm start is ready')
    npm.kill('SIGTERM')
    await once(npm, 'exit')
    await eventually(async () => runningOn(dataDir).length === 0, 'the database stopped')
    assert.match(printed, /Stopping\./)
  })

  it('goes on when nobody reads its output any more, and stops in order', async () => {
    const dataDir = join(folder, 'unread')
    const gateway = await start({ DATA_DIR: dataDir, LOG_LEVEL: 'debug' })
    gateway.child.stdout!.destroy()
    gateway.child.stderr!.destroy()
    for (let request = 0; request < 20; request++) await alive(gateway) // each writes a line
    assert.equal(await gateway.stop('SIGTERM'), 0)
    nothingLeft(dataDir)
  })

  it('stops in order by every signal that would end it', async () => {
    for (const signal of ['SIGUSR2', 'SIGQUIT'] as const) {
      const dataDir = join(folder, signal)
      const gateway = await start({ DATA_DIR: dataDir })
      assert.equal(await gateway.stop(signal), 0, signal)
      nothingLeft(dataDir)
    }
  })

  it('stops in order after a defect that nothing caught', async () => {
    const dataDir = join(folder, 'defect')
    const planted = `process.on('SIGWINCH', () => { Promise.reject(new Error('planted')) })`
    const gateway = await start({
      DATA_DIR: dataDir,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(planted)}`,
    })
    assert.equal(await gateway.stop('SIGWINCH'), 1)
    assert.match(gateway.printed(), /planted.*a defect: the gateway stops/)
    nothingLeft(dataDir)
  })

  it('replaces a worker that dies, and ends with a sentence when they go on dying', async () => {
    const dataDir = join(folder, 'workers')
    const gateway = await start({ DATA_DIR: dataDir, WORKERS: '2' })
    const workers = () => childrenOf(gateway.child.pid!)
    const killed = new Set<number>()
    let over = false
    const ended = gateway.ended.then(code => {
      over = true
      return code
    })
    const killOne = async () => {
      const left = await eventually(async () => {
        const left = workers().filter(pid => !killed.has(pid))
        return (over || left.length === 2) && left
      }, 'two workers run')
      const [pid] = left
      if (over || pid === undefined) return
      killed.add(pid)
      process.kill(pid, 'SIGKILL')
    }
    await killOne()
    await eventually(async () => gateway.printed().includes('a worker died'), 'it is logged')
    await killOne()
    await eventually(
      () =>
        alive(gateway).then(
          () => true,
          () => false,
        ),
      'the other ones answer',
    )
    // Those of more than a minute ago count no more: on a slow machine six are not enough.
    while (!over) await killOne()
    assert.equal(await ended, 1)
    assert.match(gateway.printed(), /6 workers died within a minute, the last one with SIGKILL/)
    nothingLeft(dataDir)
  })
})

it('two workers of a sandbox start on a database of their own', async () => {
  const database = await makeDatabase()
  const dataDir = join(folder, 'given')
  const gateway = await start({ DATA_DIR: dataDir, DATABASE_URL: databaseUrl(database.connection), WORKERS: '2' })
  await alive(gateway)
  assert.equal(await gateway.stop(), 0)
  nothingLeft(dataDir)
  await database.drop()
})

/** The workers of a primary process. */
function childrenOf(parent: number): number[] {
  return runningOn('src/main.ts', 'pid,ppid,args')
    .map(line => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (ppid === parent ? [pid!] : []))
}
