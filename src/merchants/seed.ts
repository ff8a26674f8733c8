// The seed file: merchants, channels, tokens and settings with given ids, so that an integration has known credentials.
// Upsert by id: it never deletes, and never revives a revoked token. docs/operating.md describes the format.

import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { record } from '../audit/chain.ts'
import type { Actor, Entry } from '../audit/entry.ts'
import { type Clock, type Random, timeOrderedId } from '../clock.ts'
import { inTransaction } from '../database/connect.ts'
import { OperatorError } from '../errors.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { legacyToken } from './directory.ts'
import { channelSettings, merchantSettings, readSettings } from './settings.ts'
import {
  announceChange,
  type EntityRow,
  readEntities,
  readTokens,
  rehashToken,
  saveEntity,
  saveToken,
  type TokenRow,
} from './store.ts'

type SeedChannel = { id: string; name: string; settings?: Record<string, unknown> }
type SeedMerchant = { id: string; name: string; settings?: Record<string, unknown>; channels?: SeedChannel[] }
type SeedDivision = { id: string; name: string; merchants?: SeedMerchant[] }
type SeedToken = { label?: string; entities: string[] } & ({ token: string } | { userId: string; password: string })
export type Seed = { psp: { id: string; name: string }; divisions?: SeedDivision[]; tokens?: SeedToken[] }

export function readSeed(path: string): Seed {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new OperatorError(`The seed file ${path} cannot be read.`)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new OperatorError(`The seed file ${path} is not JSON: ${(error as Error).message}`)
  }
}

/** Applies a seed in one transaction and says what it holds. What it made or changed is told of; a seed that changes nothing leaves no trace. */
export async function applySeed(
  pool: pg.Pool,
  keys: Keys,
  clock: Clock,
  random: Random,
  seed: Seed,
  by?: Actor,
): Promise<{ entities: number; tokens: number }> {
  const entities = entitiesOf(seed)
  const tokens = tokensOf(seed)
  return inTransaction(pool, async db => {
    const there = new Map((await readEntities(db)).map(row => [row.id, row]))
    const tokensThere = new Map((await readTokens(db)).map(row => [row.hash.toString('hex'), row]))
    const told: Entry[] = []
    for (const entity of entities) {
      const before = there.get(entity.id)
      if (before && (before.kind !== entity.kind || before.parentId !== entity.parentId)) {
        throw new OperatorError(
          `${entity.kind} ${entity.id}: the id is taken by another ${before.kind}; an entity does not move.`,
        )
      }
      await saveEntity(db, entity, clock.real())
      told.push(...toldOfEntity(before, entity))
    }
    const known = new Map([...there.values(), ...entities].map(entity => [entity.id, entity]))
    for (const { sent, legacy, label, entities: ids } of tokens) {
      for (const id of ids) if (!known.has(id)) throw new OperatorError(`token ${label}: there is no entity ${id}.`)
      const merchants = new Set(ids.map(id => known.get(id)!.merchantId))
      const merchantId = merchants.size === 1 ? [...merchants][0]! : null
      const [hash, ...older] = keyedHashes(keys, 'token', sent)
      const lookupKey = keys.lookup[0]!.id
      // A token under an older hash is the same token, and stays revoked if it was.
      if (older.length > 0) await rehashToken(db, older, hash, lookupKey)
      const before = [hash, ...older].map(one => tokensThere.get(one.toString('hex'))).find(found => found !== undefined)
      const token = {
        hash,
        lookupKey,
        id: before?.id ?? timeOrderedId(clock.real(), random),
        merchantId,
        label,
        entities: ids,
        legacy,
      }
      await saveToken(db, token, clock.real())
      told.push(...toldOfToken(before, token))
    }
    await record(db, { keys, clock, ...(by && { by }) }, told)
    await announceChange(db)
    return { entities: entities.length, tokens: tokens.length }
  })
}

/** Names of what differs, with the values before and after. */
function differences(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return Object.fromEntries(
    names
      .filter(name => !isDeepStrictEqual(before[name], after[name]))
      .map(name => [name, [before[name] ?? null, after[name] ?? null]]),
  )
}

function toldOfEntity(before: EntityRow | undefined, { id, kind, name, settings }: Omit<EntityRow, 'clockOffset'>): Entry[] {
  if (!before) return [{ action: 'entityMade', entityId: id, subject: id, details: { kind, name, settings } }]
  const details = differences({ name: before.name, ...before.settings }, { name, ...settings })
  return Object.keys(details).length === 0 ? [] : [{ action: 'entityChanged', entityId: id, subject: id, details }]
}

function toldOfToken(
  before: TokenRow | undefined,
  { id, label, entities, legacy }: Omit<TokenRow, 'createdAt' | 'revokedAt'>,
): Entry[] {
  const entityId = entities[0]
  if (!before) return [{ action: 'tokenMade', entityId, subject: id, details: { label, entities, legacy } }]
  const details =
    before.revokedAt === null ? differences({ label: before.label, entities: before.entities }, { label, entities }) : {}
  return Object.keys(details).length === 0 ? [] : [{ action: 'tokenChanged', entityId, subject: id, details }]
}

function entitiesOf(seed: Seed): Omit<EntityRow, 'clockOffset'>[] {
  const rows: Omit<EntityRow, 'clockOffset'>[] = []
  const add = (kind: EntityRow['kind'], one: SeedChannel, parentId: string | null, merchantId: string | null) => {
    if (!/^[0-9a-f]{32}$/.test(String(one?.id)))
      throw new OperatorError(`${kind} ${one?.id}: id must be 32 lower-case hex characters.`)
    if (typeof one.name !== 'string' || one.name === '') throw new OperatorError(`${kind} ${one.id}: name is required.`)
    if (rows.some(row => row.id === one.id)) throw new OperatorError(`${kind} ${one.id}: the id stands twice in the file.`)
    const settings = one.settings ?? {}
    if (kind === 'channel') readSettings(channelSettings, settings, `channel ${one.id}`)
    if (kind === 'merchant') readSettings(merchantSettings, settings, `merchant ${one.id}`)
    rows.push({ id: one.id, kind, parentId, merchantId, name: one.name, settings })
  }
  add('psp', seed.psp, null, null)
  for (const division of seed.divisions ?? []) {
    add('division', division, seed.psp.id, null)
    for (const merchant of division.merchants ?? []) {
      add('merchant', merchant, division.id, merchant.id)
      for (const channel of merchant.channels ?? []) add('channel', channel, merchant.id, merchant.id)
    }
  }
  return rows
}

function tokensOf(seed: Seed): { sent: string; legacy: boolean; label: string; entities: string[] }[] {
  return (seed.tokens ?? []).map((token, at) => {
    const label = token.label ?? `token ${at + 1}`
    if (!Array.isArray(token.entities) || token.entities.length === 0)
      throw new OperatorError(`token ${label}: entities must name at least one entity.`)
    if ('token' in token) {
      if (typeof token.token !== 'string' || token.token.length < 16)
        throw new OperatorError(`token ${label}: token must have at least 16 characters.`)
      return { sent: token.token, legacy: false, label, entities: token.entities }
    }
    if (typeof token.userId !== 'string' || typeof token.password !== 'string' || token.password.length < 8) {
      throw new OperatorError(`token ${label}: give a token, or userId and a password of at least 8 characters.`)
    }
    return { sent: legacyToken(token.userId, token.password), legacy: true, label, entities: token.entities }
  })
}
