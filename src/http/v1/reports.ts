// The request functions of the settlement reports: sums by day, and the records of one of them, as JSON or as a file.

import type { Mode } from '../../connectors/connector.ts'
import type { ParameterError } from '../../contract/formCheck.ts'
import { limits } from '../../contract/limits.ts'
import { pageSize } from '../../contract/parameters/query.ts'
import type { Values } from '../../contract/parameters/table.ts'
import {
  type AggregationKey,
  aggregationRecord,
  movementRecord,
  readAggregationId,
} from '../../reporting/settlement/aggregation.ts'
import { aggregationsFile, movementsFile } from '../../reporting/settlement/files.ts'
import { makeReports, type ReportRefusal, type Reports, spanError, spanOf } from '../../reporting/settlement/reports.ts'
import type { MovementRow, ReportScope } from '../../reporting/settlement/store.ts'
import { aged, fileAnswer, type HttpAnswer, type Request, resultAnswer } from '../answer.ts'
import type { Caller } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import type { RequestFunction, Route } from '../router.ts'
import { type Admission, admitRead } from './admission.ts'
import { inList } from './searches.ts'

const aggregationsPath = 'reconciliations/aggregations'

export function reportRoutes(admission: Admission): Route[] {
  const reports = makeReports(admission.parts)
  const route = (path: string, answer: RequestFunction): Route => ({
    method: 'GET',
    path: `/reports/${path}`,
    callers: 'token',
    answer: async (request, named) => aged(admission.parts, await answer(request, named)),
  })
  return [
    route(`v1/${aggregationsPath}`, listAggregations(admission, reports)),
    route(`v1/${aggregationsPath}/{id}`, allRecords(admission, reports)),
    route(`v2/${aggregationsPath}/{id}`, recordPage(admission, reports)),
  ]
}

const listAggregations =
  (admission: Admission, reports: Reports): RequestFunction =>
  async request => {
    const { parts } = admission
    const admitted = admitRead(admission, request, admission.checks.report, 'report')
    if (!('caller' in admitted)) return admitted
    const { caller, values } = admitted
    const [from, to] = [values.get('date.from')!, values.get('date.to')!]
    const wrong = spanError(from, to)
    if (wrong) return refused(parts, request, caller, 'invalidParameter', wrong)
    const scope = { ...entityOf(caller), mode: modeOf(parts, caller, values) }
    const found = await reports.aggregations(caller.token.id, scope, spanOf(from, to, values.get('currency')))
    if (typeof found === 'string') return refused(parts, request, caller, found)
    if (asksForFile(request)) return fileAnswer(aggregationsFile(parts.keys, scope, from, to, found))
    const aggregations = found.map(one => aggregationRecord(parts.keys, scope, one))
    return resultAnswer(parts, request, 200, 'requestSucceeded', { entityId: caller.entityId, more: { aggregations } })
  }

const allRecords =
  (admission: Admission, reports: Reports): RequestFunction =>
  async (request, { id = '' }) => {
    const asked = await openAggregation(admission, reports, request, id)
    if (!('key' in asked)) return asked
    const { caller, scope, key, order } = asked
    const portions = reports.records(caller.token.id, scope, key, order)
    if (asksForFile(request)) return fileAnswer(movementsFile(key, portions))
    return { status: 200, body: inList('records', jsonTexts(portions), asked.rest()) }
  }

const recordPage =
  (admission: Admission, reports: Reports): RequestFunction =>
  async (request, { id = '' }) => {
    const { parts } = admission
    const asked = await openAggregation(admission, reports, request, id)
    if (!('key' in asked)) return asked
    const { caller, scope, key, order, count, pageNo } = asked
    if ((pageNo - 1) * pageSize >= limits.searchReach)
      return refused(parts, request, caller, 'invalidParameter', {
        name: 'pageNo',
        message: `leads beyond the first ${limits.searchReach} records: /reports/v1 lists them all`,
      })
    const rows = await reports.page(caller.token.id, scope, key, order, pageNo)
    if (typeof rows === 'string') return refused(parts, request, caller, rows)
    if (asksForFile(request)) return fileAnswer(movementsFile(key, [rows]))
    const pages = String(Math.max(1, Math.ceil(count / pageSize)))
    return { status: 200, body: `{"records":${JSON.stringify(rows.map(movementRecord))},${asked.rest({ pages }).slice(1)}` }
  }

type OpenAggregation = {
  readonly caller: Caller
  readonly scope: ReportScope
  readonly key: AggregationKey
  readonly order: { readonly type: string | undefined; readonly newestFirst: boolean }
  readonly pageNo: number
  /** Records of the type asked for. */
  readonly count: number
  /** The answer without its records. */
  rest(more?: Readonly<Record<string, string>>): string
}

/** The aggregation that an id names, summed up anew. */
async function openAggregation(
  admission: Admission,
  reports: Reports,
  request: Request,
  id: string,
): Promise<OpenAggregation | HttpAnswer> {
  const { parts } = admission
  const admitted = await admitRead(admission, request, admission.checks.reportDetail, 'report')
  if (!('caller' in admitted)) return admitted
  const { caller, values } = admitted
  const named = readAggregationId(parts.keys, entityOf(caller), id)
  if (!named) return refused(parts, request, caller, 'transactionNotFound')
  const { scope, key } = named
  const found = await reports.aggregations(caller.token.id, scope, spanOf(key.day, key.day, key.currency))
  if (typeof found === 'string') return refused(parts, request, caller, found)
  const aggregation = found[0]
  if (!aggregation) return refused(parts, request, caller, 'transactionNotFound')
  if (aggregation.sums.archived > 0) return refused(parts, request, caller, 'recordsArchived')
  const type = values.get('reconciliationType')
  return {
    caller,
    scope,
    key,
    order: { type, newestFirst: values.get('sortOrder')?.toUpperCase() === 'DESC' },
    pageNo: Number(values.get('pageNo') ?? 1),
    count: [...aggregation.byType].reduce((sum, [name, { count }]) => sum + (type === undefined || name === type ? count : 0), 0),
    rest: more =>
      resultAnswer(parts, request, 200, 'requestSucceeded', {
        entityId: caller.entityId,
        more: { ...more, aggregation: aggregationRecord(parts.keys, scope, aggregation) },
      }).body,
  }
}

const entityOf = ({ entity, merchantId }: Caller): Omit<ReportScope, 'mode'> => ({
  merchantId,
  channelId: entity.kind === 'channel' ? entity.id : undefined,
})

/** Where none is named, a test channel reports the simulator and any other live payments (decisions, 6); a merchant goes by its channels. */
function modeOf({ directory }: HttpParts, { entity }: Caller, values: Values): Mode {
  const asked = values.get('testMode')
  if (asked !== undefined) return asked.toLowerCase() as Mode
  const channels = entity.kind === 'channel' ? [entity] : directory.channels().filter(one => one.merchantId === entity.id)
  return channels.some(({ settings }) => settings.mode === 'live') ? 'live' : 'internal'
}

const refused = (
  parts: HttpParts,
  request: Request,
  { entityId, token }: Caller,
  name: ReportRefusal | 'invalidParameter' | 'transactionNotFound' | 'recordsArchived',
  ...parameterErrors: ParameterError[]
): HttpAnswer =>
  name === 'tooManySearches'
    ? resultAnswer(parts, request, 429, name, { entityId, tokenId: token.id, headers: { 'Retry-After': '5' } })
    : resultAnswer(parts, request, 400, name, { entityId, parameterErrors })

const asksForFile = ({ headers }: Request): boolean => /^text\/csv\b/i.test(headers.accept ?? '')

async function* jsonTexts(portions: AsyncIterable<readonly MovementRow[]>): AsyncGenerator<string> {
  let comma = ''
  for await (const rows of portions) {
    yield comma + rows.map(row => JSON.stringify(movementRecord(row))).join(',')
    comma = ','
  }
}
