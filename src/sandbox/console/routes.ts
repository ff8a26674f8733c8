// The console of a sandbox: / shows what happens, as it happens. Its panels come by server-sent events; clock, cards and events stand beside them.

import { isDeepStrictEqual } from 'node:util'
import type { Route } from '../../http/router.ts'
import { replay } from '../../notifications/replay/replay.ts'
import { type Html, html } from '../../pages/html.ts'
import type { OfficeParts } from '../../pages/office/parts.ts'
import { goTo, nothingHere, type OfficeRoute, officeRoute, signedInOf } from '../../pages/office/route.ts'
import type { OfficeLanguage } from '../../pages/office/words.ts'
import { qrCode } from '../../pages/qrCode.ts'
import { isId } from '../../platform/clock.ts'
import type { DueSource } from '../../platform/due/source.ts'
import { isThisMachine } from '../../platform/network.ts'
import { advanceClock } from '../advance.ts'
import { cardOutcomes } from '../cards.ts'
import { duration } from '../clock.ts'
import { testCards } from '../testCards.ts'
import { outcomeText, type PanelName, panels, redirectUrls, type Viewer } from './panels.ts'
import { consoleScript } from './script.ts'
import { consoleWords } from './words.ts'

export type ConsoleParts = OfficeParts

/** 29 and 30 minutes, 72 hours and a month are times at which something falls due. */
const steps = ['1m', '29m', '1h', '1d', '72h', '30d']
const lookEveryMilliseconds = 500
const pulseMilliseconds = 15_000

export function consoleRoutes(parts: ConsoleParts, sources: readonly DueSource[]): Route[] {
  const action = 'useSandbox'
  const routes: OfficeRoute[] = [
    { method: 'GET', path: '/', top: true, action, answer: () => goTo('/office/console') },
    {
      method: 'GET',
      path: '/console',
      action,
      async answer({ language, publicUrl }, { merchants, isWhole }) {
        const words = consoleWords(language)
        const viewer = { merchants, isWhole, language, publicUrl }
        const panel = async (name: PanelName) => html`<div id="${name}">${await panels[name](parts, viewer)}</div>`
        return {
          title: words.title,
          style: consoleStyle,
          script: consoleScript,
          body: html`<p>${words.intro} <span id="live" class="soft" role="status" data-live="${words.live}" data-away="${words.away}"></span></p>
<div class="console"><section aria-labelledby="h1"><h2 id="h1">${words.requests}</h2>${await panel('requests')}</section>
<section aria-labelledby="h2"><h2 id="h2">${words.payments}</h2>${await panel('payments')}
<h2>${words.notifications}</h2>${await panel('notifications')}</section>
<section aria-labelledby="h3"><h2 id="h3">${words.clock}</h2>${await panel('clock')}${clockForm(parts, merchants, language)}
<p><a class="button plain" href="/docs/events">${words.events}</a></p>
<h2>${words.cards}</h2><p class="soft">${words.cardsText}</p>${cards(language)}</section></div>`,
        }
      },
    },
    {
      method: 'GET',
      path: '/console/changes',
      action,
      live: true,
      answer(request, { merchants, isWhole, endsAt }) {
        const { language, publicUrl } = request
        // Whoever may see something else now begins anew: browsers ask again.
        const isIn = async () => {
          const now = await signedInOf(parts, request, false)
          return now?.may(action) === true && now.isWhole === isWhole && isDeepStrictEqual(now.merchants, merchants)
        }
        return {
          status: 200,
          headers: { 'Content-Type': 'text/event-stream;charset=UTF-8', 'X-Accel-Buffering': 'no' },
          body: changes(parts, { merchants, isWhole, language, publicUrl }, endsAt, isIn),
        }
      },
    },
    {
      method: 'GET',
      path: '/console/code/{merchant}/{payment}',
      action,
      async answer({ language }, { reaches }, { merchant = '', payment = '' }) {
        const words = consoleWords(language)
        const asked = isId(payment) && reaches(merchant) ? [{ merchantId: merchant, paymentId: payment }] : []
        const url = (await redirectUrls(parts, asked)).get(payment)
        if (url === undefined) return nothingHere(language)
        return {
          title: words.code,
          style: '.code { width: 16rem; padding: 1.5rem; background: #fff; }',
          body: html`<p>${words.codeText}</p><div class="code">${qrCode(url)}</div><p><a href="${url}">${url}</a></p>
${leadsHere(url) && html`<p>${words.codeHere}</p>`}`,
        }
      },
    },
    {
      method: 'POST',
      path: '/console/clock',
      action,
      async answer({ values }, { reaches, by }) {
        const [merchant, milliseconds] = [values.get('merchant') ?? '', duration(values.get('advance') ?? undefined)]
        if (reaches(merchant) && parts.directory.merchant(merchant) && milliseconds)
          await advanceClock(parts, sources, merchant, milliseconds, by)
        return goTo('/office/console')
      },
    },
    {
      method: 'POST',
      path: '/console/replay',
      action: 'replayNotifications',
      async answer({ values }, { reaches, by }) {
        const given = (name: string) => (isId(values.get(name) ?? '') ? values.get(name)! : undefined)
        const [merchant, endpoint, notificationId] = [given('merchant'), given('endpoint'), given('notification')]
        const paymentId = given('payment')
        if (merchant && endpoint && notificationId && reaches(merchant))
          await replay({ ...parts, by }, merchant, endpoint, { notificationId, ...(paymentId && { paymentId }) })
        return goTo('/office/console')
      },
    },
  ]
  return routes.map(route => officeRoute(parts, route))
}

/** No other machine reaches it. */
function leadsHere(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || isThisMachine(hostname.replace(/^\[|\]$/g, ''))
}

/** The panels as they change, until the reader leaves, or the session ends or may see something else. */
async function* changes(
  parts: ConsoleParts,
  viewer: Viewer,
  endsAt: number,
  isIn: () => Promise<boolean>,
): AsyncGenerator<string> {
  const { clock } = parts
  const shown = new Map<string, string>()
  let pulseAt = clock.elapsed() + pulseMilliseconds
  yield 'retry: 1000\n\n'
  while (clock.real() < endsAt) {
    for (const [name, panel] of Object.entries(panels)) {
      const { html } = await panel(parts, viewer)
      if (shown.get(name) === html) continue
      if (!(await isIn())) return
      shown.set(name, html)
      yield `event: panel\ndata: ${JSON.stringify({ name, html })}\n\n`
    }
    if (clock.elapsed() >= pulseAt) {
      pulseAt = clock.elapsed() + pulseMilliseconds
      if (!(await isIn())) return
      yield ': still here\n\n'
    }
    await clock.sleep(lookEveryMilliseconds)
  }
}

function clockForm({ directory }: ConsoleParts, merchants: readonly string[], language: OfficeLanguage): Html {
  const words = consoleWords(language)
  return html`${merchants.map(
    id => html`<form method="post" action="/office/console/clock" class="line" aria-label="${words.forward} · ${directory.merchant(id)?.name ?? id}"><input type="hidden" name="merchant" value="${id}"><span>${words.forward}</span>
${steps.map(step => html`<button class="plain" name="advance" value="${step}">${step}</button>`)}</form>`,
  )}`
}

function cards(language: OfficeLanguage): Html {
  const words = consoleWords(language)
  const rows: [number: string, what: string][] = [
    ...testCards.map(([brand, number]): [string, string] => [number, `${brand}, ${words.approved}`]),
    ...Object.entries(cardOutcomes).map(([number, name]): [string, string] => [number, outcomeText(name)]),
  ]
  return html`<ul class="feed">${rows.map(
    ([number, what]) =>
      html`<li><code>${number}</code> <button class="quiet" type="button" data-copy="${number}" data-done="${words.copied}" data-again="${words.copy}">${words.copy}</button><br><span class="soft">${what}</span></li>`,
  )}</ul>`
}

const consoleStyle = `
.console { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 4fr) minmax(0, 3fr); gap: 0 1.5rem; }
.console section > h2:first-child { margin-top: 0; }
.feed { margin: 0 0 1.25rem; padding: 0; list-style: none; background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
.feed > li { padding: .5rem .8rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; } .feed > li:last-child { border-bottom: 0; }
.feed a { display: inline-block; padding: .2rem 0; } .feed summary { padding: .2rem 0; cursor: pointer; } .feed time { color: var(--soft); font-size: .85rem; } .feed form { display: inline; }
.feed pre { margin: .5rem 0; overflow-wrap: anywhere; } .feed .wrong { margin: .25rem 0; color: var(--wrong); }
@media (max-width: 70rem) { .console { grid-template-columns: minmax(0, 1fr); } }
`
