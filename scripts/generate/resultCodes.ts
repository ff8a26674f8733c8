// docs/reference/result-codes.md: every code of the interface, and our own refusals.

import { catalogue } from '../../src/contract/results/catalogue.ts'
import {
  type Outcome,
  type Result,
  type ResultName,
  type Retry,
  refusalNames,
  results,
  type WhoMustAct,
} from '../../src/contract/results/results.ts'
import { code, generatedMark, table } from './markdown.ts'

const outcomes: Readonly<Record<Outcome, string>> = {
  success: 'it succeeded',
  review: 'it succeeded, and someone should look at it',
  pending: 'the outcome is not known yet; read the payment later',
  rejected: 'a bank, an issuer, a risk check, 3-D Secure or the shopper said no',
  invalid: 'the request, what it refers to, or the configuration is wrong',
  error: 'communication or a system failed',
}

const actors: Readonly<Record<WhoMustAct, string>> = {
  nobody: 'nobody needs to act',
  shopper: 'the shopper, with other data or another card',
  merchant: 'the merchant, who decides',
  developer: "whoever writes the merchant's requests",
  operator: 'whoever runs the gateway',
  issuer: 'the bank that issued the card',
  acquirer: "the merchant's bank",
}

const retries: Readonly<Record<Retry, string>> = {
  no: 'there is nothing to try again: it is done, under way, or must be looked up first',
  later: 'the same request may succeed later',
  afterChange: 'after the data, the configuration or the authentication is corrected',
  never: 'not with this card or this request; card schemes charge for it',
}

export function resultCodesPage(): string {
  const names = Object.keys(catalogue) as ResultName[]
  return `${generatedMark}
# Result codes

An answer carries \`result.code\` and \`result.description\`. The list of codes is closed: nothing else is ever answered.
\`GET /v1/resultcodes\` returns it. The **name** is what the gateway's own code and tests call a result.

The outcome decides the HTTP status of a POST: ${['success', 'review', 'pending'].map(code).join(', ')} are 200, the others are 400.

${definitions('Outcome', outcomes)}

${definitions('Who must act', actors)}

${definitions('Try again', retries)}

## Refusals of the gateway itself

Each has its own name and words; codes may repeat.

${resultTable(refusalNames)}

## All codes

${resultTable(names)}
`
}

const definitions = (title: string, words: Readonly<Record<string, string>>): string =>
  table(
    [title, 'Meaning'],
    Object.entries(words).map(([word, meaning]) => [code(word), meaning]),
  )

function resultTable(names: readonly ResultName[]): string {
  const row = ({ name, code: number, description, outcome, actor, retry }: Result) => [
    number,
    code(name),
    outcome,
    description,
    actor,
    retry,
  ]
  return table(
    ['Code', 'Name', 'Outcome', 'Description', 'Who must act', 'Try again'],
    names.map(name => row(results[name])),
  )
}
