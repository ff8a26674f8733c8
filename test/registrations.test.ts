// Registrations: what the merchant is told, what stays and what goes, who may use them, and what the network hears of an agreement.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import type { Seed } from '../src/merchants/seed.ts'
import { decrypt } from '../src/notifications/cipher.ts'
import {
  type Body,
  eventually,
  type Fields,
  type Reply,
  sandbox,
  type TestGateway,
  testGateway,
  visa,
} from './support/gateway.ts'

const other = {
  divisionId: '8a829400000000000000000000000009',
  merchantId: '8a829400000000000000000000000001',
  entityId: '8a829400000000000000000000000002',
  secondEntityId: '8a829400000000000000000000000007',
  sisterId: '8a829400000000000000000000000005',
  sisterEntityId: '8a829400000000000000000000000006',
  userId: '8a829400000000000000000000000003',
  password: 'another-divisions-password',
}
const theirs = { Authorization: `Bearer ${legacyToken(other.userId, other.password)}` }
const narrow = { channel: 'a-token-of-one-channel-alone', merchant: 'a-token-of-one-merchant-alone' }
const channel = (id: string) => [{ id, name: 'Another', settings: { requireCvvForRegistrations: true } }]
const seed: Seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: other.divisionId,
      name: 'Another division',
      merchants: [
        {
          id: other.merchantId,
          name: 'Another merchant',
          channels: [...channel(other.entityId), ...channel(other.secondEntityId)],
        },
        { id: other.sisterId, name: 'Its sister', channels: channel(other.sisterEntityId) },
      ],
    },
  ],
  tokens: [
    { label: 'another', userId: other.userId, password: other.password, entities: [other.divisionId] },
    { label: 'of one channel', token: narrow.channel, entities: [other.entityId] },
    { label: 'of one merchant', token: narrow.merchant, entities: [other.merchantId] },
  ],
}

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ seed })
})
after(() => gateway.stop())

const store = async (fields: Fields = {}): Promise<Body> => (await gateway.pay({ createRegistration: 'true', ...fields })).body
const charge = (id: string, fields: Fields = {}, headers = {}): Promise<Reply> =>
  gateway.post(
    `/v1/registrations/${id}/payments`,
    { entityId: sandbox.entityId, paymentType: 'DB', amount: '10.00', currency: 'EUR', ...fields },
    headers,
  )

async function remove(path: string, form: Fields, headers: Record<string, string> = {}): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${gateway.baseUrl}${path}`, {
    method: 'DELETE',
    headers: { Authorization: `Bearer ${sandbox.accessToken}`, ...headers },
    body: new URLSearchParams(form),
  })
  return { status: response.status, body: await response.json() }
}

const rows = async (text: string, values: unknown[]) => (await gateway.pool.query(text, values)).rows
/** Who deleted a registration, as the audit tells it. */
const deletions = (id: string) =>
  rows(
    `select replace(entity_id::text, '-', '') as entity, actor_kind as kind, address, t.label
       from audit a left join access_tokens t on replace(t.id::text, '-', '') = a.actor where a.action = 'registrationDeleted' and a.subject = $1`,
    [id],
  )
const cards = (id: string) => rows('select erase_after::text as day from sealed_cards where payment_id = $1', [id])

/** What a reader of notifications was told of a registration, in order. */
async function told(name: string, id: string, count: number): Promise<Body[]> {
  return eventually(async () => {
    const { body } = await gateway.post('/sandbox/notifications', { entityId: sandbox.entityId, name, after: '0' })
    const found = body.notifications
      .map((one: Body) => {
        const sealed = { iv: one.headers['X-Initialization-Vector'], tag: one.headers['X-Authentication-Tag'], body: one.body }
        return JSON.parse(decrypt(Buffer.from(body.secret, 'hex'), sealed)!)
      })
      .filter((one: Body) => one.type === 'REGISTRATION' && one.payload.id === id)
    return found.length >= count && found
  }, `${count} notifications of a registration`)
}

describe('the merchant is told', () => {
  const name = 'registrations'
  before(() => gateway.post('/sandbox/notifications', { entityId: sandbox.entityId, name, after: '0' }))

  it('that one is made with a payment, and that it is deleted, in the words of its reading', async () => {
    const { registrationId: id } = await store({ 'customer.givenName': 'Jane', 'customer.surname': 'Jones' })
    const read = (await gateway.get(`/v1/registrations/${id}`, { entityId: sandbox.entityId })).body
    await remove(`/v1/registrations/${id}`, { entityId: sandbox.entityId, testMode: 'EXTERNAL' })
    const events = await told(name, id, 2)
    assert.deepEqual(
      events.map(({ action }) => action),
      ['CREATED', 'DELETED'],
    )
    const { ndc: _ndc, timestamp: _now, ...rest } = read
    const { ndc: _ndc2, timestamp: _then, ...payload } = events[0].payload
    assert.deepEqual(payload, rest)
    assert.deepEqual(rest.customer, { givenName: 'Jane', surname: 'Jones' })
  })
  it('that one is made on its own, and that its agreement has begun', async () => {
    const { body } = await gateway.post('/v1/registrations', { entityId: sandbox.entityId, ...visa })
    const begun = await charge(body.id, {
      'standingInstruction.mode': 'INITIAL',
      'standingInstruction.source': 'CIT',
      'card.cvv': '123',
    })
    const network = begun.body.standingInstruction.initialTransactionId
    assert.match(network, /^[A-Z0-9]{15}$/)
    await charge(body.id, { 'standingInstruction.mode': 'INITIAL' })
    const events = await told(name, body.id, 2)
    assert.deepEqual(
      events.map(({ action, payload }) => [action, payload.standingInstruction?.initialTransactionId]),
      [
        ['CREATED', network],
        ['UPDATED', network],
      ],
    )
    const later = await charge(body.id, { 'standingInstruction.mode': 'REPEATED', 'standingInstruction.source': 'MIT' })
    assert.equal(later.body.standingInstruction.initialTransactionId, network, 'the first agreement stays')
  })
  it('nothing of one that was made in vain', async () => {
    await store({ 'card.number': '4000000000000002' })
    const { rowCount } = await gateway.pool.query(
      `select 1 from events e join registrations r on r.id = e.payment_id where not r.usable`,
    )
    assert.equal(rowCount, 0)
    assert.ok((await rows('select 1 from registrations where not usable', [])).length > 0)
  })
})

describe('the card', () => {
  it('of a registration is kept for 14 months after it expires; one made in vain goes in days', async () => {
    const { registrationId } = await store()
    assert.deepEqual(await cards(registrationId), [{ day: '2035-07-31' }])
    await store({ 'card.number': '4000000000000002' })
    const [vain] = await rows('select id from registrations where not usable order by id desc limit 1', [])
    const [{ day }] = (await cards(vain.id)) as [{ day: string }]
    assert.ok(Date.parse(day) - Date.now() < 4 * 86_400_000, day)
  })
  it('is gone when the registration is deleted, and that of the payment is not', async () => {
    const { id, registrationId } = await store()
    assert.equal((await remove(`/v1/registrations/${registrationId}`, { entityId: sandbox.entityId })).status, 200)
    assert.deepEqual(await cards(registrationId), [])
    assert.equal((await cards(id)).length, 1)
    assert.equal((await gateway.refer(id, { paymentType: 'RF', amount: '92.00', currency: 'EUR' })).status, 200)
  })
  it('does not come back with a request that is sent again', async () => {
    const sent = { entityId: sandbox.entityId, ...visa }
    const key = { 'Idempotency-Key': 'sent-again' }
    const { id } = (await gateway.post('/v1/registrations', sent, key)).body
    await remove(`/v1/registrations/${id}`, { entityId: sandbox.entityId })
    await gateway.post('/v1/registrations', sent, key)
    assert.deepEqual(await cards(id), [])
  })
  it('is deleted once, by whoever comes first, and the audit tells by whom', async () => {
    const { registrationId } = await store()
    const both = await Promise.all(
      [1, 2].map(() => remove(`/v1/registrations/${registrationId}`, { entityId: sandbox.entityId })),
    )
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400])
    assert.equal(
      (await rows('select 1 from events where payment_id = $1 and action = $2', [registrationId, 'DELETED'])).length,
      1,
    )
    assert.deepEqual(await deletions(registrationId), [
      { entity: sandbox.entityId, kind: 'token', label: 'Sandbox', address: '127.0.0.1' },
    ])
  })
  it('is deleted without the connections of readings, however long the audit takes', async () => {
    const made = await Promise.all(Array.from({ length: 12 }, () => store()))
    const writer = await gateway.pool.connect()
    try {
      await writer.query('begin')
      await writer.query('select from audit_head for update')
      const deleted = Promise.all(
        made.map(({ registrationId }) => remove(`/v1/registrations/${registrationId}`, { entityId: sandbox.entityId })),
      )
      const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%audit_head%' and datname = current_database()`
      await eventually(async () => (await gateway.pool.query(waits)).rowCount! > 0, 'a deletion waits for the audit')
      const read = gateway.get(`/v1/registrations/${made[0]!.registrationId}`, { entityId: sandbox.entityId })
      assert.equal(await Promise.race([read.then(({ status }) => status), deleted.then(() => 'the deletions')]), 200)
      await writer.query('commit')
      assert.deepEqual([...new Set((await deleted).map(({ status }) => status))], [200])
    } finally {
      writer.release(true)
    }
  })
  it('that is kept no longer pays nothing, by its own name', async () => {
    const { registrationId } = await store()
    await gateway.pool.query('delete from sealed_cards where payment_id = $1', [registrationId])
    const { status, body } = await charge(registrationId)
    assert.deepEqual([status, body.result.code], [400, '100.150.206'])
  })
  it('leaves no hash of its number beside its digits', async () => {
    const { registrationId } = await store()
    const { body } = await gateway.post('/v1/registrations', { entityId: sandbox.entityId, ...visa })
    const found = await rows('select fingerprint as hash from registrations where id = any ($1)', [[registrationId, body.id]])
    assert.deepEqual(found, [{ hash: null }, { hash: null }])
  })
})

describe('who may delete it', () => {
  const sent = (token: string) => ({ Authorization: `Bearer ${token}` })
  const madeBy = async (entityId: string) =>
    (await gateway.post('/v1/registrations', { entityId, ...visa }, theirs)).body.id as string

  it('that of a division: only who may make one for it, and none of its merchants, who all pay with it', async () => {
    const id = await madeBy(other.divisionId)
    for (const token of [narrow.channel, narrow.merchant])
      for (const entityId of [other.entityId, other.divisionId]) {
        const { status, body } = await remove(`/v1/registrations/${id}`, { entityId }, sent(token))
        assert.deepEqual([status, body.result.code], [403, '800.900.201'], `${token} for ${entityId}`)
      }
    const form = { entityId: other.entityId }
    assert.equal((await gateway.get(`/v1/registrations/${id}`, form, sent(narrow.channel))).status, 200)
    const charged = await charge(id, { entityId: other.sisterEntityId, 'card.cvv': '123' }, theirs)
    assert.equal(charged.status, 200, 'the sister pays with it as before')
    assert.equal((await cards(id)).length, 1)
    assert.deepEqual(await deletions(id), [])
    assert.deepEqual(await rows(`select from events where payment_id = $1 and action = 'DELETED'`, [id]), [])
    // By whichever of its entities: what the token may counts.
    assert.equal((await remove(`/v1/registrations/${id}`, form, theirs)).status, 200)
    assert.deepEqual(await cards(id), [])
    assert.deepEqual(await deletions(id), [{ entity: other.divisionId, kind: 'token', label: 'another', address: '127.0.0.1' }])
  })
  it('that of a merchant: its channels too', async () => {
    for (const token of [narrow.channel, narrow.merchant]) {
      const id = await madeBy(other.secondEntityId)
      const { status } = await remove(`/v1/registrations/${id}`, { entityId: other.entityId }, sent(token))
      assert.deepEqual([status, await cards(id)], [200, []])
    }
  })
})

describe('a pending payment', () => {
  it('names its registration, which pays nothing before it is approved', async () => {
    const away = {
      'customParameters[3DS2_enrolled]': 'true',
      'card.number': '4200000000000018',
      shopperResultUrl: 'https://shop.example/',
    }
    const { registrationId, result } = await store(away)
    assert.equal(result.code, '000.200.000')
    const { status, body } = await charge(registrationId)
    assert.deepEqual([status, body.result.code], [400, '100.150.203'])
    const refused = await remove(`/v1/registrations/${registrationId}`, { entityId: sandbox.entityId })
    assert.deepEqual([refused.status, refused.body.result.code], [400, '100.350.303'])
  })
})

describe('who may use it', () => {
  it('no other merchant: it does not exist there', async () => {
    const { registrationId } = await store()
    const query = { entityId: other.entityId }
    for (const { status, body } of [
      await gateway.get(`/v1/registrations/${registrationId}`, query, theirs),
      await charge(registrationId, query, theirs),
      await remove(`/v1/registrations/${registrationId}`, query, theirs),
    ])
      assert.deepEqual([status, body.result.code], [404, '100.150.200'])
    assert.equal((await charge(registrationId)).status, 200)
  })
  it('every merchant of the division that made it', async () => {
    const { status, body } = await gateway.post('/v1/registrations', { entityId: other.divisionId, ...visa }, theirs)
    assert.equal(status, 200, JSON.stringify(body))
    for (const entityId of [other.entityId, other.sisterEntityId]) {
      const paid = await charge(body.id, { entityId, 'card.cvv': '123' }, theirs)
      assert.deepEqual([paid.status, paid.body.registrationId], [200, body.id])
      assert.equal((await gateway.get(`/v1/registrations/${body.id}`, { entityId }, theirs)).status, 200)
    }
    assert.equal((await charge(body.id)).status, 404, 'merchants of another division')
    const told = await rows('select merchant_id as id from events where payment_id = $1 order by 1', [body.id])
    assert.deepEqual(
      told.map(({ id }) => id),
      [other.merchantId, other.sisterId],
    )
    const order = { entityId: other.divisionId, paymentType: 'DB', amount: '1.00', currency: 'EUR', ...visa }
    assert.equal((await gateway.post('/v1/payments', order, theirs)).status, 400, 'a division pays nothing')
    assert.equal((await remove(`/v1/registrations/${body.id}`, { entityId: other.divisionId }, theirs)).status, 200)
    assert.equal((await charge(body.id, { entityId: other.sisterEntityId, 'card.cvv': '123' }, theirs)).status, 400)
  })
  it('a shopper only where the merchant offers it, and with the CVV where the channel asks', async () => {
    const mine = (await gateway.post('/v1/registrations', { entityId: other.entityId, ...visa }, theirs)).body.id
    const notOffered = (await gateway.post('/v1/registrations', { entityId: other.entityId, ...visa }, theirs)).body.id
    const order = { entityId: other.entityId, paymentType: 'DB', amount: '1.00', currency: 'EUR', 'registrations[0].id': mine }
    const { id } = (await gateway.post('/v1/checkouts', order, theirs)).body
    const press = (fields: Fields) =>
      gateway.post(`/v1/checkouts/${id}/payment`, fields, { Authorization: '', Accept: 'application/json' })
    assert.equal((await press({ registrationId: notOffered, 'card.cvv': '123' })).body.result.code, '100.150.200')
    assert.equal((await press({ registrationId: mine })).body.result.code, '100.100.600')
    assert.equal((await press({ registrationId: mine, 'card.cvv': '123' })).body.result.code, '000.100.110')
  })
})
