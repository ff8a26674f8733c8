// An acquirer's host in this process for tests, and the file that makes a gateway use it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exampleDialect } from '../../src/connectors/cards/iso8583/dialects.ts'
import { type Host, type HostOptions, startHost } from '../../src/sandbox/acquirerHost/host.ts'
import { type Ledger, openLedger } from '../../src/sandbox/acquirerHost/ledger.ts'

export type TestHost = Host & { readonly ledger: Ledger }

export async function testHost(options: Partial<HostOptions> = {}): Promise<TestHost> {
  const ledger = options.ledger ?? openLedger(undefined)
  const host = await startHost({
    dialect: exampleDialect('1987'),
    ledger,
    host: '127.0.0.1',
    port: 0,
    delay: 0,
    slowMilliseconds: 300,
    lateMilliseconds: 1500,
    say: () => {},
    ...options,
  })
  return { ...host, ledger }
}

export type AcquirersFile = { readonly path: string; remove(): void }

/** ACQUIRERS_FILE with one acquirer for each name and its ports. */
export function acquirersFile(ports: Readonly<Record<string, readonly number[]>>, more: object = {}): AcquirersFile {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-acquirers-'))
  const path = join(folder, 'acquirers.json')
  const acquirers = Object.entries(ports).map(([name, list], at) => ({
    name,
    institute: `Bank ${name}`,
    modes: ['external', 'live'],
    lines: list.map(port => ({ host: '127.0.0.1', port })),
    acquirerId: `42393${at}`,
    merchantId: `MERCHANT-${name}`.slice(0, 15),
    terminals: [`TERM${at}001`, `TERM${at}002`, `TERM${at}003`],
    ...more,
  }))
  writeFileSync(path, JSON.stringify({ acquirers }))
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
