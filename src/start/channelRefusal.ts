// Channels that an installation does not serve: for its start, its forms and its seeds alike.

import type { ChannelRefusal } from '../merchants/refusals.ts'
import type { Config } from './config.ts'

/** A live channel that always authenticates cardholders needs somebody to ask, or its payments go through without, or not at all. */
export const channelRefusal =
  ({ mode: processMode, directories }: Pick<Config, 'mode' | 'directories'>): ChannelRefusal =>
  ({ mode, threeDSecure }) =>
    processMode === 'live' && mode === 'live' && threeDSecure === 'always' && !directories.live
      ? 'threeDSecure is always, but THREE_D_SECURE_FILE names no directory server for live'
      : undefined
