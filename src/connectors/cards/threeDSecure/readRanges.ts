// A list of card ranges is read beside the payments: a long one in a thread of its own, because a directory server can write one that takes seconds.

import { Worker } from 'node:worker_threads'
import { type CardRanges, readCardRanges } from './cardRanges.ts'

/** Characters. To read so much takes some milliseconds whatever it is, less than to begin a thread. */
const inPlaceMost = 100_000
/** 100,000 ranges take 200. */
const megabytesMost = 400

/** Modes may ask servers of their own: one thread is enough, and so is the memory of one. */
let before: Promise<unknown> = Promise.resolve()

/** Undefined when the text is no PRes. Rejects when it takes longer than `signal` gives, or too much memory. */
export function readRanges(json: string, signal: AbortSignal): Promise<CardRanges | undefined> {
  if (json.length <= inPlaceMost) return Promise.resolve(readCardRanges(json))
  const read = before.then(() => readInThread(json, signal))
  before = read.catch(() => {})
  return read
}

function readInThread(json: string, signal: AbortSignal): Promise<CardRanges | undefined> {
  if (signal.aborted) return Promise.reject(tookTooLong())
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./rangesThread.ts', import.meta.url), {
      workerData: json,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: megabytesMost },
    })
    const end = (settle: () => void) => {
      signal.removeEventListener('abort', late)
      thread.terminate().then(settle, settle) // its memory is free when the next begins
    }
    const late = () => end(() => reject(tookTooLong()))
    signal.addEventListener('abort', late, { once: true })
    thread.once('message', (ranges: CardRanges | undefined) => end(() => resolve(ranges)))
    thread.once('error', () => end(() => reject(new Error('the card ranges of the directory server could not be read'))))
  })
}

const tookTooLong = () => new Error('the card ranges of the directory server took too long to read')
