// The QR code of a link, drawn when somebody first asks for one: the library is large.

import { type Html, trusted } from '../html.ts'

/** Black on what is behind it, with no margin: the page gives it a white one of four modules or more. */
export async function qrCode(link: string): Promise<Html> {
  const { toSVG } = await import('bwip-js')
  return trusted(toSVG({ bcid: 'qrcode', text: link }))
}
