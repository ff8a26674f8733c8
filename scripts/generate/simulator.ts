// docs/reference/simulator.md: how to make each outcome on a test channel, from the simulator's own tables.

import { results } from '../../src/contract/results/results.ts'
import { cardOutcomes, switches } from '../../src/sandbox/cards.ts'
import { testCards } from '../../src/sandbox/testCards.ts'
import { code, generatedMark, table } from './markdown.ts'

export function simulatorPage(): string {
  return `${generatedMark}
# The simulator

A payment on a test channel goes to the simulator unless it asks for \`testMode=EXTERNAL\`. On a live channel \`testMode=INTERNAL\` does the
same, and the payment is kept out of live sums. A success answers \`${results.succeededInTestMode.code}\`
(${results.succeededInTestMode.description}).

The simulator decides by the data of the request alone, so a test says in its request what shall happen. Captures, refunds and reversals are
steered by the custom parameters of their own requests, first payments also by the card number. What decides, first match wins:

1. \`customParameters[forceResultCode]\` of the request
2. the channel's \`simulatorRules\` (see [operating.md](../operating.md))
3. the card number
4. otherwise the payment is approved

Before the simulator is asked the gateway's own checks have passed: formats, check digit, brand, expiry, CVV and the rules for captures,
refunds and reversals.

## Cards that are approved

${table(
  ['Brand', 'Number', 'CVV'],
  testCards.map(([brand, number, digits]) => [code(brand), code(number), `any ${digits} digits`]),
)}

Any future expiry will do. Every other number that passes the checks is approved too, except these:

## Cards with an outcome of their own

They work for PA, DB and CD.

${table(
  ['Number', 'Code', 'Description'],
  Object.entries(cardOutcomes)
    .filter(([, name]) => name !== 'succeeded')
    .map(([number, name]) => [code(number), results[name].code, results[name].description]),
)}

## Custom parameters

${table(
  ['Parameter', 'Effect'],
  Object.entries(switches).map(([name, effect]) => [code(`customParameters[${name}]`), sentence(effect)]),
)}

Unknown values of \`simulateAvs\`, \`simulateCvv\` and \`simulateRiskScore\` are ignored; an unknown \`forceResultCode\` on a first payment is refused
(${results.noSuchForcedResult.code}). A payment without an answer is read as \`${results.pending.code}\` until recovery settles it: a PA or DB is
reversed and ends as \`${results.timeoutReversed.code}\`, a capture, refund or reversal is repeated and then approved.

## Examples

The shopper's bank declines:

    customParameters[forceResultCode]=${results.declinedCardInvalid.code}

The address check finds that only the postal code matches, the CVV is right, the risk score is 42:

    customParameters[simulateAvs]=Z
    customParameters[simulateCvv]=M
    customParameters[simulateRiskScore]=42

The acquirer stays silent. The request is answered at once with \`${results.pending.code}\`; seconds later the payment is settled:

    customParameters[simulateAnswer]=none

The acquirer takes three seconds. Above ten the request stops waiting: the payment is pending, and recovery settles it as if no answer had come:

    customParameters[simulateDelay]=3000
`
}

/** The words before a colon are values and stay as they are. */
const sentence = (text: string): string =>
  /^[a-z]+:/.test(text) ? `${text}.` : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
