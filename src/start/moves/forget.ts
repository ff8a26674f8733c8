// Takes away what a merchant who moved left behind: only while the other cell serves it, or has passed it on, and only what is as it was handed over. And what a
// move copied that was given up, where another cell has all of it.

import { tellAndDo } from '../../audit/act.ts'
import { announceChange } from '../../merchants/store.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import { OperatorError } from '../../platform/errors.ts'
import { accountsOf, filesMissing } from './accounts.ts'
import { differingTables } from './copy.ts'
import { unfence } from './fence.ts'
import type { MoveSide } from './move.ts'
import { countAll, forgetRows, holdsMerchant, paymentsIn } from './rows.ts'
import { isOtherEnd, type Move, type MoveState, putMove, readMove, stepMove } from './store.ts'
import { movedTables, numberCounters, ofAccounts } from './tables.ts'

/** Between two steps, so that payments of others have room. */
const breathMilliseconds = 20

/** What a cell has sent to another one is there, and need not be here. */
const passedOn: ReadonlySet<MoveState> = new Set(['moved', 'forgetting', 'forgotten'])

/** `target`: where it went, or, of a move that was given up, who serves it. Throws an OperatorError when something is not as it must be. Returns how many rows went. */
export async function forgetMerchant(source: MoveSide, target: MoveSide, merchantId: string): Promise<number> {
  const move = await readMove(source.database.work, merchantId)
  if (move?.direction === 'arriving' && (move.state === 'arriving' || move.state === 'forgetting'))
    return forgetCopy(source, target, move)
  if (move?.direction !== 'leaving' || (move.state !== 'moved' && move.state !== 'forgetting'))
    throw new OperatorError(`The merchant ${merchantId} has not moved away from ${source.name}: there is nothing to forget.`)
  const there = await readMove(target.database.work, merchantId)
  if (!isOtherEnd(move, there))
    throw new OperatorError(`${target.name} does not say that the merchant ${merchantId} has arrived: nothing is taken away.`)
  if (
    !passedOn.has(there.state) &&
    !(await holdsMerchant(target.database.reports, merchantId, move.counted?.payments?.rows ?? 0))
  )
    throw new OperatorError(
      `${target.name} does not have what was handed over of the merchant ${merchantId}, and has not passed it on: nothing is taken away.`,
    )
  let begin = async () => {}
  if (move.state === 'moved') {
    const left = await countAll(source.database.reports, await movedTables(source.database.work), merchantId)
    const handed = Object.fromEntries(Object.entries(move.counted!).filter(([name]) => !ofAccounts.has(name)))
    const changed = differingTables(handed, left)
    if (changed !== '')
      throw new OperatorError(
        `What the merchant ${merchantId} left in ${source.name} is not what was handed over: ${changed}. Nothing is taken away.`,
      )
    const [came] = await filesMissing(source.database.reports, target.database.reports, merchantId)
    if (came !== undefined && !passedOn.has(there.state))
      throw new OperatorError(
        `The file ${came} of a bank came to ${source.name} and not to ${target.name}, where the account is: hand it in there. Nothing is taken away.`,
      )
    const accounts = await accountsOf(source.database.work, merchantId)
    begin = () =>
      stepMove(source.database.work, move, ['moved'], { state: 'forgetting', here: false, accounts }, source.clock.real())
  }
  return forgetAll(source, move, begin)
}

/** What was copied by a move that was given up while this cell was away: `serving` is whoever has the merchant, and what it has is more. */
async function forgetCopy(side: MoveSide, serving: MoveSide, move: Move): Promise<number> {
  const { merchantId } = move
  const there = await readMove(serving.database.work, merchantId)
  if (there?.direction === 'leaving' && there.moveId === move.moveId && there.state !== 'stayed')
    throw new OperatorError(
      `The merchant ${merchantId} is on its way from ${serving.name} to ${side.name}: go on with that, or give it up with --back.`,
    )
  const payments = await paymentsIn(side.database.reports, merchantId)
  const isServed = there?.here ?? true
  if (!isServed || !(await holdsMerchant(serving.database.reports, merchantId, payments)))
    throw new OperatorError(
      `${serving.name} does not serve the merchant ${merchantId} with all payments that ${side.name} has: nothing is taken away.`,
    )
  const run = Math.max(move.run, there?.run ?? 0) + 1
  const accounts = await accountsOf(serving.database.work, merchantId)
  return forgetAll(side, { ...move, run }, () =>
    putMove(side.database.work, move, { ...move, state: 'forgetting', run, accounts }, side.clock.real()),
  )
}

/** All rows of a move that is being forgotten, in small steps; those that others refer to last. Of accounts it stays how far their numbers have come. `begin`: the first
 *  step, once it is told of. */
export async function forgetAll(side: MoveSide, move: Move, begin: () => Promise<void> = async () => {}): Promise<number> {
  const { database, clock } = side
  const { merchantId, other } = move
  const told = { action: 'merchantForgotten', entityId: merchantId, subject: merchantId, details: { other } } as const
  return tellAndDo(database.work, side, told, async ({ came, end }) => {
    await begin()
    const tables = (await movedTables(database.work)).filter(({ name }) => name !== numberCounters)
    let gone = 0
    for (const table of tables.toReversed())
      for (let step = 1; step > 0; ) {
        step = await forgetRows(database.work, table, move)
        gone += step
        came.rows = gone
        if (step > 0) await clock.sleep(breathMilliseconds)
      }
    await unfence(side, move, 'forgetting')
    await inTransaction(database.work, async db => {
      await stepMove(db, move, ['forgetting'], { state: 'forgotten', here: false }, clock.real())
      await announceChange(db)
      await end(db)
    })
    return gone
  })
}
