// The settlement reports as pages: days summed up, the movements behind a day, and both as files. The same figures as the interface gives.

import { record } from '../../../audit/chain.ts'
import type { Mode } from '../../../connectors/connector.ts'
import { signedAmountText } from '../../../contract/amounts.ts'
import { isCalendarDay } from '../../../contract/formats.ts'
import { pageSize, reconciliationTypes } from '../../../contract/parameters/query.ts'
import { fileAnswer } from '../../../http/answer.ts'
import { inTransaction } from '../../../platform/database/connect.ts'
import { directRecordsMost } from '../../../reporting/exports/export.ts'
import type { ExportSource } from '../../../reporting/exports/source.ts'
import { type Aggregation, aggregationId, readAggregationId } from '../../../reporting/settlement/aggregation.ts'
import { aggregationsFile, movementsFile } from '../../../reporting/settlement/files.ts'
import { makeReports, type Reports, spanError, spanOf } from '../../../reporting/settlement/reports.ts'
import type { MovementRow, ReportScope } from '../../../reporting/settlement/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { beginExport, exportFirst } from '../exports/ask.ts'
import { choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficePage } from '../frame.ts'
import type { OfficeParts } from '../parts.ts'
import type { OfficeAnswer, OfficeRequest, OfficeRoute } from '../route.ts'
import { frameWords, momentText } from '../words.ts'
import { reportWords } from './words.ts'

export function reportPages(parts: OfficeParts): OfficeRoute[] {
  const reports = makeReports(parts)
  return [
    {
      method: 'GET',
      path: '/reports',
      lags: true,
      action: 'readReports',
      answer: (request, signedIn) => daysPage(parts, reports, request, signedIn),
    },
    {
      method: 'GET',
      path: '/reports/{entity}/file',
      action: 'export',
      givesFile: true,
      answer: (request, signedIn, { entity = '' }) => daysFile(parts, reports, request, signedIn, entity),
    },
    {
      method: 'GET',
      path: '/reports/{entity}/{aggregation}',
      lags: true,
      action: 'readReports',
      answer: (request, signedIn, { entity = '', aggregation = '' }) =>
        movementsPage(parts, reports, request, signedIn, entity, aggregation),
    },
    {
      method: 'GET',
      path: '/reports/{entity}/{aggregation}/file',
      action: 'export',
      givesFile: true,
      answer: (request, signedIn, { entity = '', aggregation = '' }) =>
        movementsAsFile(parts, reports, request, signedIn, entity, aggregation),
    },
    {
      method: 'POST',
      path: '/reports/{entity}/{aggregation}/file',
      action: 'export',
      counted: true,
      answer: (request, signedIn, { entity = '', aggregation = '' }) =>
        exportMovements(parts, reports, request, signedIn, entity, aggregation),
    },
  ]
}

/** What a report is asked for, as the address says it; the last week where it says nothing. */
type Asked = { readonly from: string; readonly to: string; readonly currency: string; readonly mode: Mode }

const weekMilliseconds = 6 * 86_400_000
export const modesOf = ({ sandbox }: OfficeParts): readonly Mode[] => (sandbox ? ['internal', 'external'] : ['live', 'internal'])

function askedOf(parts: OfficeParts, { values }: OfficeRequest, merchantId: string): Asked {
  const today = parts.directory.businessTime(merchantId)
  const day = (name: string, otherwise: number) => {
    const given = values.get(name) ?? ''
    return /^(19|20)\d\d-\d\d-\d\d$/.test(given) && isCalendarDay(given) ? given : new Date(otherwise).toISOString().slice(0, 10)
  }
  const currency = values.get('currency') ?? ''
  const modes = modesOf(parts)
  return {
    from: day('from', today - weekMilliseconds),
    to: day('to', today),
    currency: /^[A-Z]{3}$/.test(currency) ? currency : '',
    mode: modes.find(one => one === values.get('mode')) ?? modes[0]!,
  }
}

/** Merchants and channels have reports, all else is made of those. */
function scopeOf({ directory }: OfficeParts, entityId: string, mode: Mode): ReportScope | undefined {
  const entity = directory.entity(entityId)
  if (entity?.kind === 'merchant') return { merchantId: entity.id, mode }
  return entity?.kind === 'channel' ? { merchantId: entity.merchantId, channelId: entity.id, mode } : undefined
}

const nothingHere = ({ language }: OfficeRequest): OfficePage => {
  const { notFound, notFoundText } = frameWords(language)
  return { status: 404, title: notFound, body: html`<p>${notFoundText}</p>` }
}

async function daysPage(
  parts: OfficeParts,
  reports: Reports,
  request: OfficeRequest,
  { merchants, reaches, sessionId, may }: SignedIn,
): Promise<OfficePage> {
  const { language, values } = request
  const words = reportWords(language)
  const title = frameWords(language).reports
  const wanted = values.get('entity') ?? ''
  const entityId = reaches(wanted) && scopeOf(parts, wanted, 'live') ? wanted : merchants[0]
  if (entityId === undefined) return { title, body: message(words.noEntity) }
  const merchantId = scopeOf(parts, entityId, 'live')!.merchantId
  const asked = askedOf(parts, request, merchantId)
  const scope = scopeOf(parts, entityId, asked.mode)!
  const wrong = spanError(asked.from, asked.to)
  const found = wrong
    ? []
    : await reports.aggregations(sessionId, scope, spanOf(asked.from, asked.to, asked.currency || undefined))
  const address = `/office/reports/${entityId}`
  const query = new URLSearchParams(asked).toString()
  return {
    title,
    ...(wrong && { status: 400 }),
    body: html`<form class="line" method="get" action="/office/reports">
${choiceField('entity', words.entity, entitiesOf(parts, merchants), entityId)}
${field({ name: 'from', label: words.from, type: 'date', value: asked.from })}
${field({ name: 'to', label: words.to, type: 'date', value: asked.to })}
${field({ name: 'currency', label: words.currency, value: asked.currency, isOptional: true })}
${choiceField(
  'mode',
  words.mode,
  modesOf(parts).map((mode): [string, string] => [mode, words[mode]]),
  asked.mode,
)}
<div class="field"><button>${words.show}</button></div></form>
${wrong && message(fill(words.wrongDays, { why: `${wrong.name} ${wrong.message}` }), 'wrong')}
${typeof found === 'string' ? message(words.tooMany, 'wrong') : found.length === 0 ? !wrong && html`<p>${words.none}</p>` : daysTable(parts, request, scope, found, address)}
${typeof found !== 'string' && found.length > 0 && may('export') && html`<p><a class="button plain" href="${address}/file?${query}">${words.file}</a></p>`}`,
  }
}

function entitiesOf({ directory }: OfficeParts, merchants: readonly string[]): [string, string][] {
  return merchants.flatMap((id): [string, string][] => [
    [id, directory.entity(id)?.name ?? id],
    ...directory.below([id]).flatMap((one): [string, string][] => (one.kind === 'channel' ? [[one.id, `– ${one.name}`]] : [])),
  ])
}

const numbers = (text: string): Html => html`<span class="code whole">${text}</span>`

function daysTable(
  { keys }: OfficeParts,
  { language }: OfficeRequest,
  scope: ReportScope,
  found: readonly Aggregation[],
  address: string,
): Html {
  const words = reportWords(language)
  return tableOf(
    words.settlement,
    [words.day, words.currency, words.type, words.count, words.credit, words.debit, words.amount, words.matched],
    found.flatMap(one => {
      const link = `${address}/${aggregationId(keys, scope, one)}`
      return [...one.byType].map(([type, { count, matched, credit, debit }]) => {
        const figure = (text: string) =>
          html`<a class="code whole" href="${link}?${new URLSearchParams({ type }).toString()}">${text}</a>`
        return [
          one.day,
          one.currency,
          words[type],
          figure(String(count)),
          figure(signedAmountText(credit)),
          figure(signedAmountText(debit)),
          figure(signedAmountText(credit - debit)),
          figure(`${matched} / ${count}`),
        ]
      })
    }),
  )
}

type OpenDay = {
  readonly scope: ReportScope
  readonly aggregation: Aggregation
  /** One of the reconciliation types, or nothing for all. */
  readonly type: (typeof reconciliationTypes)[number] | undefined
  readonly count: number
}

/** The aggregation that an address names, if it was made for this entity. */
async function openDay(
  parts: OfficeParts,
  reports: Reports,
  { values }: OfficeRequest,
  { sessionId }: SignedIn,
  entityId: string,
  id: string,
): Promise<OpenDay | 'tooMany' | 'archived' | undefined> {
  const entity = scopeOf(parts, entityId, 'live')
  const named = entity && readAggregationId(parts.keys, entity, id)
  if (!named) return undefined
  const { scope, key } = named
  const found = await reports.aggregations(sessionId, scope, spanOf(key.day, key.day, key.currency))
  if (typeof found === 'string') return 'tooMany'
  const aggregation = found[0]
  if (aggregation && aggregation.sums.archived > 0) return 'archived'
  const type = reconciliationTypes.find(one => one === values.get('type'))
  const count = type === undefined ? aggregation?.sums.count : aggregation?.byType.get(type)?.count
  return aggregation && { scope, aggregation, type, count: count ?? 0 }
}

async function movementsPage(
  parts: OfficeParts,
  reports: Reports,
  request: OfficeRequest,
  signedIn: SignedIn,
  entityId: string,
  id: string,
): Promise<OfficePage> {
  const { language, values, path } = request
  const words = reportWords(language)
  const open = await openDay(parts, reports, request, signedIn, entityId, id)
  if (open === undefined) return nothingHere(request)
  const busy = { title: frameWords(language).reports, status: 429, body: message(words.tooMany, 'wrong') }
  if (open === 'tooMany') return busy
  if (open === 'archived') return { title: frameWords(language).reports, body: message(words.archived) }
  const { scope, aggregation, type, count } = open
  const pages = Math.max(1, Math.ceil(count / pageSize))
  const page = Math.min(pages, Math.max(1, Number(values.get('page')) || 1))
  const rows = await reports.page(signedIn.sessionId, scope, aggregation, { type, newestFirst: false }, page)
  if (typeof rows === 'string') return busy
  const query = (more: Readonly<Record<string, string>>) => new URLSearchParams({ ...(type && { type }), ...more }).toString()
  const { day, currency } = aggregation
  return {
    title: fill(words.records, { day, currency }),
    body: html`<p><a href="/office/reports?${new URLSearchParams({ entity: entityId, from: day, to: day, mode: scope.mode }).toString()}">${words.back}</a></p>
<p>${[...reconciliationTypes.filter(one => aggregation.byType.has(one)), undefined].map(
      one =>
        html`<a class="button plain" href="${path}${one !== undefined && html`?${new URLSearchParams({ type: one }).toString()}`}"${
          one === type && html` aria-current="true"`
        }>${one === undefined ? words.everything : words[one]}</a> `,
    )}</p>
${tableOf(
  words.settlement,
  [words.time, words.type, words.payment, words.order, words.moved, words.status],
  rows.map(row => [
    momentText(language, row.bookedAt),
    `${row.type} ${row.brand ?? ''}`,
    html`<a href="/office/payments/${scope.merchantId}/${row.id}">${row.id}</a>`,
    row.merchantTransactionId ?? '',
    numbers(`${signedAmountText(row.amount)} ${row.currency}`),
    statusOf(row, words),
  ]),
)}
<p>${fill(words.page, { page: String(page), pages: String(pages) })}
${page > 1 && html`<a class="button plain" href="${path}?${query({ page: String(page - 1) })}">${words.newer}</a>`}
${page < pages && html`<a class="button plain" href="${path}?${query({ page: String(page + 1) })}">${words.older}</a>`}</p>
${signedIn.may('export') && html`<p><a class="button plain" href="${path}/file?${query({})}">${words.file}</a></p>`}`,
  }
}

const statusOf = ({ matched, settledOn, acquirer }: MovementRow, words: ReturnType<typeof reportWords>): string => {
  if (!matched) return words.isNot
  return settledOn === null ? words.isMatched : fill(words.yes, { day: settledOn, acquirer: acquirer! })
}

async function daysFile(
  parts: OfficeParts,
  reports: Reports,
  request: OfficeRequest,
  signedIn: SignedIn,
  entityId: string,
): Promise<OfficeAnswer> {
  const entity = scopeOf(parts, entityId, 'live')
  if (!entity) return nothingHere(request)
  const { from, to, currency, mode } = askedOf(parts, request, entity.merchantId)
  const scope = { ...entity, mode }
  const found = spanError(from, to)
    ? []
    : await reports.aggregations(signedIn.sessionId, scope, spanOf(from, to, currency || undefined))
  if (typeof found === 'string') return { title: '', status: 429, body: message(reportWords(request.language).tooMany, 'wrong') }
  await tellOfFile(parts, signedIn, entityId, { from, to, mode })
  return fileAnswer(aggregationsFile(parts.keys, scope, from, to, found))
}

async function movementsAsFile(
  parts: OfficeParts,
  reports: Reports,
  request: OfficeRequest,
  signedIn: SignedIn,
  entityId: string,
  id: string,
): Promise<OfficeAnswer> {
  const open = await openDay(parts, reports, request, signedIn, entityId, id)
  if (open === undefined || typeof open === 'string') return nothingHere(request)
  const { scope, aggregation, type, count } = open
  if (count > directRecordsMost) return exportFirst(request.language, request.path, type === undefined ? {} : { type })
  const { day } = aggregation
  await tellOfFile(parts, signedIn, entityId, { from: day, to: day, mode: scope.mode })
  const rows = reports.records(signedIn.sessionId, scope, aggregation, { type, newestFirst: false })
  return fileAnswer(movementsFile(aggregation, rows))
}

async function exportMovements(
  parts: OfficeParts,
  reports: Reports,
  request: OfficeRequest,
  signedIn: SignedIn,
  entityId: string,
  id: string,
): Promise<OfficeAnswer> {
  const open = await openDay(parts, reports, request, signedIn, entityId, id)
  if (open === undefined || typeof open === 'string') return nothingHere(request)
  const { scope, aggregation, type, count } = open
  const { day, currency } = aggregation
  const source: ExportSource = { kind: 'movements', scope, key: { day, currency }, type, count }
  const name = `settlement-${day}-${currency}.csv`
  const details = { entity: entityId, mode: scope.mode }
  return beginExport(parts, signedIn, request.language, name, [scope.merchantId], source, details)
}

/** Before the first byte leaves: who took what away. */
const tellOfFile = (
  parts: OfficeParts,
  { by }: SignedIn,
  entityId: string,
  details: Readonly<Record<string, string>>,
): Promise<number> =>
  inTransaction(parts.database.work, db => record(db, parts, [{ actor: by, action: 'reportTaken', entityId, details }]))
