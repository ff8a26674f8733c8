// A route of the back office is a record, and what stands around every answer stands here: is it one of our own pages that asks, who is signed in, may
// that role do it, is the entity within reach, were both factors proven just now. What answers knows all of that already.

import { Dismissed } from '../../audit/dismissed.ts'
import { shortenCards } from '../../contract/cardNumbers.ts'
import type { Form } from '../../contract/form.ts'
import { parseUrl } from '../../contract/url.ts'
import { type HttpAnswer, type Request, takeBody } from '../../http/answer.ts'
import { sentForm } from '../../http/authenticate.ts'
import { cookieOf, setCookie } from '../../http/cookies.ts'
import { noteFailure } from '../../http/failure.ts'
import { isForeign } from '../../http/host.ts'
import { type MultipartForm, readMultipart, type UploadedFile } from '../../http/multipart.ts'
import { type PathValues, plainPath, type Route } from '../../http/router.ts'
import { NotBegun, turnsOfPeople } from '../../merchants/turns.ts'
import { turnedOutToBe } from '../../platform/database/fairPool.ts'
import { lagSeconds, ReportingAway, toldLagSeconds } from '../../platform/database/reporting.ts'
import { browserDays } from '../../staff/browsers.ts'
import type { StaffAction } from '../../staff/permissions.ts'
import { type BegunSession, findSignedIn, type SignedIn } from '../../staff/sessions.ts'
import { html } from '../html.ts'
import { fill } from '../languages/texts.ts'
import { message } from './fields.ts'
import { type OfficePage, officeFrame, officeHeaders, privateHeaders } from './frame.ts'
import type { OfficeParts } from './parts.ts'
import { frameWords, type OfficeLanguage, officeLanguage } from './words.ts'

/** What is known of a request before anybody reads what it sends: strangers send much. */
type UnreadRequest = Request & { readonly language: OfficeLanguage }
/** A request as pages are given it: with what its query (GET) or its form (POST) says, decoded, and the language of the reader. */
export type OfficeRequest = UnreadRequest & {
  readonly values: URLSearchParams
  /** By the name of their field; none where the route takes none. */
  readonly files: ReadonlyMap<string, UploadedFile>
}
/** A page, or whatever else: a redirect, a file, a stream. */
export type OfficeAnswer = OfficePage | HttpAnswer

type OfficePlace = {
  readonly method: 'GET' | 'POST'
  /** Below /office, or where `top` says so. `{entity}` names an entity: who does not reach it gets the answer of one that there is not. */
  readonly path: string
  /** The path is not below /office. */
  readonly top?: true
  /** Its form brings files: of what is no such form nothing is read. */
  readonly takesFiles?: true
  readonly bodyMax?: number
  /** What is sent is taken as it is: settings, passwords. Everywhere else card numbers are shortened before anybody reads them, or writes them down. */
  readonly exact?: true
  readonly usesUp?: true
  readonly admits?: Route['admits']
  /** A GET that gives a file, and tells the audit who took it: no page of others leads there. */
  readonly givesFile?: true
}

export type OfficeRoute = OfficePlace & {
  /** Of staff/permissions.ts. */
  readonly action: StaffAction
  /** For those alone who act for a PSP: it shows what belongs to no merchant, or to all. */
  readonly whole?: true
  /** It shows what is read in the reporting database: where that is behind, the page says so. */
  readonly lags?: true
  /** Pages ask for it by themselves: it does not keep a session alive. */
  readonly live?: true
  /** Both factors must have been proven in the last minutes; else they are asked for first. */
  readonly proven?: true
  /** It adds to what there may be so many of: those who act for the same take turns. */
  readonly counted?: true
  answer(request: OfficeRequest, signedIn: SignedIn, named: PathValues): OfficeAnswer | Promise<OfficeAnswer>
}

/** What somebody sees who is not signed in yet. */
export type OpenRoute = OfficePlace & {
  answer(request: OfficeRequest, named: PathValues): OfficeAnswer | Promise<OfficeAnswer>
}

export function officeRoute(parts: OfficeParts, route: OfficeRoute): Route {
  const inTurn = turnsOfPeople(parts.clock)
  const isAllowed = (signedIn: SignedIn) => signedIn.may(route.action) && (!route.whole || signedIn.isWhole)
  /** Files are large: those of strangers are not read. */
  const admits = async (request: Request): Promise<string | undefined> => {
    const session = sessionOf(parts, request)
    if (session === '' || !isOurPage(parts, request) || !mayBegin(parts, request, `session ${session}`)) return undefined
    const signedIn = await signedInOf(parts, request, false)
    return signedIn && isAllowed(signedIn) ? personOf(signedIn) : undefined
  }
  return placed(parts, { ...route, ...(route.takesFiles && { admits }) }, async (request, named, read) => {
    const words = frameWords(request.language)
    const session = sessionOf(parts, request)
    // Counted before the database is asked whose it is; and then again, because nobody may do more for having several.
    if (session !== '' && !mayBegin(parts, request, `session ${session}`)) return { answer: tooManyAtOnce(request.language) }
    const signedIn = await signedInOf(parts, request, route.live !== true)
    if (!signedIn) return signInFirst(request)
    const person = `person ${personOf(signedIn)}`
    turnedOutToBe(person)
    if (!mayBegin(parts, request, person)) return { answer: tooManyAtOnce(request.language), signedIn }
    const page = (status: number, title: string, text: string): Framed => ({
      answer: { status, title, body: html`<p>${text}</p>` },
      signedIn,
    })
    const role = words[`role_${signedIn.role}`]
    if (!isAllowed(signedIn)) return page(403, words.forbidden, fill(words.forbiddenText, { role }))
    if (named.entity !== undefined && !signedIn.reaches(named.entity)) return { answer: nothingHere(request.language), signedIn }
    if (route.proven && !signedIn.isProven) return { answer: proveFirst(parts, request) }
    try {
      // What was sent is looked through: in turns, as what callers of the interface send.
      const work = async () => route.answer(await request.inTurn(read), signedIn, named)
      const answer = await (route.counted ? inTurn(person, [...signedIn.entities].sort().join(), work) : work())
      if (isFile(answer) && !route.givesFile) throw new Error(`${route.path} gives a file, and does not say so`)
      return { answer: route.lags ? withAge(parts, request.language, answer) : answer, signedIn }
    } catch (error) {
      if (error instanceof Dismissed) return { answer: accessEnded(request.language) }
      if (error instanceof NotBegun) {
        noteFailure(parts, request, route.path, error)
        return { answer: tooManyAtOnce(request.language), signedIn }
      }
      if (!(error instanceof ReportingAway)) throw error
      return { answer: awayPage(request.language), signedIn }
    }
  })
}

/** Whoever came by the link of a sandbox is nobody of the staff. */
export const personOf = ({ staffId, sessionId }: SignedIn): string => staffId ?? sessionId

/** Requests of one person that are under way at a time. A browser asks for a page and, seldom, for something beside it. */
export const personRequestsMost = 8

const mayBegin = ({ officeUnderWay }: OfficeParts, request: Request, key: string): boolean =>
  officeUnderWay(request, key, personRequestsMost)

const tooManyAtOnce = (language: OfficeLanguage): OfficePage => ({
  status: 429,
  title: frameWords(language).tooMany,
  body: html`<p>${frameWords(language).tooManyText}</p>`,
  headers: { 'Retry-After': '1' },
})

/** Who was dismissed, given another role or signed out while the request was under way. */
const accessEnded = (language: OfficeLanguage): OfficePage => {
  const { accessEnded, accessEndedText, signIn } = frameWords(language)
  const body = html`<p>${accessEndedText}</p><p><a class="button" href="/office/sign-in">${signIn}</a></p>`
  return { status: 403, title: accessEnded, body }
}

const awayPage = (language: OfficeLanguage): OfficePage => ({
  status: 503,
  title: frameWords(language).away,
  body: html`<p>${frameWords(language).awayText}</p>`,
  headers: { 'Retry-After': '5' },
})

function withAge({ database, clock }: OfficeParts, language: OfficeLanguage, answer: OfficeAnswer): OfficeAnswer {
  const seconds = lagSeconds(database.reporting, clock.real()) ?? 0
  if (!('title' in answer) || seconds <= toldLagSeconds) return answer
  return { ...answer, body: html`${message(fill(frameWords(language).old, { seconds: String(seconds) }))}${answer.body}` }
}

/** Of a form: what people write, and what their authenticators say. */
export const formBodyMax = 32 * 1024

/** Names, passwords, the page that was wanted. */
const openBodyMax = 8 * 1024

export const openRoute = (parts: OfficeParts, route: OpenRoute): Route =>
  // Nothing of it is kept; and strangers send no more than what is asked for.
  placed(parts, { bodyMax: openBodyMax, ...route, exact: true }, async (_, named, read) => ({
    answer: await route.answer(read(), named),
  }))

type Framed = { readonly answer: OfficeAnswer; readonly signedIn?: SignedIn }

function placed(
  parts: OfficeParts,
  { method, path, top, takesFiles, exact, bodyMax = formBodyMax, usesUp, admits, givesFile }: OfficePlace,
  answer: (request: UnreadRequest, named: PathValues, read: () => OfficeRequest) => Promise<Framed>,
): Route {
  if (method === 'GET' && fileName.test(path) !== (givesFile === true))
    throw new Error(`${path} is named as a file is, and gives none, or the other way round`)
  return {
    method,
    path: top ? path : `/office${path}`,
    callers: 'anyone',
    ...(takesFiles && { body: 'anything' }),
    bodyMax,
    ...(admits && { admits }),
    ...((usesUp || givesFile) && { usesUp: true }), // nobody who only looks whether there is a file has taken it
    async answer(request, named) {
      const language = officeLanguage(cookieOf(request, languageName), request.headers['accept-language'])
      const show = ({ answer, signedIn }: Framed) => shown(parts, answer, request, language, signedIn)
      const words = frameWords(language)
      if (request.method === 'POST' ? !isOurPage(parts, request) : givesFile && isLinkOfOthers(request))
        return show({ answer: { status: 403, title: words.foreign, body: html`<p>${words.foreignText}</p>` } })
      const unread = { ...request, language }
      const read = () => {
        const shortened = (text: string) => shortenCards(text, parts.cardBrands)
        const { pairs, files } = takesFiles ? filesIn(request, shortened) : { pairs: pairsIn(request), files: new Map() }
        // No database keeps a NUL: without it first, or what it parts would come together afterwards.
        const plain = pairs.map(([name, value]): [string, string] => [name, value.replaceAll('\0', '')])
        const values = plain.map(([name, value]): [string, string] => [name, exact ? value : shortened(value)])
        return { ...unread, values: new URLSearchParams(values), files }
      }
      return show(await answer(unread, named, read))
    },
  }
}

function pairsIn(request: Request): Form['pairs'] {
  const form = sentForm(request)
  return form === 'tooManyParameters' ? [] : form.pairs
}

/** Names of files are texts of people too. */
function filesIn(request: Request, shortened: (text: string) => string): MultipartForm {
  const form = readMultipart(request.headers['content-type'] ?? '', takeBody(request)) ?? { pairs: [], files: new Map() }
  return { ...form, files: new Map([...form.files].map(([field, file]) => [field, { ...file, name: shortened(file.name) }])) }
}

function shown(
  { random, sandbox }: OfficeParts,
  answer: OfficeAnswer,
  { path }: Request,
  language: OfficeLanguage,
  signedIn: SignedIn | undefined,
): HttpAnswer {
  if (!('title' in answer)) return { ...answer, headers: { ...dataHeaders, ...answer.headers } }
  const nonce = random.bytes(16).toString('base64')
  const body = officeFrame(answer, { language, nonce, path, sandbox, ...(signedIn && { signedIn }) })
  const { status = 200, headers, cookies = [] } = answer
  return { status, body, cookies, headers: { ...officeHeaders(nonce), ...headers } }
}

/**
 * Browsers say where a request comes from (Fetch Metadata); those that do not, or not without HTTPS, send an Origin with every POST. Our pages for shoppers are of
 * the same origin, and lead wherever a shop or another side says: they have no referrer, and so no Origin but `null`.
 */
function isOurPage({ publicUrl }: OfficeParts, request: Request): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (origin === undefined || origin === 'null') return false
  return site === undefined ? !isForeign(request, publicUrl()) : site === 'same-origin'
}

/** Does a page of the office lead here, `page` or one below it? Only these say by a Referer which they are. A browser that does not say where a link comes from is believed. */
export function isLedBy({ headers }: Pick<Request, 'headers'>, page = '/office'): boolean {
  const { referer, 'sec-fetch-site': site } = headers
  if (site === undefined) return true
  return site === 'same-origin' && `${parseUrl(referer ?? '')?.pathname}/`.startsWith(`${page}/`)
}

/** What is typed or bookmarked comes from `none`. A browser that says nothing sends its session with links, as to every page. */
const isLinkOfOthers = (request: Request): boolean => request.headers['sec-fetch-site'] !== 'none' && !isLedBy(request)

const isFile = (answer: OfficeAnswer): boolean => !('title' in answer) && answer.headers?.['Content-Disposition'] !== undefined

export const signedInOf = (parts: OfficeParts, request: Request, isUse: boolean): Promise<SignedIn | undefined> =>
  findSignedIn(parts, sessionOf(parts, request), request.address, isUse)

export const sessionOf = (parts: OfficeParts, request: Request): string => cookieOf(request, ownCookie(parts, 'office')) ?? ''

/** What the browser was given when somebody signed in there before. */
export const browserCookieOf = (parts: OfficeParts, request: Request): string =>
  cookieOf(request, ownCookie(parts, 'browser')) ?? ''

/** A page is led to the door; what a script or a form sent is told. */
function signInFirst(request: UnreadRequest): Framed {
  const { method, headers, language } = request
  const words = frameWords(language)
  const isPage = method === 'GET' && (headers['sec-fetch-dest'] ?? 'document') === 'document'
  if (isPage) return { answer: doorTo('sign-in', askedFor(request)) }
  const body = html`<p>${words.signedOutText}</p><p><a class="button" href="/office/sign-in">${words.signIn}</a></p>`
  return { answer: { status: 401, title: words.signedOut, body } }
}

/** Both factors first, then back to the page: that of a form, when it was one. Whatever a form said is said again there. */
export function proveFirst({ publicUrl }: OfficeParts, request: Request): HttpAnswer {
  const from = parseUrl(request.headers.referer ?? '', publicUrl())
  const page = from === null ? '/office' : from.pathname + from.search
  return doorTo('prove', request.method === 'GET' ? askedFor(request) : page)
}

const askedFor = ({ path, query }: Pick<Request, 'path' | 'query'>): string => (query === '' ? path : `${path}?${query}`)

/** A page that leads back to `to`. */
const doorTo = (page: 'sign-in' | 'prove', to: string): HttpAnswer =>
  goTo(`/office/${page}?${new URLSearchParams({ to: ownPath(to) })}`)

/** What a file is named by. The audit tells who took one: no door leads there, because whoever came to the door may have followed a link of others. */
const fileName = /(?:\/file|\.csv)\/*$/

/** A page of our own, named by its path; anything else, which could lead to another host, becomes the first page. So does what is long where it is named in an address:
 * a proxy that has no room for a head so large takes the gateway for a server that is down. */
export const ownPath = (to: string | null): string =>
  to !== null &&
  new URLSearchParams({ to }).toString().length <= 2000 &&
  /^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/.test(to) &&
  isPageOfOffice(plainPath(new URL(to, 'http://office').pathname))
    ? to
    : '/office'

/** Pages for shoppers, of the same origin, lead wherever a shop says; links that sign somebody in are for whom they were made. */
const isPageOfOffice = (path: string): boolean =>
  /^\/(office(\/(?!enter\/)|$)|docs\/|openapi\.json$)/.test(path) && !fileName.test(path)

/** Sends the browser on inside the office. */
export const goTo = (path: string, cookies: readonly string[] = []): HttpAnswer => ({
  status: 303,
  body: '',
  cookies,
  headers: { ...privateHeaders, Location: path, 'Content-Type': 'text/plain' },
})

const isSecure = ({ publicUrl }: OfficeParts): boolean => publicUrl().startsWith('https:')

/** Under HTTPS with the prefix that lets no other host or path set one. */
const ownCookie = (parts: OfficeParts, name: 'office' | 'browser'): string =>
  `${isSecure(parts) ? '__Host-' : ''}tollgate_${name}`
const languageName = 'tollgate_language'

/** Of what there is not, and of what belongs to others. */
export const nothingHere = (language: OfficeLanguage): OfficePage => {
  const { notFound, notFoundText } = frameWords(language)
  return { status: 404, title: notFound, body: html`<p>${notFoundText}</p>` }
}

/** Data, where it is not said what it is, is what the interface answers too. */
const dataHeaders = {
  'Content-Type': 'application/json;charset=UTF-8',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  ...privateHeaders,
}

/** Gives the browser a session, or takes it away; in which somebody signed in, it is known by the other one for a time. */
export function sessionCookies(parts: OfficeParts, begun: BegunSession | undefined): readonly string[] {
  const cookie = (name: 'office' | 'browser', value: string, lasting: { seconds?: number } = {}) =>
    setCookie(ownCookie(parts, name), value, { path: '/', isSecure: isSecure(parts), ...lasting })
  if (!begun) return [cookie('office', '', { seconds: 0 })]
  const { token, browser } = begun
  return [
    cookie('office', token),
    ...(browser === undefined ? [] : [cookie('browser', browser, { seconds: browserDays * 86_400 })]),
  ]
}

export const languageCookie = (parts: OfficeParts, language: OfficeLanguage): string =>
  setCookie(languageName, language, { path: '/', seconds: 365 * 86_400, isSecure: isSecure(parts) })
