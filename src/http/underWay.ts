// How many requests of one caller may be under way at a time. What waits for the database or an acquirer waits in the order in which it came: without a
// limit one caller's thousands would stand before everybody else's next.

import { networkShare } from '../platform/network.ts'
import type { Request } from './answer.ts'

/** Of one network, where no token says whose they are. */
export const networkRequestsMost = 256

/** Counts a request of which no token says whose it is for its network, and for those around it. */
export const isWithinNetwork = (underWay: UnderWay, request: Request): boolean =>
  request.networks.every(network => underWay(request, network, networkRequestsMost * networkShare(network)))

/** Bytes of what callers of one network have sent and is held until it is answered: as many requests as it may have, of two kilobytes each. */
const networkBytesMost = networkRequestsMost * 2048

/** The same of so many bytes. */
export const areBytesWithinNetwork = (underWay: UnderWay, request: Request, bytes: number): boolean =>
  request.networks.every(network => underWay(request, `bytes ${network}`, networkBytesMost * networkShare(network), bytes))

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
