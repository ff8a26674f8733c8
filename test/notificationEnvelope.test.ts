// What a notification says and how it is put on the wire: cipher, signature, envelope, what is left out.
import assert from 'node:assert/strict'
import { createCipheriv } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { decrypt, encrypt } from '../src/notifications/cipher.ts'
import { envelope, onTheWire, testNotification } from '../src/notifications/notification.ts'
import { isSigned, signature, signingSecret } from '../src/notifications/signature.ts'

const secret = Buffer.from('000102030405060708090A0B0C0D0E0F'.repeat(2), 'hex')

test('the cipher gives the vectors of the live platform, byte for byte', () => {
  const vectors = [
    {
      iv: '3D575574536D450F71AC76D8',
      tag: '19FDD068C6F383C173D3A906F7BD1D83',
      body: 'F8E2F759E528CB69375E51DB2AF9B53734E393',
      text: '{"type": "PAYMENT"}',
    },
    {
      iv: '0'.repeat(24),
      tag: 'CE573FB7A41AB78E743180DC83FF09BD',
      body: '0A3471C72D9BE49A8520F79C66BBD9A12FF9',
      text: '{"type":"PAYMENT"}',
    },
  ]
  for (const { text, ...sealed } of vectors) {
    assert.deepEqual(encrypt(secret, Buffer.from(sealed.iv, 'hex'), text), sealed)
    assert.equal(decrypt(secret, sealed), text)
  }
})

test('what was changed, cut or made with another secret does not decrypt', () => {
  const sealed = encrypt(secret, Buffer.alloc(12, 7), '{"type":"PAYMENT"}')
  const flipped = (hex: string) => (hex[0] === '0' ? '1' : '0') + hex.slice(1)
  assert.equal(decrypt(secret, sealed), '{"type":"PAYMENT"}')
  assert.equal(decrypt(Buffer.alloc(32), sealed), undefined)
  assert.equal(decrypt(secret, { ...sealed, body: flipped(sealed.body) }), undefined)
  assert.equal(decrypt(secret, { ...sealed, tag: flipped(sealed.tag) }), undefined)
  assert.equal(decrypt(secret, { ...sealed, iv: flipped(sealed.iv) }), undefined)
  // A tag of four bytes is a valid GCM tag of that length, and is refused all the same.
  const cipher = createCipheriv('aes-256-gcm', secret, Buffer.alloc(12, 7), { authTagLength: 4 })
  const body = Buffer.concat([cipher.update('x'), cipher.final()]).toString('hex')
  assert.equal(decrypt(secret, { iv: sealed.iv, tag: cipher.getAuthTag().toString('hex'), body }), undefined)
})

test('any text comes back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.uint8Array({ minLength: 12, maxLength: 12 }), (text, iv) => {
      assert.equal(decrypt(secret, encrypt(secret, Buffer.from(iv), text)), Buffer.from(text).toString())
    }),
    { numRuns: 50 },
  )
})

test('the signature gives the vector of Standard Webhooks, and every valid secret signs', () => {
  const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const [id, seconds, body] = ['msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}']
  assert.equal(signature([key], id, seconds, body), 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  const both = signature([secret, key], id, seconds, body)
  assert.ok(isSigned(key, id, seconds, body, both, seconds))
  assert.ok(isSigned(secret, id, seconds, body, both, seconds + 300))
  assert.equal(isSigned(secret, id, seconds, body, both, seconds + 301), false)
  assert.equal(isSigned(secret, id, seconds, `${body} `, both, seconds), false)
  assert.equal(isSigned(secret, id, seconds, body, signature([key], id, seconds, body), seconds), false)
  assert.equal(signingSecret(key), 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
})

const answer = {
  id: 'a'.repeat(32),
  paymentType: 'CP',
  referencedId: 'b'.repeat(32),
  amount: '92.00',
  currency: 'EUR',
  result: { code: '000.100.110', description: 'ok' },
  resultDetails: { ExtendedDescription: 'Approved', TAXID: '12345678909' },
  card: { bin: '420000', last4Digits: '0000', holder: 'Jane Jones', expiryMonth: '05', expiryYear: '2034' },
  customer: { givenName: 'Jane', email: 'jane@example.com' },
  billing: { city: 'Munich' },
  shipping: { customer: { givenName: 'Joe' } },
  customParameters: { CUSTOM_CPF_number: '12345678909' },
  buildNumber: 'build',
  timestamp: '2026-01-01 00:00:00+0000',
  ndc: 'ndc',
}

test('the payload is the answer; amount and currency stand in it and beside it once more', () => {
  const { type, action, payload, ...beside } = JSON.parse(
    envelope({ type: 'PAYMENT', action: null, payload: JSON.stringify(answer) }, 'all'),
  )
  const presented = { presentationAmount: '92.00', presentationCurrency: 'EUR' }
  assert.deepEqual([type, action, beside], ['PAYMENT', undefined, presented])
  assert.deepEqual(payload, { ...answer, ...presented })
  const updated = JSON.parse(envelope({ type: 'PAYMENT', action: 'UPDATED', payload: '{"id":"1"}' }, 'all'))
  assert.deepEqual(updated, { type: 'PAYMENT', action: 'UPDATED', payload: { id: '1' } })
})

test('a free key named __proto__ stays data', () => {
  const text = '{"id":"1","customParameters":{"__proto__":"x"}}'
  assert.equal(envelope({ type: 'PAYMENT', action: null, payload: text }, 'all'), `{"type":"PAYMENT","payload":${text}}`)
})

test('without customer data nothing is left that says who paid', () => {
  const text = envelope({ type: 'PAYMENT', action: null, payload: JSON.stringify(answer) }, 'withoutCustomerData')
  for (const personal of ['Jane', 'Joe', 'Munich', 'example.com', '12345678909']) assert.ok(!text.includes(personal), personal)
  const { payload } = JSON.parse(text)
  assert.deepEqual(payload.card, { bin: '420000', last4Digits: '0000', expiryMonth: '05', expiryYear: '2034' })
  for (const name of ['id', 'referencedId', 'amount', 'presentationAmount', 'result', 'ndc', 'timestamp'])
    assert.ok(payload[name] !== undefined, name)
})

test('the three wrappings, and the test notification', () => {
  const sending = { id: '1', sequence: 7, attempt: 1, seconds: 1, secrets: [secret], iv: Buffer.alloc(12, 1) }
  const none = onTheWire(testNotification, { ...sending, wrapper: 'none' })
  assert.equal(none.headers['Content-Type'], 'text/plain; charset=UTF-8')
  assert.match(none.body, /^[0-9A-F]{348}$/) // the length that the live platform's test notification has
  const json = onTheWire(testNotification, { ...sending, wrapper: 'json' })
  assert.equal(json.headers['Content-Type'], 'application/json; charset=UTF-8')
  assert.deepEqual(JSON.parse(json.body), { encryptedBody: none.body })
  assert.match(json.headers['X-Initialization-Vector']!, /^[0-9A-F]{24}$/)
  assert.match(json.headers['X-Authentication-Tag']!, /^[0-9A-F]{32}$/)
  const plain = onTheWire(testNotification, { ...sending, wrapper: 'plain' })
  assert.equal(plain.body, testNotification)
  assert.equal(plain.headers['X-Initialization-Vector'], undefined)
  assert.ok(isSigned(secret, '1', 1, plain.body, plain.headers['webhook-signature']!, 1))
  assert.equal(plain.headers['X-Notification-Sequence'], '7')
})

test('while two secrets are valid, each attempt takes the other one', () => {
  const next = Buffer.alloc(32, 9)
  const sealedWith = (attempt: number) => {
    const wired = onTheWire('{}', {
      id: '1',
      sequence: 1,
      attempt,
      seconds: 1,
      wrapper: 'none',
      secrets: [secret, next],
      iv: Buffer.alloc(12, attempt),
    })
    const sealed = {
      iv: wired.headers['X-Initialization-Vector']!,
      tag: wired.headers['X-Authentication-Tag']!,
      body: wired.body,
    }
    return [secret, next].findIndex(key => decrypt(key, sealed) === '{}')
  }
  assert.deepEqual([1, 2, 3, 4].map(sealedWith), [0, 1, 0, 1])
})
