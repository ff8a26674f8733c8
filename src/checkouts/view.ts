// What the form of a checkout shows: made for the shopper's page, nothing secret.

/** How the form asks for a brand's data. */
export type FormMethod = 'card' | 'virtualAccount' | 'onlineTransfer' | 'prepayment'

/** Payment details that the shopper may pay with again. Nothing in it pays elsewhere. */
export type SavedDetails = {
  readonly id: string
  readonly brand: string
  readonly holder?: string
  readonly last4?: string
  readonly expiryMonth?: string
  readonly expiryYear?: string
  readonly accountId?: string
}

export type FormView = {
  readonly id: string
  /** Over: paid, expired or unknown; a shopper is never told which. */
  readonly state: 'open' | 'over'
  /** Payment details are stored and nothing is paid. */
  readonly standalone: boolean
  readonly paymentType?: string
  /** As on the wire: `92.00`. */
  readonly amount?: string
  readonly currency?: string
  /** Real time, milliseconds. */
  readonly expiresAt: number
  readonly shop: { readonly name: string; readonly logo?: string; readonly colour?: string }
  /** What the channel takes, in its order. */
  readonly brands: readonly { readonly name: string; readonly method: FormMethod }[]
  /** The merchant has set createRegistration. */
  readonly offersRegistration: boolean
  readonly registrations: readonly SavedDetails[]
  readonly requireCvv: boolean
  readonly billingName?: string
  readonly shopperResultUrl?: string
  /** The channel's setting `formOrigins`: the pages that may show the form; empty = any over https, in a sandbox any. */
  readonly frameAncestors: readonly string[]
  /** The build of the widget's script that a checkout with integrity=true is pinned to. */
  readonly scriptBuild?: string
}
