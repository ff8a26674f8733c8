// The texts of a language: all that English has. A word that is missing does not compile, nor does a text without one of its slots.

import type { en } from './en.ts'

export type Texts = Translated<typeof en>
export type TextName = keyof Texts

/** The same names, each with a text that has the same slots. */
export type Translated<En extends Readonly<Record<string, string>>> = { readonly [Name in keyof En]: WithSlots<En[Name]> }

/** 'Pay {amount}' → any text with {amount} in it. */
type WithSlots<Text extends string> = Text extends `${string}{${infer Slot}}${infer Rest}`
  ? `${string}{${Slot}}${string}` & WithSlots<Rest>
  : string

/** Puts values into the slots of a text: `fill(texts.payNow, { amount })`. */
export const fill = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\{(\w+)\}/g, (slot, name: string) => values[name] ?? slot)
