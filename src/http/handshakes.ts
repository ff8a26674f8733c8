// Handshakes of TLS, answered in turns: each costs a signature, a millisecond with a key of RSA, and all whose greetings have come would be answered in one turn of the event
// loop.

import type { Socket } from 'node:net'
import { networksAround } from '../platform/network.ts'
import type { NetworkNames } from './rates.ts'
import { fairTurns, merchantLine } from './turns.ts'

/**
 * Of what a turn of the event loop begins one counts for so many: four of a stranger's network are answered in it, of a network with a merchant's server, and of all trusted proxies together, as many
 * as there is time for. What comes from there may be a stranger's too, and who is served must not wait behind all that he sends, however long a turn is.
 */
const handshakeCost = 16
const merchantsHandshakeCost = 6

/** `isMerchants`: was a token used from there of late? Servers of merchants do not wait behind strangers, nor does who comes through a proxy. */
export function greetingsInTurn(
  isMerchants: (around: NetworkNames) => boolean,
  isProxy: (address: string) => boolean,
  nextTurn: (go: () => void) => void = setImmediate,
): (raw: Socket, give: () => void) => void {
  /** Milliseconds, as many as there were: the work of each is done a turn later, and what passes while it is begun says nothing of it. */
  let spent = 0
  const { turn } = fairTurns(nextTurn, () => spent)
  return (raw, give) => {
    const address = raw.remoteAddress ?? ''
    const around = networksAround(address)
    const begin = () => {
      if (leave) raw.off('close', leave)
      spent++
      give()
    }
    let leave: (() => void) | undefined
    if (isProxy(address)) leave = turn([merchantLine('proxies')], 0, merchantsHandshakeCost, begin)
    else if (isMerchants(around)) leave = turn([merchantLine(around[0]!)], 0, merchantsHandshakeCost, begin)
    else leave = turn(around, 0, handshakeCost, begin)
    if (leave) raw.once('close', leave)
  }
}
