// Who did what. The chain is read as `bin/tollgate audit` reads it: what is not as it was written is said first.

import { listAudit } from '../../../audit/chain.ts'
import { type AuditRow, actions } from '../../../audit/entry.ts'
import { dayBegin } from '../../../contract/formats.ts'
import { namesOfStaff } from '../../../staff/store.ts'
import { html } from '../../html.ts'
import { choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import type { OfficeRoute } from '../route.ts'
import { frameWords, momentText, wordsIn } from '../words.ts'

const rowsShown = 200
/** So many rows are looked at for one page: enough for a while, and some tenths of a second. */
const rowsRead = 10_000

export const auditRoutes = ({ database, directory, keys }: OfficeParts): OfficeRoute[] => [
  {
    method: 'GET',
    path: '/audit',
    action: 'readAudit',
    async answer({ language, values }, signedIn) {
      const words = auditWords(language)
      const [action, day] = [values.get('action') ?? '', values.get('since') ?? '']
      const since = dayBegin(day)
      const within = directory.below(signedIn.entities).map(({ id }) => id)
      const filter = {
        ...(action !== '' && { action }),
        ...(!Number.isNaN(since) && { since }),
        // What was done on nobody's behalf is for who acts for all.
        ...(!signedIn.isWhole && { entities: within }),
      }
      const place = Number(/^\d{1,12}$/.exec(values.get('before') ?? '')?.[0] ?? Number.NaN)
      const window = { rows: rowsRead, before: Number.isNaN(place) ? undefined : place }
      const { rows, doubtful, findings, first } = await listAudit(database.searches, keys, filter, rowsShown, window)
      const older = rows.length === rowsShown ? rows[0]!.sequence : first
      const names = await namesOfStaff(
        database.work,
        rows.flatMap(({ actorKind, actor }) => (actorKind === 'user' ? [actor] : [])),
      )
      const who = (row: AuditRow) =>
        row.actorKind === 'user' ? (names.get(row.actor) ?? row.actor) : `${row.actorKind} ${row.actor}`
      const title = frameWords(language).audit
      return {
        title,
        body: html`${signedIn.isWhole && findings.map(finding => message(finding, 'wrong'))}
<form class="line" method="get" action="/office/audit">
${choiceField('action', words.action, [['', words.every], ...Object.keys(actions).map((name): [string, string] => [name, name])], action)}
${field({ name: 'since', label: words.since, type: 'date', value: day, isOptional: true })}
<button class="plain">${words.show}</button></form>
${
  rows.length === 0
    ? message(words.none)
    : tableOf(
        title,
        [words.at, words.who, words.from, words.action, words.subject, words.details],
        [...rows]
          .reverse()
          .map(row => [
            momentText(language, row.recordedAt),
            html`${who(row)}${doubtful.has(row.sequence) && html` <strong class="bad">${words.forged}</strong>`}`,
            row.address,
            html`<span title="${actions[row.action as keyof typeof actions] ?? ''}">${row.action}</span>${row.result === 'refused' && html` (${words.refused})`}`,
            html`<code>${names.get(row.subject) ?? row.subject}</code>`,
            html`<code>${row.details}</code>`,
          ]),
      )
}
${older > 1 && html`<p><a class="button plain" href="/office/audit?${new URLSearchParams({ action, since: day, before: String(older) }).toString()}" rel="next">${words.older}</a></p>`}
<p class="soft">${words.newest}</p>`,
      }
    },
  },
]

const auditWords = wordsIn(
  {
    action: 'What',
    every: 'everything',
    since: 'Since (UTC)',
    show: 'Show',
    none: 'Nothing was done.',
    at: 'At (UTC)',
    who: 'Who',
    from: 'From',
    subject: 'To',
    details: 'Details',
    forged: 'not as it was written',
    refused: 'refused',
    older: 'Older',
    newest: 'Up to 200 rows, of the newest 10000. `bin/tollgate audit verify` follows the whole chain.',
  },
  {
    action: 'O quê',
    every: 'tudo',
    since: 'Desde (UTC)',
    show: 'Mostrar',
    none: 'Nada foi feito.',
    at: 'Em (UTC)',
    who: 'Quem',
    from: 'De onde',
    subject: 'A quê',
    details: 'Detalhes',
    forged: 'não está como foi escrita',
    refused: 'recusado',
    older: 'Mais antigas',
    newest: 'Até 200 linhas, das 10000 mais novas. `bin/tollgate audit verify` segue a corrente inteira.',
  },
)
