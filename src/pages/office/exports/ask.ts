// Between the page that offers a file and the file: what is asked first when it takes long, and where somebody is sent who has asked.

import { directRecordsMost } from '../../../reporting/exports/export.ts'
import { html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, message } from '../fields.ts'
import type { OfficePage } from '../frame.ts'
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

export function exportBegun(language: OfficeLanguage, asked: { readonly id: string } | 'tooMany'): OfficeAnswer {
  if (asked !== 'tooMany') return goTo(`/office/exports/${asked.id}`)
  const words = exportWords(language)
  const body = html`${message(words.tooMany, 'wrong')}<p><a href="/office/exports">${frameWords(language).exports}</a></p>`
  return { status: 409, title: frameWords(language).exports, body }
}
