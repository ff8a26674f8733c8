// Whether a worker still hears, asked by the process that holds it: one that hangs serves nobody, and keeps the callers and the port that it has.

import type { Worker } from 'node:cluster'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { tellFirst, tellWorker } from './workerMessages.ts'

const askEveryMilliseconds = 5000
/** More than the longest work of an event loop, and less than a stop is waited for. */
const unansweredMost = 5

const pulse = 'pulse'

/** From now on the worker is ended, as by the system, when it answers none of so many questions; also while it is told to stop. */
export function watchPulse(worker: Worker, clock: Clock, log: Log): void {
  let unanswered = 0
  worker.on('message', said => {
    if (said === pulse) unanswered = 0
  })
  const timer = clock.every(askEveryMilliseconds, () => {
    if (unanswered === unansweredMost) {
      const seconds = (unansweredMost * askEveryMilliseconds) / 1000
      log.error({ why: `process ${worker.process.pid} has not answered for ${seconds} seconds` }, 'a worker hangs: it is ended')
      worker.process.kill('SIGKILL')
    }
    unanswered++
    tellWorker(worker, pulse)
  })
  worker.once('exit', () => timer.cancel())
}

/** In a worker: answers whoever holds it. */
export function answerPulse(): void {
  process.on('message', said => {
    if (said === pulse) tellFirst(pulse)
  })
}
