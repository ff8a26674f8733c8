// Pieces that many pages of the back office have: a field with its label, a message, a table, a button that sends something.

import { knownBrands } from '../../contract/brands.ts'
import { beginningOf, shortenCards } from '../../contract/cardNumbers.ts'
import { type Html, html } from '../html.ts'
import { frameWords, type OfficeLanguage } from './words.ts'

export type OfficeField = {
  readonly name: string
  /** Where a page has more than one field of that name. */
  readonly id?: string
  readonly label: string
  readonly type?: string
  readonly value?: string
  readonly hint?: string
  /** What is wrong with the value, beside it. */
  readonly wrong?: string | undefined
  /** As browsers know it, for managers of passwords. */
  readonly autocomplete?: string
  readonly isOptional?: true
  readonly isNumeric?: true
}

export const field = ({
  name,
  id = name,
  label,
  type = 'text',
  value = '',
  hint,
  wrong,
  autocomplete = 'off',
  isOptional,
  isNumeric,
}: OfficeField): Html => {
  const described = [...(hint === undefined ? [] : [`${id}-hint`]), ...(wrong === undefined ? [] : [`${id}-wrong`])]
  return html`<div class="field"><label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"${!isOptional && html` required`}${
    isNumeric && html` inputmode="numeric" spellcheck="false"`
  }${described.length > 0 && html` aria-describedby="${described.join(' ')}"`}${wrong !== undefined && html` aria-invalid="true"`}>
${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>`}${
  wrong !== undefined && html`<p class="wrong" id="${id}-wrong">${wrong}</p>`
}</div>`
}

export const choiceField = (
  name: string,
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen = '',
): Html =>
  html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${options.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )}</select></div>`

export const message = (text: string, kind: 'wrong' | 'plain' = 'plain'): Html =>
  html`<p class="message${kind === 'wrong' && ' wrong'}" role="${kind === 'wrong' ? 'alert' : 'status'}">${text}</p>`

export type TableCell = string | number | Html

/** `name`: what the table is of, for who cannot see it. It scrolls by itself where it is wider than the page. */
export const tableOf = (name: string, heads: readonly string[], rows: readonly (readonly TableCell[])[]): Html =>
  html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table>
<thead><tr>${heads.map(head => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(row => html`<tr>${row.map(cell => html`<td>${cell}</td>`)}</tr>`)}</tbody>
</table></div>`

/** A form of one button. */
export const button = (
  action: string,
  text: string,
  kind: 'plain' | 'danger' | '' = 'plain',
  hidden: Readonly<Record<string, string>> = {},
): Html =>
  html`<form method="post" action="${action}">${Object.entries(hidden).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}<button${kind !== '' && html` class="${kind}"`}>${text}</button></form>`

const pagesMost = 50

/** Which page of a list is asked for, from 1. */
export const pageFrom = (values: URLSearchParams): number =>
  Math.min(pagesMost, Math.max(1, Math.floor(Number(values.get('page'))) || 1))

/** The way to the page behind one, where there is more. */
export const nextPage = (
  path: string,
  page: number,
  isMore: boolean,
  query: Readonly<Record<string, string>>,
  language: OfficeLanguage,
): Html | false =>
  isMore &&
  page < pagesMost &&
  html`<p><a class="button plain" href="${path}?${new URLSearchParams({ ...query, page: String(page + 1) }).toString()}" rel="next">${frameWords(language).nextPage}</a></p>`

/** The address of a receiver, which is called as it was typed, as pages show it: of a long one as much as somebody reads. */
export function addressText(url: string): string {
  const beginning = beginningOf(url, addressShownMost)
  return shortenCards(beginning === url ? url : `${beginning}…`, knownBrands)
}
const addressShownMost = 200
