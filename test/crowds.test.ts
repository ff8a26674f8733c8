// Many at once: what a crowd of one caller may take from all others. Connections, bodies, requests under way, and looking at the same thing.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import net, { connect, type Socket } from 'node:net'
import { after, afterEach, before, describe, it } from 'node:test'
import type pg from 'pg'
import { sealValues } from '../src/checkouts/checkout.ts'
import type { Form } from '../src/contract/form.ts'
import type { FormCheck } from '../src/contract/formCheck.ts'
import type { HttpAnswer, Request } from '../src/http/answer.ts'
import { type Caller, isCaller, linesOf } from '../src/http/authenticate.ts'
import {
  knownMost,
  knownOfOneMost,
  networkUnfinishedMost,
  piecesMost,
  requestBytes,
  unfinishedBytesMost,
  unfinishedMost,
  untakenBytesMost,
  watchConnections,
} from '../src/http/connections.ts'
import { greetingsInTurn } from '../src/http/handshakes.ts'
import { healthRoutes } from '../src/http/health.ts'
import { listen, listenersMost } from '../src/http/listening.ts'
import type { HttpParts } from '../src/http/parts.ts'
import { connectionsMost, networkConnectionsMost, newcomersMost, serversMost } from '../src/http/places.ts'
import {
  crowdedBytesMost,
  crowdedOpeningsMost,
  largeBytesMost,
  merchantsMost,
  networkBytesMost,
  networkOpeningsMost,
  ofMerchantMost,
  ofNetworkMost,
  openingsMost,
  packetBytes,
  pipelinedMost,
  smallPiecesMost,
  tellingsMost,
  tlsCost,
  tlsPieceCost,
} from '../src/http/rates.ts'
import { makeRests } from '../src/http/rests.ts'
import { merchantsBytes } from '../src/http/room.ts'
import { router } from '../src/http/router.ts'
import { fairTurns, longBytes, merchantLine } from '../src/http/turns.ts'
import { holdTogether, networkRequestsMost, requestsHold } from '../src/http/underWay.ts'
import { type Admission, admit } from '../src/http/v1/admission.ts'
import { postCheckoutPayment } from '../src/http/v1/checkouts.ts'
import { withinRate } from '../src/http/v1/requestRate.ts'
import type { Channel } from '../src/merchants/directory.ts'
import { type Clock, systemClock, systemRandom, type Timer } from '../src/platform/clock.ts'
import { sizes } from '../src/platform/database/connect.ts'
import { askedBy, fairPool } from '../src/platform/database/fairPool.ts'
import { lookTogether } from '../src/platform/look.ts'
import { networksAround } from '../src/platform/network.ts'
import { costsTimes } from './support/costs.ts'
import { ended } from './support/ended.ts'
import { eventually, patient, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { heldMemory } from './support/memory.ts'
import { requestFrom } from './support/request.ts'
import { slowBank } from './support/slowBank.ts'

type FakeSocket = Socket & { closed: boolean }
const someAnswer = () => Object.assign(new EventEmitter(), { destroy() {} }) as unknown as ServerResponse

function makeWatch(
  isShared?: (address: string) => boolean,
  clock = systemClock,
  refuse?: (socket: Socket, caller: string) => void,
) {
  const connections = watchConnections(clock, undefined, isShared, refuse)
  const madeFrom = (remoteAddress: string, enter: (socket: Socket) => unknown): FakeSocket => {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      writableLength: 0,
      closed: false,
      destroy() {
        socket.closed = true
        socket.emit('close')
      },
    })
    enter(socket as unknown as Socket)
    return socket as unknown as FakeSocket
  }
  const socketFrom = (remoteAddress: string) => madeFrom(remoteAddress, connections.opened)
  /** On it TLS is to be spoken. */
  const rawFrom = (remoteAddress: string) => madeFrom(remoteAddress, connections.begun)
  /** Asks for something whose body has not come. */
  const begin = (
    socket: Socket,
    caller = socket.remoteAddress!,
    rawHeaders: string[] = [],
    ofMerchant?: string,
  ): IncomingMessage => {
    const incoming = { socket, complete: false, rawHeaders } as IncomingMessage
    connections.asked(incoming, someAnswer(), caller, ofMerchant)
    return incoming
  }
  /** Asks for something whose body has. */
  const ask = (socket: Socket, caller?: string): IncomingMessage => {
    const incoming = Object.assign(begin(socket, caller), { complete: true })
    connections.waits(incoming, '')
    return incoming
  }
  const begins = (asked: IncomingMessage, isServers: boolean) => {
    connections.begins(asked)
    if (isServers) connections.isServers(asked, sandbox.merchantId)
  }
  /** Asks for something that is answered at once. */
  const answeredOn = (socket: Socket, ofMerchant?: string): void => {
    const outgoing = someAnswer()
    const asked = { socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
    connections.asked(asked, outgoing, socket.remoteAddress!, ofMerchant)
    outgoing.emit('close')
  }
  /** So many from there, on each of which this is done as soon as it is open. */
  const crowdFrom = (address: string | ((at: number) => string), count: number, act: (socket: FakeSocket) => unknown) =>
    Array.from({ length: count }, (_, at) => {
      const socket = socketFrom(typeof address === 'string' ? address : address(at))
      act(socket)
      return socket
    })
  return { connections, socketFrom, rawFrom, begin, ask, begins, answeredOn, crowdFrom }
}

const never: Timer = { cancel() {}, unref: () => never }
const everybody = () => true

/** Time that stands until it is told, and what happens each second in it, or as often as `isMeant`. */
function standingClock(isMeant = (milliseconds: number): boolean => milliseconds === 1000 || milliseconds === 250) {
  let elapsed = 0
  const each: (() => void)[] = []
  const every: Clock['every'] = (milliseconds, act) => {
    if (isMeant(milliseconds)) each.push(act)
    return never
  }
  return {
    clock: { ...systemClock, every, elapsed: () => elapsed },
    /** Another second begins, so many after the first. */
    tick(seconds: number) {
      elapsed = seconds * 1000
      for (const act of each) act()
    },
  }
}

/** So many pieces of one byte lack as much together. */
const single = (most: number) => Math.floor(most / (1 - 1 / packetBytes))

describe('small pieces of bodies in one second', () => {
  const standing = { ...systemClock, every: () => never }
  const share = single(smallPiecesMost.network)
  const ofAll = single(smallPiecesMost.strangers)
  /** How many of one byte are taken, `each` of every caller's connection, each of which ends with the first that is not. */
  function takenOf(callers: readonly string[], each: number, proxy?: string): number {
    const { connections, socketFrom } = makeWatch(address => address === '10.0.0.1', standing)
    let taken = 0
    for (const caller of callers) {
      const socket = socketFrom(proxy ?? caller)
      for (let at = 0; at < each && connections.takes(socket, 1, caller); at++) taken++
    }
    connections.stop()
    return taken
  }
  const networks = (count: number, written: (at: number) => string) => Array.from({ length: count }, (_, at) => written(at))

  it('are so many of a network, with twice and four times as many of those around it', () => {
    assert.equal(takenOf(['192.0.2.7'], share + 9), share)
    assert.equal(takenOf(['192.0.2.7', '192.0.2.7', '192.0.2.8'], share + 9), 2 * share)
    const small = networks(20, at => `2001:db8:1:${(0x1200 + at).toString(16)}::7`)
    assert.ok(Math.abs(takenOf(small, share) - 2 * share) <= 20)
    const wide = networks(20, at => `2001:db8:1:${(at << 8).toString(16)}::7`)
    assert.ok(Math.abs(takenOf(wide, share) - 4 * share) <= 20)
    assert.equal(takenOf(['2001:db8:1::7', '2001:db8:2::7', '2001:db8:3::7'], share), 3 * share)
  })

  it('are as many of a caller behind a proxy, and of all of these together more', () => {
    assert.equal(takenOf(['192.0.2.7', '192.0.2.7', '192.0.2.8'], share + 9, '10.0.0.1'), 2 * share)
    const callers = networks(20, at => `192.0.2.${at}`)
    // Sixteen use up what all have; each of the others has a quarter of it.
    for (const proxy of ['10.0.0.1', undefined])
      assert.ok(Math.abs(takenOf(callers, share, proxy) - ofAll - 3 * single(smallPiecesMost.crowded)) <= share)
    // One that names nobody speaks for all.
    assert.equal(takenOf(['10.0.0.1'], ofAll + 9, '10.0.0.1'), ofAll)
  })
})

describe('small pieces of TLS in one second', () => {
  const standing = { ...systemClock, every: () => never }
  /** How many of one byte come on one connection until it is closed, and until it is read no more. */
  function comeOn(
    { connections }: ReturnType<typeof makeWatch>,
    socket: FakeSocket,
    most = 10_000,
    bytes = 1,
  ): readonly [open: number, read: number] {
    let read = most
    for (let at = 0; at < most; at++) {
      if (!connections.deciphers(socket, bytes, () => {})) read = Math.min(read, at)
      if (socket.closed) return [at, read]
    }
    return [most, read]
  }
  const share = single(smallPiecesMost.network / tlsPieceCost)
  const few = [piecesMost.open, piecesMost.read] as const

  it('are so many of a network; beyond them each connection has a few for what it asks next', () => {
    const watch = makeWatch(undefined, standing)
    assert.deepEqual(comeOn(watch, watch.rawFrom('192.0.2.7')), [share, share])
    for (const open of [watch.rawFrom, watch.socketFrom]) {
      const other = open('192.0.2.7')
      assert.deepEqual(comeOn(watch, other, piecesMost.open), few)
      assert.ok(!other.closed)
      assert.deepEqual(comeOn(watch, other), [0, 0])
    }
    const answered = watch.socketFrom('192.0.2.7')
    for (let times = 0; times < 5; times++) {
      assert.deepEqual(comeOn(watch, answered, piecesMost.open), few)
      watch.answeredOn(answered)
    }
    assert.deepEqual(comeOn(watch, watch.socketFrom('192.0.2.7'), 10_000, packetBytes), [10_000, 10_000])
    assert.deepEqual(comeOn(watch, watch.socketFrom('192.0.2.8')), [share, share])
    watch.connections.stop()
  })

  it('beyond what one network may send are taken from nobody else', () => {
    const watch = makeWatch(undefined, standing)
    for (let at = 0; at < 8; at++)
      for (let times = 0; times < 9; times++) comeOn(watch, watch.rawFrom(`198.51.100.${at}`), 10_000)
    for (let at = 0; at < 40; at++) {
      const many = watch.rawFrom('203.0.113.9')
      for (let times = 0; times < 2000; times++) watch.connections.deciphers(many, 1, () => {})
    }
    assert.deepEqual(comeOn(watch, watch.rawFrom('192.0.2.7'), 500), [500, 500])
    watch.connections.stop()
  })

  it('of a merchant’s server that has not said yet whose it is are as many as he has', () => {
    const watch = makeWatch(undefined, standing)
    watch.connections.isServers(watch.ask(watch.socketFrom('192.0.2.7')), sandbox.merchantId)
    for (let at = 0; at < 20; at++) comeOn(watch, watch.rawFrom(`198.51.100.${at}`))
    assert.equal(comeOn(watch, watch.rawFrom('192.0.2.7'))[0], single(smallPiecesMost.merchant / tlsPieceCost))
    assert.deepEqual(comeOn(watch, watch.rawFrom('192.0.2.8'))[0], single(smallPiecesMost.crowded / tlsPieceCost))
    watch.connections.stop()
  })

  it('are a merchant’s where his servers ask, from wherever, and cost him nothing of what others send there', () => {
    const watch = makeWatch(undefined, standing)
    const server = watch.socketFrom('192.0.2.7')
    watch.connections.isServers(watch.ask(server), sandbox.merchantId)
    comeOn(watch, watch.socketFrom('192.0.2.7'))
    assert.equal(comeOn(watch, server)[0], single(smallPiecesMost.merchant / tlsPieceCost))
    const elsewhere = watch.socketFrom('192.0.2.9')
    watch.connections.isServers(watch.ask(elsewhere), sandbox.merchantId)
    assert.deepEqual(comeOn(watch, elsewhere), few)
    watch.connections.stop()
  })

  it('are more of a trusted proxy, who is told why it is closed where it speaks already', () => {
    const told: string[] = []
    const watch = makeWatch(everybody, standing, (socket, caller) => {
      told.push(caller)
      socket.destroy()
    })
    assert.equal(comeOn(watch, watch.rawFrom('10.0.0.1'), 100_000)[0], single(smallPiecesMost.strangers / tlsPieceCost))
    assert.deepEqual(told, [])
    assert.deepEqual(comeOn(watch, watch.socketFrom('10.0.0.2')), few)
    assert.deepEqual(told, [''])
    watch.connections.stop()
  })
})

describe('bytes of large bodies in one second', () => {
  const piece = 16 * 1024
  const [ofOne, ofNetwork, ofCrowd] = [largeBytesMost / piece, networkBytesMost / piece, crowdedBytesMost / piece]
  const told: string[] = []
  function watchIn(clock: Clock) {
    told.length = 0
    const watch = makeWatch(
      address => address === '10.0.0.1',
      clock,
      (socket, caller) => {
        told.push(caller)
        socket.destroy()
      },
    )
    /** How many pieces are taken on one connection, from there or of that caller of a proxy, until one is not. */
    const taken = (address: string, caller = address): number => {
      const socket = watch.socketFrom(address)
      const incoming = watch.begin(socket, caller)
      for (let count = 0; count < 2 * ofOne; count++) if (!watch.connections.sends(incoming, piece)) return count
      socket.destroy()
      return Number.POSITIVE_INFINITY
    }
    const knows = (address: string, merchantId: string, caller?: string) => {
      const socket = watch.socketFrom(address)
      watch.connections.isServers(watch.ask(socket, caller), merchantId)
      socket.destroy()
    }
    const crowd = () => {
      for (let at = 0; at < ofOne / ofNetwork; at++) taken(`203.0.113.${at}`)
    }
    return { ...watch, taken, knows, crowd }
  }

  it('are so many of a network, and of all strangers; beyond it each of their networks has a few, and what it sent beyond counts later', () => {
    const { clock, tick } = standingClock()
    const { connections, taken } = watchIn(clock)
    assert.equal(taken('192.0.2.1'), ofNetwork)
    assert.deepEqual([taken('192.0.2.1'), taken('::ffff:192.0.2.1')], [0, 0])
    const rest = ['192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'].map(address => taken(address))
    assert.deepEqual(rest, [ofNetwork, ofNetwork, ofNetwork - 5, ofCrowd]) // what each sent beyond is counted
    // A /48 four times as much, all in it together.
    const taking = Array.from({ length: 6 }, (_, at) => taken(`2001:db8:1:${(at << 8).toString(16)}::1`))
    assert.deepEqual(taking, [ofCrowd, ofCrowd, ofCrowd, ofCrowd - 3, 0, 0])
    tick(1)
    assert.deepEqual([taken('192.0.2.1'), taken('192.0.2.5'), taken('2001:db8:1:900::1')], [0, ofCrowd - 1, ofCrowd])
    for (let second = 2; second < 10; second++) tick(second)
    assert.equal(taken('192.0.2.1'), 0)
    for (let second = 10; second < 13; second++) tick(second)
    assert.equal(taken('192.0.2.1'), ofNetwork)
    assert.deepEqual(told, [], 'strangers are closed without a word')
    connections.stop()
  })

  it('are made up for within ten seconds, however many they were', () => {
    const { clock, tick } = standingClock()
    const { connections, socketFrom, begin, taken } = watchIn(clock)
    assert.equal(connections.sends(begin(socketFrom('192.0.2.1')), 100 * networkBytesMost), false)
    for (let second = 1; second < 10; second++) tick(second)
    assert.equal(taken('192.0.2.1'), 0)
    for (let second = 10; second < 12; second++) tick(second)
    assert.equal(taken('192.0.2.1'), ofNetwork)
    connections.stop()
  })

  it('keep nobody of their network from anything small', () => {
    const { clock } = standingClock()
    const { connections, taken } = watchIn(clock)
    assert.equal(taken('192.0.2.1'), ofNetwork)
    assert.equal(connections.admits('192.0.2.1', false), true)
    connections.stop()
  })

  it('count what comes too much as well: a crowd that goes on has a few in each second', () => {
    const { clock, tick } = standingClock()
    const { connections, taken } = watchIn(clock)
    const crowd = Array.from({ length: 256 }, (_, at) => `192.0.2.${at}`)
    const sums = [0, 1, 2, 3].map(second => {
      tick(second)
      return crowd.reduce((sum, address) => sum + taken(address), 0)
    })
    const [first, ...later] = sums
    assert.ok(first! < ofOne + crowd.length * ofCrowd, `${first}`)
    for (const sum of later) assert.ok(sum <= crowd.length * ofCrowd, `${sum}`)
    connections.stop()
  })

  it('of each network of a merchant are some without his token, and he is told; neither strangers there nor their crowd elsewhere cost him more', () => {
    const { clock, tick } = standingClock()
    const { connections, socketFrom, begin, taken, knows, crowd } = watchIn(clock)
    for (const address of ['198.51.100.1', '198.51.100.2']) knows(address, 'one')
    crowd()
    assert.equal(taken('192.0.2.1'), ofCrowd)
    assert.deepEqual([taken('198.51.100.1'), taken('198.51.100.1'), taken('198.51.100.2')], [ofNetwork, 0, ofNetwork])
    assert.deepEqual(told, ['198.51.100.1', '198.51.100.1', '198.51.100.2'])
    knows('198.51.100.3', 'one')
    const incoming = begin(socketFrom('198.51.100.3'))
    assert.equal(connections.sends(incoming, largeBytesMost, merchantLine('one')), true)
    const admitted = (address: string) =>
      Array.from({ length: 99 }, () => connections.admits(address, false)).filter(Boolean).length
    const addresses = ['198.51.100.1', '198.51.100.2', '198.51.100.3', '192.0.2.9']
    assert.deepEqual(addresses.map(admitted), [99, 99, 99, 99])
    assert.equal(connections.sends(incoming, piece, merchantLine('one')), false)
    assert.equal(admitted('198.51.100.3'), 99)
    tick(1)
    assert.equal(taken('198.51.100.1'), ofNetwork)
    connections.stop()
  })

  it('are a merchant’s from wherever his token comes with them, and a few of many are told', () => {
    const { clock, tick } = standingClock()
    const { connections, socketFrom, begin, crowd } = watchIn(clock)
    crowd()
    const takenOf = (address: string, merchant: string) => {
      const incoming = begin(socketFrom(address))
      let count = 0
      while (connections.sends(incoming, piece, merchantLine(merchant))) count++
      return count
    }
    assert.deepEqual(
      [takenOf('192.0.2.1', 'one'), takenOf('192.0.2.2', 'one'), takenOf('203.0.113.1', 'another')],
      [ofOne, 0, ofOne],
    )
    for (let at = 0; at < 2 * tellingsMost; at++) assert.equal(takenOf(`198.51.100.${at}`, 'one'), 0)
    assert.equal(told.length, 1 + tellingsMost)
    tick(1)
    assert.deepEqual([takenOf('192.0.2.1', 'one'), told.length], [ofOne, 2 + tellingsMost])
    connections.stop()
  })

  it('are as many of one person whom we know, however many strangers are about', () => {
    const { clock } = standingClock()
    const { connections, socketFrom, begin, taken, crowd } = watchIn(clock)
    crowd()
    assert.equal(taken('192.0.2.1'), ofCrowd)
    const takenOf = (name: string) => {
      const incoming = begin(socketFrom('192.0.2.1'))
      connections.knows(incoming, name)
      let count = 0
      while (connections.sends(incoming, piece)) count++
      return count
    }
    assert.deepEqual(['a', 'a', 'b'].map(takenOf), [ofOne, 0, ofOne])
    connections.stop()
  })

  it('are counted of each caller behind a proxy, who is told; the proxy may send all', () => {
    const { clock } = standingClock()
    const { connections, taken, knows } = watchIn(clock)
    knows('10.0.0.1', 'one', '198.51.100.1')
    assert.equal(taken('10.0.0.1', '192.0.2.1'), ofNetwork)
    assert.equal(taken('192.0.2.1'), 0)
    assert.equal(taken('10.0.0.1', '198.51.100.1'), ofNetwork)
    assert.deepEqual(told, ['192.0.2.1', '198.51.100.1'])
    assert.equal(taken('10.0.0.1'), Number.POSITIVE_INFINITY)
    connections.stop()
  })
})

describe('newcomers', () => {
  /** How many of so many are let in, one after the other. */
  const admitted = (
    { connections }: ReturnType<typeof makeWatch>,
    address: (at: number) => string,
    count = 3 * openingsMost,
    isTls = false,
  ) => Array.from({ length: count }, (_, at) => connections.admits(address(at), isTls)).filter(Boolean).length

  /** What each of so many networks that want more opens while all together want too much. */
  const shareOf = (eager: number) => Math.floor(openingsMost / eager)

  it('of one network are so many in a second; others come in, and all do in the next', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(address => address === '10.0.0.1', clock)
    const each = (...rows: readonly [address: (at: number) => string, most: number][]) => {
      for (const [address, most] of rows) assert.equal(admitted(watch, address), most, address(0))
    }
    each([() => '192.0.2.7', networkOpeningsMost], [at => (at % 2 ? '::ffff:192.0.2.7' : '192.0.2.7'), 0])
    tick(1)
    each([() => '192.0.2.7', networkOpeningsMost], [() => '192.0.2.8', networkOpeningsMost]) // one alone is no crowd
    each([() => '192.0.2.9', shareOf(3)], [() => '10.0.0.1', 3 * openingsMost])
    tick(12)
    // Who sits in a /48 has half of what that has, which he shares with others there.
    each([at => `2001:db8:1:100::${at.toString(16)}`, networkOpeningsMost / 2])
    each([() => '2001:db8:1:200::1', networkOpeningsMost / 4], [() => '192.0.2.7', networkOpeningsMost])
    watch.connections.stop()
  })

  it('of a /48 are as many as of an address, however many of its networks want more, and a few are everybody’s in it', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(() => false, clock)
    const many = (at: number) => `2001:db8:1:${(at % 32).toString(16)}::1`
    for (let second = 1; second < 5; second++) {
      tick(second)
      assert.equal(admitted(watch, many), networkOpeningsMost)
      assert.equal(
        admitted(watch, () => '192.0.2.7'),
        networkOpeningsMost,
        'no rush',
      )
    }
    // One network after the other: those that come first do not yet see how many there are.
    const greedy = (at: number) => `2001:db8:1:${Math.floor(at / 64).toString(16)}::1`
    for (let second = 10; second < 13; second++) {
      tick(second)
      const first = admitted(watch, greedy, 31 * 64)
      const neighbours = admitted(watch, () => '2001:db8:1:ff::1', 16)
      if (second > 10) assert.deepEqual([first, neighbours], [31 * 16, 16], 'what they share is all that a /48 may open')
    }
    tick(39)
    for (let second = 40; second < 43; second++) {
      tick(second)
      for (const at of [1, 2]) admitted(watch, () => `2001:db8:1:${at}::1`)
      assert.equal(
        admitted(watch, () => '2001:db8:1:3::1', crowdedOpeningsMost),
        crowdedOpeningsMost,
      )
    }
    watch.connections.stop()
  })

  it('of all strangers together are so many in a second; beyond it each of their networks opens a few, but for those of merchants’ servers', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(address => address === '10.0.0.1', clock)
    const server = watch.socketFrom('192.0.2.99')
    watch.begins(watch.ask(server), true)
    server.destroy()
    const strangers = (networks: number) => (at: number) => `192.0.2.${at % networks}`
    const each = (...rows: readonly [address: (at: number) => string, most: number][]) => {
      for (const [address, most] of rows) assert.equal(admitted(watch, address, 6400), most, address(0))
    }
    const [shop, newShop, proxy] = [() => '192.0.2.99', () => '198.51.100.1', () => '10.0.0.1']
    each([strangers(16), openingsMost], [newShop, shareOf(17)], [strangers(16), 0], [shop, openingsMost], [proxy, 6400])
    tick(9)
    const ofMany = admitted(watch, strangers(64), 6400)
    assert.ok(ofMany >= 64 * crowdedOpeningsMost && ofMany <= 64 * crowdedOpeningsMost + 32, `${ofMany}`)
    each([shop, openingsMost])
    tick(20)
    each([newShop, networkOpeningsMost])
    tick(3600)
    each([strangers(16), openingsMost], [shop, shareOf(17)])
    watch.connections.stop()
  })

  it('of an address are not kept out because two others opened too many', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(() => false, clock)
    for (const helper of ['203.0.113.1', '203.0.113.2'])
      assert.equal(
        admitted(watch, () => helper, 620),
        networkOpeningsMost,
      )
    for (let second = 1; second < 10; second++) {
      tick(second)
      assert.equal(
        admitted(watch, () => '192.0.2.7', 300),
        300,
      )
    }
    watch.connections.stop()
  })

  it('are known for merchants’ servers, so many of them, whoever asked last', () => {
    const { clock } = standingClock()
    const watch = makeWatch(() => false, clock)
    const asks = (address: string, merchantId: string) => {
      const socket = watch.socketFrom(address)
      const asked = watch.ask(socket)
      watch.begins(asked, false)
      watch.connections.isServers(asked, merchantId)
      socket.destroy()
    }
    for (const shop of ['198.51.100.1', '198.51.100.2', '198.51.100.1']) asks(shop, shop)
    for (let at = 2; at <= merchantsMost; at++) asks(`10.1.${at >> 8}.${at & 255}`, `${at}`)
    assert.equal(
      admitted(watch, at => `192.0.2.${at % 16}`),
      openingsMost,
    )
    assert.equal(
      admitted(watch, () => '198.51.100.1'),
      openingsMost,
    )
    assert.equal(
      admitted(watch, () => '198.51.100.2'),
      shareOf(17),
    )
    // Of one merchant a few.
    for (let at = 0; at <= ofMerchantMost; at++) asks(`203.0.113.${at}`, 'many')
    const admittedOf = (at: number) => admitted(watch, () => `203.0.113.${at}`)
    assert.deepEqual(
      [0, 1, ofMerchantMost].map(admittedOf),
      [shareOf(18), openingsMost, openingsMost / 2],
      'who wants more than a few shares with the others',
    )
    watch.connections.stop()
  })

  it('of a network of several merchants are those of each: whoever has a token takes it from none, wherever else he asks and whatever he opens there', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(() => false, clock)
    const asks = (address: string, merchantId: string) => {
      const socket = watch.socketFrom(address)
      watch.connections.isServers(watch.ask(socket), merchantId)
      socket.destroy()
    }
    asks('198.51.100.1', 'one')
    for (let at = 0; at <= ofMerchantMost; at++) {
      asks('198.51.100.1', 'another')
      asks(`203.0.113.${at}`, 'another')
    }
    admitted(watch, at => `203.0.113.${10 + (at % 9)}`)
    admitted(watch, at => `192.0.2.${at % 16}`) // strangers, too many
    assert.equal(
      admitted(watch, () => '198.51.100.1'),
      openingsMost,
    )
    // The one is not there any more, and is forgotten; whoever asks there has the network all the same.
    tick(3500)
    asks('198.51.100.1', 'another')
    tick(3601)
    admitted(watch, at => `203.0.113.${10 + (at % 9)}`)
    admitted(watch, at => `192.0.2.${at % 16}`)
    assert.equal(
      admitted(watch, () => '198.51.100.1'),
      openingsMost,
    )
    // Of more merchants than a network may have the first is forgotten there; the others open all that they may elsewhere.
    for (let at = 0; at <= ofNetworkMost; at++) asks('198.51.100.2', `${at}`)
    for (let at = 1; at <= ofNetworkMost; at++) {
      asks(`10.3.0.${at}`, `${at}`)
      admitted(watch, () => `10.3.0.${at}`, openingsMost + 1)
    }
    const left = admitted(watch, () => '198.51.100.2')
    assert.ok(left < openingsMost, `${left}`)
    watch.connections.stop()
  })

  it('with whom TLS is to be spoken count more, but for those of merchants’ servers', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(() => false, clock)
    watch.begins(watch.ask(watch.socketFrom('192.0.2.99')), true)
    const admittedTls = (address: (at: number) => string) => admitted(watch, address, 6400, true)
    const stranger = (at: number) => `192.0.2.${at % 64}`
    for (const address of ['198.51.100.1', '198.51.100.2'])
      assert.equal(
        admittedTls(() => address),
        networkOpeningsMost / tlsCost,
      )
    const ofMany = (64 * crowdedOpeningsMost) / tlsCost
    const first = admittedTls(stranger)
    assert.ok(first >= ofMany && first <= ofMany + 32, `${first}`)
    assert.equal(
      admittedTls(() => '192.0.2.99'),
      openingsMost,
    )
    tick(1)
    assert.equal(admittedTls(stranger), ofMany)
    watch.connections.stop()
  })

  it('that are gone before anybody looks have no address, and are counted for nobody: neither served nor taken for a proxy', () => {
    const { connections, socketFrom, begin } = makeWatch(address => address === '10.0.0.1')
    const gone = Array.from({ length: 20 }, () => socketFrom(undefined as unknown as string))
    assert.ok(gone.every(({ closed }) => closed))
    connections.begun(gone[0]!)
    assert.equal(connections.asked({ socket: gone[0] } as IncomingMessage, someAnswer(), ''), false)
    // Through a proxy too whoever has none is one caller, and no proxy.
    const proxied = () => {
      const socket = socketFrom('10.0.0.1')
      begin(socket, '')
      return socket
    }
    const crowd = Array.from({ length: networkUnfinishedMost }, proxied)
    assert.ok(crowd.every(({ closed }) => !closed))
    assert.deepEqual([proxied().closed, crowd.filter(({ closed }) => closed).length], [false, 1])
    connections.stop()
  })

  it('end with all that they are owed, one behind the other', () => {
    const { connections, socketFrom } = makeWatch()
    const socket = socketFrom('192.0.2.7')
    let ended = 0
    let left = 0
    for (let at = 0; at < 3; at++) {
      const outgoing = Object.assign(someAnswer(), { destroy: () => ended++ }) as unknown as ServerResponse
      const incoming = { socket: socket as Socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
      connections.asked(incoming, outgoing, '192.0.2.7')
      connections.stands(incoming, () => left++)
    }
    socket.destroy()
    assert.deepEqual([ended, left], [3, 3])
    connections.stands({ socket: socket as Socket } as IncomingMessage, () => left++)
    assert.equal(left, 4, 'who is gone already stands in no line')
    connections.stop()
  })

  it('of one network send so many requests behind others in a second; a proxy may send more', () => {
    const clock = { ...systemClock, every: () => never }
    const { connections, socketFrom, begin } = makeWatch(address => address === '10.0.0.1', clock)
    /** How many come on connections of so many each, until one is closed. */
    const taken = (address: string, caller = (_at: number) => address): number => {
      for (let count = 0; count < pipelinedMost + 100; ) {
        const socket = socketFrom(address)
        for (let at = 0; at < 5; at++) {
          begin(socket, caller(count))
          if (socket.closed) return count
          if (at > 0) count++
        }
        socket.destroy()
      }
      return Number.POSITIVE_INFINITY
    }
    assert.equal(taken('192.0.2.7'), pipelinedMost)
    assert.equal(taken('192.0.2.7'), 0)
    assert.equal(taken('192.0.2.8'), pipelinedMost)
    assert.equal(
      taken('10.0.0.1', () => '192.0.2.7'),
      Number.POSITIVE_INFINITY,
    )
    connections.stop()
  })

  it('of all strangers together send so many behind others, and none beyond; who has a merchant’s token is none of the crowd, and long heads count more', () => {
    const clock = { ...systemClock, every: () => never }
    const { connections, socketFrom, begin } = makeWatch(() => false, clock)
    /** How many come on connections of thirty-two each, until one is closed. */
    const taken = (address: string, headers: number, ofMerchant?: string): number => {
      for (let count = 0; ; ) {
        const socket = socketFrom(address)
        for (let at = 0; at < 32; at++) {
          begin(socket, address, Array<string>(2 * headers).fill('x'), ofMerchant)
          if (socket.closed) return count
          if (at > 0) count++
        }
        socket.destroy()
      }
    }
    assert.equal(taken('192.0.2.1', 100), Math.floor(pipelinedMost / 7))
    for (let net = 2; net <= 3; net++) assert.equal(taken(`192.0.2.${net}`, 3), pipelinedMost)
    taken('192.0.2.4', 3)
    for (const net of [5, 6]) assert.equal(taken(`192.0.2.${net}`, 3), 0, `${net}`)
    // With his token, wherever he asks: there too where strangers sent too many.
    assert.equal(taken('192.0.2.5', 3, 'one'), pipelinedMost)
    assert.equal(taken('192.0.2.98', 3, 'one'), 0)
    assert.equal(taken('192.0.2.98', 3, 'another'), pipelinedMost)
    connections.stop()
  })

  it('that are not let in are closed before anything is made for them', async () => {
    const server = http.createServer((_, response) => response.end('served'))
    let [taken, isOpen] = [0, false]
    server.on('connection', () => taken++)
    const asked: string[] = []
    const { port, close } = await listen(server, 0, '127.0.0.1', address => {
      asked.push(address)
      return isOpen
    })
    const many = Array.from({ length: 3 * listenersMost }, () => connect(port, '127.0.0.1'))
    await Promise.all(many.map(ended))
    assert.deepEqual([taken, asked.length, [...new Set(asked)]], [0, many.length, ['127.0.0.1']])
    isOpen = true
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { Connection: 'close' } })
    assert.equal(await answer.text(), 'served')
    await close()
  })

  it('that come at once are taken in some turns of the event loop, not one in each', async () => {
    const server = http.createServer()
    let taken = 0
    server.on('connection', () => taken++)
    const { port, close } = await listen(server, 0, '127.0.0.1', everybody)
    const many = Array.from({ length: 400 }, () => connect(port, '127.0.0.1'))
    let turns = 0
    for (; taken < many.length; turns++) await new Promise(setImmediate)
    assert.ok(turns < 100, `${turns} turns`)
    const closed = many.map(ended)
    for (const socket of many) socket.destroy()
    await Promise.all(closed)
    await close()
  })

  it('are taken by one gateway of a port: another is refused as by any program', async () => {
    const { port, close } = await listen(http.createServer(), 0, '127.0.0.1', everybody)
    const taken = { code: 'EADDRINUSE', port }
    await assert.rejects(listen(http.createServer(), port, '127.0.0.1', everybody), taken)
    await close()
    const next = await listen(http.createServer(), port, '127.0.0.1', everybody)
    assert.equal(next.port, port)
    await next.close()
    const plain = net.createServer().listen(port, '127.0.0.1')
    await once(plain, 'listening')
    await assert.rejects(listen(http.createServer(), port, '127.0.0.1', everybody), taken)
    plain.close()
  })
})

const closedOf = (sockets: readonly FakeSocket[]): number => sockets.filter(({ closed }) => closed).length

describe('connections', () => {
  it('whose requests do not come whole make room for everybody else, those of the largest crowd first', () => {
    const { connections, begin, crowdFrom } = makeWatch()
    const come = (address: string, count: number) => crowdFrom(address, count, socket => begin(socket))
    const neighbours = come('192.0.2.7', 20)
    const crowd = [1, 2, 3, 4].flatMap(at => come(`198.51.100.${at}`, networkConnectionsMost))
    const late = come('192.0.2.8', 50)
    assert.deepEqual([neighbours, late, crowd].map(closedOf), [0, 0, 70])
    connections.stop()
  })

  it('on which all that was asked waits for its turn make room for others, when all places are taken by such', () => {
    const { connections, ask, crowdFrom } = makeWatch()
    const come = (address: string, count: number) => crowdFrom(address, count, socket => ask(socket))
    const crowd = [1, 2, 3, 4].flatMap(at => come(`198.51.100.${at}`, networkConnectionsMost))
    const late = come('192.0.2.8', 20)
    assert.deepEqual([late, crowd].map(closedOf), [0, 20])
    const more = come('198.51.100.1', 1)
    assert.deepEqual([more, crowd].map(closedOf), [1, 20], 'whoever has as many as any makes none')
    connections.stop()
  })

  it('of a crowd on which all wait for an answer take no place of those who are fewer and idle', () => {
    const { connections, socketFrom, ask, answeredOn, crowdFrom } = makeWatch()
    const crowd = crowdFrom('198.51.100.1', networkConnectionsMost - 24, socket => ask(socket))
    const few = crowdFrom(
      at => `10.1.${at >> 8}.${at & 255}`,
      connectionsMost - crowd.length,
      socket => answeredOn(socket),
    )
    const [more, other] = [socketFrom('198.51.100.1'), socketFrom('192.0.2.8')]
    for (const socket of [more, other]) ask(socket)
    assert.deepEqual([more.closed, other.closed, closedOf(few), closedOf(crowd)], [true, false, 0, 1])
    connections.stop()
  })

  it('of browsers make room for others when all places are taken; those of merchants’ servers take none of theirs, and none makes room for those', () => {
    const { connections, ask, begin, begins, crowdFrom } = makeWatch()
    const crowdAt = (address: string, count = networkConnectionsMost) =>
      crowdFrom(address, count, socket => begins(ask(socket), false))
    const withToken = (address: string, count: number, ofMerchant: string) =>
      crowdFrom(address, count, socket => begin(socket, undefined, [], ofMerchant))
    const [few, early] = [crowdAt('192.0.2.7', 10), withToken('192.0.2.6', 300, 'of one')]
    const crowds = [1, 2, 3, 4].flatMap(at => crowdAt(`198.51.100.${at}`))
    const late = withToken('198.51.100.1', 300, 'of another')
    assert.deepEqual([few, early, crowds, late].map(closedOf), [0, 0, 10, 0])
    // By a password in a body it is known only when that has come: then it leaves its place among strangers.
    const byPassword = crowdFrom('192.0.2.8', 20, socket => begins(ask(socket), true))
    assert.deepEqual([few, early, crowds, late, byPassword].map(closedOf), [0, 0, 11, 0, 0])
    connections.stop()
  })

  it('on which a browser asks for a page make room before those on which somebody has pressed a button, and these before nobody', () => {
    const { connections, ask, crowdFrom } = makeWatch()
    const come = (address: string, method: string, count: number) =>
      crowdFrom(address, count, socket => connections.begins(Object.assign(ask(socket), { method })))
    const half = networkConnectionsMost / 2
    const [presses, pages] = [come('198.51.100.1', 'POST', half), come('198.51.100.1', 'GET', half)]
    const others = [2, 3, 4].flatMap(at => come(`198.51.100.${at}`, 'POST', networkConnectionsMost))
    const late = come('192.0.2.8', 'GET', 40)
    const closed = [late, presses, pages, others].map(some => some.filter(({ closed }) => closed).length)
    assert.deepEqual(closed, [0, 0, 10, 30])
    connections.stop()
  })

  it('of strangers who stand in line fill a merchant’s own address: who comes then is served with a token, at once or after a moment, and none of his goes', () => {
    const { clock, tick } = standingClock()
    const { connections, socketFrom, ask, begin, answeredOn, crowdFrom } = makeWatch(undefined, clock)
    const come = (address: string, count: number) =>
      crowdFrom(address, count, socket => Object.assign(ask(socket), { method: 'POST' }))
    const withToken = (socket = socketFrom('192.0.2.8')) => {
      begin(socket, undefined, [], 'of one')
      return socket
    }
    const kept = socketFrom('192.0.2.8')
    answeredOn(kept, 'of one')
    const half = withToken()
    const presses = come('192.0.2.8', networkConnectionsMost)
    tick(2)
    assert.equal(closedOf([kept, half, ...presses]), 0)
    assert.equal(closedOf(come('192.0.2.8', 20)), 20, 'without a token')
    const silent = Array.from({ length: networkConnectionsMost }, () => socketFrom('192.0.2.8'))
    const [first, ...others] = silent
    const next = socketFrom('192.0.2.8')
    assert.deepEqual([first!.closed, closedOf(others)], [true, 0], 'who is silent for longest goes for the next')
    for (const one of [...others.slice(-300), next]) withToken(one)
    const more = Array.from({ length: 300 }, () => withToken())
    assert.equal(closedOf([kept, half, next, ...others, ...more, ...presses]), 0)
    const strangers = come('192.0.2.9', networkConnectionsMost)
    assert.deepEqual([closedOf(come('192.0.2.9', 20)), closedOf(strangers)], [20, 0])
    connections.stop()
  })

  it('with a token have their places whatever strangers hold: all that they may, with answers that nobody takes, at his address and elsewhere', () => {
    const { connections, socketFrom, ask, begin, crowdFrom } = makeWatch()
    const unread = [1, 2, 3].flatMap(at =>
      Array.from({ length: networkConnectionsMost }, () => {
        const socket = socketFrom(`203.0.113.${at}`)
        connections.answers(ask(socket), 100)
        return Object.assign(socket, { writableLength: 1 })
      }),
    )
    const presses = crowdFrom('192.0.2.8', networkConnectionsMost, socket => Object.assign(ask(socket), { method: 'POST' }))
    const own = crowdFrom(
      at => (at % 2 === 0 ? '192.0.2.8' : `198.51.100.${at}`),
      200,
      socket => begin(socket, undefined, [], 'of one'),
    )
    assert.deepEqual([unread, presses, own].map(closedOf), [0, 0, 0])
    // And a shopper elsewhere has that of one of a crowd, whose body may come behind its head.
    const shoppers = crowdFrom(
      at => `198.51.100.${at}`,
      30,
      socket => Object.assign(begin(socket), { method: 'POST' }),
    )
    assert.deepEqual([shoppers, own].map(closedOf), [0, 0])
    connections.stop()
  })

  it('of one merchant are so many, from wherever he asks: of more the idle go first, for longest; and they cost no other', () => {
    const { connections, socketFrom, begin, answeredOn, crowdFrom } = makeWatch()
    const kept = (count: number, ofMerchant: string) =>
      crowdFrom(
        at => `198.51.100.${at % 8}`,
        count,
        socket => answeredOn(socket, ofMerchant),
      )
    const other = kept(100, 'of another')
    const [idle, first] = [kept(10, 'of one'), kept(networkConnectionsMost - 10, 'of one')]
    const more = kept(10, 'of one')
    assert.deepEqual([other, idle, first, more].map(closedOf), [0, 10, 0, 0])
    // All that he has are asked on, and one more is closed.
    for (const socket of [...first, ...more]) begin(socket, undefined, [], 'of one').complete = true
    const last = socketFrom('192.0.2.8')
    begin(last, undefined, [], 'of one')
    assert.deepEqual([last.closed, closedOf([...other, ...first, ...more])], [true, 0])
    const another = socketFrom('192.0.2.8')
    begin(another, undefined, [], 'of another')
    assert.equal(another.closed, false)
    connections.stop()
  })

  it('of merchants leave as much as each has; where there is nothing left those of the largest make room, between two requests', () => {
    const { connections, begin, answeredOn, crowdFrom } = makeWatch()
    const kept = (count: number, ofMerchant: string) => crowdFrom('198.51.100.1', count, socket => answeredOn(socket, ofMerchant))
    const each = [1024, 1024, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1]
    const all = each.map((_, at) => kept(networkConnectionsMost + 1, `of ${at}`))
    assert.deepEqual(
      all.map(some => some.length - closedOf(some)),
      each,
    )
    const [large] = all as [FakeSocket[]]
    const open = large.filter(({ closed }) => !closed)
    const served = open.slice(0, 5)
    for (const socket of served) begin(socket, undefined, [], 'of 0').complete = true
    for (const some of [all[1]!, all[2]!]) for (const socket of some.slice(-5)) socket.destroy()
    const late = Array.from({ length: 11 }, (_, at) => kept(1, `of one more, ${at}`)).flat()
    assert.deepEqual([served, late].map(closedOf), [0, 0])
    assert.deepEqual([open.length - closedOf(open), open[5]!.closed], [networkConnectionsMost - 1, true])
    // Who asks with the token of another may be the one to make room.
    const oldest = open[6]!
    const asked = { socket: oldest as Socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
    assert.deepEqual([connections.asked(asked, someAnswer(), '198.51.100.1', 'of the last'), oldest.closed], [false, true])
    const more = [...all.flat(), ...late, ...kept(networkConnectionsMost, 'of the last'), ...kept(networkConnectionsMost, 'of 0')]
    assert.equal(more.length - closedOf(more), serversMost, 'and has no place any more')
    connections.stop()
  })

  it('of merchants on which all wait for an answer make no room for those of another, and leave him his', () => {
    const { connections, begin, crowdFrom } = makeWatch()
    const served = (count: number, ofMerchant: string) =>
      crowdFrom('198.51.100.1', count, socket =>
        connections.waits(Object.assign(begin(socket, undefined, [], ofMerchant), { complete: true }), ''),
      )
    const all = Array.from({ length: 14 }, (_, at) => served(networkConnectionsMost, `of ${at}`))
    assert.deepEqual(all.map(some => networkConnectionsMost - closedOf(some)).slice(0, 5), [1024, 1024, 1024, 512, 256])
    assert.equal(closedOf(served(1, 'of one more')), 1)
    assert.equal(all.flat().length - closedOf(all.flat()), serversMost)
    connections.stop()
  })

  it('on which a merchant’s server has asked are his until something is answered there that is not', () => {
    const { connections, socketFrom, ask, begin, begins } = makeWatch()
    const socket = socketFrom('192.0.2.8')
    const outgoing = someAnswer()
    const byPassword = { socket: socket as Socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
    connections.asked(byPassword, outgoing, '192.0.2.8')
    begins(byPassword, true)
    outgoing.emit('close')
    // As many as there are, and none of them a crowd.
    const presses = Array.from({ length: connectionsMost }, (_, at) => {
      const one = socketFrom(`198.51.100.${at % 256}`)
      Object.assign(ask(one), { method: 'POST' })
      return one
    })
    // Its next password is not seen before its body has come.
    const next = someAnswer()
    const asked = { socket: socket as Socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
    assert.equal(connections.asked(asked, next, '192.0.2.8'), true)
    assert.deepEqual([socket.closed, closedOf(presses)], [false, 0])
    next.emit('close')
    assert.equal(socket.closed, true, 'it was nobody’s, and there is no place for one more of those')
    const last = socketFrom('192.0.2.8')
    begin(last, undefined, [], 'of one')
    assert.equal(last.closed, false)
    connections.stop()
  })

  it('on which a merchant’s server waits behind somebody’s page make room as that does, from its answer on', () => {
    const { connections, socketFrom, ask, begins } = makeWatch(address => address === '10.0.0.1')
    const crowd = Array.from({ length: connectionsMost }, (_, at) => {
      const [socket, caller] = [socketFrom('10.0.0.1'), `198.51.100.${at % 8}`]
      begins(ask(socket, caller), false)
      const behind = ask(socket, caller)
      begins(behind, true)
      return { socket, behind }
    })
    const late = () => {
      const socket = socketFrom('192.0.2.8')
      ask(socket)
      return socket.closed
    }
    assert.equal(late(), true, 'its answer is not made')
    for (const { behind } of crowd) connections.answers(behind, 100)
    assert.equal(late(), false)
    assert.equal(crowd.filter(({ socket }) => socket.closed).length, 1)
    connections.stop()
  })

  it('on which nothing was asked yet make room for one another alone: of a network, and of all the largest crowd’s', () => {
    const { socketFrom, ask } = makeWatch()
    const shopper = socketFrom('192.0.2.1')
    Object.assign(ask(shopper), { method: 'POST' })
    const come = (address: string, count: number) => Array.from({ length: count }, () => socketFrom(address))
    const few = come('192.0.2.9', 20)
    const crowd = come('198.51.100.1', networkConnectionsMost + 10)
    assert.deepEqual([closedOf(crowd), closedOf(crowd.slice(0, 10))], [10, 10], 'the oldest')
    const others = Array.from({ length: newcomersMost }, (_, at) => socketFrom(`203.0.113.${at % 64}`))
    assert.deepEqual([closedOf(few), shopper.closed], [0, false])
    assert.equal(closedOf([...crowd, ...others]), 10 + 20 + networkConnectionsMost)
    ask(others.at(-1)!)
    assert.equal(others.at(-1)!.closed, false)
  })

  it('on which TLS does not stand yet take no place of who waits for an answer, and have theirs for two seconds of all that strangers open', () => {
    const { connections, ask, begins, rawFrom, crowdFrom } = makeWatch()
    const shoppers = crowdFrom(
      at => `192.0.2.${at}`,
      96,
      socket => begins(ask(socket), false),
    )
    // Sixteen in a second of each of the 64.
    const half = Array.from({ length: 7 * openingsMost }, (_, at) => rawFrom(`198.51.100.${at % 64}`))
    assert.deepEqual([closedOf(shoppers), closedOf(half)], [0, half.length - newcomersMost])
    assert.equal(closedOf(half.slice(-2 * openingsMost)), 0, 'the last ones stand')
    const shop = Array.from({ length: 30 }, () => rawFrom('192.0.2.200'))
    assert.equal(closedOf(shop), 0)
    connections.stop()
  })

  it('of browsers make room also where something that has not come whole stands behind their requests', () => {
    const { connections, socketFrom, ask, begin, begins } = makeWatch()
    for (const address of ['198.51.100.2', '198.51.100.3', '198.51.100.4', '198.51.100.5'])
      for (let at = 0; at < networkConnectionsMost; at++) {
        const socket = socketFrom(address)
        begins(ask(socket), false)
        begin(socket)
      }
    assert.equal(socketFrom('192.0.2.8').closed, false)
    connections.stop()
  })

  it('through a proxy make room for others there, of whoever has most requests of browsers under way', () => {
    let elapsed = 0
    const { connections, socketFrom, ask, begins } = makeWatch(address => address === '10.0.0.1', {
      ...systemClock,
      elapsed: () => elapsed,
    })
    const come = (caller: string, isServers: boolean) => {
      const socket = socketFrom('10.0.0.1')
      begins(ask(socket, caller), isServers)
      return socket
    }
    const closed = (some: readonly FakeSocket[]) => some.filter(({ closed }) => closed).length
    const shops = Array.from({ length: 300 }, () => come('192.0.2.1', true))
    const few = Array.from({ length: 20 }, (_, at) => come(`192.0.2.${at + 2}`, false))
    const crowd = Array.from({ length: connectionsMost - 320 }, (_, at) => come(`198.51.100.${at % 15}`, false))
    assert.equal(closed([...shops, ...few, ...crowd]), 0)
    elapsed = 60_000
    const opened = Array.from({ length: 40 }, () => socketFrom('10.0.0.1'))
    assert.deepEqual([closed(opened), closed(shops), closed(few), closed(crowd)], [0, 0, 0, 40])
    // One on which nothing has been asked for a while goes first.
    elapsed = 62_000
    const late = socketFrom('10.0.0.1')
    assert.deepEqual([late.closed, opened[0]!.closed, closed(crowd)], [false, true, 40])
    connections.stop()
  })

  it('through a proxy on which somebody sends slowly stay, while one caller half sends more', () => {
    let elapsed = 0
    const { connections, begin, crowdFrom } = makeWatch(address => address === '10.0.0.1', {
      ...systemClock,
      elapsed: () => elapsed,
    })
    // With a token, which is no part of the 1024.
    const come = (caller: string, count: number) => crowdFrom('10.0.0.1', count, socket => begin(socket, caller, [], 'of one'))
    const slow = [...come('192.0.2.1', 1), ...come('192.0.2.2', 2)]
    elapsed = 2000
    const crowd = come('198.51.100.1', connectionsMost - 3)
    elapsed = 4000
    const more = come('198.51.100.1', 50)
    assert.deepEqual([slow, more].map(closedOf), [0, 0])
    assert.deepEqual([closedOf(crowd), closedOf(crowd.slice(0, 50))], [50, 50])
    connections.stop()
  })

  it('wait from their last answer on, or from what has begun there since, and who has waited for longest goes', () => {
    const { connections, socketFrom, begin, answeredOn } = makeWatch()
    const sockets = Array.from({ length: networkConnectionsMost }, () => socketFrom('192.0.2.7'))
    for (const socket of sockets) answeredOn(socket)
    const [busy, begun, idle, later] = sockets
    answeredOn(busy!)
    begin(begun!)
    answeredOn(socketFrom('192.0.2.7'))
    assert.deepEqual(
      [busy, begun, idle, later].map(one => one?.closed),
      [false, false, true, false],
    )
    connections.stop()
  })

  it('of one network of IPv6 count together', () => {
    const { connections, socketFrom } = makeWatch()
    const crowd = Array.from({ length: networkConnectionsMost + 10 }, (_, at) => socketFrom(`2001:db8:1:2::${at.toString(16)}`))
    assert.equal(crowd.filter(({ closed }) => closed).length, 10)
    connections.stop()
  })

  it('that are owed answers stay, and so do those of a proxy while a network has more than some of its callers', () => {
    const { connections, ask, answeredOn, crowdFrom } = makeWatch(address => address === '10.0.0.1')
    const come = (address: string, count: number) => crowdFrom(address, count, socket => answeredOn(socket))
    const crowd = come('192.0.2.1', 400)
    const proxied = come('10.0.0.1', connectionsMost - 400)
    const owed = crowd[0]!
    ask(owed)
    const late = [...come('192.0.2.3', 1), ...come('192.0.2.4', 1)]
    assert.equal(closedOf([owed, ...late]), 0)
    assert.deepEqual([crowd, proxied].map(closedOf), [2, 0])
    connections.stop()
  })

  it('of a proxy make room for those of a network that has few', () => {
    const { connections, socketFrom, begin, crowdFrom } = makeWatch(address => address === '10.0.0.1')
    const come = (address: string, count: number) => crowdFrom(address, count, socket => begin(socket))
    const few = come('192.0.2.1', 10)
    const proxied = Array.from({ length: connectionsMost + 40 }, () => socketFrom('10.0.0.1'))
    const late = come('192.0.2.2', 1)
    assert.deepEqual([few, late, proxied].map(closedOf), [0, 0, 51])
    connections.stop()
  })

  it('whose answers nobody takes make room for others, those of the largest crowd first', () => {
    const { connections, socketFrom, ask, crowdFrom } = makeWatch()
    const silent = (address: string): FakeSocket => {
      const socket = socketFrom(address)
      ask(socket)
      return Object.assign(socket, { writableLength: 1 })
    }
    const crowd = ['198.51.100.1', '198.51.100.2', '198.51.100.3'].flatMap(address =>
      Array.from({ length: networkConnectionsMost }, () => silent(address)),
    )
    const smaller = Array.from({ length: networkConnectionsMost }, (_, at) => silent(at < 4 ? '192.0.2.1' : '198.51.100.4'))
    // Whose answer is still to be made is in nobody's way for being slow.
    const waits = crowd[0]!
    Object.assign(waits, { writableLength: 0 })
    const late = crowdFrom('192.0.2.8', 8, socket => ask(socket))
    assert.ok(
      [...late, ...smaller, waits].every(({ closed }) => !closed),
      'who came late is let in',
    )
    assert.equal(crowd.filter(({ closed }) => closed).length, 8)
    // One network’s own newcomers take the places of its own.
    const next = silent('198.51.100.2')
    assert.equal(next.closed, false)
    connections.stop()
  })

  it('hold so many bytes of answers together, and who has held most for longest goes: a large one that has just been made stays', () => {
    let elapsed = 0
    const { connections, socketFrom, begin } = makeWatch(undefined, { ...systemClock, elapsed: () => elapsed })
    const size = 1024 * 1024
    const answer = (bytes: number): FakeSocket => {
      const socket = socketFrom('192.0.2.7')
      connections.answers(begin(socket), bytes - requestBytes)
      return socket
    }
    const slow = answer(size)
    const slower = answer(size * 2)
    const taken = answer(size * 4)
    taken.destroy()
    elapsed = 10_000
    const large = answer(size * 20)
    const crowd = Array.from({ length: untakenBytesMost / size - 23 }, () => answer(size))
    assert.ok(
      [slow, slower, large, ...crowd].every(({ closed }) => !closed),
      'all that there is room for',
    )
    const next = [answer(size), answer(size)]
    assert.deepEqual(
      [slower, slow, large].map(({ closed }) => closed),
      [true, false, false],
    )
    answer(size)
    assert.deepEqual([slow, large, ...next, ...crowd].map(({ closed }) => closed).filter(Boolean).length, 1)
    assert.ok(slow.closed)
    connections.stop()
  })

  it('hold the requests whose answers nobody takes, and those behind them, however small these are', () => {
    const { clock, tick } = standingClock()
    const { connections, socketFrom, begin } = makeWatch(undefined, clock)
    const heads = Array.from({ length: 14 }, (_, at) => [`x-${at}`, '1']).flat()
    const crowd = Array.from({ length: 1000 }, (_, at) => {
      tick(Math.floor(at / 200))
      const socket = socketFrom(`198.51.100.${at % 100}`)
      for (let count = 0; count < unfinishedMost; count++) {
        const asked = begin(socket, undefined, heads)
        connections.begins(asked)
        connections.answers(asked, 100)
      }
      return socket
    })
    const held = crowd.filter(({ closed }) => !closed).length * unfinishedMost
    assert.ok(held * 5000 < untakenBytesMost && held * 6000 > untakenBytesMost, `${held}`)
    connections.stop()
  })

  it('are held by what has long been there: a large body that comes at once is not the one that goes', () => {
    let elapsed = 0
    const { connections, socketFrom, begin } = makeWatch(undefined, { ...systemClock, elapsed: () => elapsed })
    const keep = (bytes: number): FakeSocket => {
      const socket = socketFrom('192.0.2.7')
      connections.keeps(begin(socket), bytes - requestBytes)
      return socket
    }
    const crowd = Array.from({ length: 1000 }, () => keep(unfinishedBytesMost / 1000 - 10))
    elapsed = 5000
    const large = keep(100_000)
    assert.equal(large.closed, false)
    assert.equal(crowd.filter(({ closed }) => closed).length, 1)
    connections.stop()
  })

  it('are held by networks: one caller’s slow and large body stays, however quickly another network renews its many', () => {
    let elapsed = 0
    const { connections, socketFrom, begin } = makeWatch(undefined, { ...systemClock, elapsed: () => elapsed })
    const keep = (address: string, bytes: number): FakeSocket => {
      const socket = socketFrom(address)
      connections.keeps(begin(socket), bytes - requestBytes)
      return socket
    }
    const slow = keep('192.0.2.8', 98_000)
    elapsed = 60_000
    const size = unfinishedBytesMost / 1000
    const crowd = Array.from({ length: 1020 }, (_, at) => keep(`2001:db8:0:${(at % 256).toString(16)}::7`, size))
    assert.equal(slow.closed, false)
    assert.ok(crowd.some(({ closed }) => closed))
    connections.stop()
  })

  it('of those whom we know are not among them, while there are so many; those of one more are, and those of one that has gone or begun are not counted', () => {
    const { connections, socketFrom, begin } = makeWatch()
    const share = unfinishedBytesMost / knownMost
    let name = ''
    const known: boolean[] = []
    const keep = (address: string, bytes: number, isKnown = false) => {
      const socket = socketFrom(address)
      const incoming = begin(socket)
      connections.keeps(incoming, 1000)
      if (isKnown) known.push(connections.knows(incoming, name))
      connections.keeps(incoming, bytes - requestBytes)
      return { socket, incoming }
    }
    const ofNetwork = Array.from({ length: knownMost }, (_, at) => {
      name = `${at % (knownMost / knownOfOneMost)}`
      return keep('192.0.2.7', share, true)
    })
    name = 'alone'
    const strangers = Array.from({ length: knownMost - 1 }, (_, at) => keep(`198.51.100.${at}`, share))
    const oneMore = keep('192.0.2.7', share - 20_000, true)
    const closed = () => [...ofNetwork, oneMore, ...strangers].filter(({ socket }) => socket.closed).length
    assert.equal(closed(), 0)
    keep('203.0.113.1', 30_000)
    assert.equal(closed(), 1, 'the one more is counted among strangers')
    assert.ok(ofNetwork.every(({ socket }) => !socket.closed))
    name = 'another'
    ofNetwork[0]!.socket.destroy()
    connections.begins(ofNetwork[1]!.incoming)
    connections.cuts(ofNetwork[2]!.incoming)
    for (let at = 0; at < 3; at++) ofNetwork[at] = keep('192.0.2.7', 2 * share, true)
    for (const one of ofNetwork.slice(3, 6)) one.socket.destroy()
    ofNetwork.splice(3, 3, keep('192.0.2.7', 2 * share, true))
    const before = closed()
    strangers.push(keep('192.0.2.7', 2 * share, true))
    assert.ok(closed() > before, 'of one there are no more than four')
    assert.deepEqual(known, [...known.slice(0, -1).map(() => true), false])
    name = 'one more'
    ofNetwork.push(keep('192.0.2.7', 2 * share, true), keep('192.0.2.7', 2 * share, true))
    strangers.push(keep('192.0.2.7', 2 * share, true))
    const went = closed()
    assert.ok(went > 1)
    assert.ok(
      ofNetwork.every(({ socket }) => !socket.closed),
      'there was room for three again, and no more',
    )
    connections.stop()
  })

  it('behind a proxy are held by callers: who renews its many pushes out no other, and its own go', () => {
    let elapsed = 0
    const clock = { ...systemClock, elapsed: () => elapsed }
    const { connections, socketFrom, begin } = makeWatch(address => address === '10.0.0.1', clock)
    const keep = (caller: string, bytes: number): FakeSocket => {
      const socket = socketFrom('10.0.0.1')
      connections.keeps(begin(socket, caller), bytes - requestBytes)
      return socket
    }
    const answer = (caller: string, bytes: number): FakeSocket => {
      const socket = socketFrom('10.0.0.1')
      connections.answers(begin(socket, caller), bytes - requestBytes)
      return socket
    }
    const slow = [keep('192.0.2.8', 98_000), answer('192.0.2.8', 98_000)]
    elapsed = 60_000
    for (const [most, hold] of [
      [unfinishedBytesMost, keep],
      [untakenBytesMost, answer],
    ] as const) {
      const crowd = Array.from({ length: 510 }, () => hold('198.51.100.1', most / 500))
      assert.equal(crowd.filter(({ closed }) => closed).length, 11)
    }
    assert.deepEqual(
      slow.map(({ closed }) => closed),
      [false, false],
    )
    connections.stop()
  })

  it('hold the heads of requests that have not begun: their letters, and something for each text', () => {
    const { connections, begin, crowdFrom } = makeWatch()
    const heads = Array.from({ length: 100 }, (_, at) => [`x-${at}`, 'a'.repeat(150)]).flat()
    const crowd = ['198.51.100.1', '198.51.100.2', '198.51.100.3', '198.51.100.4'].flatMap(address =>
      crowdFrom(address, 1000, socket => begin(socket, address, heads)),
    )
    const open = crowd.filter(({ closed }) => !closed)
    assert.ok(open.length > 1500 && open.length * 24_000 < unfinishedBytesMost, `${open.length} are open`)
    connections.stop()
  })

  describe('that come when all places are taken cost little more than those for which there is room', () => {
    type Watch = ReturnType<typeof makeWatch>
    const few = (at: number) => `198.51.100.${at % 5}`
    const ofOne48 = (at: number) => `2001:db8:1:${(at % 65_536).toString(16)}::7`
    const each = (at: number) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
    const half = ({ begin }: Watch, socket: Socket) => void begin(socket)
    const press = ({ ask }: Watch, socket: Socket) => void Object.assign(ask(socket), { method: 'POST' })
    for (const [name, had, comes, asks] of [
      ['where few hold all', few, few, half],
      ['where the networks of a /48 do', ofOne48, ofOne48, half],
      ['where thousands hold one each', each, each, half],
      ['where all stand in line', ofOne48, few, press],
    ] as const)
      it(name, async () => {
        const come = (watch: Watch, from: (at: number) => string, count: number) => {
          for (let at = 0; at < count; at++) asks(watch, watch.socketFrom(from(at)))
        }
        const full = makeWatch()
        come(full, had, connectionsMost)
        const beside = () => {
          const watch = makeWatch()
          come(watch, comes, 500)
          watch.connections.stop()
        }
        // Of each crowd a thousand are looked at, more than once.
        await costsTimes(30, beside, () => come(full, comes, 500), 'five hundred')
        full.connections.stop()
      })
  })

  it('that come when all places are taken look at those who came first, and not at everybody', () => {
    let looks = 0
    const { connections, socketFrom, begin } = makeWatch()
    const half = (at: number) =>
      Object.defineProperty(begin(socketFrom(`198.51.100.${at % 5}`)), 'complete', {
        get() {
          looks++
          return false
        },
      })
    for (let at = 0; at < connectionsMost; at++) half(at)
    looks = 0
    for (let at = 0; at < 100; at++) half(connectionsMost + at)
    assert.ok(looks > 0 && looks < 100 * 20, `${looks} looks`)
    connections.stop()
  })

  it('of a /56 or a /48 of IPv6 are one crowd: who is one of many networks there goes before a neighbour with more', () => {
    const { connections, answeredOn, crowdFrom } = makeWatch()
    const come = (count: number, address: (at: number) => string) => crowdFrom(address, count, socket => answeredOn(socket))
    const shop = come(24, () => '192.0.2.7')
    const crowd = come(connectionsMost - 24, at => `2001:db8:0:${(at % 256).toString(16)}::${at}`)
    const late = come(30, at => `198.51.100.${at}`)
    assert.deepEqual([shop, late, crowd].map(closedOf), [0, 0, 30])
    connections.stop()
  })

  it('hold so many bytes of unfinished bodies together, and that with the most of them goes', () => {
    const { connections, socketFrom, begin, crowdFrom } = makeWatch()
    const small = socketFrom('192.0.2.7')
    connections.keeps(begin(small), 500)
    const size = 250 * 1024
    const crowd = crowdFrom('198.51.100.1', Math.ceil(unfinishedBytesMost / size) + 100, socket =>
      connections.keeps(begin(socket), size),
    )
    const open = crowd.filter(({ closed }) => !closed).length
    assert.ok(open * size <= unfinishedBytesMost && open > 200, `${open} are open`)
    assert.equal(small.closed, false)
    connections.stop()
  })

  it('hold more bytes where they are a merchant’s server’s: his burst is there for a moment, what strangers hold for long', () => {
    const { connections, socketFrom, begin, ask, begins } = makeWatch()
    begins(ask(socketFrom('192.0.2.99')), true)
    const hold = (address: string, bytes: number) => {
      const socket = socketFrom(address)
      connections.keeps(begin(socket), bytes - requestBytes)
      return socket
    }
    const strangers = Array.from({ length: 63 }, (_, at) => hold(`198.51.100.${at}`, unfinishedBytesMost / 64))
    const burst = Array.from({ length: 4 }, () => hold('192.0.2.99', merchantsBytes / 4))
    const closed = (some: readonly FakeSocket[]) => some.filter(({ closed }) => closed).length
    assert.deepEqual([closed(burst), closed(strangers)], [0, 3])
    const more = hold('192.0.2.99', 2 * (unfinishedBytesMost / 64))
    assert.equal(closed([...burst, more]), 1)
    connections.stop()
  })

  it('hold more bytes where they are a merchant’s server’s behind a proxy too', () => {
    const { connections, socketFrom, begin, ask, begins } = makeWatch(address => address === '10.0.0.1')
    begins(ask(socketFrom('10.0.0.1'), '192.0.2.99'), true)
    const hold = (caller: string, bytes: number) => {
      const socket = socketFrom('10.0.0.1')
      connections.keeps(begin(socket, caller), bytes - requestBytes)
      return socket
    }
    const strangers = Array.from({ length: 63 }, (_, at) => hold(`198.51.100.${at}`, unfinishedBytesMost / 64))
    const burst = Array.from({ length: 4 }, () => hold('192.0.2.99', merchantsBytes / 4))
    const closed = (some: readonly FakeSocket[]) => some.filter(({ closed }) => closed).length
    assert.deepEqual([closed(burst), closed(strangers)], [0, 3])
    connections.stop()
  })

  it('that are all merchants’ make room too', () => {
    const { connections, socketFrom, begin, ask, begins } = makeWatch()
    const sockets = Array.from({ length: 40 }, (_, at) => {
      const address = `192.0.2.${at}`
      const asked = ask(socketFrom(address))
      begins(asked, false)
      connections.isServers(asked, `${at}`)
      const socket = socketFrom(address)
      connections.keeps(begin(socket), merchantsBytes / 2)
      return socket
    })
    socketFrom('198.51.100.1')
    assert.ok(sockets.some(({ closed }) => closed))
    connections.stop()
  })

  it('hold bodies that wait for their turn with those that have not come whole, and let go of them with the connection', () => {
    const { connections, socketFrom, begin } = makeWatch()
    const size = Math.floor(unfinishedBytesMost / 3) - requestBytes
    const wait = (socket: Socket): IncomingMessage => {
      const incoming = begin(socket)
      connections.keeps(incoming, size)
      connections.waits(incoming, 'x'.repeat(size))
      return incoming
    }
    const [large, small] = [socketFrom('198.51.100.1'), socketFrom('192.0.2.7')]
    const [first, second, other] = [wait(large), wait(large), wait(small)]
    assert.equal(connections.begins(first)?.length, size)
    const third = wait(large)
    assert.equal(large.closed, false, 'what has begun is counted no more')
    wait(large)
    const last = wait(small)
    assert.deepEqual([large.closed, small.closed], [true, false])
    assert.deepEqual(
      [second, third, other, last].map(one => connections.begins(one)?.length),
      [undefined, undefined, size, size],
    )
    connections.stop()
  })
})

describe('requests of one network that wait for their answers', () => {
  const pinned = (watch: ReturnType<typeof makeWatch>, addresses: readonly string[], each: number) =>
    addresses.map(address => {
      const socket = watch.socketFrom(address)
      for (let at = 0; at < each; at++) watch.ask(socket)
      return socket
    })
  const full = Array<string>(networkUnfinishedMost / 16).fill('198.51.100.0')

  it('are bounded, however many connections they share: who asks on one more has the place of whom most is owed', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(undefined, clock)
    const elsewhere = pinned(watch, ['203.0.113.1'], 30)
    const few = pinned(watch, full.slice(0, 16), 15)
    tick(1)
    const many = pinned(watch, full, 16)
    assert.deepEqual([elsewhere, few, many].map(closedOf), [0, 0, 15], 'sixteen less for each')
    const [neighbour, another] = pinned(watch, ['198.51.100.0', '198.51.100.1'], 12)
    assert.deepEqual([neighbour!.closed, another!.closed, closedOf(many)], [false, false, 16])
    watch.connections.stop()
  })

  it('are closed where on none is more, without a word', () => {
    const watch = makeWatch(undefined, systemClock, () => assert.fail('this is said to proxies'))
    const many = pinned(watch, full, 16)
    watch.ask(many[5]!)
    assert.deepEqual([many[5]!.closed, closedOf(many)], [true, 1])
    assert.equal(closedOf(pinned(watch, full.slice(0, 1), 16)), 0, 'what it had is free')
    watch.connections.stop()
  })

  it('cost nothing of whom a token is known, nor is what his servers wait for closed for others', () => {
    const watch = makeWatch()
    const server = watch.socketFrom('198.51.100.0')
    for (let at = 0; at < 30; at++) watch.begins(watch.ask(server), true)
    const many = pinned(watch, full, 16)
    assert.deepEqual([server.closed, closedOf(many)], [false, 2])
    const asked = watch.socketFrom('198.51.100.0')
    for (let at = 0; at < unfinishedMost; at++) watch.begin(asked, undefined, [], 'one')
    assert.deepEqual([asked.closed, closedOf(many)], [false, 2])
    watch.connections.stop()
  })

  it('of a token are none of a stranger’s there; and an answer to one that nobody takes spares no connection', () => {
    const watch = makeWatch()
    const others = Array.from({ length: networkUnfinishedMost / 32 }, () => {
      const socket = watch.socketFrom('198.51.100.0')
      for (let at = 0; at < 32; at++) watch.begin(socket, undefined, [], 'one')
      return socket
    })
    const shopper = pinned(watch, ['198.51.100.0'], 20)
    assert.equal(closedOf([...others, ...shopper]), 0)
    const unread = Array.from({ length: networkUnfinishedMost / 24 - 1 }, () => {
      const socket = watch.socketFrom('198.51.100.0')
      const asked = watch.begin(socket, undefined, [], 'one')
      watch.begins(asked, true)
      watch.connections.answers(asked, 100_000)
      for (let at = 0; at < 24; at++) watch.ask(socket)
      return socket
    })
    assert.equal(closedOf([...others, ...shopper, ...unread]), 0)
    const neighbours = pinned(watch, Array<string>(3).fill('198.51.100.0'), 8)
    assert.deepEqual([others, shopper, neighbours, unread].map(closedOf), [0, 0, 0, 1])
    watch.connections.stop()
  })

  it('and of which nothing has come whole make room for whoever asks for the first time, the oldest first', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(undefined, clock)
    const half = (address: string) => {
      const socket = watch.socketFrom(address)
      watch.begin(socket)
      return socket
    }
    const crowd = Array.from({ length: 2 * networkUnfinishedMost }, (_, at) => {
      tick(Math.floor(at / 100))
      return half(`2001:db8:1:10${at % 3}::7`)
    })
    const shoppers = [half('2001:db8:1:1ff::7'), ...pinned(watch, ['2001:db8:1:1ff::7'], 1)]
    assert.deepEqual([shoppers, crowd, crowd.slice(0, 100)].map(closedOf), [0, 2, 2])
    const elsewhere = half('2001:db8:1:200::7')
    assert.deepEqual([elsewhere.closed, closedOf(crowd)], [false, 2], 'not of the same /56')
    watch.connections.stop()
  })

  it('and whose answer nobody takes make room for whoever asks for the first time', () => {
    const { clock, tick } = standingClock(() => true)
    const watch = makeWatch(undefined, clock)
    const crowd = Array.from({ length: 2 * networkUnfinishedMost }, (_, at) => {
      tick(Math.floor(at / 1000))
      const socket = watch.socketFrom(`2001:db8:1:10${at % 3}::7`)
      watch.connections.answers(watch.ask(socket), 100)
      return Object.assign(socket, { writableLength: 1 })
    })
    tick(4)
    const shopper = pinned(watch, ['2001:db8:1:1ff::7'], 1)
    assert.deepEqual([shopper, crowd].map(closedOf), [0, 1])
    watch.connections.stop()
  })

  it('are of a /48 of IPv6 together as many as of four addresses, and of it those go on which most is asked', () => {
    const { clock, tick } = standingClock()
    const watch = makeWatch(undefined, clock)
    const addresses = Array.from({ length: 16 }, (_, at) => `2001:db8:1:${(at << 8).toString(16)}::7`)
    const many = addresses.map((address, at) => {
      tick(at)
      return pinned(watch, Array<string>(20).fill(address), 16)
    })
    const held = 16 * (many.flat().length - closedOf(many.flat()))
    assert.ok(held <= 4 * networkUnfinishedMost && held > 4 * networkUnfinishedMost - 16, `${held}`)
    const before = closedOf(many.flat())
    assert.equal(closedOf(pinned(watch, ['2001:db8:1:99::7'], 12)), 0)
    assert.equal(closedOf(many.flat()), before + 1)
    watch.connections.stop()
  })
})

function makeProxied() {
  const { connections, socketFrom } = makeWatch(address => address === '10.0.0.1')
  const ask = (socket: Socket, caller: string): EventEmitter | undefined => {
    const outgoing = someAnswer()
    const incoming = { socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
    return connections.asked(incoming, outgoing, caller) ? outgoing : undefined
  }
  return { connections, socketFrom, ask }
}

it('requests of one caller behind a proxy are bounded as those of a network, whichever of its connections they come on', () => {
  const { connections, socketFrom, ask } = makeProxied()
  const proxied = Array.from({ length: networkUnfinishedMost + 3 }, () => socketFrom('10.0.0.1'))
  const asked = proxied.slice(0, networkUnfinishedMost).map(socket => ask(socket, '192.0.2.7'))
  assert.ok(asked.every(outgoing => outgoing !== undefined))
  const [more, next, direct] = [proxied.at(-1)!, proxied.at(-2)!, socketFrom('192.0.2.7')]
  assert.equal(ask(more, '192.0.2.7'), undefined)
  assert.ok(more.closed)
  assert.equal(ask(direct, '192.0.2.7'), undefined, 'nor without the proxy')
  // The others of the proxy ask on, also on a connection that was of this caller before.
  assert.ok(ask(next, '192.0.2.8'))
  asked[0]!.emit('close')
  assert.ok(ask(proxied[0]!, '192.0.2.8'))
  assert.ok(ask(proxied.at(-3)!, '192.0.2.7'), 'one is answered')
  connections.stop()
})

it('requests that have come whole through a proxy stay, one behind the other too: their connection carries others', () => {
  const { connections, socketFrom, ask } = makeProxied()
  const proxied = Array.from({ length: networkUnfinishedMost - 1 }, () => socketFrom('10.0.0.1'))
  for (const socket of [...proxied.slice(1), proxied[0]!, proxied[0]!]) assert.ok(ask(socket, '192.0.2.7'))
  const [more, other] = [socketFrom('10.0.0.1'), socketFrom('10.0.0.1')]
  assert.equal(ask(more, '192.0.2.7'), undefined)
  assert.ok(ask(other, '192.0.2.8'))
  assert.deepEqual(
    [...proxied, other].filter(({ closed }) => closed),
    [],
  )
  connections.stop()
})

describe('a proxy whose caller has too much under way', () => {
  const proxy = '127.0.0.2'
  const crowded = '127.0.0.1'
  let gateway: TestGateway
  const open: Heard[] = []
  before(async () => {
    gateway = await testGateway({ environment: { TRUSTED_PROXY: proxy } })
  })
  afterEach(() => {
    const all = open.splice(0)
    for (const { socket } of all) socket.destroy()
    return Promise.all(all.map(({ over }) => over))
  })
  after(() => gateway.stop())

  type Heard = { readonly socket: Socket; got: string; readonly over: Promise<unknown> }
  function send(text: string | Buffer, localAddress = proxy): Heard {
    const socket = connect({ port: Number(new URL(gateway.baseUrl).port), host: '127.0.0.1', localAddress })
    const heard = { socket, got: '', over: ended(socket) }
    open.push(heard)
    socket.setEncoding('latin1').on('data', (piece: string) => {
      heard.got += piece
    })
    socket.write(text)
    return heard
  }
  const head = (caller: string, ...more: string[]) =>
    [
      'POST /v1/payments HTTP/1.1',
      'Host: localhost',
      `X-Forwarded-For: ${caller}`,
      'Content-Type: application/x-www-form-urlencoded',
      ...more,
      '\r\n',
    ].join('\r\n')
  const codes = (caller: string) =>
    `GET /v1/resultcodes HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${caller}\r\nConnection: close\r\n\r\n`
  const assertRefused = async (heard: Heard) => {
    await heard.over
    assert.match(heard.got, /^HTTP\/1\.1 429 Too Many Requests\r\n(?=.*\r\nRetry-After: 1\r\n)(?=.*\r\nConnection: close\r\n)/s)
    assert.equal(heard.got.split('HTTP/1.1 ').length, 2, 'what stands behind it is not looked at')
  }
  const assertServed = async (caller: string) => {
    const heard = send(codes(caller))
    await heard.over
    assert.match(heard.got, /^HTTP\/1\.1 200 OK/)
  }
  /** The gateway has read what was sent before. */
  const isRead = () => assertServed('192.0.2.8')

  it('is told of those requests that have not come whole, for longest; he is served for others, and whoever is there for what he sends', async () => {
    const half = () => send(head(crowded, 'Content-Length: 9'))
    const crowd = Array.from({ length: networkUnfinishedMost }, half)
    await Promise.all(crowd.map(({ socket }) => once(socket, 'connect')))
    await isRead()
    const late = [half(), half(), half()]
    await eventually(async () => crowd.filter(({ got }) => got !== '').length === 3, 'three of them are told')
    for (const heard of crowd.filter(({ got }) => got !== '')) await assertRefused(heard)
    assert.ok(late.every(({ socket, got }) => !socket.destroyed && got === ''))
    await assertServed(crowded)
    const direct = send(codes(crowded), crowded)
    await direct.over
    assert.match(direct.got, /^HTTP\/1\.1 200 OK/)
    await assertServed('192.0.2.8')
    // One for the page behind the proxy, and none for the other, whose place that had left.
    assert.equal(crowd.filter(({ got }) => got !== '').length, 4)
  })

  it('hears whose servers call, also where their request is refused; of shoppers and strangers nothing, and nobody else hears it', async () => {
    const { id } = (
      await gateway.post('/v1/checkouts', { entityId: sandbox.entityId, amount: '92.00', currency: 'EUR', paymentType: 'DB' })
    ).body as { id: string }
    const form = new URLSearchParams(visa).toString()
    const request = (method: string, path: string, header: string, body = '') =>
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.77\r\n${header}Connection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const hears = async (text: string, from?: string) => {
      const one = send(text, from)
      await one.over
      assert.match(one.got, /^HTTP\/1\.1 \d/)
      return /\r\nX-Tollgate-Caller: merchant\r\n/.test(one.got)
    }
    const reads = `/v1/payments/${'0'.repeat(32)}?entityId=${sandbox.entityId}`
    const [good, wrong] = [`Authorization: Bearer ${sandbox.accessToken}\r\n`, 'Authorization: Bearer wrong\r\n']
    assert.equal(await hears(request('GET', reads, good)), true)
    const load = `<Request version="1.0"><Header><Security/></Header><Query entity="${sandbox.entityId}" level="CHANNEL" mode="INTEGRATOR_TEST" type="STANDARD"><Identification><UniqueID>${'0'.repeat(32)}</UniqueID></Identification></Query></Request>`
    assert.equal(await hears(request('POST', '/payment/query', good, new URLSearchParams({ load }).toString())), true)
    assert.equal(await hears(request('GET', reads, good), '127.0.0.8'), false)
    for (const [method, path, header, body] of [
      ['GET', reads, wrong],
      ['GET', '/v1/resultcodes', good],
      ['OPTIONS', `/v1/checkouts/${id}/payment/`, good],
      ['POST', `/v1/checkouts/${id}/payment`, '', form],
    ] as const)
      assert.equal(await hears(request(method, path, header, body)), false, `${method} ${path}`)
  })

  it('leaves a line with his address, and is counted', async () => {
    const before = gateway.logged.length
    await assertRefused(send(`${head('192.0.2.9', 'Transfer-Encoding: chunked')}${'1\r\na\r\n'.repeat(9000)}0\r\n\r\n`))
    const all = gateway.logged.slice(before).map(text => JSON.parse(text))
    const lines = all.filter(({ message }) => message === 'a caller was turned away')
    assert.deepEqual(
      lines.map(({ level, status, address }) => ({ level, status, address })),
      [{ level: 'warn', status: 429, address: '192.0.2.9' }],
    )
  })

  it('gets one for a body in small pieces', async () => {
    const chunked = head('192.0.2.7', 'Transfer-Encoding: chunked')
    await assertRefused(send(`${chunked}${'1\r\na\r\n'.repeat(9000)}0\r\n\r\n${codes('192.0.2.7')}`))
    await assertServed('192.0.2.8')
  })

  it('gets one for bodies that make room', async () => {
    const size = 250 * 1024
    const body = (at: number) => head(`198.51.100.${at % 8}`, `Content-Length: ${size + 1}`) + 'a'.repeat(size)
    const crowd: Heard[] = []
    const most = Math.ceil(unfinishedBytesMost / size) + 2
    while (crowd.length < most) {
      crowd.push(send(body(crowd.length)))
      if (crowd.length % 60 > 0) continue
      await isRead()
      await new Promise(resolve => setTimeout(resolve, 1100)) // twice as many strangers may send in a second
    }
    const answered = () => crowd.filter(({ got }) => got !== '')
    await eventually(async () => answered().length > 0, 'some are answered')
    await Promise.all(answered().map(assertRefused))
    assert.ok(answered().length <= 9)
    assert.ok(crowd.every(({ socket, got }) => got !== '' || !socket.destroyed))
    await assertServed('192.0.2.8')
  })
})

it('a connection ends when all is answered that was asked before the end, a body that was cut among it, and is closed soon', () => {
  const { clock, tick } = standingClock(everybody)
  const { connections, socketFrom } = makeWatch(undefined, clock)
  let now = 0
  const socket = socketFrom('192.0.2.7')
  let ends = 0
  Object.assign(socket, { end: () => ends++ })
  const asked = (complete: boolean) => {
    const incoming = { socket, complete, rawHeaders: [] as string[] } as IncomingMessage
    const outgoing = someAnswer()
    assert.ok(connections.asked(incoming, outgoing, '192.0.2.7'))
    return { incoming, outgoing }
  }
  const isClosedAfter = (seconds: number) => {
    now += seconds
    tick(now)
    return socket.closed
  }
  const [first, cut] = [asked(true), asked(false)]
  connections.cuts(cut.incoming)
  assert.equal(isClosedAfter(50), false)
  first.outgoing.emit('close')
  assert.equal(ends, 0)
  cut.outgoing.emit('close')
  assert.equal(ends, 1)
  // What still comes is taken in for a while, and no longer for what comes.
  assert.equal(isClosedAfter(3), false)
  connections.closeSoon(socket)
  assert.deepEqual([isClosedAfter(1), isClosedAfter(2)], [false, true])
  connections.stop()
})

it('what a proxy was answered last is taken in a moment: for a caller it is waited longer', () => {
  const { clock, tick } = standingClock(everybody)
  const { connections, socketFrom } = makeWatch(address => address === '10.0.0.1', clock)
  const sockets = [socketFrom('10.0.0.1'), socketFrom('192.0.2.7')]
  for (const socket of sockets) {
    const outgoing = someAnswer()
    const incoming = { socket, complete: false, rawHeaders: [] as string[] } as IncomingMessage
    Object.assign(socket, { end() {} })
    connections.asked(incoming, outgoing, '192.0.2.7')
    connections.cuts(incoming)
    outgoing.emit('close')
  }
  const closedAt = (seconds: number) => {
    tick(seconds + 0.001)
    return sockets.map(({ closed }) => closed)
  }
  assert.deepEqual([0.9, 1, 4.9, 5].map(closedAt), [
    [false, false],
    [true, false],
    [true, false],
    [true, true],
  ])
  connections.stop()
})

it('callers of IPv4 are as many networks, however the socket that they came to writes them', () => {
  const { connections, socketFrom } = makeWatch()
  const ask = (socket: Socket) => {
    const incoming = { socket, complete: true, rawHeaders: [] as string[] } as IncomingMessage
    return connections.asked(incoming, someAnswer(), socket.remoteAddress!)
  }
  const crowd = Array.from({ length: networkUnfinishedMost / unfinishedMost }, () => socketFrom('::ffff:198.51.100.1'))
  for (const socket of crowd) for (let at = 0; at < unfinishedMost; at++) assert.ok(ask(socket))
  const closed = (address: string) => {
    assert.ok(ask(socketFrom(address)))
    return crowd.filter(({ closed }) => closed).length
  }
  assert.equal(closed('::ffff:198.51.100.2'), 0)
  assert.equal(closed('198.51.100.1'), 1)
  for (let at = 1; at < unfinishedMost; at++) closed('::FFFF:198.51.100.1')
  assert.equal(closed('::FFFF:198.51.100.1'), 2)
  connections.stop()
})

it('pages that wait for the database keep neither payments nor readiness waiting', async () => {
  const gateway = await testGateway()
  const client = await gateway.pool.connect()
  try {
    const away = {
      shopperResultUrl: 'https://shop.example/',
      'card.number': '4200000000000018',
      'customParameters[3DS2_enrolled]': 'true',
    }
    const made = await Promise.all(Array.from({ length: 24 }, () => gateway.pay(away)))
    await client.query('begin; lock table continuations in access exclusive mode')
    const pages = made.map(({ body }) => fetch(body.redirect.url))
    const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await eventually(async () => (await gateway.pool.query(waits)).rowCount! >= sizes.pages.max, 'they wait')
    assert.equal((await gateway.pay()).status, 200)
    assert.equal((await fetch(`${gateway.baseUrl}/health/ready`)).status, 200)
    await client.query('rollback')
    assert.ok((await Promise.all(pages)).every(({ status }) => status < 500))
  } finally {
    client.release()
    await gateway.stop()
  }
})

it('a crowd of one merchant keeps another waiting for a few of its statements, and no longer', async () => {
  const entityId = 'c0ffee000000000000000000000000c1'
  const accessToken = 'c0ffee-token-of-the-merchant-with-a-crowd'
  const merchant = { id: 'c0ffee000000000000000000000000e1', name: 'Crowd', channels: [{ id: entityId, name: 'Crowd' }] }
  const gateway = await testGateway({
    clock: patient,
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [{ id: 'c0ffee000000000000000000000000d1', name: 'Crowd', merchants: [merchant] }],
      tokens: [{ label: 'crowd', token: accessToken, entities: [merchant.id] }],
    },
  })
  const client = await gateway.pool.connect()
  try {
    const { body } = await gateway.pay()
    const answered: string[] = []
    // What its key may have made is looked for by one statement.
    const refused = async () => {
      const headers = { Authorization: `Bearer ${accessToken}`, 'Idempotency-Key': 'again' }
      const { status } = await gateway.post('/v1/payments', { entityId, amount: 'none' }, headers)
      answered.push(`crowd ${status}`)
    }
    const read = async () => {
      const { status } = await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })
      answered.push(`other ${status}`)
    }
    const allHaveCome = async () => (await fetch(`${gateway.baseUrl}/v1/resultcodes`)).text()
    await client.query('begin; lock table idempotency_keys in access exclusive mode')
    const crowd = Array.from({ length: 120 }, refused)
    await untilWaiting(gateway.pool, 'idempotency_keys', sizes.work.max)
    await allHaveCome()
    const other = read()
    await allHaveCome()
    await client.query('rollback')
    await Promise.all([...crowd, other])
    const place = answered.indexOf('other 200')
    assert.ok(place >= 0 && place < 60, `${place} came before`)
  } finally {
    client.release()
    await gateway.stop()
  }
})

it('what a request asks of the database it asks for its network, whatever it is', async () => {
  const asked: string[] = []
  const ends: (() => void)[] = []
  const fake = {
    query(address: string) {
      asked.push(address)
      return new Promise<void>(resolve => ends.push(resolve))
    },
  }
  const pool = fairPool(fake as unknown as pg.Pool, systemClock, 60, 1)
  const find = router({ build: '', clock: systemClock } as HttpParts, [
    {
      method: 'GET',
      path: '/slow',
      callers: 'token',
      answer: async ({ address }) => {
        await null
        await pool.query(address)
        return { status: 200, body: '' }
      },
    },
  ])
  const settled = () => new Promise(resolve => setImmediate(resolve))
  const ask = async (address: string) => find('GET', '/slow').answer(requestFrom(address))
  // Of one line with a /48, each from a network of its own there.
  const crowd = Array.from({ length: 250 }, (_, at) => ask(`2001:db8:5:${(at * 256).toString(16)}::1`))
  await settled()
  const other = ask('192.0.2.2')
  for (let at = 0; at < 251; at++) {
    ends[at]!()
    await settled()
  }
  await Promise.all([...crowd, other])
  const place = asked.indexOf('192.0.2.2')
  assert.ok(place > 1 && place < 12, `${place} statements before`)
})

describe('requests under way without a token', () => {
  it('are limited for a network, and for no other; one that is answered makes room', async () => {
    const waiting: (() => void)[] = []
    const parts = { build: '', clock: systemClock } as HttpParts
    const limited = router(parts, [
      {
        method: 'GET',
        path: '/slow',
        callers: 'anyone',
        answer: () => new Promise(resolve => waiting.push(() => resolve({ status: 200, body: '' }))),
      },
    ])
    const ask = (address: string) => {
      const request = requestFrom(address)
      return { request, answer: Promise.resolve(limited('GET', '/slow').answer(request)) }
    }
    const crowd = Array.from({ length: networkRequestsMost }, (_, at) => ask(`2001:db8::${at.toString(16)}`))
    const { status, headers } = await ask('2001:db8::ffff').answer
    assert.deepEqual([status, headers?.['Retry-After']], [429, '1'])
    const other = ask('2001:db8:0:1::1')
    for (const done of crowd[0]!.request.whenAnswered) done()
    const next = ask('2001:db8::1')
    // A household has twice as many, in however many networks.
    const household = Array.from({ length: 2 * networkRequestsMost }, (_, at) => ask(`2001:db8:5:${(at % 4).toString(16)}::1`))
    assert.equal((await ask('2001:db8:5:4::1').answer).status, 429)
    assert.equal(waiting.length, 3 * networkRequestsMost + 2)
    for (const go of waiting) go()
    await Promise.all(household.map(({ answer }) => answer))
    assert.deepEqual(await Promise.all([other, next].map(async ({ answer }) => (await answer).status)), [200, 200])
  })

  it('are counted too while it is looked whose they are, before their bodies; whoever cannot be looked up is not admitted', async () => {
    const waiting: ((isKnown: boolean) => void)[] = []
    const { admits } = router({ build: '', clock: systemClock } as HttpParts, [
      {
        method: 'POST',
        path: '/large',
        callers: 'anyone',
        admits: () =>
          new Promise((resolve, reject) =>
            waiting.push(isKnown => (isKnown ? resolve('somebody') : reject(new Error('no database')))),
          ),
        answer: () => ({ status: 200, body: '' }),
      },
    ])('POST', '/large')
    const crowd = Array.from({ length: networkRequestsMost }, () => admits!(requestFrom('192.0.2.7')))
    assert.equal(await admits!(requestFrom('192.0.2.7')), undefined)
    const other = admits!(requestFrom('192.0.2.8'))
    waiting[0]!(false)
    for (const go of waiting) go(true)
    assert.deepEqual(await Promise.all([...crowd, other]), [undefined, ...crowd.slice(1).map(() => 'somebody'), 'somebody'])
    const next = admits!(requestFrom('192.0.2.7'))
    waiting.at(-1)!(true)
    assert.equal(await next, 'somebody')
  })
})

it('a crowd is begun a few in each turn, and who comes meanwhile waits for no more than that turn', async () => {
  const turns: (() => void)[] = []
  const { turn, spent } = fairTurns(
    go => turns.push(go),
    () => 0,
  )
  const begun: string[] = []
  const begin = (network: string, bytes = 0, cost = 1) => turn([network], bytes, cost, () => begun.push(network))
  const settled = () => new Promise(resolve => setImmediate(resolve))
  const next = async () => {
    const before = begun.length
    turns.shift()?.()
    await settled()
    return begun.length - before
  }
  for (let at = 0; at < 200; at++) begin('crowd')
  begin('other')
  await settled()
  assert.deepEqual([begun.length, begun.includes('other')], [65, true])
  assert.equal(await next(), 64)
  begin('other')
  await settled()
  assert.equal(begun.at(-1), 'other')
  begin('crowd')
  assert.deepEqual([await next(), await next(), await next()], [64, 9, 0])
  for (let at = 0; at < 5; at++) begin('large', 256 * 1024)
  await settled()
  assert.equal(begun.length, 204, 'one large one is as much as a crowd')
  assert.deepEqual([await next(), await next(), await next(), await next(), await next()], [1, 1, 1, 1, 0])
  // Two that are more together than a crowd are begun in two turns, two that are as much in one.
  for (const [bytes, each] of [
    [33 * 4096, [1, 1, 1, 1, 0]],
    [31 * 4096, [2, 2, 0]],
  ] as const) {
    const before = begun.length
    for (let at = 0; at < 4; at++) begin(`large ${bytes}`, bytes)
    await settled()
    const come: number[] = [begun.length - before]
    while (come.length < each.length) come.push(await next())
    assert.deepEqual(come, each)
  }
  for (let at = 0; at < 40; at++) begin('costly', 0, 4)
  await settled()
  assert.deepEqual([begun.length, await next(), await next(), await next()], [232, 16, 8, 0])
  // A long answer is as much of the turns to come, of its network alone; a short one is nothing.
  spent(['costly'], 100 * 4096)
  spent(['crowd'], 4000)
  for (const network of ['costly', 'crowd', 'costly']) begin(network)
  await settled()
  assert.deepEqual(begun.slice(-3), ['costly', 'crowd', 'costly'], 'this turn has begun')
  assert.equal(await next(), 0)
  for (let at = 0; at < 40; at++) begin('costly')
  for (let at = 0; at < 64; at++) begin('crowd')
  await settled()
  assert.equal(begun.slice(-64).filter(network => network === 'crowd').length, 64)
  assert.deepEqual([await next(), await next(), await next()], [28, 12, 0])
  // Whoever leaves the line costs no turn, nor does whoever leaves it too late.
  const leave = Array.from({ length: 300 }, () => begin('gone'))
  assert.equal(await next(), 64)
  for (const one of leave.slice(0, 290)) one?.()
  begin('gone')
  assert.deepEqual([await next(), await next()], [11, 0])
  for (let at = 0; at < 64; at++) begin('late')
  begin('late')!()
  assert.equal(await next(), 0, 'the first of a line leaves it too')
  assert.equal(turns.length, 0, 'nothing is done while nobody asks')
})

it('who leaves the line while another is begun is not begun, and keeps nobody from it', () => {
  const turns: (() => void)[] = []
  const { turn } = fairTurns(
    go => turns.push(go),
    () => 0,
  )
  const begun: string[] = []
  const begin = (network: string, then = () => {}) =>
    turn([network], 0, 1, () => {
      begun.push(network)
      then()
    })
  const fill = (network: string) => {
    for (let at = 0; at < 64; at++) begin(network)
  }
  for (const network of ['first', 'second']) fill(network)
  const leaves: ((() => void) | undefined)[] = []
  begin('first', () => {
    for (const leave of leaves) leave?.()
  })
  leaves.push(begin('second'), begin('third'), begin('third'))
  begin('fourth')
  turns.shift()!()
  assert.deepEqual(begun.slice(128), ['first', 'fourth'])
  assert.equal(turns.length, 0, 'nobody waits any more')
})

it('those of one network take turns with those of all others, however many these are, and a turn has an end', () => {
  const turns: (() => void)[] = []
  const { turn, spent } = fairTurns(
    go => turns.push(go),
    () => 0,
  )
  const begun: string[] = []
  const begin = (address: string) => turn(networksAround(address), 0, 1, () => begun.push(address))
  const next = () => {
    const before = begun.length
    turns.shift()!()
    const come = begun.slice(before)
    return (address: string) => come.filter(one => one === address).length
  }
  const household = Array.from({ length: 4 }, (_, at) => `2001:db8:0:${at}::1`)
  for (let times = 0; times < 160; times++) for (const address of household) begin(address)
  assert.equal(begun.length, 128)
  begin('2001:db8:1::1')
  for (let times = 0; times < 100; times++) begin('192.0.2.7')
  assert.equal(begun.length, 128, 'this turn has begun')
  let come = next()
  assert.equal(come('2001:db8:1::1'), 1)
  // However many narrow networks there are in a wide one.
  assert.deepEqual([...household, '192.0.2.7'].map(come), [16, 16, 16, 16, 63])
  come = next()
  assert.deepEqual([...household, '192.0.2.7'].map(come), [23, 23, 23, 22, 37])
  assert.equal(begun.length, 3 * 128)
  // More lines than a turn has: those that had nothing come first in the next.
  const crowd = Array.from({ length: 200 }, (_, at) => `198.51.100.${at}`)
  for (let times = 0; times < 3; times++) for (const address of crowd) begin(address)
  const first = next()
  const second = next()
  assert.ok(crowd.every(address => [1, 2].includes(first(address) + second(address))))
  while (turns.length > 0) next()
  // Of a long answer the wide network pays too.
  spent(networksAround(household[0]!), 64 * 4096 * 2)
  next()
  const before = begun.length
  begin(household[1]!)
  assert.equal(begun.length, before, 'its turns are spent')
  begin('192.0.2.7')
  assert.equal(begun.length, before + 1)
})

describe('what requests hold until they are answered', () => {
  const ended = ({ whenAnswered }: Request) => {
    for (const done of whenAnswered) done()
  }

  it('is never more than there is, and each may hold as much as is still free', () => {
    const hold = holdTogether(180, 5)
    const all: Request[] = []
    const takes = (bytes: number, ...callers: string[]) => {
      const request = requestFrom('192.0.2.7')
      if (hold(request, callers, bytes)) return Boolean(all.push(request))
      assert.deepEqual(request.whenAnswered, [], 'who is refused holds nothing')
      return false
    }
    const most = (bytes: number, ...callers: string[]) => {
      let count = 0
      while (takes(bytes, ...callers)) count++
      return count
    }
    const nobody = () => {
      for (const one of all.splice(0)) ended(one)
    }
    assert.equal(most(1, 'a'), 60, 'one alone has a third')
    assert.equal(most(1, 'b'), 30)
    assert.equal(most(1, 'c'), 15)
    assert.equal(takes(8, 'd'), false, 'no more than would be left')
    assert.equal(takes(7, 'd'), true)
    nobody()
    assert.deepEqual([most(1, 'a'), most(1, 'b'), most(1, 'a')], [60, 30, 0])
    nobody()
    // Of those who come one after the other each leaves half; little is there all the same, and for a household more of it.
    const row = Array.from({ length: 10 }, (_, at) => most(1, `one ${at}`))
    assert.deepEqual(row, [60, 30, 15, 7, 5, 5, 5, 5, 5, 5])
    assert.equal(takes(6, 'many'), false)
    assert.equal(most(1, '2001:db8::/56'), 10)
    assert.equal(most(1, '2001:db8::/48'), 20)
    assert.equal(most(5, 'more'), 1)
    assert.deepEqual([most(3, 'last'), takes(1, 'nobody')], [1, false], 'and there is no more than there is')
    nobody()
    // A household and those around it: what is held counts once, for all of them.
    assert.equal(most(20, 'one', 'around'), 3)
    assert.equal(takes(1, 'two', 'around'), false)
    assert.equal(takes(6, 'three', 'around'), false)
    assert.equal(most(20, 'other', 'elsewhere'), 1)
  })

  it('is counted over all tokens of a merchant, and for no other', () => {
    const directory = { merchant: () => undefined, entity: () => undefined }
    const held = { merchants: holdTogether(12 * 1024 * 1024, 1000), browsers: () => false }
    const parts = { build: '', clock: systemClock, directory, held } as unknown as HttpParts
    let [asking, token] = ['a', 0]
    const caller = () => ({ token: { id: `${token++}` }, merchantId: asking, entityId: asking }) as unknown as Caller
    const within = withinRate(parts, caller)
    const form = { pairs: [['customParameters[x]', 'x'.repeat(1024 * 1024)]], broken: new Set() } as unknown as Form
    const ask = () => {
      const request = requestFrom('192.0.2.7')
      return { request, found: within(request, form, 'pay') }
    }
    const all = Array.from({ length: 3 }, ask)
    assert.ok(all.every(({ found }) => isCaller(found)))
    const refused = ask().found as HttpAnswer
    assert.deepEqual([refused.status, refused.headers], [429, { 'Retry-After': '1' }])
    asking = 'b'
    assert.ok(isCaller(ask().found))
    asking = 'a'
    ended(all[0]!.request)
    assert.ok(isCaller(ask().found))
    const many = { pairs: Array.from({ length: 20_000 }, () => ['a', '1']), broken: new Set() } as unknown as Form
    assert.ok(!isCaller(within(requestFrom('192.0.2.7'), many, 'pay')), 'nor many that are short')
  })
})

it('a merchant stands in one line from however many networks he asks; with a password where it came from before', () => {
  const tokens: Record<string, object> = {
    drawn: { entities: ['channel'], legacy: false },
    another: { entities: ['merchant'], legacy: false },
    division: { entities: ['division'], legacy: false },
    elsewhere: { entities: ['nowhere'], legacy: false },
    password: { id: 'password', entities: ['channel'], legacy: true },
  }
  const entities: Record<string, object> = {
    channel: { id: 'channel', merchantId: 'merchant' },
    merchant: { id: 'merchant', merchantId: 'merchant' },
    division: { id: 'division' },
  }
  const directory = { token: (sent: string) => tokens[sent], entity: (id: string) => entities[id] }
  const failures = { cameFrom: (id: string, address: string) => id === 'password' && address === '192.0.2.8' }
  const parts = { directory, failures } as unknown as HttpParts
  const lines = (authorization?: string, address = '192.0.2.7') =>
    linesOf(parts, authorization, { address, networks: networksAround(address) })
  for (const shown of [undefined, 'Bearer unknown', 'Basic drawn', 'Bearer password', 'Bearer elsewhere'])
    assert.deepEqual(lines(shown), ['192.0.2.7'], shown)
  for (const shown of ['Bearer drawn', 'bearer another']) assert.deepEqual(lines(shown), ['of merchant'])
  assert.deepEqual(lines('Bearer division'), ['of division'])
  assert.deepEqual(lines('Bearer password', '192.0.2.8'), ['of merchant'])
})

it('a form is judged in a turn of whoever sends it', async () => {
  const events: string[] = []
  const line = Promise.withResolvers<void>()
  const request: Request = {
    ...requestFrom('192.0.2.7'),
    async inTurn(work) {
      events.push('waits')
      await line.promise
      return work()
    },
  }
  const judge = (() => {
    events.push('judged')
    return { errors: [], dropped: [], numbered: [], unknown: [], values: new Map(), known: new Map() }
  }) as unknown as FormCheck
  const caller = { merchantId: 'one', entityId: 'channel', token: { id: '7' } } as unknown as Caller
  const form = { pairs: [], broken: new Set() } as unknown as Form
  const channel = { id: 'channel', settings: {} } as unknown as Channel
  const admitted = admit({ parts: {} } as unknown as Admission, request, { form, caller }, channel, judge)
  assert.deepEqual(events, ['waits'])
  line.resolve()
  assert.ok('values' in (await admitted))
  assert.deepEqual(events, ['waits', 'judged'])
})

it('a press on Pay is judged in a turn of whoever presses, one with a stored card too', async () => {
  const [merchantId, id, card] = ['a'.repeat(32), 'b'.repeat(32), 'c'.repeat(32)]
  const said = new Map([['registrations[0].id', card]]) as never
  const sealed = sealValues({ keys: testKeys, random: systemRandom }, { merchantId, id }, said)
  const events: string[] = []
  const rows = [{ merchantId, id, channelId: 'channel', sealed, deletedAt: null, usable: true }]
  const parts = {
    keys: testKeys,
    held: { browsers: () => true },
    directory: {
      merchantOfTail: () => merchantId,
      mustServe: () => {},
      lineage: () => [],
      entity: () => {
        events.push('entity')
        return { kind: 'channel', id: 'channel', merchantId, settings: {} }
      },
    },
    database: { work: { query: async () => ({ rows }) } },
  }
  const press = postCheckoutPayment({ parts, underWay: () => true } as unknown as Admission)
  const pressWith = async (body: string) => {
    events.length = 0
    const request: Request = {
      ...requestFrom('192.0.2.7'),
      method: 'POST',
      body,
      inTurn() {
        events.push('waits')
        throw new Error('no further')
      },
    }
    await assert.rejects(async () => press(request, { id: `${id.toUpperCase()}.1` }), /no further/)
  }
  await pressWith('card.number=4200000000000000')
  assert.deepEqual(events, ['waits'])
  await pressWith(`registrationId=${card}`)
  assert.equal(events.at(-1), 'waits')
  assert.ok(events.includes('entity'), 'the card was read before')
})

/** A pool of one connection whose statements end one after the other, by `next`. */
function heldPool() {
  const brought: string[] = []
  const ends: (() => void)[] = []
  const fake = {
    query(whose: string, bytes: number) {
      brought.push(whose)
      return new Promise(resolve => ends.push(() => resolve({ rows: [{ sealed: Buffer.alloc(bytes), text: 'x', count: 1 }] })))
    },
  }
  const pool = fairPool(fake as unknown as pg.Pool, { ...systemClock, elapsed: () => 0 }, 60, 1)
  const query = pool.query as unknown as (whose: string, bytes: number) => Promise<unknown>
  return {
    brought,
    ends,
    ask: (whose: string, bytes: number) => askedBy(whose, () => query(whose, bytes)),
    async next() {
      ends.shift()!()
      await new Promise(resolve => setImmediate(resolve))
    },
  }
}

it('who comes to the database stands behind two statements of each other, however many they ask for', async () => {
  const { brought, ask, next } = heldPool()
  const all: Promise<unknown>[] = []
  for (const whose of ['a', 'b', 'c']) for (let times = 0; times < 20; times++) all.push(ask(whose, 0))
  all.push(ask('newcomer', 0))
  for (let at = 0; at < 61; at++) await next()
  await Promise.all(all)
  assert.equal(brought.length, 61)
  assert.ok(brought.indexOf('newcomer') <= 7, `${brought}`)
})

it('who has the database bring much comes behind those who ask for little', async () => {
  const { brought, ends, ask, next } = heldPool()
  const all: Promise<unknown>[] = []
  for (const [whose, bytes] of [
    ['much', 256 * 1024],
    ['little', 1024],
  ] as const)
    for (let times = 0; times < 5; times++) {
      all.push(ask(whose, bytes))
      await next()
    }
  all.push(ask('first', 0))
  for (let times = 0; times < 3; times++) all.push(ask('much', 0))
  all.push(ask('little', 0), ask('other', 0))
  while (ends.length > 0) await next()
  await Promise.all(all)
  assert.deepEqual(brought.slice(10), ['first', 'other', 'little', 'much', 'much', 'much'])
})

it('a turn ends when what was begun in it took long, however little it weighs, and goes on with those that had nothing', () => {
  const turns: (() => void)[] = []
  let now = 0
  const { turn } = fairTurns(
    go => turns.push(go),
    () => now,
  )
  const begun: string[] = []
  const begin = (network: string, milliseconds: number) =>
    turn([network], 0, 1, () => {
      begun.push(network)
      now += milliseconds
    })
  for (let times = 0; times < 3; times++) for (const network of ['a', 'b', 'c', 'd']) begin(network, 3)
  const next = () => {
    turns.shift()!()
    return begun.splice(0).join('')
  }
  assert.equal(begun.splice(0).join(''), 'abcd')
  begin('honest', 0)
  assert.deepEqual([next(), next(), turns.length], ['abcd', 'honestabcd', 0])
  begin('a', 1000)
  begin('b', 1)
  assert.deepEqual([next(), next(), turns.length], ['a', 'b', 0], 'one that takes longer than a turn is alone in it')
})

/** Turns in a time that passes with the work that is begun, and while all who wait rest. */
function turnsInTime() {
  const turns: (() => void)[] = []
  let [now, rested] = [0, 0]
  const later = (go: () => void) => {
    turns.push(() => {
      now++
      rested++
      go()
    })
  }
  const { turn } = fairTurns(
    go => turns.push(go),
    () => now,
    later,
  )
  const begun: string[] = []
  const begin = (line: string, milliseconds: number, caller = line, bytes = 0) => {
    const work = () => {
      begun.push(caller)
      now += milliseconds
    }
    turn(caller === line ? [line] : [caller, line], bytes, 1, work)
  }
  return {
    begin,
    begun,
    turns,
    until(time: number) {
      while (now < time && turns.length > 0) turns.shift()!()
    },
    time: () => now,
    passes(milliseconds: number) {
      now += milliseconds
    },
    rested: () => rested,
  }
}

describe('handshakes of TLS', () => {
  function greetings() {
    const turns: (() => void)[] = []
    const given: string[] = []
    const inTurn = greetingsInTurn(
      ([narrowest]) => narrowest === '192.0.2.99',
      address => address === '10.0.0.1',
      go => turns.push(go),
    )
    const greet = (remoteAddress: string, name = remoteAddress) => {
      const raw = Object.assign(new EventEmitter(), { remoteAddress }) as unknown as Socket
      inTurn(raw, () => given.push(name))
      return raw
    }
    const next = () => {
      turns.shift()!()
      return given.splice(0)
    }
    const rest = () => {
      const all: string[] = []
      while (turns.length > 0) all.push(...next())
      return all
    }
    return { greet, next, rest, already: () => given.splice(0) }
  }
  const countOf = (address: string, some: readonly string[]) => some.filter(one => one === address).length

  it('are answered a few in each turn, of each network in turn, and none of who has gone', () => {
    const { greet, already, rest } = greetings()
    for (let at = 0; at < 20; at++) greet('192.0.2.1')
    for (let at = 0; at < 3; at++) greet('192.0.2.2')
    const first = already()
    assert.deepEqual([countOf('192.0.2.1', first), countOf('192.0.2.2', first)], [4, 3])
    const [begun, ...gone] = Array.from({ length: 5 }, () => greet('192.0.2.3'))
    for (const raw of gone) raw.emit('close')
    assert.deepEqual(already(), ['192.0.2.3'])
    const others = rest()
    assert.deepEqual([countOf('192.0.2.1', others), others.length], [16, 16])
    assert.equal(begun!.listenerCount('close'), 0)
  })

  it('of merchants’ servers and through proxies are more in a turn, and wait for no stranger’s', () => {
    const { greet, next, rest, already } = greetings()
    for (const address of ['192.0.2.99', '10.0.0.1', '192.0.2.1']) {
      for (let at = 0; at < 60; at++) greet(address)
      already()
      assert.equal(next().length, address === '192.0.2.1' ? 4 : 16, address)
      rest()
    }
    for (let at = 0; at < 100; at++) for (const address of ['192.0.2.99', '192.0.2.1', '192.0.2.2']) greet(address)
    already()
    for (let times = 0; times < 5; times++) {
      const both = next()
      const ofMerchant = countOf('192.0.2.99', both)
      assert.ok(ofMerchant >= 9 && both.length - ofMerchant >= (times === 0 ? 1 : 3), `${both}`)
    }
    rest()
    for (let at = 0; at < 60; at++) for (const address of ['192.0.2.99', '10.0.0.1']) greet(address)
    already()
    const shared = next()
    assert.deepEqual([countOf('192.0.2.99', shared), countOf('10.0.0.1', shared)], [10, 10])
  })

  it('are answered from the last one on where more come than there is time for, and each is once', () => {
    const { greet, next, rest, already } = greetings()
    const raws = Array.from({ length: 40 }, (_, at) => greet('192.0.2.99', `${at}`))
    already()
    const first = next()
    assert.equal(first[0], '39')
    greet('192.0.2.99', 'late')
    const gone = [18, 20]
    for (const at of gone) raws[at]!.emit('close')
    const second = next()
    assert.equal(second[0], 'late')
    // The first sixteen were begun at once.
    const others = Array.from({ length: 24 }, (_, at) => at + 16).filter(at => !gone.includes(at))
    assert.deepEqual([...first, ...second, ...rest()].sort(), [...others.map(String), 'late'].sort())
  })
})

it('whose work takes long rests for as long while others are about, and others come as often as they like', () => {
  const { begin, begun, until, time, rested } = turnsInTime()
  const honest = (count: number) => {
    for (let at = 0; at < count; at++) begin('honest', 1)
  }
  begin('one', 100)
  for (let at = 0; at < 8; at++) for (const line of ['one', 'other']) begin(line, 100)
  honest(5)
  assert.deepEqual(begun.splice(0), ['one'])
  // Whoever is not known yet has his first; then all whose work takes long rest together.
  while (time() < 2000) {
    until(time() + 20)
    honest(2)
  }
  const long = begun.filter(line => line !== 'honest').length
  assert.ok(long >= 6 && long <= 11, `${long} of 100 ms in 2 s`)
  assert.ok(begun.length - long > 30, `${begun.length - long} of 1 ms`)
  assert.ok(rested() > 500, `${rested()} ms`)
  for (let at = 2; at < begun.length; at++)
    assert.ok(begun.slice(at - 2, at + 1).includes('honest'), `none waits for more than two: ${begun.slice(at - 2, at + 1)}`)
})

it('strangers, however many lines they have, share half of the time while merchants’ servers wait, and neither leaves any of it unused', () => {
  const { begin, begun, until, time } = turnsInTime()
  const [mine, yours] = [merchantLine('mine'), merchantLine('yours')]
  const strangers = Array.from({ length: 40 }, (_, at) => `network ${at}`)
  const press = () => {
    for (const line of strangers) begin(line, 3)
  }
  const count = (...lines: string[]) => begun.filter(line => lines.includes(line)).length
  for (let times = 0; times < 20; times++) press()
  begun.splice(0)
  // Whoever comes between them waits for one of theirs, and not for one of each.
  for (let times = 0; times < 20; times++) {
    begin(mine, 1)
    until(time() + 4)
    assert.ok(count(mine) > times - 1, `${times}: ${begun.slice(-6)}`)
  }
  begun.splice(0)
  // Many of one wait as long as if there were one line of strangers.
  for (let times = 0; times < 60; times++) for (const line of [mine, yours]) begin(line, 1)
  const from = time()
  until(from + 120)
  const merchants = count(mine, yours)
  assert.ok(merchants >= 50 && merchants <= 72, `${merchants} ms of ${time() - from}`)
  assert.ok(Math.abs(count(mine) - count(yours)) <= 2)
  until(from + 10_000)
  assert.equal(count(mine, yours), 120)
  // And the other way round: of many merchants none keeps a shopper waiting.
  begun.splice(0)
  for (let times = 0; times < 100; times++) for (let at = 0; at < 10; at++) begin(merchantLine(`shop ${at}`), 1)
  begin(strangers[0]!, 1)
  until(time() + 25)
  assert.equal(count(strangers[0]!), 1, `${begun}`)
  until(time() + 10_000)
  assert.equal(begun.length, 1001)
})

it('whose work takes long does not rest where nobody else is about', () => {
  const { begin, begun, until, time, rested } = turnsInTime()
  for (let at = 0; at < 9; at++) begin(`line ${at % 3}`, 100)
  until(5000)
  assert.equal(begun.length, 9)
  // Until all are known each is one of the others.
  const before = rested()
  assert.ok(before <= 400, `${before} ms`)
  for (let at = 0; at < 9; at++) begin(`line ${at % 3}`, 100)
  until(time() + 5000)
  assert.deepEqual([begun.length, rested()], [18, before])
  // Who was about a second ago is not any more.
  begin('honest', 1)
  for (let at = 0; at < 30; at++) begin('line 0', 100)
  until(30_000)
  assert.equal(begun.length, 18 + 1 + 30)
  assert.ok(rested() - before >= 300 && rested() - before <= 700, `${rested() - before} ms`)
})

it('whose work takes long rests also when he sends one piece at a time', () => {
  const { begin, begun, until, time, rested } = turnsInTime()
  begin('one', 100)
  for (let times = 1; times <= 5; times++) {
    begin('honest', 1)
    until(time() + 1)
    begun.length = 0
    begin('one', 100)
    assert.deepEqual(begun, [])
    until(time() + 150)
    assert.deepEqual([begun, rested() >= 90 * times], [['one'], true], `${rested()} ms`)
  }
})

it('large bodies of those whom nobody knows yet are taken for long work, one after the other', () => {
  for (const [bytes, most] of [
    [longBytes, 101],
    [longBytes - 1, 4000],
  ] as const) {
    const { begin, begun, until, time, rested, turns } = turnsInTime()
    begin('honest', 1)
    for (let at = 0; at < 8; at++) begin(`network ${at}`, 100, `network ${at}`, bytes)
    let longest = 0
    while (begun.filter(caller => caller.startsWith('network')).length < 8) {
      const asked = time()
      // Whatever somebody's payment waits for, it does several times.
      for (let steps = 0; steps < 5; steps++) {
        const before = begun.length
        begin('honest', 1)
        while (!begun.slice(before).includes('honest')) until(time() + 1)
        until(time() + 1)
      }
      longest = Math.max(longest, time() - asked)
      until(time() + 20)
    }
    assert.ok(longest <= most + 20, `${longest} ms beside bodies of ${bytes} bytes`)
    assert.ok(bytes < longBytes || rested() >= 300, `${rested()} ms`)
    until(time() + 2000)
    assert.deepEqual(turns, [])
  }
  // Nor is a merchant's kept from anything by others that are as large and took no time.
  const { begin, begun, until, time } = turnsInTime()
  for (let at = 0; at < 8; at++) begin(merchantLine(`${at}`), 1, merchantLine(`${at}`), longBytes)
  until(time() + 40)
  assert.equal(begun.length, 8)
})

it('of those whose work takes long whoever has had least is next, and merchants have half of it', () => {
  for (const merchants of [true, false]) {
    const { begin, begun, until, time } = turnsInTime()
    const name = merchants ? merchantLine('carts') : 'carts'
    const others = Array.from({ length: merchants ? 8 : 3 }, (_, at) => `network ${at}`)
    const crowd = () => {
      for (const line of others) begin(line, 140, line, longBytes)
    }
    for (let times = 0; times < 400; times++) crowd()
    for (let times = 0; times < 8; times++) begin(name, 10)
    until(4000)
    const waits: number[] = []
    for (let second = 0; second < 20; second++) {
      begin('honest', 1)
      // Some that take long, and smaller ones in the same line.
      for (const milliseconds of [20, 20, 1, 1, 20]) {
        const asked = time()
        const before = begun.filter(caller => caller === name).length
        begin(name, milliseconds)
        while (begun.filter(caller => caller === name).length === before) until(time() + 1)
        waits.push(time() - asked)
        begin('honest', 1)
      }
      until((second + 5) * 1000)
    }
    assert.ok(Math.max(...waits) <= (merchants ? 450 : 900), `${merchants}: ${waits}`)
    const spent = others.map(line => begun.filter(caller => caller === line).length)
    assert.ok(Math.min(...spent) > 0 && Math.max(...spent) <= Math.min(...spent) + 1, `they have their turns: ${spent}`)
  }
})

it('work that takes long has its turns beside merchants whose work does, and beside a crowd whose work does not', () => {
  for (const [name, milliseconds] of [
    ['of a shop', 100],
    ['of a shop', 1],
    ['quick', 1],
  ] as const) {
    const { begin, begun, until, time } = turnsInTime()
    begin('honest', 1)
    begin('long', 20)
    until(time() + 100)
    for (let at = 0; at < 50; at++) for (let times = 0; times < 60; times++) begin(`${name} ${at}`, milliseconds)
    begin('long', 20)
    begin('long', 20)
    const asked = time()
    while (begun.filter(one => one === 'long').length < 3) until(time() + 1)
    assert.ok(time() - asked <= (milliseconds > 1 ? 6000 : 300), `${name}, ${milliseconds}: ${time() - asked} ms`)
    assert.ok(begun.length < 200, `others wait still: ${begun.length}`)
  }
})

it('what somebody has had long ago counts for nothing, nor that his body is large where his work takes no time', () => {
  const { begin, begun, until, time, passes } = turnsInTime()
  begin('honest', 1)
  begin('much', 1000)
  until(time() + 20)
  passes(20_000)
  begin('honest', 1)
  begin('little', 100)
  for (const line of ['little', 'much']) begin(line, 100)
  until(time() + 500)
  assert.deepEqual(
    begun.filter(one => one !== 'honest'),
    ['much', 'little', 'much', 'little'],
  )
  begin('little', 100)
  until(time() + 1)
  begin('honest', 1, 'honest', longBytes)
  assert.equal(begun.at(-1), 'honest')
})

it('one piece that took long makes nobody wait whose work does not', () => {
  const { begin, begun, until, rested, turns } = turnsInTime()
  for (let at = 0; at < 20; at++) for (const line of ['one', 'other']) begin(line, at === 10 && line === 'one' ? 20 : 1)
  until(1000)
  assert.deepEqual([begun.length, rested(), turns.length], [40, 0, 0])
})

it('those who stand in one line take turns, however many of each wait there', () => {
  const { begin, begun, until } = turnsInTime()
  for (let times = 0; times < 40; times++) begin('line', 1, 'many')
  for (const caller of ['one', 'two']) for (let times = 0; times < 2; times++) begin('line', 1, caller)
  until(1000)
  assert.equal(begun.length, 44)
  assert.ok(begun.indexOf('one') < 13 && begun.lastIndexOf('two') < 18, `${begun}`)
  assert.ok(begun.indexOf('two') < begun.lastIndexOf('one'))
})

it('of strangers nobody waits behind those of whom it is known that theirs takes long', () => {
  const { begin, begun, until, time } = turnsInTime()
  const crowd = () => {
    for (let at = 0; at < 48; at++) begin(`network ${at}`, 8)
  }
  for (let times = 0; times < 3; times++) crowd()
  until(2000)
  const waits: number[] = []
  for (let at = 0; at < 60; at++) {
    crowd()
    const asked = time()
    begin(`shopper ${at}`, 1)
    begin(merchantLine('merchant'), 1)
    while (!begun.includes(`shopper ${at}`)) until(time() + 1)
    waits.push(time() - asked)
    until(time() + 30)
  }
  assert.ok(Math.max(...waits) <= 20, `${waits}`)
  assert.ok(begun.filter(caller => caller.startsWith('network')).length > 48 * 4, 'they are begun, too')
})

it('whose work takes long is known by it until the others that rest have had their turns', () => {
  const { begin, begun, until, time } = turnsInTime()
  const lines = 30
  for (let at = 0; at < 3; at++) for (let line = 0; line < lines; line++) begin(`line ${line}`, 100)
  until(lines * 100)
  let longest = 0
  while (begun.length < lines * 3) {
    const asked = time()
    begin('honest', 1)
    while (begun.at(-1) !== 'honest') until(time() + 1)
    longest = Math.max(longest, time() - asked)
    until(time() + 50)
  }
  assert.ok(longest <= 201, `${longest} ms`)
})

it('whose work took long is forgotten when he has not come for long', () => {
  let now = 0
  const rests = makeRests(() => now)
  const goesOn = (time: number) => {
    rests.took('one', 100, true)
    rests.took('honest', 1, false)
    now += time
    rests.took('honest', 1, false)
    rests.took('another', 1000, true)
    rests.took('honest', 1, false)
    return rests.takesLong('one')
  }
  assert.equal(goesOn(20_000), true)
  assert.equal(goesOn(25_000), false)
})

it('whoever has gone stands in no line', async () => {
  const gateway = await testGateway()
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  const passes = (more: number) => eventually(async () => turns >= until + more, 'turns pass')
  let until = 0
  try {
    setImmediate(count)
    const { port, hostname } = new URL(gateway.baseUrl)
    // Each is as much as a whole turn, and three more wait behind it, of which Node tells nothing when the connection ends.
    const costly = 'GET /pay/x/code HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(4)
    const gone = await Promise.all(
      Array.from({ length: 240 }, async () => {
        const socket = net.connect(Number(port), hostname)
        await once(socket, 'connect')
        socket.on('error', () => {}).write(costly)
        return socket
      }),
    )
    until = turns
    await passes(60)
    for (const socket of gone) socket.destroy()
    until = turns
    await fetch(`${gateway.baseUrl}/v1/nothing`)
    assert.ok(turns - until < 250, `${turns - until} turns`)
  } finally {
    isOver = true
    await gateway.stop()
  }
})

it('however many ask for the health of a process, its database is asked once', async () => {
  let statements = 0
  const pool = {
    async query() {
      statements++
      await systemClock.sleep(20)
    },
  }
  const database = Object.fromEntries(
    ['work', 'chains', 'paymentLane', 'answerLane', 'reports', 'searches'].map(name => [name, pool]),
  )
  const checks = { pool: () => pool.query().then(() => true) }
  const parts = { database, clock: systemClock, build: '', log: {} } as unknown as HttpParts
  const routes = healthRoutes(parts, { checks, says: async () => ({}), mayKnow: () => true })
  const request = { query: '', headers: {}, number: '0'.repeat(32) } as Request
  const answers = await Promise.all(Array.from({ length: 999 }, (_, at) => routes[at % 3]!.answer(request, {})))
  assert.equal(answers.filter(({ status }) => status === 200).length, 999)
  assert.equal(statements, 5)
})

describe('who waits for the same', () => {
  it('looks once for all, and each gets what is enough for it', async () => {
    let looks = 0
    const look = lookTogether(systemClock)
    const until = systemClock.real() + 60_000
    const seen = async () => ++looks
    const waiters = Array.from({ length: 1000 }, (_, at) => look('a', seen, value => value >= 1 + (at % 4), until))
    assert.deepEqual(new Set(await Promise.all(waiters)), new Set([1, 2, 3, 4]))
    assert.equal(looks, 4)
    assert.equal(await look('a', seen, () => true, until), 5)
  })

  it('is told at the end of its own time what was seen then', async () => {
    const look = lookTogether(systemClock)
    const now = systemClock.real()
    const never = () => false
    const [short] = await Promise.all([
      look('a', async () => systemClock.real(), never, now + 30),
      look('a', async () => systemClock.real(), never, now + 400),
    ])
    assert.ok(short < now + 400)
  })

  it('fails together, and the next looks anew', async () => {
    const look = lookTogether(systemClock)
    const broken = async () => {
      throw new Error('the database is away')
    }
    const waiters = Array.from({ length: 3 }, () => look('a', broken, () => true, Number.POSITIVE_INFINITY))
    assert.deepEqual(new Set((await Promise.allSettled(waiters)).map(({ status }) => status)), new Set(['rejected']))
    assert.equal(
      await look(
        'a',
        async () => 7,
        () => true,
        0,
      ),
      7,
    )
  })
})

it('of a division’s token as many are under way as of any', () => {
  const division = 'c0ffee000000000000000000000000d1'
  const directory = { merchant: () => undefined, entity: () => undefined }
  const caller = { token: { id: '7' }, merchantId: division, entityId: division } as unknown as Caller
  const parts = { directory, clock: systemClock, build: '', held: requestsHold(2 ** 30) } as unknown as HttpParts
  const admit = withinRate(parts, () => caller)
  const requests = Array.from({ length: 1025 }, () => requestFrom('192.0.2.7'))
  const ask = (request: Request) => admit(request, { pairs: [], broken: new Set() }, 'register')
  const answers = requests.map(ask)
  assert.deepEqual(
    answers.map(answer => answer === caller),
    [...Array.from({ length: 1024 }, () => true), false],
  )
  assert.equal((answers[1024] as HttpAnswer).status, 429)
  for (const done of requests[0]!.whenAnswered) done()
  assert.equal(ask(requestFrom('192.0.2.7')), caller)
})

describe('requests of a token', () => {
  const atOnce = 120
  const [entityId, accessToken] = ['c0ffee000000000000000000000000c1', 'c0ffee-token-of-the-limited-merchant']
  let gateway: TestGateway
  const bank = slowBank()
  before(async () => {
    gateway = await testGateway({
      clock: bank.clock,
      seed: {
        psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
        divisions: [
          {
            id: 'c0ffee000000000000000000000000d1',
            name: 'Limited',
            merchants: [
              {
                id: 'c0ffee000000000000000000000000e1',
                name: 'Limited',
                settings: { requestsAtOnce: atOnce },
                channels: [{ id: entityId, name: 'Limited' }],
              },
            ],
          },
        ],
        tokens: [{ label: 'limited', token: accessToken, entities: ['c0ffee000000000000000000000000e1'] }],
      },
    })
  })
  after(() => {
    bank.answer() // those who still wait after a failure
    return gateway.stop()
  })

  it('whose bodies come faster than they are read are not gathered without end', async () => {
    const size = 250 * 1024
    const request = `POST /v1/payments HTTP/1.1\r\nHost: ${new URL(gateway.baseUrl).host}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${size}\r\n\r\n${'a'.repeat(size)}`
    const to = { port: Number(new URL(gateway.baseUrl).port), host: '127.0.0.1', localAddress: '127.0.0.3' }
    const sockets = Array.from({ length: 33 }, () => connect(to))
    const closed = sockets.map(ended)
    for (const socket of sockets) for (let count = 0; count < unfinishedMost - 1; count++) socket.write(request)
    await Promise.race(closed)
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
    assert.equal((await gateway.pay({})).status, 200)
  })

  it('hold nothing but what is known of them, however long their answers take; and no more than so many are under way', async () => {
    const payment = { entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
    const slow = { ...payment, ...bank.slowly, unknown: 'x'.repeat(240_000) }
    const body = Buffer.from(new URLSearchParams(slow).toString())
    const head = [
      'POST /v1/payments HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${accessToken}`,
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${body.length}`,
      'Connection: close',
    ]
    const request = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
    const earlier = heldMemory()
    let answered = 0
    const answers = Array.from({ length: atOnce }, async () => {
      const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1').setEncoding('latin1')
      let got = ''
      socket.on('data', (chunk: string) => {
        got += chunk
      })
      socket.write(request)
      await ended(socket)
      answered++
      return got
    })
    await eventually(async () => {
      const { rows } = await gateway.pool.query('select count(*)::int as count from unanswered')
      return rows[0].count === atOnce
    }, 'all are under way')
    // Alone their bodies are 27 MiB.
    await eventually(async () => heldMemory() - earlier < 14, 'the bodies are let go')
    assert.equal(answered, 0, 'the answers must still be awaited, or nothing is seen')
    const authorization = { Authorization: `Bearer ${accessToken}` }
    const refused = await gateway.post('/v1/payments', payment, authorization)
    assert.deepEqual([refused.status, refused.headers.get('retry-after'), refused.body.result.code], [429, '1', '800.120.100'])
    assert.equal((await gateway.pay()).status, 200, 'of another merchant')
    bank.answer()
    for (const got of await Promise.all(answers)) assert.match(got, /^HTTP\/1\.1 200 OK/)
    assert.equal((await gateway.post('/v1/payments', payment, authorization)).status, 200)
  })
})
