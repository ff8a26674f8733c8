// The limits of the interface that are no formats: sizes, counts and times, as documents state them. A test compares each with the code that keeps it.

export const limits = {
  /** Bytes of a request body. */
  bodyMaxBytes: 256 * 1024,
  /** Of what shoppers fill in, and what they carry from one page to another. */
  shoppersBodyMaxBytes: 32 * 1024,
  shoppersParametersMax: 200,
  /** Name-value pairs of one request. */
  parametersMax: 2000,
  /** Records that a search reaches, page by page, and bytes of the records of one page. */
  searchReach: 100_000,
  pageMaxBytes: 8 * 1024 * 1024,
  /** Days of one settlement report. */
  reportDays: 366,
  /** Wrong parameters that one answer names. */
  errorsMost: 100,
  /** Highest index of a list, as in `cart.items[999].name`. */
  indexMax: 999,
  /** A checkout lives so long where its merchant asks for no longer life. */
  checkoutMinutes: 30,
  /** Registrations that one form offers. */
  offeredRegistrations: 50,
  /** After so many hours a reversal sends no message to the issuer any more. */
  releaseHours: 72,
  /** An Idempotency-Key is remembered so long. */
  idempotencyKeyHours: 72,
  /** Failed attempts to authenticate in a minute: from one address, for one user id, and with one credential from one address. */
  failuresPerAddress: 300,
  failuresPerUser: 60,
  failuresPerCredential: 30,
} as const
