// A payment as JSON. Built from the parameter table: what is echoed stands there, not here.

import type { Structures } from '../../connectors/connector.ts'
import { amountText } from '../../contract/amounts.ts'
import { maskCardNumbers, shownDigits } from '../../contract/cardNumbers.ts'
import type { ParameterError } from '../../contract/formCheck.ts'
import { emptyNested, type Nested, type NestedValue, put } from '../../contract/nested.ts'
import { lookup } from '../../contract/parameters/table.ts'
import { requests } from '../../contract/requests.ts'
import { isGood, type Result } from '../../contract/results/results.ts'
import { wireTime } from '../../platform/clock.ts'
import type { Payment } from '../payment.ts'
import { writtenTexts } from './written.ts'

/** What an answer says beyond the payment itself. */
export type RecordOutcome = {
  readonly result: Result
  readonly details?: Readonly<Record<string, string>>
  readonly avsResponse?: string
  readonly cvvResponse?: string
  readonly riskScore?: string
  readonly parameterErrors?: readonly ParameterError[]
  /** Filled by the method; they stand beside what is echoed under the same name. */
  readonly structures?: Structures
  readonly redirect?: Nested
}

const find = lookup(requests.payment.groups)

/** The build that answers, the same on every answer of one build. */
export type Build = string

/** Amounts are echoed with two decimals however they came. */
const isAmount = (row: string) => row === 'amount'

export function paymentRecord(payment: Payment, outcome: RecordOutcome, build: Build, now: number): Nested {
  const echo = emptyNested()
  for (const [name, value] of payment.record.fields) {
    const known = find(name)
    if (known?.parameter.echo && !isAmount(known.row)) put(echo, known.path, value)
  }
  const registration = toldRegistration(payment, outcome)
  const { paymentBrand, descriptor, merchantTransactionId, merchantInvoiceId, transactionCategory, card, ...structures } = echo
  const body: { [name: string]: NestedValue | undefined } = {
    id: payment.id,
    registrationId: registration,
    referencedId: payment.referenceId,
    paymentType: payment.type,
    paymentBrand: payment.brand ?? paymentBrand,
    amount: amountText(payment.amount),
    currency: payment.currency,
    descriptor,
    merchantTransactionId,
    merchantInvoiceId,
    transactionCategory,
    result: resultOf(outcome),
    resultDetails: outcome.details && writtenTexts(outcome.details),
    card: cardOf(payment, card as Nested | undefined),
    risk: riskOf(payment, outcome),
  }
  delete structures.paymentType
  delete structures.currency
  for (const [structure, filled] of Object.entries(outcome.structures ?? {}))
    for (const [name, value] of Object.entries(writtenTexts(filled))) put(structures, [...structure.split('.'), name], value)
  if (registration !== undefined) structures.registration = { id: registration }
  return withFooter(
    { ...body, ...structures, ...(outcome.redirect && { redirect: outcome.redirect }) } as Nested,
    build,
    now,
    payment.record.ndc,
  )
}

/** An answer that is no payment: errors, lists, anything with a result. */
export function plainRecord(
  result: Result,
  build: Build,
  now: number,
  ndc: string,
  more: Nested = {},
  parameterErrors?: readonly ParameterError[],
): Nested {
  return withFooter({ ...more, result: resultOf({ result, ...(parameterErrors && { parameterErrors }) }) }, build, now, ndc)
}

function withFooter(body: Nested, build: Build, now: number, ndc: string): Nested {
  body.buildNumber = build
  body.timestamp = wireTime(now)
  body.ndc = ndc
  return body
}

function resultOf({ result, avsResponse, cvvResponse, parameterErrors }: RecordOutcome): Nested {
  const said: Nested = { code: result.code, description: result.description }
  if (avsResponse !== undefined) said.avsResponse = avsResponse
  if (cvvResponse !== undefined) said.cvvResponse = cvvResponse
  if (parameterErrors && parameterErrors.length > 0)
    // A name can be what somebody typed: a free key, or what stood in a URL.
    said.parameterErrors = parameterErrors.map(error => ({ ...error, name: maskCardNumbers(error.name) }))
  return said
}

/** In place of the number. */
export function maskedCard(number: string): { bin?: string; last4Digits: string } {
  const { first, last } = shownDigits(number)
  return { ...(first !== '' && { bin: first }), last4Digits: last }
}

/** The score of our own check stands before that of the other side. */
function riskOf({ record }: Payment, { riskScore }: RecordOutcome): Nested | undefined {
  const score = record.risk?.score ?? riskScore
  return score === undefined ? undefined : { score }
}

/** Clients read it at the top, the interface names it in a structure. One that was made in vain is not told. */
const toldRegistration = ({ record }: Payment, { result }: RecordOutcome): string | undefined =>
  record.registration?.made && !isGood(result.outcome) ? undefined : record.registration?.id

function cardOf({ record }: Payment, echoed: Nested | undefined): Nested | undefined {
  return record.card || echoed ? { ...record.card, ...echoed } : undefined
}
