// The line on the shopper's statement: by the channel's setting the request's text replaces ours, follows it, or is ignored.

import { knownBrands } from '../../contract/brands.ts'
import { holdsCardData } from '../../contract/cardNumbers.ts'
import type { Channel } from '../../merchants/directory.ts'

const descriptorMax = 127

export function descriptorFor(channel: Channel, paymentId: string, sent: string | undefined): string {
  const { descriptor } = channel.settings
  if (sent !== undefined && descriptor === 'replace') return cut(sent)
  const own = `${shortId(paymentId)} ${channel.name}`
  return cut(sent === undefined || descriptor === 'ignore' ? own : `${own} ${sent}`)
}

/** At most so many code points. */
const cut = (line: string): string => (line.length <= descriptorMax ? line : [...line].slice(0, descriptorMax).join(''))

/** Twelve digits for people to read out, `dddd.dddd.dddd`, made of the id, that pass for no card number: a shop may send them back in a text. */
export function shortId(paymentId: string): string {
  for (let number = BigInt(`0x${paymentId}`); ; number++) {
    const digits = (number % 1_000_000_000_000n).toString().padStart(12, '0')
    const written = `${digits.slice(0, 4)}.${digits.slice(4, 8)}.${digits.slice(8)}`
    if (!holdsCardData(written, knownBrands)) return written
  }
}
