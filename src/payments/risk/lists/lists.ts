// Lists that people keep: whom to block and whom to allow. An entry of an entity counts for it and for all below; a rule of the kind `list` asks whether one fits.
// Of a card only its keyed hash is kept, so that a list says nothing about cards to whoever reads the database.

import { isIP } from 'node:net'
import { knownBrands } from '../../../contract/brands.ts'
import { holdsCardData, shortNumber } from '../../../contract/cardNumbers.ts'
import { hasLuhnDigit } from '../../../contract/luhn.ts'
import { type Keys, keyedHashes } from '../../../vault/keys.ts'
import type { ScreenedPayment } from '../facts.ts'

export const riskLists = ['block', 'allow'] as const
export type RiskList = (typeof riskLists)[number]

export const listedKinds = ['email', 'ip', 'bin', 'card', 'customer', 'device'] as const
export type ListedKind = (typeof listedKinds)[number]

/** What an entry is found by, and what people read of it. */
export type ListedValue = {
  readonly value: string
  readonly shown: string
  readonly network: string | null
  readonly lookupKey: string | null
}

/** The hash of a card is that of its attempts. */
const cardPurpose = 'risk card'

/** Of what somebody wrote; undefined when it can be none of that kind. */
export function listedValue(keys: Keys, kind: ListedKind, text: string): ListedValue | undefined {
  const plain = text.trim().toLowerCase()
  if (plain === '' || plain.length > 255 || /[\p{Cc}\p{Cf}]/u.test(plain)) return undefined
  // A card number is kept as that of a card, or not at all.
  if (kind !== 'card' && holdsCardData(plain, knownBrands)) return undefined
  const as = (value: string, more: Partial<ListedValue> = {}) => ({
    value,
    shown: value,
    network: null,
    lookupKey: null,
    ...more,
  })
  switch (kind) {
    case 'email':
      // Without a name before the sign: all of that domain.
      return /^[^@\s]*@[^@\s]+\.[^@\s.]+$/.test(plain) ? as(plain) : undefined
    case 'ip':
      return isNetwork(plain) ? as(plain, { network: plain }) : undefined
    case 'bin':
      return /^\d{6,8}$/.test(plain) ? as(plain) : undefined
    case 'card': {
      const number = plain.replace(/[ -]/g, '')
      if (!/^\d{12,19}$/.test(number) || !hasLuhnDigit(number)) return undefined
      const [newest] = keyedHashes(keys, cardPurpose, number)
      return as(newest.toString('hex'), { shown: shortNumber(number), lookupKey: keys.lookup[0]!.id })
    }
    default:
      return as(plain)
  }
}

/** An address, or a network that is not so wide that it was surely mistyped. */
function isNetwork(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0) return false
  return (
    bits === undefined ||
    (/^\d{1,3}$/.test(bits) && Number(bits) >= (family === 4 ? 8 : 16) && Number(bits) <= (family === 4 ? 32 : 128))
  )
}

/** What an entry may be found by of a payment. */
export type Listable = {
  readonly pairs: readonly (readonly [kind: ListedKind, value: string])[]
  readonly address: string | null
  /** Hashes of the card, the newest first. */
  readonly cardHashes: readonly string[]
}

export function listable(keys: Keys, { fields, cardNumber }: ScreenedPayment): Listable {
  const email = fields.get('customer.email')?.toLowerCase()
  const address = fields.get('customer.ip')
  const cardHashes = keyedHashes(keys, cardPurpose, cardNumber).map(hash => hash.toString('hex'))
  const rows: (readonly [ListedKind, string | undefined])[] = [
    ['email', email],
    ['email', email?.slice(email.lastIndexOf('@'))],
    ...[6, 7, 8].map(length => ['bin', cardNumber.slice(0, length)] as const),
    ...cardHashes.map(hash => ['card', hash] as const),
    ['customer', fields.get('customer.merchantCustomerId')?.toLowerCase()],
    ['device', fields.get('customer.browserFingerprint.id')?.toLowerCase()],
  ]
  return {
    pairs: rows.filter((row): row is readonly [ListedKind, string] => row[1] !== undefined),
    address: address !== undefined && isIP(address) !== 0 ? address : null,
    cardHashes,
  }
}
