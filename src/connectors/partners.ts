// Who stands on the other side outside the sandbox: the wallet's endpoints and credentials, and the directory server of 3-D Secure, from files that
// only the gateway's user may read.

import { dirname, resolve } from 'node:path'
import { OperatorError } from '../platform/errors.ts'
import { file, filled, mapOf, type Output, object, optional, parseJson, read, text, where } from '../platform/schema.ts'
import { type ClientTls, readTlsFiles, tlsFiles } from '../platform/tls.ts'

const address = where(
  text(/^https:\/\/|^http:\/\/(127\.0\.0\.1|localhost)[:/]/, 'must be an address with https'),
  url => URL.parse(url)?.username === '' && new URL(url).password === '',
  'must be an address with https, without a user name or password',
)

const wallet = object({
  endpoint: address,
  /** Where the buyer goes, without the query. */
  checkout: address,
  tls: optional(tlsFiles),
  credentials: mapOf(
    text(/^([0-9a-f]{32}|default)$/, 'must be named by the id of a channel, or default'),
    object({ user: filled, password: filled, signature: filled }),
  ),
})
const directory = object({
  url: address,
  tls: optional(tlsFiles),
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

type Partner<Settings> = Omit<Settings, 'tls'> & { readonly tls?: ClientTls }
type Partners<Settings> = { readonly external?: Partner<Settings>; readonly live?: Partner<Settings> }
export type Wallets = Partners<Output<typeof wallet>>
export type Directories = Partners<Output<typeof directory>>

/** `source` names the file: the names of TLS files in it are relative to its folder. `strict`: nobody else may replace those. */
export const readWalletFile = (text: string, source: string, strict = false): Wallets =>
  withTls(read(walletSchema, parseJson(text, source), source), source, strict)
export const readDirectoryFile = (text: string, source: string, strict = false): Directories =>
  withTls(read(directorySchema, parseJson(text, source), source), source, strict)

type PerMode<Settings> = { readonly external?: Settings; readonly live?: Settings }

function withTls<Settings extends { readonly tls?: Output<typeof tlsFiles> }>(
  file: PerMode<Settings>,
  source: string,
  strict: boolean,
): Partners<Settings> {
  const wrong: string[] = []
  const partners = (['external', 'live'] as const).flatMap(mode => {
    const settings = file[mode]
    if (!settings) return []
    const { tls, ...rest } = settings
    const fail = (mistake: string) => wrong.push(`${source}: ${mode}.${mistake}.`)
    const own = tls && readTlsFiles(tls, dirname(resolve(source)), strict, fail)
    return [[mode, { ...rest, ...(own && { tls: own }) }] as const]
  })
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
  return Object.fromEntries(partners)
}
