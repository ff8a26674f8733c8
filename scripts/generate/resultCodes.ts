// docs/reference/result-codes.md: every code of the interface, and our own refusals.

import { catalogue } from '../../src/contract/results/catalogue.ts'
import { type Result, type ResultName, refusalNames, results } from '../../src/contract/results/results.ts'
import { actorWords, outcomeWords, retryWords } from '../../src/contract/results/words.ts'
import { code, generatedMark, table } from './markdown.ts'

export function resultCodesPage(): string {
  const names = Object.keys(catalogue) as ResultName[]
  return `${generatedMark}
# Result codes

An answer carries \`result.code\` and \`result.description\`. The list of codes is closed: nothing else is ever answered.
\`GET /v1/resultcodes\` returns it. The **name** is what the gateway's own code and tests call a result.

The outcome decides the HTTP status of a POST: ${['success', 'review', 'pending'].map(code).join(', ')} are 200, the others are 400.

${definitions('Outcome', outcomeWords)}

${definitions('Who must act', actorWords)}

${definitions('Try again', retryWords)}

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
