// Who may act for whom, held in memory: entities by id, tokens by their keyed hash. Read again whenever the database says that it changed.

import { hash } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import { read as readBy } from '../platform/schema.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { legacyParts } from './access/legacy.ts'
import { type Action, may } from './access/may.ts'
import { shortTail } from './merchantTail.ts'
import {
  type ChannelSettings,
  channelSettings,
  groupSettings,
  type MerchantSettings,
  merchantSettings,
  withInherited,
} from './settings.ts'
import { changesChannel, type EntityKind, type EntityRow, isValidAt, readEntities, readTokens, rehashToken } from './store.ts'

export type Channel = {
  readonly kind: 'channel'
  readonly id: string
  readonly merchantId: string
  readonly name: string
  readonly settings: ChannelSettings
}
export type Merchant = {
  readonly kind: 'merchant'
  readonly id: string
  readonly merchantId: string
  readonly name: string
  readonly settings: MerchantSettings
}
export type EntityGroup = {
  readonly kind: 'psp' | 'division'
  readonly id: string
  readonly name: string
  /** What the channels below have where they set nothing themselves. */
  readonly channelDefaults: ChannelSettings
}
export type Entity = Channel | Merchant | EntityGroup

export type Token = {
  readonly id: string
  readonly entities: readonly string[]
  readonly legacy: boolean
  /** Real time from which on it is valid no more; null = it is valid until it is revoked. */
  readonly revokedAt: number | null
}

type Contents = {
  readonly entities: ReadonlyMap<string, Entity>
  /** Each entity's parents, nearest first. */
  readonly parents: ReadonlyMap<string, readonly string[]>
  /** By their keyed hash, those that were revoked among them. */
  readonly tokens: ReadonlyMap<string, Token>
  /** Valid tokens that were sent since this was read, by a plain hash. A keyed one for each request costs five times as much. */
  readonly seen: Map<string, Token>
  readonly offsets: ReadonlyMap<string, number>
  /** Merchants by what names them in the ids of checkouts. */
  readonly tails: ReadonlyMap<string, string>
}

export type Directory = {
  entity(id: string): Entity | undefined
  /** Finds a valid token by what the caller sent. */
  token(sent: string): Token | undefined
  /** The id of a token that was valid once, for whoever reads the traces. */
  revokedToken(sent: string): string | undefined
  may(token: Token, action: Action, entityId: string): boolean
  entities(): readonly Entity[]
  channels(): readonly Channel[]
  /** The channels that a token reaches. */
  channelsOf(token: Token): readonly Channel[]
  merchant(id: string): Merchant | undefined
  merchantOfTail(shortTail: string): string | undefined
  /** An entity and those above it, nearest first. */
  lineage(id: string): readonly string[]
  /** Business time: real time plus the merchant's offset. */
  businessTime(merchantId: string): number
  reload(): Promise<void>
  close(): Promise<void>
}

const reloadSeconds = 30

export async function openDirectory(
  database: Database,
  keys: Keys,
  clock: Clock,
  onError: (error: Error) => void,
): Promise<Directory> {
  let contents = await read(database, onError)
  const reload = async () => {
    contents = await read(database, onError)
  }
  const safely = () => {
    reload().catch(onError)
  }
  const timer = clock.every(reloadSeconds * 1000, safely)
  const listening = await database.listen(changesChannel, safely)
  const mayDo = ({ entities }: Token, action: Action, id: string) =>
    may({ kind: 'token', entities }, action, [id, ...(contents.parents.get(id) ?? [])])
  const channels = () => [...contents.entities.values()].filter(entity => entity.kind === 'channel')
  const isValid = (token: Token) => isValidAt(token, clock.real())
  // What is found under an older key is found under the newest from then on, so that the older one can retire.
  const findHashed = (sent: string): Token | undefined => {
    const [hash, ...older] = keyedHashes(keys, 'token', sent)
    const known = contents.tokens.get(hash.toString('hex'))
    if (known) return known
    const token = older.map(one => contents.tokens.get(one.toString('hex'))).find(found => found !== undefined)
    if (token && isValid(token)) rehashToken(database.work, older, hash, keys.lookup[0]!.id).catch(onError)
    return token
  }
  const find = (sent: string): Token | undefined => {
    const token = findHashed(sent)
    return token && legacyParts(sent) ? { ...token, legacy: true } : token
  }
  return {
    entity: id => contents.entities.get(id),
    token(sent) {
      const plain = hash('sha256', sent)
      const token = contents.seen.get(plain) ?? find(sent)
      if (!token || !isValid(token)) return undefined
      contents.seen.set(plain, token)
      return token
    },
    revokedToken(sent) {
      const token = find(sent)
      return token && !isValid(token) ? token.id : undefined
    },
    may: mayDo,
    entities: () => [...contents.entities.values()],
    channels,
    channelsOf: token => channels().filter(({ id }) => mayDo(token, 'read', id)),
    merchant(id) {
      const entity = contents.entities.get(id)
      return entity?.kind === 'merchant' ? entity : undefined
    },
    merchantOfTail: tail => contents.tails.get(tail),
    lineage: id => [id, ...(contents.parents.get(id) ?? [])],
    businessTime: merchantId => clock.real() + (contents.offsets.get(merchantId) ?? 0),
    reload,
    async close() {
      timer.cancel()
      await listening.stop()
    },
  }
}

async function read(database: Database, onError: (error: Error) => void): Promise<Contents> {
  const rows = await readEntities(database.work)
  const tokens = await readTokens(database.work)
  return {
    ...readTree(rows, onError),
    seen: new Map(),
    tokens: new Map(
      tokens.map(({ hash, id, entities, legacy, revokedAt }) => [hash.toString('hex'), { id, entities, legacy, revokedAt }]),
    ),
    tails: new Map(rows.filter(row => row.kind === 'merchant').map(row => [shortTail(row.id), row.id])),
    offsets: new Map(rows.filter(row => row.kind === 'merchant').map(row => [row.id, row.clockOffset])),
  }
}

/** An entity whose settings cannot be, its own or those it inherits, is left out and told of: whoever calls for it is refused, all others go on. */
export function readTree(rows: readonly EntityRow[], onError: (error: Error) => void): Pick<Contents, 'entities' | 'parents'> {
  const byId = new Map(rows.map(row => [row.id, row]))
  const parents = new Map(rows.map(row => [row.id, parentsOf(row, byId)]))
  const entities = new Map<string, Entity>()
  for (const row of rows) {
    const above = parents.get(row.id)!.map(id => byId.get(id)!)
    try {
      entities.set(row.id, entityOf(row, above))
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      onError(error)
    }
  }
  return { entities, parents }
}

function entityOf({ id, kind, merchantId, name, settings }: EntityRow, above: readonly EntityRow[]): Entity {
  const owner = `${kind} ${id}`
  const groups = above.filter(({ kind }) => kind === 'psp' || kind === 'division').map(({ settings }) => settings)
  if (kind === 'channel') {
    const effective = withInherited(channelSettings, groups.reverse(), settings)
    return { kind, id, merchantId: merchantId!, name, settings: readBy(channelSettings, effective, owner) }
  }
  if (kind === 'merchant') {
    const effective = withInherited(merchantSettings, groups.reverse(), settings)
    return { kind, id, merchantId: id, name, settings: readBy(merchantSettings, effective, owner) }
  }
  readBy(groupSettings, settings, owner)
  const effective = withInherited(channelSettings, [...groups.reverse(), settings], {})
  return { kind, id, name, channelDefaults: readBy(channelSettings, effective, owner) }
}

function parentsOf(row: EntityRow, byId: ReadonlyMap<string, EntityRow>): string[] {
  const parents: string[] = []
  for (let id = row.parentId; id !== null && id !== undefined; id = byId.get(id)?.parentId ?? null) parents.push(id)
  return parents
}

export type { EntityKind }
