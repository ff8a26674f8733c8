// Payment brands. Card brands with their number ranges, lengths and CVV; beside them the names of the other methods of the interface.

export type CardBrand = {
  readonly name: string
  readonly lengths: readonly number[]
  readonly cvvLength: 3 | 4
  /** Cards of some brands carry no CVV; elsewhere it is required unless the payment repeats an agreed one. */
  readonly cvvRequired: boolean
  /** Ranges of leading digits: `51-55`, `4`. A brand without any is never detected, only stated. */
  readonly ranges: readonly string[]
  /** Brands whose numbers this one also takes when it is stated (co-badged cards and brands of a family). */
  readonly also: readonly string[]
}

const row = (
  name: string,
  lengths: string,
  cvvLength: 3 | 4,
  cvvRequired: boolean,
  prefixes: string,
  also: readonly string[] = [],
): CardBrand => ({
  name,
  lengths: span(lengths),
  cvvLength,
  cvvRequired,
  ranges: prefixes === '' ? [] : prefixes.split(' '),
  also,
})

/** In the order that decides when several brands have ranges of the same number of digits. CARD_BRANDS_FILE replaces rows. */
export const standardRows: readonly CardBrand[] = [
  row(
    'MADA',
    '16',
    3,
    true,
    '446404 440647 440795 588845 588848 588850 636120 968201-968211 604906 605141 543357 529415 535825 22402030 22337902 42689700',
    ['VISA', 'MASTER', 'MAESTRO'],
  ),
  row(
    'ELO',
    '16',
    3,
    true,
    '401178 401179 431274 438935 451416 457393 457631 457632 504175 506699-506778 509000-509999 627780 636297 636368 650031-650033 ' +
      '650035-650051 650405-650439 650485-650538 650541-650598 650700-650718 650720-650727 650901-650978 651652-651679 655000-655019 655021-655058',
    ['VISA', 'DISCOVER', 'MAESTRO'],
  ),
  row('HIPERCARD', '16 19', 3, true, '606282 384100 384140 384160', ['DINERS', 'MAESTRO']),
  row('HIPER', '16', 3, true, '637095 637568 637599 637600 637609 637612', ['MAESTRO']),
  row('VISA', '13 16 18 19', 3, true, '4', ['VISAELECTRON']),
  row('VISAELECTRON', '16', 3, true, '4026 417500 4405 4508 4844 4913 4917', ['VISA']),
  row('MASTER', '16', 3, true, '51-55 2221-2720'),
  row('AMEX', '15', 4, true, '34 37'),
  row('DINERS', '14-19', 3, true, '300-305 3095 36 38 39'),
  row('DISCOVER', '16-19', 3, true, '6011 644-649 65 622126-622925'),
  row('JCB', '16-19', 3, true, '3528-3589'),
  row('MAESTRO', '12-19', 3, false, '50 56-58 6'),
  row('VISADEBIT', '13 16 18 19', 3, true, '', ['VISA', 'VISAELECTRON']),
  row('VPAY', '13 16 18 19', 3, true, '', ['VISA', 'VISAELECTRON']),
  row('MASTERDEBIT', '16', 3, true, '', ['MASTER']),
  row('CARTEBLEUE', '16', 3, true, '', ['VISA', 'VISAELECTRON', 'MASTER']),
  row('CARTEBANCAIRE', '16', 3, true, '', ['VISA', 'VISAELECTRON', 'MASTER', 'MAESTRO']),
  row('DANKORT', '16', 3, true, '5019', ['VISA', 'MAESTRO']),
  row('ASYACARD', '16', 3, true, '', ['VISA', 'VISAELECTRON', 'MASTER']),
  row('AXESS', '16', 3, true, '', ['VISA', 'VISAELECTRON', 'MASTER']),
  row('BONUS', '16', 3, true, '', ['VISA', 'VISAELECTRON', 'MASTER']),
  row('WORLD', '16', 3, true, '', ['VISA', 'VISAELECTRON', 'MASTER']),
]

/** Brands of Mastercard's network, which has response codes and indicators of its own. */
export const mastercardBrands: ReadonlySet<string> = new Set(['MASTER', 'MASTERDEBIT', 'MAESTRO'])

/** Older clients send the names that methods had before. */
const formerNames: Readonly<Record<string, string>> = { BRADESCO: 'BOLETO' }

/** What a brand is called today. */
export const currentName = (brand: string): string => (Object.hasOwn(formerNames, brand) ? formerNames[brand]! : brand)

/** Brands of the interface that are no cards. A channel that has none of them set up says so. */
export const otherBrands: ReadonlySet<string> = new Set(
  (
    'ALIPAY BANCONTACT BARPAY BITCOIN BOLETO CASHU CHINAUNIONPAY CLICK_AND_BUY DIRECTDEBIT_SEPA EPS FACILYPAY_3X GIROPAY IDEAL INTERAC_ONLINE ' +
    'KLARNA_CHECKOUT KLARNA_INSTALLMENTS KLARNA_INVOICE KLARNA_PAYMENTS_PAYLATER KLARNA_PAYMENTS_PAYNOW MBWAY MULTIBANCO OXXO PAYDIREKT PAYPAL ' +
    'PAYSAFECARD PAYTRAIL PAYU POLI PREPAYMENT PRZELEWY QIWI RATENKAUF SADAD SERVIRED SOFORTUEBERWEISUNG TRUSTLY TRUSTPAY_VA WECHAT_PAY YANDEX ' +
    'APPLEPAY GOOGLEPAY SAMSUNGPAY'
  ).split(' '),
)

/** What may be a card number. */
export type CardLengths = {
  /** Lengths of the numbers that begin with these digits, as whatever brand they may be stated. */
  lengthsOf(beginning: string): readonly number[]
}

/** The card brands of an installation. */
export type CardBrands = CardLengths & {
  readonly rows: readonly CardBrand[]
  named(name: string): CardBrand | undefined
  /** The brand of a card number, if any brand has numbers that begin like it: the range with most digits wins, then the order of the rows. */
  detect(cardNumber: string): CardBrand | undefined
  /** May this number be a card of the stated brand? */
  fits(brand: CardBrand, cardNumber: string): boolean
}

export function makeBrands(rows: readonly CardBrand[]): CardBrands {
  const byName = new Map(rows.map(brand => [brand.name, brand]))
  const ranges = rows
    .flatMap(brand => brand.ranges.map(range => ({ brand, ...endsOf(range) })))
    .sort((a, b) => b.from.length - a.from.length)
  // The few ranges that numbers with the same first digits can be in, found once.
  const nearRanges = new Array<typeof ranges>(10_000)
  const rangesNear = (start: string) => {
    if (start.length < 4) return ranges
    const place = Number(start)
    nearRanges[place] ??= ranges.filter(
      ({ from, to }) => from.slice(0, 4) <= start && start.slice(0, to.length) <= to.slice(0, 4),
    )
    return nearRanges[place]!
  }
  const detect = (cardNumber: string) =>
    rangesNear(cardNumber.slice(0, 4)).find(({ from, to }) => {
      const begins = cardNumber.slice(0, from.length)
      return begins.length === from.length && begins >= from && begins <= to
    })?.brand
  const lengths = new Map<string, readonly number[]>()
  const lengthsOfBrand = ({ name, also }: CardBrand): readonly number[] => {
    const known = lengths.get(name)
    if (known) return known
    const taken = rows.filter(other => other.name === name || also.includes(other.name) || other.also.includes(name))
    const found = [...new Set(taken.flatMap(other => other.lengths))]
    lengths.set(name, found)
    return found
  }
  return {
    rows,
    named: name => byName.get(name),
    detect,
    lengthsOf(beginning) {
      const brand = detect(beginning)
      return brand ? lengthsOfBrand(brand) : []
    },
    fits(brand, cardNumber) {
      const detected = detect(cardNumber)
      return detected !== undefined && (detected.name === brand.name || brand.also.includes(detected.name))
    },
  }
}

/** `51-55` → both ends, `4` → itself twice. */
export function endsOf(range: string): { readonly from: string; readonly to: string } {
  const [from, to = from] = range.split('-') as [string, string?]
  return { from, to }
}

export const standardBrands: CardBrands = makeBrands(standardRows)

const heard = new Map<string, CardBrands>([['', standardBrands]])
/** By all card brands that this process has heard of it knows a card number that stands where none belongs, also where no payment is at hand. */
export const knownBrands: CardLengths = {
  lengthsOf: beginning => [...heard.values()].flatMap(brands => brands.lengthsOf(beginning)),
}
/** Told whenever settings are read, those of a cell too. Nothing is forgotten. */
export function knowBrands(brands: CardBrands): void {
  if (brands !== standardBrands) heard.set(JSON.stringify(brands.rows), brands)
}

/** `13 16-19` → each length. */
function span(lengths: string): number[] {
  return lengths.split(' ').flatMap(part => {
    const { from, to } = endsOf(part)
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, at) => Number(from) + at)
  })
}
