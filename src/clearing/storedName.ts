// Names of files are texts of whoever laid them down.

import { knownBrands } from '../contract/brands.ts'
import { shortenCards } from '../contract/cardNumbers.ts'
import { storableText } from '../platform/database/json.ts'

/** As a name is kept and told: card numbers shortened, and no CVV. */
export const storedName = (name: string): string => shortenCards(storableText(name), knownBrands)
