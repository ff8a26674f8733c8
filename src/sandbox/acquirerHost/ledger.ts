// The host's own books: every message that changed something is a line in an append-only file, and the state is what the lines add up to.
// Amounts are minor units as in DE4. Card numbers are kept masked.

import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** What a message was: a hold, a purchase, a credit (refund or payout), a capture of a hold, a reversal, or the note that a reversal came first. */
export type Kind = 'hold' | 'purchase' | 'credit' | 'capture' | 'reversal' | 'tombstone' | 'declined'

export type LedgerLine = {
  readonly kind: Kind
  /** Type class, trace number, transmission time, terminal: what a repeat has in common with the first. */
  readonly key: string
  /** As original data name a message: type, trace number, time, acquirer. */
  readonly name: string
  readonly card: string
  readonly amount: string
  readonly currency: string
  /** The name of the message that this one refers to. */
  readonly original?: string
  /** A reversal: what shall stand; absent = nothing. */
  readonly remaining?: string
  readonly rrn: string
  /** Of what came in a file: the day that the file names. */
  readonly day?: string
  /** The answer's fields, to be given again to a repeat. */
  readonly answer: readonly (readonly [number, string])[]
}

export type LedgerEntry = {
  readonly line: LedgerLine
  /** Of a hold: what is still held and what was captured. Of a purchase, credit or capture: what stands. */
  held: bigint
  captured: bigint
  cleared: bigint
  refunded: bigint
  reversed: boolean
}

export type Ledger = {
  byKey(key: string): LedgerEntry | undefined
  byName(name: string, card: string): LedgerEntry | undefined
  write(line: LedgerLine): LedgerEntry
  entries(): Iterable<LedgerEntry>
  /** By currency number: what is held, and what is cleared less refunds. */
  totals(): Map<string, { held: bigint; cleared: bigint }>
}

export function openLedger(path: string | undefined): Ledger {
  const keys = new Map<string, LedgerEntry>()
  const names = new Map<string, LedgerEntry[]>()
  const take = (line: LedgerLine): LedgerEntry => {
    const entry = entryOf(line, name => find(name, line.card))
    keys.set(line.key, entry)
    const same = names.get(line.name)
    if (same) same.push(entry)
    else names.set(line.name, [entry])
    return entry
  }
  const find = (name: string, card: string) => names.get(name)?.find(({ line }) => line.card === card && line.kind !== 'reversal')
  if (path !== undefined && existsSync(path)) {
    for (const text of readFileSync(path, 'utf8').split('\n')) {
      // A line that was cut off by a crash was never answered.
      if (text.startsWith('{') && text.endsWith('}')) take(JSON.parse(text))
    }
  }
  return {
    byKey: key => keys.get(key),
    byName: find,
    write(line) {
      if (path !== undefined) appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 })
      return take(line)
    },
    entries: () => keys.values(),
    totals() {
      const totals = new Map<string, { held: bigint; cleared: bigint }>()
      for (const { line, held, cleared, refunded } of keys.values()) {
        const total = totals.get(line.currency) ?? { held: 0n, cleared: 0n }
        totals.set(line.currency, { held: total.held + held, cleared: total.cleared + cleared - refunded })
      }
      return totals
    },
  }
}

/** What a line does to the books. */
function entryOf(line: LedgerLine, find: (name: string) => LedgerEntry | undefined): LedgerEntry {
  const entry: LedgerEntry = { line, held: 0n, captured: 0n, cleared: 0n, refunded: 0n, reversed: false }
  const amount = BigInt(line.amount)
  const original = line.original === undefined ? undefined : find(line.original)
  if (line.kind === 'hold') entry.held = amount
  if (line.kind === 'purchase') entry.cleared = amount
  if (line.kind === 'credit') entry.refunded = amount
  if (line.kind === 'capture' && original) {
    original.held -= amount
    original.captured += amount
    entry.cleared = amount
  }
  if (line.kind === 'reversal' && original) reverse(original, line, find)
  return entry
}

function reverse(original: LedgerEntry, { remaining }: LedgerLine, find: (name: string) => LedgerEntry | undefined): void {
  const stands = remaining === undefined ? 0n : BigInt(remaining)
  const least = (a: bigint, b: bigint) => (a < b ? a : b)
  if (remaining === undefined) original.reversed = true
  if (original.line.kind === 'hold') {
    original.held = least(original.held, stands > original.captured ? stands - original.captured : 0n)
  }
  if (original.line.kind === 'purchase') original.cleared = least(original.cleared, stands)
  if (original.line.kind === 'credit') original.refunded = least(original.refunded, stands)
  if (original.line.kind === 'capture') {
    const hold = find(original.line.original ?? '')
    if (hold) hold.held += original.cleared - least(original.cleared, stands)
    if (hold) hold.captured -= original.cleared - least(original.cleared, stands)
    original.cleared = least(original.cleared, stands)
  }
}
