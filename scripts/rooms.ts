// The rooms of src: what each is, and which others it may import. A folder, or a file that stands alone; what only names a type counts too.
// The tidy test holds the code to it, and ARCHITECTURE.md shows it.

import { existsSync, readFileSync } from 'node:fs'

type Room = readonly [name: string, what: string, mayImport: string]

// biome-ignore format: one line a room
const rooms: readonly Room[] = [
  ['contract',   'the interface as data: formats, parameters, requests, form, results, operations, OpenAPI', ''],
  ['clock',      'time and chance', ''],
  ['errors',     'what an operator is told, and what becomes of a process when nothing has caught an error', ''],
  ['log',        'log lines with allowed fields', 'clock contract gateway'],
  ['schema',     'what operators write, checked: all mistakes at once with their places', 'contract errors'],
  ['liveMode',   'what live mode refuses, each by name', ''],
  ['tls',        'which TLS is spoken, and the files that a certificate of our own takes', 'liveMode schema'],
  ['config',     'the environment, checked', 'contract log vault events connectors errors liveMode'],
  ['database',   "the embedded server, the folder's lock, migrations, connections, group commit", 'errors'],
  ['vault',      'the keys of an installation, the seal of card data, sealing anew', 'clock database errors'],
  ['audit',      'who did what: sealed rows that only grow; failed attempts to authenticate, limited for all processes together', 'clock database vault'],
  ['merchants',  'PSP, divisions, merchants, channels, tokens, settings, seed files; held in memory by `directory`', 'audit clock contract database vault errors schema'],
  ['connectors', 'what every payment method gives (`connector.ts`) and which one carries a payment (`index.ts`); cards to an acquirer over ISO 8583, 3-D Secure around them, the wallet, redirect methods of a JSON file', 'clock contract merchants errors schema tls'],
  ['terminals',  'terminals and trace numbers, leased to a process by the database', 'clock connectors database'],
  ['risk',       'the risk check before an authorization: rules, facts, attempts counted in the database', 'contract database merchants vault gateway errors schema'],
  ['simulators', 'the other side: the acquirer of the sandbox, a pure function of the operation; an acquirer host with books of its own; issuer, wallet and bank with their pages', 'contract merchants connectors pages'],
  ['gateway',    'the parts that `start` puts together and everything is given; types only', 'audit clock contract connectors database merchants payments risk vault events metrics'],
  ['due',        'work that is due at some time: rows with a lease, the worker loop, the movable clock', 'audit clock contract database merchants gateway'],
  ['events',     'what merchants are told: notification, cipher, signature, guarded calls; `endpoints/`, `deliveries/`; the missed return', 'audit clock contract database merchants vault gateway due payments log'],
  ['metrics',    'figures for the operator on a port of their own', 'events gateway'],
  ['payments',   'choose, pay, backoffice, rules, carryOut, recover, journal, idempotency, record, store; `redirects/`: shoppers who left, continuations with one taker', 'audit clock contract database merchants vault gateway due connectors events risk'],
  ['pages',      'what people see: the frame, languages, the pages between shop and other side', 'clock contract merchants vault gateway connectors payments http'],
  ['http',       'server, routes, authenticate, the request functions of v1', 'audit clock connectors contract database merchants vault gateway due events payments pages tls'],
  ['cli',        '`bin/tollgate`: one file for each group of commands', 'audit clock config connectors contract database merchants vault gateway due payments events simulators start errors'],
  ['start',      'puts the parts of a process together', 'audit clock config contract database merchants vault gateway due connectors events payments risk terminals simulators http log metrics errors schema tls'],
  ['main',       'begins a process; leads to `bin/main.ts`, which a Node too old for the rest can read too', ''],
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
