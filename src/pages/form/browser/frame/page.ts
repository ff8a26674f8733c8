// What the server wrote into the page, and the page's elements.

import type { Problem } from '../checks.ts'
import type { FormFacts } from '../facts.ts'

export const formData: FormFacts = JSON.parse(document.getElementById('data')!.textContent!)

export const element = <Kind extends HTMLElement>(id: string): Kind | null => document.getElementById(id) as Kind | null

/** The shop's own words for labels and errors win. */
export const shopTexts: Record<string, string> = {}

export const textOf = ({ text, slots = {} }: Problem): string =>
  (shopTexts[text] ?? formData.texts[text] ?? '').replace(/\{(\w+)\}/g, (slot, name: string) => slots[name] ?? slot)

/** What the shop has switched, `'false'` or `'true'`, and other words. */
export const flags: Record<string, string> = {}
