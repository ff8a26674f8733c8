// A worker that hangs is ended, and one that ends ends nobody else.

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import type { Worker } from 'node:cluster'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { type Clock, systemClock } from '../src/platform/clock.ts'
import { makeLog } from '../src/platform/log.ts'
import { tellWorker } from '../src/start/workerMessages.ts'
import { watchPulse } from '../src/start/workerPulse.ts'
import { project } from './support/process.ts'

let child: ChildProcess
before(async () => {
  child = fork(join(project, 'test/support/pulseWorker.ts'))
  await once(child, 'message')
})
after(() => void child.kill('SIGKILL'))

it('a worker is left alone while it answers now and then, and ended when it has not for half a minute, also while it is told to stop', async () => {
  let tick = () => {}
  let isOver = false
  const clock: Clock = {
    ...systemClock,
    every(milliseconds, act) {
      assert.equal(milliseconds, 5000)
      tick = act
      const timer = {
        cancel() {
          isOver = true
        },
        unref: () => timer,
      }
      return timer
    },
  }
  const lines: string[] = []
  const log = makeLog('info', { write: line => void lines.push(line) })
  const worker = Object.assign(child, { process: child, isConnected: () => child.connected }) as unknown as Worker
  watchPulse(worker, clock, log)
  const answered = async () => {
    const answer = once(child, 'message')
    tick()
    await answer
  }
  for (let at = 0; at < 20; at++) await answered()
  // It hears nothing, and all that was asked meanwhile when it goes on.
  child.kill('SIGSTOP')
  for (let at = 0; at < 5; at++) tick()
  child.kill('SIGCONT')
  await once(child, 'message')
  for (let at = 0; at < 4; at++) tick()
  await answered()
  assert.deepEqual(lines, [])
  child.kill('SIGSTOP')
  for (let at = 0; at < 6; at++) tick()
  const [, signal] = await once(child, 'exit')
  assert.equal(signal, 'SIGKILL')
  assert.match(lines.join(), /"why":"process \d+ has not answered for 25 seconds".*a worker hangs: it is ended/)
  assert.ok(isOver)
  tick()
})

it('a worker that ends while it is told something ends nobody else', async () => {
  const other = fork(join(project, 'test/support/pulseWorker.ts'))
  await once(other, 'message')
  const gone = once(other, 'exit')
  other.kill('SIGKILL')
  const isRunning = () => !execFileSync('ps', ['-o', 'stat=', '-p', String(other.pid)], { encoding: 'utf8' }).startsWith('Z')
  while (isRunning()) {}
  // Nothing has been heard of its end yet.
  const worker = Object.assign(other, { isConnected: () => other.connected }) as unknown as Worker
  assert.equal(tellWorker(worker, 'pulse'), true)
  await gone
  assert.equal(tellWorker(worker, 'pulse'), false)
})
