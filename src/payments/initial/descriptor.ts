// The line on the shopper's statement: by the channel's setting the request's text replaces ours, follows it, or is ignored.

import { knownBrands } from '../../contract/brands.ts'
import { holdsCardData } from '../../contract/cardNumbers.ts'
import type { Channel } from '../../merchants/directory.ts'

const descriptorMax = 127

export function descriptorFor(channel: Channel, paymentId: string, sent: string | undefined): string {
  const { descriptor } = channel.settings
  if (sent !== undefined && descriptor === 'replace') return cut(sent)
  const own = ownLine(paymentId, channel.name)
  return cut(sent === undefined || descriptor === 'ignore' ? own : `${own} ${sent}`)
}

/** At most so many code points. */
const cut = (line: string): string => (line.length <= descriptorMax ? line : [...line].slice(0, descriptorMax).join(''))

/** Twelve digits for people to read out, `dddd.dddd.dddd`, made of the id, and the name: they pass for no card number, and a shop may send them back in a text. */
export function ownLine(paymentId: string, name: string): string {
  const number = BigInt(`0x${paymentId}`)
  let line = ''
  for (let more = 0n; more < 20n; more++) {
    const digits = ((number + more) % 1_000_000_000_000n).toString().padStart(12, '0')
    line = `${digits.slice(0, 4)}.${digits.slice(4, 8)}.${digits.slice(8)} ${name}`
    if (!holdsCardData(line, knownBrands)) break
  }
  return line
}
