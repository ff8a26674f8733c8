// Errors of two kinds: what an operator can mend is told in sentences, everything else is a defect and is told with its stack.

/** The message says, in sentences for the operator, what is wrong and what to do. It holds no secret. */
export class OperatorError extends Error {}

/** How an error is told to whoever started the process. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof OperatorError) return error.message
  const { code, port, address } = error as Error & { code?: string; port?: number; address?: string }
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken on ${address}: stop what uses it, or choose another with PORT.`
    case 'EACCES':
      return port === undefined ? error.message : `Port ${port} may not be used by this user: choose one above 1023 with PORT.`
    case 'EADDRNOTAVAIL':
      return `HOST ${address} is not an address of this machine.`
  }
  return error.stack ?? error.message
}
