// Who comes next where many wait for a few places: turns at one thing, of all together, of callers and of merchants, of chains and of the connections of a pool.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type pg from 'pg'
import { type Clock, systemClock, type Timer } from '../src/platform/clock.ts'
import { chainsOf, connect, type Database, forShoppers } from '../src/platform/database/connect.ts'
import { NoTurn, WriteTimeout } from '../src/platform/database/errors.ts'
import { askedBy, asksFor, fairPool, triedBefore, waitingFor } from '../src/platform/database/fairPool.ts'
import { firstOrLeast, leastFirst, takeTurns } from '../src/platform/database/turns.ts'
import { makeDatabase } from './support/database.ts'
import { eventually } from './support/gateway.ts'

describe('turns', () => {
  it('come one after the other, are given up in time, and are bounded', async () => {
    const inTurn = takeTurns(systemClock, 0.3, 2)
    let running = 0
    const order: number[] = []
    const one = (name: number, until: Promise<unknown>) =>
      inTurn('chain', async () => {
        assert.equal(++running, 1)
        await until
        running--
        order.push(name)
      })
    let finish = () => {}
    const first = one(1, new Promise<void>(resolve => (finish = resolve)))
    const others = [2, 3].map(name => one(name, Promise.resolve()))
    await assert.rejects(one(4, Promise.resolve()), WriteTimeout) // more than may wait
    await inTurn('another chain', async () => {})
    for (const other of others) await assert.rejects(other, WriteTimeout)
    const last = one(5, Promise.resolve())
    finish()
    await Promise.all([first, last])
    assert.deepEqual(order, [1, 5])
  })

  it('are as many at a time as they are said to be; one that ends lets in the next', async () => {
    const inTurn = takeTurns(systemClock, 60, 2, 3)
    const ends: (() => void)[] = []
    const one = () => inTurn('merchant', () => new Promise<void>(resolve => ends.push(resolve)))
    const all = Array.from({ length: 5 }, one)
    await assert.rejects(one(), WriteTimeout)
    await eventually(async () => ends.length === 3, 'three have come')
    ends[1]!()
    await all[1]
    await eventually(async () => ends.length === 4, 'the next has come')
    for (const end of ends) end()
    await eventually(async () => ends.length === 5, 'and the last')
    ends[4]!()
    await Promise.all(all)
  })
})

describe('turns of tries', () => {
  it('go to who has tried less, of equals to who came first, and nobody gives up one that has come', async () => {
    const inTurn = takeTurns(systemClock, 60, 10, 2)
    const ends: (() => void)[] = []
    const order: string[] = []
    const one = (name: string) => {
      const begin = () => {
        order.push(name)
        return new Promise<void>(resolve => ends.push(resolve))
      }
      return inTurn('key', begin, Number(name[1] ?? 0))
    }
    const all = ['a9', 'b8', 'c2', 'd1', 'e', 'f1', 'g', 'h2'].map(one)
    for (let at = 0; at < all.length; at++) {
      await eventually(async () => ends.length > at, 'the next has come')
      ends[at]!()
    }
    await Promise.all(all)
    assert.deepEqual(order, ['a9', 'b8', 'e', 'g', 'd1', 'f1', 'c2', 'h2'])
  })

  it('take the place of who has tried most where too many wait', async () => {
    const timer: Timer = { cancel() {}, unref: () => timer }
    const inTurn = takeTurns({ ...systemClock, after: () => timer }, 60, 2)
    let end = () => {}
    const first = inTurn('key', () => new Promise<void>(resolve => (end = resolve)), 7)
    const order: string[] = []
    const [second, third] = [5, 3].map(tries => inTurn('key', async () => void order.push(`${tries}`), tries))
    const refused = assert.rejects(second!, NoTurn)
    await assert.rejects(
      inTurn('key', async () => {}, 5),
      NoTurn,
    )
    const fourth = inTurn('key', async () => void order.push('4'), 4)
    await refused
    await assert.rejects(
      inTurn('key', async () => {}, 4),
      NoTurn,
    )
    // Two at once take the places of two.
    const lost = [third!, fourth].map(one => assert.rejects(one, NoTurn))
    const both = [1, 0].map(tries => inTurn('key', async () => void order.push(`${tries}`), tries))
    await Promise.all(lost)
    end()
    await Promise.all([first, ...both])
    assert.deepEqual(order, ['0', '1'])
    assert.equal(await inTurn('key', async () => 'done'), 'done')
  })
})

describe('turns of all', () => {
  it('go to whoever has used least of late, and are given up in time', async () => {
    let elapsed = 0
    const inTurn = leastFirst({ ...systemClock, elapsed: () => elapsed }, 60, 2)
    const order: string[] = []
    const ends: (() => void)[] = []
    const one = (key: string, name = key) =>
      inTurn(key, async () => {
        order.push(name)
        await new Promise<void>(resolve => ends.push(resolve))
      })
    const end = async (took: number) => {
      elapsed += took
      const before = order.length
      ends.shift()!()
      await eventually(async () => order.length > before || ends.length === 0, 'the next comes')
    }
    const all = [one('much', 'much 1'), one('much', 'much 2'), one('much', 'much 3'), one('much', 'much 4')]
    await eventually(async () => order.length === 2, 'two at a time')
    await end(3000)
    assert.deepEqual(order, ['much 1', 'much 2', 'much 3'])
    all.push(one('little'), one('less'))
    await end(1000)
    await end(1000)
    assert.deepEqual(order.slice(3), ['little', 'less'], 'who came last has used least')
    await end(500)
    assert.equal(order.at(-1), 'much 4')
    for (const each of ends.splice(0)) each()
    await Promise.all(all)
    // What was used is forgotten: who comes first is first again.
    elapsed += 600_000
    const again = [one('a'), one('b'), one('much', 'much again'), one('little', 'little again')]
    await eventually(async () => ends.length === 2, 'two at a time')
    for (let at = 0; at < 2; at++) await end(1)
    for (const each of ends) each()
    await Promise.all(again)
    assert.deepEqual(order.slice(-2), ['much again', 'little again'])
    const late = leastFirst(systemClock, 0.2, 1)
    let finish = () => {}
    const first = late('a', () => new Promise<void>(resolve => (finish = resolve)))
    await assert.rejects(
      late('b', async () => {}),
      NoTurn,
    )
    finish()
    await first
    assert.equal(await late('b', async () => 'done'), 'done')
  })
})

describe('turns of a rush', () => {
  /** Who came, by his letter and his place among all who were there at once. */
  const orderOf = async (names: string, abreast: number, used = '') => {
    const rush = leastFirst(systemClock, 60, 1, { cost: () => 1, abreast })
    for (const name of used) await rush(name, async () => {})
    const order: string[] = []
    await Promise.all([...names].map((name, at) => rush(name, async () => void order.push(`${name}${at}`))))
    return order.join(' ')
  }

  it('go by the order in which all came, a few of each at a time, and to whoever has used least', async () => {
    assert.equal(await orderOf('aaaaabcbd', 2), 'a0 a1 b5 c6 a2 d8 b7 a3 a4')
    assert.equal(await orderOf('aaaaabcbd', 1), 'a0 a1 b5 c6 b7 d8 a2 a3 a4')
    assert.equal(await orderOf('aaaaabcbd', 0), 'a0 b5 c6 d8 a1 b7 a2 a3 a4')
  })

  it('come to whoever has used much as well, however many have used less', async () => {
    assert.equal(await orderOf('xabdecfgh', 1, 'ccccccccc'), 'x0 a1 b2 d3 e4 f6 g7 c5 h8')
  })

  it('come to whoever asks for something of his own, of what was asked for least, however many share his key', async () => {
    let elapsed = 0
    const rush = leastFirst({ ...systemClock, elapsed: () => elapsed }, 60, 1, { cost: () => 1, abreast: 1 })
    const order: string[] = []
    const one = (asked: string) => {
      const [key = '', name, weight = 1] = asked.split(':')
      const named = name === undefined ? undefined : { name, weight: Number(weight) }
      return rush(key, async () => void order.push(asked), named)
    }
    for (const asked of ['many:old', 'many:old', 'many:older', 'many:older', 'many:older']) await one(asked)
    order.splice(0)
    const all = ['x', 'many', 'many', 'many:older', 'many:old', 'many:new', 'a', 'b', 'c', 'd', 'e', 'f', 'g:also', 'h']
    await Promise.all(all.map(one))
    assert.equal(order.join(' '), 'x many:new many a g:also b c many:old d e many:older f h many')
    elapsed += 60_000
    order.splice(0)
    await Promise.all(['x', 'a:older', 'b:new', 'c:older', 'd:new', 'e:older', 'f:new'].map(one))
    assert.equal(order.join(' '), 'x a:older b:new c:older d:new e:older f:new', 'what was asked for is forgotten')
    for (let times = 0; times < 8; times++) await one('x:heavy')
    for (let times = 0; times < 3; times++) await one('x:light')
    order.splice(0)
    await Promise.all(['x', 'a', 'b', 'c', 'd:light', 'e:heavy:0.25', 'f'].map(one))
    assert.ok(order.indexOf('e:heavy:0.25') < order.indexOf('d:light'), `${order}: as little of it counts`)
  })

  it('come to whoever stands behind his own before those who come later', async () => {
    const rush = leastFirst(systemClock, 60, 1, { cost: () => 1, abreast: 1 })
    const order: string[] = []
    const all: Promise<void>[] = []
    const one = (name: string, then = '') =>
      all.push(
        rush(name, async () => {
          order.push(name)
          for (const next of then) one(next)
        }),
      )
    for (let times = 0; times < 9; times++) await rush('a', async () => {})
    one('x')
    one('a', 'bcdefghi')
    one('a')
    for (let at = 0; at < all.length; at++) await all[at]
    assert.equal(order.join(''), 'xabcadefghi')
  })

  it('are not lost by whoever gives up, nor by those behind him', async () => {
    const late: (() => void)[] = []
    const clock: Clock = {
      ...systemClock,
      after(_, act) {
        late.push(act)
        const timer: Timer = { cancel() {}, unref: () => timer }
        return timer
      },
    }
    const rush = leastFirst(clock, 60, 1, { cost: () => 1, abreast: 1 })
    const order: string[] = []
    let end = () => {}
    const first = rush('x', () => new Promise<void>(resolve => (end = resolve)))
    const all = ['a', 'a', 'b', 'c'].map((name, at) => rush(name, async () => void order.push(`${name}${at}`)))
    await Promise.all([late[0]!, late[3]!].map(async giveUp => giveUp()))
    await Promise.all([0, 3].map(at => assert.rejects(all[at]!, NoTurn)))
    end()
    await Promise.all([first, all[1], all[2]])
    assert.deepEqual(order, ['a1', 'b2'])
  })
})

describe('turns of callers and of places', () => {
  let elapsed: number
  let turns: ReturnType<typeof firstOrLeast>
  const late: (() => void)[] = []
  const clock: Clock = {
    ...systemClock,
    elapsed: () => elapsed,
    after(_, act) {
      late.push(act)
      const timer: Timer = { cancel() {}, unref: () => timer }
      return timer
    },
  }
  beforeEach(() => {
    elapsed = 0
    late.length = 0
    turns = firstOrLeast(clock, 60, 1)
  })
  /** `caller@place`, and behind another `@` how often the same was tried. */
  const at = (named: string) => {
    const [caller = '', place = '', tries = 0] = named.split('@')
    return { caller, place, tries: Number(tries) }
  }
  /** They were there before, so long in all. */
  const used = (named: string, milliseconds: number) =>
    turns(at(named), async () => {
      elapsed += milliseconds
    })
  /** In which order they come who all came while another was there. */
  const orderOf = async (...names: string[]): Promise<string[]> => {
    let end = () => {}
    const order: string[] = []
    const first = turns(at('x@x'), () => new Promise<void>(resolve => (end = resolve)))
    const all = names.map(named => turns(at(named), async () => void order.push(named)))
    end()
    await Promise.all([first, ...all])
    return order
  }

  it('come to who is new where much is done, however many places another asks at', async () => {
    await used('a@busy', 2000)
    for (const named of ['s@1', 's@2', 's@3', 's@4']) await used(named, 50)
    const order = await orderOf('s@1', 's@2', 's@3', 's@4', 's@5', 'new@busy', 'also@busy')
    assert.deepEqual(order, ['s@1', 'new@busy', 's@5', 's@2', 'also@busy', 's@3', 's@4'])
  })

  it('come to who is elsewhere than a crowd, however many those are', async () => {
    await used('a@crowded', 300)
    const order = await orderOf('b@crowded', 'c@crowded', 'd@crowded', 'e@crowded', 'a@quiet', 'a@still')
    assert.deepEqual(order, ['b@crowded', 'c@crowded', 'a@quiet', 'd@crowded', 'e@crowded', 'a@still'])
  })

  it('come to who has tried least as well, however many came before, and however much he has used', async () => {
    await used('carrier@busy', 5000)
    const again = Array.from({ length: 6 }, (_, one) => `n${one}@${one}@${1 + (one % 2)}`)
    const order = await orderOf(...again, 'carrier@busy', 'carrier@busy@1', 'carrier@quiet')
    assert.deepEqual(order, [
      ...['carrier@busy', 'n0@0@1', 'n2@2@1', 'carrier@quiet', 'n4@4@1', 'n1@1@2'],
      ...['carrier@busy@1', 'n3@3@2', 'n5@5@2'],
    ])
  })

  it('come to who came first as well, however much he has used and is done where he asks', async () => {
    await used('carrier@busy', 5000)
    const order = await orderOf('a@1', 'b@2', 'carrier@busy', 'c@3', 'd@4', 'e@5', 'f@6')
    assert.deepEqual(order, ['a@1', 'b@2', 'c@3', 'carrier@busy', 'd@4', 'e@5', 'f@6'])
  })

  it('come at one place to the caller who has used least, of equals to who came first', async () => {
    await used('much@1', 300)
    await used('more@2', 400)
    assert.deepEqual(await orderOf('more@1', 'much@1', 'b@1', 'a@1', 'more@1'), ['more@1', 'b@1', 'a@1', 'much@1', 'more@1'])
    // What was used is forgotten, of callers and at places.
    elapsed += 600_000
    assert.deepEqual(await orderOf('more@1', 'much@2', 'b@1', 'a@3'), ['more@1', 'much@2', 'b@1', 'a@3'])
  })

  it('come to so many at a time, and to nobody who has given up', async () => {
    turns = firstOrLeast(clock, 60, 2)
    const ends: (() => void)[] = []
    const order: string[] = []
    const all = ['a', 'b', 'c', 'd'].map(caller =>
      turns(at(caller), () => new Promise<void>(end => ends.push(end) && order.push(caller))),
    )
    assert.deepEqual(order, ['a', 'b'])
    late[0]!()
    await assert.rejects(all[2]!, NoTurn)
    ends[0]!()
    await all[0]
    await eventually(async () => order.length === 3, 'the next comes')
    assert.deepEqual(order, ['a', 'b', 'd'])
    for (const end of ends) end()
    await Promise.all([all[1], all[3]])
    assert.equal(await turns(at('e@'), async () => 'done'), 'done')
  })

  it('pass on what failed', async () => {
    await assert.rejects(
      turns(at('a@1'), () => Promise.reject(new Error('failed'))),
      /failed/,
    )
    assert.deepEqual(await orderOf('b@1'), ['b@1'])
  })
})

describe('chains', () => {
  const [mine, yours] = ['5a11d0000000000000000000000000e1', '5a11d0000000000000000000000000e2']
  let server: Awaited<ReturnType<typeof makeDatabase>>
  let database: Database
  let ends: (() => void)[]
  /** Of whom those were that have begun; each goes on until it is ended. */
  let begun: string[]
  const begin = (of: string, { inChain }: Pick<Database, 'inChain'>, merchantId: string, chain: number) =>
    inChain(
      merchantId,
      chain.toString(16).padStart(32, '0'),
      async () => begun.push(of),
      () => new Promise<void>(end => ends.push(end)),
    )
  const haveBegun = (count: number) => eventually(async () => ends.length === count, `${count} have begun`)
  /** In a chain, with nothing to read before. */
  const takes = <Value>({ inChain }: Pick<Database, 'inChain'>, merchantId: string, chain: string, work: () => Value) =>
    inChain(
      merchantId,
      chain,
      async () => {},
      async () => work(),
    )
  /** Whatever waits. */
  const isDone = (of: Pick<Database, 'inChain'>, merchantId: string) => takes(of, merchantId, 'f'.repeat(32), () => true)
  beforeEach(async () => {
    server = await makeDatabase()
    database = connect(server.connection, systemClock, error => assert.fail(error))
    ends = []
    begun = []
  })
  const all: Promise<unknown>[] = []
  const endAll = async () => {
    for (let at = 0; at < all.length; at++) {
      await eventually(async () => ends.length > at, 'the next has begun')
      ends[at]!()
    }
    await Promise.all(all.splice(0))
  }
  afterEach(async () => {
    await endAll()
    await database.close()
    await server.drop()
  })

  it('of one merchant leave connections to those of others, however many wait', async () => {
    for (let at = 0; at < 20; at++) all.push(begin('mine', database, mine, at))
    await haveBegun(chainsOf.merchant)
    assert.equal(await isDone(database, yours), true)
    assert.equal(begun.length, chainsOf.merchant)
  })

  it('of shoppers and of a merchant do not wait for each other, and others for neither', async () => {
    const shoppers = forShoppers(database, systemClock)
    const press = (network: string, at: number) => askedBy(network, () => begin(network, shoppers, mine, at))
    for (let at = 0; at < 20; at++) all.push(begin('mine', database, mine, at))
    await haveBegun(chainsOf.merchant)
    assert.equal(await askedBy('shopper', () => isDone(shoppers, mine)), true)
    for (let at = 0; at < 20; at++) all.push(press(`crowd ${at % 2}`, 100 + at))
    await haveBegun(chainsOf.merchant + chainsOf.shoppers)
    assert.equal(await isDone(database, yours), true)
    all.push(press('other', 200))
    await endAll()
    const pressed = begun.filter(of => of !== 'mine')
    assert.ok(pressed.indexOf('other') <= chainsOf.shoppers + 2, `${pressed}`)
  })

  it('of shoppers of one merchant keep none of another’s waiting, from however many networks they come', async () => {
    const shoppers = forShoppers(database, systemClock)
    for (let at = 0; at < 60; at++) all.push(askedBy(`crowd ${at}`, () => begin('mine', shoppers, mine, at)))
    await haveBegun(chainsOf.shoppers)
    all.push(askedBy('crowd 0', () => begin('yours', shoppers, yours, 1)))
    await endAll()
    assert.ok(begun.indexOf('yours') <= chainsOf.shoppers + 3, `${begun}`)
  })

  it('of networks that press at all merchants keep no other’s waiting, where merchants have more to do than those', async () => {
    let elapsed = 0
    const shoppers = forShoppers(database, { ...systemClock, elapsed: () => elapsed })
    const shop = (at: number) => `5a11d0000000000000000000000001${at.toString(16).padStart(2, '0')}`
    const work = (network: string, merchantId: string) =>
      askedBy(network, () =>
        takes(shoppers, merchantId, '1'.repeat(32), () => {
          elapsed += 40
        }),
      )
    for (let at = 0; at < 20; at++) await work(`stranger ${at}`, shop(at))
    for (let at = 0; at < 6; at++) await work(`shopper ${at}`, mine)
    for (let at = 0; at < 60; at++)
      all.push(askedBy(`stranger ${at % 20}`, () => begin('stranger', shoppers, shop((7 * at) % 38), at)))
    await haveBegun(chainsOf.shoppers)
    for (let at = 0; at < 5; at++) all.push(askedBy(`new ${at}`, () => begin('new', shoppers, mine, at)))
    await endAll()
    assert.ok(begun.lastIndexOf('new') < chainsOf.shoppers + 3 * 5, `${begun}`)
  })

  it('of a narrow network keep none of another of the same wide one waiting, however many wait, nor refuse one', async () => {
    const shoppers = forShoppers(database, systemClock)
    const within = (at: number) => [`2001:db8:0:${at}::/64`, '2001:db8:0:0::/56', '2001:db8:0::/48']
    const press = (at: number, of: string, chain: number) => all.push(askedBy(within(at), () => begin(of, shoppers, mine, chain)))
    for (let at = 0; at < 204; at++) press(1, 'one', at)
    await haveBegun(chainsOf.shoppers)
    await assert.rejects(
      askedBy(within(1), () => isDone(shoppers, yours)),
      NoTurn,
    )
    for (let at = 0; at < 3; at++) press(2 + at, 'neighbour', 300 + at)
    // Of a wide network a few stand in the line of all.
    for (let at = 0; at < 40; at++) press(10 + at, 'many', 400 + at)
    all.push(askedBy('192.0.2.7', () => begin('other', shoppers, mine, 500)))
    await endAll()
    assert.ok(begun.lastIndexOf('neighbour') < 12, `${begun.slice(0, 20)}`)
    assert.ok(begun.indexOf('other') < 24, `${begun.slice(0, 30)}`)
  })

  it('of a wide network take few places before whoever comes later, also who has used more than all', async () => {
    let elapsed = 0
    const shoppers = forShoppers(database, { ...systemClock, elapsed: () => elapsed })
    await askedBy('carrier', () =>
      takes(shoppers, mine, 'f'.repeat(32), () => {
        elapsed += 1000
      }),
    )
    for (let at = 0; at < 60; at++)
      all.push(askedBy([`2001:db8:0:${at}::/64`, '2001:db8:0::/48'], () => begin('wide', shoppers, mine, at)))
    await haveBegun(chainsOf.shoppers)
    all.push(askedBy('carrier', () => begin('carrier', shoppers, mine, 100)))
    await endAll()
    assert.ok(begun.indexOf('carrier') < 24, `${begun}`)
  })

  for (const known of ['as is stored', 'as was seen here of late'] as const)
    it(`that were tried before, ${known}, keep no other waiting, from however many networks they come`, async () => {
      let elapsed = 0
      const shoppers = forShoppers(database, { ...systemClock, elapsed: () => elapsed })
      const press = (network: string, chain: number, milliseconds: number) =>
        askedBy(network, () =>
          takes(shoppers, mine, chain.toString(16).padStart(32, '0'), () => {
            elapsed += milliseconds
          }),
        )
      // Who has used more than all others, at the merchant where most was used, comes by no other turn.
      await press('carrier', 1000, 3000)
      if (known === 'as was seen here of late') for (let at = 0; at < 30; at++) await press(`stranger ${at}`, at, 0)
      const again = (at: number) =>
        askedBy(`stranger ${at}`, () => {
          if (known === 'as is stored') triedBefore(1)
          return begin('stranger', shoppers, mine, at)
        })
      for (let at = 0; at < 30; at++) all.push(again(at))
      await haveBegun(chainsOf.shoppers)
      all.push(askedBy('carrier', () => begin('carrier', shoppers, mine, 1001)))
      await endAll()
      assert.ok(begun.indexOf('carrier') < chainsOf.shoppers + 3, `${begun}`)
    })

  it('of shoppers that wait for one that is held keep nobody from a connection', async () => {
    const shoppers = forShoppers(database, systemClock)
    all.push(begin('mine', database, mine, 1))
    await haveBegun(1)
    for (let at = 0; at < 20; at++) all.push(askedBy(`crowd ${at}`, () => begin('crowd', shoppers, mine, 1)))
    assert.equal(await askedBy('shopper', () => isDone(shoppers, mine)), true)
    assert.deepEqual(begun, ['mine'])
  })
})

it('a pool of many gives its connections to whoever asks for something of his own, however many share his address', async () => {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const query = (name: string) => {
    begun.push(name)
    return new Promise<void>(resolve => ends.push(resolve))
  }
  const pool = fairPool({ query } as unknown as pg.Pool, systemClock, 60, 1)
  const ask = (network: string, name: string, named?: string) =>
    askedBy(network, () => {
      if (named !== undefined) asksFor(named)
      return pool.query(name)
    })
  const all = [ask('x', 'x'), ...'abcdefghi'.split('').map(name => ask('carrier', name)), ask('carrier', 'own', 'checkout')]
  for (let at = 0; at < all.length; at++) {
    await eventually(async () => ends.length > at, 'the next has begun')
    ends[at]!()
  }
  await Promise.all(all)
  assert.ok(begun.indexOf('own') < 4, `${begun}`)
})

it('a pool of many gives its connections to whoever has begun before those who ask for what was asked for less', async () => {
  const begun: string[] = []
  let end = () => {}
  const query = async (name: string) => {
    begun.push(name)
    if (name === 'held') await new Promise<void>(resolve => (end = resolve))
  }
  const pool = fairPool({ query } as unknown as pg.Pool, systemClock, 60, 1)
  const ask = (name: string, asked?: string) =>
    askedBy('carrier', () => {
      if (asked !== undefined) asksFor(asked)
      return pool.query(name)
    })
  for (const name of ['a', 'b', 'c', 'd']) await ask(name, name)
  const all: unknown[] = []
  await askedBy('carrier', async () => {
    asksFor('long')
    for (let times = 0; times < 8; times++) await pool.query('long')
    all.push(ask('held'))
    for (let times = 0; times < 9; times++) all.push(ask('crowd'))
    for (const name of ['a', 'b', 'c', 'd']) all.push(ask(name, name))
    begun.splice(0)
    all.push(pool.query('goes on'))
  })
  end()
  await Promise.all(all)
  assert.ok(begun.indexOf('goes on') < 3, `${begun}`)
})

it('a pool of many gives its connections in in their order, by statement and by transaction, and to who has asked for less than a crowd', async () => {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const released: unknown[] = []
  let isDown = false
  const fake = {
    waitingCount: 3,
    query: (name: string) => {
      begun.push(name)
      return new Promise<string>(resolve => ends.push(() => resolve(`rows of ${name}`)))
    },
    async connect() {
      if (isDown) throw new Error('no connection')
      return { release: (error: unknown) => void released.push(error) }
    },
  }
  const pool = fairPool(fake as unknown as pg.Pool, systemClock, 60, 2)
  const ask = (name: string) => askedBy('one', () => pool.query(name)) as unknown as Promise<string>
  const settled = () => new Promise(resolve => setImmediate(resolve))
  const first = ['a', 'b', 'c', 'd'].map(ask)
  const transaction = askedBy('other', () => pool.connect())
  const later = ['e', 'f', 'g', 'h'].map(ask)
  await settled()
  assert.deepEqual(begun, ['a', 'b'])
  const waiting = () => waitingFor(fake as unknown as pg.Pool)
  assert.equal(waiting(), 3 + 7, 'those of the pool, and those who wait for a turn')
  for (const end of [0, 1]) {
    ends[end]!()
    await settled()
  }
  const client = await transaction
  assert.deepEqual(begun, ['a', 'b', 'c'], 'the transaction has the turn')
  for (const end of [2, 3]) {
    ends[end]!()
    await settled()
  }
  assert.deepEqual(begun.slice(4), ['e'])
  client.release(true)
  client.release()
  await settled()
  assert.deepEqual([released, begun.slice(5)], [[true, undefined], ['f']], 'a turn is given back once')
  isDown = true
  const refused = assert.rejects(
    askedBy('other', () => pool.connect()),
    /no connection/,
  )
  for (const end of [4, 5, 6, 7]) {
    ends[end]!()
    await settled()
  }
  await refused
  assert.deepEqual(
    await Promise.all([...first, ...later]),
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(name => `rows of ${name}`),
  )
  assert.equal(waiting(), 3)
  const hasty = fairPool(fake as unknown as pg.Pool, systemClock, 0.01, 1)
  const last = hasty.query('i')
  await assert.rejects(hasty.query('j'), NoTurn)
  assert.equal(waiting(), 3, 'who has given up waits no more')
  ends[8]!()
  await last
})
