// The card ranges of a directory server: a large one names tens of thousands. They are kept as numbers, and found by halving.

import type { TextBounds } from '../../../platform/answerText.ts'
import { readMessage, type ThreeDSecureMessage } from './messages.ts'

export type Range = { readonly version: string; readonly methodUrl?: string }

export type CardRanges = {
  readonly count: number
  /** What stands among them and is none. */
  readonly unreadable: number
  /** By how many digits their numbers have. */
  readonly byLength: ReadonlyMap<number, Sorted>
  readonly methodUrls: readonly string[]
}

/** 100,000 card ranges of 320 bytes and fifteen parts; the largest directory servers name tens of thousands. Kept they are 3 MB. */
export const rangesBounds: TextBounds = { length: 32_000_000, parts: 1_500_000 }

/** The versions that we speak, the best first. */
const spoken = ['2.2.0', '2.1.0'] as const
/** Longer ones are none (EMV 3-D Secure, table A.1). */
export const methodUrlMost = 256

type GivenRange = Readonly<Record<string, unknown>>
type Read = { readonly start: string; readonly end: string; readonly version: number; readonly methodUrl: string }

/** Of one length of numbers, sorted by their start; where two begin alike the narrower one stands last. */
type Sorted = {
  readonly starts: BigUint64Array
  readonly ends: BigUint64Array
  /** The largest end up to each: none before it reaches further. */
  readonly reach: BigUint64Array
  /** Places in `spoken` and in `methodUrls`. */
  readonly versions: Uint8Array
  readonly methods: Uint32Array
}

/** Those of a PRes; undefined when the text is none. */
export function readCardRanges(json: string): CardRanges | undefined {
  const answer = readMessage('PRes', json, rangesBounds)
  return answer && rangesOf(answer)
}

/** The range that a card number lies in. */
export function findRange({ byLength, methodUrls }: CardRanges, number: string): Range | undefined {
  const ranges = byLength.get(number.length)
  const at = ranges && placeOf(ranges, BigInt(number))
  if (at === undefined) return undefined
  const methodUrl = methodUrls[ranges!.methods[at]!]!
  return { version: spoken[ranges!.versions[at]!]!, ...(methodUrl !== '' && { methodUrl }) }
}

function rangesOf(answer: ThreeDSecureMessage): CardRanges {
  const given = (answer.cardRangeData ?? []) as readonly (GivenRange | null)[]
  const versionOf = commonVersions(answer)
  const byLength = new Map<number, Read[]>()
  let count = 0
  let unreadable = 0
  for (const one of given) {
    if (!one || !isRange(one)) {
      unreadable++
      continue
    }
    const version = versionOf(one)
    if (version === none || one.actionInd === 'D') continue
    const { startRange: start, endRange: end, threeDSMethodURL: method } = one as Record<string, string>
    const methodUrl = typeof method === 'string' && method.length <= methodUrlMost ? method : ''
    const alike = byLength.get(start!.length) ?? []
    alike.push({ start: start!, end: end!, version, methodUrl })
    byLength.set(start!.length, alike)
    count++
  }
  // Many ranges have the method of one issuer.
  const methodUrls = new Map([['', 0]])
  const sorted = new Map([...byLength].map(([length, ranges]) => [length, sortedRanges(ranges, methodUrls)]))
  return { count, unreadable, byLength: sorted, methodUrls: [...methodUrls.keys()] }
}

function sortedRanges(ranges: Read[], methodUrls: Map<string, number>): Sorted {
  const { length } = ranges
  // All have as many digits: as texts they stand in the order of their numbers.
  ranges.sort((one, two) => order(one.start, two.start) || order(two.end, one.end))
  const sorted: Sorted = {
    starts: new BigUint64Array(length),
    ends: new BigUint64Array(length),
    reach: new BigUint64Array(length),
    versions: new Uint8Array(length),
    methods: new Uint32Array(length),
  }
  let reach = 0n
  for (const [at, { start, end, version, methodUrl }] of ranges.entries()) {
    sorted.starts[at] = BigInt(start)
    const last = BigInt(end)
    sorted.ends[at] = last
    if (last > reach) reach = last
    sorted.reach[at] = reach
    sorted.versions[at] = version
    const method = methodUrls.get(methodUrl) ?? methodUrls.size
    methodUrls.set(methodUrl, method)
    sorted.methods[at] = method
  }
  return sorted
}

const order = (one: string, two: string): number => (one < two ? -1 : one > two ? 1 : 0)

/** The range that a number lies in; where they lie within each other the one that begins last. */
function placeOf({ starts, ends, reach }: Sorted, number: bigint): number | undefined {
  let low = 0
  let high = starts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (starts[middle]! <= number) low = middle + 1
    else high = middle
  }
  for (let at = low - 1; at >= 0 && reach[at]! >= number; at--) if (ends[at]! >= number) return at
  return undefined
}

const isNumber = (value: unknown): value is string => typeof value === 'string' && /^\d{13,19}$/.test(value)
const isRange = ({ startRange: start, endRange: end }: GivenRange): boolean =>
  isNumber(start) && isNumber(end) && start.length === end.length && start <= end

const none = -1
/**
 * The best version that the issuer speaks, the directory server, for a range and at all, and we: its place in `spoken`, or `none`. Ranges differ in little
 * else than their numbers: each kind is looked at once.
 */
function commonVersions(answer: ThreeDSecureMessage): (range: GivenRange) => number {
  const known = new Map<string, number>()
  return range => {
    const { acsStartProtocolVersion: from, acsEndProtocolVersion: to, dsStartProtocolVersion, dsEndProtocolVersion } = range
    const kind = JSON.stringify([from, to, dsStartProtocolVersion, dsEndProtocolVersion])
    const before = known.get(kind)
    if (before !== undefined) return before
    const best = spoken.findIndex(
      version =>
        isWithin(version, from, to) &&
        isWithin(version, dsStartProtocolVersion, dsEndProtocolVersion) &&
        isWithin(version, answer.dsStartProtocolVersion, answer.dsEndProtocolVersion),
    )
    known.set(kind, best)
    return best
  }
}

/** Of 3-D Secure 1 too, which some issuers still name. */
const isVersion = (value: unknown): value is string => typeof value === 'string' && /^\d{1,2}\.\d{1,2}\.\d{1,2}$/.test(value)
/** What nobody says bounds nothing, nor what is no version: the directory server knows at the AReq. */
const isWithin = (version: string, from: unknown, to: unknown): boolean =>
  (!isVersion(from) || rankOf(from) <= rankOf(version)) && (!isVersion(to) || rankOf(version) <= rankOf(to))

const rankOf = (version: string): number => version.split('.').reduce((rank, part) => rank * 100 + Number(part), 0)
