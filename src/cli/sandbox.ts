// A running sandbox as its own client sees it: over HTTP, with the credentials that the start left in sandbox.json.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../platform/errors.ts'
import { readConfig } from '../start/config.ts'
import { readSecret, refuseCommand } from './open.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of the interface, looked at field by field
export type Json = any
export type SandboxOptions = { readonly baseUrl?: string; readonly entity?: string; readonly tokenFile?: string }
export type Sandbox = { readonly entityId: string; post(path: string, fields: Readonly<Record<string, string>>): Promise<Json> }

/** Nobody answers at the gateway's address. */
export class NoGateway extends OperatorError {}

export function openSandbox({ baseUrl, entity, tokenFile }: SandboxOptions): Sandbox {
  const token = tokenFile === undefined ? undefined : readSecret(tokenFile, '--token-file')
  const found = baseUrl !== undefined && entity !== undefined && token !== undefined ? {} : readSandbox()
  const address = baseUrl ?? found.baseUrl
  const entityId = entity ?? found.entityId
  return {
    entityId,
    async post(path, fields) {
      const response = await fetch(`${address}${path}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token ?? found.accessToken}`, 'Content-Type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ entityId, ...fields }).toString(),
      }).catch(error => {
        throw new NoGateway(`No gateway answers at ${address} (${((error as Error).cause as Error)?.message}).`)
      })
      const body = (await response.json()) as Json
      if (body.id === undefined && response.status !== 200)
        return refuseCommand(`${path}: HTTP ${response.status} ${body.result?.description}`)
      return body
    },
  }
}

/** What the start of a sandbox left. */
export function readSandbox(): Json {
  const { dataDir } = readConfig(process.env, fileURLToPath(new URL('../..', import.meta.url)))
  try {
    return JSON.parse(readFileSync(join(dataDir, 'sandbox.json'), 'utf8'))
  } catch {
    return refuseCommand(
      `There is no sandbox.json in ${dataDir}: start the gateway, or give --base-url, --entity and --token-file.`,
    )
  }
}
