// Between the page that offers a file and the file: what is asked first when it takes long, and where somebody is sent who has asked.

import { askExport, directRecordsMost } from '../../../reporting/exports/export.ts'
import type { ExportSource } from '../../../reporting/exports/source.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { findColleagues } from '../../../staff/store.ts'
import { html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, message } from '../fields.ts'
import type { OfficePage } from '../frame.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, type OfficeAnswer } from '../route.ts'
import { frameWords, type OfficeLanguage } from '../words.ts'
import { exportWords } from './words.ts'

/** `action`: the address of the file, which makes it when it is sent a form. `fields`: what it is asked for by. */
export function exportFirst(language: OfficeLanguage, action: string, fields: Readonly<Record<string, string>>): OfficePage {
  const words = exportWords(language)
  return {
    title: frameWords(language).exports,
    body: html`<div class="card"><p>${fill(words.isLong, { count: String(directRecordsMost) })}</p>
${button(action, words.begin, '', fields)}</div>`,
  }
}

export async function beginExport(
  parts: OfficeParts,
  { by, staffId }: SignedIn,
  language: OfficeLanguage,
  name: string,
  merchants: readonly string[],
  source: ExportSource,
  details: Readonly<Record<string, unknown>>,
): Promise<OfficeAnswer> {
  const colleagues = staffId === null ? [] : await findColleagues(parts.database.work, staffId)
  const asked = await askExport({ ...parts, by }, colleagues, name, merchants, source, details)
  if (asked !== 'tooMany') return goTo(`/office/exports/${asked.id}`)
  const words = exportWords(language)
  const body = html`${message(words.tooMany, 'wrong')}<p><a href="/office/exports">${frameWords(language).exports}</a></p>`
  return { status: 409, title: frameWords(language).exports, body }
}
