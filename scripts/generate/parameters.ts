// docs/reference/parameters.md: every row of the parameter table, by group.

import { limits } from '../../src/contract/limits.ts'
import { needOf } from '../../src/contract/parameters/describe.ts'
import type { Parameter, Parameters } from '../../src/contract/parameters/parameter.ts'
import { type Group, groups } from '../../src/contract/parameters/table.ts'
import { groupTitles } from '../../src/contract/parameters/titles.ts'
import { requests } from '../../src/contract/requests.ts'
import { code, generatedMark, table } from './markdown.ts'

const requestTitles: Readonly<Record<keyof typeof requests, string>> = {
  payment: 'POST /v1/payments',
  threeDSecure: 'POST /v1/threeDSecure',
  followUp: 'POST /v1/payments/{id}',
  checkout: 'POST /v1/checkouts',
  checkoutUpdate: 'POST /v1/checkouts/{id}',
  checkoutPayment: 'POST /v1/checkouts/{id}/payment, together with what the merchant said',
  registration: 'POST /v1/registrations',
  registrationPayment: 'POST /v1/registrations/{id}/payments',
  read: 'GET /v1/payments/{id}',
  query: 'GET /v1/payments, /v1/query and /v3/query',
  report: 'GET /reports/v1/reconciliations/aggregations',
  reportDetail: 'GET /reports/v1/reconciliations/aggregations/{id}, and on v2',
}

export function parametersPage(): string {
  return `${generatedMark}
# Parameters

Every parameter of the interface under its wire name. The same table validates requests, decides what is returned and writes
[openapi.json](openapi.json).

- **Format.** A = letters, N = digits, AN = any characters; the number is the greatest length in characters (code points), the least is 1
  unless two are given. Letters are those of all scripts with the marks, spaces, hyphens, apostrophes and dots that names need. Control
  characters are refused; only long free texts may hold tabs and line ends.
- **Names.** \`[n]\` is an index: it begins at 0, leaves no gap and is at most ${limits.indexMax}. Any other word in brackets stands for a name
  that the merchant chooses.
- **Bytes.** A form is UTF-8, or ISO-8859-1 or windows-1252 where the charset of its content type says so. A raw byte and its percent sign are the same;
  bytes that are no UTF-8 make a parameter malformed.
- **Blank means absent**, except where a row says that an empty value counts.
- **Unknown parameters are ignored**; their values are never logged or returned. A sandbox logs their names, with the parameter that was probably
  meant. A request takes at most ${limits.parametersMax} parameters.
- **Strict and lenient channels.** On a strict channel every malformed parameter is an error, and so is one that was sent twice. On a lenient
  channel a malformed *descriptive* parameter (marked D) is dropped with a line in the log, conditions between parameters are waived, and of a
  parameter that was sent twice the last one counts.
- **Card numbers where none belongs** are refused by name on a strict channel and masked on a lenient one, in values and in names in brackets. In
  identifiers (marked I) what passes for a card number is kept. A channel can be set to do otherwise. So are CVVs that are
  named: \`cvv 123\` in a text, or \`customParameters[cvv]\`.
- **Errors.** \`result.parameterErrors\` names every wrong parameter at once, up to ${limits.errorsMost} of them.

The columns: **D** descriptive · **I** identifier · **Echo** returned in the answer · **Secret** never returned, logged or stored in clear.

## Which request takes which group

${table(
  ['Request', 'Required', 'Groups'],
  Object.entries(requests).map(([name, { groups: taken, required }]) => [
    code(requestTitles[name as keyof typeof requests]),
    required.map(code).join(', ') || '–',
    taken.map(group => groupTitles[group]).join(', '),
  ]),
)}

${Object.entries(groups)
  .map(([group, rows]) => `## ${groupTitles[group as Group]}\n\n${groupTable(rows)}`)
  .join('\n\n')}
`
}

function groupTable(rows: Parameters): string {
  return table(
    ['Name', 'Format', 'Required', 'D', 'I', 'Echo', 'Secret', 'Cut after', 'Default', 'Note'],
    Object.entries(rows).map(([name, row]) => [
      code(name),
      formatOf(row),
      needOf(row)
        .replace(/^Required (.*)\.$/, '$1')
        .replace(/^Optional\.$/, '–'),
      row.descriptive ? 'D' : '',
      row.cardNumbers === 'byChance' ? 'I' : '',
      row.echo ? 'yes' : '',
      row.secret ? 'secret' : '',
      row.truncate === undefined ? '' : String(row.truncate),
      row.default === undefined ? '' : code(row.default),
      [row.note, row.blankCounts && 'An empty value counts as a value.', row.key && `Name in brackets: ${row.key.label}.`]
        .filter(Boolean)
        .join(' '),
    ]),
  )
}

const formatOf = ({ format: { words, label } }: Parameter): string => (words ? words.map(code).join(' ') : label)
