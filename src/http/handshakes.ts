// Handshakes of TLS, answered in turns: each costs a signature, a millisecond with a key of RSA, and all whose greetings have come would be answered in one turn of the event
// loop.

import type { Socket } from 'node:net'
import { networksAround } from '../platform/network.ts'
import type { NetworkNames } from './rates.ts'
import { fairTurns, merchantLine } from './turns.ts'

/** Of what a turn of the event loop begins one counts for so many: eight are answered in it. */
const handshakeCost = 16

/** `isMerchants`: was a token used from there of late? Servers of merchants do not wait behind strangers. */
export function greetingsInTurn(
  isMerchants: (around: NetworkNames) => boolean,
  nextTurn: (go: () => void) => void = setImmediate,
): (raw: Socket, give: () => void) => void {
  /** Milliseconds, as many as there were: the work of each is done a turn later, and what passes while it is begun says nothing of it. */
  let spent = 0
  const { turn } = fairTurns(nextTurn, () => spent)
  return (raw, give) => {
    const around = networksAround(raw.remoteAddress ?? '')
    const begin = () => {
      if (leave) raw.off('close', leave)
      spent++
      give()
    }
    let leave: (() => void) | undefined
    leave = turn(isMerchants(around) ? [merchantLine(around[0]!)] : around, 0, handshakeCost, begin)
    if (leave) raw.once('close', leave)
  }
}
