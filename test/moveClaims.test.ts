// Who has a merchant, by the rows of several cells: what each pair of rows says, without databases.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lostArrivals } from '../src/start/moves/claims.ts'
import type { Move, MoveState } from '../src/start/moves/store.ts'

const merchantId = 'a'.repeat(32)

const row = (state: MoveState, run: number, differing: Partial<Move> = {}): Move => ({
  merchantId,
  direction: state === 'arriving' || state === 'arrived' ? 'arriving' : 'leaving',
  state,
  here: state === 'arrived',
  other: 'two',
  run,
  moveId: `${run}`.repeat(32),
  counted: null,
  changedAt: 0,
  putBackAt: null,
  ...differing,
})

const lost = (own: Move | undefined, ...others: readonly Move[]) =>
  lostArrivals(
    'two',
    own ? [own] : [],
    new Set(),
    others.map(move => ({ cell: move.direction === 'leaving' ? 'one' : 'three', move })),
  ).map(({ from, to }) => `${from} ${to}`)

describe('who was handed over to a cell is lost', () => {
  it('when it has nothing of that, or what it has is of before', () => {
    assert.deepEqual(lost(undefined, row('moved', 2)), ['one two'])
    assert.deepEqual(lost(row('moved', 1, { other: 'one' }), row('moved', 2)), ['one two'])
  })
  for (const state of ['forgetting', 'forgotten'] as const)
    it(`also when the old cell has nothing of it any more: ${state}`, () => {
      assert.deepEqual(lost(undefined, row(state, 2)), ['one two'])
    })
  it('when a part was copied to it and no more, at an earlier run or this one', () => {
    assert.deepEqual(lost(row('arriving', 1), row('moved', 2)), ['one two'])
    assert.deepEqual(lost(row('arriving', 2), row('moved', 2)), ['one two'])
  })
  it('not when it has arrived, or has gone on', () => {
    assert.deepEqual(lost(row('arrived', 2), row('moved', 2)), [])
    assert.deepEqual(lost(row('moved', 3, { other: 'one' }), row('moved', 2)), [])
  })
  it('not when it was on its way only, to another cell, or a later row elsewhere has the word', () => {
    assert.deepEqual(lost(undefined, row('fenced', 2)), [])
    assert.deepEqual(lost(undefined, row('moved', 2, { other: 'three' })), [])
    assert.deepEqual(lost(undefined, row('moved', 2), row('arrived', 3)), [])
    // What never came to a third cell has no word.
    for (const state of ['forgotten', 'forgetting'] as const)
      assert.deepEqual(lost(undefined, row('moved', 2), row(state, 3, { direction: 'arriving', other: 'two' })), ['one two'])
    assert.deepEqual(lost(undefined, row('moved', 2), row('arriving', 3, { other: 'two' })), ['one two'])
  })
  it('not when another cell has arrived by this very move, whose name is another by now', () => {
    assert.deepEqual(lost(undefined, row('moved', 2), row('arrived', 2)), [])
  })
})
