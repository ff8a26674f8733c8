// Faults at random, for a host that shall misbehave without being asked to by an amount. A seed makes the same choices again.

import { randomInt } from 'node:crypto'
import type { Message } from '../../connectors/cards/iso8583/codec.ts'
import { type Fault, faultNames } from './decide.ts'

export const isFault = (name: string): name is Fault => (faultNames as readonly string[]).includes(name)

// No host confirms another amount than it was told of a capture, a refund or a reversal.
const ofAuthorizations: ReadonlySet<Fault> = new Set(['otherAmount', 'partly', 'otherCurrency', 'bookedOther'])
export const isPossible = (fault: Fault, message: Message): boolean => !ofAuthorizations.has(fault) || isAuthorization(message)
const isAuthorization = ({ type, fields }: Message): boolean => /^.[12]00$/.test(type) && fields.get(3) === '000000'

export function randomFaults(
  faults: readonly Fault[],
  percent: number,
  seed: number = randomInt(2 ** 32),
): (message: Message) => Fault | undefined {
  let state = seed >>> 0
  // Mulberry32: small, and good enough to choose by.
  const draw = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return message => {
    const fault = draw() * 100 < percent ? faults[Math.floor(draw() * faults.length)] : undefined
    return fault && isPossible(fault, message) ? fault : undefined
  }
}
