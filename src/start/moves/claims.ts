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
function isLater(own: Move | undefined, { direction, state, run, moveId }: Move): boolean {
  if (direction === 'arriving' && state !== 'arrived') return false
  if (direction === 'arriving' && own?.direction === 'leaving' && own.run === run) return own.moveId === moveId
  return run > (own?.run ?? 0)
}

/** A cell that serves a merchant, or would if it were not held, and knows nothing of its last move. */
export const mayServe = (own: Move | undefined): boolean => own === undefined || own.here || own.putBackAt !== null
