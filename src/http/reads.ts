// Limits how often one payment is read in a minute, where the channel says so.

export type Reads = { allowed(id: string, perMinute: number, now: number): boolean }

const remembered = 10_000

export function limitReads(): Reads {
  const reads = new Map<string, number[]>()
  return {
    allowed(id, perMinute, now) {
      if (perMinute === 0) return true
      const recent = (reads.get(id) ?? []).filter(at => at > now - 60_000)
      if (recent.length >= perMinute) return false
      reads.delete(id)
      reads.set(id, [...recent, now])
      if (reads.size > remembered) reads.delete(reads.keys().next().value!)
      return true
    },
  }
}
