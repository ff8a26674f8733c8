// What people write in their own words and what is stored of it, as the back office takes it: card numbers shortened, with no CVV beside them, of a bounded
// length, and nothing in it that moves a cursor, hides or turns around what is beside it. `name` is that of the option or argument.

import { shortenCards } from '../contract/cardNumbers.ts'
import { type CommandParts, refuseWords } from './open.ts'

type Brands = { readonly config: Pick<CommandParts['config'], 'cardBrands'> }

export function freeText(opened: Brands, name: string, given: string, most: number): string {
  const text = given.trim()
  if (text === '' || text.length > most || !/^[^\p{Cc}\p{Cf}\u2028\u2029]+$/u.test(text))
    refuseWords(`${name} must be 1 to ${most} characters in one line, none of them invisible.`)
  return shortenCards(text, opened.config.cardBrands)
}
