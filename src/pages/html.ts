// Pages as text: a template that escapes what is put in, the frame around every page, and the headers that go with it.

export type Html = { readonly html: string }

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, character => escapes[character]!)

type Part = string | number | Html | undefined | false | readonly Html[]

/** html`<p>${text}</p>`: texts are escaped, pieces of html are not, lists of them are joined, absent ones leave nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: strings.reduce((whole, string, at) => whole + string + (at < parts.length ? piece(parts[at]) : ''), '') }
}

/** Text of our own that is html already: styles and scripts. Never for anything from outside. */
export const trusted = (text: string): Html => ({ html: text })

function piece(part: Part): string {
  if (part === undefined || part === false) return ''
  if (Array.isArray(part)) return (part as readonly Html[]).map(one => one.html).join('')
  return typeof part === 'object' ? (part as Html).html : escapeHtml(String(part))
}

export type Page = {
  readonly language: string
  readonly title: string
  readonly body: Html
  readonly script?: string
  /** Seconds until the page is asked for again. */
  readonly refresh?: number
  /** Origins that forms may go to, beside our own, and frames may come from. */
  readonly formsTo?: readonly string[]
  readonly framesFrom?: readonly string[]
  /** Hidden frames of other sites may hold the page. */
  readonly framable?: true
  /** Said above the page on simulators. */
  readonly notice?: string
  /** Forms may lead anywhere: for simulators, whose next hop is not theirs to know. */
  readonly formsAnywhere?: true
}

export type RenderedPage = { readonly body: string; readonly headers: Readonly<Record<string, string>> }

export function renderPage(page: Page, nonce: string): RenderedPage {
  const direction = page.language === 'ar' ? 'rtl' : 'ltr'
  const whole = html`<!doctype html>
<html lang="${page.language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
${page.refresh !== undefined && html`<meta http-equiv="refresh" content="${page.refresh}">`}
<title>${page.title}</title>
<style nonce="${nonce}">${trusted(style)}</style>
</head>
<body>
${page.notice !== undefined && html`<p class="notice" role="note">${page.notice}</p>`}
<main>
${page.body}
</main>
${page.script !== undefined && html`<script nonce="${nonce}">${trusted(page.script)}</script>`}
</body>
</html>
`
  return { body: whole.html, headers: { 'Content-Type': 'text/html;charset=UTF-8', ...policies(page, nonce) } }
}

function policies({ formsTo = [], framesFrom = [], framable, formsAnywhere }: Page, nonce: string): Record<string, string> {
  const sources = [
    `default-src 'none'`,
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    'img-src data:',
    ...(formsAnywhere ? [] : [`form-action ${["'self'", ...new Set(formsTo)].join(' ')}`]),
    `frame-src ${["'self'", ...new Set(framesFrom)].join(' ')}`,
    `base-uri 'none'`,
    `frame-ancestors ${framable ? 'https: http:' : "'none'"}`,
  ]
  return {
    'Content-Security-Policy': sources.join('; '),
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'private, no-store',
    ...(framable ? {} : { 'X-Frame-Options': 'DENY' }),
  }
}

/** The origin of an address, for a policy; of an app its scheme, which has no origins; nothing of an address that is none. */
export function originOf(url: string): string[] {
  if (!URL.canParse(url)) return []
  const { origin, protocol } = new URL(url)
  return [origin === 'null' ? protocol : origin]
}

const style = `
:root { --ink: #1b2430; --soft: #5b6877; --paper: #fff; --ground: #eef1f5; --line: #d5dce5; --accent: #1d5fd1; --on-accent: #fff; --warn: #8a4b00; --warn-ground: #fff3dc; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf4; --soft: #a3b0c0; --paper: #1c232d; --ground: #11161d; --line: #344052; --accent: #7fb0ff; --on-accent: #0c1a30; --warn: #ffd591; --warn-ground: #3a2a10; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.notice { margin: 0; padding: .6rem 1rem; background: var(--warn-ground); color: var(--warn); text-align: center; font-weight: 600; font-size: .9rem; }
main { width: min(27rem, 100% - 2rem); margin: clamp(1rem, 8vh, 5rem) auto 2rem; padding: 1.75rem; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; }
h1 { margin: 0 0 .5rem; font-size: 1.35rem; line-height: 1.25; }
p { margin: 0 0 1rem; }
.soft { color: var(--soft); font-size: .92rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .35rem 1rem; margin: 0 0 1.25rem; padding: .9rem 0; border-block: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; text-align: end; font-weight: 600; overflow-wrap: anywhere; }
form { margin: 0 0 .75rem; }
label { display: block; margin: 0 0 .3rem; font-weight: 600; font-size: .92rem; }
input[type=text] { width: 100%; min-height: 2.9rem; margin: 0 0 1rem; padding: .5rem .75rem; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft); border-radius: 9px; }
button, a.button { position: relative; display: block; width: 100%; min-height: 2.9rem; padding: .65rem 2rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer; color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: 9px; }
button.plain, a.plain { color: var(--ink); background: transparent; border-color: var(--soft); }
button + button, a.button + a.button { margin-top: .6rem; }
button:focus-visible, a:focus-visible, input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.code { position: absolute; inset-inline-end: 1rem; top: 50%; translate: 0 -50%; font-weight: 400; font-size: .8rem; opacity: .8; }
fieldset { margin: 0 0 1rem; padding: 0; border: 0; }
legend { padding: 0; margin-bottom: .4rem; color: var(--soft); font-size: .92rem; }
.choice { display: flex; gap: .6rem; align-items: baseline; padding: .35rem 0; font-weight: 400; font-size: 1rem; margin: 0; }
.choice input { accent-color: var(--accent); }
.wait { width: 2rem; height: 2rem; margin: 0 0 1rem; border: 3px solid var(--line); border-top-color: var(--accent); border-radius: 50%; animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .wait { animation: none; } }
iframe { position: absolute; width: 0; height: 0; border: 0; }
@media (max-width: 30rem) { body { background: var(--paper); } main { width: 100%; margin: 0; border: 0; } }
`
