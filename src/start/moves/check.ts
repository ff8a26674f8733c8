// Whether a merchant can go from one cell to another at all: both must be able to read what the other one has sealed, to store what it has, and nothing that
// the merchant shares with others may stay behind unnoticed.

import { openSeries } from '../../clearing/fileSeries.ts'
import { subjectOf } from '../../clearing/reconciliation/store.ts'
import { channelsRefusedIn } from '../../merchants/refusals.ts'
import { severalPsps } from '../../merchants/seed.ts'
import { type EntityRow, readBelow, readEntities, readLineage, readPsps } from '../../merchants/store.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { isHeld, readFileHold } from '../../platform/database/fileHold.ts'
import { readMode } from '../../platform/database/installation.ts'
import { OperatorError } from '../../platform/errors.ts'
import { compareKeys, lackingText, namesLacking } from '../../vault/keys.ts'
import { readProofs } from '../../vault/store.ts'
import { accountsOf, accountsOfOthers, takenAccounts } from './accounts.ts'
import type { MoveSide } from './move.ts'
import { ownAccounts } from './tables.ts'

/** Throws an OperatorError with all that is wrong, a line each. */
export async function compareCells(source: MoveSide, target: MoveSide, merchantId: string): Promise<void> {
  const [from, to] = [source.database.work, target.database.work]
  const [merchant, ...groups] = await readLineage(from, merchantId)
  if (merchant?.kind !== 'merchant') throw new OperatorError(`${source.name} has no merchant ${merchantId}.`)
  const shared = await countSharedRegistrations(
    from,
    groups.map(({ id }) => id),
  )
  const wrong = [
    ...(await keysThatDiffer(source, target)),
    ...(await keysThatDiffer(target, source)),
    ...(await keysLacking(source, target)),
    ...(await modesThatDiffer(source, target)),
    ...(await migrationsThatDiffer(source, target)),
    ...(await settingsThatDiffer(groups, target)),
    ...(await channelsRefused(source, target, merchantId)),
    ...(shared > 0
      ? [`${shared} registrations belong to the division or psp of the merchant: others share them, they do not go with one.`]
      : []),
    ...(await reasonsToStay(from, merchantId)),
    ...(await takenAccounts(to, await accountsOf(from, merchantId))).map(account => isTaken(target, account)),
  ]
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
}

const isTaken = ({ name }: MoveSide, account: string): string =>
  `${name} has given out numbers of the account ${account}: name it in the SLIPS_FILE of one cell only.`

/** What the other cell has come to use since, for other merchants or by giving out numbers: a line each. */
export async function accountsTaken(source: MoveSide, target: MoveSide, merchantId: string): Promise<string[]> {
  const accounts = await accountsOf(source.database.work, merchantId)
  const there = target.database.work
  const taken = [...(await accountsOfOthers(there, accounts, merchantId)), ...(await takenAccounts(there, accounts))]
  return [...new Set(taken)].map(account => isTaken(target, account))
}

async function keysThatDiffer(one: MoveSide, other: MoveSide): Promise<string[]> {
  try {
    compareKeys(await readProofs(one.database.work), other.keys)
    return []
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return [`${other.name} does not have the keys of ${one.name}. ${error.message}`]
  }
}

/** The files may hold what the processes that run have not read. */
async function keysLacking(source: MoveSide, { name, database }: MoveSide): Promise<string[]> {
  const lacking = await namesLacking(database.work, await readProofs(source.database.work))
  return lacking.length === 0 ? [] : [lackingText(name, lacking)]
}

async function modesThatDiffer(source: MoveSide, target: MoveSide): Promise<string[]> {
  const [ours, theirs] = [await readMode(source.database.work), await readMode(target.database.work)]
  return ours === theirs ? [] : [`${source.name} belongs to mode ${ours}, ${target.name} to ${theirs}.`]
}

async function migrationsThatDiffer(source: MoveSide, target: MoveSide): Promise<string[]> {
  const [ours, theirs] = [await readMigrations(source.database.work), await readMigrations(target.database.work)]
  const differing = [...ours.filter(one => !theirs.includes(one)), ...theirs.filter(one => !ours.includes(one))]
  return differing.length === 0
    ? []
    : [
        `The schemas differ by ${[...new Set(differing.map(one => one.split(' ')[0]))].join(', ')}: run one release in both cells.`,
      ]
}

async function settingsThatDiffer(groups: readonly EntityRow[], { name, database }: MoveSide): Promise<string[]> {
  const psps = await readPsps(database.work)
  const several = severalPsps([...psps, ...groups.filter(({ id }) => !psps.some(one => one.id === id))])
  if (several.length > 0) return [`${name} belongs to another PSP. ${several.join(' ')}`]
  const there = await readEntities(
    database.work,
    groups.map(({ id }) => id),
  )
  return groups
    .filter(group => there.some(({ id, settings }) => id === group.id && textOf(settings) !== textOf(group.settings)))
    .map(
      ({ kind, id }) =>
        `The ${kind} ${id} has other settings in ${name}: seed both alike, or its merchants change with the move.`,
    )
}

/** The same of a merchant's groups as they are now. */
export const groupsThatDiffer = async (source: MoveSide, target: MoveSide, merchantId: string): Promise<string[]> =>
  settingsThatDiffer((await readLineage(source.database.work, merchantId)).slice(1), target)

/** With such a channel no gateway of the other cell would start again. A sentence each. */
export async function channelsRefused({ database: { work } }: MoveSide, target: MoveSide, merchantId: string): Promise<string[]> {
  const rows = [...(await readLineage(work, merchantId)).slice(1), ...(await readBelow(work, [merchantId]))]
  return channelsRefusedIn(rows, target.channelRefusal).map(
    ({ id, name, why }) => `${target.name} does not serve the channel ${name} (${id}): ${why}.`,
  )
}

const textOf = (settings: EntityRow['settings']): string =>
  JSON.stringify(Object.entries(settings).sort(([one], [other]) => (one < other ? -1 : 1)))

/** What keeps a merchant where it is, in its cell: a sentence each. */
export async function reasonsToStay(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ shared: string[]; filed: number; archived: number }>(
    `with own as (${ownAccounts})
     select (select coalesce(json_agg(account order by account), '[]') from own
              where exists (select from slips s where s.account = own.account and s.merchant_id <> $1)
                 or exists (select from refund_transfers t where t.account = own.account and t.merchant_id <> $1)) as shared,
            (select count(*) from collected_captures where merchant_id = $1 and sequence is not null and outcome is null) as filed,
            (select count(*) from archived_payments where merchant_id = $1) as archived`,
    [merchantId],
  )
  const { shared, filed, archived } = rows[0]!
  const hold = await readFileHold(db)
  const waiting = (await openSeries(db, merchantId)).filter(({ series, of }) => isHeld(hold, subjectOf(series.name, of)))
  return [
    ...shared.map(
      account =>
        `Slips of other merchants stand on its account ${account} too, and what the bank sends goes to one cell: it stays with them.`,
    ),
    ...(filed > 0
      ? [`${filed} of its captures are in files that their acquirer has not acknowledged yet: wait for that, then move it.`]
      : []),
    ...waiting.map(
      ({ series: { name, other, command }, of }) =>
        `Its ${name} wait until somebody says what the ${other} has: \`tollgate ${command} ${of}\`, or the other cell sends them again.`,
    ),
    ...(archived > 0 ? [`${archived} of its payments are in archives of this cell: bring them back first.`] : []),
  ]
}

async function readMigrations(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(`select name || ' ' || checksum as name from migrations order by name`)
  return rows.map(({ name }) => name)
}

/** Payment details that all merchants of a division share: how many there are of some divisions. */
async function countSharedRegistrations(db: Connection, owners: readonly string[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from registrations where owner_id = any ($1)', [owners])
  return rows[0]!.count
}
