// What a cell that was put back to an earlier moment must learn from the others: who has left it since. Such a merchant is refused here at once, a fence is put
// around what is here of it, and what was done here beside the cell that has it is named, so that somebody decides. Given again, it goes on.

import { record } from '../../audit/chain.ts'
import { announceChange, readEntities } from '../../merchants/store.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { giveNumbers, passNumbersOf } from './accounts.ts'
import { type Claim, claimOn, mayServe } from './claims.ts'
import { fence } from './fence.ts'
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
}

export type SettleOrder = {
  readonly own: MoveSide
  /** All other cells that answer. */
  readonly others: readonly OtherCell[]
  /** The names of those that do not. */
  readonly silent: readonly string[]
  /** Where the map leads a merchant. */
  readonly mapped: ReadonlyMap<string, string>
  /** An operator's word: these are served here as they are, though another cell has sent them back here. */
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
  const found = merchants.flatMap(merchantId => {
    const move = ours.get(merchantId)
    if (!mayServe(move) && !(move!.direction === 'leaving' && halfway.includes(move!.state))) return []
    return [{ merchantId, move, claim: claimOn(move, claims.get(merchantId) ?? []) }]
  })
  const claimed = (kind: Claim['kind']) => found.filter((one): one is Gone => one.claim?.kind === kind)
  const gone = claimed('has')
  for (const one of gone) await refuse(own, one)
  const left = gone.map(({ merchantId, claim }) => ({ merchantId, to: claim.cell }))
  for (const { merchantId } of gone) await leaveBehind(own, merchantId)
  const held = found.flatMap(({ merchantId, move, claim }) => {
    const why = mayServe(move) && !order.serve.includes(merchantId) ? whyHeld(order, merchantId, move, claim) : undefined
    return why === undefined ? [] : [{ merchantId, why }]
  })
  const isHeld = new Set(held.map(({ merchantId }) => merchantId))
  const served = found.flatMap(({ merchantId, move, claim }) =>
    move?.putBackAt != null && claim?.kind !== 'has' && !isHeld.has(merchantId) ? [merchantId] : [],
  )
  for (const one of claimed('passed')) if (order.serve.includes(one.merchantId)) await serveAnyway(own, one, others)
  await inTransaction(work, async db => {
    await holdMerchants(db, own.clock.real(), [...isHeld])
    await releaseMerchants(db, served)
    await announceChange(db)
  })
  return { left, served, held, twice: await doneTwice(own, others) }
}

function whyHeld(
  { own, silent, mapped }: SettleOrder,
  merchantId: string,
  move: Move | undefined,
  claim: Claim | undefined,
): string | undefined {
  if (claim?.kind === 'has') return undefined
  if (claim?.move.other === own.name)
    return `${claim.cell} has sent it back here after that moment, and what was paid in between is there alone: restore ${own.name} to after that, or serve it as it is with --serve ${merchantId}`
  if (claim) return `${claim.cell} has sent it on to ${claim.move.other}, which does not say that it has it`
  const asked = silent.filter(cell => move?.putBackAt != null || mapped.get(merchantId) === cell)
  return asked.length === 0 ? undefined : `${asked.join(', ')} could not be asked`
}

type Gone = { readonly merchantId: string; readonly move: Move | undefined; readonly claim: Claim }

/** Requests, due work and notifications: none of it is taken from here on. */
const refuse = ({ database, clock }: MoveSide, { merchantId, move, claim }: Gone): Promise<void> =>
  inTransaction(database.work, async db => {
    const { direction, moveId } = claim.move
    // A later run of the other end says that it has sent the merchant on.
    const run = direction === 'leaving' ? claim.move.run - 1 : claim.move.run
    const row = { merchantId, direction: 'leaving', state: 'frozen', here: false, other: claim.cell, run, moveId } as const
    await putMove(db, move, row, clock.real())
    await giveNumbers(db, merchantId, 'elsewhere')
    await announceChange(db)
  })

/** A later run than the other cell's: it is not asked about again. */
const serveAnyway = (own: MoveSide, { merchantId, move, claim }: Gone, others: readonly OtherCell[]): Promise<void> =>
  inTransaction(own.database.work, async db => {
    const there = others.find(({ name }) => name === claim.cell)!
    await passNumbersOf(db, there.database.work, merchantId)
    await giveNumbers(db, merchantId, 'here')
    const row = { direction: 'leaving', state: 'stayed', here: true, other: claim.cell, run: claim.move.run + 1 } as const
    await putMove(db, move, { merchantId, moveId: null, ...row }, own.clock.real())
    await record(db, own, [
      { action: 'merchantStayed', entityId: merchantId, subject: merchantId, details: { to: claim.cell, restored: true } },
    ])
  })

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
