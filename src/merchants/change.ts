// Entities by hand: their names and settings changed, new ones made, by the same rules as a seed file has.

import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { type Recorder, record } from '../audit/chain.ts'
import { type Random, timeOrderedId } from '../platform/clock.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { type Mistake, mistakesIn, mistakeText, object } from '../platform/schema.ts'
import { type ChannelRefusal, newlyRefused } from './refusals.ts'
import { toldOfEntity } from './seed.ts'
import { entityName, ofOperator, settingsFor } from './settings.ts'
import { announceChange, type EntityKind, type EntityRow, lockTree, readBelow, readLineage, saveEntity } from './store.ts'

/** As somebody wrote it, not yet checked. */
export type WrittenEntity = { readonly name: string; readonly settings: unknown }

export const settingsText = ({ settings }: Pick<EntityRow, 'settings'>): string => JSON.stringify(settings, null, 2)

/** The schema of the settings that an entity of this kind may have. */
export function settingsOf(kind: EntityKind, brands: ReadonlySet<string>) {
  const { channel, merchant, group } = settingsFor(brands)
  return kind === 'channel' ? channel : kind === 'merchant' ? merchant : group
}

/** What may be written by whom, in this process. */
export type ChangeRules = {
  readonly brands: ReadonlySet<string>
  /** Who does it is of the PSP. */
  readonly isOperator: boolean
  readonly refusal: ChannelRefusal
}

/** `shown`: the settings as they were when somebody began to change them. What is wrong, by `name` or `settings`; nothing is changed then. */
export function changeEntity(
  pool: pg.Pool,
  recorder: Recorder,
  { brands, isOperator, refusal }: ChangeRules,
  id: string,
  given: WrittenEntity,
  shown: string,
): Promise<readonly Mistake[]> {
  return inTransaction(pool, async db => {
    await lockTree(db)
    const [entity, ...above] = await readLineage(db, id)
    if (!entity) return [{ path: [], rule: `there is no entity ${id}` }]
    if (settingsText(entity) !== shown) return [{ path: [], rule: 'Somebody changed the settings meanwhile: look at them again' }]
    const mistakes = mistakesIn(object({ name: entityName, settings: settingsOf(entity.kind, brands) }), given)
    if (mistakes.length > 0) return mistakes
    const beyond = isOperator
      ? []
      : changed(entity.settings, given.settings as EntityRow['settings']).filter(name => ofOperator.has(name))
    if (beyond.length > 0)
      return beyond.map(name => ({ path: ['settings', name], rule: 'is changed by the staff of the PSP alone' }))
    const after = { ...entity, ...(given as Pick<EntityRow, 'name' | 'settings'>) }
    // Nobody else inherits from it.
    const below = (await readBelow(db, [id])).filter(row => row.id !== id)
    const newly = newlyRefused([...above, entity, ...below], [...above, after, ...below], refusal)
    if (newly.length > 0)
      return newly.map(({ entity: of, mistake }) =>
        of.id === id && mistake.path.length > 0
          ? { ...mistake, path: ['settings', ...mistake.path] }
          : { path: ['settings'], rule: `${of.name}: ${mistakeText(mistake).replace(/\.$/, '')}` },
      )
    await saveEntity(db, after, recorder.clock.real())
    await announceChange(db)
    await record(db, recorder, toldOfEntity(entity, after))
    return []
  })
}

type SettingsBefore = EntityRow['settings']

/** Names of the settings that differ. */
const changed = (before: SettingsBefore, after: SettingsBefore): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(name => !isDeepStrictEqual(before[name], after[name]))

/** What stands below each kind. */
export const kindsBelow: Readonly<Partial<Record<EntityKind, EntityKind>>> = {
  psp: 'division',
  division: 'merchant',
  merchant: 'channel',
}

/** The id of a new entity below another, without settings of its own; undefined when nothing may stand there, its name is none, or no process would serve it with what it inherits. */
export function makeEntity(
  pool: pg.Pool,
  recorder: Recorder & { readonly random: Random },
  parentId: string,
  name: string,
  refusal: ChannelRefusal,
): Promise<string | undefined> {
  return inTransaction(pool, async db => {
    await lockTree(db)
    const [parent, ...above] = await readLineage(db, parentId)
    const kind = parent && kindsBelow[parent.kind]
    if (!kind || mistakesIn(entityName, name).length > 0) return undefined
    const now = recorder.clock.real()
    const id = timeOrderedId(now, recorder.random)
    const made = { id, kind, parentId, merchantId: kind === 'merchant' ? id : parent.merchantId, name, settings: {} }
    if (newlyRefused([...above, parent], [...above, parent, made], refusal).length > 0) return undefined
    await saveEntity(db, made, now)
    await announceChange(db)
    await record(db, recorder, toldOfEntity(undefined, made))
    return id
  })
}
