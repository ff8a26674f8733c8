// Who stands on the other side outside the sandbox: the wallet's endpoints and credentials, and the directory server of 3-D Secure, from files that
// only the gateway's user may read.

import { file, filled, mapOf, object, optional, parseJson, type Read, read, text, where } from '../schema.ts'

const address = where(
  text(/^https:\/\/|^http:\/\/(127\.0\.0\.1|localhost)[:/]/, 'must be an address with https'),
  url => URL.canParse(url),
  'must be an address with https',
)

const wallet = object({
  endpoint: address,
  /** Where the buyer goes, without the query. */
  checkout: address,
  credentials: mapOf(
    text(/^([0-9a-f]{32}|default)$/, 'must be named by the id of a channel, or default'),
    object({ user: filled, password: filled, signature: filled }),
  ),
})
const directory = object({
  url: address,
  /** As the scheme has registered us. */
  requestor: object({
    id: filled,
    name: filled,
    url: filled,
    referenceNumber: filled,
    acquirerBin: filled,
    acquirerMerchantId: filled,
    merchantCountryCode: text(/^\d{3}$/, 'must be a text of 3 digits'),
    mcc: text(/^\d{4}$/, 'must be a text of 4 digits'),
  }),
})

/** WALLET_FILE and THREE_D_SECURE_FILE. */
export const walletSchema = file({ external: optional(wallet), live: optional(wallet) })
export const directorySchema = file({ external: optional(directory), live: optional(directory) })

export type Wallets = Omit<Read<typeof walletSchema>, '$schema'>
export type Directories = Omit<Read<typeof directorySchema>, '$schema'>

export const readWalletFile = (text: string, source: string): Wallets => read(walletSchema, parseJson(text, source), source)
export const readDirectoryFile = (text: string, source: string): Directories =>
  read(directorySchema, parseJson(text, source), source)
