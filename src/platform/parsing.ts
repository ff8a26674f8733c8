// Ends what is read of a connection of which enough was read. What came in one reading, 64 kB, Node parses to its end whatever becomes of the socket: 11,000
// pieces of a body or 2,400 requests, of each of a thousand connections in one turn of the event loop; and on one that is only half closed, whatever comes later.

import type { Socket } from 'node:net'

/** Whom Node's parser tells of what it has found, by their places there. Without them it only reads on, which costs a fiftieth. */
type Parser = Record<string, unknown>
const told = new Set(['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete'])

const parserOf = (socket: Socket): Parser | null | undefined => (socket as { readonly parser?: Parser | null }).parser
const listeningOf = (parser: Parser) =>
  Object.entries(parser).filter((one): one is [string, ParserCallback] => typeof one[1] === 'function' && told.has(one[1].name))

type ParserCallback = (this: Parser, bytes: Buffer) => unknown

/** Each piece costs as much as some hundred bytes: what it lacks of these, as a part of one. */
export const lackOf = (bytes: number, least = pieceBytesLeast): number => Math.max(0, 1 - bytes / least)
const pieceBytesLeast = 256

/** Nothing more that comes on it is told of. What was asked before may still be answered. */
export function stopParsing(socket: Socket): void {
  const parser = parserOf(socket)
  if (!parser || socket.destroyed) return
  const listening = listeningOf(parser)
  for (const [place] of listening) parser[place] = undefined
  // With the end of its socket it goes to another one.
  socket.prependOnceListener('close', () => Object.assign(parser, Object.fromEntries(listening)))
}

/** The request that is being told of is the last of its connection: nothing behind it is told of. */
export function stopBehind(socket: Socket): void {
  const parser = parserOf(socket)
  const [place, tell] = (parser && listeningOf(parser).find(([, { name }]) => name === 'parserOnMessageComplete')) ?? []
  if (!parser || !place || !tell || socket.destroyed) return
  const last = function (this: Parser, bytes: Buffer) {
    parser[place] = tell
    const result = tell.call(this, bytes)
    stopParsing(socket)
    return result
  }
  parser[place] = last
  socket.prependOnceListener('close', () => {
    if (parser[place] === last) parser[place] = tell
  })
}

/** Nothing more that comes on it is told of, and it is closed. */
export function endParsing(socket: Socket): void {
  stopParsing(socket)
  socket.destroy()
}

/**
 * For the connection of a call that has just been made: tells of each piece of a body before whoever reads it hears of it, which is a turn later, and asks
 * after each message whether the answer is `whole`: what comes behind it is not told of. Returns what stops it all.
 */
export function watchAnswer(socket: Socket, piece: (bytes: number) => void, isWhole: () => boolean): () => void {
  const parser = parserOf(socket)
  if (!parser) return () => {}
  const listening = listeningOf(parser)
  const isOurs = () => parserOf(socket) === parser
  const stop = () => {
    if (isOurs()) for (const [place] of listening) parser[place] = undefined
  }
  for (const [place, tell] of listening) {
    if (tell.name === 'parserOnBody')
      parser[place] = function (this: Parser, bytes: Buffer) {
        piece(bytes.length)
        return tell.call(this, bytes)
      }
    if (tell.name === 'parserOnMessageComplete')
      parser[place] = function (this: Parser, bytes: Buffer) {
        tell.call(this, bytes)
        if (isWhole()) stop()
      }
  }
  // Node takes it back with any of these, and gives it to another connection in a later turn.
  const ends = ['data', 'end', 'error', 'close'] as const
  const giveBack = () => {
    if (isOurs()) return
    Object.assign(parser, Object.fromEntries(listening))
    for (const event of ends) socket.off(event, giveBack)
  }
  for (const event of ends) socket.on(event, giveBack)
  return stop
}
