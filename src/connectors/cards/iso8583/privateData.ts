// DE48, the private data: tag (2 characters), length (2 digits), value, one after another. Tags follow Mastercard's sub-elements where there is one.

export const tags = {
  cardOnFile: '22', // agreement and who starts it, see forwarding.ts
  instalments: '20',
  airlineTicket: '31',
  airlineReference: '32',
  submerchant: '37',
  electronicCommerce: '42', // ECI
  cryptogram: '43', // authentication value of 3-D Secure
  networkTransaction: '63',
  authenticationTransaction: '66', // directory server's transaction id
  address: '82', // postcode and street for the address check
  cvv: '92',
} as const

const valueMax = 99

export function writePrivateData(values: ReadonlyMap<string, string>): string {
  return [...values].map(([tag, value]) => `${tag}${String(value.length).padStart(2, '0')}${value}`).join('')
}

/** Undefined when the text is not made of whole tags. */
export function readPrivateData(text: string): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>()
  for (let at = 0; at < text.length; ) {
    const length = text.slice(at + 2, at + 4)
    const value = text.slice(at + 4, at + 4 + Number(length))
    if (!/^\d{2}$/.test(length) || value.length !== Number(length)) return undefined
    values.set(text.slice(at, at + 2), value)
    at += 4 + value.length
  }
  return values
}

/** What a private value may hold: printable ASCII, marks folded away, at most 99 characters. */
export const privateText = (text: string): string => asciiText(text).slice(0, valueMax)

/** Letters without their marks, everything beyond printable ASCII as a space. */
export const asciiText = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]/g, ' ')
