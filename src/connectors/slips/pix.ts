// The code that a Pix is paid with, as a QR of a slip holds it: fields of tag, length and value (EMV, merchant presented), sealed by a CRC. Pure.
// Source: Banco Central do Brasil, manual of the BR Code.

export type PixPlace =
  | {
      /** Where the payer's bank asks what is to be paid: an address without its scheme. */
      readonly location: string
    }
  | {
      /** Of the receiver. */
      readonly key: string
      /** `1.00`; absent: whoever pays says how much. */
      readonly amount?: string
    }

/** `name` and `city` are at most 25 and 15 characters of ASCII. `reference`: at most 25 letters and digits; a location knows its own. */
export function pixCode(place: PixPlace, name: string, city: string, reference = '***'): string {
  const [arranged, amount] = 'key' in place ? [field('01', place.key), place.amount] : [field('25', place.location), undefined]
  const code = [
    field('00', '01'),
    'key' in place ? '' : field('01', '12'),
    field('26', field('00', 'br.gov.bcb.pix') + arranged),
    field('52', '0000'),
    field('53', '986'),
    amount === undefined ? '' : field('54', amount),
    field('58', 'BR'),
    field('59', name, 25),
    field('60', city, 15),
    field('62', field('05', reference, 25)),
    '6304',
  ].join('')
  return code + pixSeal(code)
}

function field(tag: string, value: string, most = 99): string {
  if (value.length === 0 || value.length > most || !/^[\x20-\x7e]*$/.test(value))
    throw new Error(`field ${tag} of a Pix holds 1 to ${most} characters of ASCII`)
  return tag + String(value.length).padStart(2, '0') + value
}

/** CRC-16/CCITT-FALSE in four upper-case hex digits, over all that stands before, `6304` included. */
export function pixSeal(code: string): string {
  let crc = 0xffff
  for (let at = 0; at < code.length; at++) {
    crc ^= code.charCodeAt(at) << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc.toString(16).toUpperCase().padStart(4, '0')
}
