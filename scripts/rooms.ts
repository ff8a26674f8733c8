// The rooms of src: what each is, and which others it may import. A folder, or a file that stands alone; what only names a type counts too.
// The tidy test holds the code to it, and ARCHITECTURE.md shows it.

import { existsSync, readFileSync } from 'node:fs'

type Room = readonly [name: string, what: string, mayImport: string]

// biome-ignore format: one line a room
const rooms: readonly Room[] = [
  ['contract',      'the interface as data: formats, parameters, requests, form, results, operations, OpenAPI', ''],
  ['platform',      'what any service needs and what knows no payments: clock, chance, log, errors of operators, readers of what they write, figures, `database/`, work that is due (`due/`), guarded calls (`egress/`)', 'contract'],
  ['vault',         'the keys of an installation, the seal, sealing anew, and `cards`, which nobody else touches', 'contract platform'],
  ['audit',         'who did what: sealed rows that only grow; failed attempts to authenticate, limited for all processes together', 'contract platform vault'],
  ['merchants',     'PSP, divisions, merchants, channels, settings, seed files; held in memory by `directory`; `access/`: tokens and who may do what', 'contract platform vault audit'],
  ['staff',         'the people who work with the back office: roles and what each may do, passwords and second factors, links that work once, sessions', 'contract platform vault audit merchants'],
  ['connectors',    'what every payment method gives (`connector.ts`) and which one carries a payment (`registry.ts`); `cards/` to acquirers over ISO 8583 with 3-D Secure and leased terminals, `wallet/`, `bankTransfer/` with redirect methods of a file, `slips/` that banks and store chains are paid by', 'contract platform merchants'],
  ['payments',      '`initial/` payments and `followUps/`, operator `cases/`, `execute`, `recover`, `redirects/` for shoppers who left, `risk/`, `ledger/` (journal and doctor), `outbox/` with a mark for each consumer, `read/`, `store/`', 'contract platform vault audit merchants connectors'],
  ['slips',         'slips as they were issued: their numbers, what became of each', 'platform connectors payments'],
  ['registrations', 'payment details that were stored to be paid with again: made, used, ended', 'contract platform vault audit connectors payments'],
  ['checkouts',     'the hosted flow: a merchant makes a checkout, its shopper pays in the form, one attempt at a time; the missed return', 'contract platform vault merchants connectors payments registrations notifications'],
  ['clearing',      'files of acquirers, banks and store chains: one import, each line one transaction; chargebacks; `reconciliation/` of days with acquirers; `captures/` in files; of slips `receipts/`, `returns/` of banks and chains and `remittance/` to banks, in layouts of `cnab/`, with `intake/` from servers and `transfers/` of refunds', 'contract platform vault audit connectors payments slips'],
  ['notifications', 'what merchants are told: notification, cipher, signature; `endpoints/`, `deliveries/`, `replay/`', 'contract platform vault audit merchants payments'],
  ['alerts',        'what the operator is told by mail: one digest of what waits for somebody', 'platform payments notifications'],
  ['reporting',     'what people and programs read about many payments: `requests/`, records of what was asked and answered, masked; `search/`, payments by whatever is known of them; `settlement/` reports of what was cleared; the `overview/`; files for the staff (`exports/`) and for the servers of others: `receiptFiles/` and reports by `schedules/`, both `owedFiles/`', 'contract platform vault audit merchants connectors payments'],
  ['archive',       'old chains of payments out of the database into files, each with the sums that stand for it, and back', 'platform audit payments reporting'],
  ['http',          'server, router, authenticate; `v1/`, the request functions of the interface', 'contract platform vault audit merchants connectors payments registrations checkouts reporting'],
  ['pages',         'what people see: the frame, `languages/`; `shopper/`, the pages between shop and other side; `form/`, the payment form with its scripts; `slip/`, a slip on a screen and on paper; `office/`, the back office of the staff; `developers/`, the reference', 'contract platform audit merchants staff connectors payments slips checkouts clearing notifications reporting archive http'],
  ['sandbox',       'the other side: a pure acquirer, an acquirer host with books of its own, issuer, wallet and bank with their pages; the movable clock, the listener, the welcome, the demo shop, the `console/`', 'contract platform audit merchants connectors payments notifications reporting http pages'],
  ['start',         'puts it together: `assemble` without sockets, `serve` with them, processes, the environment', 'contract platform vault audit merchants staff connectors payments slips registrations checkouts clearing notifications alerts reporting archive http pages sandbox'],
  ['cli',           '`bin/tollgate`: one file for each group of commands', 'contract platform vault audit merchants staff connectors payments slips clearing notifications reporting archive sandbox start'],
  ['main',          'begins a process; leads to `bin/main.js`, which a Node too old for the rest can read too', ''],
]

/** Room → the rooms that it may import. */
export const mayImport: Readonly<Record<string, string>> = Object.fromEntries(rooms.map(([name, , others]) => [name, others]))

const file = (name: string) => new URL(`../${name}`, import.meta.url)
const marks = ['<!-- rooms -->\n', '<!-- /rooms -->'] as const

/** ARCHITECTURE.md with the table of rooms as it stands here. */
export function architecturePage(): string {
  const page = readFileSync(file('ARCHITECTURE.md'), 'utf8')
  const [from, to] = [page.indexOf(marks[0]) + marks[0].length, page.indexOf(marks[1])]
  const lines = rooms.map(([name, what, others]) => {
    const path = existsSync(file(`src/${name}.ts`)) ? `src/${name}.ts` : `src/${name}/`
    return `| \`${path}\` | ${what} | ${others === '' ? 'nothing' : others.split(' ').join(', ')} |`
  })
  const table = ['| Place | What it is | May import |', '| --- | --- | --- |', ...lines, ''].join('\n')
  return page.slice(0, from) + table + page.slice(to)
}
