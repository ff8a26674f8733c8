// The QR code of a link, drawn when somebody first asks for one: the library is large.

import { type Html, trusted } from '../html.ts'

/** Drawing one takes a tenth of a second of everybody's time. */
const drawn = new Map<string, Html>()
const drawnMost = 200

/** Black on what is behind it, with no margin: the page gives it a white one of four modules or more. */
export async function qrCode(link: string): Promise<Html> {
  const code = drawn.get(link) ?? trusted((await import('bwip-js')).toSVG({ bcid: 'qrcode', text: link }))
  drawn.delete(link)
  drawn.set(link, code)
  if (drawn.size > drawnMost) drawn.delete(drawn.keys().next().value!)
  return code
}
