// The overview: the last day or month of the merchants within reach. The figures are asked for again every few seconds, without the page around them.

import { signedAmountText } from '../../../contract/amounts.ts'
import { results } from '../../../contract/results/results.ts'
import { isTooSlow } from '../../../platform/database/errors.ts'
import { approvalRate, type Overview, overviewOf, slotMilliseconds, spanUntil } from '../../../reporting/overview/overview.ts'
import type { OverviewSpan } from '../../../reporting/overview/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { pageScript } from '../../form/build.ts'
import { type Html, html } from '../../html.ts'
import { moneyText } from '../../languages/languages.ts'
import { fill } from '../../languages/texts.ts'
import { choiceField, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { paymentsLink } from '../payments/filter.ts'
import type { OfficeRequest, OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage, officeLocales } from '../words.ts'
import { endingsPlot, totalOf } from './plot.ts'
import { overviewWords } from './words.ts'

const reasonsMost = 10

export function overviewRoutes(parts: OfficeParts): OfficeRoute[] {
  const script = pageScript(new URL('../browser/overview.ts', import.meta.url))
  return [
    {
      method: 'GET',
      path: '/overview',
      lags: true,
      action: 'readOverview',
      async answer(request, signedIn) {
        const { language, values } = request
        const span = spanOf(parts, signedIn, values)
        return {
          title: frameWords(language).overview,
          body: html`${choices(parts, signedIn, request, span)}
<div id="figures" aria-live="off">${await figures(parts, span, language)}</div>`,
          script: script(),
        }
      },
    },
    {
      method: 'GET',
      path: '/overview/figures',
      action: 'readOverview',
      live: true,
      answer: async ({ language, values }, signedIn) => ({
        status: 200,
        body: (await figures(parts, spanOf(parts, signedIn, values), language)).html,
        headers: { 'Content-Type': 'text/html;charset=UTF-8' },
      }),
    },
  ]
}

/** Of the merchant that is chosen, if it is within reach, else of all. */
function spanOf({ directory, clock, sandbox }: OfficeParts, { merchants }: SignedIn, values: URLSearchParams): OverviewSpan {
  const chosen = merchants.filter(id => id === values.get('merchant'))
  const those = chosen.length > 0 ? chosen : merchants
  const now = Math.max(clock.real(), ...those.map(directory.businessTime))
  return { ...spanUntil(now, values.get('by') === 'day' ? 'day' : 'hour'), merchants: those, live: !sandbox }
}

function choices(
  { directory }: OfficeParts,
  { merchants }: SignedIn,
  { language, values }: OfficeRequest,
  { by }: OverviewSpan,
): Html {
  const words = overviewWords(language)
  const names = merchants.map((id): [string, string] => {
    const entity = directory.entity(id)
    return [id, entity?.name ?? id]
  })
  return html`<form class="line" method="get" action="/office/overview">
${choiceField(
  'by',
  words.period,
  [
    ['hour', words.hours],
    ['day', words.days],
  ],
  by,
)}
${names.length > 1 && choiceField('merchant', words.merchant, [['', words.all], ...names], values.get('merchant') ?? '')}
<div class="field"><button class="plain">${words.show}</button></div></form>`
}

async function figures(parts: OfficeParts, span: OverviewSpan, language: OfficeLanguage): Promise<Html> {
  const words = overviewWords(language)
  try {
    return shownFigures(await overviewOf(parts.database, span), span, language)
  } catch (error) {
    if (!isTooSlow(error)) throw error
    return message(words.tooMany)
  }
}

function shownFigures(overview: Overview, { from, to, by, live, merchants }: OverviewSpan, language: OfficeLanguage): Html {
  const words = overviewWords(language)
  const { all, slots, volume, reasons, latency, backlog } = overview
  const locale = officeLocales[language]
  const total = totalOf(all)
  const length = slotMilliseconds[by]
  /** To the very payments that a figure counts. */
  const link = (text: string | number, more: Parameters<typeof paymentsLink>[1] = {}, [since, until] = [from, to]): Html =>
    paymentsLink(text, {
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      first: '1',
      live: live ? '1' : '0',
      ...(merchants.length === 1 && { merchant: merchants[0] }),
      ...more,
    })
  const name = (at: number) => (by === 'hour' ? momentText(language, at) : dayOf(at))
  const backlogQuery = new URLSearchParams({
    waiting: '1',
    ...(merchants.length === 1 && { merchant: merchants[0]! }),
  }).toString()
  const tile = (label: string, figure: string | Html, ...hints: readonly string[]) =>
    html`<div class="card tile"><h2>${label}</h2><p class="figure">${figure}</p>${hints.map(hint => html`<p class="soft">${hint}</p>`)}</div>`
  return html`<div class="tiles">
${tile(words.payments, link(total))}
${tile(words.rate, link(percent(locale, approvalRate(all)), { ending: 'approved' }), words.rateHint)}
${tile(words.volume, volume.size === 0 ? '–' : html`${[...volume].map(([currency, sum]) => html`<span>${link(volumeText(locale, sum, currency), { ending: 'approved', currency })}</span> `)}`)}
${tile(
  words.latency,
  latency.median === null ? '–' : link(fill(words.median, { milliseconds: String(latency.median) })),
  ...(latency.slow === null ? [] : [fill(words.slow, { milliseconds: String(latency.slow) })]),
)}
${tile(words.backlog, html`<a href="/office/deliveries?${backlogQuery}">${backlog.waiting}</a>`, fill(words.failing, { count: String(backlog.failing) }))}
</div>
${
  total === 0
    ? html`<p>${words.none}</p>`
    : html`<figure class="card">${endingsPlot(
        words.plot,
        slots,
        slots.map(({ at }) => name(at)),
      )}
<p class="ends soft"><span>${name(from)}</span><span>${name(slots.at(-1)!.at)}</span></p>
<figcaption class="soft">${words.legend}</figcaption>
<details data-name="table"><summary>${words.table}</summary>${tableOf(
        words.plot,
        [words.slot, words.approved, words.declined, words.other, words.rate],
        slots
          .filter(slot => totalOf(slot) > 0)
          .map(slot => {
            const inSlot: [number, number] = [slot.at, slot.at + length]
            const ended = (ending: 'approved' | 'declined' | 'other') => link(slot[ending], { ending }, inSlot)
            return [
              link(name(slot.at), {}, inSlot),
              ended('approved'),
              ended('declined'),
              ended('other'),
              percent(locale, approvalRate(slot)),
            ]
          }),
      )}</details></figure>`
}
${
  reasons.length > 0 &&
  html`<h2>${words.reasons}</h2>${tableOf(
    words.reasons,
    [words.code, words.description, words.count, words.share],
    reasons
      .slice(0, reasonsMost)
      .map(({ result, count }) => [
        results[result].code,
        results[result].description,
        link(count, { result: results[result].code }),
        percent(locale, count / total),
      ]),
  )}`
}`
}

/** What came as a currency and is none stands there as it came. */
const volumeText = (locale: string, sum: number, currency: string): string =>
  /^[A-Z]{3}$/.test(currency) && sum >= 0 ? moneyText(locale, sum, currency) : `${signedAmountText(sum)} ${currency}`

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

const percent = (locale: string, share: number | undefined): string =>
  share === undefined ? '–' : new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 }).format(share)
