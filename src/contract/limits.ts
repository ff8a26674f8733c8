// The limits of the interface that are no formats: sizes, counts and times, as documents state them. A test compares each with the code that keeps it.

export const limits = {
  /** Bytes of a request body. */
  bodyMaxBytes: 256 * 1024,
  /** Name-value pairs of one request. */
  parametersMax: 2000,
  /** Requests of one connection that wait for their answers; more close it. */
  unfinishedMost: 32,
  /** Connections to one process; more are not accepted. */
  connectionsMost: 4096,
  /** Requests of one connection, one after the other; then it is closed. */
  requestsPerConnection: 10_000,
  /** Highest index of a list, as in `cart.items[999].name`. */
  indexMax: 999,
  /** After so many hours a reversal sends no message to the issuer any more. */
  releaseHours: 72,
  /** An Idempotency-Key is remembered so long. */
  idempotencyKeyHours: 72,
  /** Failed attempts to authenticate in a minute: from one address, and with one credential from one address. */
  failuresPerAddress: 300,
  failuresPerCredential: 30,
} as const
