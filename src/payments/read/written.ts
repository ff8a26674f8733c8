// What another side wrote, before it is stored and told: an issuer's words to the cardholder, the error of a directory server, the reason of a wallet or
// bank. Any of them can repeat what it was sent.

import { beginningOf, maskCardNumbers } from '../../contract/cardNumbers.ts'

/** Numbers that somebody has to use, and that pass for card numbers by chance. */
const numbers: ReadonlySet<string> = new Set([
  'accountId',
  'acquirerTxId1',
  'acquirerTxId2',
  'acsTransactionId',
  'ConnectorTxID1',
  'CORRELATIONID',
  'DigitableLine',
  'dsTransactionId',
  'EXTERNAL_SYSTEM_BARCODE_IMAGE',
  'EXTERNAL_SYSTEM_BARCODE_NUMBER',
  'EXTERNAL_SYSTEM_LINK',
  'initialTransactionId',
  'number',
  'Reference',
  'TAXID',
  'verificationId',
])

/** As long as an address may be. */
const writtenMost = 2048

/** Without card numbers, control characters and halves of characters. */
export const writtenText = (text: string): string => maskCardNumbers(wholeText(text))

const wholeText = (text: string): string =>
  beginningOf(text, writtenMost)
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')

/** Texts by their names. */
export const writtenTexts = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, numbers.has(name) ? wholeText(text) : writtenText(text)]))
