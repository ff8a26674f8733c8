// Webhooks of the merchants within reach: made with a secret that is shown once, tested, activated, rotated, ended.

import { listDeliveries } from '../../../notifications/deliveries/store.ts'
import {
  activateEndpoint,
  closeEndpoint,
  createEndpoint,
  type Endpoint,
  rotateSecret,
  testEndpoint,
} from '../../../notifications/endpoints/endpoint.ts'
import { findEndpoint, listEndpoints } from '../../../notifications/endpoints/store.ts'
import type { FieldChoice, Wrapper } from '../../../notifications/notification.ts'
import { signingSecret } from '../../../notifications/signature.ts'
import { type CallResult, isAcknowledged } from '../../../platform/egress/call.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { addressText, button, choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage } from '../words.ts'
import { webhookWords } from './words.ts'

const deliveriesShown = 50
const fieldChoices = ['all', 'withoutCustomerData'] as const satisfies readonly FieldChoice[]
const wrappers = ['none', 'json', 'plain'] as const satisfies readonly Wrapper[]

export function webhookRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, directory } = parts
  const recorder = ({ by }: SignedIn) => ({ ...parts, by })
  const nameOf = (id: string) => directory.entity(id)?.name ?? id
  /** One that merchants' requests name by themselves is no matter of people. */
  const found = async ({ entity = '', endpoint = '' }: Readonly<Record<string, string>>): Promise<Endpoint | undefined> => {
    const one = /^[0-9a-f]{32}$/.test(endpoint) ? await findEndpoint(database.work, entity, endpoint) : undefined
    return one?.kind === 'webhook' && one.state !== 'deleted' ? one : undefined
  }
  const working =
    (work: (request: OfficeRequest, signedIn: SignedIn, endpoint: Endpoint) => Promise<OfficeAnswer>): OfficeRoute['answer'] =>
    async (request, signedIn, named) => {
      const endpoint = await found(named)
      return endpoint ? work(request, signedIn, endpoint) : nothingHere(request.language)
    }
  const show = async (language: OfficeLanguage, signedIn: SignedIn, endpoint: Endpoint, above?: Html): Promise<OfficeAnswer> => {
    const present = (await findEndpoint(database.work, endpoint.merchantId, endpoint.id)) ?? endpoint
    const deliveries = await listDeliveries(database.work, endpoint.merchantId, endpoint.id, null, deliveriesShown)
    return webhookPage(language, signedIn, present, nameOf(present.channelId ?? present.merchantId), deliveries, above)
  }
  return [
    {
      method: 'GET',
      path: '/webhooks',
      action: 'readNotifications',
      async answer({ language }, signedIn) {
        const words = webhookWords(language)
        const found = await listEndpoints(database.work, signedIn.merchants, 'webhook')
        const rows = found.map(one => [
          html`<a href="${addressOfWebhook(one)}">${nameOfWebhook(one)}</a>`,
          nameOf(one.channelId ?? one.merchantId),
          words[`state_${one.state as 'active' | 'inactive' | 'disabled'}`],
          one.types.join(', '),
          one.emitted,
        ])
        const title = frameWords(language).webhooks
        return {
          title,
          body: html`${rows.length === 0 ? message(words.none) : tableOf(title, [words.url, words.tells, words.state, words.types, words.emitted], rows)}
${signedIn.may('changeWebhooks') && newForm(parts, signedIn, language)}`,
        }
      },
    },
    {
      method: 'POST',
      path: '/webhooks',
      action: 'changeWebhooks',
      proven: true,
      counted: true,
      exact: true, // what is called is what was typed
      async answer({ values, language }, signedIn) {
        const entity = directory.entity(values.get('entity') ?? '')
        if (!entity || !('merchantId' in entity) || !signedIn.reaches(entity.id)) return nothingHere(language)
        const made = await createEndpoint(recorder(signedIn), {
          merchantId: entity.merchantId,
          kind: 'webhook',
          channelId: entity.kind === 'channel' ? entity.id : null,
          url: (values.get('url') ?? '').trim(),
          fields: fieldChoices.find(one => one === values.get('fields')) ?? 'all',
          wrapper: wrappers.find(one => one === values.get('wrapper')) ?? 'none',
        })
        if ('refused' in made)
          return {
            status: 400,
            title: frameWords(language).webhooks,
            body: html`${message(made.refused, 'wrong')}${newForm(parts, signedIn, language, values.get('url') ?? '')}`,
          }
        return show(language, signedIn, made.endpoint, secretsShown(language, [made.secret]))
      },
    },
    {
      method: 'GET',
      path: '/webhooks/{entity}/{endpoint}',
      action: 'readNotifications',
      answer: working(({ language }, signedIn, endpoint) => show(language, signedIn, endpoint)),
    },
    {
      method: 'POST',
      path: '/webhooks/{entity}/{endpoint}/test',
      action: 'changeWebhooks',
      answer: working(async ({ language }, signedIn, endpoint) =>
        show(language, signedIn, endpoint, callShown(await testEndpoint(recorder(signedIn), endpoint))),
      ),
    },
    {
      method: 'POST',
      path: '/webhooks/{entity}/{endpoint}/activate',
      action: 'changeWebhooks',
      proven: true,
      answer: working(async ({ language }, signedIn, endpoint) => {
        const { merchantId, id } = endpoint
        const called = await activateEndpoint(recorder(signedIn), merchantId, id, directory.businessTime(merchantId))
        return show(language, signedIn, endpoint, 'refused' in called ? message(called.refused, 'wrong') : callShown(called))
      }),
    },
    {
      method: 'POST',
      path: '/webhooks/{entity}/{endpoint}/rotate',
      action: 'changeWebhooks',
      proven: true,
      answer: working(async ({ values, language }, signedIn, endpoint) => {
        const step = values.get('step') === 'finish' ? 'finish' : 'begin'
        const rotated = await rotateSecret(recorder(signedIn), endpoint.merchantId, endpoint.id, step)
        const above = 'refused' in rotated ? message(rotated.refused, 'wrong') : secretsShown(language, rotated.secrets)
        return show(language, signedIn, endpoint, above)
      }),
    },
    ...(['disabled', 'deleted'] as const).map(
      (state): OfficeRoute => ({
        method: 'POST',
        path: `/webhooks/{entity}/{endpoint}/${state === 'disabled' ? 'disable' : 'delete'}`,
        action: 'changeWebhooks',
        proven: true,
        answer: working(async ({ language }, signedIn, endpoint) => {
          const { merchantId, id } = endpoint
          const closed = await closeEndpoint(recorder(signedIn), merchantId, id, state, directory.businessTime(merchantId))
          if ('refused' in closed) return show(language, signedIn, endpoint, message(closed.refused, 'wrong'))
          return goTo(state === 'deleted' ? '/office/webhooks' : addressOfWebhook(endpoint))
        }),
      }),
    ),
  ]
}

const addressOfWebhook = ({ merchantId, id }: Endpoint): string => `/office/webhooks/${merchantId}/${id}`

const nameOfWebhook = ({ id, name, url }: Endpoint): string => name ?? (url === null ? id : addressText(url))

function newForm({ directory }: OfficeParts, signedIn: SignedIn, language: OfficeLanguage, url = ''): Html {
  const words = webhookWords(language)
  const options = directory
    .below(signedIn.entities)
    .filter(({ kind }) => kind === 'merchant' || kind === 'channel')
    .map(({ id, name, kind }): [string, string] => [id, `${name} (${kind})`])
  return html`<h2>${words.make}</h2><div class="card"><form method="post" action="/office/webhooks">
${field({ name: 'url', label: words.url, type: 'url', value: url })}
${choiceField('entity', words.tells, options)}
${choiceField('fields', words.fields, [
  ['all', words.fieldsAll],
  ['withoutCustomerData', words.fieldsFew],
])}
${choiceField('wrapper', words.wrapper, [
  ['none', words.wrapperNone],
  ['json', words.wrapperJson],
  ['plain', words.wrapperPlain],
])}
<button>${words.makeButton}</button></form></div>`
}

const secretsShown = (language: OfficeLanguage, secrets: readonly string[]): Html =>
  html`<div class="message secret" role="status"><p>${webhookWords(language).secretText}</p><dl>${secrets.map(
    secret =>
      html`<dt>${webhookWords(language).secret}</dt><dd><code class="secret">${secret}</code></dd><dt>${webhookWords(language).signing}</dt><dd><code>${signingSecret(Buffer.from(secret, 'hex'))}</code></dd>`,
  )}</dl></div>`

const callShown = (called: CallResult): Html =>
  message(
    `${called.status === undefined ? called.failure : `HTTP ${called.status}`} · ${called.milliseconds} ms ${called.answer.slice(0, 200)}`,
    isAcknowledged(called) ? 'plain' : 'wrong',
  )

function webhookPage(
  language: OfficeLanguage,
  signedIn: SignedIn,
  endpoint: Endpoint,
  tells: string,
  deliveries: Awaited<ReturnType<typeof listDeliveries>>,
  above: Html | undefined,
): OfficeAnswer {
  const words = webhookWords(language)
  const address = addressOfWebhook(endpoint)
  const { state } = endpoint
  return {
    title: nameOfWebhook(endpoint),
    body: html`${above}
<div class="card"><dl>
<dt>${words.state}</dt><dd>${words[`state_${state as 'active' | 'inactive' | 'disabled'}`]}</dd>
<dt>${words.url}</dt><dd><code>${addressText(endpoint.url ?? '')}</code></dd>
<dt>${words.tells}</dt><dd>${tells}</dd>
<dt>${words.types}</dt><dd>${endpoint.types.join(', ')}</dd>
<dt>${words.fields}</dt><dd>${endpoint.fields === 'all' ? words.fieldsAll : words.fieldsFew}</dd>
</dl>
${
  signedIn.may('changeWebhooks') &&
  html`${state === 'active' ? button(`${address}/test`, words.test) : button(`${address}/activate`, words.activate, '')}
${button(`${address}/rotate`, words.rotate, 'plain', { step: 'begin' })}
${button(`${address}/rotate`, words.finish, 'plain', { step: 'finish' })}
${state === 'active' && button(`${address}/disable`, words.disable, 'danger')}
${button(`${address}/delete`, words.end, 'danger')}`
}</div>
<h2>${words.deliveries}</h2>
${
  deliveries.length === 0
    ? message(words.noDeliveries)
    : tableOf(
        words.deliveries,
        [words.at, words.payment, words.state, words.attempts, words.last],
        deliveries.map(one => [
          momentText(language, one.emittedAt),
          html`<code>${one.paymentId}</code>`,
          one.replay ? `${one.state} (replay)` : one.state,
          one.attempts,
          String(one.lastStatus ?? one.lastFailure ?? '–'),
        ]),
      )
}`,
  }
}
