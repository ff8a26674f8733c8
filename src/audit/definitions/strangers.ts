// What stands in the database and was not made by our migrations, or not like this. A list of all that is ours decides, not one of what is known to do harm:
// whoever may make things there always finds another that runs with a write, and undoes it.

import { readFileSync } from 'node:fs'
import type { Connection } from '../../platform/database/connect.ts'
import { type Definition, readDefinitions } from './store.ts'

export type Strangers = {
  /** Each a sentence without its full stop; none when all is as our migrations made it. */
  readonly found: readonly string[]
  /** Why only a part could be compared, as such a sentence: another version of the program has made more, or not yet all. */
  readonly partly: string | undefined
}

/** Written by `npm run generate`. */
const all = readFileSync(new URL('./definitions.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter(line => line !== '')
  .map((line): Definition => {
    const [kind, of, name, definition] = line.split('\t') as [string, string, string, string]
    return { kind, of, name, definition }
  })
const migrations = new Set(all.filter(({ kind }) => kind === 'migration').map(({ name }) => name))
const ours = all.filter(({ kind }) => kind !== 'migration')
const keyOf = ({ kind, of, name }: Definition): string => [kind, of, name].join('\t')
const known = new Map(ours.map(one => [keyOf(one), one.definition]))
const nameOf = (signature: string): string => signature.replace(/^~\./, '').replace(/\(.*/, '')
const names = ours.filter(({ of }) => of === '').map(({ name }) => nameOf(name))
const indexes = new Set(ours.filter(({ kind }) => kind === 'index').map(({ of, definition }) => `${of}\t${definition}`))

const auditTables: readonly string[] = ['audit', 'audit_head']
const isOfAudit = ({ kind, of, name }: Definition): boolean =>
  auditTables.includes(of) || (of === '' && (kind === 'function' || auditTables.includes(name)))

/** No version of Tollgate has made any of these. */
const neverMade: ReadonlySet<string> = new Set([
  ...['rule', 'policy', 'right', 'table below', 'table above', 'view', 'materialized view', 'foreign table', 'type', 'operator'],
  ...['operator class', 'conversion', 'language', 'cast', 'event trigger', 'aggregate', 'procedure', 'publication', 'setting'],
])

/** What keeps a merchant's rows from being written who is served elsewhere is of no migration (migration 0038). Switched off where he is served again. */
const fence =
  /^CREATE TRIGGER elsewhere_([0-9a-f]{32})(?:_taken)? BEFORE (?:INSERT OR UPDATE|DELETE) ON ~\.\w+ FOR EACH ROW WHEN \(\((?:new|old)\.(?:merchant_id|owner_id) = '([0-9a-f-]{36})'::uuid\)\) EXECUTE FUNCTION ~\.refuse_elsewhere\('([0-9a-f]{32})'\) ([OD])$/

/** Around one merchant, by the column that names whose a row is. Of one who is served here it is switched off: it would keep his tokens from being revoked. */
function isFence(definition: string, away: ReadonlySet<string>): boolean {
  const [, name, owner, said, state] = fence.exec(definition) ?? []
  return name !== undefined && owner?.replaceAll('-', '') === name && said === name && (state === 'D' || away.has(name))
}

/** Rows come to the audit from here, or are kept beside it: what is refused there is not told of. */
const toldFrom: readonly string[] = [...auditTables, 'log_in_failures', 'known_places']

/** Of columns as they are. A computed value, a condition or another order can fail for the rows that somebody has chosen, by functions of PostgreSQL alone. */
const plainIndex = /^~\.\w+ USING \w+ \(\w+(?: DESC)?(?: NULLS (?:FIRST|LAST))?(?:, \w+(?: DESC)?(?: NULLS (?:FIRST|LAST))?)*\)$/

/**
 * What whoever runs an installation may add: indexes that compute and refuse nothing, and for a while the twin of one that is made anew, which is not valid before it
 * is whole. What has the name of one of ours is to be that one.
 */
const isAllowed = (one: Definition, away: ReadonlySet<string>): boolean =>
  (one.kind === 'trigger' && !toldFrom.includes(one.of) && isFence(one.definition, away)) ||
  (one.kind === 'index' && !known.has(keyOf(one)) && isAllowedIndex(one.of, one.definition.replace(/ not valid$/, '')))

const isAllowedIndex = (of: string, definition: string): boolean =>
  indexes.has(`${of}\t${definition}`) || (!toldFrom.includes(of) && plainIndex.test(definition))

const foundMost = 100
const lengthMost = 200

/** `of`: the tables of the audit with what stands at them, or all and everything in whose place or beside which it could run. */
export async function findStrangers(db: Connection, of: 'audit' | 'everything'): Promise<Strangers> {
  const { applied, away, definitions } = await readDefinitions(db, { ...(of === 'audit' && { tables: auditTables }), names })
  const other = [...new Set([...applied, ...migrations])].filter(name => !(applied.has(name) && migrations.has(name)))
  const isPartly = other.length > 0
  // Of what another version makes otherwise nothing can be told: only of what none makes, and of what keeps the rows of the audit.
  const isCompared = (one: Definition): boolean => !isPartly || neverMade.has(one.kind) || isKeeping(one)
  const wanted = ours.filter(one => isCompared(one) && (of === 'everything' || isOfAudit(one)))
  const there = definitions.filter(one => !isAllowed(one, away))
  const found = compare(wanted, there, isCompared).map(text => text.slice(0, lengthMost))
  const more = found.length - foundMost
  return {
    found: more > 0 ? [...found.slice(0, foundMost), `${more} more were not made by Tollgate, or not like this`] : found,
    partly: isPartly
      ? `only a part could be compared with what Tollgate makes: ${other.slice(0, 10).join(', ')} ${applied.has(other[0]!) ? 'is of another version' : 'is missing'}`
      : undefined,
  }
}

/** Keeps the rows of the audit as they are. */
const isKeeping = ({ kind, of, name }: Definition): boolean =>
  (auditTables.includes(of) && ['trigger', 'constraint', 'check'].includes(kind)) ||
  (kind === 'table' && auditTables.includes(name)) ||
  (kind === 'function' && names.includes(nameOf(name)))

function compare(
  wanted: readonly Definition[],
  there: readonly Definition[],
  isCompared: (one: Definition) => boolean,
): string[] {
  const found = new Set(there.map(keyOf))
  // What belongs to a table or a constraint that is gone, or not ours, needs no words of its own.
  const isOurs = (key: string): boolean => found.has(key) && known.has(key)
  const isTold = ({ kind, of, name }: Definition): boolean => {
    const constraint = `constraint\t${of}\t${name}`
    const isOfStranger =
      (kind === 'index' || kind === 'check') && !isOurs(constraint) && (found.has(constraint) || known.has(constraint))
    return of === '' || ((of.includes('.') || isOurs(`table\t\t${of}`)) && !isOfStranger)
  }
  const gone = wanted.filter(one => !found.has(keyOf(one)) && isTold(one)).map(one => `${textOf(one)} is gone`)
  const strange = there
    .filter(one => isCompared(one) && known.get(keyOf(one)) !== one.definition && isTold(one))
    .map(one =>
      one.kind === 'right'
        ? `${one.name} may change rows of ${one.of} or take them out`
        : known.has(keyOf(one))
          ? `${textOf(one)} is not as Tollgate made it`
          : `${textOf(one)} was not made by Tollgate`,
    )
  return [...gone, ...strange].sort()
}

const textOf = ({ kind, of, name }: Definition): string =>
  `the ${kind === 'check' ? 'trigger of the constraint' : kind} ${name.replace(/^~\./, '')}${of === '' ? '' : ` of ${of.replace(/^~\./, '')}`}`
