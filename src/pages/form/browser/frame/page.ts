// What the server wrote into the page for its script, and the page's elements.

import type { BrandRow } from '../brands.ts'
import type { Problem } from '../checks.ts'

export type FormData = {
  readonly state: 'open' | 'over'
  readonly door: 'frame' | 'page'
  readonly id: string
  /** Where the pressed button goes, and from where the shopper's way back is asked. */
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
  readonly savedCvvAsked: boolean
  readonly texts: Readonly<Record<string, string>>
  /** Result codes → the text that tells the shopper what to do; the first that fits counts. */
  readonly advice: readonly (readonly [pattern: string, text: string])[]
}

export const formData: FormData = JSON.parse(document.getElementById('data')!.textContent!)

export const element = <Kind extends HTMLElement>(id: string): Kind | null => document.getElementById(id) as Kind | null

/** The shop's own words for labels and errors win. */
export const shopTexts: Record<string, string> = {}

export const textOf = ({ text, slots = {} }: Problem): string =>
  (shopTexts[text] ?? formData.texts[text] ?? '').replace(/\{(\w+)\}/g, (slot, name: string) => slots[name] ?? slot)

/** What the shop has switched, `'false'` or `'true'`, and other words. */
export const flags: Record<string, string> = {}
