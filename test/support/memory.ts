// What this process holds.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** In MiB, heap and buffers, when all is gone that nobody holds. */
export function heldMemory(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 2 ** 20
}
