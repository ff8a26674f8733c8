// The frame around every page of the back office: menu, language, who is signed in; on a phone the menu folds. No page needs a script to be used.

import type { SignedIn } from '../../staff/sessions.ts'
import { type Html, html, trusted } from '../html.ts'
import { menuFor } from './navigation.ts'
import { officeStyle } from './style.ts'
import { frameWords, type OfficeLanguage, officeLanguages, officeLocales } from './words.ts'

/** What a page of the office gives; route.ts puts it into the frame. */
export type OfficePage = {
  readonly title: string
  readonly body: Html
  /** 200 when absent. */
  readonly status?: number
  /** Of our own, run with the nonce of the page. */
  readonly script?: string
  /** Beside that of the frame. */
  readonly style?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly string[]
}

/** For whom and where a page is shown. `path`: without the query. */
export type OfficeLook = {
  readonly language: OfficeLanguage
  readonly nonce: string
  readonly path: string
  readonly sandbox: boolean
  readonly signedIn?: SignedIn
}

export function officeFrame({ title, body, script, style = '' }: OfficePage, look: OfficeLook): string {
  const { language, nonce, path, sandbox, signedIn } = look
  const words = frameWords(language)
  return html`<!doctype html>
<html lang="${officeLocales[language]}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>${title} · Tollgate</title>
<style nonce="${nonce}">${trusted(officeStyle + style)}</style>
</head>
<body>
<a class="skip" href="#content">${words.skip}</a>
${sandbox && html`<p class="notice" role="note">${words.sandbox}</p>`}
<header class="top">
<a class="brand" href="/office">Tollgate</a>
<div class="who">
${
  signedIn &&
  html`<a href="/office/account"><bdi>${signedIn.name}</bdi><span class="role">${words[`role_${signedIn.role}`]}</span></a>
<form method="post" action="/office/sign-out"><button class="quiet">${words.signOut}</button></form>`
}
</div>
${signedIn && menuOf(signedIn, look)}
</header>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${body}
</main>
<footer>${languageForm(language, path, words.language)}</footer>
${script !== undefined && html`<script nonce="${nonce}">${trusted(script)}</script>`}
</body>
</html>
`.html
}

function menuOf(signedIn: SignedIn, { language, path, sandbox }: OfficeLook): Html {
  const words = frameWords(language)
  const items = menuFor(signedIn, sandbox).map(entry => {
    const address = `/office${entry.path}`
    const isHere = path === address || (entry.path !== '' && path.startsWith(`${address}/`))
    return html`<li><a href="${address}"${isHere && html` aria-current="page"`}>${words[entry.word]}</a></li>`
  })
  return html`<details class="menu"><summary>${words.menu}</summary><nav aria-label="${words.menu}"><ul>${items}</ul></nav></details>
<nav class="wide" aria-label="${words.menu}"><ul>${items}</ul></nav>`
}

const languageForm = (language: OfficeLanguage, path: string, name: string): Html =>
  html`<form method="post" action="/office/language" aria-label="${name}"><input type="hidden" name="to" value="${path}">
${Object.entries(officeLanguages).map(
  ([code, own]) =>
    html`<button class="quiet" name="language" value="${code}" lang="${code}"${code === language && html` aria-pressed="true"`}>${own}</button>`,
)}</form>`

/** Everything comes from this page itself; forms go to this host alone, and nobody shows the page in a frame. */
export const officeHeaders = (nonce: string): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html;charset=UTF-8',
  'Content-Security-Policy': [
    `default-src 'none'`,
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `img-src 'self' data:`,
    `connect-src 'self'`,
    `form-action 'self'`,
    `base-uri 'none'`,
    `frame-ancestors 'none'`,
  ].join('; '),
  ...privateHeaders,
})

/** Of whatever the office answers. Our own pages see where a request came from: without HTTPS a browser tells no more. */
export const privateHeaders: Readonly<Record<string, string>> = {
  'Cache-Control': 'private, no-store',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
}
