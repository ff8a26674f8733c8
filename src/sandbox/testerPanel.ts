// What stands beside a simulator's page for testers alone: what else could happen, with the result codes that follow.

import { type ResultName, results } from '../contract/results/results.ts'
import { type Html, html } from '../pages/html.ts'
import type { Texts } from '../pages/languages/texts.ts'

/** A button: its name and value as they are sent, its label, and what the merchant reads after it, first to last. */
export type TesterButton = readonly [name: string, value: string, label: string, ...results: ResultName[]]

/** `more`: inputs that go with every button. */
export const testerPanel = (texts: Texts, action: string, more: Html, buttons: readonly TesterButton[], hint?: string): Html =>
  html`<h2 id="tester">${texts.testerTitle}</h2>
${hint !== undefined && html`<p class="soft">${hint}</p>`}
<p class="soft">${texts.testerText}</p>
<form method="post" action="${action}">
${more}
${buttons.map(
  ([name, value, label, ...follow]) =>
    html`<button name="${name}" value="${value}"><span>${label}</span> <code>${follow.map(one => results[one].code).join(' → ')}</code></button>
`,
)}</form>`
