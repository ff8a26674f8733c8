// Operators' queue: what the gateway would not guess, each with its history, whoever looks after it, and how it is closed.

import { beginningOf } from '../../../contract/cardNumbers.ts'
import {
  type CaseDecision,
  type CaseKind,
  caseKinds,
  closeCase,
  decides,
  decisions,
  nobody,
  noteCase,
} from '../../../payments/cases/cases.ts'
import { findCase, findCasesOf, listNotes, type OperatorCase } from '../../../payments/cases/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, choiceField, field, message, nextPage, pageFrom, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage } from '../words.ts'
import { caseWords, kindsInPortuguese } from './words.ts'

const casesShown = 200

export function caseRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, directory, keys, clock } = parts
  const found = ({ entity = '', case: id = '' }: Readonly<Record<string, string>>) =>
    /^[0-9a-f]{32}$/.test(id) ? findCase(database.work, entity, id) : undefined
  const merchantName = (id: string, language: OfficeLanguage) =>
    id === nobody ? caseWords(language).nobody : (directory.merchant(id)?.name ?? id)
  const show = (request: OfficeRequest, signedIn: SignedIn, one: OperatorCase, wrong?: string) =>
    casePage(parts, request.language, signedIn, one, merchantName(one.merchantId, request.language), wrong)
  const noted =
    (kind: 'taken' | 'released' | 'note'): OfficeRoute['answer'] =>
    async (request, signedIn, named) => {
      const one = await found(named)
      if (!one) return nothingHere(request.language)
      const text = beginningOf((request.values.get('text') ?? '').trim(), 2000)
      if (kind === 'note' && text === '') return goTo(addressOfCase(one))
      const by = { ...parts, by: signedIn.by }
      const noted = await noteCase(by, one.merchantId, one.id, { writtenBy: signedIn.name, kind, text })
      const words = caseWords(request.language)
      if (noted === 'written') return goTo(addressOfCase(one))
      return show(request, signedIn, one, noted === 'closed' ? words.isClosed : words.isFull)
    }
  return [
    {
      method: 'GET',
      path: '/cases',
      action: 'readCases',
      async answer({ language, values }, { merchants, isWhole }) {
        const words = caseWords(language)
        const closedToo = values.get('all') === '1'
        const page = pageFrom(values)
        const some = [...merchants, ...(isWhole ? [nobody] : [])]
        const cases = await findCasesOf(database.work, some, closedToo, casesShown + 1, (page - 1) * casesShown)
        const rows = cases
          .slice(0, casesShown)
          .map(one => [
            html`<a href="${addressOfCase(one)}">${meaning(one.kind, language)}</a>`,
            html`<code>${one.subject}</code>`,
            merchantName(one.merchantId, language),
            momentText(language, one.openedAt),
            one.owner ?? '',
            ...(closedToo ? [one.closedAt === null ? '' : momentText(language, one.closedAt)] : []),
          ])
        const heads = [words.kind, words.about, words.merchant, words.opened, words.owner, ...(closedToo ? [words.closed] : [])]
        return {
          title: frameWords(language).cases,
          body: html`<p><a href="/office/cases"${!closedToo && html` aria-current="page"`}>${words.open}</a> · <a href="/office/cases?all=1"${
            closedToo && html` aria-current="page"`
          }>${words.all}</a></p>
${rows.length === 0 ? message(words.none) : tableOf(frameWords(language).cases, heads, rows)}
${nextPage('/office/cases', page, cases.length > casesShown, closedToo ? { all: '1' } : {}, language)}`,
        }
      },
    },
    {
      method: 'GET',
      path: '/cases/{entity}/{case}',
      action: 'readCases',
      async answer(request, signedIn, named) {
        const one = await found(named)
        return one ? show(request, signedIn, one) : nothingHere(request.language)
      },
    },
    { method: 'POST', path: '/cases/{entity}/{case}/take', action: 'closeCases', answer: noted('taken') },
    { method: 'POST', path: '/cases/{entity}/{case}/release', action: 'closeCases', answer: noted('released') },
    { method: 'POST', path: '/cases/{entity}/{case}/note', action: 'closeCases', answer: noted('note') },
    {
      method: 'POST',
      path: '/cases/{entity}/{case}/close',
      action: 'closeCases',
      async answer(request, signedIn, named): Promise<OfficeAnswer> {
        const words = caseWords(request.language)
        const one = await found(named)
        if (!one) return nothingHere(request.language)
        const reason = (request.values.get('reason') ?? '').trim()
        const said = request.values.get('decision')
        const decision = decisions.find(one => one === said)
        if (reason === '' || reason.length > 500) return show(request, signedIn, one, words.needsReason)
        // What the other side did with its money is no merchant's to decide.
        if (decides.has(one.kind) && !signedIn.isWhole) return show(request, signedIn, one, words.ofOperator)
        if (decides.has(one.kind) && !decision) return show(request, signedIn, one, words.needsDecision)
        const recorder = { keys, clock, database, by: signedIn.by }
        const closed = await closeCase(recorder, one.id, signedIn.name, reason, decides.has(one.kind) ? decision : undefined)
        return closed ? goTo(addressOfCase(one)) : show(request, signedIn, one, words.isClosed)
      },
    },
  ]
}

const addressOfCase = ({ merchantId, id }: OperatorCase): string => `/office/cases/${merchantId}/${id}`

const meaning = (kind: string, language: OfficeLanguage): string =>
  (language === 'pt' ? kindsInPortuguese : caseKinds)[kind as CaseKind] ?? kind

async function casePage(
  { database }: OfficeParts,
  language: OfficeLanguage,
  signedIn: SignedIn,
  one: OperatorCase,
  merchant: string,
  wrong?: string,
): Promise<OfficeAnswer> {
  const words = caseWords(language)
  const notes = await listNotes(database.work, one.merchantId, one.id)
  const history: [at: number, text: string][] = [
    [one.openedAt, words.openedText],
    ...notes.map(({ writtenAt, writtenBy, kind, text }): [number, string] => [
      writtenAt,
      fill(words[kind], { by: writtenBy, text }),
    ]),
    ...(one.closedAt === null
      ? []
      : [[one.closedAt, fill(words.closedBy, { by: one.closedBy!, text: one.reason! })] as [number, string]]),
  ]
  return {
    title: meaning(one.kind, language),
    ...(wrong !== undefined && { status: 400 }),
    body: html`${wrong !== undefined && message(wrong, 'wrong')}
<div class="card"><dl>
<dt>${words.state}</dt><dd>${one.closedAt === null ? words.open : words.isClosed}</dd>
<dt>${words.merchant}</dt><dd>${merchant}</dd>
<dt>${words.about}</dt><dd><code>${one.subject}</code></dd>
<dt>${words.owner}</dt><dd>${one.owner ?? '–'}</dd>
</dl>
${one.closedAt === null && signedIn.may('closeCases') && button(`${addressOfCase(one)}/${one.owner === signedIn.name ? 'release' : 'take'}`, one.owner === signedIn.name ? words.release : words.take)}</div>
<h2>${words.details}</h2>
<div class="card">${detailsOf(one.details)}</div>
<h2>${words.history}</h2>
${tableOf(
  words.history,
  ['UTC', ''],
  history.map(([at, text]) => [momentText(language, at), text]),
)}
${one.closedAt === null && signedIn.may('closeCases') && decisionForms(one, language, signedIn.isWhole)}`,
  }
}

const decisionForms = (one: OperatorCase, language: OfficeLanguage, isWhole: boolean): Html => {
  const words = caseWords(language)
  const options: [CaseDecision | '', string][] = [
    ['', words.choose],
    ['carriedOut', words.carriedOut],
    ['notCarriedOut', words.notCarriedOut],
  ]
  return html`<div class="card"><form method="post" action="${addressOfCase(one)}/note">
${field({ name: 'text', label: words.noteLabel })}
<button class="plain">${words.addNote}</button></form></div>
<h2>${words.decide}</h2>
${
  decides.has(one.kind) && !isWhole
    ? message(words.ofOperator)
    : html`<div class="card"><form method="post" action="${addressOfCase(one)}/close">
${decides.has(one.kind) && choiceField('decision', words.decision, options)}
${field({ name: 'reason', label: words.reason })}
<button>${words.close}</button></form></div>`
}`
}

/** JSON as names and values; what is no map stands as it is. */
function detailsOf(text: string): Html {
  const details = JSON.parse(text) as unknown
  if (typeof details !== 'object' || details === null || Array.isArray(details)) return html`<pre>${text}</pre>`
  return html`<dl>${Object.entries(details).map(
    ([name, value]) => html`<dt>${name}</dt><dd><code>${typeof value === 'string' ? value : JSON.stringify(value)}</code></dd>`,
  )}</dl>`
}
