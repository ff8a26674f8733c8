// The customer, and the customer of the shipping address: the same fields but the browser fingerprint.

import { AN, anyText, date, oneWordOf, phone, prose } from '../formats.ts'
import type { Parameter, Parameters } from './parameter.ts'

const named = 'if any other customer field is sent'
const together = 'together with the other identificationDoc field'

const person = {
  'merchantCustomerId':    { format: AN(255), echo: true, descriptive: true, cardNumbers: 'byChance' },
  'givenName':             { format: anyText, truncate: 48, echo: true, descriptive: true },
  'middleName':            { format: AN(50, 2), echo: true, descriptive: true },
  'surname':               { format: anyText, truncate: 48, echo: true, descriptive: true },
  'birthDate':             { format: date, echo: true, descriptive: true },
  'phone':                 { format: phone, echo: true, descriptive: true, cardNumbers: 'byChance' },
  'mobile':                { format: phone, echo: true, descriptive: true, cardNumbers: 'byChance' },
  'workPhone':             { format: AN(25), echo: true, descriptive: true, cardNumbers: 'byChance' },
  'email':                 { format: AN(128, 6), echo: true, descriptive: true, note: 'Some risk checks and direct-debit mandates need it.' },
  'companyName':           { format: AN(60), echo: true, descriptive: true },
  'identificationDocType': { format: oneWordOf('IDCARD', 'PASSPORT', 'TAXSTATEMENT'), echo: true, descriptive: true },
  'identificationDocId':   { format: AN(64, 8), echo: true, descriptive: true, cardNumbers: 'byChance' },
  'ip':                    { format: AN(255), echo: true, descriptive: true },
  'status':                { format: oneWordOf('NEW', 'EXISTING'), echo: true, descriptive: true },
} satisfies Parameters

const conditions: Readonly<Record<string, string>> = {
  givenName: named, surname: named, identificationDocType: together, identificationDocId: together,
}

export const customer = {
  ...prefixed('customer.', person, conditions),
  'customer.browserFingerprint.id':    { format: AN(255), keep: true, descriptive: true, cardNumbers: 'byChance' },
  'customer.browserFingerprint.value': { format: prose(4096), keep: true, descriptive: true, cardNumbers: 'byChance' },
} satisfies Parameters

export const shippingCustomer = prefixed('shipping.customer.', person, {})

function prefixed<Prefix extends string, Name extends string>(
  prefix: Prefix,
  rows: Parameters<Name>,
  needed: Readonly<Record<string, string>>,
): Parameters<`${Prefix}${Name}`> {
  const named: Record<string, Parameter> = {}
  for (const [name, row] of Object.entries<Parameter>(rows)) {
    named[prefix + name] = needed[name] === undefined ? row : { ...row, needed: needed[name] }
  }
  return named as Parameters<`${Prefix}${Name}`>
}
