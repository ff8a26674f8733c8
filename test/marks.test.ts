// What we gave out is known again before the database is asked, and then waits for no crowd behind the same address.

import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { describe, it } from 'node:test'
import type pg from 'pg'
import { checkoutId, openCheckout, wireIdOf } from '../src/checkouts/checkout.ts'
import type { CheckoutParts } from '../src/checkouts/parts.ts'
import { makeAddresses, readToken, tokenOf } from '../src/payments/redirects/tokens.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { askedBy, asksFor, fairPool } from '../src/platform/database/fairPool.ts'
import { isMarked, marked } from '../src/vault/marks.ts'
import { testKeys } from './support/gateway.ts'

const merchantId = '5a11d0000000000000000000000000e1'
const chance = '0123456789abcdef0123456789abcdef'
const parts = {
  keys: testKeys,
  random: systemRandom,
  directory: { merchantOfTail: () => merchantId, mustServe() {} },
} as unknown as CheckoutParts

describe('a mark', () => {
  for (const mark of [
    { signs: 8, encoding: 'hex' },
    { signs: 8, encoding: 'base64url' },
  ] as const)
    it(`of ${mark.encoding} is on what was marked, and on nothing else`, () => {
      const text = marked(testKeys, 'a name', mark)
      assert.equal(text.length, 'a name'.length + mark.signs)
      assert.ok(isMarked(testKeys, text, mark))
      const last = text.endsWith('0') ? '1' : '0'
      for (const other of [`b${text.slice(1)}`, text.slice(0, -1) + last, text.slice(0, -1), '', 'a name'])
        assert.ok(!isMarked(testKeys, other, mark), other)
    })

  it('is good under an older lookup key', () => {
    const [newest] = testKeys.lookup
    const changed = { ...testKeys, lookup: [{ ...newest!, key: createSecretKey(Buffer.alloc(32, 7)) }, ...testKeys.lookup] }
    const mark = { signs: 8, encoding: 'hex' } as const
    assert.ok(isMarked(changed, marked(testKeys, 'a name', mark), mark))
    assert.ok(isMarked(changed, marked(changed, 'a name', mark), mark))
    assert.ok(!isMarked(testKeys, marked(changed, 'a name', mark), mark))
  })
})

/** At which place comes what is asked behind a crowd of the same address. `looks`: each of that asks for something of its own, which was asked for by nobody. */
async function placeBehindCrowd(ask: (pool: pg.Pool) => unknown, looks = false): Promise<number> {
  const begun: unknown[] = []
  const ends: (() => void)[] = []
  const query = (text: unknown) => {
    begun.push(text)
    return new Promise(resolve => ends.push(() => resolve({ rows: [] })))
  }
  const pool = fairPool({ query } as unknown as pg.Pool, systemClock, 60, 1)
  const crowd = Array.from({ length: 20 }, (_, at) =>
    askedBy('carrier', () => {
      if (looks) asksFor(`${at}`)
      return pool.query('crowd')
    }),
  )
  const own = Promise.resolve(askedBy('carrier', () => ask(pool))).catch(() => {})
  const settled = () => new Promise(resolve => setImmediate(resolve))
  for (let at = 0; at < ends.length; at++) {
    ends[at]!()
    await settled()
  }
  await Promise.all([...crowd, own])
  return begun.findIndex(text => text !== 'crowd')
}

describe('what we gave out', () => {
  const open = (id: string) =>
    placeBehindCrowd(pool => openCheckout({ ...parts, database: { work: pool } } as never, wireIdOf(merchantId, id)))

  it('waits for no crowd: a checkout', async () => {
    const id = checkoutId(parts, chance)
    assert.match(id, /^0123456789abcdef01234567[0-9a-f]{8}$/)
    assert.ok((await open(id)) <= 3)
    assert.ok((await open(chance)) >= 20, 'somebody made it up')
  })

  it('waits for none that only looks, where it is pressed, or was given to whoever has pressed', async () => {
    const openIn = (pool: pg.Pool, isPressed: boolean) =>
      openCheckout({ ...parts, database: { work: pool } } as never, wireIdOf(merchantId, checkoutId(parts, chance)), isPressed)
    assert.ok((await placeBehindCrowd(pool => openIn(pool, true), true)) <= 3)
    assert.ok((await placeBehindCrowd(pool => openIn(pool, false), true)) >= 20)
    const token = tokenOf(makeAddresses(parts, 'https://pay.example', merchantId).page)
    const redirected = (pool: pg.Pool) => {
      readToken(parts, 'page', token)
      return pool.query('own')
    }
    assert.ok((await placeBehindCrowd(redirected, true)) <= 3)
  })

  it('waits for no crowd: the addresses of a redirect', async () => {
    const read = (kind: 'page' | 'notice', token: string) =>
      placeBehindCrowd(pool => {
        assert.equal(readToken(parts, kind, token)?.merchantId, merchantId)
        return pool.query('own')
      })
    const { page, notice } = makeAddresses(parts, 'https://pay.example', merchantId)
    const tokens = [page, notice].map(tokenOf)
    assert.notEqual(tokens[0], tokens[1])
    for (const token of tokens) {
      assert.match(token, /^[A-Za-z0-9_-]{22}\.[0-9a-z]{1,25}$/, 'as gateways of an older release know them')
      assert.ok((await read('page', token)) <= 3)
      const [secret, tail] = token.split('.')
      const other = secret!.endsWith('A') ? 'B' : 'A'
      assert.ok((await read('notice', `${secret!.slice(0, -1)}${other}.${tail}`)) >= 20, 'of an older release, or made up')
      for (const length of [21, 23]) assert.equal(readToken(parts, 'page', `${'A'.repeat(length)}.${tail}`), undefined)
    }
  })
})
