// An Idempotency-Key when something has changed between a request and its twin: the rules that choose a channel, the registration that paid, the lookup key, the
// release of the gateway. Whatever it is, an order is paid once, and its shop is told so.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { applySeed, type Seed } from '../src/merchants/seed.ts'
import { requestKey } from '../src/payments/idempotency.ts'
import { dropLost } from '../src/payments/store/keys.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { makeKeys } from '../src/vault/keys.ts'
import { type Client, eventually, type Fields, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'

const id = (end: string) => `7e57c0de${end.padStart(24, '0')}`
const [merchant, one, other] = [id('1'), id('a'), id('b')]
const [ofMerchant, ofOne, ofOther] = ['token-of-the-whole-merchant', 'token-of-the-first-channel', 'token-of-the-other-channel']

/** The merchant's rules; without channels: rules that fit nothing that is sent here. */
const seed = (...channels: readonly string[]): Seed => seedWith({}, ...channels)
const seedWith = (settings: Readonly<Record<string, unknown>>, ...channels: readonly string[]): Seed => ({
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: id('d1'),
      name: 'Division',
      merchants: [
        {
          id: merchant,
          name: 'Merchant',
          settings: {
            channelDispatching: [
              ...channels.map(channel => ({ channel, currencies: ['EUR'] })),
              { channel: one, currencies: ['JPY'] },
            ],
          },
          channels: [
            { id: one, name: 'one' },
            { id: other, name: 'other', settings },
          ],
        },
      ],
    },
  ],
  tokens: [
    { label: 'merchant', token: ofMerchant, entities: [merchant] },
    { label: 'one', token: ofOne, entities: [one] },
    { label: 'other', token: ofOther, entities: [other] },
  ],
})

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ seed: seed(one) })
})
after(() => gateway.stop())

const seeded = async (changed: Seed) => {
  await applySeed(gateway.pool, testKeys, systemClock, systemRandom, changed)
  await gateway.restart()
}
const ruled = (...channels: readonly string[]) => seeded(seed(...channels))
const money = { paymentType: 'DB', amount: '77.00', currency: 'EUR' }
const send = (path: string, key: string, fields: Fields, token = ofMerchant, client: Client = gateway) =>
  client.post(path, fields, { Authorization: `Bearer ${token}`, 'Idempotency-Key': key })
const pay = (key: string, fields: Fields = {}, token = ofMerchant, client: Client = gateway) =>
  send(
    '/v1/payments',
    key,
    { entityId: merchant, ...money, ...visa, merchantTransactionId: `order-${key}`, ...fields },
    token,
    client,
  )
const paid = async (key: string) =>
  (await gateway.pool.query('select from payments where merchant_transaction_id = $1', [`order-${key}`])).rowCount
const hash = (entityId: string, key: string, path = '/v1/payments') =>
  requestKey({ keys: testKeys }, entityId, undefined, path, key, { pairs: [], broken: new Set() }).named[0]!.hash
const claimed = async (entityId: string, key: string) =>
  (await gateway.pool.query('select from idempotency_keys where key_hash = $1', [hash(entityId, key)])).rowCount === 1
const is = ({ status, body }: { status: number; body: { result: { code: string } } }, expected: string) =>
  assert.equal(`${status} ${body.result.code}`, expected, JSON.stringify(body))
const approved = '200 000.100.110'
const reused = '400 200.300.404'

describe('an order whose rules change', () => {
  it('gets the answer of the first, and is paid once', async () => {
    const first = await pay('changed')
    is(first, approved)
    await ruled(other)
    assert.equal((await pay('changed')).text, first.text)
    is(await pay('changed', { amount: '78.00' }), reused)
    assert.equal(await paid('changed'), 1)
    is(await pay('changed-another'), approved)
    await ruled(one)
    assert.equal((await pay('changed')).text, first.text)
    assert.equal(await paid('changed'), 1)
  })

  it('is paid once by gateways of which one has not heard of the change', async t => {
    await gateway.pool.query('update entities set settings = $2 where id = $1', [
      merchant,
      JSON.stringify({ channelDispatching: [{ channel: other, currencies: ['EUR'] }] }),
    ])
    const client = await gateway.another()
    t.after(async () => {
      await client.stop()
      await ruled(one)
    })
    const keys = Array.from({ length: 20 }, (_, at) => `both-${at}`)
    for (const key of keys) {
      const [here, there] = await Promise.all([pay(key), pay(key, {}, ofMerchant, client)])
      is(here!, approved)
      assert.equal(here!.text, there!.text)
      assert.equal(await paid(key), 1)
    }
  })

  it('is no failure of ours when the twin that had its key loses it in this moment', async t => {
    await gateway.pool.query('update entities set settings = $2 where id = $1', [
      merchant,
      JSON.stringify({ channelDispatching: [{ channel: other, currencies: ['EUR'] }] }),
    ])
    const client = await gateway.another()
    t.after(async () => {
      await client.stop()
      await ruled(one)
    })
    // It has the merchant's first, and then waits for the channel's.
    const key = Array.from({ length: 100 }, (_, at) => `gone-${at}`).find(key => hash(merchant, key).compare(hash(one, key)) < 0)!
    const db = await gateway.pool.connect()
    let both: ReturnType<typeof pay>[] = []
    try {
      await db.query('begin')
      await db.query(
        `insert into idempotency_keys (merchant_id, key_hash, fingerprint, payment_id, recorded_at) values ($1, $2, '\\x00', $1, now())`,
        [merchant, hash(one, key)],
      )
      const loses = pay(key)
      await untilWaiting(gateway.pool, 'idempotency_keys')
      both = [loses, pay(key, {}, ofMerchant, client)]
      await untilWaiting(gateway.pool, 'idempotency_keys', 2)
      await db.query('commit')
    } finally {
      db.release(true)
    }
    // Whichever comes first. Whoever loses finds its own key another's, or what the other has paid meanwhile; the other has the key, finds it taken by nobody (no
    // failure of ours), or by one that is about to leave it. A repetition is paid, and only once.
    const told = await Promise.all(both)
    const again = await pay(key, {}, ofMerchant, client)
    is(again, approved)
    for (const { status, text, body, headers } of told)
      assert.ok(
        text === again.text || body.result.code === '200.300.404' || (status === 503 && headers.get('retry-after') !== null),
        `${status} ${text}`,
      )
    assert.equal(await paid(key), 1)
  })

  it('of which none fits any more, still gets the answer of the first', async () => {
    const [first, details] = [
      await pay('gone'),
      await send('/v1/registrations', 'gone', { entityId: merchant, ...visa, currency: 'EUR' }),
    ]
    is(details, approved)
    const charge = (key: string) =>
      send(`/v1/registrations/${details.body.id}/payments`, key, {
        entityId: merchant,
        ...money,
        merchantTransactionId: 'order-charge',
      })
    const charged = await charge('charge')
    is(charged, approved)
    await ruled()
    assert.equal((await pay('gone')).text, first.text)
    assert.equal((await charge('charge')).text, charged.text)
    is(await pay('gone', { amount: '78.00' }), '400 200.300.407')
    is(await pay('gone-another'), '400 200.300.407')
    is(await charge('charge-another'), '400 200.300.407')
    assert.deepEqual([await paid('gone'), await paid('charge')], [1, 1])
    await ruled(one)
  })

  it('whose capture and refund were asked for under a key, has them once', async () => {
    const { body } = await pay('followed')
    const refund = () => send(`/v1/payments/${body.id}`, 'refund', { entityId: merchant, ...money, paymentType: 'RF' })
    const first = await refund()
    is(first, approved)
    await ruled(other)
    assert.equal((await refund()).text, first.text)
    await ruled()
    assert.equal((await refund()).text, first.text)
    await ruled(one)
  })

  it('and refunded once under a path in which letters are written in percents', async () => {
    const { body: paid } = await pay('percents')
    const refund = { entityId: merchant, ...money, paymentType: 'RF', amount: '1.00' }
    const refunded = await send(`/v1/payments/${paid.id}`, 'percents-rf', refund)
    assert.equal(refunded.status, 200)
    const written = `%${paid.id.charCodeAt(0).toString(16)}${paid.id.slice(1)}`
    const again = await send(`/v1/payments/${written}`, 'percents-rf', refund)
    assert.deepEqual([again.status, again.text], [200, refunded.text])
  })

  it('or whose channel takes no such order any more, gets the answer of the first', async () => {
    const first = await pay('stricter')
    const named = await pay('stricter-named', { entityId: other }, ofOther)
    const refund = () =>
      send(`/v1/payments/${first.body.id}`, 'strict', { entityId: other, ...money, amount: '7.00', paymentType: 'RF' }, ofOther)
    const refunded = await refund()
    for (const answer of [first, named]) is(answer, approved)
    is(refunded, '400 700.400.700') // it is stored, and has an id
    await seeded(seedWith({ threeDSecure: 'always', ownChannelOnly: true }, other))
    assert.equal((await pay('stricter')).text, first.text)
    assert.equal((await pay('stricter-named', { entityId: other }, ofOther)).text, named.text)
    assert.equal((await refund()).text, refunded.text)
    is(await pay('stricter-another'), reused) // the same code as for wrong parameters
    assert.deepEqual(
      [await paid('stricter'), await paid('stricter-named'), await paid('stricter-another')],
      [2, 1, 0],
      'with the refund',
    )
    await ruled(one)
  })

  it('claims all of its key in one order, so that no two processes wait for each other', async () => {
    const key = Array.from({ length: 100 }, (_, at) => `order-${at}`).find(
      key => hash(merchant, key).compare(hash(one, key)) > 0,
    )!
    const { pool } = gateway
    const db = await pool.connect()
    const claim = (entityId: string) =>
      db.query(
        `insert into idempotency_keys (merchant_id, key_hash, fingerprint, payment_id, recorded_at)
         values ($1, $2, '\\x00', $1, now()) on conflict do nothing`,
        [merchant, hash(entityId, key)],
      )
    await db.query('begin; set local lock_timeout = 500') // sooner than the database finds two that wait for each other
    await claim(one)
    const paying = pay(key)
    await untilWaiting(pool, 'idempotency_keys')
    assert.equal((await claim(merchant)).rowCount, 1, 'that one was not taken before')
    await db.query('rollback')
    db.release()
    is(await paying, approved)
    assert.deepEqual([await claimed(merchant, key), await claimed(one, key)], [true, true])
    // A batch that is written again, because its connection was lost, has not lost what it has stored.
    const { rows } = await pool.query('select id from payments where merchant_transaction_id = $1', [`order-${key}`])
    const again = requestKey({ keys: testKeys }, merchant, one, '/v1/payments', key, { pairs: [], broken: new Set() })
    await dropLost(pool, [{ payment: { merchantId: merchant, id: rows[0].id }, key: again }])
    assert.deepEqual([await claimed(merchant, key), await claimed(one, key)], [true, true])
  })

  it('and whose details or checkout were stored under a key, has them once', async () => {
    const make = () =>
      Promise.all([
        send('/v1/registrations', 'stored', { entityId: merchant, ...visa, currency: 'EUR' }),
        send('/v1/checkouts', 'stored', { entityId: merchant, ...money }),
      ])
    const first = await make()
    await ruled(other)
    const again = await make()
    assert.deepEqual(again.map(({ body }) => body.id), first.map(({ body }) => body.id)) // biome-ignore format: in a line
    await ruled(one)
  })
})

describe('a key that several callers use', () => {
  it('is no second order when the channel is named that the rules had chosen, nor the other way round', async () => {
    is(await pay('named'), approved)
    is(await pay('named', { entityId: one }, ofOne), reused)
    is(await pay('named', { entityId: one }), reused)
    assert.equal(await paid('named'), 1)
    is(await pay('named-first', { entityId: one }, ofOne), approved)
    is(await pay('named-first'), reused)
    assert.equal(await claimed(merchant, 'named-first'), false, 'what was refused claims nothing')
    assert.equal(await paid('named-first'), 1)
  })

  it('is each its own where the rules had not chosen its channel, also when they do so later', async () => {
    const first = await pay('apart')
    const theirs = await pay('apart', { entityId: other }, ofOther)
    is(theirs, approved)
    assert.notEqual(theirs.body.id, first.body.id)
    await ruled(other)
    assert.equal((await pay('apart')).text, first.text)
    assert.equal((await pay('apart', { entityId: other }, ofOther)).text, theirs.text)
    assert.equal(await paid('apart'), 2)
    await ruled(one)
  })

  it('is not claimed on the channel by a request that loses it', async () => {
    const holder = await gateway.pool.connect()
    try {
      await holder.query('begin')
      await holder.query(`insert into idempotency_keys values ($1, $2, '', gen_random_uuid(), now())`, [
        merchant,
        hash(merchant, 'lost'),
      ])
      const late = pay('lost')
      await eventually(
        async () =>
          (
            await gateway.pool.query(
              `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%idempotency_keys%'`,
            )
          ).rowCount,
        'the order waits for who has its key',
      )
      await holder.query('commit')
      is(await late, reused)
    } finally {
      holder.release()
    }
    assert.equal(await claimed(one, 'lost'), false)
    is(await pay('lost', { entityId: one }, ofOne), approved)
  })
})

describe('a gateway of an older release knows keys by the channel alone', () => {
  const asOlder = (key: string, path?: string) =>
    gateway.pool.query('delete from idempotency_keys where key_hash = $1', [hash(merchant, key, path)])

  it('what it was paid is found', async () => {
    const first = await pay('older')
    await asOlder('older')
    assert.equal((await pay('older')).text, first.text)
    is(await pay('older', { amount: '78.00' }), reused)
    assert.equal(await paid('older'), 1)
  })

  it('and it finds what is paid here', async () => {
    is(await pay('newer'), approved)
    assert.ok(await claimed(one, 'newer'))
  })

  it('a checkout that it made is found by its id', async () => {
    const make = (amount = '77.00') => send('/v1/checkouts', 'older', { entityId: merchant, ...money, amount })
    const { body } = await make()
    assert.equal(body.id.slice(0, 32).toLowerCase(), hash(one, 'older', '/v1/checkouts').toString('hex', 0, 16))
    await gateway.pool.query('delete from idempotency_keys')
    assert.equal((await make()).body.id, body.id)
    is(await make('78.00'), reused)
  })

  it('a registration that it made is found by its id for 72 hours', async () => {
    const make = () => send('/v1/registrations', 'older', { entityId: merchant, ...visa, currency: 'EUR' })
    const { body } = await make()
    const theirs = hash(one, 'older', '/v1/registrations').toString('hex', 0, 16)
    await gateway.pool.query(
      `update registrations set id = $2, key_fingerprint = (select fingerprint from idempotency_keys where payment_id = $1 limit 1) where id = $1`,
      [body.id, theirs],
    )
    const age = async (seconds: number) => {
      await gateway.pool.query('delete from idempotency_keys')
      await gateway.pool.query('update registrations set made_at = $2 where id = $1', [
        theirs,
        new Date(Date.now() - seconds * 1000),
      ])
    }
    await age(72 * 3600 - 60)
    assert.equal((await make()).body.id, theirs)
    await age(72 * 3600)
    const { status, body: fresh } = await make()
    assert.equal(status, 200)
    assert.notEqual(fresh.id, theirs)
  })
})

describe('an order that a registration has paid', () => {
  const store = async () =>
    (await gateway.post('/v1/registrations', { entityId: one, ...visa }, { Authorization: `Bearer ${ofOne}` })).body.id
  const charge = (registration: string, key: string, amount = '33.00') =>
    send(`/v1/registrations/${registration}/payments`, key, { entityId: one, ...money, amount }, ofOne)
  const remove = async (registration: string) => {
    const headers = { Authorization: `Bearer ${ofOne}` }
    const url = `${gateway.baseUrl}/v1/registrations/${registration}?entityId=${one}`
    assert.equal((await fetch(url, { method: 'DELETE', headers })).status, 200)
  }

  it('gets the answer of the first when the registration is gone', async () => {
    const registration = await store()
    const first = await charge(registration, 'paid')
    is(first, approved)
    await remove(registration)
    assert.equal((await charge(registration, 'paid')).text, first.text)
    is(await charge(registration, 'paid', '34.00'), '400 100.150.202')
    is(await charge(registration, 'paid-another'), '400 100.150.202')
  })

  it('and when its card is kept no longer', async () => {
    const registration = await store()
    const first = await charge(registration, 'kept')
    await gateway.pool.query('delete from sealed_cards where payment_id = $1', [registration])
    assert.equal((await charge(registration, 'kept')).text, first.text)
    is(await charge(registration, 'kept-another'), '400 100.150.206')
  })

  it('of a registration that was sent again: what is gone is said to be gone, by its id', async () => {
    const make = () => send('/v1/registrations', 'deleted', { entityId: one, ...visa }, ofOne)
    const { body } = await make()
    assert.equal((await make()).body.id, body.id)
    await remove(body.id)
    const again = await make()
    is(again, '400 100.150.202')
    assert.equal(again.body.id, body.id)
  })
})

describe('a key of what is no payment', () => {
  const register = (key: string, client: Client = gateway, fields: Fields = {}) =>
    send('/v1/registrations', key, { entityId: one, ...visa, ...fields }, ofOne, client)
  const checkout = (key: string, client: Client = gateway, fields: Fields = {}) =>
    send('/v1/checkouts', key, { entityId: one, ...money, ...fields }, ofOne, client)
  const makers = { registration: register, checkout }
  const rows = async (text: string) => (await gateway.pool.query(text)).rowCount

  for (const [what, make] of Object.entries(makers)) {
    const table = `${what}s`

    it(`makes one ${what} of many requests at once, and refuses another body`, async () => {
      const had = (await rows(`select from ${table}`)) ?? 0
      const made = await Promise.all(Array.from({ length: 8 }, () => make(`many-${what}`)))
      assert.equal(new Set(made.map(({ body }) => body.id)).size, 1)
      assert.equal(made[0]!.status, 200)
      assert.equal(await rows(`select from ${table}`), had + 1)
      is(await make(`many-${what}`, gateway, { 'customer.merchantCustomerId': 'another' }), reused)
    })

    it(`is free again when the ${what} could not be stored`, async () => {
      await gateway.pool.query(`alter table ${table} add constraint full_disk check (false) not valid`)
      assert.equal((await make(`failed-${what}`)).status, 500)
      await gateway.pool.query(`alter table ${table} drop constraint full_disk`)
      assert.equal((await make(`failed-${what}`)).status, 200)
    })
  }

  it('ends with its 72 hours: the same registration again is another one', async () => {
    const first = await register('over')
    assert.equal((await register('over')).body.id, first.body.id)
    await gateway.pool.query('delete from idempotency_keys') // as they are when those are over
    const again = await register('over')
    is(again, approved)
    assert.notEqual(again.body.id, first.body.id)
    await gateway.pool.query('delete from idempotency_keys')
    is(await register('over', gateway, { 'card.holder': 'Somebody Else' }), approved)
  })

  it('that is not over makes no second checkout when the first was erased', async () => {
    await checkout('erased')
    await gateway.pool.query('delete from checkouts')
    is(await checkout('erased'), '400 200.300.404')
    assert.equal(await rows('select from checkouts'), 0)
  })

  it('is known while the lookup key is changed, to gateways that write with the old one and with the new one', async () => {
    const [seal, old, fresh] = [1, 2, 9].map(byte => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
    const all = (key: string, client: Client = gateway) =>
      Promise.all([register(key, client), checkout(key, client), pay(key, {}, ofMerchant, client)])
    const ids = (replies: Awaited<ReturnType<typeof all>>) => {
      for (const { status, text } of replies) assert.equal(status, 200, text)
      return replies.map(({ body }) => body.id)
    }
    const made = ids(await all('change'))
    const first = makeKeys([seal], old, fresh)
    await gateway.restart(first)
    await gateway.restart(makeKeys([seal], fresh, old))
    const client = await gateway.another(first)
    assert.deepEqual(ids(await all('change')), made)
    for (let at = 0; at < 10; at++) {
      const [here, there] = await Promise.all([all(`change-${at}`), all(`change-${at}`, client)])
      assert.deepEqual(ids(here), ids(there))
    }
    await client.stop()
  })
})
