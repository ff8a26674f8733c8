// The INTERNAL simulator for cards: a pure function of the operation and the channel's rules. It decides by the data, so that a
// test says in its request what shall happen. docs/reference/simulator.md is the table below in words.

import { agreementMode } from '../connectors/cards/iso8583/forwarding.ts'
import type { Connector, LateReply, Operation, Reply } from '../connectors/connector.ts'
import { amountText } from '../contract/amounts.ts'
import { type ResultName, resultOfCode } from '../contract/results/results.ts'
import type { OutcomeRule } from '../merchants/settings.ts'

/** Custom parameters that steer the simulator. */
export const switches = {
  forceResultCode:
    'answers this result code; any of the plain success codes is answered as the one of the mode, and a pending code means that no answer comes',
  simulateDelay:
    'answers after so many milliseconds, at most 60000; after 10000 the request has stopped waiting, and no answer comes',
  simulateAnswer:
    'none: no answer ever · late: the answer comes after the request has stopped waiting · twice: the answer comes a second time · unreachable: nothing can be sent · other: the answer names another amount',
  simulateAvs: 'the letter of result.avsResponse: A, Z, N, U or F',
  simulateCvv: 'the letter of result.cvvResponse: M, N, P, S or U',
  simulateRiskScore: 'the number of risk.score, -99999 to 99999',
} as const

/** Card numbers with an outcome of their own; every other number that passes the checks is approved. */
export const cardOutcomes: Readonly<Record<string, ResultName>> = {
  '4000000000000002': 'declinedByAuthorization',
  '4000000000009995': 'declinedInsufficientCredit',
  '4000000000000069': 'declinedExpiryWrong',
  '4000000000000127': 'declinedCvvWrong',
  '4000000000009987': 'declinedCardLost',
  '4000000000009979': 'declinedCardStolen',
  '4000000000000119': 'acquirerCommunicationError',
  '5555555555554444': 'succeeded',
}

// Looked up for every payment: a map is several times faster at strings of digits, which an object tries as indexes.
const outcomeOfNumber: ReadonlyMap<string, ResultName> = new Map(Object.entries(cardOutcomes))

const answerWithinSeconds = 10

export function cardSimulator(wait: (milliseconds: number, signal?: AbortSignal) => Promise<void>): Connector {
  let late: LateReply | undefined
  return {
    name: 'simulator',
    answerWithinSeconds,
    operations: {
      PA: { how: 'reverse', afterSeconds: 15 },
      DB: { how: 'reverse', afterSeconds: 15 },
      CD: { how: 'repeat', afterSeconds: 15 },
      CP: { how: 'repeat', afterSeconds: 15 },
      RF: { how: 'repeat', afterSeconds: 15 },
      RV: { how: 'repeat', afterSeconds: 15 },
    },
    partialReversal: () => true,
    refusesParameter(values) {
      const forced = values.get(forceResultCode)
      return forced === undefined || resultOfCode.has(forced)
        ? undefined
        : { result: 'noSuchForcedResult', name: forceResultCode, message: 'must be a code of the interface' }
    },
    start(handler) {
      late = handler
    },
    async perform(operation, signal) {
      const answer = answerOf(operation)
      const how = behaviourOf(operation)
      if (how === 'unreachable') return { kind: 'notSent', why: 'the simulator was told to be unreachable' }
      const delay = isFirst(operation)
        ? Math.min(Number(operation.fields.get('customParameters[simulateDelay]') ?? 0) || 0, 60_000)
        : 0
      if (delay > 0) await wait(delay, signal)
      if (how === 'none') return { kind: 'unknown', why: 'the simulator was told to stay silent' }
      const again = () => late?.(operation.merchantId, operation.paymentId, answer)
      if (how === 'late') {
        wait(1000).then(again).catch(lost)
        return { kind: 'unknown', why: 'the simulator was told to answer late' }
      }
      if (how === 'twice') wait(50).then(again).catch(lost)
      return answer
    },
  }
}

const forceResultCode = 'customParameters[forceResultCode]'

/** What comes late may never arrive, for example when the gateway ends: recovery asks again. */
const lost = () => {}

/** Repeated and recovering operations are always answered, and at once: the other side came back. */
const isFirst = ({ attempt, recovering }: Operation): boolean => attempt === 1 && !recovering

function behaviourOf(operation: Operation): string | undefined {
  if (!isFirst(operation)) return undefined
  const { fields } = operation
  const forced = resultOfCode.get(fields.get(forceResultCode) ?? '')
  return forced?.outcome === 'pending' ? 'none' : fields.get('customParameters[simulateAnswer]')
}

function answerOf(operation: Operation): Reply {
  const { type, amount, currency, fields, paymentId } = operation
  const result = outcomeOf(operation)
  const approved = result === 'succeeded'
  const authorizes = type === 'PA' || type === 'DB'
  const letter = (name: string, letters: string) => {
    const wanted = fields.get(`customParameters[${name}]`)
    return wanted !== undefined && wanted.length === 1 && letters.includes(wanted) ? wanted : undefined
  }
  const avsResponse = letter('simulateAvs', 'AZNUF')
  const cvvResponse = letter('simulateCvv', 'MNPSU')
  const score = fields.get('customParameters[simulateRiskScore]')
  const begins =
    approved && authorizes && agreementMode(fields) === 'INITIAL' && !fields.has('standingInstruction.initialTransactionId')
  return {
    kind: 'answer',
    result,
    amount: fields.get('customParameters[simulateAnswer]') === 'other' && !operation.recovering ? amount + 1 : amount,
    currency,
    details: {
      ExtendedDescription: approved ? 'Approved' : 'Declined by the simulator',
      clearingInstituteName: 'Tollgate Simulator',
      ConnectorTxID1: paymentId.slice(-12).toUpperCase(),
      AcquirerResponse: approved ? '00' : '05',
    },
    ...(avsResponse !== undefined && authorizes && { avsResponse }),
    ...(cvvResponse !== undefined && authorizes && { cvvResponse }),
    ...(authorizes && { riskScore: score !== undefined && /^[+-]?\d{1,5}$/.test(score) ? score : '0' }),
    // As a network names the payment that begins an agreement.
    ...(begins && { structures: { standingInstruction: { initialTransactionId: paymentId.slice(-15).toUpperCase() } } }),
    kept: { ConnectorTxID1: paymentId.slice(-12).toUpperCase() },
  }
}

function outcomeOf(operation: Operation): ResultName {
  if (operation.recovering) return 'succeeded'
  const { channel, fields, card, type } = operation
  const forced = resultOfCode.get(fields.get(forceResultCode) ?? '')
  if (forced && forced.outcome !== 'pending') return isPlainSuccess(forced.name) ? 'succeeded' : forced.name
  const rule = channel.settings.simulatorRules.find(({ match }) => fitsRule(match, operation))
  const ruled = rule && resultOfCode.get(rule.code)
  if (ruled && ruled.outcome !== 'pending') return isPlainSuccess(ruled.name) ? 'succeeded' : ruled.name
  return (type === 'PA' || type === 'DB' || type === 'CD') && card
    ? (outcomeOfNumber.get(card.number) ?? 'succeeded')
    : 'succeeded'
}

/** The plain success codes follow the mode; other successes (a review) are answered as they are. */
const isPlainSuccess = (name: ResultName) =>
  name === 'succeeded' || name === 'succeededInTestMode' || name === 'succeededInConnectorTestMode'

function fitsRule(match: OutcomeRule['match'], { card, brand, type, amount, currency }: Operation): boolean {
  return (
    (match.bin === undefined || card?.number.startsWith(match.bin) === true) &&
    (match.last4 === undefined || card?.number.endsWith(match.last4) === true) &&
    (match.brand === undefined || match.brand === brand) &&
    (match.paymentType === undefined || match.paymentType === type) &&
    (match.amount === undefined || match.amount === amountText(amount)) &&
    (match.currency === undefined || match.currency === currency)
  )
}
