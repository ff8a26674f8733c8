// Files that are owed to the servers of others: receipts and scheduled reports, what became of them, and the schedules themselves.

import { OperatorError } from '../../../platform/errors.ts'
import { periods } from '../../../reporting/owedFiles/period.ts'
import { type CountedFiles, countOwed } from '../../../reporting/owedFiles/store.ts'
import { receiptSource } from '../../../reporting/receiptFiles/deliver.ts'
import {
  makeSchedule,
  type ReportSchedule,
  retrySchedule,
  scheduledForms,
  scheduledReports,
  stopSchedule,
} from '../../../reporting/schedules/schedule.ts'
import { listSchedules } from '../../../reporting/schedules/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { button, choiceField, field, message, type TableCell, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { modesOf } from '../reports/routes.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, type OfficeLanguage } from '../words.ts'
import { scheduleWords } from './words.ts'

const firstDay = '1970-01-01'

export function scheduleRoutes(parts: OfficeParts): OfficeRoute[] {
  const show = async (
    { language, values }: OfficeRequest,
    signedIn: SignedIn,
    wrong: readonly string[] = [],
  ): Promise<OfficeAnswer> => ({
    title: frameWords(language).schedules,
    ...(wrong.length > 0 && { status: 400 }),
    body: html`${wrong.map(one => message(one, 'wrong'))}
${await filesTable(parts, language, signedIn)}
${signedIn.may('changeSettings') && newForm(parts, signedIn, language, values)}`,
  })
  return [
    { method: 'GET', path: '/schedules', action: 'readSettings', answer: (request, signedIn) => show(request, signedIn) },
    {
      method: 'POST',
      path: '/schedules',
      action: 'changeSettings',
      counted: true,
      proven: true,
      exact: true,
      async answer(request, signedIn) {
        const { values, language } = request
        const entity = values.get('entity') ?? ''
        if (!signedIn.reaches(entity)) return nothingHere(language)
        try {
          const made = await makeSchedule({ ...parts, by: signedIn.by }, entity, writtenIn(values), signedIn.isWhole)
          return 'refused' in made ? show(request, signedIn, [made.refused]) : goTo('/office/schedules')
        } catch (error) {
          if (!(error instanceof OperatorError)) throw error
          return show(request, signedIn, error.message.split('\n'))
        }
      },
    },
    {
      method: 'POST',
      path: '/schedules/{entity}/{schedule}/end',
      action: 'changeSettings',
      answer: async ({ language }, { by }, { entity = '', schedule = '' }) =>
        isId(schedule) && (await stopSchedule({ ...parts, by }, entity, schedule))
          ? goTo('/office/schedules')
          : nothingHere(language),
    },
    {
      method: 'POST',
      path: '/schedules/{entity}/{schedule}/again',
      action: 'changeSettings',
      answer: async ({ language }, { by }, { entity = '', schedule = '' }) =>
        isId(schedule) && (await retrySchedule({ ...parts, by }, entity, schedule, firstDay)) !== undefined
          ? goTo('/office/schedules')
          : nothingHere(language),
    },
  ]
}

const isId = (text: string): boolean => /^[0-9a-f]{32}$/.test(text)

/** What the form says, as a schedule is written down: what was left blank has its default. */
function writtenIn(values: URLSearchParams): Readonly<Record<string, unknown>> {
  const names = ['report', 'every', 'form', 'mode', 'host', 'port', 'user', 'hostKey', 'folder']
  const given = names.map(name => [name, (values.get(name) ?? '').trim()] as const).filter(([, value]) => value !== '')
  return Object.fromEntries(given.map(([name, value]) => [name, name === 'port' && /^\d+$/.test(value) ? Number(value) : value]))
}

async function filesTable(parts: OfficeParts, language: OfficeLanguage, signedIn: SignedIn): Promise<Html> {
  const { database, directory } = parts
  const words = scheduleWords(language)
  const owners = directory.ownersBelow(signedIn.entities)
  const counted = await countOwed(database.work, owners)
  const schedules = await listSchedules(database.work, owners)
  const owed = new Map(counted.map(one => [one.ownerId + one.source, one]))
  const nameOf = (id: string) => directory.entity(id)?.name ?? id
  const countsOf = (one: CountedFiles | undefined): TableCell[] => [
    one?.delivered ?? 0,
    one?.scheduled ?? 0,
    one?.givenUp ?? 0,
    one?.failure ?? '',
  ]
  const forms = ({ ownerId, id }: ReportSchedule, one: CountedFiles | undefined) =>
    signedIn.may('changeSettings')
      ? html`${one !== undefined && one.givenUp > 0 && button(`/office/schedules/${ownerId}/${id}/again`, words.again)}
${button(`/office/schedules/${ownerId}/${id}/end`, words.end, 'danger')}`
      : ''
  const rows: TableCell[][] = schedules.map(one => {
    const { report, every, form, host, user, folder } = one.settings
    const files = owed.get(one.ownerId + one.id)
    return [
      nameOf(one.ownerId),
      `${words[report]}, ${words[form]}`,
      words[every],
      html`<code>${user}@${host}:${folder}</code>`,
      ...countsOf(files),
      forms(one, files),
    ]
  })
  const running = new Set(schedules.map(({ ownerId, id }) => ownerId + id))
  for (const one of counted.filter(({ ownerId, source }) => !running.has(ownerId + source))) {
    const isReceipts = one.source === receiptSource
    rows.push([
      nameOf(one.ownerId),
      isReceipts ? words.receipts : words.ended,
      isReceipts ? words.day : '',
      isReceipts ? words.byFile : '',
      ...countsOf(one),
      '',
    ])
  }
  if (rows.length === 0) return message(words.none)
  const heads = [
    words.entity,
    words.report,
    words.every,
    words.server,
    words.delivered,
    words.waiting,
    words.givenUp,
    words.why,
    '',
  ]
  return tableOf(frameWords(language).schedules, heads, rows)
}

function newForm(parts: OfficeParts, signedIn: SignedIn, language: OfficeLanguage, values: URLSearchParams): Html {
  const words = scheduleWords(language)
  const value = (name: string) => values.get(name) ?? ''
  const options = parts.directory
    .below(signedIn.entities)
    .filter(({ kind }) => kind !== 'channel')
    .map(({ id, name, kind }): [string, string] => [id, `${name} (${kind})`])
  const choices = (names: readonly (keyof ReturnType<typeof scheduleWords>)[]) => names.map(name => [name, words[name]] as const)
  return html`<h2>${words.make}</h2><div class="card"><form method="post" action="/office/schedules">
${choiceField('entity', words.entity, options, value('entity'))}
${choiceField('report', words.report, choices(scheduledReports), value('report'))}
${choiceField('every', words.every, choices(periods), value('every'))}
<p class="field hint">${words.periodHint}</p>
${choiceField('form', words.form, choices(scheduledForms), value('form'))}
${choiceField('mode', words.mode, choices(modesOf(parts)), value('mode'))}
${!signedIn.isWhole && html`<p class="field hint">${words.serverHint}</p>`}
${field({ name: 'host', label: words.host, value: value('host') })}
${field({ name: 'port', label: words.port, value: value('port') || '22', isNumeric: true })}
${field({ name: 'user', label: words.user, value: value('user') })}
${field({ name: 'hostKey', label: words.hostKey, value: value('hostKey'), hint: words.hostKeyHint })}
${field({ name: 'folder', label: words.folder, value: value('folder') || '.' })}
<button>${words.makeButton}</button></form></div>`
}
