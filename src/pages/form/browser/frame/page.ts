// What the server wrote into the page for its script, and the page's elements.

import type { BrandRow } from '../brands.ts'
import type { Problem } from '../checks.ts'

export type FormData = {
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
  readonly texts: Readonly<Record<string, string>>
}

export const formData: FormData = JSON.parse(document.getElementById('data')!.textContent!)

export const element = <Kind extends HTMLElement>(id: string): Kind | null => document.getElementById(id) as Kind | null

/** The shop's own words for labels and errors win. */
export const shopTexts: Record<string, string> = {}

export const textOf = ({ text, slots = {} }: Problem): string =>
  (shopTexts[text] ?? formData.texts[text] ?? '').replace(/\{(\w+)\}/g, (slot, name: string) => slots[name] ?? slot)

/** What the shop has switched, `'false'` or `'true'`, and other words. */
export const flags: Record<string, string> = {}
