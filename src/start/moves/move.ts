// Moves a merchant from one cell to another while it is in use. What is done is written down before the next step begins, in both databases: a command that
// died is given again and goes on. At every moment at most one cell serves the merchant: the old one until its row says `here` no more and the fence stands,
// the new one from the transaction on that hands it over.

import { record } from '../../audit/chain.ts'
import type { Actor } from '../../audit/entry.ts'
import type { ChannelRefusal } from '../../merchants/refusals.ts'
import { announceChange, readEntities } from '../../merchants/store.ts'
import { examine } from '../../payments/ledger/doctor.ts'
import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { areHeld } from '../../platform/database/elsewhere.ts'
import { OperatorError } from '../../platform/errors.ts'
import type { Keys } from '../../vault/keys.ts'
import { accountsOf, giveNumbers } from './accounts.ts'
import { copyAround, shareTokens } from './around.ts'
import { accountsTaken, channelsRefused, compareCells, groupsThatDiffer, reasonsToStay } from './check.ts'
import { mayServe } from './claims.ts'
import { leaveContested } from './contested.ts'
import { copyAll } from './copy.ts'
import { fence, unfence } from './fence.ts'
import { forgetAll } from './forget.ts'
import {
  type Counted,
  countTaken,
  isOtherEnd,
  type Move,
  type MoveState,
  putMove,
  readMove,
  stepMove,
  takePlace,
} from './store.ts'
import { movedTables } from './tables.ts'

/** A cell as whoever moves sees it. */
export type MoveSide = {
  readonly name: string
  readonly database: Database
  readonly keys: Keys
  readonly clock: Clock
  readonly random: Random
  readonly by: Actor
  /** Which channels its gateways do not serve, as its configuration stands here. */
  readonly channelRefusal: ChannelRefusal
}

export type MoveEnds = { readonly source: MoveSide; readonly target: MoveSide; readonly merchantId: string }

export type MoveParts = MoveEnds & {
  /** Requests that are under way are waited for, once new ones are refused: so many seconds. */
  readonly patienceSeconds: number
  /** The merchant is refused for no longer before it is served where it was, unless it may have been handed over. */
  readonly refusalSeconds: number
  /** Hears of each step when it is done, with a sentence for whoever reads along. */
  tell(step: MoveStep, what: string): void
  /** Somebody asks for the end: until the merchant is handed over it is served where it was, and from then on the move goes on. */
  readonly interrupted?: AbortSignal
  /** Leads requests to where merchants are: writes the proxy's map and has it read; absent = somebody else does. */
  flip?(): Promise<void>
}

export const moveSteps = [
  'begun',
  'copied',
  'frozen',
  'fenced',
  'compared',
  'handing',
  'arrived',
  'moved',
  'flipped',
  'examined',
] as const
export type MoveStep = (typeof moveSteps)[number]

/** `refusedSeconds`: undefined where an earlier command had handed it over. */
export type FinishedMove = { readonly rows: number; readonly refusedSeconds?: number }

/** So long gateways have to hear that the merchant is refused; who has not meets the fence. */
const hearMilliseconds = 500
const pauseMilliseconds = 50
/** Copying is repeated as long as a round writes half as much as the one before, and more than so many rows of so many bytes. */
const leftMost = { rows: 1000, bytesOfRow: 32 * 1024 }

const onTheWay: readonly MoveState[] = ['copying', 'frozen', 'fenced', 'handing', 'returning']

/** Throws an OperatorError when it cannot be done: the sentence says who serves the merchant, and what to do. */
export const moveMerchant = (parts: MoveParts): Promise<FinishedMove> =>
  inPlace(parts, async () => {
    const { source, target, merchantId, tell, flip } = parts
    const move = await begin(parts)
    if (move.here) await copyAround(parts, move, 'in use')
    tell('begun', `The merchant ${merchantId} goes from ${source.name} to ${target.name}.`)
    let frozenAt: number | undefined
    if (move.state !== 'moved' && !(await isThere(parts))) {
      if (move.here) await Promise.race([copyBefore(parts, move), untilInterrupted(parts, `\n${servedText(source)}`)])
      frozenAt = source.clock.elapsed()
      await takeOver(parts, move)
    }
    if (move.state !== 'moved') await leave(parts, move)
    tell(
      'moved',
      `${target.name} serves the merchant. ${source.name} refuses what still comes there, until it is told to forget.`,
    )
    await flip?.()
    const refusedSeconds = frozenAt === undefined ? undefined : (source.clock.elapsed() - frozenAt) / 1000
    if (flip) tell('flipped', 'Requests are led there.')
    return { rows: await examineBoth(parts), ...(refusedSeconds !== undefined && { refusedSeconds }) }
  })

/** Gives up a move before the merchant was handed over. Without `target`, which cannot be reached, what was copied stays there, hidden. */
export const giveUpMove = (
  parts: Omit<MoveEnds, 'target'> & { readonly target: MoveSide | undefined; readonly tell: MoveParts['tell'] },
): Promise<void> =>
  inPlace(parts, async () => {
    const { source, target, merchantId, tell } = parts
    const move = await readMove(source.database.work, merchantId)
    if (move?.direction !== 'leaving' || !(onTheWay.includes(move.state) || move.state === 'stayed'))
      throw new OperatorError(`The merchant ${merchantId} is not on its way out of ${source.name}.`)
    if (!target && move.state === 'handing')
      throw new OperatorError(`${move.other} may have taken over, and cannot be asked: when it can, give the command again.`)
    if (move.putBackAt !== null) throw isHeld(source, merchantId)
    const known = target && (await readMove(target.database.work, merchantId))
    const there = isOtherEnd(move, known) ? known : undefined
    // What has nothing of this move is left alone: another database, or one that was put back to before it.
    if (target && !there && (move.state === 'handing' || (known && move.state === 'stayed')))
      throw anotherDatabase(source, target, move)
    if (there?.state === 'arrived')
      throw new OperatorError(`${target!.name} serves the merchant already: give the move again, it goes on to its end.`)
    // Whoever was at it hands nothing over from here on: first there, then here.
    const now = source.clock.real()
    const run = Math.max(move.run, there?.run ?? 0) + 1
    const accounts = await accountsOf(source.database.work, merchantId)
    const left = there?.direction === 'arriving' ? { ...there, state: 'forgetting' as const, run, accounts } : undefined
    if (left) await putMove(target!.database.work, there, left, now)
    const back = { ...move, run }
    await putMove(source.database.work, move, back, now)
    if (move.state !== 'stayed') await serveAgain(source, back, 'stayed')
    tell('begun', `${source.name} serves the merchant as before.`)
    if (left) await forgetAll(target!, left)
  })

function anotherDatabase(source: MoveSide, { name }: MoveSide, { merchantId, state }: Move): OperatorError {
  const lost =
    state === 'handing' || state === 'moved'
      ? ` If that is lost, \`tollgate cells restored --cells FILE --cell ${source.name} --serve ${merchantId}\` serves what ${source.name} had until then.`
      : ''
  return new OperatorError(
    `The database that ${name} names is not the one with which the move of the merchant ${merchantId} began, which may serve it, or was put back to before its end: name that one as it was.${lost}`,
  )
}

const isHeld = ({ name }: MoveSide, merchantId: string) =>
  new OperatorError(
    `${name} was put back, and nobody has asked the other cells whether the merchant ${merchantId} has left it since: \`tollgate cells restored --cells FILE --cell ${name}\` does.`,
  )

const isPutBack = ({ name }: MoveSide) =>
  new OperatorError(
    `${name} was put back, and nobody has asked the other cells which merchants have left it since: \`tollgate cells restored --cells FILE --cell ${name}\` does. Nobody moves there before.`,
  )

async function inPlace<Value>(
  { source, merchantId }: Pick<MoveEnds, 'source' | 'merchantId'>,
  work: () => Promise<Value>,
): Promise<Value> {
  const place = await takePlace(source.database.work, merchantId)
  if (!place) throw new OperatorError(`Another command is at work on the merchant ${merchantId}.`)
  try {
    return await work()
  } finally {
    await place.giveBack()
  }
}

/** Writes down that it is under way, in both cells, as a run of its own: whoever was at it before writes nothing any more. */
async function begin({ source, target, merchantId }: MoveEnds): Promise<Move> {
  const [from, to] = [await readMove(source.database.work, merchantId), await readMove(target.database.work, merchantId)]
  if (from?.putBackAt != null) throw isHeld(source, merchantId)
  if (await areHeld(target.database.work)) throw isPutBack(target)
  const goesOn = from?.direction === 'leaving' && (onTheWay.includes(from.state) || from.state === 'moved')
  if (goesOn && from.other !== target.name)
    throw new OperatorError(
      `The merchant ${merchantId} is on its way from ${source.name} to ${from.other}: go on with that, or give it up with --back.`,
    )
  if (goesOn && !isOtherEnd(from, to)) throw anotherDatabase(source, target, from)
  if (goesOn && (from.state === 'moved' || to?.state === 'arrived')) return from
  if (from && !from.here && !goesOn)
    throw new OperatorError(`${source.name} does not serve the merchant ${merchantId}: its move there is ${from.state}.`)
  const isOurs = to?.state === 'arriving' && to.other === source.name
  if (!goesOn) await compareCells(source, target, merchantId)
  const there = await readEntities(target.database.work, [merchantId])
  if (to ? !isOurs && to.state !== 'forgotten' : there.length > 0)
    throw new OperatorError(
      to && mayServe(to)
        ? `${target.name} has the merchant ${merchantId} already. If ${source.name} was put back to before it left, \`tollgate cells restored --cells FILE --cell ${source.name}\` takes it away there.`
        : `${target.name} has something of the merchant ${merchantId} already${to ? `, which is ${to.state}: let it forget that first` : ''}.`,
    )
  const now = source.clock.real()
  const run = Math.max(from?.run ?? 0, to?.run ?? 0) + 1
  const moveId = goesOn ? from.moveId : timeOrderedId(now, source.random)
  const put = (db: Connection, before: Move | undefined, move: Pick<Move, 'direction' | 'state' | 'here' | 'other'>) =>
    putMove(db, before, { merchantId, run, moveId, ...move }, now)
  await inTransaction(target.database.work, async db => {
    await put(db, to, { direction: 'arriving', state: 'arriving', here: false, other: source.name })
    await announceChange(db)
  })
  const [state, here] = goesOn ? [from.state, from.here] : (['copying', true] as const)
  await put(source.database.work, from, { direction: 'leaving', state, here, other: target.name })
  return (await readMove(source.database.work, merchantId))!
}

/** It was handed over, and whoever did it died before the old cell was told. */
const isThere = async ({ target, merchantId }: MoveEnds): Promise<boolean> =>
  (await readMove(target.database.work, merchantId))?.state === 'arrived'

/** All that is done while the merchant is in use. */
async function copyBefore(parts: MoveParts, move: Move): Promise<void> {
  await leaveContested(parts, move)
  await copyInUse(parts, move)
  await leaveContested(parts, move)
}

async function copyInUse(parts: MoveParts, move: Move): Promise<void> {
  const { source, target, tell } = parts
  const tables = await movedTables(source.database.work)
  for (let before = Infinity; ; ) {
    const began = source.clock.elapsed()
    await shareTokens(source.database.work, target.database.work, move)
    const { rows, written, bytes } = await copyAll(parts, tables, move, false)
    const seconds = (source.clock.elapsed() - began) / 1000
    tell('copied', `${written} of ${rows} rows copied in ${seconds.toFixed(1)} s, while it is in use.`)
    const left = Math.max(written, bytes / leftMost.bytesOfRow)
    if (left <= leftMost.rows || left > before / 2) return
    before = left
  }
}

/** From the freeze to the hand-over, in bounded time; what fails before the hand-over is undone. */
async function takeOver(parts: MoveParts, move: Move): Promise<void> {
  const { source, refusalSeconds } = parts
  // Who interrupts is heard between the freeze and the hand-over: of a step that is under way nobody knows whether it is done.
  const done = freeze(parts, move)
    .then(() => Promise.race([takeOut(parts, move), untilInterrupted(parts)]))
    .then(counted => handOver(parts, move, counted))
  done.catch(() => {}) // one that comes after its time finds that its step is not the next one
  let timer: { cancel(): void } | undefined
  const late = new Promise<never>((_, reject) => {
    timer = source.clock.after(refusalSeconds * 1000, () =>
      reject(new OperatorError(`It took longer than ${refusalSeconds} seconds, for which the merchant may be refused.`)),
    )
  })
  try {
    await Promise.race([done, late])
  } catch (error) {
    throw await undo(parts, move, error as Error)
  } finally {
    timer?.cancel()
  }
}

/** `what`: a sentence more. */
function untilInterrupted({ interrupted }: MoveParts, what = ''): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(new OperatorError(`It was interrupted.${what}`))
    if (interrupted?.aborted) end()
    interrupted?.addEventListener('abort', end, { once: true })
  })
}

/** Refuses what comes. */
async function freeze({ source, tell }: MoveParts, move: Move): Promise<void> {
  await inTransaction(source.database.work, async db => {
    await stepMove(db, move, onTheWay, { state: 'frozen', here: false }, source.clock.real())
    await announceChange(db)
  })
  tell('frozen', 'New requests are refused.')
}

/** Waits for what is under way, puts up the fence, copies the rest. Returns what both cells hold. */
async function takeOut(parts: MoveParts, move: Move): Promise<Counted> {
  const { source, merchantId, patienceSeconds, tell } = parts
  const { clock, database } = source
  const tables = await movedTables(database.work)
  const until = clock.elapsed() + patienceSeconds * 1000
  await clock.sleep(hearMilliseconds)
  while (clock.elapsed() < until && (await countTaken(database.work, merchantId, clock.real())) > 0)
    await clock.sleep(pauseMilliseconds)
  await fence(source, tables, move)
  await inTransaction(database.work, async db => {
    await stepMove(db, move, ['frozen'], { state: 'fenced', here: false }, clock.real())
    await giveNumbers(db, await accountsOf(db, merchantId), 'elsewhere')
  })
  tell('fenced', 'Nothing is written for it any more.')
  const taken = await accountsTaken(source, parts.target, merchantId)
  if (taken.length > 0) throw new OperatorError(taken.join('\n'))
  const { written, counted } = await copyAll(parts, tables, move, true)
  const { differing, unsure } = await copyAround(parts, move, 'behind the fence')
  const reasons = [
    ...(await reasonsToStay(database.work, merchantId)),
    ...(await groupsThatDiffer(source, parts.target, merchantId)),
    ...(await channelsRefused(source, parts.target, merchantId)),
  ]
  if (reasons.length > 0) throw new OperatorError(reasons.join('\n'))
  tell('compared', `${written} rows in pages that had changed are copied; both cells hold the same.`)
  if (differing > 0)
    tell(
      'compared',
      `${differing} entries for the risk check of its division or psp differ, and other merchants of ${parts.target.name} use them: they stay.`,
    )
  for (const { id, label } of unsure)
    tell(
      'compared',
      `Token ${id} (${label}) may be one that was revoked in ${parts.target.name}, under another lookup key: if it is, \`tollgate revoke ${id}\` there revokes it.`,
    )
  return counted
}

/** From the second transaction on the other cell serves it. */
async function handOver({ source, target, merchantId, tell }: MoveParts, move: Move, counted: Counted): Promise<void> {
  await stepMove(source.database.work, move, ['fenced'], { state: 'handing', here: false, counted }, source.clock.real())
  tell('handing', 'It is handed over.')
  await inTransaction(target.database.work, async db => {
    await stepMove(db, move, ['arriving'], { state: 'arrived', here: true, counted }, target.clock.real())
    await giveNumbers(db, await accountsOf(db, merchantId), 'here')
    await announceChange(db)
    await record(db, target, [
      { action: 'merchantArrived', entityId: merchantId, subject: merchantId, details: { from: source.name } },
    ])
  })
  tell('arrived', `${target.name} has taken over.`)
}

const leave = ({ source, target, merchantId }: MoveEnds, move: Move): Promise<void> =>
  inTransaction(source.database.work, async db => {
    await stepMove(db, move, ['handing'], { state: 'moved', here: false }, source.clock.real())
    await announceChange(db)
    await record(db, source, [
      { action: 'merchantLeft', entityId: merchantId, subject: merchantId, details: { to: target.name } },
    ])
  })

/** The error that is to be told, after the merchant is served where it was, if it can be. */
async function undo({ source, target }: MoveEnds, move: Move, error: Error): Promise<Error> {
  const told = (what: string) => new OperatorError(`${error.message}\n${what}`)
  const now = await readMove(source.database.work, move.merchantId).catch(() => undefined)
  if (now?.run !== move.run) return told('Give the command again: it finds out how far the move is.')
  if (now.state === 'handing' || now.state === 'moved')
    return told(`${target.name} may have taken over: the merchant is refused until the same command is given again and goes on.`)
  return serveAgain(source, move, 'copying').then(
    () => told(servedText(source)),
    () => told('The merchant is refused until the same command is given again, or the move is given up with --back.'),
  )
}

const servedText = ({ name }: MoveSide): string =>
  `${name} serves the merchant as before. The same command goes on with what is copied.`

/** The fence goes first: until then nobody serves it. */
async function serveAgain(source: MoveSide, move: Move, state: 'copying' | 'stayed'): Promise<void> {
  const { clock, database } = source
  const { merchantId, other: to } = move
  const from: readonly MoveState[] = state === 'stayed' ? onTheWay : ['frozen', 'fenced', 'returning']
  await stepMove(database.work, move, from, { state: 'returning', here: false }, clock.real())
  await unfence(source, move, 'returning')
  await inTransaction(database.work, async db => {
    await stepMove(db, move, ['returning'], { state, here: true }, clock.real())
    await giveNumbers(db, await accountsOf(db, merchantId), 'here')
    await announceChange(db)
    await record(db, source, [{ action: 'merchantStayed', entityId: merchantId, subject: merchantId, details: { to } }])
  })
}

/** The merchant's chains in both cells: what was left behind stands still, what was moved is in use again. Returns how many rows were moved. */
async function examineBoth({ source, target, merchantId, tell }: MoveParts): Promise<number> {
  const reports = await Promise.all([source, target].map(({ database }) => examine(database.reports, 0, merchantId)))
  const findings = [source, target].flatMap(({ name }, at) => reports[at]!.findings.map(finding => `${name}: ${finding}`))
  if (findings.length > 0) throw new OperatorError(`The merchant has moved, and its books say:\n${findings.join('\n')}`)
  tell('examined', `${reports[0]!.payments} payments were moved. In both cells the books agree with the operations.`)
  const { counted } = (await readMove(source.database.work, merchantId))!
  return Object.values(counted ?? {}).reduce((all, one) => all + one.rows, 0)
}
