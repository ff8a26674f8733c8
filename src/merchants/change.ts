// An entity's name and settings changed by hand, by the same rules as a seed file has.

import type pg from 'pg'
import { type Recorder, record } from '../audit/chain.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import { line, object, parseJson, written } from '../platform/schema.ts'
import { toldOfEntity } from './seed.ts'
import { settingsFor } from './settings.ts'
import { announceChange, type EntityRow, readEntities, saveEntity } from './store.ts'

/** As a form has them: settings are the text of JSON. */
export type WrittenEntity = { readonly name: string; readonly settings: string }

export const settingsText = ({ settings }: Pick<EntityRow, 'settings'>): string => JSON.stringify(settings, null, 2)

/** `shown`: the settings as they were when somebody began to change them. Throws an OperatorError with all that is wrong, a line each. */
export async function changeEntity(
  pool: pg.Pool,
  recorder: Recorder,
  brands: ReadonlySet<string>,
  id: string,
  given: WrittenEntity,
  shown: string,
): Promise<void> {
  await inTransaction(pool, async db => {
    const entity = (await readEntities(db)).find(one => one.id === id)
    if (!entity) throw new OperatorError(`There is no entity ${id}.`)
    if (settingsText(entity) !== shown) throw new OperatorError('Somebody changed the settings meanwhile: look at them again.')
    const schemas = settingsFor(brands)
    const settings = entity.kind === 'channel' ? schemas.channel : entity.kind === 'merchant' ? schemas.merchant : schemas.group
    const change = { name: given.name, settings: parseJson(given.settings, 'What you wrote') }
    const after = {
      ...entity,
      ...(written(object({ name: line, settings }), change, entity.kind) as Pick<EntityRow, 'name' | 'settings'>),
    }
    await saveEntity(db, after, recorder.clock.real())
    await announceChange(db)
    await record(db, recorder, toldOfEntity(entity, after))
  })
}
