// Who stands on the other side outside the sandbox: the wallet's endpoints and credentials, and the directory server of 3-D Secure, from files that
// only the gateway's user may read.

import { OperatorError } from '../errors.ts'
import type { Mode } from './connector.ts'
import type { Requestor } from './threeDSecure/build.ts'
import type { WalletSettings } from './wallet/paypal.ts'

export type DirectorySettings = { readonly url: string; readonly requestor: Requestor }
export type Partners<Settings> = Readonly<Partial<Record<Exclude<Mode, 'internal'>, Settings>>>

export const readWalletFile = (text: string, source: string): Partners<WalletSettings> =>
  read(text, source, settings => {
    const { endpoint, checkout, credentials } = settings as Partial<WalletSettings>
    const complete = Object.values(credentials ?? {}).every(
      one => isText(one?.user) && isText(one?.password) && isText(one?.signature),
    )
    return isSecure(endpoint) && isSecure(checkout) && credentials !== undefined && complete
      ? undefined
      : 'needs endpoint and checkout (https) and credentials {<channel id> or default: {user, password, signature}}'
  })

const requestorNames: readonly (keyof Requestor)[] = [
  'id',
  'name',
  'url',
  'referenceNumber',
  'acquirerBin',
  'acquirerMerchantId',
  'merchantCountryCode',
  'mcc',
]

export const readDirectoryFile = (text: string, source: string): Partners<DirectorySettings> =>
  read(text, source, settings => {
    const { url, requestor } = settings as Partial<DirectorySettings>
    return isSecure(url) && requestorNames.every(name => isText(requestor?.[name]))
      ? undefined
      : `needs url (https) and requestor {${requestorNames.join(', ')}}`
  })

function read<Settings>(text: string, source: string, wrong: (settings: object) => string | undefined): Partners<Settings> {
  let given: Record<string, unknown>
  try {
    given = JSON.parse(text)
  } catch {
    throw new OperatorError(`${source} is not JSON.`)
  }
  for (const [mode, settings] of Object.entries(given)) {
    if (mode !== 'external' && mode !== 'live') throw new OperatorError(`${source}: ${mode} must be external or live.`)
    const rule = typeof settings === 'object' && settings !== null ? wrong(settings) : 'must be a map'
    if (rule) throw new OperatorError(`${source}: ${mode} ${rule}.`)
  }
  return given as Partners<Settings>
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isSecure = (value: unknown): boolean =>
  typeof value === 'string' && URL.canParse(value) && /^https:|^http:\/\/(127\.0\.0\.1|localhost)[:/]/.test(value)
