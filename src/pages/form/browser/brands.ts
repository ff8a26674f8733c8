// Which brand a card number belongs to, while it is typed.

/** A row of the installation's card brands, with the name that shoppers know. */
export type BrandRow = {
  readonly name: string
  readonly title: string
  readonly lengths: readonly number[]
  readonly cvvLength: number
  readonly cvvRequired: boolean
  /** `51-55`, `4`: leading digits. */
  readonly ranges: readonly string[]
  /** Brands whose numbers it takes as well. */
  readonly also: readonly string[]
}

/** The brand by the range with most digits; the first of equals. */
export function brandOfNumber(rows: readonly BrandRow[], digits: string): BrandRow | undefined {
  let best: { row: BrandRow; size: number } | undefined
  for (const row of rows)
    for (const range of row.ranges) {
      const [from, to = from] = range.split('-') as [string, string?]
      const begins = digits.slice(0, from.length)
      if (begins.length === from.length && begins >= from && begins <= to && from.length > (best?.size ?? 0))
        best = { row, size: from.length }
    }
  return best?.row
}

/** Of the brands that are taken here those that the number can be paid as: its own first, then national brands on the same card. */
export function brandsToPayAs(rows: readonly BrandRow[], taken: readonly string[], digits: string): readonly BrandRow[] {
  const own = brandOfNumber(rows, digits)
  if (!own) return []
  const fits = taken.flatMap(name => rows.filter(row => row.name === name && row.also.includes(own.name)))
  return taken.includes(own.name) ? [own, ...fits.filter(({ ranges }) => ranges.length === 0)] : fits
}
