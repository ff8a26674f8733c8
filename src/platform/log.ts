// Logs: JSON lines with named fields only (see LogFields), each bounded. Nothing in them is made by callers: where a text comes from elsewhere,
// what it quotes is left out, and as a last line of defence it is searched for card numbers.

import fs from 'node:fs'
import pino from 'pino'
import { beginningOf, cardLengths, withoutCards } from '../contract/cardNumbers.ts'
import { type Clock, systemClock } from './clock.ts'

/** Named fields only: whatever is logged is on this list. */
export type LogFields = {
  readonly ndc?: string
  readonly entityId?: string
  readonly paymentId?: string
  readonly method?: string
  readonly route?: string
  readonly status?: number
  readonly result?: string
  readonly milliseconds?: number
  readonly names?: readonly string[]
  readonly why?: string
  readonly kind?: string
  readonly attempt?: number
  /** What the other side knows a message by. */
  readonly trace?: string
  /** A message as it went over a line, masked. */
  readonly wire?: string
  /** Who was refused: the address, and the token where one is known. */
  readonly address?: string
  readonly tokenId?: string
  /** The end of the audit, as `bin/tollgate audit verify` prints it. */
  readonly head?: string
  /** What somebody tried that was refused: a line for whoever watches over the house. */
  readonly audit?: 'forgedReturn' | 'forgedNotice' | 'wrongSession' | 'unknownToken' | 'returnedAgain'
}

export type Log = {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

const number = (value: unknown): unknown => Number(value)
/** Ids and names of our own. */
const word = (value: unknown): string => scrub(String(value)).slice(0, 100)
/** Made by us of hexadecimal digits, among which some look like a card number. What stands before them may be a caller's. */
const ownId = (value: unknown): string => {
  const text = String(value)
  const own = /(?<=^|_)[0-9a-f]{32}$/.exec(text)?.[0] ?? ''
  return word(text.slice(0, text.length - own.length)) + own
}
/** Names of parameters. What stands in brackets is a caller's. */
const words = (value: unknown): string[] =>
  (value as string[]).slice(0, 20).map(name => scrub(name.replace(/\[[^\]]*\]?/g, '[…]')).slice(0, 160))
/** The message of an error: servers, parsers and partners quote in it what they were given. Names of tables and the like may stay. */
const cause = (value: unknown): string =>
  scrub(beginningOf(String(value), 2000))
    .replace(/(?<!\w|(?:relation|column|constraint|table|index|role|database|function) )(["'`]).*?(\1(?!\w)|$)/gs, '$1…$1')
    .slice(0, 300)

const shown: Readonly<Record<keyof LogFields, (value: unknown) => unknown>> = {
  ndc: ownId,
  entityId: word,
  paymentId: ownId,
  tokenId: ownId,
  address: word,
  method: word,
  route: word,
  status: number,
  result: word,
  milliseconds: number,
  names: words,
  why: cause,
  kind: word,
  attempt: number,
  trace: word,
  head: value => String(value).slice(0, 90), // a number and hexadecimal digits of our own
  wire: value => scrub(beginningOf(String(value), 1500)),
  audit: word,
}

/** Strangers can cause lines with an address or an audit at will: so many of one message in a minute, then their sum. */
const strangersLinesMax = 300

const minuteMilliseconds = 60_000

export type LogOutput = pino.DestinationStream & {
  /** Tells how many lines found no room, once there is some again. */
  onRoom?(tell: (dropped: number) => void): void
  /** The process ends, and what is told now is still written. */
  onEnd?(tell: () => void): void
}

export function makeLog(level: LogLevel, out?: LogOutput, clock: Clock = systemClock): Log {
  const to = out ?? standardError(clock)
  const lines = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, to)
  to.onRoom?.(count => lines.warn({ attempt: count }, 'so many lines were left out: nobody read the log'))
  const written = new Map<string, { minute: number; count: number }>()
  const endMinute = (message: string): void => {
    const { count } = written.get(message)!
    written.delete(message)
    if (count > strangersLinesMax) lines.warn({ attempt: count - strangersLinesMax }, `so many lines were left out: ${message}`)
  }
  to.onEnd?.(() => {
    for (const message of [...written.keys()]) endMinute(message)
  })
  const isFlood = (message: string): boolean => {
    const now = clock.real()
    const minute = Math.floor(now / minuteMilliseconds)
    const isOf = (one: number) => written.get(message)?.minute === one
    if (written.has(message) && !isOf(minute)) endMinute(message)
    const count = (written.get(message)?.count ?? 0) + 1
    written.set(message, { minute, count })
    // Nobody need come again for it to be told.
    if (count === strangersLinesMax + 1)
      clock.after((minute + 1) * minuteMilliseconds - now, () => isOf(minute) && endMinute(message)).unref()
    return count > strangersLinesMax
  }
  const write = (level: 'debug' | 'info' | 'warn' | 'error') => (fields: LogFields, message: string) => {
    if (!lines.isLevelEnabled(level)) return
    if ((fields.address !== undefined || fields.audit !== undefined) && isFlood(message)) return
    lines[level](clean(fields), word(message))
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** What waits for a reader at most, in characters. */
const waitingMost = 4_000_000
/** So long a process that ends waits for whoever reads its log. */
const patienceMilliseconds = 1000

/** A log that nobody reads ends nothing, fills no memory, and keeps no process from ending. What finds no room is counted. */
function standardError(clock: Clock): LogOutput {
  let endsAt = Number.POSITIVE_INFINITY
  const destination = pino.destination({
    dest: 2,
    sync: false,
    maxLength: waitingMost,
    retryEAGAIN: () => clock.elapsed() < endsAt, // asked whenever the reader takes nothing
  })
  destination.on('error', () => {})
  // Called once, when the process ends.
  const flush = destination.flushSync.bind(destination)
  let tellAtEnd = () => {}
  destination.flushSync = () => {
    endsAt = clock.elapsed() + patienceMilliseconds
    Object.assign(destination, { sync: true }) // a write that is only begun may come to nothing
    const { writeSync } = fs
    // The library asks whether to try again where a pipe is full, and tries for ever without where a disk is.
    fs.writeSync = ((...given: Parameters<typeof writeSync>) => {
      try {
        return writeSync(...given)
      } catch (error) {
        throw Object.assign(error as Error, { code: 'EAGAIN' })
      }
    }) as typeof writeSync
    try {
      tellAtEnd()
      flush()
    } catch {
      // whoever reads it has had its time
    } finally {
      fs.writeSync = writeSync
    }
  }
  let dropped = 0
  destination.on('drop', () => dropped++)
  return {
    write: line => void destination.write(line),
    onRoom(tell) {
      destination.on('drain', () => {
        const count = dropped
        dropped = 0
        if (count > 0) tell(count)
      })
    },
    onEnd(tell) {
      tellAtEnd = tell
    },
  }
}

function clean(fields: LogFields): Record<string, unknown> {
  const cleaned: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields))
    if (Object.hasOwn(shown, name)) cleaned[name] = shown[name as keyof LogFields](value)
  return cleaned
}

/** Masks 12 to 19 digits that pass the card check digit, whatever stands between them and whatever their brand, and CVVs, of which some are known by the four digits before them. */
export const scrub = (text: string): string =>
  withoutCards(
    text,
    () => cardLengths,
    () => someNumber,
    { number: cardNumber, code: '[code]' },
  ).replaceAll(someNumber, cardNumber)
const cardNumber = '[card number]'
const someNumber = 'xnumberx0000'
