// Merchants with a channel and a token each, by their numbers, below one PSP.

import type { Seed } from '../../src/merchants/seed.ts'

/** Merchant, channel and token of a number from 1 to 255. */
export function shopOf(number: number) {
  const hex = number.toString(16).padStart(2, '0')
  const id = (kind: string) => `${kind}${'0'.repeat(28)}${hex}`
  return { merchantId: id('e1'), channelId: id('c1'), token: `${hex}Zq8vLw3TxNfRbYk7MsPdHj5GuCe` }
}
export type Shop = ReturnType<typeof shopOf>

/** The sandbox's: an installation has one. */
export const pspId = '5a11d0000000000000000000000000a0'
export const divisionId = `d1${'0'.repeat(30)}`
/** Acts for the whole PSP, in whichever cell. */
export const spanningToken = 'Wm4rTz9KcXe2VbLyQhNu8GpJs6DfAo3i'

/** A PSP whose merchants have these numbers. */
export const seedOf = (numbers: readonly number[]): Seed => ({
  psp: { id: pspId, name: 'All' },
  divisions: [
    {
      id: divisionId,
      name: 'Shops',
      merchants: numbers.map(number => {
        const { merchantId, channelId } = shopOf(number)
        const settings = { statusReadsWithoutCredentials: true }
        return { id: merchantId, name: `Shop ${number}`, channels: [{ id: channelId, name: `Channel ${number}`, settings }] }
      }),
    },
  ],
  tokens: [
    { label: 'all', entities: [pspId], token: spanningToken },
    ...numbers.map(number => ({ label: `${number}`, entities: [shopOf(number).merchantId], token: shopOf(number).token })),
  ],
})
