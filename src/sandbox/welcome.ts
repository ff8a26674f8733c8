// What a start prints and leaves in sandbox.json: where the gateway is, and how to make the first payment.

import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { legacyToken } from '../merchants/access/legacy.ts'
import type { Seed } from '../merchants/seed.ts'

export type Start = {
  readonly baseUrl: string
  readonly dataDir: string
  /** Whose credentials are shown. */
  readonly seed: Seed
  readonly newDatabase: boolean
  readonly milliseconds: number
  /** The demo shop's, where there is one. */
  readonly shopUrl?: string
  /** Signs the developer into the back office, once. */
  readonly officeUrl?: string
}

export function writeWelcome({ baseUrl, dataDir, seed, newDatabase, milliseconds, shopUrl, officeUrl }: Start): void {
  const sandbox = sandboxCredentials(baseUrl, seed)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const path = join(dataDir, 'sandbox.json')
  writeFileSync(`${path}.new`, `${JSON.stringify(sandbox, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
  process.stdout.write(`
Tollgate is ready (sandbox${newDatabase ? ', new database' : ''}, ${(milliseconds / 1000).toFixed(1)} s).

  Base address   ${baseUrl}
  entityId       ${sandbox.entityId}
  Access token   ${sandbox.accessToken}
  All of it      ${path}${
    shopUrl === undefined
      ? ''
      : `
  Demo shop      ${shopUrl}`
  }
  Interface      ${baseUrl}/docs/api   (every operation, to be tried)${
    officeUrl === undefined
      ? ''
      : `
  Back office    ${officeUrl}
                 (signs you in once, on this machine; bin/tollgate staff enter prints another)`
  }

Make a payment:

  ${curlLine(sandbox)}

Ctrl-C stops it.
`)
}

export type SandboxCredentials = ReturnType<typeof sandboxCredentials>

export function sandboxCredentials(baseUrl: string, seed: Seed) {
  const [merchant] = seed.divisions![0]!.merchants!
  const [strict, lenient] = merchant!.channels!
  const { userId, password } = seed.tokens![0] as { userId: string; password: string }
  return {
    baseUrl,
    entityId: strict!.id,
    lenientEntityId: lenient!.id,
    merchantId: merchant!.id,
    divisionId: seed.divisions![0]!.id,
    accessToken: legacyToken(userId, password),
    userId,
    password,
  }
}

/** One line that makes an approved payment when it is pasted into a shell. */
export function curlLine({ baseUrl, entityId, accessToken }: { baseUrl: string; entityId: string; accessToken: string }): string {
  const fields = {
    entityId,
    amount: '92.00',
    currency: 'EUR',
    paymentBrand: 'VISA',
    paymentType: 'DB',
    'card.number': '4200000000000000',
    'card.holder': 'Jane Jones',
    'card.expiryMonth': '05',
    'card.expiryYear': '2034',
    'card.cvv': '123',
  }
  const data = Object.entries(fields)
    .map(([name, value]) => `-d '${name}=${value}'`)
    .join(' ')
  return `curl ${baseUrl}/v1/payments -H 'Authorization: Bearer ${accessToken}' ${data}`
}
