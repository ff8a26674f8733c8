// What the server writes into the page for its script.

import type { BrandRow } from './brands.ts'

export type FormFacts = {
  readonly state: 'open' | 'over'
  readonly door: 'frame' | 'page'
  readonly id: string
  /** Details are kept and nothing is paid. */
  readonly standalone: boolean
  /** Where the pressed button goes, and where the form asks how it stands. */
  readonly payPath: string
  readonly statePath: string
  readonly rows: readonly BrandRow[]
  /** Names of the card brands that are taken here. */
  readonly taken: readonly string[]
  /** The present month, `2026-11`. */
  readonly month: string
  readonly secondsLeft: number
  /** The pages that may speak to the form; empty = any. */
  readonly origins: readonly string[]
  readonly shopperResultUrl?: string
  readonly cvvAsked: boolean
  /** Of cards that were saved. */
  readonly savedCvvAsked: boolean
  readonly texts: Readonly<Record<string, string>>
}
