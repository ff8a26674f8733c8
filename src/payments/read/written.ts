// What another side wrote, before it is stored and told: an issuer's words to the cardholder, the error of a directory server, the reason of a wallet or
// bank. Any of them can repeat what it was sent.

import type { Reply } from '../../connectors/connector.ts'
import { beginningOf, maskKeyedCode, withoutNumber, writtenBeginning } from '../../contract/cardNumbers.ts'

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
export const writtenText = (text: string): string => storable(writtenBeginning(text, writtenMost))

/** No CVV is part of a number, and no address of mail passes for a card number by chance. */
const numberText = (text: string): string =>
  text.includes('@') ? writtenText(text) : storable(beginningOf(maskKeyedCode(undefined, text), writtenMost))

const storable = (text: string): string => text.toWellFormed().replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')

/** Texts by their names. */
export const writtenTexts = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, numbers.has(name) ? numberText(text) : writtenText(text)]),
  )

/** Where the card is at hand: its own number goes from all that is stored and told, however the other side wrote it. Only then is it known among other digits. */
export function withoutOwnNumber(reply: Reply, number: string | undefined): Reply {
  if (number === undefined || reply.kind === 'redirect') return reply
  if (reply.kind !== 'answer') return { ...reply, why: withoutNumber(reply.why, number) }
  const without = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, withoutNumber(text, number)]))
  const { details, kept, structures } = reply
  return {
    ...reply,
    details: without(details),
    kept: without(kept),
    ...(structures && {
      structures: Object.fromEntries(Object.entries(structures).map(([name, texts]) => [name, without(texts)])),
    }),
  }
}
