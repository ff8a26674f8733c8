// What is well formed and would not work all the same: a channel that no process would serve, a rule that leads to the channel of somebody else.

import type { Mistake } from '../platform/schema.ts'
import { type Channel, type Entity, type Merchant, readTree, type TreeRow } from './directory.ts'
import type { ChannelSettings } from './settings.ts'

/** Why this process, or another at its next start, would not serve a channel with such settings. */
export type ChannelRefusal = (settings: ChannelSettings) => string | undefined

type RefusedEntity = { readonly entity: Channel | Merchant; readonly mistake: Mistake }

/** What a change would bring, with the place in the settings. Rows: whatever inherits from what is changed, the channels of such merchants, and all above. */
export function newlyRefused(before: readonly TreeRow[], after: readonly TreeRow[], refusal: ChannelRefusal): RefusedEntity[] {
  const would = refusedIn(after, refusal)
  if (would.length === 0) return []
  const known = new Set(refusedIn(before, refusal).map(textOf))
  return would.filter(one => !known.has(textOf(one)))
}

const textOf = ({ entity, mistake }: RefusedEntity): string => JSON.stringify([entity.id, mistake])

function refusedIn(rows: readonly TreeRow[], refusal: ChannelRefusal): RefusedEntity[] {
  const { entities } = readTree(rows, () => {})
  return [...entities.values()].flatMap((entity): RefusedEntity[] => {
    if (entity.kind === 'merchant') return strangersIn(entity, entities).map(mistake => ({ entity, mistake }))
    const why = entity.kind === 'channel' ? refusal(entity.settings) : undefined
    return entity.kind !== 'channel' || why === undefined ? [] : [{ entity, mistake: { path: [], rule: why } }]
  })
}

/** The channels among these rows that a process would not serve. Rows: whatever they inherit from is among them. */
export const channelsRefusedIn = (
  rows: readonly TreeRow[],
  refusal: ChannelRefusal,
): { readonly id: string; readonly name: string; readonly why: string }[] =>
  refusedIn(rows, refusal).flatMap(({ entity: { kind, id, name }, mistake }) =>
    kind === 'channel' ? [{ id, name, why: mistake.rule }] : [],
  )

const strangersIn = ({ id, settings }: Merchant, entities: ReadonlyMap<string, Entity>): Mistake[] =>
  settings.channelDispatching.flatMap(({ channel }, at) => {
    const found = entities.get(channel)
    if (found?.kind === 'channel' && found.merchantId === id) return []
    return [{ path: ['channelDispatching', at, 'channel'], rule: 'must be a channel of this merchant' }]
  })
