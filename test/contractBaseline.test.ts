// The interface only grows (decisions, 32): nothing that the frozen baseline has may disappear, and no format may become tighter.
// A change that is meant renews the baseline: `npm run generate -- --baseline`.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { openApi } from '../src/contract/openapi.ts'
import { operations } from '../src/contract/operations.ts'
import { systemClock } from '../src/platform/clock.ts'
import type { Gateway } from '../src/start/assemble.ts'
import { routesOf } from '../src/start/routes.ts'
import { breaks } from './support/compatibility.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document that each case changes in one place
type Document = any
const document = (): Document => structuredClone(openApi())
const otherFields: Readonly<Record<string, readonly string[]>> = {
  '/sandbox/clock': ['entityId', 'advance'],
  '/payment/query': ['load'],
  '/sandbox/notifications': ['entityId', 'name', 'after', 'wait'],
}
const baseline = JSON.parse(readFileSync(new URL('./baseline/openapi.json', import.meta.url), 'utf8'))

test('what the baseline has is still there, and no format is tighter', () => {
  assert.deepEqual(breaks(baseline, openApi()), [])
})

test('every reference of the document leads somewhere', () => {
  const text = JSON.stringify(openApi())
  const schemas = new Set(Object.keys(document().components.schemas))
  const named = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!)
  assert.ok(named.length > 0)
  assert.deepEqual(
    named.filter(name => !schemas.has(name)),
    [],
  )
})

test('every route is described, and nothing else', () => {
  // What stands below /r/ is for browsers and other servers: docs/reference/redirects.md. The payment form is for browsers: docs/hosted-form.md. So
  // are the pages of slips, those for developers and the back office; /openapi.json is this document.
  const served = routesOf({ sandbox: true, database: {}, clock: systemClock } as unknown as Gateway, [])
    .map(({ method, path }) => `${method} ${path}`)
    .filter(route => !/ \/($|r\/|pay\/|slip\/|office|v1\/(form|static)\/|v1\/paymentWidgets|docs\/|openapi\.json)/.test(route))
  assert.deepEqual(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort(), served.sort())
})

test('the document says what a generator of clients needs', () => {
  const { paths, components } = document()
  for (const [path, methods] of Object.entries<Document>(paths))
    for (const [method, { responses, requestBody }] of Object.entries<Document>(methods)) {
      for (const status of [405, 408, 431]) assert.ok(responses[status], `${status} of ${method} ${path}`)
      const form = requestBody?.content['application/x-www-form-urlencoded'].schema
      assert.equal(form !== undefined, method === 'post', path)
      if (form?.properties) assert.deepEqual(Object.keys(form.properties), otherFields[path])
    }
  assert.doesNotMatch(JSON.stringify(components), /anyOf|oneOf/)
  assert.ok(components.schemas.PaymentOrError.properties.card.properties.bin)
  assert.deepEqual(components.schemas.PaymentOrError.required, ['result', 'buildNumber', 'timestamp', 'ndc'])
})

describe('the comparison sees', () => {
  const group = (made: Document, name: string) => made.components.schemas[`parameters.${name}`]
  const tighter: readonly (readonly [what: string, change: (made: Document) => void])[] = [
    ['a path that is gone', made => delete made.paths['/v1/query/{id}']],
    ['a status that is gone', made => delete made.paths['/v1/payments'].post.responses[200]],
    ['a parameter of a form that is gone', made => delete group(made, 'card').properties['card.holder']],
    ['a parameter of a query that is gone', made => made.paths['/v3/query'].get.parameters.pop()],
    [
      'a group that is gone',
      made => made.paths['/v1/payments'].post.requestBody.content['application/x-www-form-urlencoded'].schema.allOf.pop(),
    ],
    ['a field of an answer that is gone', made => delete made.components.schemas.Payment.properties.card.properties.bin],
    ['a shorter maximum', made => Object.assign(group(made, 'card').properties['card.holder'], { maxLength: 127 })],
    ['a longer minimum', made => Object.assign(group(made, 'card').properties['card.holder'], { minLength: 4 })],
    ['other characters', made => Object.assign(group(made, 'card').properties['card.holder'], { pattern: '^[a-z]{3,128}$' })],
    ['a word that is gone', made => made.components.schemas['parameters.common'].properties.testMode.enum.pop()],
    [
      'a free value that became a list of words',
      made => Object.assign(group(made, 'common').properties.descriptor, { enum: ['a'] }),
    ],
    [
      'a parameter that became required',
      made =>
        made.paths['/v1/payments'].post.requestBody.content['application/x-www-form-urlencoded'].schema.required.push(
          'card.holder',
        ),
    ],
    [
      'a new parameter of a query that is required',
      made => made.paths['/v3/query'].get.parameters.push({ name: 'new', required: true }),
    ],
    ['a field that is not promised any more', made => made.components.schemas.Payment.required.shift()],
  ]
  for (const [what, change] of tighter) {
    test(what, () => {
      const changed = document()
      change(changed)
      assert.equal(breaks(document(), changed).length, 1)
    })
  }

  const wider: readonly (readonly [what: string, change: (made: Document) => void])[] = [
    ['a new path', made => Object.assign(made.paths, { '/v9': { get: {} } })],
    ['a new parameter', made => Object.assign(group(made, 'card').properties, { 'card.new': { type: 'string', maxLength: 5 } })],
    ['other words in a description', made => Object.assign(group(made, 'card').properties['card.holder'], { description: 'x' })],
    ['a new word', made => made.components.schemas['parameters.common'].properties.testMode.enum.push('OTHER')],
    [
      'wider lengths',
      made => Object.assign(group(made, 'card').properties['card.cvv'], { maxLength: 5, minLength: 2, pattern: '^[0-9]{2,5}$' }),
    ],
    [
      'a parameter that is not required any more',
      made => made.paths['/v1/payments'].post.requestBody.content['application/x-www-form-urlencoded'].schema.required.pop(),
    ],
    ['a new promise', made => made.components.schemas.Payment.required.push('amount')],
  ]
  for (const [what, change] of wider) {
    test(`no break in ${what}`, () => {
      const changed = document()
      change(changed)
      assert.deepEqual(breaks(document(), changed), [])
    })
  }
})
