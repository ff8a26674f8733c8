// Who has a merchant, by what several cells say of it. A cell that was put back to an earlier moment says what was true then; the other end of a move, which has
// gone on, has a row of a later run.

import type { Move, MoveState } from './store.ts'

/** `has`: it serves the merchant, or would. `passed`: it has sent the merchant on, and another one has it. */
export type Claim = { readonly kind: 'has' | 'passed'; readonly cell: string; readonly move: Move }

export type OthersMove = { readonly cell: string; readonly move: Move }

const sentOn: readonly MoveState[] = ['moved', 'forgetting', 'forgotten']

/** What other cells have of a merchant that `own`, the row of a cell that serves it or did, does not know: the latest. */
export function claimOn(own: Move | undefined, others: readonly OthersMove[]): Claim | undefined {
  const later = others
    .filter(({ move }) => isLater(own, move))
    .map(({ cell, move }): Claim => ({ kind: sentOn.includes(move.state) ? 'passed' : 'has', cell, move }))
    .sort((one, other) => other.move.run - one.move.run)
  return later.find(({ kind }) => kind === 'has') ?? later[0]
}

/** What has not arrived, or was given up, is nobody's but its old cell's. */
function isLater(own: Move | undefined, move: Move): boolean {
  const { direction, run, moveId } = move
  if (hasNothing(move)) return false
  if (direction === 'arriving' && own?.direction === 'leaving' && own.run === run) return own.moveId === moveId
  return run > (own?.run ?? 0)
}

/** Whether a cell has a merchant by its own row, though it may refuse it for a time. */
export const isAtHome = (own: Move | undefined): boolean =>
  own === undefined || own.here || !(own.state === 'arriving' || sentOn.includes(own.state))

/** A cell that serves a merchant, or would if it were not held, and knows nothing of its last move. */
export const mayServe = (own: Move | undefined): boolean => own === undefined || own.here || own.putBackAt !== null

/** Who went from one cell to another that has nothing of it: it was put back to before that. */
export type LostArrival = { readonly merchantId: string; readonly from: string; readonly to: string; readonly why: string }

/** `own`: all rows of the cell `to`. `atHome`: merchants who are in it. A later row elsewhere has the word. */
export function lostArrivals(
  to: string,
  own: readonly Move[],
  atHome: ReadonlySet<string>,
  others: readonly OthersMove[],
): LostArrival[] {
  const ours = new Map(own.map(move => [move.merchantId, move]))
  return others.flatMap(({ cell, move }) => {
    const { merchantId, run } = move
    const there = ours.get(merchantId)
    const isSent = move.direction === 'leaving' && sentOn.includes(move.state) && move.other === to
    const hasEnd = there !== undefined && (there.run > run || (there.run === run && there.state !== 'arriving'))
    const isOver = others.some(one => one.move.merchantId === merchantId && hasIt(one.move, run))
    if (!isSent || hasEnd || isOver || atHome.has(merchantId)) return []
    const why = `${cell} has handed it over to ${to}, which does not have it: restore ${to} to after that${orServe({ cell, move })}`
    return [{ merchantId, from: cell, to, why }]
  })
}

/** At this run or a later one: also a cell whose name is another by now. */
const hasIt = (move: Move, run: number): boolean =>
  (move.run > run && !hasNothing(move)) || (move.run === run && move.state === 'arrived')

/** It was on its way there, and never came. */
const hasNothing = ({ direction, state }: Move): boolean => direction === 'arriving' && state !== 'arrived'

/** What can be done instead where the old cell has not forgotten. */
export const orServe = ({ cell, move }: OthersMove): string =>
  move.state === 'moved'
    ? `, or serve what ${cell} had of it until then: \`tollgate cells restored --cells FILE --cell ${cell} --serve ${move.merchantId}\``
    : ''

export const lostText = ({ merchantId, why }: LostArrival): string => `The merchant ${merchantId} is served by no cell: ${why}.`
