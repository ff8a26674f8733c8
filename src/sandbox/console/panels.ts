// The panels of the console: what came in, what became of it, what was told. Each is a piece of html, made anew whenever it is looked at.

import { amountText } from '../../contract/amounts.ts'
import { results } from '../../contract/results/results.ts'
import { readSeed, sandboxSeed } from '../../merchants/seed.ts'
import { listDeliveries } from '../../notifications/deliveries/store.ts'
import { listEndpoints } from '../../notifications/endpoints/store.ts'
import { type Html, html } from '../../pages/html.ts'
import { fill } from '../../pages/languages/texts.ts'
import { button } from '../../pages/office/fields.ts'
import { momentText, type OfficeLanguage } from '../../pages/office/words.ts'
import { givenText, readable } from '../../payments/read/status.ts'
import { findPayments } from '../../payments/store/search.ts'
import type { RequestContent } from '../../reporting/requests/record.ts'
import { findRequests, type RequestRow, unknownMerchant } from '../../reporting/requests/store.ts'
import { searchPayments } from '../../reporting/search/search.ts'
import { curlLine, sandboxCredentials } from '../welcome.ts'
import type { ConsoleParts } from './routes.ts'
import { consoleWords } from './words.ts'

/** By whom the console is looked at. */
export type Viewer = {
  readonly merchants: readonly string[]
  readonly isWhole: boolean
  readonly language: OfficeLanguage
  readonly publicUrl: string
}

type Panel = (parts: ConsoleParts, viewer: Viewer) => Promise<Html>

const shownMost = 25
const endpointsMost = 10

async function requests({ database }: ConsoleParts, { merchants, isWhole, language, publicUrl }: Viewer): Promise<Html> {
  const merchantIds = isWhole ? [...merchants, unknownMerchant] : merchants
  const found = await findRequests(database.work, { merchantIds }, shownMost)
  if (found.length > 0)
    return listed(
      found.map(row => requestItem(row, language)),
      '',
    )
  const line = curlLine(sandboxCredentials(publicUrl, readSeed(sandboxSeed)))
  return html`<p class="soft">${consoleWords(language).noRequests}</p><pre class="fields">${line}</pre>`
}

function requestItem(row: RequestRow, language: OfficeLanguage): Html {
  const words = consoleWords(language)
  const { id, method, path, status, result, paymentId, merchantId, milliseconds } = row
  const { fields, description, parameterErrors = [], unknown = [] } = JSON.parse(row.content) as RequestContent
  const wrong = parameterErrors.map(({ name, value, message }) =>
    value === undefined ? `${name} ${message}` : fill(words.not, { name, message, value: JSON.stringify(value) }),
  )
  const ignored = unknown.map(name => fill(words.ignored, { name }))
  return html`<li id="r${id}"><details id="d${id}"><summary><span class="${status < 400 ? 'good' : 'bad'}">${status}</span> <code>${method} ${path}</code>
<span class="soft">${result ?? ''} ${fill(words.milliseconds, { count: String(milliseconds) })}</span></summary>
<p>${description ?? ''}</p><pre class="fields">${fields.map(([name, value]) => html`${name}=${value}\n`)}</pre></details>
${paymentId !== null && html`<a href="/office/payments/${merchantId}/${paymentId}">${paymentId}</a>`}
${wrong.length + ignored.length > 0 && html`<ul class="wrong">${[...wrong, ...ignored].map(text => html`<li>${text}</li>`)}</ul>`}
<time>${momentText(language, row.recordedAt)}</time></li>`
}

/** The newest, each with its chain, so that a refund stands beside its payment. */
async function payments(parts: ConsoleParts, { merchants, language }: Viewer): Promise<Html> {
  const found = await searchPayments(parts, merchants, [{}], shownMost)
  const waiting = await redirectUrls(
    parts,
    found.filter(({ outcome }) => outcome === 'pending'),
  )
  const chains = Map.groupBy(found, ({ merchantId, rootId }) => merchantId + rootId)
  return listed(
    [...chains.values()].map(chain => {
      const steps = [...chain]
        .reverse()
        .map(
          one =>
            html`<a href="/office/payments/${one.merchantId}/${one.paymentId}">${one.type} ${amountText(one.amount ?? 0)} ${one.currency ?? ''}</a> <span class="${
              one.outcome === 'success' || one.outcome === 'review' ? 'good' : 'bad'
            }">${one.result}</span> ${waiting.has(one.paymentId) && html`<a href="/office/console/code/${one.merchantId}/${one.paymentId}">${consoleWords(language).code}</a> `}`,
        )
      return html`<li>${steps}<br><time>${momentText(language, chain[0]!.receivedAt)}</time></li>`
    }),
    consoleWords(language).noPayments,
  )
}

/** Where the shoppers of payments are awaited, by the id of the payment. */
export async function redirectUrls(
  parts: ConsoleParts,
  payments: readonly { readonly merchantId: string; readonly paymentId: string }[],
): Promise<ReadonlyMap<string, string>> {
  const urls = new Map<string, string>()
  for (const [merchantId, own] of Map.groupBy(payments, one => one.merchantId)) {
    const ids = own.map(({ paymentId }) => paymentId)
    for (const payment of await readable(parts, await findPayments(parts.database.work, merchantId, ids))) {
      const { redirect } = payment.answer ? {} : JSON.parse(givenText(parts, payment))
      if (redirect) urls.set(payment.id, redirect.url)
    }
  }
  return urls
}

async function notifications(parts: ConsoleParts, { merchants, language }: Viewer): Promise<Html> {
  const words = consoleWords(language)
  const db = parts.database.work
  const told = []
  for (const merchantId of merchants)
    for (const endpoint of (await listEndpoints(db, [merchantId])).slice(0, endpointsMost))
      for (const one of await listDeliveries(db, merchantId, endpoint.id, null, shownMost))
        told.push({ ...one, url: one.url ?? endpoint.url ?? endpoint.name ?? endpoint.kind })
  const newest = told.sort((a, b) => b.emittedAt - a.emittedAt).slice(0, shownMost)
  const bodies = new Map<string, string>()
  for (const [merchantId, own] of Map.groupBy(newest, one => one.merchantId)) {
    const ids = [...new Set(own.map(({ paymentId }) => paymentId))]
    for (const payment of await readable(parts, await findPayments(db, merchantId, ids)))
      bodies.set(payment.id, JSON.stringify(JSON.parse(givenText(parts, payment)), null, 2))
  }
  return listed(
    newest.map(one => {
      const state = fill(words.attempts, { state: one.state, count: String(one.attempts) })
      const key = `${one.endpointId}${one.position}`
      return html`<li><details id="n${key}"><summary>${one.url} <span class="${one.state === 'acknowledged' ? 'good' : 'soft'}">${state}</span> <span class="soft">${
        one.lastStatus ?? one.lastFailure ?? ''
      }</span></summary><pre class="fields">${bodies.get(one.paymentId) ?? ''}</pre></details>
${button(`/office/console/replay`, words.again, 'plain', { merchant: one.merchantId, endpoint: one.endpointId, notification: one.notificationId, payment: one.paymentId })}
<time>${momentText(language, one.emittedAt)}</time></li>`
    }),
    html`${words.noNotifications} <a href="/office/webhooks">${words.makeWebhook}</a>`,
  )
}

async function clock({ directory }: ConsoleParts, { merchants, language }: Viewer): Promise<Html> {
  const words = consoleWords(language)
  return html`${merchants.map(id => {
    const text = { time: momentText(language, directory.businessTime(id)), merchant: directory.merchant(id)?.name ?? id }
    return html`<p>${fill(words.clockText, text)}</p>`
  })}`
}

const listed = (items: readonly Html[], nothing: string | Html): Html =>
  items.length === 0 ? html`<p class="soft">${nothing}</p>` : html`<ul class="feed">${items}</ul>`

export const panels = { requests, payments, notifications, clock } as const satisfies Readonly<Record<string, Panel>>
export type PanelName = keyof typeof panels

/** What a test card leads to. */
export const outcomeText = (name: keyof typeof results): string => `${results[name].code} ${results[name].description}`
