// A file of a bank or a store chain, read by the layout of its account. Pure.

import type { Steps } from '../steps.ts'
import type { ReturnFile, ReturnsAccount } from './movement.ts'
import { read240 } from './read240.ts'
import { read400 } from './read400.ts'
import { readChain } from './readChain.ts'
import { BrokenReturn, returnBytesMost, tooLong } from './rows.ts'

/** Nothing counts of a file that is not whole, or is another account's. */
export function* readReturn(bytes: Buffer, account: ReturnsAccount): Steps<ReturnFile | { readonly broken: string }> {
  try {
    if (bytes.length > returnBytesMost) throw new BrokenReturn(tooLong(bytes.length))
    if (account.kind === 'chain') return yield* readChain(bytes, account)
    return yield* account.layout === 'cnab240' ? read240(bytes, account) : read400(bytes, account)
  } catch (error) {
    if (error instanceof BrokenReturn) return { broken: error.message }
    throw error
  }
}
