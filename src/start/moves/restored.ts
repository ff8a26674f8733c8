// What a cell that was put back to an earlier moment must learn from the others: who has left it since. Such a merchant is refused here at once, a fence is put
// around what is here of it, and what was done here beside the cell that has it is named, so that somebody decides. Given again, it goes on.

import { record } from '../../audit/chain.ts'
import { openSeries } from '../../clearing/fileSeries.ts'
import { announceChange, readEntities } from '../../merchants/store.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { holdFiles } from '../../platform/database/fileHold.ts'
import { OperatorError } from '../../platform/errors.ts'
import { accountsOfBoth, giveNumbers, passNumbers } from './accounts.ts'
import { type Claim, claimOn, isAtHome, type LostArrival, lostArrivals, mayServe, type OthersMove, orServe } from './claims.ts'
import { fence, unfence } from './fence.ts'
import type { MoveSide } from './move.ts'
import { holdMerchants, releaseMerchants } from './putBack.ts'
import { countAll } from './rows.ts'
import { listMoves, type Move, type MoveState, putMove, readMove, stepMove, takePlace } from './store.ts'
import { movedTables } from './tables.ts'

export type OtherCell = { readonly name: string; readonly database: Pick<Database, 'work' | 'reports'> }

/** A payment that this cell has made or ended, and the other one has not, or has ended by itself. */
export type DoneTwice = {
  readonly merchantId: string
  readonly paymentId: string
  readonly what: 'made' | 'ended'
  readonly paymentType: string
  /** Hundredths. */
  readonly amount: number | null
  readonly currency: string | null
}

export type Settled = {
  /** Taken away now, each with the cell that has it. */
  readonly left: readonly { readonly merchantId: string; readonly to: string }[]
  /** Served again. */
  readonly served: readonly string[]
  /** Refused still: nobody knows, for the reason. */
  readonly held: readonly { readonly merchantId: string; readonly why: string }[]
  readonly twice: readonly DoneTwice[]
  /** Who had come here after that moment. */
  readonly lost: readonly LostArrival[]
  /** Served again as they were when they left: the cell that had them was put back to before they came. */
  readonly returned: readonly Returned[]
}

/** `accounts`: whose numbers that cell may have given out, more than anybody knows. */
export type Returned = { readonly merchantId: string; readonly from: string; readonly accounts: readonly string[] }

export type SettleOrder = {
  readonly own: MoveSide
  /** All other cells that answer. */
  readonly others: readonly OtherCell[]
  /** The names of those that do not. */
  readonly silent: readonly string[]
  /** Where the map leads a merchant. */
  readonly mapped: ReadonlyMap<string, string>
  /**
   * An operator's word: these are served here as they are, though another cell has sent them back here, or had them and was put back to before that. Of all others an
   * OperatorError says why not.
   */
  readonly serve: readonly string[]
}

/** Of moves that another command may have left, those that no longer can be gone on with where the merchant has arrived. */
const halfway: readonly MoveState[] = ['copying', 'frozen', 'fenced', 'returning']

export async function settleRestored(order: SettleOrder): Promise<Settled> {
  const { own, others } = order
  const { work } = own.database
  // First theirs: a merchant who is handed over meanwhile is refused here by then.
  const theirs = (
    await Promise.all(
      others.map(async ({ name, database }) => (await listMoves(database.work)).map(move => ({ cell: name, move }))),
    )
  ).flat()
  const claims = Map.groupBy(theirs, ({ move }) => move.merchantId)
  const ours = new Map((await listMoves(work)).map(move => [move.merchantId, move]))
  const merchants = (await readEntities(work)).flatMap(({ id, kind }) => (kind === 'merchant' ? [id] : []))
  const found = [...new Set([...merchants, ...ours.keys()])].flatMap(merchantId => {
    const move = ours.get(merchantId)
    const claim = claimOn(move, claims.get(merchantId) ?? [])
    const isHalfway = move?.direction === 'leaving' && halfway.includes(move.state)
    // Who had left at that moment, and has come back since, is served by nobody.
    return mayServe(move) || isHalfway || isSentBack(own, claim) ? [{ merchantId, move, claim }] : []
  })
  const back = await lostAgain(order, ours, theirs)
  refuseOthers(order, merchants, found, back)
  const claimed = (kind: Claim['kind']) => found.filter((one): one is Gone => one.claim?.kind === kind)
  const gone = claimed('has')
  for (const one of gone) await refuse(own, one, others)
  const left = gone.map(({ merchantId, claim }) => ({ merchantId, to: claim.cell }))
  for (const { merchantId } of gone) await leaveBehind(own, merchantId)
  const held = found.flatMap(one => {
    const why = mayServe(one.move) || one.claim ? (whyUnknown(order, one) ?? whyUndecided(order, one)) : undefined
    return why === undefined ? [] : [{ merchantId: one.merchantId, why }]
  })
  const isHeld = new Set(held.map(({ merchantId }) => merchantId))
  const served = found.flatMap(({ merchantId, move, claim }) =>
    move?.putBackAt != null && claim?.kind !== 'has' && !isHeld.has(merchantId) ? [merchantId] : [],
  )
  for (const one of claimed('passed'))
    if (order.serve.includes(one.merchantId) && !isHeld.has(one.merchantId)) await serveAnyway(own, one, others)
  const returned: Returned[] = []
  for (const one of back)
    returned.push({ merchantId: one.merchantId, from: one.claim.cell, accounts: await serveAnyway(own, one, others) })
  await inTransaction(work, async db => {
    await holdMerchants(db, own.clock.real(), [...isHeld])
    await releaseMerchants(db, served)
    await announceChange(db)
  })
  const atHome = new Set([...merchants.filter(id => isAtHome(ours.get(id))), ...isHeld]) // they are told of already
  const lost = lostArrivals(own.name, await listMoves(work), atHome, theirs)
  return { left, served, held, twice: await doneTwice(own, others), lost, returned }
}

type MerchantHere = { readonly merchantId: string; readonly move: Move | undefined; readonly claim: Claim | undefined }
type Gone = MerchantHere & { readonly claim: Claim }

/** Of whom an operator names, those who left with all their rows here still, for a cell that does not have them any more. Who cannot be asked may have them. */
async function lostAgain(order: SettleOrder, ours: ReadonlyMap<string, Move>, theirs: readonly OthersMove[]): Promise<Gone[]> {
  const { own, others, serve, silent } = order
  const back: Gone[] = []
  for (const merchantId of silent.length > 0 ? [] : serve) {
    const move = ours.get(merchantId)
    const there = others.find(({ name }) => name === move?.other)
    if (!move || !there || !(move.state === 'moved' || move.state === 'handing')) continue
    const moves = theirs.flatMap(one => (one.cell === there.name ? [one.move] : []))
    const end = moves.find(one => one.merchantId === merchantId)
    if (move.state === 'handing' && end?.moveId === move.moveId) continue // whoever is at it may still hand it over
    const isThere = isAtHome(end) && (await readEntities(there.database.work, [merchantId])).length > 0
    const elsewhere = theirs.filter(({ cell }) => cell !== there.name)
    const sent = { cell: own.name, move: { ...move, state: 'moved' as const } }
    const lost = lostArrivals(there.name, moves, new Set(isThere ? [merchantId] : []), [sent, ...elsewhere])
    if (lost.some(one => one.merchantId === merchantId && one.from === own.name))
      back.push({ merchantId, move, claim: { kind: 'passed', cell: there.name, move } })
  }
  return back
}

/** Before anything is done: whom an operator names is one whom somebody has to decide about. */
function refuseOthers(
  { own, serve, silent }: SettleOrder,
  merchants: readonly string[],
  found: readonly MerchantHere[],
  back: readonly MerchantHere[],
): void {
  const wrong = serve.flatMap(merchantId => {
    const one = found.find(one => one.merchantId === merchantId)
    if (back.some(one => one.merchantId === merchantId)) return []
    if (!merchants.includes(merchantId)) return [`There is no merchant ${merchantId} in ${own.name}.`]
    if (one?.move?.state === 'arriving') return [`Of the merchant ${merchantId} a part was copied to ${own.name}, and no more.`]
    if (isForgotten(one?.move)) return [`Nothing of the merchant ${merchantId} is in ${own.name}.`]
    if (one?.claim?.kind === 'has') return [`The merchant ${merchantId} is in ${one.claim.cell}, which serves it.`]
    if (one?.claim || one?.move?.putBackAt != null) return []
    const unasked = silent.length === 0 ? '' : `, and ${silent.join(', ')} could not be asked`
    return [`The merchant ${merchantId} is not held in ${own.name}${unasked}.`]
  })
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
}

/** A cell that cannot be asked may have the merchant, whatever the others say: no word helps against that. */
function whyUnknown({ silent, mapped }: SettleOrder, { merchantId, move, claim }: MerchantHere): string | undefined {
  if (claim?.kind === 'has') return undefined
  const asked = silent.filter(cell => claim || move?.putBackAt != null || mapped.get(merchantId) === cell)
  return asked.length === 0 ? undefined : `${asked.join(', ')} could not be asked`
}

function whyUndecided({ own, serve }: SettleOrder, { merchantId, move, claim }: MerchantHere): string | undefined {
  if (claim?.kind !== 'passed' || serve.includes(merchantId)) return undefined
  if (isSentBack(own, claim) && move?.state === 'arriving')
    return `${claim.cell} has handed it over after that moment, when a part of it was copied here: restore ${own.name} to after that${orServe(claim)}`
  if (isSentBack(own, claim) && isForgotten(move))
    return `${claim.cell} has sent it back here after that moment, when nothing of it was here: restore ${own.name} to after that${orServe(claim)}`
  if (isSentBack(own, claim))
    return `${claim.cell} has sent it back here after that moment, and what was paid in between is there alone: restore ${own.name} to after that, or serve it as it is with --serve ${merchantId}`
  return `${claim.cell} has sent it on to ${claim.move.other}, which does not say that it has it`
}

const isSentBack = ({ name }: MoveSide, claim: Claim | undefined): boolean =>
  claim?.kind === 'passed' && claim.move.other === name
const isForgotten = (move: Move | undefined): boolean => move?.state === 'forgetting' || move?.state === 'forgotten'

const databaseOf = (others: readonly OtherCell[], cell: string): Connection =>
  others.find(({ name }) => name === cell)!.database.work

/** Requests, due work and notifications: none of it is taken from here on. */
const refuse = ({ database, clock }: MoveSide, { merchantId, move, claim }: Gone, others: readonly OtherCell[]): Promise<void> =>
  inTransaction(database.work, async db => {
    const { direction, moveId } = claim.move
    // A later run of the other end says that it has sent the merchant on.
    const run = direction === 'leaving' ? claim.move.run - 1 : claim.move.run
    const row = { merchantId, direction: 'leaving', state: 'frozen', here: false, other: claim.cell, run, moveId } as const
    await putMove(db, move, row, clock.real())
    await giveNumbers(db, await accountsOfBoth(db, databaseOf(others, claim.cell), merchantId), 'elsewhere')
    await announceChange(db)
  })

/** An operator's word is later than any run of a backup that turns up after it. */
const wordOutruns = 1_000_000

/** By a later run than the other cell's: it is not asked about again. */
async function serveAnyway(own: MoveSide, { merchantId, move, claim }: Gone, others: readonly OtherCell[]): Promise<string[]> {
  // Of a move that was on its way at that moment, or that has ended.
  if (move) await unfence(own, move, move.state)
  return inTransaction(own.database.work, async db => {
    const there = databaseOf(others, claim.cell)
    const accounts = await accountsOfBoth(db, there, merchantId)
    await passNumbers(db, there, accounts)
    await giveNumbers(db, accounts, 'here')
    // The other cell may have sent banks and acquirers what waits here for its file.
    if ((await openSeries(db, merchantId)).length > 0) await holdFiles(db)
    const row = {
      direction: 'leaving',
      state: 'stayed',
      here: true,
      other: claim.cell,
      run: claim.move.run + wordOutruns,
    } as const
    await putMove(db, move, { merchantId, moveId: null, ...row }, own.clock.real())
    await record(db, own, [
      { action: 'merchantStayed', entityId: merchantId, subject: merchantId, details: { to: claim.cell, restored: true } },
    ])
    return accounts
  })
}

/** As after a move: what is here stands behind a fence, until it is forgotten. */
async function leaveBehind(own: MoveSide, merchantId: string): Promise<void> {
  const { database, clock } = own
  const place = await takePlace(database.work, merchantId)
  if (!place) return // the next time
  try {
    const move = (await readMove(database.work, merchantId))!
    const tables = await movedTables(database.work)
    await fence(own, tables, move)
    const counted = await countAll(database.reports, tables, merchantId)
    await inTransaction(database.work, async db => {
      await stepMove(db, move, ['frozen'], { state: 'moved', here: false, counted }, clock.real())
      await record(db, own, [
        { action: 'merchantLeft', entityId: merchantId, subject: merchantId, details: { to: move.other, restored: true } },
      ])
    })
  } finally {
    await place.giveBack()
  }
}

/** Of all who have moved away and are not forgotten. */
async function doneTwice(own: MoveSide, others: readonly OtherCell[]): Promise<DoneTwice[]> {
  const twice: DoneTwice[] = []
  for (const { merchantId, state, other } of await listMoves(own.database.work)) {
    const there = others.find(({ name }) => name === other)
    if (state !== 'moved' || !there) continue
    for await (const one of differences(own.database.reports, there.database.reports, merchantId)) twice.push(one)
  }
  return twice
}

const pageRows = 2000

type PaymentEnd = Omit<DoneTwice, 'merchantId' | 'what'> & { readonly answeredAt: number | null }

async function* differences(here: Connection, there: Connection, merchantId: string): AsyncGenerator<DoneTwice> {
  for (let last: string | null = null; ; ) {
    const { rows }: { rows: PaymentEnd[] } = await here.query<PaymentEnd>(
      `select p.id as "paymentId", p.payment_type as "paymentType", p.amount, p.currency, a.answered_at as "answeredAt"
         from payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
        where p.merchant_id = $1 and ($2::uuid is null or p.id > $2) order by p.id limit ${pageRows}`,
      [merchantId, last],
    )
    const { rows: theirs } = await there.query<{ paymentId: string; answeredAt: number | null; isArchived: boolean }>(
      `select p.id as "paymentId", a.answered_at as "answeredAt", false as "isArchived"
         from payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
        where p.merchant_id = $1 and p.id = any ($2)
        union all select payment_id, null, true from archived_payments where merchant_id = $1 and payment_id = any ($2)`,
      [merchantId, rows.map(({ paymentId }) => paymentId)],
    )
    const known = new Map(theirs.map(one => [one.paymentId, one]))
    for (const { answeredAt, ...one } of rows) {
      const same = known.get(one.paymentId)
      const isEnded = answeredAt !== null && same?.isArchived === false && same.answeredAt !== answeredAt
      if (!same || isEnded) yield { merchantId, what: same ? 'ended' : 'made', ...one }
    }
    if (rows.length < pageRows) return
    last = rows.at(-1)!.paymentId
  }
}
