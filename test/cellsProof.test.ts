// The short form of `npm run cells`: three cells as processes behind an HAProxy, one is killed, one merchant moves, and nothing is lost or doubled.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { brokenIn, prove } from '../scripts/cells/prove.ts'
import { makePlace } from '../scripts/highAvailability/programs.ts'
import { withoutHaproxy } from './support/cells.ts'

it('cells die and merchants move without loss', { skip: withoutHaproxy, timeout: 240_000 }, async () => {
  const place = makePlace()
  try {
    const proof = await prove(place, { merchantsPerCell: 2, moves: 1, thinkMilliseconds: 300, steadySeconds: 1 })
    assert.deepEqual(brokenIn(proof), [], JSON.stringify(proof))
    assert.ok(Object.keys(proof.killed.ownRefused).length > 0, 'the cell was dead')
    assert.ok(Object.values(proof.moved[0]!.refused).length > 0, 'the merchant was refused while it moved')
  } finally {
    await place.clear()
  }
})
