// Time and randomness, handed to everything from `main`. Nothing else reads the machine's clock, SQL included.

import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

/** All that has to do with time: whoever is given another one can be replayed. Everything is in milliseconds. */
export type Clock = {
  /** Real time since 1970: leases, ids, due work. */
  real(): number
  /** Only grows, from whatever beginning: how long something took. */
  elapsed(): number
  /** Rejects when the signal is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  after(milliseconds: number, act: () => void): Timer
  /** Again and again; no reason for a process to live on. */
  every(milliseconds: number, act: () => void): Timer
  /** A signal that is aborted then. */
  deadline(milliseconds: number): AbortSignal
}

export type Timer = {
  cancel(): void
  /** It is no reason for a process to live on. */
  unref(): Timer
}

export type Random = {
  uuid(): string
  bytes(count: number): Buffer
}

export const systemClock: Clock = {
  real: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: async (milliseconds, signal) => sleep(milliseconds, undefined, signal ? { signal } : {}),
  after: (milliseconds, act) => timerOf(setTimeout(act, milliseconds)),
  every: (milliseconds, act) => timerOf(setInterval(act, milliseconds)).unref(),
  deadline: milliseconds => AbortSignal.timeout(milliseconds),
}

/** The system's, but for what it says that the time is. */
export const clockWith = (real: () => number): Clock => ({ ...systemClock, real })

function timerOf(started: NodeJS.Timeout): Timer {
  const timer: Timer = {
    cancel: () => clearTimeout(started),
    unref() {
      started.unref()
      return timer
    },
  }
  return timer
}

// Drawing a page at a time costs a tenth of drawing a few bytes each time.
const pageBytes = 4096
export const systemRandom: Random = (() => {
  let page = Buffer.alloc(0)
  let used = 0
  return {
    uuid: randomUUID,
    bytes(count) {
      if (count > pageBytes) return randomBytes(count)
      if (used + count > page.length) {
        page = randomBytes(pageBytes)
        used = 0
      }
      const drawn = Buffer.from(page.subarray(used, used + count))
      page.fill(0, used, used + count)
      used += count
      return drawn
    },
  }
})()

/** Can this be an id of ours? */
export const isId = (id: string): boolean => /^[0-9a-f]{32}$/.test(id)

/** 32 lower-case hex characters that begin with the time: a UUIDv7 without dashes. */
export function timeOrderedId(now: number, random: Random): string {
  const uuid = random.uuid()
  return `${now.toString(16).padStart(12, '0')}7${uuid.slice(15, 18)}${uuid.slice(19, 23)}${uuid.slice(24)}`
}

/** Is it one? By chance one in some thousand other ids is. */
export function isTimeOrdered(id: string): boolean {
  if (!isId(id) || id[12] !== '7') return false
  const milliseconds = Number.parseInt(id.slice(0, 12), 16)
  return milliseconds > Date.UTC(2015) && milliseconds < Date.UTC(2100)
}

/** The smallest time-ordered id of a moment. */
export const idAt = (milliseconds: number): string => milliseconds.toString(16).padStart(12, '0').padEnd(32, '0')

/** 32 random lower-case hex characters. */
export const randomHex = (random: Random): string => random.uuid().replaceAll('-', '')

/** `yyyy-MM-dd HH:mm:ss+0000`, as answers carry it. */
export function wireTime(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000)
  if (second !== lastWritten.second) {
    const iso = new Date(milliseconds).toISOString()
    lastWritten = { second, text: `${iso.slice(0, 10)} ${iso.slice(11, 19)}+0000` }
  }
  return lastWritten.text
}

// Thousands of answers are given in the same second.
let lastWritten = { second: Number.NaN, text: '' }
