// Ends what is read of a connection of which enough was read. What came in one reading, 64 kB, Node parses to its end whatever becomes of the socket: 11,000
// pieces of a body or 2,400 requests, of each of a thousand connections in one turn of the event loop; and on one that is only half closed, whatever comes later.

import type { Socket } from 'node:net'

/** Whom Node's parser tells of what it has found, by their places there. Without them it only reads on, which costs a fiftieth. */
type Parser = Record<string, unknown>
const told = new Set(['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete'])

/** Nothing more that comes on it is told of. What was asked before may still be answered. */
export function stopParsing(socket: Socket): void {
  const { parser } = socket as { readonly parser?: Parser | null }
  if (!parser || socket.destroyed) return
  const listening = Object.entries(parser).filter(([, one]) => typeof one === 'function' && told.has(one.name))
  for (const [place] of listening) parser[place] = undefined
  // With the end of its socket it goes to another one.
  socket.prependOnceListener('close', () => Object.assign(parser, Object.fromEntries(listening)))
}

/** The same, and closes it. */
export function endParsing(socket: Socket): void {
  stopParsing(socket)
  socket.destroy()
}
