// The search over payments as a page: one box, some filters, pages by their last payment, and a file to take away.

import { findArchived } from '../../../archive/store.ts'
import { record } from '../../../audit/chain.ts'
import { amountText } from '../../../contract/amounts.ts'
import { shortenCards } from '../../../contract/cardNumbers.ts'
import { fileAnswer } from '../../../http/answer.ts'
import { inTransaction } from '../../../platform/database/connect.ts'
import { csvFile } from '../../../reporting/csv.ts'
import { directRecordsMost, entityOf } from '../../../reporting/exports/export.ts'
import type { ExportSource } from '../../../reporting/exports/source.ts'
import { paymentColumns } from '../../../reporting/search/file.ts'
import type { FoundPayment } from '../../../reporting/search/found.ts'
import { conditionsOf, searchPayments } from '../../../reporting/search/search.ts'
import { countSearched, type SearchPlace } from '../../../reporting/search/store.ts'
import { namedExactly, outcomes, paymentTypes, type SearchTerms } from '../../../reporting/search/terms.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { beginExport, exportFirst } from '../exports/ask.ts'
import { choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, type OfficeRoute } from '../route.ts'
import { momentText, type OfficeLanguage } from '../words.ts'
import { boxText, filterFields, merchantsNamed, narrowed, queryOf, termsOf } from './filter.ts'
import { filterStyle, filtersBeside } from './savedFilters.ts'
import { type PaymentWords, paymentWords } from './words.ts'

const pageSize = 50
const exportStep = 1000

export function listRoutes(parts: OfficeParts): OfficeRoute[] {
  return [
    {
      method: 'GET',
      path: '/payments',
      lags: true,
      action: 'readPayments',
      async answer({ values, language }, { merchants, may, by, reaches }) {
        const words = paymentWords(language)
        const any = termsOf(values)
        const found = await searchPayments(parts, merchantsNamed(values, merchants), any, pageSize, placeOf(values.get('behind')))
        const more = found.length === pageSize
        return {
          title: words.payments,
          style: listStyle + filterStyle,
          body: html`${searchForm(values, words)}${await filtersBeside(parts, by.id, queryOf(values), words)}${narrowedLine(parts, values, language, reaches)}
${found.length === 0 ? message(`${words.nothing} ${words.nothingHint}`) : listOf(found, language)}
<p class="line">${more && html`<a class="button plain" href="/office/payments?${queryOf(values, found.at(-1))}" rel="next">${words.older}</a>`}
${found.length > 0 && may('export') && html`<a class="button plain" href="/office/payments.csv?${queryOf(values)}">${words.export}</a>`}</p>`,
        }
      },
    },
    {
      // What is pasted does not come to stand in an address before it was looked at.
      method: 'POST',
      path: '/payments',
      exact: true,
      action: 'readPayments',
      async answer({ values, language }, { merchants }) {
        const text = boxText(values)
        // One order number in ten passes for the number of a card: it is looked for as it is, here alone.
        const exactly: SearchTerms[] = /^[0-9a-f]{32}$/i.test(text) ? [{ id: text.toLowerCase() }] : namedExactly(text)
        const named = exactly.length === 0 ? [] : await searchPayments(parts, merchants, exactly, pageSize)
        if (named.length === 1) return goTo(paymentAddress(named[0]!))
        const archived =
          exactly[0]?.id === undefined ? undefined : await findArchived(parts.database.work, merchants, exactly[0].id)
        if (archived) return goTo(paymentAddress({ ...archived, paymentId: exactly[0]!.id! }))
        values.set('q', shortenCards(text, parts.cardBrands))
        if (named.length > 1) {
          const words = paymentWords(language)
          return { title: words.payments, style: listStyle, body: html`${searchForm(values, words)}${listOf(named, language)}` }
        }
        return goTo(`/office/payments?${queryOf(values)}`)
      },
    },
    {
      method: 'GET',
      path: '/payments.csv',
      action: 'export',
      givesFile: true,
      async answer({ values, language }, { merchants, by }) {
        const any = conditionsOf(parts.keys, termsOf(values))
        const named = merchantsNamed(values, merchants)
        const count = await countSearched(parts.database.reporting, named, any, directRecordsMost + 1)
        if (count > directRecordsMost) return exportFirst(language, '/office/payments.csv', filterFields(values))
        await inTransaction(parts.database.work, db =>
          record(db, { ...parts, by }, [
            { action: 'paymentsExported', entityId: entityOf(named), details: { filter: toldFilter(values) } },
          ]),
        )
        return fileAnswer({
          name: 'payments.csv',
          lines: csvFile(paymentColumns, pagesOf(parts, named, termsOf(values))),
        })
      },
    },
    {
      method: 'POST',
      path: '/payments.csv',
      action: 'export',
      counted: true,
      async answer({ values, language }, signedIn) {
        const any = conditionsOf(parts.keys, termsOf(values))
        const merchants = merchantsNamed(values, signedIn.merchants)
        const source: ExportSource = { kind: 'payments', merchants, any }
        return beginExport(parts, signedIn, language, 'payments.csv', merchants, source, { filter: toldFilter(values) })
      },
    },
  ]
}

/** For the audit, which keeps it for ever: of e-mail addresses stands where they are alone. */
const toldFilter = (values: URLSearchParams): string =>
  Object.entries(filterFields(values))
    .map(([name, value]) => `${name}=${value.replace(/[^\s@]+(?=@)/g, '…')}`)
    .join('&')

/** What a figure that led here asks for beside what stands in the form. */
function narrowedLine(
  { directory }: OfficeParts,
  values: URLSearchParams,
  language: OfficeLanguage,
  reaches: SignedIn['reaches'],
): Html | undefined {
  const words = paymentWords(language)
  const said = narrowed(values).map(([name, value]) => {
    if (name === 'since' || name === 'until') return `${words[name]} ${value.slice(0, 16).replace('T', ' ')}`
    if (name === 'merchant') return (reaches(value) && directory.entity(value)?.name) || value
    if (name === 'first') return words.first
    if (name === 'live') return value === '1' ? words.live : words.test
    return value
  })
  return said.length === 0
    ? undefined
    : html`<p class="message">${words.narrowed} ${said.join(' · ')} <a href="/office/payments">${words.any}</a></p>`
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

/** Page after page, as the reader takes them: the file is as long as it may be, and never in memory. */
async function* pagesOf(
  parts: OfficeParts,
  merchants: readonly string[],
  any: readonly SearchTerms[],
): AsyncGenerator<readonly FoundPayment[]> {
  for (let behind: FoundPayment | undefined; ; ) {
    const found: FoundPayment[] = await searchPayments(parts, merchants, any, exportStep, behind)
    yield found
    behind = found.at(-1)
    if (found.length < exportStep) return
  }
}

export const listStyle = `
.search { margin: 0 0 1.25rem; }
.search .line { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: end; }
.search .line > button { margin: 0 0 1rem; }
.amount { white-space: nowrap; font-variant-numeric: tabular-nums; }
.outcome { white-space: nowrap; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .87rem; }
.outcome.success, .outcome.review { color: var(--good); } .outcome.rejected, .outcome.invalid, .outcome.error { color: var(--wrong); } .outcome.pending { color: var(--warn); }
`
