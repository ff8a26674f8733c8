// What the first process and its workers say to each other. Either may end at that moment, which its exit, or the end of the channel, tells: what is not heard is no defect.

import type { Worker } from 'node:cluster'

/** False when the worker hears no more. */
export function tellWorker(worker: Worker, message: unknown): boolean {
  if (!worker.isConnected()) return false
  worker.send(message as object, () => {})
  return true
}

/** In a worker. */
export function tellFirst(message: unknown): void {
  if (process.connected) process.send!(message, undefined, undefined, () => {})
}
