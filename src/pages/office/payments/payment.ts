// The page of a payment: what it is and what became of it, in words, and what can be done about it.

import { findArchived } from '../../../archive/store.ts'
import { amountText } from '../../../contract/amounts.ts'
import { results } from '../../../contract/results/results.ts'
import { replay } from '../../../notifications/replay/replay.ts'
import type { Readable } from '../../../payments/read/status.ts'
import { isId } from '../../../platform/clock.ts'
import type { RequestContent } from '../../../reporting/requests/record.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { addressText, button, message, type TableCell, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, isLedBy, nothingHere, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage } from '../words.ts'
import { orderForms, orders } from './act.ts'
import { paymentsLink } from './filter.ts'
import { listStyle } from './list.ts'
import { sequenceOf, sequenceStyle } from './sequence.ts'
import { readStory, type Story } from './story.ts'
import { transferCard, transferState } from './transfer.ts'
import { type PaymentWords, paymentWords } from './words.ts'

export const pageRoutes = (parts: OfficeParts): OfficeRoute[] => [
  {
    method: 'GET',
    path: '/payments/{entity}/{id}',
    action: 'readPayments',
    async answer(request, signedIn, { entity = '', id = '' }) {
      const { values, language } = request
      const words = paymentWords(language)
      const story = await readStory(parts, entity, id)
      if (!story) {
        const archived = isId(id) ? await findArchived(parts.database.work, [entity], id) : undefined
        const said = archived ? fill(words.archived, { file: archived.name }) : frameWords(language).notFoundText
        return { status: 404, title: frameWords(language).notFound, body: html`<p>${said}</p>` }
      }
      return {
        title: `${story.payment.type} ${amountText(story.payment.amount)} ${story.payment.currency}`,
        style: listStyle + sequenceStyle + pageStyle,
        body: html`${isLedBy(request, `/office/payments/${entity}`) && doneMessage(values, words)}
${verdict(story.payment, words)}
${factsOf(parts, story, language)}
<h2>${words.chain}</h2>${chainOf(parts, story, language)}
${transferCard(parts, story, signedIn, words)}
${orderForms(parts, story, signedIn, words)}
<h2>${words.sequence}</h2>${sequenceOf(story, language)}
${story.journal.length > 0 && html`<h2>${words.journal}</h2>${journalOf(story, words)}`}
${processorOf(story, language)}
${signedIn.may('readNotifications') && notificationsOf(story, language, signedIn.may('replayNotifications'))}
${signedIn.may('readRequests') && requestsOf(story, language)}`,
      }
    },
  },
  {
    method: 'POST',
    path: '/payments/{entity}/{id}/replay',
    action: 'replayNotifications',
    async answer({ values, language }, { by }, { entity = '', id = '' }) {
      const endpoint = values.get('endpoint') ?? ''
      if (![endpoint, id].every(isId)) return nothingHere(language)
      const replayed = await replay({ ...parts, by }, entity, endpoint, { paymentId: id })
      if ('refused' in replayed)
        return { status: 409, title: paymentWords(language).notDone, body: message(replayed.refused, 'wrong') }
      return replayed.replayed === 0 ? nothingHere(language) : goTo(`/office/payments/${entity}/${id}?done=replay`)
    },
  },
]

/** Only forms on pages of payments lead to it: a link that somebody sends, by mail or to our door too, says nothing of what was done here. */
function doneMessage(values: URLSearchParams, words: PaymentWords): Html | undefined {
  const done = values.get('done')
  if (done === 'replay') return message(words.replayed)
  if (done === 'transfer') return message(words.transferEntered)
  const order = orders.find(({ word }) => word === done)
  return (
    order &&
    message(fill(words.isDone, { what: words[order.word].toLowerCase(), amount: (values.get('amount') ?? '').slice(0, 16) }))
  )
}

const resultOf = ({ answer }: Readable) => (answer ? results[answer.result] : results.pending)

/** The result in words, who has to act, and whether it may be sent again. */
function verdict(payment: Readable, words: PaymentWords): Html {
  const { code, description, outcome, actor, retry } = resultOf(payment)
  const isGood = outcome === 'success' || outcome === 'review'
  return html`<div class="card verdict"><p><span class="outcome ${outcome}">${code}</span> <strong>${description}</strong></p>
${!isGood && html`<p>${words[`act_${actor}`]} ${words[`retry_${retry}`]}</p>`}</div>`
}

function factsOf({ directory }: OfficeParts, { payment }: Story, language: OfficeLanguage): Html {
  const words = paymentWords(language)
  const channel = directory.entity(payment.channelId)
  const field = (name: string) => payment.record.fields.find(([given]) => given === name)?.[1]
  const card = payment.record.card
  const facts: [string, string | undefined][] = [
    ['id', payment.id],
    [words.time, momentText(language, payment.receivedAt)],
    [words.brand, payment.brand],
    [words.card, card && `${card.bin ?? ''}…${card.last4Digits}`],
    [words.transaction, payment.merchantTransactionId],
    [words.invoice, field('merchantInvoiceId')],
    [words.descriptor, field('descriptor')],
    [words.channel, channel && `${channel.name} (${channel.id})`],
    [words.connector, payment.connector],
    [words.mode, payment.mode],
  ]
  return html`<h2>${words.facts}</h2><div class="card"><dl>${facts
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></div>`
}

/** The chain on its line of time; the payment of the page is marked. */
function chainOf(parts: OfficeParts, story: Story, language: OfficeLanguage): Html {
  const { payment, root, chain, followers } = story
  const others = followers.length + 1 - chain.length
  const more = fill(paymentWords(language).more, { count: String(others) })
  return html`${others > 0 && html`<p>${paymentsLink(more, { q: root.id })}</p>`}<ol class="timeline">${chain.map(one => {
    const { code, outcome } = resultOf(one)
    const transfer = transferState(parts, story, one.id, paymentWords(language))
    const what = html`<strong>${one.type}</strong> <span class="amount">${amountText(one.amount)} ${one.currency}</span>`
    return html`<li class="${outcome}"${one.id === payment.id && html` aria-current="true"`}>${
      one.id === payment.id ? what : html`<a href="/office/payments/${one.merchantId}/${one.id}">${what}</a>`
    } <span class="outcome ${outcome}">${code}</span>${transfer !== undefined && html`<br>${transfer}`}<br><time>${momentText(language, one.receivedAt)}</time></li>`
  })}</ol>`
}

const journalOf = ({ journal, chain }: Story, words: PaymentWords): Html =>
  tableOf(
    words.journal,
    [words.payment, words.debit, words.credit, words.amount, words.state],
    [...journal]
      .sort((a, b) => (a.paymentId + a.line < b.paymentId + b.line ? -1 : 1))
      .map(one => [
        html`${chain.find(({ id }) => id === one.paymentId)!.type} <code>${one.paymentId}</code>`,
        one.debit,
        one.credit,
        html`<span class="amount">${amountText(one.amount)} ${one.currency}</span>`,
        one.state,
      ]),
  )

/** What the other side knows the messages by; what else was kept of an answer is not for people. */
const keptShown = [
  'acquirer',
  'type',
  'terminal',
  'stan',
  'rrn',
  'hostReference',
  'authorizationCode',
  'settledOn',
  'account',
  'number',
  'TRANSACTIONID',
]

function processorOf({ chain, due, cases }: Story, language: OfficeLanguage): Html {
  const words = paymentWords(language)
  const rows = chain.flatMap(({ type, answer }): TableCell[][] => {
    const kept = Object.entries(answer?.kept ?? {}).filter(([name]) => keptShown.includes(name))
    const details = Object.entries((JSON.parse(answer?.body ?? '{}') as { resultDetails?: object }).resultDetails ?? {})
    const all = [...kept, ...details].map(([name, value]) => html`<dt>${name}</dt><dd>${String(value)}</dd>`)
    return all.length === 0 ? [] : [[type, html`<dl>${all}</dl>`]]
  })
  const work = due.map(
    ({ kind, attempts, dueAt }) => html`<li>${kind}: ${words.attempts} ${attempts}, ${momentText(language, dueAt)}</li>`,
  )
  const open = cases.map(
    ({ kind, openedAt, reason }) => html`<li>${kind}, ${momentText(language, openedAt)}${reason !== null && `: ${reason}`}</li>`,
  )
  if (rows.length + work.length + open.length === 0) return html``
  return html`<h2>${words.processor}</h2>${rows.length > 0 && tableOf(words.processor, [words.type, words.last], rows)}
${work.length + open.length > 0 && html`<div class="card"><p>${words.work}</p><ul>${work}${open}</ul></div>`}`
}

function notificationsOf({ payment, told }: Story, language: OfficeLanguage, mayReplay: boolean): Html {
  const words = paymentWords(language)
  if (told.length === 0) return html``
  return html`<h2>${words.notifications}</h2>${tableOf(
    words.notifications,
    [words.time, words.endpoint, words.state, words.attempts, words.last, ''],
    told.map(one => {
      const last = one.tries.at(-1)
      return [
        momentText(language, one.emittedAt),
        one.url === null ? one.endpointId : addressText(one.url),
        one.state,
        one.attempts,
        last === undefined ? '' : `${last.status ?? last.failure ?? ''} (${last.milliseconds} ms) ${last.answer.slice(0, 100)}`,
        mayReplay
          ? button(`/office/payments/${payment.merchantId}/${one.paymentId}/replay`, words.replay, 'plain', {
              endpoint: one.endpointId,
            })
          : '',
      ]
    }),
  )}`
}

function requestsOf({ payment, requests }: Story, language: OfficeLanguage): Html {
  const words = paymentWords(language)
  const sent = requests.find(({ method }) => method === 'POST')
  if (!sent) return html`<h2>${words.request}</h2><p class="soft">${words.noRequest}</p>${fieldsOf(payment.record.fields)}`
  const { unknown = [] } = JSON.parse(sent.content) as RequestContent
  return html`<h2>${words.request}</h2>${fieldsOf((JSON.parse(sent.content) as RequestContent).fields)}
${unknown.length > 0 && html`<p>${words.unknown}: ${unknown.join(', ')}</p>`}
<h2>${words.requests}</h2>${tableOf(
    words.requests,
    [words.time, '', words.result],
    requests.map(one => [
      momentText(language, one.recordedAt),
      html`<code>${one.method} ${one.path}</code>`,
      `${one.status} ${one.result ?? ''}`,
    ]),
  )}`
}

const fieldsOf = (fields: readonly (readonly [name: string, value: string])[]): Html =>
  html`<pre class="fields">${fields.map(
    ([name, value]) => html`${name}=${value}
`,
  )}</pre>`

const pageStyle = `
.verdict p { margin: 0 0 .35rem; }
.timeline { margin: 0 0 1.25rem; padding: 0 0 0 1.1rem; list-style: none; }
.timeline li { position: relative; padding: 0 0 .9rem 1.1rem; border-left: 2px solid var(--line); }
.timeline li:last-child { border-color: transparent; }
.timeline li::before { content: ""; position: absolute; left: -.5rem; top: .3rem; width: .85rem; height: .85rem; border-radius: 50%; background: var(--soft); border: 2px solid var(--paper); }
.timeline li.success::before, .timeline li.review::before { background: var(--good); } .timeline li.rejected::before, .timeline li.invalid::before, .timeline li.error::before { background: var(--wrong); }
.timeline li[aria-current] { background: var(--mark); border-radius: 0 8px 8px 0; padding-top: .2rem; }
.timeline time { color: var(--soft); font-size: .88rem; }
.order summary { cursor: pointer; font-weight: 600; } .order form { margin-top: 1rem; }
pre.fields { overflow-wrap: anywhere; }
td dl { margin: 0; } td form { margin: 0; }
`
