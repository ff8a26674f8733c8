// What reads and reports take in the query string.

import { AN, oneWordOf, reportDate, reportTime, shaped } from '../formats.ts'
import { limits } from '../limits.ts'
import type { Parameters } from './parameter.ts'

const listOf = (label: string, word: string, ...more: string[]) =>
  shaped(`${label}, separated by commas`, `^${word}(,${word})*$`, ['PA', 'PA,CP', ...more], ['', 'PA,', 'pa;cp'])

/** Records on a page of a search that names no limit. */
export const pageSize = 100

const pageNumber = shaped('1 to 999999', '^[1-9][0-9]{0,5}$', ['1', '999999'], ['0', '1000000', 'x'])

/** How a record of the settlement reports is called by what moved its money. */
export const reconciliationTypes = ['SETTLED', 'FEE', 'CHARGEBACK', 'CHARGEBACK REVERSAL'] as const

/** Of the settlement reports. */
export const reporting = {
  'date.from':          { format: reportDate, needed: 'always, except for one aggregation' },
  'date.to':            { format: reportDate, needed: 'together with date.from', note: `At most ${limits.reportDays} days, both counted.` },
  'reconciliationType': { format: oneWordOf(...reconciliationTypes), note: 'FEE has no records: the gateway knows no fees.' },
  'sortValue':          { format: oneWordOf('SettlementTxDate') },
  'sortOrder':          { format: { ...oneWordOf('ASC', 'DESC', 'asc', 'desc'), fails: ['Asc', 'ASCX'] }, note: 'ASC when absent: the oldest first.' },
  'pageNo':             { format: pageNumber, note: `Begins at 1. A page has ${pageSize} records.` },
} satisfies Parameters

export const query = {
  'date.from':                 { format: reportTime, needed: 'without id and merchantTransactionId' },
  'date.to':                   { format: reportTime, needed: 'together with date.from' },
  'merchantTransactionId':     { format: AN(255) },
  'paymentTypes':              { format: listOf('payment types', '([A-Z]{2}|3D|PA\\.CP)', '3D', 'PA.CP,RF'), note: 'PA.CP stands for both of its records, PA and CP; 3D for authentications without a payment.' },
  'paymentMethods':            { format: listOf('payment methods (CC cards, VA accounts, PP slips, OT transfers)', '[A-Z]{2}') },
  'includeLinkedTransactions': { format: oneWordOf('true', 'false') },
  'limit':                     { format: shaped('1 to 500', '^([1-9][0-9]?|[1-4][0-9]{2}|500)$', ['1', '500'], ['0', '501', '-1', 'x']), note: `Records on a page; ${pageSize} when absent.` },
  'pageNo':                    { format: pageNumber, note: `Begins at 1. A search reaches its first ${limits.searchReach} records.` },
} satisfies Parameters
