// The gateway as a process: started twice, beside another, on a taken port, killed in the middle of payments, stopped by Ctrl-C.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { Script } from 'node:vm'
import { acquirerHostProcess } from '../src/sandbox/acquirerHost/process.ts'
import { eventually, type Fields } from './support/gateway.ts'
import { commandLine, project, type Started, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-process-'))
const running = new Set<Started>()
const start = async (environment: Record<string, string>) => {
  const started = await startProcess(environment)
  running.add(started)
  return started
}
after(async () => {
  for (const { child } of running) if (child.exitCode === null) child.kill('SIGINT')
  await Promise.all([...running].map(({ child }) => child.exitCode ?? new Promise(resolve => child.once('exit', resolve))))
  rmSync(folder, { recursive: true, force: true })
})

const card = {
  paymentBrand: 'VISA',
  'card.number': '4200000000000000',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
}

async function pay({ sandbox }: Started, fields: Fields = {}): Promise<{ id: string; result: { code: string } }> {
  const response = await fetch(`${sandbox.baseUrl}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${sandbox.accessToken}` },
    body: new URLSearchParams({
      entityId: sandbox.entityId,
      amount: '92.00',
      currency: 'EUR',
      paymentType: 'DB',
      ...card,
      ...fields,
    }),
  })
  return (await response.json()) as { id: string; result: { code: string } }
}

async function read({ sandbox }: Started, id: string): Promise<{ status: number; code: string }> {
  const response = await fetch(`${sandbox.baseUrl}/v1/payments/${id}?entityId=${sandbox.entityId}`, {
    headers: { Authorization: `Bearer ${sandbox.accessToken}` },
  })
  const { result } = (await response.json()) as { result: { code: string } }
  return { status: response.status, code: result.code }
}

it('the acquirer host of a sandbox has none of the secrets that stand in our surroundings', {
  skip: process.platform !== 'linux',
}, async () => {
  const host = acquirerHostProcess(undefined)
  process.env.SEAL_KEY = 'a secret of our own'
  try {
    await host.address()
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
    const found = children.find(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('acquirerHost/main.ts'))
    const environment = readFileSync(`/proc/${found}/environ`, 'utf8')
      .split('\0')
      .filter(one => one !== '')
    assert.deepEqual(environment.map(one => one.split('=')[0]).sort(), ['LC_ALL', 'PATH', 'TZ'])
    // And no signal opens its memory, from its first moment on.
    assert.ok(readFileSync(`/proc/${found}/cmdline`, 'utf8').split('\0').includes('--disable-sigusr1'))
    const { port } = await host.address()
    process.kill(Number(found), 'SIGUSR1')
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
    assert.ok(!readFileSync(`/proc/${found}/net/tcp`, 'utf8').includes(':240D '), 'the inspector listens on port 9229')
  } finally {
    delete process.env.SEAL_KEY
    await host.stop()
  }
})

it('an acquirer host that cannot be started, where no files are left or its program is away, is started when it can be', {
  skip: process.platform === 'win32',
}, async () => {
  const program = `
    import { closeSync, openSync } from 'node:fs'
    import { acquirerHostProcess } from './src/sandbox/acquirerHost/process.ts'
    const host = acquirerHostProcess(undefined)
    const ask = () => host.address().then(({ port }) => typeof port, ({ code }) => code)
    const said = []
    const files = []
    try {
      for (;;) files.push(openSync('package.json', 'r'))
    } catch {}
    said.push(await ask())
    for (const file of files) closeSync(file)
    const { execPath } = process
    process.execPath = '/nowhere/node'
    said.push(await ask())
    process.execPath = execPath
    said.push(await ask())
    console.log(said.join(' '))`
  const run = `ulimit -n 64 && exec "$0" --input-type=module -e "$1"`
  const { stdout, stderr } = spawnSync('sh', ['-c', run, process.execPath, program], { cwd: project, encoding: 'utf8' })
  assert.equal(stdout, 'EMFILE ENOENT number\n', stderr)
})

const tollgate = (dataDir: string, ...words: string[]) => commandLine({ DATA_DIR: dataDir }, ...words)

const refused = async (environment: Record<string, string>): Promise<string> => {
  const failed = await start(environment).then(
    () => assert.fail('it started'),
    (error: Error) => error.message,
  )
  assert.match(failed, /^it ended with 1:/)
  assert.match(failed, /Tollgate cannot start\./)
  assert.doesNotMatch(failed, /\n\s+at /) // a sentence, not a stack
  return failed
}

it('marks node_modules while it runs, and no longer, also when its start is refused', async () => {
  const marked: boolean[] = []
  const isMarked = () => existsSync(join(project, `node_modules/.tollgate-running-${child.pid}`))
  const database = createServer(socket => {
    marked.push(isMarked())
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(database, 'listening')
  const url = `postgres://somebody@127.0.0.1:${(database.address() as AddressInfo).port}/tollgate`
  const env = { PATH: process.env.PATH, DATA_DIR: join(folder, 'marked'), DATABASE_URL: url, MODE: 'sandbox', PORT: '0' }
  const child = spawn(process.execPath, ['src/main.ts'], { cwd: project, env, stdio: 'ignore' })
  const [status] = await once(child, 'exit')
  database.close()
  assert.deepEqual([status, marked.length > 0, marked.every(Boolean), isMarked()], [1, true, true, false])
})

it('what a process manager starts as a worker of its own says so, and ends with 1', () => {
  const env = { PATH: process.env.PATH, DATA_DIR: join(folder, 'managed'), NODE_UNIQUE_ID: '1' }
  const { status, stderr } = spawnSync(process.execPath, ['src/main.ts'], {
    cwd: project,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(status, 1)
  assert.match(stderr, /^Tollgate cannot start\.\nNODE_UNIQUE_ID is set, .*\n$/)
})

describe('a gateway process', () => {
  it('nothing that was answered is lost when gateway and database are killed, and what was not answered is settled', async () => {
    const dataDir = join(folder, 'killed')
    let first = await start({ DATA_DIR: dataDir })
    const answered: string[] = []
    let asked = 0
    const stream = async () => {
      for (;;) {
        asked++
        const merchantTransactionId = `killed-${asked}`.padEnd(8, 'x')
        const { id, result } = await pay(first, { merchantTransactionId, 'customParameters[simulateDelay]': String(asked % 7) })
        assert.equal(result.code, '000.100.110')
        answered.push(id)
      }
    }
    const streams = Array.from({ length: 16 }, () => stream().catch(() => {}))
    await eventually(async () => answered.length > 200, 'payments were answered')
    await first.stop('SIGKILL')
    await Promise.all(streams)

    first = await start({ DATA_DIR: dataDir }) // the orphaned database server is stopped first
    assert.doesNotMatch(first.printed(), /new database/)
    for (const id of answered.slice(-100)) assert.deepEqual(await read(first, id), { status: 200, code: '000.100.110' })
    const { sandbox } = first
    const pending = async () => {
      const url = `${sandbox.baseUrl}/v3/query?entityId=${sandbox.entityId}&date.from=2000-01-01&date.to=2099-12-31&limit=500&pageNo=`
      const records: { result: { code: string } }[] = []
      for (let [pageNo, pages] = [1, 1]; pageNo <= pages; pageNo++) {
        const body = (await (
          await fetch(url + pageNo, { headers: { Authorization: `Bearer ${sandbox.accessToken}` } })
        ).json()) as { records: typeof records; pages: string }
        records.push(...body.records)
        pages = Number(body.pages)
      }
      assert.ok(records.length >= answered.length, `${records.length} stored, ${answered.length} answered`)
      return records.filter(({ result }) => result.code === '000.200.000').length
    }
    await eventually(async () => (await pending()) === 0, 'every payment has its answer')
    assert.deepEqual(await tollgate(dataDir, 'doctor').then(({ code }) => code), 0)
    assert.equal(await first.stop(), 0)
  })

  it('Ctrl-C answers what runs, stops cleanly, and a second start finds its data', async () => {
    const dataDir = join(folder, 'stopped')
    const first = await start({ DATA_DIR: dataDir })
    const slow = pay(first, { 'customParameters[simulateDelay]': '3000' })
    await new Promise(resolve => setTimeout(resolve, 1500)) // it is under way
    assert.equal(await first.stop('SIGINT'), 0)
    const { id, result } = await slow
    assert.equal(result.code, '000.100.110')
    const second = await start({ DATA_DIR: dataDir })
    assert.deepEqual(await read(second, id), { status: 200, code: '000.100.110' })

    const beside = await start({ DATA_DIR: join(folder, 'beside') })
    assert.equal((await pay(beside)).result.code, '000.100.110')
    assert.equal((await read(beside, id)).status, 404)

    const inUse = await refused({ DATA_DIR: dataDir })
    assert.match(inUse, new RegExp(`in use by another gateway \\(pid ${second.child.pid}\\)`))
  })

  it('the command line lists, seeds and revokes while the gateway runs', async () => {
    const dataDir = join(folder, 'beside')
    const [gateway] = [...running].filter(({ child, sandbox }) => child.exitCode === null && sandbox !== undefined).slice(-1)
    const listed = await tollgate(dataDir, 'list', '--json')
    const { tokens, entities } = JSON.parse(listed.out) as { tokens: { id: string; label: string }[]; entities: { id: string }[] }
    assert.ok(entities.some(({ id }) => id === gateway!.sandbox.entityId))
    assert.doesNotMatch(listed.out, new RegExp(gateway!.sandbox.accessToken))
    assert.equal((await tollgate(dataDir, 'seed', join(project, 'seeds/sandbox.json'))).code, 0)
    assert.equal((await tollgate(dataDir, 'doctor')).code, 0)
    const moved = await tollgate(dataDir, 'clock', 'advance', '3d')
    assert.match(moved.out, /^It is /)
    const { id } = await pay(gateway!)
    assert.equal((await tollgate(dataDir, 'revoke', tokens[0]!.id)).code, 0)
    await eventually(async () => (await read(gateway!, id)).status === 403, 'the token was revoked')
    // A seed never revives a revoked token.
    assert.equal((await tollgate(dataDir, 'seed', join(project, 'seeds/sandbox.json'))).code, 0)
    assert.equal((await tollgate(dataDir, 'revoke', tokens[0]!.id)).code, 1)
    assert.equal((await read(gateway!, id)).status, 403)
  })

  it('two workers serve one port and share the database', async () => {
    const gateway = await start({ DATA_DIR: join(folder, 'workers'), WORKERS: '2' })
    const paid = await Promise.all(Array.from({ length: 20 }, () => pay(gateway)))
    for (const { id } of paid) assert.deepEqual(await read(gateway, id), { status: 200, code: '000.100.110' })
    // They share one acquirer host and its books.
    const external = await Promise.all(Array.from({ length: 10 }, () => pay(gateway, { testMode: 'EXTERNAL' })))
    assert.deepEqual([...new Set(external.map(({ result }) => result.code))], ['000.100.112'])
    // Their connections come to them, and wait for nobody who would hand them out.
    gateway.child.kill('SIGSTOP')
    try {
      const { baseUrl } = gateway.sandbox
      for (let count = 0; count < 10; count++) {
        const request = http.get(`${baseUrl}/v1/resultcodes`, { agent: false, timeout: 20_000 })
        request.on('timeout', () => request.destroy(new Error('nobody takes it')))
        const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
        assert.equal(answer.resume().statusCode, 200)
      }
      const { port } = new URL(baseUrl)
      for (const workers of ['1', '2'])
        assert.match(
          await refused({ DATA_DIR: join(folder, `beside${workers}`), PORT: port, WORKERS: workers }),
          new RegExp(`Port ${port} is taken`),
        )
    } finally {
      gateway.child.kill('SIGCONT')
    }
    assert.equal(await gateway.stop(), 0)
  })

  it('a worker that cannot begin ends nobody who serves, and begins when it can', async () => {
    const file = join(folder, 'slips.json')
    writeFileSync(file, '{}')
    const gateway = await start({ DATA_DIR: join(folder, 'unready'), WORKERS: '2', SLIPS_FILE: file })
    const isWorker = (pid: string) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes('NODE_UNIQUE_ID=')
      } catch {
        return false // it has ended meanwhile
      }
    }
    const workers = () =>
      readFileSync(`/proc/${gateway.child.pid}/task/${gateway.child.pid}/children`, 'utf8')
        .split(' ')
        .filter(pid => pid !== '' && isWorker(pid))
    assert.equal(workers().length, 2)
    writeFileSync(file, 'half of a file')
    process.kill(Number(workers()[0]), 'SIGKILL')
    // Longer than six deaths take.
    for (let count = 0; count < 15; count++) {
      await new Promise(resolve => setTimeout(resolve, 1000))
      assert.equal((await fetch(`${gateway.sandbox.baseUrl}/health`)).status, 200)
    }
    writeFileSync(file, '{}')
    let seen = 0
    const stays = async () => {
      seen = workers().length === 2 ? seen + 1 : 0
      return seen > 30
    }
    await eventually(stays, 'it has begun, and stays')
    assert.equal(await gateway.stop(), 0)
  })

  it('an old Node is told which one is needed', async () => {
    const script = readFileSync(join(project, 'src/main.ts'), 'utf8')
    new Script(script) // JavaScript that any Node reads; the folder's package.json keeps older ones from refusing its name
    const planted = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' })`
    const { status, stderr } = spawnSync(process.execPath, [`--import=data:text/javascript,${planted}`, 'src/main.ts'], {
      cwd: project,
      encoding: 'utf8',
    })
    assert.deepEqual([status, stderr.split('\n').length], [1, 2])
    assert.match(stderr, /^Tollgate needs Node 24 or later/)
  })

  it('a taken port, bad settings and a data folder that is none are told in a sentence each', async () => {
    const blocker = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => blocker.once('listening', resolve))
    const { port } = blocker.address() as { port: number }
    assert.match(
      await refused({ DATA_DIR: join(folder, 'taken'), PORT: String(port) }),
      new RegExp(`Port ${port} is taken on 127.0.0.1`),
    )
    assert.match(
      await refused({ DATA_DIR: join(folder, 'taken'), METRICS_PORT: String(port) }),
      new RegExp(`Port ${port} is taken on 127.0.0.1: stop what uses it, or choose another with METRICS_PORT.`),
    )
    blocker.close()
    const many = await refused({
      DATA_DIR: join(folder, 'bad'),
      PORT: 'eighty',
      MODE: 'production',
      WORKERS: '0',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://x',
      TLS_CERT: '/nonexistent',
    })
    for (const name of ['PORT', 'MODE', 'WORKERS', 'LOG_LEVEL', 'DATABASE_URL', 'TLS_CERT'])
      assert.match(many, new RegExp(`^${name} `, 'm'))
    mkdirSync(join(folder, 'bad'), { recursive: true })
    // A database whose answer nobody hears leaves nothing that the process would wait for.
    const deaf = join(folder, 'deaf.mjs')
    writeFileSync(
      deaf,
      `import pg from ${JSON.stringify(join(project, 'node_modules/pg/esm/index.mjs'))}
       pg.Pool.prototype.query = () => new Promise(() => {})`,
    )
    const unheard = { DATA_DIR: join(folder, 'deaf'), DATABASE_URL: 'postgres://nobody@127.0.0.1/none' }
    await assert.rejects(
      startProcess({ ...unheard, NODE_OPTIONS: `--import=${deaf}` }),
      /^Error: it ended with 1:\nTollgate ends by a defect: it waited for/,
    )
    assert.match(await refused({ DATA_DIR: join(project, 'package.json') }), /is not a folder/)
    assert.match(await refused({ DATA_DIR: join(folder, 'live'), MODE: 'live' }), /refuses plain HTTP/)
  })
})
