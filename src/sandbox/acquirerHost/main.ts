// Runs the acquirer host as a process of its own. As a child (`child`) it says its port on stdout and ends when its stdin closes.

import { type Dialect, exampleDialect } from '../../connectors/cards/iso8583/dialects.ts'
import { systemClock } from '../../platform/clock.ts'
import { refuseInspector } from '../../platform/errors.ts'
import { type HostOptions, startHost } from './host.ts'
import { openLedger } from './ledger.ts'

export type HostArguments = {
  readonly port: number
  readonly host: string
  readonly dialect: Dialect
  readonly macKey?: Buffer
  readonly ledger?: string
  readonly delay: number
  readonly child: boolean
  readonly faults?: HostOptions['faults']
  readonly hostile?: boolean
  readonly settlementFault?: HostOptions['settlementFault']
}

export async function runHost({
  port,
  host,
  dialect,
  macKey,
  ledger,
  delay,
  child,
  faults,
  hostile = false,
  settlementFault,
}: HostArguments): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}) // nobody need read what it says
  const running = await startHost({
    dialect,
    ...(macKey && { macKey }),
    ledger: openLedger(ledger),
    host,
    port,
    delay,
    slowMilliseconds: 3000,
    lateMilliseconds: 30_000,
    ...(faults && { faults }),
    hostile,
    ...(settlementFault && { settlementFault }),
    say: text => void process.stderr.write(`${text}\n`),
  })
  process.stdout.write(
    child ? `${JSON.stringify({ port: running.port })}\n` : `The acquirer host listens on ${host}:${running.port}.\n`,
  )
  await new Promise<void>(resolve => {
    if (child)
      process.stdin
        .resume()
        .once('end', resolve)
        .once('close', resolve)
        .once('error', () => resolve())
    // A child is ended by its parent: Ctrl-C in the terminal reaches both, and the parent still has reversals to send.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => !child && resolve())
  })
  await Promise.race([running.stop(), systemClock.sleep(1000)])
  process.exit(0)
}

if (import.meta.main) {
  refuseInspector()
  const given = new Map(process.argv.slice(2).map(argument => argument.split('=') as [string, string]))
  const ledger = given.get('ledger')
  await runHost({
    port: Number(given.get('port') ?? 0),
    host: given.get('host') ?? '127.0.0.1',
    dialect: exampleDialect('1987'),
    delay: Number(given.get('delay') ?? 0),
    child: given.has('child'),
    ...(ledger !== undefined && { ledger }),
  })
}
