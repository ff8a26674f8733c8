// Files that take long: how far each is, and the file when it is made. They are of whoever asked for them; an administrator of the same reach sees them too.

import { fileAnswer } from '../../../http/answer.ts'
import { endExport, takeExport } from '../../../reporting/exports/export.ts'
import { type ExportRow, findExport, listExports } from '../../../reporting/exports/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { pageScript } from '../../form/build.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage } from '../words.ts'
import { exportWords } from './words.ts'

const shownMost = 200

/** Whoever has lost a merchant since has lost the file too. */
const mayTake = ({ by, role, reaches }: SignedIn, { askedBy, merchants }: ExportRow): boolean =>
  (askedBy === by.id || role === 'admin') && merchants.every(reaches)

export function exportRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database } = parts
  const script = pageScript(new URL('../browser/export.ts', import.meta.url))
  const opened =
    (
      answer: (request: OfficeRequest, signedIn: SignedIn, one: ExportRow) => OfficeAnswer | Promise<OfficeAnswer>,
    ): OfficeRoute['answer'] =>
    async (request, signedIn, { export: id = '' }) => {
      const one = /^[0-9a-f]{32}$/.test(id) ? await findExport(database.work, id) : undefined
      return one && mayTake(signedIn, one) ? answer(request, signedIn, one) : nothingHere(request.language)
    }
  return [
    {
      method: 'GET',
      path: '/exports',
      lags: true,
      action: 'export',
      async answer({ language }, signedIn) {
        const words = exportWords(language)
        const { role, by, merchants } = signedIn
        const found = (await listExports(database.work, role === 'admin' ? null : by.id, merchants, shownMost)).filter(one =>
          mayTake(signedIn, one),
        )
        const title = frameWords(language).exports
        const rows = found.map(one => [
          html`<a href="/office/exports/${one.id}">${one.name}</a>`,
          stateText(one, language),
          momentText(language, one.askedAt),
          momentText(language, one.endsAt),
          one.askedBy === signedIn.by.id ? signedIn.name : html`<code>${one.askedBy}</code>`,
        ])
        const heads = [words.file, words.state, words.asked, words.ends, words.by]
        return { title, body: rows.length === 0 ? message(words.none) : tableOf(title, heads, rows) }
      },
    },
    {
      method: 'GET',
      path: '/exports/{export}',
      action: 'export',
      answer: opened(({ language, path }, _, one) => ({
        title: one.name,
        body: html`<div class="card" id="progress" aria-live="polite">${progressOf(one, language)}</div>
${one.state === 'making' && html`<p><a href="${path}">${exportWords(language).again}</a></p>`}`,
        script: script(),
      })),
    },
    {
      method: 'GET',
      path: '/exports/{export}/progress',
      action: 'export',
      live: true,
      answer: opened(({ language }, _, one) => ({
        status: 200,
        body: progressOf(one, language).html,
        headers: { 'Content-Type': 'text/html;charset=UTF-8' },
      })),
    },
    {
      method: 'GET',
      path: '/exports/{export}/file',
      action: 'export',
      givesFile: true,
      answer: opened(async ({ language }, { by }, one) =>
        one.state === 'made'
          ? fileAnswer({ name: one.name, lines: await takeExport({ ...parts, by }, one) })
          : nothingHere(language),
      ),
    },
    {
      method: 'POST',
      path: '/exports/{export}/end',
      action: 'export',
      answer: opened(async (_, { by }, one) => {
        await endExport({ ...parts, by }, one)
        return goTo('/office/exports')
      }),
    },
  ]
}

function progressOf(one: ExportRow, language: OfficeLanguage): Html {
  const words = exportWords(language)
  const address = `/office/exports/${one.id}`
  const { state, total, records } = one
  return html`<p data-state="${state}">${stateText(one, language)}</p>
${state === 'making' && total !== null && total >= records && html`<p><progress max="${Math.max(1, total)}" value="${records}" aria-label="${words.progress}"></progress></p>`}
${state === 'made' && html`<p><a class="button" href="${address}/file" download>${words.take}</a></p>`}
${button(`${address}/end`, state === 'making' ? words.cancel : words.remove, 'danger')}`
}

function stateText({ state, records, total, bytes }: ExportRow, language: OfficeLanguage): string {
  const words = exportWords(language)
  const counts = { records: String(records), total: String(total), size: (bytes / 1024 / 1024).toFixed(1) }
  if (state === 'tooLarge') return words.tooLarge
  if (state === 'made') return fill(words.made, counts)
  if (total === null) return words.waiting
  return fill(total < records ? words.counting : words.making, counts)
}
