// Errors of two kinds: what an operator can mend is told in sentences, everything else is a defect. And what becomes of a process when nothing
// has caught one.

import inspector from 'node:inspector'

/** The message says, in sentences for the operator, what is wrong and what to do. It holds no secret. */
export class OperatorError extends Error {}

/** What a terminal would obey or hide is shown by its number. */
export const visible = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, sign => `\\u${sign.codePointAt(0)!.toString(16).padStart(4, '0')}`)

/** `setting`: what names the port, where that is not PORT. */
type ListenFailure = { readonly port?: number; readonly address?: string; readonly setting?: string }

/** How an error is told to whoever started the process. Names of files and what others wrote stand in it. */
export const errorText = (error: unknown): string => wordsOf(error).split('\n').map(visible).join('\n')

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof OperatorError) return error.message
  const { code, port, address, path, setting = 'PORT' } = error as NodeJS.ErrnoException & ListenFailure
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken on ${address}: stop what uses it, or choose another with ${setting}.`
    case 'EACCES':
      return port === undefined
        ? error.message
        : `Port ${port} may not be used by this user: choose one above 1023 with ${setting}.`
    case 'EADDRNOTAVAIL':
      return `HOST ${address} is not an address of this machine.`
    case '55P03': // PostgreSQL: a lock, and a statement, that took too long
    case '57014':
      return `The database was kept waiting for too long: ${error.message}. Something else is at work on the same rows or tables: try again when it has ended.`
    case 'ENOSPC':
    case 'EDQUOT':
      return `There is no room left on the disk${path === undefined ? '' : ` for ${path}`} (${code}).`
  }
  return error.stack ?? error.message
}

/** Output that nobody reads any more (`npm start | head`, a closed terminal) ends nothing: the work does not depend on its readers. */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** Those that ask a process to end, and those that would end it there and then. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const

/**
 * Node opens an inspector when it is sent SIGUSR1: a door to every secret in memory, for everybody on the machine. Who listens to the signal keeps it shut; of a
 * signal that came before knows `refuseInspected`. The ways to start that we give take none at all (--disable-sigusr1).
 */
export function refuseInspector(): void {
  process.on('SIGUSR1', () => {})
}

/** Throws an OperatorError when the door is open though no option asked for that. */
export function refuseInspected(): void {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? '']
  if (inspector.url() === undefined || options.some(option => option.includes('--inspect'))) return
  inspector.close()
  throw new OperatorError(
    'Somebody has opened the inspector of Node, and with it the memory of this process: SIGUSR1 does that in the first moment of a start. Start again, by `npm start` or with `node --disable-sigusr1`, which takes no such signal.',
  )
}

/**
 * After an error or a rejection that nothing has caught the process may be in any state: `end` is told each of them, and should stop in order.
 * Nothing that was answered is lost thereby, and no database or child is left behind.
 */
export function onDefect(end: (error: unknown) => void): void {
  process.on('uncaughtException', end) // rejections come here too
}
