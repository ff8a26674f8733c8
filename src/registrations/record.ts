// A registration as JSON: what answers, readings and notifications show.

import { successOf } from '../connectors/registry.ts'
import { emptyNested, type Nested, put } from '../contract/nested.ts'
import { lookup, type Values } from '../contract/parameters/table.ts'
import { requests } from '../contract/requests.ts'
import { type ResultName, results } from '../contract/results/results.ts'
import type { RegistrationRecord } from '../payments/initial/register.ts'
import { plainRecord } from '../payments/read/record.ts'
import type { Registration } from './store.ts'

const find = lookup(requests.payment.groups)

/** What the shopper gave, without anything secret. */
export const detailsOf = ({ record }: Pick<Registration, 'record'>): Values =>
  new Map((JSON.parse(record) as RegistrationRecord).fields) as Values

/** `ndc`: of the request that reads it; that of its making when absent. */
export function registrationRecord(
  registration: Registration,
  build: string,
  now: number,
  ndc?: string,
  result: ResultName = successOf[registration.mode],
): Nested {
  const { id, brand, record, networkTransactionId } = registration
  const made = JSON.parse(record) as RegistrationRecord
  const echo = emptyNested()
  for (const [name, value] of made.fields) {
    const known = find(name)
    if (known?.parameter.echo) put(echo, known.path, value)
  }
  const { card, ...structures } = echo
  const details = { ...made.card, ...(card as Nested | undefined) }
  return plainRecord(results[result], build, now, ndc ?? made.ndc, {
    id,
    paymentBrand: brand,
    ...(Object.keys(details).length > 0 && { card: details }),
    ...structures,
    ...(networkTransactionId !== null && { standingInstruction: { initialTransactionId: networkTransactionId } }),
  })
}
