// Names of parameters are a type: what is mistyped does not compile, and what the table has does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ParameterName, Values } from '../src/contract/parameters/table.ts'

test('a mistyped name does not compile', () => {
  const values: Values = new Map([['customer.email', 'jane@example.com']])
  assert.equal(values.get('customer.email'), 'jane@example.com')
  // @ts-expect-error: e-mail is written otherwise
  assert.equal(values.get('customer.eMail'), undefined)
  // @ts-expect-error: an index is a number
  assert.equal(values.get('cart.items[n].price'), undefined)
  // @ts-expect-error: a group by itself is no name
  assert.equal(values.get('customer'), undefined)
  const names: readonly ParameterName[] = [
    'cart.items[0].price',
    'airline.passengers[12].legs[3].taxAmount',
    'customParameters[SHOPPER_x]',
    'shipping.customer.givenName',
    'overridePaymentType[VISA]',
  ]
  assert.equal(names.length, 5)
})
