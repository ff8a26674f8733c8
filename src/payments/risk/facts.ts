// What rules can look at: parameters under their wire names, facts made of them, and counts of earlier attempts. Pure but for the counts,
// which come from store.ts.

import type { Values } from '../../contract/parameters/table.ts'
import type { Fact, Facts } from './judge.ts'
import type { RiskList } from './lists/lists.ts'
import type { RuleSet } from './rules.ts'

/** What is known of a payment that is about to be made. */
export type ScreenedPayment = {
  readonly fields: Values
  readonly brand: string
  readonly cardNumber: string
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  /** Business time, milliseconds. */
  readonly now: number
}

export const subjects = ['card', 'email', 'ip', 'device', 'customer'] as const
export type Subject = (typeof subjects)[number]

export const windows: Readonly<Record<string, number>> = { '10m': 600, '1h': 3600, '24h': 86_400, '7d': 604_800 }

/** `attempts.card.10m`: how often, this attempt included; `sum.card.24h`: for how much, in the currency of the payment; `declines.card.1h`. */
const velocityFact = /^(attempts|sum|declines)\.(card|email|ip|device|customer)\.(10m|1h|24h|7d)$/

export type Velocity = { readonly fact: string; readonly what: string; readonly subject: Subject; readonly seconds: number }

/** The counts that a set of rules asks for. */
export function velocitiesOf({ rules }: RuleSet): Velocity[] {
  const found = new Map<string, Velocity>()
  for (const { fact } of rules) {
    const [, what, subject, window] = velocityFact.exec(fact) ?? []
    if (what) found.set(fact, { fact, what, subject: subject as Subject, seconds: windows[window!]! })
  }
  return [...found.values()]
}

/** The clear values whose attempts are counted; they are hashed before they are stored. */
export function subjectsOf({ fields, cardNumber }: ScreenedPayment): ReadonlyMap<Subject, string> {
  const rows: readonly (readonly [Subject, string | undefined])[] = [
    ['card', cardNumber],
    ['email', fields.get('customer.email')?.toLowerCase()],
    ['ip', fields.get('customer.ip')],
    ['device', fields.get('customer.browserFingerprint.id')],
    ['customer', fields.get('customer.merchantCustomerId')],
  ]
  return new Map(rows.filter((row): row is readonly [Subject, string] => row[1] !== undefined))
}

/** `lists`: those in which something of the payment stands. */
export function factsOf(
  screened: ScreenedPayment,
  set: RuleSet,
  counts: ReadonlyMap<string, number>,
  lists: ReadonlySet<RiskList> = new Set(),
): Facts {
  const { fields, brand, cardNumber, amount, currency, now } = screened
  const riskAmount = fields.get('risk.amount')
  const email = fields.get('customer.email')
  const domain = email?.slice(email.lastIndexOf('@') + 1).toLowerCase()
  const [billing, shipping] = [fields.get('billing.country')?.toUpperCase(), fields.get('shipping.country')?.toUpperCase()]
  const cardCountry = countryOf(cardNumber, set.cardCountries)
  const departure = Date.parse(fields.get('airline.passengers[0].legs[0].departureDate') ?? '')
  const facts: readonly (readonly [string, Fact | undefined])[] = [
    ['brand', fields.get('risk.brand') ?? brand],
    ['bin', cardNumber.slice(0, 6)],
    ['amount', riskAmount === undefined ? amount / 100 : Number(riskAmount)],
    ['currency', currency],
    ['hour', new Date(now).getUTCHours()],
    ['email.domain', domain],
    ['email.disposable', domain === undefined ? undefined : set.disposableDomains.has(domain)],
    ['card.country', cardCountry],
    [
      'countries.cardAndBilling',
      cardCountry === undefined || billing === undefined ? undefined : cardCountry === billing ? 'same' : 'different',
    ],
    [
      'countries.billingAndShipping',
      billing === undefined || shipping === undefined ? undefined : billing === shipping ? 'same' : 'different',
    ],
    ['hoursToDeparture', Number.isNaN(departure) ? undefined : (departure - now) / 3_600_000],
  ]
  const known = facts.filter((row): row is readonly [string, Fact] => row[1] !== undefined)
  const open = [...fields].filter(([name]) => !name.startsWith('card.') && !name.endsWith('.password'))
  const listed = [...lists].map(list => [`list.${list}`, true] as const)
  return new Map<string, Fact>([...open, ...known, ...counts, ...listed])
}

/** By the longest prefix that the rules file knows. */
function countryOf(cardNumber: string, countries: ReadonlyMap<string, string>): string | undefined {
  for (let length = 8; length > 0; length--) {
    const country = countries.get(cardNumber.slice(0, length))
    if (country !== undefined) return country.toUpperCase()
  }
  return undefined
}
