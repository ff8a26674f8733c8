// The shop as shoppers know it. The name of a channel is for operators, and never shown to them (decisions, 63).

import type { Directory } from './directory.ts'

export type Shop = {
  readonly name: string
  /** An https or data: address. */
  readonly logo?: string
  /** Of its buttons, #rrggbb. */
  readonly colour?: string
}

/** `merchantName`: merchant.name of the request, which goes before the settings. */
export function shopOf(
  directory: Pick<Directory, 'entity' | 'merchant'>,
  channelId: string,
  merchantName: string | undefined,
): Shop {
  const channel = directory.entity(channelId)
  if (channel?.kind !== 'channel') return { name: merchantName ?? '' }
  const { shopName, shopLogo, shopColour } = channel.settings
  return {
    name: merchantName ?? shopName ?? directory.merchant(channel.merchantId)?.name ?? '',
    ...(shopLogo !== undefined && { logo: shopLogo }),
    ...(shopColour !== undefined && { colour: shopColour }),
  }
}
