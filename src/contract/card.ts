// A card as a request brings it.

export type Card = {
  readonly number: string
  readonly expiryMonth: string
  readonly expiryYear: string
  readonly holder?: string
  /** Only while the shopper's own request runs; never stored. */
  readonly cvv?: string
}
