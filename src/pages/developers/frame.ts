// The frame of the pages for developers: navigation, light and dark, from the width of a phone on; and the headers that go with it.

import { type Html, html, type RenderedPage, trusted } from '../html.ts'

export type DeveloperPage = {
  readonly title: string
  /** The page of the navigation that it belongs to. */
  readonly place: keyof typeof places
  readonly body: Html
  readonly script?: string
}

const places = {
  reference: ['/docs/api', 'API reference'],
  codes: ['/docs/codes', 'Result codes'],
  events: ['/docs/events', 'Events'],
} as const

/** `canTry`: in a sandbox, where events can be made to happen. */
export function developerPage({ title, place, body, script }: DeveloperPage, canTry: boolean, nonce: string): RenderedPage {
  const shown = Object.entries(places).filter(([name]) => canTry || name !== 'events')
  const links = shown.map(
    ([name, [path, label]]) => html`<a href="${path}"${name === place && html` aria-current="page"`}>${label}</a>`,
  )
  const whole = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>${title} · Tollgate</title>
<style nonce="${nonce}">${trusted(style)}</style>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header><strong>Tollgate</strong><nav aria-label="Developers">${links}</nav><a href="/openapi.json">openapi.json</a></header>
<main id="content">
${body}
</main>
${script !== undefined && html`<script nonce="${nonce}">${trusted(script)}</script>`}
</body>
</html>
`
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    'img-src data:',
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    body: whole.html,
    headers: {
      'Content-Type': 'text/html;charset=UTF-8',
      'Content-Security-Policy': policy.join('; '),
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'private, no-store',
      'X-Frame-Options': 'DENY',
    },
  }
}

/** A text to be copied or scrolled by keyboard. */
export const codeBlock = (text: string, label: string, id?: string): Html =>
  html`<pre tabindex="0" role="region" aria-label="${label}"${id !== undefined && html` id="${id}"`}>${text}</pre>`

/** A table that may be wider than a phone. */
export const wideTable = (label: string, heading: readonly string[], rows: readonly (readonly Html[])[]): Html =>
  html`<div class="wide" tabindex="0" role="region" aria-label="${label}"><table>
<thead><tr>${heading.map(cell => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${rows.map(
    row => html`<tr>${row.map(cell => html`<td>${cell}</td>`)}</tr>
`,
  )}</tbody></table></div>`

const style = `
:root { --ink: #1b2430; --soft: #526072; --paper: #fff; --ground: #f2f4f7; --line: #d5dce5; --accent: #1d5fd1; --on-accent: #fff; --good: #1a6b3c; --warn: #8a4b00; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf4; --soft: #a9b6c6; --paper: #1c232d; --ground: #11161d; --line: #344052; --accent: #7fb0ff; --on-accent: #0c1a30; --good: #7fd6a2; --warn: #ffd591; --bad: #ffb4ab; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; -webkit-text-size-adjust: 100%; }
a { color: var(--accent); }
a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible, summary:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; inset-inline-start: -100rem; }
.skip:focus { inset-inline-start: 1rem; top: .5rem; z-index: 1; padding: .5rem 1rem; background: var(--paper); }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.5rem; padding: .5rem clamp(1rem, 4vw, 3rem); background: var(--paper); border-bottom: 1px solid var(--line); }
nav { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin-inline-end: auto; }
header a { display: inline-flex; align-items: center; min-height: 2.75rem; text-decoration: none; }
header a[aria-current] { color: var(--ink); font-weight: 600; box-shadow: inset 0 -3px var(--accent); }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
code, pre, .mono { font: .86rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
pre { margin: 0 0 1rem; padding: .9rem 1rem; overflow: auto; max-height: 34rem; background: var(--ground); border: 1px solid var(--line); border-radius: 9px; }
.panel { margin: 0 0 1rem; padding: 1rem clamp(.75rem, 2vw, 1.5rem); background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem; align-items: start; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .92rem; }
th, td { padding: .4rem .75rem .4rem 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--line); }
td:first-child { min-width: 9rem; }
ul.plain { list-style: none; } ul.plain:not(.panel) { margin: 0; padding: 0; }
.panel > h2:first-child { margin-top: 0; }
ul.plain li { border-bottom: 1px solid var(--line); }
ul.plain li a { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .75rem; min-height: 2.75rem; padding: .45rem 0; color: inherit; text-decoration: none; }
ul.plain li a:hover { background: var(--ground); }
.method { display: inline-block; min-width: 4.2rem; padding: .05rem .5rem; border-radius: 6px; border: 1px solid currentcolor; text-align: center; font: 600 .8rem/1.5 ui-monospace, monospace; color: var(--accent); }
.post { color: var(--good); } .delete { color: var(--bad); }
.chip { display: inline-block; margin: 0 .4rem .3rem 0; padding: .05rem .6rem; border: 1px solid currentcolor; border-radius: 1rem; font-size: .82rem; }
.success { color: var(--good); } .review, .pending { color: var(--warn); } .rejected, .invalid, .error { color: var(--bad); }
details { margin: 0 0 .5rem; }
summary { display: flex; align-items: center; min-height: 2.75rem; cursor: pointer; font-weight: 600; }
summary::before { content: '▸'; width: 1.2rem; } details[open] > summary::before { content: '▾'; }
.field { display: grid; grid-template-columns: minmax(8rem, 14rem) minmax(0, 1fr); gap: .25rem .75rem; align-items: center; margin: 0 0 .4rem; }
.field label, .field .name { overflow-wrap: anywhere; }
input, select { width: 100%; min-height: 2.75rem; padding: .4rem .7rem; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft); border-radius: 8px; }
button { min-height: 2.75rem; padding: .5rem 1.1rem; font: inherit; font-weight: 600; cursor: pointer; color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: 8px; }
button.plain { color: var(--ink); background: transparent; border-color: var(--soft); }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; margin: .75rem 0; }
.search { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0 0 1rem; }
.search input { flex: 1 1 14rem; } .search select { width: auto; } .search .label { flex: 1 1 100%; font-weight: 600; }
article { scroll-margin-top: 1rem; padding: .75rem 0; border-bottom: 1px solid var(--line); }
article h2 { margin: 0; font-size: 1rem; } article p { margin: .2rem 0; }
article:target { box-shadow: inset 4px 0 var(--accent); padding-inline-start: 1rem; }
@media (max-width: 52rem) { .columns { grid-template-columns: minmax(0, 1fr); } .field { grid-template-columns: minmax(0, 1fr); } }
`
