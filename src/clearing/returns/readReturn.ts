// A file of a bank or a store chain, read by the layout of its account. Pure.

import type { ReturnFile, ReturnsAccount } from './movement.ts'
import { read240 } from './read240.ts'
import { read400 } from './read400.ts'
import { readChain } from './readChain.ts'
import { BrokenReturn } from './rows.ts'

/** More than any bank sends in a day: about half a million titles. */
export const returnBytesMost = 256 * 2 ** 20

/** Nothing counts of a file that is not whole, or is another account's. */
export function readReturn(bytes: Buffer, account: ReturnsAccount): ReturnFile | { readonly broken: string } {
  try {
    if (bytes.length > returnBytesMost) throw new BrokenReturn(`it is longer than ${returnBytesMost} bytes`)
    if (account.kind === 'chain') return readChain(bytes, account)
    return account.layout === 'cnab240' ? read240(bytes, account) : read400(bytes, account)
  } catch (error) {
    if (error instanceof BrokenReturn) return { broken: error.message }
    throw error
  }
}
