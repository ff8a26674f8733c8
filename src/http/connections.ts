// What one connection may cost: requests that wait for their answers, answers that nobody takes, and time in which nothing is asked. A connection counts
// from its first moment: under TLS the raw socket is watched while the handshake goes on, and ended when that takes too long.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../platform/clock.ts'
import { networksAround } from '../platform/network.ts'
import { endParsing, lackOf, stopBehind, stopParsing } from '../platform/parsing.ts'
import { countNetworks, crowdOf, networkName } from './networks.ts'
import { type HeldRequest, isOfProxy, isOwed, isWaitedFor, type OpenConnection } from './openConnection.ts'
import { allConnectionsMost, arrivalSeconds, makePlaces } from './places.ts'
import { countArrivals, type NetworkNames, packetBytes, tlsPieceCost } from './rates.ts'
import { makeRoom } from './room.ts'
import { merchantLine } from './turns.ts'

/** Requests of one connection that wait for their answers; one more closes it. */
export const unfinishedMost = 32
/** A longer answer is given in pieces: whoever takes each of them in time may take the whole as slowly as his line does. */
export const pieceBytes = 1024 * 1024
/** Requests without a token of the callers of one network, through proxies too, that wait for their answers; one more closes that connection on which most of them are, or its own, a proxy’s after a 429. A crowd of them stands in every turn of the event loop. */
export const networkUnfinishedMost = 1024
/** Bytes of requests that have not begun: they have not come whole, or wait for their turn. More closes the connection with most of them, of the network that has most, counted by how long they have been there. */
export const unfinishedBytesMost = 64 * 1024 * 1024
/** Requests of those whom we know whose bytes are not among these; those of one more are. */
export const knownMost = 16
/** Requests of one of those whom we know whose bodies come at the same time. */
export const knownOfOneMost = 4
/** Bytes of answers that are made and not taken yet, and of their requests. More closes the connection with most of them, of the network that has most, counted by how long it has taken none. */
export const untakenBytesMost = 64 * 1024 * 1024
/** Requests of one connection one after the other: the last answer closes it. Node’s own limit closes nothing, and answers what goes beyond it without a word to us. */
export const requestsMost = 10_000
/** Small pieces of TLS of one connection for what is asked there next, by what they lack, each when it comes and when it is deciphered: a handshake and a request have some. Where more are too many they are read
 * slowly, and still more close it. */
export const piecesMost = { read: 6, open: 12 }
const slowReadMilliseconds = 1000
/** Headers of a request. Of more the parser takes one, by which they are seen. */
export const headersMost = 100
/** More connections than there are places: where answers are owed to all. */
export const maxima = {
  maxConnections: allConnectionsMost + 64,
  maxHeadersCount: headersMost + 1,
}

/** Seconds. Node ends a connection on which nothing comes; these end one that is kept busy with nothing. */
export type Patience = {
  readonly answerSeconds: number
  readonly idleSeconds: number
  readonly handshakeSeconds: number
  readonly lookEverySeconds: number
}

const standard: Patience = { answerSeconds: 60, idleSeconds: 70, handshakeSeconds: 10, lookEverySeconds: 2 }

export type Connections = {
  /** False = its network opens too many: the connection is to be closed before anything is made ready for it. */
  admits(address: string, isTls: boolean): boolean
  opened(socket: Socket): void
  /** A raw socket on which TLS is to be spoken: it has so long for the handshake. */
  begun(socket: Socket): void
  /** TLS stands on `raw`: what is asked and answered goes through this socket from now on. */
  secured(socket: Socket, raw: Socket | undefined): void
  /** Counts a request of `caller`, who is another than the socket's end behind a proxy, until its answer is gone, which must be taken piece by piece, each
   * in time. False = one too many: the connection is closed, a proxy’s after a 429. */
  asked(incoming: IncomingMessage, outgoing: ServerResponse, caller: string, ofMerchant?: string): boolean
  /** Its answer is made, and has so many bytes. */
  answers(incoming: IncomingMessage, bytes: number): void
  /** So many bytes of TLS have come at once, or were deciphered; of a record that carries nothing, none. False = its network sends too many small pieces in this second, and it more than a few: nothing more is to be read there until `goOn` is called. One with many is closed. */
  deciphers(socket: Socket, bytes: number, goOn: () => void): boolean
  /** One more piece of a body has come, sent by `caller`, or by a merchant with his token. False = too many small
   * ones of his, or of his network, in this second: the connection is closed. */
  takes(socket: Socket, bytes: number, caller: string, ofMerchant?: string): boolean
  /** So many more bytes of a large body have come, of a merchant where his token was sent with it. False = too many of his network in this second: the connection is closed, a merchant's and a proxy’s after a 429. */
  sends(incoming: IncomingMessage, bytes: number, ofMerchant?: string): boolean
  /** So many bytes that still come behind its last answer are thrown away. More than may come closes it. */
  throwsAway(socket: Socket, bytes: number): void
  /** So many more bytes of it have come. */
  keeps(incoming: IncomingMessage, bytes: number): void
  /** It is of somebody whom we know, by `name`: strangers, however much they send, cost him nothing of what he sends. False = he sends too many at once. */
  knows(incoming: IncomingMessage, name: string): boolean
  /** The rest of its body is not looked at: what came goes, and the answer is the last of the connection. */
  cuts(incoming: IncomingMessage): void
  /** Its body has come whole, and is kept until it begins. */
  waits(incoming: IncomingMessage, body: string): void
  /** It stands in a line, which it leaves by this when its connection is closed. */
  stands(incoming: IncomingMessage, leave: () => void): void
  /** The body of a request whose turn has come; undefined when its connection was closed meanwhile, and the body let go. */
  begins(incoming: IncomingMessage): string | undefined
  /** Is it one from where a token was used within the hour? */
  isMerchants(around: NetworkNames): boolean
  /** Its token was found: a merchant's server waits for what comes of it. A browser asks again, and what has begun goes on without its connection. */
  isServers(incoming: IncomingMessage, merchantId: string): void
  /** Are answers owed on this connection, to requests that have come whole? Then what is said about it has to wait. */
  isOwed(socket: Socket): boolean
  /** Is none that has come whole behind it on its connection? */
  isLast(incoming: IncomingMessage): boolean
  /** Takes nothing more, and closes the connection as soon as nothing is owed, or when that takes too long; one that cannot be spoken on, at once. */
  closeSoon(socket: Socket): void
  /** Closes those on which TLS does not stand yet, those between two requests, those with no whole request, or all of them. What an answer waits for to be taken is
   * neither of the middle two. */
  closeAll(which: 'unsecured' | 'idle' | 'unowed' | 'every'): void
  /** Closes all on which something is owed soon. */
  closeOwed(): void
  stop(): void
}

/** What a request holds without its body until its answer is gone, its texts some bytes each besides their letters. */
function headBytes({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = requestBytes + url.length
  for (const text of rawHeaders) bytes += text.length + textBytes
  return bytes
}
const textBytes = 48
export const requestBytes = 4096

type Held = { readonly one: OpenConnection; readonly asked: HeldRequest }
const gone = { one: undefined, asked: undefined } as const

/** So long a caller may take in what was said last; a proxy has it at once, and keeps a place for it. */
const lingerSeconds = 5
const proxyLingerSeconds = 1

/** `isShared`: may many callers come from this address? Then a connection that is closed without an answer speaks against us there, and nobody else is sent to
 * us for a while: `refuse` says that there was too much, and closes it. */
export function watchConnections(
  clock: Clock,
  { answerSeconds, idleSeconds, handshakeSeconds, lookEverySeconds }: Patience = standard,
  isShared: (address: string) => boolean = () => false,
  refuse: (socket: Socket, caller: string) => void = endParsing,
): Connections {
  const connections = new Map<Socket, OpenConnection>()
  const callers = countNetworks<OpenConnection>()
  const rates = countArrivals(clock)
  const room = makeRoom(clock, callers, rates.isMerchants)
  const places = makePlaces(
    clock,
    callers,
    ({ socket }) => drop(socket),
    one => connections.get(one.socket) === one,
  )
  /** Raw sockets on which TLS does not stand yet. */
  const unsecured = new Set<Socket>()
  /** Of those whom we know, while their bodies come. */
  const known = new Map<IncomingMessage, { readonly name: string; readonly isSpared: boolean }>()

  const second = clock.every(1000, () => {
    const now = clock.elapsed()
    for (const one of connections.values()) if (one.endsBefore !== undefined && now > one.endsBefore) one.socket.destroy()
  })
  const timer = clock.every(lookEverySeconds * 1000, () => {
    const now = clock.elapsed()
    for (const [socket, one] of connections) {
      one.stuckSince = socket.writableLength === 0 ? undefined : (one.stuckSince ?? now)
      const isStuck = one.stuckSince !== undefined && now - one.stuckSince > answerSeconds * 1000
      const isIdle = one.unfinished.size === 0 && now - one.idleSince > idleSeconds * 1000
      if (isStuck || isIdle) socket.destroy()
    }
  })

  /** All callers of a proxy come from its network: what they have together says nothing of one of them. */
  const aroundOf = (address: string): NetworkNames =>
    isShared(address) ? [''] : address === '' ? ['nowhere'] : networksAround(address)

  /** Undefined when it is closed: there is no place for it, or whoever is gone before we look has no address, and would be counted for nobody. */
  function opened(socket: Socket): OpenConnection | undefined {
    if (socket.remoteAddress === undefined) {
      endParsing(socket)
      return undefined
    }
    const names = aroundOf(socket.remoteAddress)
    const place = places.forNewcomer(names)
    if (!place) {
      endParsing(socket)
      return undefined
    }
    const one: OpenConnection = {
      socket,
      names,
      place,
      caller: callers.join(names),
      kept: 0,
      keptSince: 0,
      untaken: 0,
      untakenSince: 0,
      unfinished: new Map(),
      tokenless: 0,
      serving: 0,
      requests: 0,
      pieces: 0,
      idleSince: clock.elapsed(),
      stuckSince: undefined,
      endsBefore: undefined,
    }
    connections.set(socket, one)
    places.sits(one)
    asks(one)
    socket.once('close', () => forget(socket))
    return one
  }

  function forget(socket: Socket): void {
    const one = connections.get(socket)
    if (!one) return
    connections.delete(socket)
    // Those who wait for their turn hold the connection; and of an answer that waits for another one Node does not always say that it is over.
    for (const [incoming, { outgoing }] of [...one.unfinished]) {
      answered(one, incoming)
      outgoing.destroy()
    }
    places.leaves(one)
    asksNoMore(one)
  }

  function asks(one: OpenConnection): void {
    for (const { asking } of one.caller.circles) asking.add(one)
  }
  function asksNoMore(one: OpenConnection): void {
    for (const { asking } of one.caller.circles) asking.delete(one)
    callers.leave(one.caller)
  }

  /** `asked` is one that a merchant's server waits for, from now on or no more. */
  function serves(one: OpenConnection, asked: HeldRequest, isServed: boolean): void {
    if ((asked.isServers === true) === isServed) return
    if (isServed) asked.isServers = true
    else delete asked.isServers
    one.serving += isServed ? 1 : -1
  }

  /** Behind a proxy others ask on the same connection, one after the other: what is still held there is held by who asked before. */
  function asksFor(one: OpenConnection, address: string): void {
    if (!isOfProxy(one) || one.unfinished.size > 0) return
    const around = aroundOf(address)
    if (around[0] === networkName(one.caller)) return
    asksNoMore(one)
    one.caller = callers.join(around)
    asks(one)
  }

  function hold(one: OpenConnection, asked: HeldRequest, what: 'kept' | 'untaken', by: number): void {
    if (one[what] === 0) one[`${what}Since`] = clock.elapsed()
    asked[what] += by
    one[what] += by
    callers.add(one.caller, what, by)
  }

  function asksTokenless(one: OpenConnection, by: number): void {
    one.tokenless += by
    callers.add(one.caller, 'tokenless', by)
  }

  function answered(one: OpenConnection, incoming: IncomingMessage): void {
    const asked = one.unfinished.get(incoming)
    if (!asked) return
    one.unfinished.delete(incoming)
    serves(one, asked, false)
    asked.leave?.()
    callers.add(one.caller, 'unfinished', -1)
    if (!asked.hasToken) asksTokenless(one, -1)
    letsGo(incoming, one, asked)
    hold(one, asked, 'untaken', -asked.untaken)
    one.untakenSince = clock.elapsed()
  }

  /** Something has been answered, or may be asked from now on. */
  function waitsAnew(one: OpenConnection): void {
    one.idleSince = clock.elapsed()
    one.pieces = 0
    places.sits(one)
  }

  function owes(one: OpenConnection): void {
    if (isOwed(one) && one.place.crowds[0]!.waiting.has(one)) places.sits(one)
  }

  /** Neither is an answer made, nor does one wait to be taken; what is to be closed has an end of its own. */
  const isUnowed = (one: OpenConnection) => !isOwed(one) && one.socket.writableLength === 0 && one.endsBefore === undefined
  /** It was opened just now, for something that is on its way. */
  const isExpected = (one: OpenConnection) => one.requests === 0 && clock.elapsed() - one.idleSince < arrivalSeconds * 1000
  const isOf = {
    idle: (one: OpenConnection) => isUnowed(one) && one.unfinished.size === 0 && !isExpected(one),
    unowed: isUnowed,
    every: () => true,
  }

  function drop(socket: Socket): void {
    stopParsing(socket) // before it is destroyed, with what it is owed: afterwards nobody finds its parser
    forget(socket)
    endParsing(socket)
  }

  /** Lets go what is held there. */
  function dropHeld(one: OpenConnection): void {
    const [first, ...more] = one.unfinished
    // Behind others it cannot be answered, nor what is answered already.
    if (!first || more.length > 0 || first[1].outgoing.headersSent || !isOfProxy(one)) return void drop(one.socket)
    answered(one, first[0])
    refuse(one.socket, networkName(one.caller))
  }

  /** By one of its network on which more is asked, or as much, of which nothing has come whole or is taken. */
  function makesRoomFor(one: OpenConnection): boolean {
    const fullest = room.fullest(one.caller)
    if (!fullest || fullest.tokenless <= one.tokenless + (isWaitedFor(fullest) ? 1 : 0)) return false
    dropHeld(fullest)
    return true
  }

  function tooMuch(one: OpenConnection, isTold = isOfProxy(one)): false {
    if (isTold) refuse(one.socket, networkName(one.caller))
    else endParsing(one.socket)
    return false
  }

  /** What is owed an answer, and where; neither when one of them is gone. */
  function held(incoming: IncomingMessage): Held | typeof gone {
    const one = connections.get(incoming.socket)
    const asked = one?.unfinished.get(incoming)
    return one && asked ? { one, asked } : gone
  }

  function keeps(incoming: IncomingMessage, bytes: number): void {
    const { one, asked } = held(incoming)
    if (!one || known.get(incoming)?.isSpared) return
    hold(one, asked, 'kept', bytes)
    if (callers.sum('kept') > unfinishedBytesMost) dropHeld(room.mostHeld('kept'))
  }

  function letsGo(incoming: IncomingMessage, one: OpenConnection, asked: HeldRequest): void {
    hold(one, asked, 'kept', -asked.kept)
    known.delete(incoming)
  }

  function answers(incoming: IncomingMessage, bytes: number): void {
    const { one, asked } = held(incoming)
    if (!one) return
    owes(one)
    // What waits behind another's answer is no reason to keep the connection: anybody can have that.
    if (one.unfinished.keys().next().value !== incoming) serves(one, asked, false)
    hold(one, asked, 'untaken', headBytes(incoming) + bytes)
    if (callers.sum('untaken') > untakenBytesMost) dropHeld(room.mostHeld('untaken'))
  }

  const lingerOf = (one: OpenConnection): number => (isOfProxy(one) ? proxyLingerSeconds : lingerSeconds)

  function endsIn(one: OpenConnection, seconds: number): void {
    one.endsBefore = clock.elapsed() + seconds * 1000
  }

  function closeSoon(socket: Socket): void {
    stopParsing(socket)
    // What still comes is taken in, of others than proxies as much as of large bodies: the kernel would answer it with a reset, and a proxy takes that for a server that is down.
    socket.destroySoon = () => socket.end()
    const one = connections.get(socket)
    if (!one) return void socket.destroy()
    if (one.endsBefore !== undefined) return
    endsIn(one, isOwed(one) ? answerSeconds : lingerOf(one))
    socket.removeAllListeners('data').on('data', ({ length }: Buffer) => throwsAway(socket, length))
  }

  function throwsAway(socket: Socket, bytes: number): void {
    const one = connections.get(socket)
    if (one && !rates.admitsBytes(one.names, bytes)) endParsing(socket)
  }

  return {
    admits: (address, isTls) => rates.admits(aroundOf(address), isTls),
    opened,
    begun(socket) {
      const one = opened(socket)
      if (!one) return
      endsIn(one, handshakeSeconds)
      unsecured.add(socket)
      socket.once('close', () => unsecured.delete(socket))
    },
    secured(socket, raw) {
      const one = raw && connections.get(raw)
      if (!one || socket.remoteAddress === undefined) return void socket.destroy() // it is closed already
      unsecured.delete(raw)
      connections.delete(raw)
      connections.set(socket, one)
      one.socket = socket
      one.endsBefore = undefined
      waitsAnew(one)
      socket.once('close', () => forget(socket))
    },
    asked(incoming, outgoing, caller, ofMerchant) {
      const { socket } = incoming
      const one = connections.get(socket) ?? (socket.destroyed ? undefined : opened(socket))
      if (!one || one.endsBefore !== undefined) return false
      const isBehind = one.unfinished.size > 0
      if (isBehind && !rates.admitsBehind(one.names, incoming.rawHeaders.length / 2, ofMerchant)) return tooMuch(one)
      if (++one.requests > requestsMost) {
        closeSoon(socket)
        return false
      }
      if (one.requests === requestsMost) outgoing.shouldKeepAlive = false
      asksFor(one, caller)
      if (one.unfinished.size >= unfinishedMost) return tooMuch(one)
      // Who has a token is bound by what a token may have under way, wherever he asks.
      const hasToken = ofMerchant !== undefined
      if (!hasToken && crowdOf(one.caller, 'tokenless') >= networkUnfinishedMost && !makesRoomFor(one)) return tooMuch(one)
      if (!places.comesIn(one, ofMerchant)) return tooMuch(one)
      one.unfinished.set(incoming, { outgoing, kept: 0, untaken: 0, hasToken })
      callers.add(one.caller, 'unfinished', 1)
      if (!hasToken) asksTokenless(one, 1)
      if (!isOwed(one)) waitsAnew(one) // what has just begun is on its way
      if (one.requests === 1 && rates.isCrowd(one.names)) {
        outgoing.shouldKeepAlive = false
        stopBehind(socket)
      }
      outgoing.on('drain', () => {
        one.stuckSince = undefined
        one.untakenSince = clock.elapsed()
      })
      outgoing.once('close', () => {
        if (!connections.has(one.socket)) return
        const isStrangers = !hasToken && one.unfinished.size === 1 && !one.unfinished.get(incoming)?.isServers
        answered(one, incoming)
        waitsAnew(one)
        if (isStrangers && !places.becomesStrangers(one)) return void drop(one.socket)
        if (one.endsBefore === undefined || isOwed(one)) return
        one.socket.end()
        endsIn(one, lingerOf(one))
      })
      keeps(incoming, headBytes(incoming))
      return true
    },
    answers,
    takes(socket, bytes, caller, ofMerchant) {
      const one = connections.get(socket)
      if (!one) return false
      return rates.admitsPiece(bytes, () => aroundOf(caller), ofMerchant) || tooMuch(one)
    },
    sends(incoming, bytes, ofMerchant) {
      const one = connections.get(incoming.socket)
      if (!one) return false
      const { names } = one.caller
      const person = known.get(incoming)?.name
      const whose = person === undefined ? ofMerchant : `by ${person}`
      if (rates.admitsBytes(names, bytes, whose)) return true
      return tooMuch(
        one,
        isOfProxy(one) || ((whose !== undefined || rates.isMerchants(names)) && rates.tells(whose ?? names[0]!)),
      )
    },
    throwsAway,
    deciphers(socket, bytes, goOn) {
      const one = connections.get(socket)
      if (!one) return true
      one.pieces += lackOf(bytes, packetBytes)
      if (rates.admitsPiece(bytes, () => one.names, places.ofMerchant(one), tlsPieceCost)) return true
      if (one.pieces > piecesMost.open) tooMuch(one, isOfProxy(one) && !unsecured.has(socket))
      if (one.pieces <= piecesMost.read) return true
      clock.after(slowReadMilliseconds, goOn).unref()
      return false
    },
    keeps,
    knows(incoming, name) {
      const { one, asked } = held(incoming)
      const others = [...known.values()]
      if (others.filter(other => other.name === name).length >= knownOfOneMost) return false
      if (!one) return true
      const isSpared = others.filter(other => other.isSpared).length < knownMost
      if (isSpared) hold(one, asked, 'kept', -asked.kept)
      known.set(incoming, { name, isSpared })
      return true
    },
    cuts(incoming) {
      const { one, asked } = held(incoming)
      if (one) {
        letsGo(incoming, one, asked)
        asked.isCut = true
        asked.outgoing.shouldKeepAlive = false // whoever is not told sends his next request behind it, and a proxy those of others
      }
      closeSoon(incoming.socket)
    },
    waits(incoming, body) {
      const { one, asked } = held(incoming)
      if (!one) return
      asked.body = body
      owes(one)
    },
    stands(incoming, leave) {
      const { asked } = held(incoming)
      if (asked) asked.leave = leave
      else leave()
    },
    begins(incoming) {
      const { one, asked } = held(incoming)
      if (!one) return undefined
      const { body } = asked
      delete asked.body
      letsGo(incoming, one, asked)
      return body
    },
    isMerchants: rates.isMerchants,
    isServers(incoming, merchantId) {
      const { one, asked } = held(incoming)
      if (!one) return
      rates.knowsMerchant(one.caller.names, merchantId)
      serves(one, asked, true)
      places.becomesServers(one, merchantLine(merchantId))
    },
    isOwed(socket) {
      const one = connections.get(socket)
      return one !== undefined && isOwed(one)
    },
    isLast(incoming) {
      const asked = [...(connections.get(incoming.socket)?.unfinished.keys() ?? [])]
      return !asked.slice(asked.indexOf(incoming) + 1).some(({ complete }) => complete)
    },
    closeSoon,
    closeOwed() {
      for (const one of connections.values()) if (isOwed(one)) closeSoon(one.socket)
    },
    closeAll(which) {
      if (which === 'unsecured') for (const socket of [...unsecured]) socket.destroy()
      else for (const one of [...connections.values()]) if (isOf[which](one)) one.socket.destroy()
    },
    stop() {
      timer.cancel()
      second.cancel()
      rates.stop()
    },
  }
}
