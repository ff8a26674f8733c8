// What went wrong with the database, told apart by what is known of the statement.

import pg from 'pg'

/** What could not be written in time. Whether it was written after all is not known when a write of it was under way. */
export class WriteTimeout extends Error {}
/** Too many want the same thing: callers cause it at will, and nothing of it was begun. */
export class NoTurn extends WriteTimeout {}

/** The server ended the session, is about to, has no room for another, or became one that follows another and takes no writes any more. */
const endedByServer: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25006', '53300'])
/** The statement was given up: it took too long, waited too long for a lock, or was in another's way. */
const givenUp: ReadonlySet<string> = new Set(['57014', '55P03', '40P01', '40001'])
/** The server has no room on its disk or in its memory, or its disk fails: the statement is undone. */
const noRoom: ReadonlySet<string> = new Set(['53100', '53200', '58030'])
const lostMessages =
  /^(Query read timeout|Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|no server takes writes|The database cannot be used)/

/** So many ask at once that no connection came free in time: callers cause it at will. A server to which none can be opened says something else. */
export const isCrowd = (error: unknown): error is Error =>
  error instanceof NoTurn || (error instanceof Error && error.message === 'timeout exceeded when trying to connect')

/** The server ended the statement at its time limit. */
export const isTooSlow = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '57014'

/** A table, a column or a function is not there, or is another. */
export const isOfSchema = (error: unknown): boolean => error instanceof pg.DatabaseError && /^42/.test(error.code ?? '')

/** The connection is lost or silent: nothing is known of what became of the statement. */
export function isLost(error: unknown): error is Error {
  if (error instanceof pg.DatabaseError) return endedByServer.has(error.code ?? '') || error.code?.startsWith('08') === true
  const { code, message = '', syscall } = error as { code?: unknown; message?: string; syscall?: string }
  if (code === 'ENOENT') return syscall === 'connect' // a socket that is gone, and no file of ours
  return (
    lostMessages.test(message) ||
    (typeof code === 'string' && /^(ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_AGAIN$|EPROTO$|ERR_SSL_)/.test(code))
  )
}

/** The server may have committed it, and nobody has heard so. */
export const isUnknown = (error: unknown): boolean =>
  isLost(error) || (error instanceof WriteTimeout && !(error instanceof NoTurn))

/** The database was slow, full or away: the same may succeed later. */
export const isUnavailable = (error: unknown): error is Error =>
  error instanceof WriteTimeout ||
  isLost(error) ||
  (error instanceof pg.DatabaseError && (givenUp.has(error.code ?? '') || noRoom.has(error.code ?? '')))
