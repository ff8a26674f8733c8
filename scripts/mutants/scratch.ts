// Scratch copies of the project with a database server each, in which tests run that are expected to fail: what they start is ended, what they write
// is removed.

import { execFileSync, spawn } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { stopOrphan } from '../../src/platform/database/embedded/orphan.ts'
import { dropDatabases, startTestServer } from '../../test/support/database.ts'

/** The name of the first test that failed, or why the run ended without one. */
export type Ended = { readonly failed?: string; readonly milliseconds: number }

export type Scratch = {
  /** Runs files of test/ up to the first failure, in at most so much time. */
  run(tests: readonly string[], most: number, stopped: AbortSignal): Promise<Ended>
  read(path: string): string
  write(path: string, text: string): void
  stop(): Promise<void>
}

/** A copy of all that git knows or would take, as it stands in the working tree. */
export async function makeScratch(project: string, folder: string): Promise<Scratch> {
  const copy = join(folder, 'project')
  const temporary = join(folder, 't') // short: sockets stand in it
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
    cwd: project,
    encoding: 'utf8',
  })
  for (const path of listed.split('\0').filter(path => path !== '')) {
    mkdirSync(dirname(join(copy, path)), { recursive: true })
    // A link leads on within the copy: processes that tests start begin with one.
    cpSync(join(project, path), join(copy, path), { force: true, verbatimSymlinks: true })
  }
  const server = await startTestServer()
  // The same seed tells the same stories.
  const environment = { ...process.env, SIMULATION_SEED: '1', TMPDIR: temporary }
  const shared = JSON.stringify(server.connection)
  /** Databases of the shared server were made by the migrations as they are: with a fault in one of these each test makes a server of its own. */
  let isOwn = false
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'))

  async function run(tests: readonly string[], most: number, stopped: AbortSignal): Promise<Ended> {
    mkdirSync(temporary)
    const began = performance.now()
    const child = spawn(
      process.execPath,
      [
        '--disable-sigusr1',
        '--test',
        '--test-reporter=tap',
        '--test-concurrency=1',
        ...tests.map(name => `test/${name}.test.ts`),
      ],
      // A process group of its own, so that all of it can be ended.
      {
        cwd: copy,
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
        env: isOwn ? environment : { ...environment, TEST_SERVER: shared },
      },
    )
    const exited = new Promise<string | undefined>(resolve => {
      child.once('exit', code => resolve(code === 0 ? undefined : `the tests ended with ${code}`))
    })
    const timer = new AbortController()
    const tooLong = AbortSignal.any([AbortSignal.timeout(Math.ceil(most)), stopped, timer.signal])
    const failure = new Promise<string>(resolve => {
      let text = ''
      child.stdout!.setEncoding('utf8').on('data', chunk => {
        text = text.slice(text.lastIndexOf('\n') + 1) + chunk
        const name = /^ *not ok \d+ - (.*)\n/m.exec(text)?.[1]
        if (name !== undefined) resolve(name)
      })
      tooLong.addEventListener('abort', () => resolve('they did not end in time'), { once: true })
    })
    const failed = await Promise.race([failure, exited])
    timer.abort()
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {} // all of it has ended
    await exited
    for (const pidFile of globSync('**/postmaster.pid', { cwd: temporary }))
      await stopOrphan(dirname(join(temporary, pidFile)), () => {}).catch(() => {}) // what a test has planted there names no server
    rmSync(temporary, { recursive: true, force: true, maxRetries: 5 })
    await dropDatabases(server.connection)
    return { ...(failed !== undefined && { failed }), milliseconds: performance.now() - began }
  }

  return {
    run,
    read: path => readFileSync(join(copy, path), 'utf8'),
    write(path, text) {
      isOwn = path.startsWith('migrations/')
      writeFileSync(join(copy, path), text)
    },
    stop: server.stop,
  }
}
