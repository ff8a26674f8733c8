// Names of files are texts of whoever laid them down.

import { basename } from 'node:path'
import { knownBrands } from '../contract/brands.ts'
import { shortenCards } from '../contract/cardNumbers.ts'
import { storableText } from '../platform/database/json.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'

/** As a name is kept and told: card numbers shortened, and no CVV. */
export const storedName = (name: string): string => shortenCards(storableText(name), knownBrands)

/** The same of where a file lies. */
export const storedNameAt = (path: string): string => storedName(basename(path))

/** What stands for a file where it must be that of no other: its name, or that without a card number and what says nothing to whoever has no keys. */
export function nameMark(keys: Keys, name: string): string {
  const stored = storedName(name)
  return stored === storableText(name)
    ? stored
    : `${stored} ${keyedHashes(keys, 'name of a file', name)[0]!.toString('hex').slice(0, 16)}`
}
