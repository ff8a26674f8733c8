// Names that we gave out are known again before the database is asked: their last signs follow from the others. That says in whose turn something is looked up, and never
// that anybody may do anything.

import { type Keys, keyedHashes } from './keys.ts'

/** Behind a name: so many signs of base64url, or of hex where the name is one. */
export type MarkShape = { readonly signs: number; readonly encoding: 'base64url' | 'hex' }

const marksOf = (keys: Keys, name: string, { signs, encoding }: MarkShape): string[] =>
  keyedHashes(keys, 'a name that we gave out', name).map(hash => hash.toString(encoding).slice(0, signs))

export const marked = (keys: Keys, name: string, mark: MarkShape): string => name + marksOf(keys, name, mark)[0]!

/** Also under an older lookup key. */
export const isMarked = (keys: Keys, text: string, mark: MarkShape): boolean =>
  marksOf(keys, text.slice(0, -mark.signs), mark).includes(text.slice(-mark.signs))
