// A payment as the old XML interface shows it: what clients of its query read, and what files of receipts hold. Pure.

import type { Mode } from '../../connectors/connector.ts'
import { amountText } from '../../contract/amounts.ts'
import { type Outcome, type Result, results } from '../../contract/results/results.ts'
import { wireTime } from '../../platform/clock.ts'
import type { PaymentState } from '../payment.ts'
import { storedJson } from '../store/read.ts'

/** A test mode as that interface calls it. */
export const xmlModes = { LIVE: 'live', CONNECTOR_TEST: 'external', INTEGRATOR_TEST: 'internal' } as const satisfies Record<
  string,
  Mode
>
const nameOfMode = new Map<Mode, string>(Object.entries(xmlModes).map(([name, mode]) => [mode, name]))

/** How that interface numbers and names what became of a payment: the third part of a processing code. */
const statuses: Readonly<Record<Outcome, readonly [number: string, word: string, good: boolean]>> = {
  success: ['90', 'NEW', true],
  review: ['90', 'NEW', true],
  pending: ['80', 'WAITING', true],
  rejected: ['60', 'REJECTED_BANK', false],
  error: ['64', 'REJECTED', false],
  invalid: ['70', 'REJECTED_VALIDATION', false],
}

/** `method`: CC, VA, OT or PP. */
export function transactionXml(payment: PaymentState, method: string): string {
  const { id, type, channelId, mode, brand, currency, merchantTransactionId, referenceId, receivedAt, answer, record } = payment
  const result: Result = answer ? results[answer.result] : results.pending
  const [status, word, good] = statuses[result.outcome]
  const amount = amountText(payment.amount)
  const time = wireTime(receivedAt).slice(0, 19)
  const said: { resultDetails?: Record<string, string> } = answer ? storedJson(id, 'body', answer.body) : {}
  const details = said.resultDetails
  const descriptor = record.fields.find(([name]) => name === 'descriptor')?.[1]
  return xmlElement('Transaction', { mode: nameOfMode.get(mode)!, response: 'SYNC', channel: channelId }, [
    xmlElement('Identification', {}, [
      leaf('UniqueID', id),
      leaf('TransactionID', merchantTransactionId),
      leaf('ReferenceID', referenceId),
    ]),
    xmlElement('Payment', { code: `${method}.${type}` }, [
      xmlElement('Clearing', {}, [
        leaf('Amount', amount),
        leaf('Currency', currency),
        leaf('Descriptor', descriptor),
        leaf('FxRate', '1.0'),
        leaf('FxSource', 'INTERN'),
        leaf('FxDate', time),
      ]),
    ]),
    xmlElement('Account', {}, [leaf('Brand', brand)]),
    xmlElement('Processing', { code: `${method}.${type}.${status}.00` }, [
      leaf('Timestamp', time),
      leaf('Result', good ? 'ACK' : 'NOK'),
      leaf('Status', word, { code: status }),
      leaf('Return', result.description, { code: result.code }),
    ]),
    ...(details
      ? [
          xmlElement(
            'Analysis',
            {},
            Object.entries(details).map(([name, value]) => leaf('Criterion', value, { name })),
          ),
        ]
      : []),
  ])
}

/** What stands before and behind the transactions of a list. */
export const listXml = (count: number): readonly [before: string, behind: string] => [
  `<?xml version="1.0" encoding="UTF-8"?>\n<Response version="1.0"><Result${attributesXml({ response: 'SYNC', type: 'LIST', count: String(count) })}>`,
  '</Result></Response>',
]

type Attributes = Readonly<Record<string, string>>

export const xmlElement = (name: string, attributes: Attributes, parts: readonly string[]): string =>
  `<${name}${attributesXml(attributes)}>${parts.join('')}</${name}>`

/** Nothing for what is absent. */
export const leaf = (name: string, text: string | undefined, attributes: Attributes = {}): string =>
  text === undefined ? '' : xmlElement(name, attributes, [escaped(text)])

const attributesXml = (attributes: Attributes): string =>
  Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escaped(value)}"`)
    .join('')

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }

/** What XML 1.0 has no way to say is left out (Char, section 2.2); line ends stay what they are. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]/g, '')
    .replace(/[&<>"']/g, sign => entities[sign]!)
    .replace(/[\t\n\r]/g, sign => `&#${sign.charCodeAt(0)};`)
