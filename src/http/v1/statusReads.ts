// Limits how often one payment is read in a minute, where the channel says so.

/** Counts one more reading of a key. Seconds until the next is allowed when there were too many, else 0. */
export type Reads = (key: string, perMinute: number, now: number) => number

const remembered = 10_000

export function limitReads(): Reads {
  const reads = new Map<string, readonly number[]>()
  return (key, perMinute, now) => {
    if (perMinute === 0) return 0
    const recent = (reads.get(key) ?? []).filter(at => at > now - 60_000)
    if (recent.length >= perMinute) return Math.ceil((recent[recent.length - perMinute]! + 60_000 - now) / 1000)
    reads.delete(key) // what was counted last is forgotten last
    reads.set(key, [...recent, now])
    if (reads.size > remembered) reads.delete(reads.keys().next().value!)
    return 0
  }
}
