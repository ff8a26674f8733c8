// The search over payments as a page: one box, some filters, pages by their last payment, and a file to take away.

import { record } from '../../../audit/chain.ts'
import { amountText } from '../../../contract/amounts.ts'
import { shortenCards } from '../../../contract/cardNumbers.ts'
import { inTransaction } from '../../../platform/database/connect.ts'
import type { FoundPayment } from '../../../reporting/search/found.ts'
import { searchPayments } from '../../../reporting/search/search.ts'
import type { SearchPlace } from '../../../reporting/search/store.ts'
import { outcomes, paymentTypes, type SearchTerms, understand } from '../../../reporting/search/terms.ts'
import { type Html, html } from '../../html.ts'
import { choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, type OfficeRoute } from '../route.ts'
import { momentText, type OfficeLanguage } from '../words.ts'
import { type PaymentWords, paymentWords } from './words.ts'

const pageSize = 50
const exportStep = 1000

export function listRoutes(parts: OfficeParts): OfficeRoute[] {
  return [
    {
      method: 'GET',
      path: '/payments',
      action: 'readPayments',
      async answer({ values, language }, { merchants, may }) {
        const words = paymentWords(language)
        const any = termsOf(values)
        const found = await searchPayments(parts, merchants, any, pageSize, placeOf(values.get('behind')))
        const more = found.length === pageSize
        return {
          title: words.payments,
          style: listStyle,
          body: html`${searchForm(values, words)}
${found.length === 0 ? message(`${words.nothing} ${words.nothingHint}`) : listOf(found, language)}
<p class="line">${more && html`<a class="button plain" href="/office/payments?${queryOf(values, found.at(-1))}" rel="next">${words.older}</a>`}
${found.length > 0 && may('export') && html`<a class="button plain" href="/office/payments.csv?${queryOf(values)}" download>${words.export}</a>`}</p>`,
        }
      },
    },
    {
      // What is pasted does not come to stand in an address before it was looked at.
      method: 'POST',
      path: '/payments',
      exact: true,
      action: 'readPayments',
      async answer({ values }, { merchants }) {
        const text = (values.get('q') ?? '').trim()
        const shortened = shortenCards(text, parts.cardBrands)
        // One reference in ten passes for the number of a card: it is looked for as it is, here alone.
        const exactly: SearchTerms[] = /^[0-9a-f]{32}$/i.test(text)
          ? [{ id: text.toLowerCase() }]
          : shortened !== text && /^\d{8,20}$/.test(text)
            ? [{ reference: text }, { slipNumber: text }]
            : []
        const named = exactly.length === 0 ? [] : await searchPayments(parts, merchants, exactly, 2)
        if (named.length === 1) return goTo(paymentAddress(named[0]!))
        values.set('q', shortened)
        return goTo(`/office/payments?${queryOf(values)}`)
      },
    },
    {
      method: 'GET',
      path: '/payments.csv',
      action: 'export',
      async answer({ values }, { merchants, by }) {
        const any = termsOf(values)
        const { clock, keys } = parts
        await inTransaction(parts.database.work, db =>
          record(db, { clock, keys, by }, [
            { action: 'paymentsExported', details: { filter: queryOf(values).replace(/[^=&]+%40/, '…%40') } },
          ]),
        )
        return {
          status: 200,
          headers: { 'Content-Type': 'text/csv;charset=UTF-8', 'Content-Disposition': 'attachment; filename="payments.csv"' },
          body: csvOf(parts, merchants, any),
        }
      },
    },
  ]
}

/** What a filter says: the text of the box, and below it what the fields narrow. */
function termsOf(values: URLSearchParams): SearchTerms[] {
  const day = (name: string, plus: number) => {
    const at = /^\d{4}-\d\d-\d\d$/.test(values.get(name) ?? '') ? Date.parse(values.get(name)!) : Number.NaN
    return Number.isNaN(at) ? undefined : at + plus
  }
  const [from, to] = [day('from', 0), day('to', 86_400_000)]
  const narrowed: SearchTerms = {
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(paymentTypes.has(values.get('type') ?? '') && { type: values.get('type')! }),
    ...(outcomes.has(values.get('outcome') ?? '') && { outcome: values.get('outcome')! }),
  }
  const text = values.get('q') ?? ''
  return (text.trim() === '' ? [{}] : understand(text)).map(meant => ({ ...meant, ...narrowed }))
}

const filterNames = ['q', 'from', 'to', 'type', 'outcome'] as const

function queryOf(values: URLSearchParams, behind?: FoundPayment): string {
  const query = new URLSearchParams()
  for (const name of filterNames) if (values.get(name)) query.set(name, values.get(name)!)
  if (behind) query.set('behind', `${behind.receivedAt}-${behind.paymentId}`)
  return query.toString()
}

function placeOf(behind: string | null): SearchPlace | undefined {
  const [, receivedAt, paymentId] = /^(\d{1,15})-([0-9a-f]{32})$/.exec(behind ?? '') ?? []
  return paymentId === undefined ? undefined : { receivedAt: Number(receivedAt), paymentId }
}

export const paymentAddress = ({ merchantId, paymentId }: { merchantId: string; paymentId: string }): string =>
  `/office/payments/${merchantId}/${paymentId}`

function searchForm(values: URLSearchParams, words: PaymentWords): Html {
  const value = (name: string) => values.get(name) ?? ''
  const options = (of: ReadonlySet<string>) => [['', words.any] as const, ...[...of].map(one => [one, one] as const)]
  return html`<form method="post" action="/office/payments" class="search" role="search">
${field({ name: 'q', label: words.box, value: value('q'), hint: words.boxHint, type: 'search', isOptional: true })}
<div class="line">
${field({ name: 'from', label: words.from, value: value('from'), type: 'date', isOptional: true })}
${field({ name: 'to', label: words.to, value: value('to'), type: 'date', isOptional: true })}
${choiceField('type', words.type, options(paymentTypes), value('type'))}
${choiceField('outcome', words.outcome, options(outcomes), value('outcome'))}
<button>${words.find}</button>
</div></form>`
}

export const amountOf = ({ amount, currency }: { amount: number | null; currency: string | null }): string =>
  amount === null ? '' : `${amountText(amount)} ${currency}`

function listOf(found: readonly FoundPayment[], language: OfficeLanguage): Html {
  const words = paymentWords(language)
  return tableOf(
    words.payments,
    [words.time, words.type, words.brand, words.amount, words.result, words.order, words.card],
    found.map(one => [
      html`<a href="${paymentAddress(one)}">${momentText(language, one.receivedAt)}</a>`,
      one.type,
      one.brand ?? '',
      html`<span class="amount">${amountOf(one)}</span>`,
      html`<span class="outcome ${one.outcome}">${one.result}</span>`,
      one.merchantTransactionId ?? '',
      one.lastFour === null ? '' : `${one.bin ?? ''}…${one.lastFour}`,
    ]),
  )
}

const csvFields = [
  'paymentId',
  'rootId',
  'merchantId',
  'channelId',
  'receivedAt',
  'type',
  'brand',
  'amount',
  'currency',
  'result',
  'outcome',
  'mode',
  'merchantTransactionId',
  'invoice',
  'bin',
  'lastFour',
  'descriptor',
  'slipNumber',
  'reference',
] as const satisfies readonly (keyof FoundPayment)[]

/** Page after page, as the reader takes them: the file is as long as it may be, and never in memory. */
async function* csvOf(parts: OfficeParts, merchants: readonly string[], any: readonly SearchTerms[]): AsyncGenerator<string> {
  yield `${csvFields.join(',')}\r\n`
  for (let behind: FoundPayment | undefined; ; ) {
    const found: FoundPayment[] = await searchPayments(parts, merchants, any, exportStep, behind)
    if (found.length > 0) yield found.map(csvLine).join('')
    behind = found.at(-1)
    if (found.length < exportStep) return
  }
}

const csvLine = (one: FoundPayment): string =>
  `${csvFields
    .map(name => {
      if (name === 'receivedAt') return new Date(one.receivedAt).toISOString()
      return name === 'amount' ? (one.amount === null ? '' : amountText(one.amount)) : csvText(one[name])
    })
    .join(',')}\r\n`

/** Programs for tables carry out what begins like a formula: texts of merchants and shoppers do not. */
function csvText(value: string | null): string {
  const text = /^[=+\-@\t\r]/.test(value ?? '') ? `'${value}` : (value ?? '')
  return /[",\r\n;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const listStyle = `
.search { margin: 0 0 1.25rem; }
.search .line { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: end; }
.search .line > button { margin: 0 0 1rem; }
.amount { white-space: nowrap; font-variant-numeric: tabular-nums; }
.outcome { white-space: nowrap; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .87rem; }
.outcome.success, .outcome.review { color: var(--good); } .outcome.rejected, .outcome.invalid, .outcome.error { color: var(--wrong); } .outcome.pending { color: var(--warn); }
`
