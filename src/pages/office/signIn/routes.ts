// Coming in and going out: signing in with both factors at once, the link that sets them, the door of a sandbox, proving oneself again.

import type { NotProven } from '../../../staff/factors.ts'
import { enterSandbox, findInvitation, useInvitation } from '../../../staff/links.ts'
import { proveByPasskey, signInByPasskey } from '../../../staff/passkeys/passkeys.ts'
import { listPasskeys } from '../../../staff/passkeys/store.ts'
import { passwordLeast } from '../../../staff/password.ts'
import { endOwnSession, proveAgain, type SignedIn, signIn, type Visitor } from '../../../staff/sessions.ts'
import { base32, totpAddress } from '../../../staff/totp.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { qrCode } from '../../qrCode.ts'
import { field, message } from '../fields.ts'
import type { OfficePage } from '../frame.ts'
import { menuFor } from '../navigation.ts'
import type { OfficeParts } from '../parts.ts'
import { askForm, passkeyWords } from '../passkeyForm.ts'
import {
  browserCookieOf,
  formBodyMax,
  goTo,
  languageCookie,
  nothingHere,
  type OfficeRequest,
  type OfficeRoute,
  type OpenRoute,
  ownPath,
  sessionCookies,
  sessionOf,
  signedInOf,
} from '../route.ts'
import { officeLanguage } from '../words.ts'
import { signInWords } from './words.ts'

export function openRoutes(parts: OfficeParts): OpenRoute[] {
  return [
    {
      method: 'GET',
      path: '/sign-in',
      answer: async request =>
        (await signedInOf(parts, request, true)) ? goTo(ownPath(request.values.get('to'))) : signInPage(parts, request),
    },
    {
      method: 'POST',
      path: '/sign-in',
      async answer(request) {
        const { values } = request
        const factors = { name: values.get('name') ?? '', ...factorsOf(values) }
        const signed = await signIn(parts, factors, visitorOf(parts, request))
        if (typeof signed === 'string') return signInPage(parts, request, signed)
        return goTo(ownPath(values.get('to')), sessionCookies(parts, signed))
      },
    },
    {
      method: 'POST',
      path: '/sign-in/passkey',
      bodyMax: formBodyMax,
      async answer(request) {
        const { values } = request
        const signed = await signInByPasskey(parts, values.get('credential') ?? '', visitorOf(parts, request))
        if (signed === 'wrong') return signInPage(parts, request, signed, passkeyWords(request.language).wrong)
        if (typeof signed === 'string') return signInPage(parts, request, signed)
        return goTo(ownPath(values.get('to')), sessionCookies(parts, signed))
      },
    },
    {
      method: 'GET',
      path: '/enter/{token}',
      usesUp: true,
      async answer(request, { token = '' }) {
        const words = signInWords(request.language)
        const session = await enterSandbox(parts, token, visitorOf(parts, request))
        if (session) return goTo('/office', sessionCookies(parts, session))
        return { status: 410, title: words.linkGone, body: html`<p>${words.enterGone}</p>` }
      },
    },
    { method: 'GET', path: '/invitation/{token}', answer: (request, { token = '' }) => invitation(parts, request, token) },
    {
      method: 'POST',
      path: '/invitation/{token}',
      async answer(request, { token = '' }) {
        const { password, code } = factorsOf(request.values)
        const used = await useInvitation(parts, token, password, code, visitorOf(parts, request))
        if (typeof used !== 'string') return recoveryPage(request, used.recovery, sessionCookies(parts, used.session))
        const words = signInWords(request.language)
        const wrong =
          used === 'gone' ? undefined : used === 'code' ? words.badCode : fill(words[used], { least: String(passwordLeast) })
        return invitation(parts, request, token, wrong)
      },
    },
    {
      method: 'POST',
      path: '/language',
      answer: ({ values }) =>
        goTo(ownPath(values.get('to')), [languageCookie(parts, officeLanguage(values.get('language') ?? undefined))]),
    },
  ]
}

export function sessionRoutes(parts: OfficeParts): OfficeRoute[] {
  return [
    {
      method: 'GET',
      path: '',
      action: 'own',
      answer: (_, signedIn) => goTo(`/office${menuFor(signedIn, parts.sandbox)[0]?.path ?? '/account'}`),
    },
    {
      method: 'POST',
      path: '/sign-out',
      action: 'own',
      async answer(_, signedIn) {
        await endOwnSession(parts, signedIn, signedIn.sessionId)
        return goTo('/office/sign-in', sessionCookies(parts, undefined))
      },
    },
    { method: 'GET', path: '/prove', action: 'own', answer: (request, signedIn) => provePage(parts, request, signedIn) },
    {
      method: 'POST',
      path: '/prove/passkey',
      exact: true,
      action: 'own',
      async answer(request, signedIn) {
        const { values } = request
        const proven = await proveByPasskey(parts, signedIn, values.get('credential') ?? '')
        if (proven === 'proven') return goTo(ownPath(values.get('to')))
        const text = proven === 'wrong' ? passkeyWords(request.language).wrong : undefined
        return provePage(parts, request, signedIn, proven, text)
      },
    },
    {
      method: 'POST',
      path: '/prove',
      action: 'own',
      exact: true,
      async answer(request, signedIn) {
        const proven = await proveAgain(parts, signedIn, factorsOf(request.values), visitorOf(parts, request))
        return proven === 'proven' ? goTo(ownPath(request.values.get('to'))) : provePage(parts, request, signedIn, proven)
      },
    },
    {
      method: 'GET',
      path: '/{rest…}',
      action: 'own',
      answer: ({ language }) => nothingHere(language),
    },
  ]
}

const factorsOf = (values: URLSearchParams) => ({ password: values.get('password') ?? '', code: values.get('code') ?? '' })
const visitorOf = (parts: OfficeParts, request: OfficeRequest): Visitor => {
  const { address, headers, isGone } = request
  return {
    address,
    agent: headers['user-agent'] ?? '',
    cookie: sessionOf(parts, request),
    browser: browserCookieOf(parts, request),
    isGone,
  }
}

function signInPage(parts: OfficeParts, { values, language }: OfficeRequest, refusal?: NotProven, text?: string): OfficePage {
  const words = signInWords(language)
  // Most that are told so flood: the page is as short as it can be.
  if (refusal === 'busy') return { title: words.title, ...refusedBy.busy, body: message(words.busy, 'wrong') }
  const { form, page } = askForm(parts, language, '/office/sign-in/passkey', ownPath(values.get('to')))
  return {
    title: words.title,
    ...page,
    ...(refusal && refusedBy[refusal]),
    body: html`<div class="card narrow">
${refusal && message(text ?? words[refusal], 'wrong')}
<form method="post" action="/office/sign-in">
<input type="hidden" name="to" value="${ownPath(values.get('to'))}">
${field({ name: 'name', label: words.name, type: 'email', value: values.get('name') ?? '', autocomplete: 'username' })}
${factorFields(words)}
<button>${words.go}</button>
</form>
${form}
</div>
<p class="narrow soft">${parts.sandbox ? words.enter : words.noAccount}</p>`,
  }
}

const refusedBy: Readonly<Record<NotProven, Pick<OfficePage, 'status' | 'headers'>>> = {
  wrong: { status: 403 },
  wait: { status: 429 },
  busy: { status: 503, headers: { 'Retry-After': '5' } },
}

const factorFields = (words: ReturnType<typeof signInWords>): Html =>
  html`${field({ name: 'password', label: words.password, type: 'password', autocomplete: 'current-password' })}
${field({ name: 'code', label: words.code, hint: words.codeHint, autocomplete: 'one-time-code' })}`

async function provePage(
  parts: OfficeParts,
  { values, language }: OfficeRequest,
  { staffId }: SignedIn,
  refusal?: NotProven,
  text?: string,
): Promise<OfficePage> {
  const words = signInWords(language)
  const passkeys = staffId === null ? [] : await listPasskeys(parts.database.work, staffId)
  const asked = askForm(parts, language, '/office/prove/passkey', ownPath(values.get('to')), passkeys)
  return {
    title: words.prove,
    ...(passkeys.length > 0 && asked.page),
    ...(refusal && refusedBy[refusal]),
    body: html`<div class="card narrow">
${refusal ? message(text ?? words[refusal], 'wrong') : html`<p>${words.proveText}</p>`}
<form method="post" action="/office/prove">
<input type="hidden" name="to" value="${ownPath(values.get('to'))}">
${factorFields(words)}
<button>${words.goOn}</button>
</form>
${passkeys.length > 0 && asked.form}
</div>`,
  }
}

async function invitation(parts: OfficeParts, { language }: OfficeRequest, token: string, wrong?: string): Promise<OfficePage> {
  const words = signInWords(language)
  const found = await findInvitation(parts, token)
  if (!found) return { status: 410, title: words.linkGone, body: html`<p>${words.linkGoneText}</p>` }
  const { person, secret } = found
  const address = totpAddress(secret, `Tollgate ${new URL(parts.publicUrl()).hostname}`, person.name)
  return {
    title: words.invitation,
    ...(wrong !== undefined && (wrong === words.busy ? refusedBy.busy : { status: 400 })),
    body: html`<div class="card narrow">
${wrong === undefined ? html`<p>${fill(words.welcome, { name: person.name })}</p>` : message(wrong, 'wrong')}
<form method="post" action="/office/invitation/${token}">
<input type="hidden" name="name" value="${person.name}" autocomplete="username">
${field({
  name: 'password',
  label: words.newPassword,
  type: 'password',
  autocomplete: 'new-password',
  hint: fill(words.passwordHint, { least: String(passwordLeast) }),
})}
<p>${words.scan}</p>
<p><span class="qr">${qrCode(address)}</span></p>
<dl><dt>${words.key}</dt><dd><code id="key">${base32(secret)}</code></dd></dl>
${field({ name: 'code', label: words.codeNow, autocomplete: 'one-time-code', isNumeric: true })}
<button>${words.save}</button>
</form>
</div>`,
  }
}

function recoveryPage({ language }: OfficeRequest, codes: readonly string[], cookies: readonly string[]): OfficePage {
  const words = signInWords(language)
  return {
    title: words.done,
    cookies,
    body: html`<div class="card narrow"><h2>${words.recoveryTitle}</h2>
<p>${words.recoveryText}</p>
<pre id="recovery">${codes.join('\n')}</pre>
<p><a class="button" href="/office">${words.goOn}</a></p></div>`,
  }
}
