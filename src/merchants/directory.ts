// Who may act for whom, held in memory: entities by id, tokens by their keyed hash. Read again whenever the database says that it changed.

import { hash } from 'node:crypto'
import type { Clock, Timer } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { ServedElsewhere } from '../platform/database/elsewhere.ts'
import { OperatorError } from '../platform/errors.ts'
import { read as readBy } from '../platform/schema.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { legacyParts } from './access/legacy.ts'
import { type Action, may } from './access/may.ts'
import { routeHash } from './access/route.ts'
import { shortTail } from './merchantTail.ts'
import {
  type ChannelSettings,
  channelSettings,
  groupSettings,
  type MerchantSettings,
  merchantSettings,
  withInherited,
} from './settings.ts'
import {
  changesChannel,
  type EntityKind,
  type EntityRow,
  isValidAt,
  joinTokens,
  noteRoute,
  readElsewhere,
  readEntities,
  readTokens,
  rehashToken,
} from './store.ts'

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
  /** Whether proxies can know it. */
  readonly hasRoute: boolean
}

type Contents = {
  readonly entities: ReadonlyMap<string, Entity>
  /** Each entity's parents, nearest first. */
  readonly parents: ReadonlyMap<string, readonly string[]>
  /** Each with all below it. */
  readonly below: ReadonlyMap<string, readonly string[]>
  /** By their keyed hash, those that were revoked among them. */
  readonly tokens: ReadonlyMap<string, Token>
  /** Valid tokens that were sent since this was read, by a plain hash. A keyed one for each request costs five times as much. */
  readonly seen: Map<string, Token>
  /** Tokens of several rows of which one is made. */
  readonly joining: Set<string>
  readonly offsets: ReadonlyMap<string, number>
  /** Merchants by what names them in the ids of checkouts. */
  readonly tails: ReadonlyMap<string, string>
  /** Merchants who are served by another cell. */
  readonly elsewhere: ReadonlySet<string>
}

export type Directory = {
  entity(id: string): Entity | undefined
  /** Finds a valid token by what the caller sent. */
  token(sent: string): Token | undefined
  /** The id of a token that was valid once, for whoever reads the traces. */
  revokedToken(sent: string): string | undefined
  may(token: Token, action: Action, entityId: string): boolean
  /** Those that are served here. */
  entities(): readonly Entity[]
  channels(): readonly Channel[]
  /** Throws ServedElsewhere for a merchant who has left this cell, or has not arrived. */
  mustServe(merchantId: string): void
  /** The channels that a token reaches, wherever they are served. */
  channelsOf(token: Token): readonly Channel[]
  merchant(id: string): Merchant | undefined
  merchantOfTail(shortTail: string): string | undefined
  /** An entity and those above it, nearest first. */
  lineage(id: string): readonly string[]
  /** Business time: real time plus the merchant's offset. */
  businessTime(merchantId: string): number
  /** Of some entities and of all below them, those that are served here. */
  below(ids: readonly string[]): readonly Entity[]
  /** Some entities and all below them but the channels: what people act for. Wherever they are served, and whether they can be. */
  ownersBelow(ids: readonly string[]): readonly string[]
  /** Ends with what stood in the database after the call, or later. Those who ask at once share a reading, and its failure. */
  reload(): Promise<void>
  close(): Promise<void>
}

const reloadSeconds = 30
const retryMilliseconds = 1000

export async function openDirectory(
  database: Database,
  keys: Keys,
  clock: Clock,
  onError: (error: Error) => void,
): Promise<Directory> {
  let contents = await read(database, onError)
  let last = Promise.resolve()
  let isWanted = false
  // One reading at a time, and at most one more that all who ask meanwhile wait for: it begins after they asked.
  const reload = () => {
    if (!isWanted) {
      isWanted = true
      last = last
        .catch(() => {})
        .then(async () => {
          isWanted = false
          contents = await read(database, onError)
        })
    }
    return last
  }
  let told: unknown
  let retry: Timer | undefined
  let isClosed = false
  const safely = () => {
    reload().catch((error: Error) => {
      if (error !== told) onError(error)
      told = error
      // Whoever said that something has changed says it once.
      if (!isClosed)
        retry ??= clock.after(retryMilliseconds, () => {
          retry = undefined
          safely()
        })
    })
  }
  const timer = clock.every(reloadSeconds * 1000, safely)
  const listening = await database.listen(changesChannel, safely)
  const mayDo = ({ entities }: Token, action: Action, id: string) =>
    may({ kind: 'token', entities }, action, [id, ...(contents.parents.get(id) ?? [])])
  const isServed = (entity: Entity) => !('merchantId' in entity && contents.elsewhere.has(entity.merchantId))
  const idsBelow = (ids: readonly string[]) =>
    ids.length === 1 ? (contents.below.get(ids[0]!) ?? []) : [...new Set(ids.flatMap(id => contents.below.get(id) ?? []))]
  const allChannels = () => [...contents.entities.values()].filter(entity => entity.kind === 'channel')
  const isValid = (token: Token) => isValidAt(token, clock.real())
  /**
   * What is found under an older key is found under the newest from then on, so that the older one can retire. Where a move brought the row of another cell, one
   * credential has a row under each key: it acts for what each says, and one that was ended ends all, until they are one row, which is made of them once.
   */
  const findHashed = (sent: string): Token | undefined => {
    const hashes = keyedHashes(keys, 'token', sent)
    const [hash, ...older] = hashes
    const [token, ...others] = hashes.flatMap(one => contents.tokens.get(one.toString('hex')) ?? [])
    if (!token) return undefined
    if (others.length > 0) {
      const rows = [token, ...others]
      if (!contents.joining.has(token.id)) {
        contents.joining.add(token.id)
        joinTokens(database.work, hashes).catch(onError)
      }
      const ends = rows.flatMap(({ revokedAt }) => revokedAt ?? [])
      const entities = [...new Set(rows.flatMap(row => row.entities))]
      return { ...token, entities, revokedAt: ends.length > 0 ? Math.min(...ends) : null }
    }
    if (isValid(token) && !contents.tokens.has(hash.toString('hex')))
      rehashToken(database.work, older, hash, keys.lookup[0]!.id).catch(onError)
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
      if (!contents.seen.has(plain)) {
        const route = routeHash(sent)
        if (token.hasRoute !== (route !== null)) noteRoute(database.work, token, route).catch(onError)
      }
      contents.seen.set(plain, token)
      return token
    },
    revokedToken(sent) {
      const token = find(sent)
      return token && !isValid(token) ? token.id : undefined
    },
    may: mayDo,
    entities: () => [...contents.entities.values()].filter(isServed),
    channels: () => allChannels().filter(isServed),
    mustServe(merchantId) {
      if (contents.elsewhere.has(merchantId)) throw new ServedElsewhere(`the merchant ${merchantId} is served elsewhere`)
    },
    channelsOf: token => allChannels().filter(({ id }) => mayDo(token, 'read', id)),
    merchant(id) {
      const entity = contents.entities.get(id)
      return entity?.kind === 'merchant' ? entity : undefined
    },
    merchantOfTail: tail => contents.tails.get(tail),
    lineage: id => [id, ...(contents.parents.get(id) ?? [])],
    below: ids =>
      idsBelow(ids).flatMap(id => {
        const entity = contents.entities.get(id)
        return entity && isServed(entity) ? [entity] : []
      }),
    ownersBelow: ids => idsBelow(ids).filter(id => contents.entities.get(id)?.kind !== 'channel'),
    businessTime: merchantId => clock.real() + (contents.offsets.get(merchantId) ?? 0),
    reload,
    async close() {
      isClosed = true
      timer.cancel()
      retry?.cancel()
      await listening.stop()
    },
  }
}

async function read(database: Database, onError: (error: Error) => void): Promise<Contents> {
  const rows = await readEntities(database.directory)
  const tokens = await readTokens(database.directory)
  const elsewhere = new Set(await readElsewhere(database.directory))
  const tree = readTree(rows, onError)
  return {
    elsewhere,
    ...tree,
    below: belowOf(tree.parents),
    seen: new Map(),
    joining: new Set(),
    tokens: new Map(
      tokens.map(({ hash, id, entities, legacy, revokedAt, routeHash }) => [
        hash.toString('hex'),
        { id, entities, legacy, revokedAt, hasRoute: routeHash !== null },
      ]),
    ),
    tails: new Map(rows.filter(row => row.kind === 'merchant').map(row => [shortTail(row.id), row.id])),
    offsets: new Map(rows.filter(row => row.kind === 'merchant').map(row => [row.id, row.clockOffset])),
  }
}

export type TreeRow = Omit<EntityRow, 'clockOffset'>

/** An entity whose settings cannot be, its own or those it inherits, is left out and told of: whoever calls for it is refused, all others go on. */
export function readTree(rows: readonly TreeRow[], onError: (error: Error) => void): Pick<Contents, 'entities' | 'parents'> {
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

function belowOf(parents: Contents['parents']): Map<string, string[]> {
  const below = new Map<string, string[]>([...parents.keys()].map(id => [id, []]))
  for (const [id, above] of parents) for (const one of [id, ...above]) below.get(one)!.push(id)
  return below
}

function entityOf({ id, kind, merchantId, name, settings }: TreeRow, above: readonly TreeRow[]): Entity {
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

function parentsOf(row: TreeRow, byId: ReadonlyMap<string, TreeRow>): string[] {
  const parents: string[] = []
  for (let id = row.parentId; id !== null && id !== undefined; id = byId.get(id)?.parentId ?? null) parents.push(id)
  return parents
}

export type { EntityKind }
