// Handshakes of TLS, answered in turns: each costs a signature, a millisecond with a key of RSA, and all whose greetings have come would be answered in one turn of the event
// loop.

import type { Socket } from 'node:net'
import { networksAround } from '../platform/network.ts'
import type { NetworkNames } from './rates.ts'
import { fairTurns, merchantLine } from './turns.ts'

/**
 * Of what a turn of the event loop begins one counts for so many: four of a stranger's network are answered in it, and sixteen of a network with a merchant's server, and of all trusted proxies
 * together. What comes from there may be a stranger's too, and who is served must not wait behind all that he sends, however long a turn is.
 */
const strangersHandshake = { cost: 16, spends: 1 }
const merchantsHandshake = { cost: 4, spends: 0.5 }

/** What waits of one network: the greetings, who came first first, and the places in line, of which it is the same who has which. */
type WaitingGreetings = { readonly greetings: (() => void)[]; readonly places: Set<{ leave: (() => void) | undefined }> }

/**
 * `isMerchants`: was a token used from there of late? Servers of merchants do not wait behind strangers, nor does who comes through a proxy. Of one network that which has come last is answered first:
 * where more come than there is time for, all would wait until nobody does any more.
 */
export function greetingsInTurn(
  isMerchants: (around: NetworkNames) => boolean,
  isProxy: (address: string) => boolean,
  nextTurn: (go: () => void) => void = setImmediate,
): (raw: Socket, give: () => void) => void {
  /** Milliseconds as a turn counts them: the work of each is done a turn later, and what passes while it is begun says nothing of it. */
  let spent = 0
  const { turn } = fairTurns(nextTurn, () => spent)
  const networks = new Map<string, WaitingGreetings>()

  /** In which lines it waits; undefined = those of strangers. */
  function merchantsLineOf(address: string, around: NetworkNames): string | undefined {
    if (isProxy(address)) return merchantLine('proxies')
    return isMerchants(around) ? merchantLine(around[0]!) : undefined
  }

  return (raw, give) => {
    const address = raw.remoteAddress ?? ''
    const around = networksAround(address)
    const line = merchantsLineOf(address, around)
    const { cost, spends } = line === undefined ? strangersHandshake : merchantsHandshake
    const lines = line === undefined ? around : [line]
    const name = lines[0]!
    const own: WaitingGreetings = networks.get(name) ?? { greetings: [], places: new Set() }
    networks.set(name, own)
    const { greetings, places } = own
    const ends = () => {
      if (greetings.length === 0) networks.delete(name)
    }
    const greeting = () => {
      raw.off('close', goes)
      give()
    }
    const goes = () => {
      greetings.splice(greetings.indexOf(greeting), 1)
      const [any] = places
      places.delete(any!)
      any!.leave?.()
      ends()
    }
    const place = { leave: undefined as (() => void) | undefined }
    greetings.push(greeting)
    places.add(place)
    raw.once('close', goes)
    place.leave = turn(lines, 0, cost, () => {
      places.delete(place)
      spent += spends
      greetings.pop()!()
      ends()
    })
  }
}
