// Logs: JSON lines with named fields only (see LogFields). As a last line of defence every text is searched for card numbers.

import pino from 'pino'
import { cardLengths, replaceNumbers } from './contract/cardNumbers.ts'
import type { Log, LogFields } from './gateway.ts'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

const allowed: ReadonlySet<string> = new Set([
  'ndc',
  'entityId',
  'paymentId',
  'method',
  'route',
  'status',
  'result',
  'milliseconds',
  'names',
  'why',
  'kind',
  'attempt',
  'audit',
] satisfies (keyof LogFields)[])

// Fields whose text comes from elsewhere; the others are ids, numbers and names of our own.
const free: ReadonlySet<string> = new Set(['why', 'route'])

export function makeLog(level: LogLevel): Log {
  const destination = pino.destination({ dest: 2, sync: false })
  destination.on('error', () => {}) // a log that nobody reads ends nothing
  const out = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  const write = (level: 'debug' | 'info' | 'warn' | 'error') => (fields: LogFields, message: string) => {
    if (out.isLevelEnabled(level)) out[level](clean(fields), scrub(message))
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

function clean(fields: LogFields): Record<string, unknown> {
  const cleaned: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields))
    if (allowed.has(name)) cleaned[name] = free.has(name) ? scrub(String(value)) : value
  return cleaned
}

/** Masks 12 to 19 digits that pass the card check digit, whatever stands between them and whatever their brand. */
export const scrub = (text: string): string =>
  replaceNumbers(
    text,
    () => cardLengths,
    () => '[card number]',
  )
