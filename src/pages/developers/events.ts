// The event simulator: a button makes something happen in the sandbox by the very calls that a merchant would make, and shows them.

import { type Html, html } from '../html.ts'
import { codeBlock } from './frame.ts'
import type { Playground } from './reference.ts'

/** A call; `refers`: to the payment of the call before it. */
export type EventStep = { readonly refers?: true; readonly fields: Readonly<Record<string, string>> }
export type SandboxEvent = { readonly says: string; readonly steps: readonly EventStep[] }

export const eventsPage = (
  events: Readonly<Record<string, SandboxEvent>>,
  publicUrl: string,
  { entityId, accessToken }: Playground,
): Html => html`<h1>Events</h1>
<p>Each button makes something happen in this sandbox, by the calls that a merchant would make; the notifications that follow go to the endpoints of the merchant.
On the command line: <code>bin/tollgate trigger</code>.</p>
<noscript><p>The buttons need JavaScript. <code>bin/tollgate trigger</code> does the same.</p></noscript>
<p role="status" id="status" class="soft">Nothing has happened yet.</p>
<div id="answer-part" hidden>${codeBlock('', 'Calls and answers', 'answer')}</div>
<ul class="plain panel" id="events" data-url="${publicUrl}" data-token="${accessToken}" data-entity="${entityId}">
${Object.entries(events).map(
  ([name, { says, steps }]) => html`<li class="field"><span class="name"><code>${name}</code></span><span>${says}
<span class="buttons"><button type="button" data-steps="${JSON.stringify(steps)}" aria-label="Make it happen: ${name}">Make it happen</button></span></span></li>
`,
)}</ul>`
