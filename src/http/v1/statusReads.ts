// Limits how often one payment is read in a minute, where the channel says so.

/** Counts one more reading of a key of a merchant. Seconds until the next is allowed when there were too many, else 0. */
export type Reads = (merchantId: string, key: string, perMinute: number, now: number) => number

/** Of each merchant: whoever reads many payments pushes out the counts of nobody else. */
const remembered = 10_000

export function limitReads(): Reads {
  const ofMerchants = new Map<string, Map<string, readonly number[]>>()
  return (merchantId, key, perMinute, now) => {
    if (perMinute === 0) return 0
    const reads = ofMerchants.get(merchantId) ?? new Map<string, readonly number[]>()
    ofMerchants.set(merchantId, reads)
    const recent = (reads.get(key) ?? []).filter(at => at > now - 60_000)
    if (recent.length >= perMinute) return Math.ceil((recent[recent.length - perMinute]! + 60_000 - now) / 1000)
    reads.delete(key) // what was counted last is forgotten last
    reads.set(key, [...recent, now])
    if (reads.size > remembered) reads.delete(reads.keys().next().value!)
    return 0
  }
}
