// The seed file: merchants, channels, tokens and settings with given ids, so that an integration has known credentials.
// Upsert by id: it never deletes, and never revives a revoked token. docs/operating.md describes the format.

import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { record } from '../audit/chain.ts'
import type { Actor, AuditEntry } from '../audit/entry.ts'
import { type Clock, type Random, timeOrderedId } from '../platform/clock.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { isElsewhere, ServedElsewhere } from '../platform/database/elsewhere.ts'
import { type InstallationMode, readMode } from '../platform/database/installation.ts'
import { OperatorError } from '../platform/errors.ts'
import { whoGetsAt } from '../platform/files.ts'
import {
  file,
  filled,
  filledListOf,
  type Input,
  id,
  line,
  listOf,
  mistakeText,
  object,
  optional,
  readJsonFile,
  text,
  where,
  written,
} from '../platform/schema.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { legacyParts, legacyToken } from './access/legacy.ts'
import { routeHash } from './access/route.ts'
import { bitsOfChance, tokenBits } from './access/secretStrength.ts'
import { type ChannelRefusal, newlyRefused } from './refusals.ts'
import { entityName, settingsFor, standardBrandNames, unnumbered, type WrittenSettings } from './settings.ts'
import {
  announceChange,
  type EntityRow,
  findValidTokens,
  joinTokens,
  lockTree,
  readElsewhere,
  readEntities,
  readTokens,
  rehashToken,
  saveEntity,
  saveToken,
  type TokenRow,
} from './store.ts'

/** The sandbox's credentials are printed in the documentation: live mode must not know them, whoever put them there. */
export const sandboxSeed = fileURLToPath(new URL('../../seeds/sandbox.json', import.meta.url))

/** Of a password a few guesses a minute are taken (docs/operating.md). */
const bitsInLive = { token: tokenBits, password: 64 } as const

/** A token that is made of a user id and a password is as strong as that password. */
function isWeak(name: keyof typeof bitsInLive, secret: string): boolean {
  const parts = name === 'token' ? legacyParts(secret) : undefined
  return parts ? isWeak('password', parts.password) : bitsOfChance(secret) < bitsInLive[name]
}

function tokenSchema(live: boolean) {
  const secret = (name: keyof typeof bitsInLive, least: number) =>
    where(
      text(new RegExp(`^.{${least},}$`, 'su'), `must have at least ${least} characters`),
      secret => !live || !isWeak(name, secret),
      `is too weak for live mode: it must hold ${bitsInLive[name]} bits of chance (openssl rand -hex 16)`,
    )
  return where(
    object({
      label: optional(unnumbered(line)),
      entities: filledListOf(id),
      token: optional(secret('token', 16)),
      userId: optional(filled),
      password: optional(secret('password', 8)),
    }),
    ({ token, userId, password }) => {
      const legacy = [userId, password].filter(part => part !== undefined).length
      return token === undefined ? legacy === 2 : legacy === 0
    },
    'needs either token, or userId and password',
  )
}

/** For an installation that knows these brands. Live mode takes no weak secrets, the sandbox's public ones among them. */
export function seedSchema(brands: ReadonlySet<string> = standardBrandNames, mode: InstallationMode = 'sandbox') {
  const settings = settingsFor(brands)
  const channel = object({ id, name: entityName, settings: optional(settings.channel) })
  const merchant = object({ id, name: entityName, settings: optional(settings.merchant), channels: optional(listOf(channel)) })
  const division = object({ id, name: entityName, settings: optional(settings.group), merchants: optional(listOf(merchant)) })
  return file({
    psp: object({ id, name: entityName, settings: optional(settings.group) }),
    divisions: optional(listOf(division)),
    tokens: optional(listOf(tokenSchema(mode === 'live'))),
  })
}

export type Seed = Input<ReturnType<typeof seedSchema>>
export type SeedToken = NonNullable<Seed['tokens']>[number]

/** Throws an OperatorError with all that is wrong in the file. */
export function readSeed(path: string, brands?: ReadonlySet<string>, mode?: InstallationMode): Seed {
  const source = `The seed file ${path}`
  const who = mode === 'live' ? whoGetsAt(path) : undefined
  if (who !== undefined) throw new OperatorError(`MODE=live: ${source} is one that ${who}.`)
  return written(seedSchema(brands, mode), readJsonFile(path, source), source)
}

/** What a caller sends for a token. */
export const sentFor = ({ token, userId, password }: Pick<SeedToken, 'token' | 'userId' | 'password'>): string =>
  token ?? legacyToken(userId!, password!)

/** Ids of the tokens in a database that are valid and known to everybody. */
export const findPublicTokens = (db: Connection, keys: Keys, now: number): Promise<string[]> =>
  findValidTokens(
    db,
    (readSeed(sandboxSeed).tokens ?? []).flatMap(token => keyedHashes(keys, 'token', sentFor(token))),
    now,
  )

/** How many entities and valid tokens of the seed are in place, which of its tokens are revoked and stay so, and which merchants were left out. */
export type SeedResult = {
  readonly entities: number
  readonly tokens: number
  readonly revoked: readonly string[]
  readonly left: readonly string[]
}

export const appliedText = (applied: SeedResult): string =>
  [`${applied.entities} entities and ${applied.tokens} tokens are in place.`, ...keptTexts(applied)].join('\n')

/** What of a seed was not applied, a sentence each. */
export const keptTexts = ({ revoked, left }: SeedResult, file?: string): string[] => {
  const of = file === undefined ? '' : ` of ${file}`
  return [
    ...revoked.map(label => `The token ${label}${of} is revoked and stays so.`),
    ...(left.length > 0 ? [`Merchants${of} who are not served here were left out: ${left.join(', ')}.`] : []),
  ]
}

export type SeedOptions = {
  readonly by?: Actor
  readonly refusal?: ChannelRefusal
  /** Ids of entities of other cells, for which its tokens may act too. */
  readonly elsewhere?: ReadonlySet<string>
}

/**
 * Applies a seed in one transaction, but for merchants who are not served here. What cannot be is named, all of it, and nothing is changed then. What it made or
 * changed is told of in the audit; a seed that changes nothing leaves no trace.
 */
export async function applySeed(
  pool: pg.Pool,
  keys: Keys,
  clock: Clock,
  random: Random,
  seed: Seed,
  { by, refusal = () => undefined, elsewhere = new Set() }: SeedOptions = {},
): Promise<SeedResult> {
  const lookupKey = keys.lookup[0]!.id
  return inTransaction(pool, async db => {
    await lockTree(db)
    const away = new Set(await readElsewhere(db))
    const all = entitiesOf(seed)
    const gone = all.filter(({ merchantId }) => merchantId !== null && away.has(merchantId))
    const rows = await readEntities(db)
    // Also whom the seed names by a token alone.
    const left = rows.filter(({ merchantId }) => merchantId !== null && away.has(merchantId))
    const others = new Set([...elsewhere, ...away, ...gone.map(({ id }) => id), ...left.map(({ id }) => id)])
    const ownersOfTokens = new Map((await readTokens(db)).map(({ hash, merchantId }) => [hash.toString('hex'), merchantId]))
    /** Undefined of one that does not stand here, null of one that acts for several. */
    const ownerOf = (token: SeedToken) =>
      keyedHashes(keys, 'token', sentFor(token))
        .map(hash => ownersOfTokens.get(hash.toString('hex')))
        .find(owner => owner !== undefined)
    const isAway = (owner: string | null | undefined) => typeof owner === 'string' && away.has(owner)
    const isHere = (id: string) => !others.has(id)
    // What stands here of a merchant who has left stands as it was handed over.
    const goes = (token: SeedToken) => !isAway(ownerOf(token)) && (token.entities.some(isHere) || ownerOf(token) !== undefined)
    const { tokens: given, ...here } = seedWhere(seed, isHere, goes)
    const handedOver = (seed.tokens ?? []).flatMap(token =>
      isAway(ownerOf(token)) && token.entities.some(isHere) ? [ownerOf(token)!] : [],
    )
    const entities = entitiesOf(here)
    const tokens = given.map(({ label, entities, ...token }) => {
      const sent = sentFor(token)
      const [hash, ...older] = keyedHashes(keys, 'token', sent)
      const legacy = legacyParts(sent) !== undefined
      return { label, hash, older, lookupKey, routeHash: routeHash(sent), legacy, entities }
    })
    for (const { hash, older } of tokens) if (older.length > 0) await joinTokens(db, [hash, ...older])
    const there = new Map(rows.map(row => [row.id, row]))
    const known = new Map([...there, ...entities.map(entity => [entity.id, entity] as const)])
    const tokensThere = new Map((await readTokens(db)).map(token => [token.hash.toString('hex'), token]))
    // A token under an older hash is the same token, and stays revoked if it was.
    const standing = ({ hash, older }: (typeof tokens)[number]): TokenRow | undefined =>
      [hash, ...older].map(one => tokensThere.get(one.toString('hex'))).find(found => found !== undefined)
    const wrong = [
      ...doubledIds(all),
      ...twice(tokens.map(({ hash }) => hash.toString('hex'))).map(
        hash => `token ${tokens.find(one => one.hash.toString('hex') === hash)!.label}: it stands twice in the file.`,
      ),
      ...takenIds(entities, there),
      ...severalPsps([...known.values()]),
      ...tokens.flatMap(token => {
        const { label, entities } = token
        const strangers = entities
          .filter(id => !known.has(id) && !others.has(id))
          .map(id => `token ${label}: there is no entity ${id}.`)
        const acted = standing(token)?.entities ?? []
        const before = acted.length > 0 ? acted : entities // one from which a move took all acts for nobody
        // Of one that is elsewhere that cell says whose it is.
        const isOurs = (id: string) => !known.has(id) || before.some(other => isRelated(id, other, known))
        if (strangers.length > 0 || entities.some(isOurs)) return strangers
        return [`token ${label}: it acts for ${before.join(', ')}; a token does not move to another merchant.`]
      }),
    ]
    if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
    const refused = newlyRefused([...there.values()], [...known.values()], refusal)
    if (refused.length > 0)
      throw new OperatorError(
        refused.map(({ entity: { kind, id, name }, mistake }) => `${kind} ${id} (${name}): ${mistakeText(mistake)}`).join('\n'),
      )
    const told: AuditEntry[] = []
    for (const entity of entities) {
      await saveEntity(db, entity, clock.real())
      told.push(...toldOfEntity(there.get(entity.id), entity))
    }
    for (const token of tokens) {
      const merchants = new Set(token.entities.map(id => known.get(id)?.merchantId ?? null))
      const [owner = null, ...more] = merchants
      const merchantId = more.length > 0 || isAway(owner) ? null : owner
      const before = standing(token)
      if (token.older.length > 0) await rehashToken(db, token.older, token.hash, lookupKey)
      const row = { ...token, id: before?.id ?? timeOrderedId(clock.real(), random), merchantId }
      await saveToken(db, row, clock.real())
      told.push(...toldOfToken(before, row))
    }
    if ((await readMode(db)) === 'live' && (await findPublicTokens(db, keys, clock.real())).length > 0)
      throw new OperatorError('The public access token of the sandbox is refused by live mode.')
    await record(db, { keys, clock, ...(by && { by }) }, told)
    await announceChange(db)
    const revoked = tokens.filter(token => (standing(token)?.revokedAt ?? null) !== null)
    return {
      entities: entities.length,
      tokens: tokens.length - revoked.length,
      revoked: revoked.map(({ label }) => label),
      left: [...gone, ...left.filter(({ id }) => handedOver.includes(id))].flatMap(({ kind, id, name }) =>
        kind === 'merchant' ? [`${id} (${name})`] : [],
      ),
    }
  }).catch(error => {
    throw isElsewhere(error)
      ? new ServedElsewhere('A merchant of the seed moves at this moment: give it again. Nothing was changed.')
      : error
  })
}

/**
 * What of a seed goes where these merchants and channels are. A token stands there with all that it acts for, its own first: a gateway must know that one channel of
 * its cell is not the only one that can be meant. Its name is the same everywhere. One that is known there goes there too, whatever it acts for: it may act for less now.
 */
export function seedWhere(seed: Seed, isHere: (id: string) => boolean, goes: (token: SeedToken) => boolean) {
  return {
    ...seed,
    divisions: (seed.divisions ?? []).map(({ merchants = [], ...division }) => ({
      ...division,
      merchants: merchants.filter(({ id }) => isHere(id)),
    })),
    tokens: (seed.tokens ?? [])
      .map((token, at) => ({ ...token, label: token.label ?? `token ${at + 1}` }))
      .filter(goes)
      .map(token => ({ ...token, entities: [...token.entities].sort((a, b) => Number(isHere(b)) - Number(isHere(a))) })),
  }
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

/** What the audit is told of a change. */
export function toldOfEntity(
  before: EntityRow | undefined,
  { id, kind, name, settings }: Omit<EntityRow, 'clockOffset'>,
): AuditEntry[] {
  if (!before) return [{ action: 'entityMade', entityId: id, subject: id, details: { kind, name, settings } }]
  const details = differences({ name: before.name, ...before.settings }, { name, ...settings })
  return Object.keys(details).length === 0 ? [] : [{ action: 'entityChanged', entityId: id, subject: id, details }]
}

function toldOfToken(
  before: TokenRow | undefined,
  { id, label, entities, legacy }: Omit<TokenRow, 'createdAt' | 'revokedAt'>,
): AuditEntry[] {
  const entityId = entities[0]
  if (!before) return [{ action: 'tokenMade', entityId, subject: id, details: { label, entities, legacy } }]
  const details =
    before.revokedAt === null ? differences({ label: before.label, entities: before.entities }, { label, entities }) : {}
  return Object.keys(details).length === 0 ? [] : [{ action: 'tokenChanged', entityId, subject: id, details }]
}

type SeedEntity = Omit<EntityRow, 'clockOffset'>

export function entitiesOf({ psp, divisions = [] }: Seed): SeedEntity[] {
  type Given = { readonly id: string; readonly name: string; readonly settings?: WrittenSettings }
  const entity = (kind: EntityRow['kind'], given: Given, parentId: string | null, merchantId: string | null): SeedEntity => {
    const { id, name, settings = {} } = given
    return { id, kind, parentId, merchantId, name, settings }
  }
  return [
    entity('psp', psp, null, null),
    ...divisions.flatMap(division => [
      entity('division', division, psp.id, null),
      ...(division.merchants ?? []).flatMap(merchant => [
        entity('merchant', merchant, division.id, merchant.id),
        ...(merchant.channels ?? []).map(channel => entity('channel', channel, merchant.id, merchant.id)),
      ]),
    ]),
  ]
}

const twice = (words: readonly string[]): string[] => [...new Set(words.filter((word, at) => words.indexOf(word) !== at))]

/** Ids that stand more than once in a seed, a sentence each. */
export const doubledIds = (entities: readonly SeedEntity[]): string[] =>
  twice(entities.map(({ id }) => id)).map(
    id => `${entities.find(one => one.id === id)!.kind} ${id}: the id stands twice in the file.`,
  )

/** A sentence when there is more than one: whoever acts for a PSP sees what belongs to no merchant, and an installation does not say to which PSP that would. */
export function severalPsps(entities: readonly Pick<SeedEntity, 'id' | 'kind' | 'name'>[]): string[] {
  const psps = entities.filter(({ kind }) => kind === 'psp')
  return psps.length < 2
    ? []
    : [`An installation has one PSP, not ${psps.map(({ id, name }) => `${id} (${name})`).join(' and ')}.`]
}

/** Ids that are those of others, a sentence each. `there`: what an installation has, by its id. */
export const takenIds = (entities: readonly SeedEntity[], there: ReadonlyMap<string, EntityRow>): string[] =>
  entities.flatMap(({ id, kind, parentId }) => {
    const before = there.get(id)
    if (!before || (before.kind === kind && before.parentId === parentId)) return []
    return [`${kind} ${id}: the id is taken by another ${before.kind}; an entity does not move.`]
  })

/** The same entity, or one above the other. */
function isRelated(one: string, other: string, known: ReadonlyMap<string, SeedEntity>): boolean {
  const isAbove = (above: string, below: string): boolean => {
    const seen = new Set<string>() // ids that stand twice may go in a circle
    for (let at: string | null = below; at !== null && !seen.has(at); at = known.get(at)?.parentId ?? null) {
      if (at === above) return true
      seen.add(at)
    }
    return false
  }
  return isAbove(one, other) || isAbove(other, one)
}
