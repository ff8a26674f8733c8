// How many requests of one caller may be under way at a time, and how much they may hold. What waits for the database or an acquirer waits in the order in which
// it came: without a limit one caller's thousands would stand before everybody else's next, and what each holds would be all that the process has.

import { addTo } from '../platform/counts.ts'
import { networkShare } from '../platform/network.ts'
import type { Request } from './answer.ts'
import type { HttpParts } from './parts.ts'

/** Of one network, where no token says whose they are. */
export const networkRequestsMost = 256

/** Counts a request of which no token says whose it is for its network, and for those around it. */
export const isWithinNetwork = (underWay: UnderWay, request: Request): boolean =>
  request.networks.every(network => underWay(request, network, networkRequestsMost * networkShare(network)))

/** Counts a request under a key until it is answered; false when so many are under way already. */
export type UnderWay = (request: Request, key: string, most: number) => boolean

export function countUnderWay(): UnderWay {
  const counts = new Map<string, number>()
  return ({ whenAnswered }, key, most) => {
    const count = counts.get(key) ?? 0
    if (count >= most) return false
    addTo(counts, key, 1)
    whenAnswered.push(() => addTo(counts, key, -1))
    return true
  }
}

/** Counts bytes that a request holds until it is answered for those who have it do so; false when that is more than they may. */
export type Holding = (request: Request, callers: readonly string[], bytes: number) => boolean

/** The last third of all is for those who hold little. */
const sharedPart = 2 / 3

/**
 * Each caller may hold as much as is still free of two thirds: one alone has a third of all, two that fill it together two ninths each. Of those who come one after the
 * other each leaves half: so there is more for who holds no more than `little` (a /56 and a /48 twice and four times as much).
 */
export function holdTogether(most: number, little: number): Holding {
  const held = new Map<string, number>()
  let all = 0
  return ({ whenAnswered }, callers, bytes) => {
    const free = most * sharedPart - all - bytes
    const mayHold = (caller: string) => {
      const own = (held.get(caller) ?? 0) + bytes
      return own <= free || (own <= little * networkShare(caller) && all + bytes <= most)
    }
    if (!callers.every(mayHold)) return false
    all += bytes
    for (const caller of callers) addTo(held, caller, bytes)
    whenAnswered.push(() => {
      all -= bytes
      for (const caller of callers) addTo(held, caller, -bytes)
    })
    return true
  }
}

/** What requests hold that wait for another side. `heapBytes`: all that the process may have; a byte that is counted takes up to three. */
export const requestsHold = (heapBytes: number): HttpParts['held'] => ({
  merchants: holdTogether(heapBytes / 8, heapBytes / 512),
  browsers: holdTogether(heapBytes / 16, heapBytes / 8192),
})

/** Names and values, of a form or as they are stored. */
type Said = Iterable<readonly [name: string, value: string]>
/** What a parameter takes besides its letters. */
const parameterBytes = 100

function bytesIn(said: Said): number {
  let bytes = 0
  for (const [name, value] of said) bytes += name.length + value.length + parameterBytes
  return bytes
}

/** What is held for a request of a merchant's server. */
export const isHeldForMerchant = ({ held }: HttpParts, request: Request, merchantId: string, said: Said): boolean =>
  held.merchants(request, [merchantId], bytesIn(said))

/** What is held for a browser, of which no token says whose it is. */
export const isHeldForBrowser = ({ held }: HttpParts, request: Request, said: Said): boolean =>
  held.browsers(request, request.networks, bytesIn(said))

/** What it has sent itself, as it came. */
export const isHeldAsItCame = ({ held }: HttpParts, request: Request): boolean =>
  held.browsers(request, request.networks, bytesOf(request))

const bytesOf = ({ body, query, headers }: Request): number =>
  Object.values(headers).reduce((sum, value) => sum + (value?.length ?? 0), body.length + query.length)
