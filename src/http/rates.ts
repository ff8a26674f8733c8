// What the callers of each network send in a second, and all strangers together, before anything has its turn: connections, requests behind others, small pieces of
// bodies, and large bodies. What comes through trusted proxies is of many callers, and is not counted by its connections.

import type { Clock } from '../platform/clock.ts'
import { addTo } from '../platform/counts.ts'
import { networkShare } from '../platform/network.ts'
import { lackOf } from '../platform/parsing.ts'
import { merchantLine } from './turns.ts'

/**
 * Connections that one merchant's servers open in a second, and all strangers together, of whom one network opens half as many, whatever becomes of them: making one ready costs more than all else about
 * one on which nothing is asked, and who comes next waits behind all that were let in. Beyond it, for a while, those networks that want more than a few share what all may open.
 */
export const openingsMost = 1024
export const networkOpeningsMost = 512
export const crowdedOpeningsMost = 32
/** One of a stranger on which TLS is to be spoken counts for so many: a handshake and all that is made for it cost a millisecond. */
export const tlsCost = 4
/** And so does a piece of TLS, once as it comes and once as it is deciphered. */
export const tlsPieceCost = 2
/**
 * Requests that one network sends in a second behind others of their connections that have no answer yet, one merchant with his token, and all without one together: they are parsed before any turn.
 * One counts for each sixteen headers. More closes the connection; and while strangers send too many, each new connection is closed behind its first answer, and nothing
 * behind that request is looked at: what is parsed in vain keeps those waiting who come next.
 */
export const pipelinedMost = 1024
export const pipelinedOfAllMost = 4096
/** What comes over a line comes in packets, each of which has as many bytes at least. */
export const packetBytes = 1024
/** Pieces of bodies and of TLS by what they lack of that, in a second: of one merchant, and of a network of his, of one network of strangers, and of all of these, through proxies or not, of whom each has less when they are too many. */
export const smallPiecesMost = { merchant: 8192, network: 2048, strangers: 32_768, crowded: 512 }
/** A body beyond so many bytes is a large one. */
export const largeBodyBytes = 4096
/**
 * Bytes of large bodies in a second: of one merchant, of one person of the office, and of all strangers together; of one network of theirs, and, for a while after they
 * were too many together, one of the largest bodies; and what comes without a token by chance from a network of a merchant, which is his as little as anybody's there. What a network sends beyond counts in the seconds that follow. It may open connections all the same: small bodies of others come from there.
 */
export const largeBytesMost = 32 * 1024 * 1024
export const networkBytesMost = 8 * 1024 * 1024
export const crowdedBytesMost = 288 * 1024
/** So many a second of one merchant, and of one person, are told that there was too much. */
export const tellingsMost = 64
/** So long after strangers sent too much they still have less. */
const crowdedSeconds = 10
/** A network with a merchant's server is known as such for an hour after its last request, so many of all merchants, and of one merchant some; and it may be that of several merchants. */
const merchantsSeconds = 3600
export const merchantsMost = 8192
export const ofMerchantMost = 64
export const ofNetworkMost = 64

/** The names of the networks around a caller, the narrowest first; `['']` of a trusted proxy. */
export type NetworkNames = readonly string[]
export const isProxys = ([narrowest]: NetworkNames): boolean => narrowest === ''

export type ArrivalRates = {
  /** May one more connection come from there? */
  admits(around: NetworkNames, isTls: boolean): boolean
  /** One more request that comes behind others of its connection, with so many headers. `ofMerchant`: whose token it has. */
  admitsBehind(around: NetworkNames, headers: number, ofMerchant?: string): boolean
  /** One more piece of a body, or of TLS, of so many bytes, sent by a caller, through a proxy or not, or by a merchant, whose token it has. */
  admitsPiece(bytes: number, caller: () => NetworkNames, ofMerchant?: string, cost?: number): boolean
  /** So many more bytes of a large body. `whose`: of whom whom we know, from wherever he sends it. */
  admitsBytes(around: NetworkNames, bytes: number, whose?: string): boolean
  /** May one more of theirs be told that there was too much? */
  tells(whom: string): boolean
  /** Is it one of strangers who send too many requests behind others just now? */
  isCrowd(around: NetworkNames): boolean
  /** Was a token used from there within the hour? */
  isMerchants(around: NetworkNames): boolean
  /** A token of the merchant was found there. */
  knowsMerchant(around: NetworkNames, merchantId: string): void
  stop(): void
}

/** Who shares what they open in a second: all together, and each alone. `wide`: as many at most, however many share them. */
type OpeningGroup = { readonly name: string; readonly most: number; readonly mostOfOne: number; readonly wide?: number }
/** How many of a group open any in a second, how many want more than a few, and how many there were in the last; and until when they share. */
type Openings = { opened: number; active: number; eager: number; before: { active: number; eager: number }; rushUntil: number }
const noOpenings: Openings = {
  opened: 0,
  active: 0,
  eager: 0,
  before: { active: 0, eager: 0 },
  rushUntil: Number.NEGATIVE_INFINITY,
}

export function countArrivals(clock: Clock): ArrivalRates {
  const openings = new Map<string, number>()
  const openingsOf = new Map<string, Openings>()
  const behind = new Map<string, number>()
  const smallPieces = new Map<string, number>()
  /** Whose servers have asked from a network, and when last; and the networks of each merchant. All have those last that asked last. */
  const merchants = new Map<string, Map<string, number>>()
  const networksOf = new Map<string, Set<string>>()
  const largeBytes = new Map<string, number>()
  const tellings = new Map<string, number>()
  /** Of networks of strangers, less what they may send in the seconds since. */
  const strangersBytes = new Map<string, number>()
  let crowdedUntil = Number.NEGATIVE_INFINITY
  let heavyUntil = Number.NEGATIVE_INFINITY
  const soon = () => clock.elapsed() + crowdedSeconds * 1000
  const strangersBytesMost = (): number => (clock.elapsed() < heavyUntil ? crowdedBytesMost : networkBytesMost)
  const second = clock.every(1000, () => {
    for (const [name, { active, eager, rushUntil }] of openingsOf) {
      if (active > 0 || clock.elapsed() < rushUntil) openingsOf.set(name, { ...noOpenings, before: { active, eager }, rushUntil })
      else openingsOf.delete(name)
    }
    for (const counts of [openings, behind, smallPieces, largeBytes, tellings]) counts.clear()
    for (const [network, sent] of strangersBytes) {
      const most = strangersBytesMost() * networkShare(network)
      const left = Math.min(sent - most, crowdedSeconds * most)
      if (left > 0) strangersBytes.set(network, left)
      else strangersBytes.delete(network)
    }
  })

  /** So many more of each network around a caller. False = too many. */
  function isWithin(most: number, counts: Map<string, number>, around: NetworkNames, more = 1): boolean {
    let isOver = false
    for (const network of around) if (addTo(counts, network, more) > most * networkShare(network)) isOver = true
    return !isOver
  }

  const isOfLate = (asked: number): boolean => clock.elapsed() - asked < merchantsSeconds * 1000
  function isMerchants([narrowest]: NetworkNames): boolean {
    for (const asked of merchants.get(narrowest!)?.values() ?? []) if (isOfLate(asked)) return true
    return false
  }
  const isStranger = (around: NetworkNames): boolean => !isProxys(around) && !isMerchants(around)

  function forget(network: string, merchantId: string): void {
    const there = merchants.get(network)!
    there.delete(merchantId)
    if (there.size === 0) merchants.delete(network)
    const own = networksOf.get(merchantId)!
    own.delete(network)
    if (own.size === 0) networksOf.delete(merchantId)
  }

  function forgetAll(network: string): void {
    for (const merchantId of [...merchants.get(network)!.keys()]) forget(network, merchantId)
  }

  /** What a network opens counts for that one of its merchants who has opened least: nobody who asks there too can use it up. Undefined = it is none's. */
  function openingGroupAt(network: string): string | undefined {
    let found: string | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [merchantId, asked] of merchants.get(network) ?? []) {
      const name = merchantLine(merchantId)
      const opened = openingsOf.get(name)?.opened ?? 0
      if (!isOfLate(asked) || opened >= least) continue
      least = opened
      found = name
    }
    return found
  }

  /** So many more connections of one of a group. */
  function opens(
    { name, most, mostOfOne, wide = Number.POSITIVE_INFINITY }: OpeningGroup,
    network: string,
    more: number,
  ): boolean {
    const all = openingsOf.get(name) ?? { ...noOpenings }
    openingsOf.set(name, all)
    if (all.opened + more > most) all.rushUntil = soon()
    const opened = addTo(openings, network, more)
    if (opened === more) all.active++
    if (opened > crowdedOpeningsMost && opened - more <= crowdedOpeningsMost) all.eager++
    const few = Math.min(crowdedOpeningsMost, Math.max(1, Math.floor(wide / Math.max(all.active, all.before.active))))
    const crowded = Math.max(few, Math.floor(most / Math.max(all.eager, all.before.eager)))
    if (opened > (clock.elapsed() < all.rushUntil ? Math.min(crowded, mostOfOne) : mostOfOne)) return false
    all.opened += more
    return true
  }

  return {
    admits(around, isTls) {
      if (isProxys(around)) return true
      const [narrowest, widest] = [around[0]!, around.at(-1)!]
      const name = openingGroupAt(narrowest)
      if (name !== undefined) return opens({ name, most: openingsMost, mostOfOne: openingsMost }, narrowest, 1)
      const cost = isTls ? tlsCost : 1
      // Many are given a /48: what it opens is one's. Of half of that those share who want more than a few in it: others there have theirs.
      const half = networkOpeningsMost / 2
      const inWide = { name: widest, most: half, mostOfOne: half, wide: networkOpeningsMost }
      if (widest !== narrowest && !opens(inWide, narrowest, cost)) return false
      return opens({ name: '', most: openingsMost, mostOfOne: networkOpeningsMost }, widest, cost)
    },
    admitsBehind(around, headers, ofMerchant) {
      if (isProxys(around)) return true
      const cost = Math.max(1, Math.ceil(headers / 16))
      if (ofMerchant !== undefined) return isWithin(pipelinedMost, behind, [ofMerchant], cost)
      const isTooMuch = addTo(behind, '', cost) > pipelinedOfAllMost
      if (isTooMuch) crowdedUntil = soon()
      return isWithin(isTooMuch ? 0 : pipelinedMost, behind, around, cost)
    },
    admitsPiece(bytes, caller, ofMerchant, cost = 1) {
      const lacks = cost * lackOf(bytes, packetBytes)
      if (lacks === 0) return true
      if (ofMerchant !== undefined) return isWithin(smallPiecesMost.merchant, smallPieces, [ofMerchant], lacks)
      const around = caller()
      // A merchant's server has not said yet whose it is.
      if (isMerchants(around)) return isWithin(smallPiecesMost.merchant, smallPieces, around, lacks)
      const isTooMuch = (smallPieces.get('') ?? 0) + lacks > smallPiecesMost.strangers
      // Who has few of them is not the one that is closed then; a proxy that speaks of nobody speaks for all.
      const most = isTooMuch ? smallPiecesMost.crowded : smallPiecesMost.network
      if (isProxys(around) ? isTooMuch : !isWithin(most, smallPieces, around, lacks)) return false
      // What is beyond one's own is taken from nobody.
      addTo(smallPieces, '', lacks)
      return true
    },
    admitsBytes(around, bytes, whose) {
      if (whose === undefined && isProxys(around)) return true
      if (whose === undefined && !isMerchants(around)) {
        if (addTo(largeBytes, '', bytes) > largeBytesMost) heavyUntil = soon()
        return isWithin(strangersBytesMost(), strangersBytes, around, bytes)
      }
      return whose === undefined
        ? isWithin(networkBytesMost, largeBytes, around, bytes)
        : isWithin(largeBytesMost, largeBytes, [whose], bytes)
    },
    tells: whom => addTo(tellings, whom, 1) <= tellingsMost,
    isMerchants,
    isCrowd: around => isStranger(around) && clock.elapsed() < crowdedUntil,
    knowsMerchant(around, merchantId) {
      if (isProxys(around)) return
      const network = around[0]!
      const there = merchants.get(network) ?? new Map<string, number>()
      const own = networksOf.get(merchantId) ?? new Set<string>()
      merchants.delete(network)
      there.delete(merchantId)
      own.delete(network)
      merchants.set(network, there.set(merchantId, clock.elapsed()))
      networksOf.set(merchantId, own.add(network))
      if (there.size > ofNetworkMost) forget(network, there.keys().next().value!)
      if (own.size > ofMerchantMost) forget(own.values().next().value!, merchantId)
      if (merchants.size > merchantsMost) forgetAll(merchants.keys().next().value!)
    },
    stop: () => second.cancel(),
  }
}
