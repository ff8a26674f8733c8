// A list of card ranges is read beside the payments: a long one in a thread of its own, because a directory server can write one that takes seconds.

import { Worker } from 'node:worker_threads'
import { type CardRanges, readCardRanges } from './cardRanges.ts'

/** Characters. To read so much takes some milliseconds whatever it is, less than to begin a thread. */
const inPlaceMost = 100_000
/** 100,000 ranges take 200. */
const megabytesMost = 400

/** Undefined when the text is no PRes. Rejects when it takes longer than `signal` gives, or too much memory. */
export function readRanges(json: string, signal: AbortSignal): Promise<CardRanges | undefined> {
  if (json.length <= inPlaceMost) return Promise.resolve(readCardRanges(json))
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./rangesThread.ts', import.meta.url), {
      workerData: json,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: megabytesMost },
    })
    const end = (settle: () => void) => {
      signal.removeEventListener('abort', late)
      settle()
      thread.terminate().catch(() => {})
    }
    const late = () => end(() => reject(new Error('the card ranges of the directory server took too long to read')))
    signal.addEventListener('abort', late, { once: true })
    if (signal.aborted) late()
    thread.once('message', (ranges: CardRanges | undefined) => end(() => resolve(ranges)))
    thread.once('error', () => end(() => reject(new Error('the card ranges of the directory server could not be read'))))
  })
}
