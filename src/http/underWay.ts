// How many requests of one caller may be under way at a time. What waits for the database or an acquirer waits in the order in which it came: without a
// limit one caller's thousands would stand before everybody else's next.

import { networkShare } from '../platform/network.ts'
import type { Request } from './answer.ts'

/** Of one network, where no token says whose they are. */
export const networkRequestsMost = 256

/** Counts a request of which no token says whose it is for its network, and for those around it. */
export const isWithinNetwork = (underWay: UnderWay, request: Request): boolean =>
  countForNetworks(underWay, request, '', networkRequestsMost, 1)

/** Bytes of what browsers of one network have sent and is held until it is answered: as many requests as it may have, of four kilobytes each. */
const networkBytesMost = networkRequestsMost * 4096

/** Counts what a request says in the same way. */
export const areBytesWithinNetwork = (underWay: UnderWay, request: Request): boolean =>
  countForNetworks(underWay, request, 'bytes ', networkBytesMost, bytesOf(request))

const bytesOf = ({ body, query, headers }: Request): number =>
  Object.values(headers).reduce((sum, value) => sum + (value?.length ?? 0), body.length + query.length)

const countForNetworks = (underWay: UnderWay, request: Request, what: string, most: number, weight: number): boolean =>
  request.networks.every(network => underWay(request, `${what}${network}`, most * networkShare(network), weight))

/** Of what is said in requests of one merchant that are under way, or in his checkouts that are being paid: payments hold it for as long as their bank takes. As many as a
 * token may have, of sixty-four kilobytes. */
export const merchantBytesMost = 64 * 1024 * 1024
/** What a parameter takes besides its letters. */
const parameterBytes = 100

/** Counts parameters that are held for a merchant's request. */
export function areBytesWithinMerchant(
  underWay: UnderWay,
  request: Request,
  merchantId: string,
  parameters: Iterable<readonly [name: string, value: string]>,
): boolean {
  let bytes = 0
  for (const [name, value] of parameters) bytes += name.length + value.length + parameterBytes
  return underWay(request, `bytes of ${merchantId}`, merchantBytesMost, bytes)
}

/** Counts a request under a key until it is answered, as one or as so many; false when so many are under way already. */
export type UnderWay = (request: Request, key: string, most: number, weight?: number) => boolean

export function countUnderWay(): UnderWay {
  const counts = new Map<string, number>()
  return ({ whenAnswered }, key, most, weight = 1) => {
    const count = counts.get(key) ?? 0
    if (count >= most) return false
    counts.set(key, count + weight)
    whenAnswered.push(() => {
      const left = counts.get(key)! - weight
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
    })
    return true
  }
}
