// Which connector carries a payment: by the channel's mode and the request's test mode (decisions, 6).

import type { ResultName } from '../contract/results/results.ts'
import type { ChannelSettings } from '../merchants/settings.ts'
import type { Connector, Mode } from './connector.ts'

/** The connectors of this process, handed in by `main`. */
export type Connectors = ReadonlyMap<string, Connector>

/** INTERNAL on a test channel goes to the simulator; so does INTERNAL on a live channel, marked as such. */
export function modeOf(channel: Pick<ChannelSettings, 'mode'>, testMode: string | undefined): Mode | ResultName {
  if (channel.mode === 'test') return testMode === 'EXTERNAL' ? 'external' : 'internal'
  if (testMode === 'EXTERNAL') return 'testModeOnLive'
  return testMode === 'INTERNAL' ? 'internal' : 'live'
}

/** The connector for cards in a mode. */
export function cardConnector(connectors: Connectors, mode: Mode): Connector | 'processorNotConfigured' {
  return connectors.get(mode === 'internal' ? 'simulator' : `cards ${mode}`) ?? 'processorNotConfigured'
}

/** The success code of each mode. */
export const successOf: Readonly<Record<Mode, ResultName>> = {
  internal: 'succeededInTestMode',
  external: 'succeededInConnectorTestMode',
  live: 'succeeded',
}
