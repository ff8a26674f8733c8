// Saved filters: beside the box, each opened by one click; for whoever saved them and nobody else.

import { inTransaction } from '../../../platform/database/connect.ts'
import {
  dropFilter,
  filterNameMost,
  filterQueryMost,
  filtersMost,
  listFilters,
  type SavedFilter,
  saveFilter,
} from '../../../staff/filters/store.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, field, message } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, type OfficeRoute } from '../route.ts'
import { queryOf } from './filter.ts'
import { type PaymentWords, paymentWords } from './words.ts'

export const filterRoutes = ({ database }: OfficeParts): OfficeRoute[] => [
  {
    method: 'POST',
    path: '/payments/filters',
    action: 'readPayments',
    counted: true,
    async answer({ values, language }, { by }) {
      const words = paymentWords(language)
      const name = (values.get('name') ?? '').trim().normalize()
      const query = queryOf(values)
      const refuse = (text: string) => ({
        status: 400,
        title: words.payments,
        body: html`${message(text, 'wrong')}<p><a href="/office/payments?${query}">${words.payments}</a></p>`,
      })
      if (name === '' || [...name].length > filterNameMost || /[\p{Cc}\p{Cf}]/u.test(name) || query.length > filterQueryMost)
        return refuse(fill(words.wrongFilter, { count: String(filterNameMost) }))
      if (!(await inTransaction(database.work, db => saveFilter(db, by.id, { name, query }))))
        return refuse(fill(words.tooManyFilters, { count: String(filtersMost) }))
      return goTo(`/office/payments?${query}`)
    },
  },
  {
    method: 'POST',
    path: '/payments/filters/remove',
    action: 'readPayments',
    async answer({ values }, { by }) {
      await dropFilter(database.work, by.id, values.get('name') ?? '')
      return goTo('/office/payments')
    },
  },
]

/** Those that there are, and a form that keeps what is searched for now. */
export async function filtersBeside(
  { database }: OfficeParts,
  staffId: string,
  query: string,
  words: PaymentWords,
): Promise<Html> {
  const filters = await listFilters(database.work, staffId)
  if (filters.length === 0 && query === '') return html``
  return html`<details class="filters"${filters.length > 0 && html` open`}><summary>${words.filters}</summary>
<ul>${filters.map(one => filterItem(one, query, words))}</ul>
${
  query !== '' &&
  html`<form class="line" method="post" action="/office/payments/filters">${[...new URLSearchParams(query)].map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}
${field({ name: 'name', label: words.filterName })}<button class="plain">${words.saveFilter}</button></form>`
}</details>`
}

const filterItem = ({ name, query }: SavedFilter, present: string, words: PaymentWords): Html =>
  html`<li><a href="/office/payments?${query}"${query === present && html` aria-current="true"`}><bdi>${name}</bdi></a>
${button('/office/payments/filters/remove', fill(words.removeFilter, { name }), 'plain', { name })}</li>`

export const filterStyle = `
.filters { margin: 0 0 1.25rem; }
.filters summary { cursor: pointer; font-weight: 600; }
.filters ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0; list-style: none; }
.filters li { display: flex; align-items: center; gap: .35rem; max-width: 100%; overflow-wrap: anywhere; }
.filters li form { margin: 0; }
.filters li button { min-height: 1.75rem; padding: .1rem .5rem; border: 0; color: var(--soft); font-weight: 400; text-decoration: underline; font-size: .85rem; overflow-wrap: anywhere; text-align: start; }
`
