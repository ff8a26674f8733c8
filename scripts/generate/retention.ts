// docs/reference/retention.md: how long everything stays.

import { allKept, stays } from '../../src/start/kept.ts'
import { code, generatedMark, table } from './markdown.ts'

const spanOf = (days: number): string =>
  days === 0 ? 'as it says itself' : days >= 1 ? `${days} days` : days * 24 >= 1 ? `${days * 24} hours` : `${days * 1440} minutes`

export const retentionPage = (): string => `${generatedMark}
# What is kept, and for how long

See [retention](../operating-retention.md) for the setting, the command and the figures.

## For a time

Where **May be** says nothing the product promises the time as it is.

${table(
  ['Kind', 'What', 'Table', 'Kept for', 'May be', 'Why'],
  allKept.map(({ kind, what, table, days, range, why }) => [
    code(kind),
    what,
    code(table),
    spanOf(days),
    range ? `${range[0]} to ${range[1]} days` : '',
    why,
  ]),
)}

## For as long as the installation

${table(
  ['Tables', 'Why'],
  stays.map(([why, tables]) => [tables.split(' ').map(code).join(', '), why]),
)}
`
