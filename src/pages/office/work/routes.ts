// What stays undone: notifications that nobody acknowledged, and due work that is tried again and again.

import { listUnheard } from '../../../notifications/deliveries/store.ts'
import { replay } from '../../../notifications/replay/replay.ts'
import { nobody } from '../../../payments/cases/cases.ts'
import { isId } from '../../../platform/clock.ts'
import { findTroubled } from '../../../platform/due/store.ts'
import { html } from '../../html.ts'
import { addressText, button, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, wordsIn } from '../words.ts'

const shownMost = 200
/** Fewer happen when somebody on the other side starts anew. */
const attemptsOfTrouble = 3

export function workRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, directory, keys, clock } = parts
  const nameOf = (id: string) => directory.merchant(id)?.name ?? (id === nobody ? '–' : id)
  return [
    {
      method: 'GET',
      path: '/deliveries',
      action: 'readNotifications',
      async answer({ language, values }, signedIn) {
        const words = workWords(language)
        const isWaiting = values.get('waiting') === '1'
        const merchants = signedIn.merchants.filter(id => id === (values.get('merchant') ?? id))
        const found = await listUnheard(database.work, merchants, isWaiting ? 'scheduled' : 'given up', shownMost)
        const rows = found.map(one => [
          nameOf(one.merchantId),
          html`<a href="/office/webhooks/${one.merchantId}/${one.endpointId}">${one.url === null ? one.endpointId : addressText(one.url)}</a>`,
          html`<a class="code" href="/office/payments/${one.merchantId}/${one.paymentId}">${one.paymentId}</a>`,
          one.attempts,
          String(one.lastStatus ?? one.lastFailure ?? '–'),
          momentText(language, one.settledAt ?? one.dueAt),
          ...(!isWaiting && signedIn.may('replayNotifications')
            ? [
                button(`/office/deliveries/${one.merchantId}/${one.endpointId}/${one.notificationId}/replay`, words.replay, '', {
                  payment: one.paymentId,
                }),
              ]
            : []),
        ])
        const heads = [
          words.merchant,
          words.endpoint,
          words.payment,
          words.attempts,
          words.last,
          isWaiting ? words.next : words.since,
        ]
        const title = isWaiting ? words.underWay : frameWords(language).deliveries
        return {
          title,
          body:
            rows.length === 0
              ? message(isWaiting ? words.noneUnderWay : words.noDeliveries)
              : tableOf(title, [...heads, ...(rows[0]!.length > 6 ? [''] : [])], rows),
        }
      },
    },
    {
      method: 'POST',
      path: '/deliveries/{entity}/{endpoint}/{notification}/replay',
      action: 'replayNotifications',
      async answer({ language, values }, { by }, { entity = '', endpoint = '', notification = '' }) {
        if (![endpoint, notification].every(isId)) return nothingHere(language)
        const replayed = await replay({ database, clock, directory, keys, by }, entity, endpoint, {
          notificationId: notification,
          // With it there is nothing to look through. A page of the version before names none.
          ...(isId(values.get('payment') ?? '') && { paymentId: values.get('payment')! }),
        })
        if ('refused' in replayed)
          return { status: 409, title: frameWords(language).deliveries, body: message(replayed.refused, 'wrong') }
        return replayed.replayed === 0 ? nothingHere(language) : goTo(`/office/webhooks/${entity}/${endpoint}`)
      },
    },
    {
      method: 'GET',
      path: '/work',
      action: 'readWork',
      async answer({ language }, { merchants, isWhole }) {
        const words = workWords(language)
        const merchantIds = [...merchants, ...(isWhole ? [nobody] : [])]
        const rows = (await findTroubled(database.work, merchantIds, attemptsOfTrouble, shownMost)).map(one => [
          one.kind,
          nameOf(one.merchantId),
          html`<code>${one.subjectId}</code>`,
          one.attempts,
          momentText(language, one.dueAt),
        ])
        const title = frameWords(language).work
        return {
          title,
          body:
            rows.length === 0
              ? message(words.noWork)
              : tableOf(title, [words.kind, words.merchant, words.about, words.attempts, words.next], rows),
        }
      },
    },
  ]
}

const workWords = wordsIn(
  {
    noDeliveries: 'No notification was given up.',
    underWay: 'Notifications under way',
    noneUnderWay: 'Every notification was acknowledged, or given up.',
    noWork: 'Nothing was tried more than twice.',
    merchant: 'Merchant',
    endpoint: 'Webhook',
    payment: 'Payment',
    attempts: 'Attempts',
    last: 'Last answer',
    since: 'Given up (UTC)',
    replay: 'Send again',
    kind: 'What',
    about: 'About',
    next: 'Tried again at (UTC)',
  },
  {
    noDeliveries: 'Nenhuma notificação foi abandonada.',
    underWay: 'Notificações em andamento',
    noneUnderWay: 'Toda notificação foi confirmada ou abandonada.',
    noWork: 'Nada foi tentado mais de duas vezes.',
    merchant: 'Lojista',
    endpoint: 'Webhook',
    payment: 'Pagamento',
    attempts: 'Tentativas',
    last: 'Última resposta',
    since: 'Abandonada em (UTC)',
    replay: 'Enviar de novo',
    kind: 'O quê',
    about: 'Sobre',
    next: 'Nova tentativa em (UTC)',
  },
)
