// What searches can cost: how deep they reach, how much they bring, and that whoever searches keeps nobody else waiting.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { limits } from '../src/contract/limits.ts'
import { clockWith } from '../src/platform/clock.ts'
import { type Body, eventually, type Fields, type Reply, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { lockWaiters, untilWaiting } from './support/locks.ts'

let now = Date.UTC(2030, 0, 31, 12)
const merchantId = 'c0ffee000000000000000000000000e1'
const channelId = 'c0ffee000000000000000000000000c1'
const manyId = 'c0ffee000000000000000000000000e2'
const manyChannelId = 'c0ffee000000000000000000000000c2'
const manyTokens = ['a', 'b', 'c', 'd'].map(name => `token-${name}-of-the-merchant-with-many`)
const tokens = ['first-token-of-the-limited-merchant', 'second-token-of-the-limited-merchant'] as const
let gateway: TestGateway
before(async () => {
  gateway = await testGateway({
    clock: clockWith(() => now),
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [
        {
          id: 'c0ffee000000000000000000000000d1',
          name: 'Limited',
          merchants: [
            {
              id: merchantId,
              name: 'Limited',
              settings: { requestsPerMinute: 3 },
              channels: [{ id: channelId, name: 'Limited' }],
            },
            { id: manyId, name: 'Many tokens', channels: [{ id: manyChannelId, name: 'Many tokens' }] },
          ],
        },
      ],
      tokens: [
        ...tokens.map(token => ({ label: token, token, entities: [merchantId] })),
        ...manyTokens.map(token => ({ label: token, token, entities: [manyId] })),
      ],
    },
  })
})
after(() => gateway.stop())

const search = (fields: Fields = {}) =>
  gateway.get('/v3/query', { entityId: sandbox.entityId, 'date.from': '2030-01-01', 'date.to': '2030-12-31', ...fields })
const told = ({ status, body }: Reply) => `${status} ${body.result.code}`
const wrong = ({ body }: Reply) => (body.result.parameterErrors ?? []).map(({ name }: Body) => name)

describe('a page', () => {
  const count = 80
  const large = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`customParameters[key${at}]`, 'x'.repeat(2000)]))
  const ids: string[] = []
  before(async () => {
    for (let at = 0; at < count; at++, now += 1000)
      ids.push((await gateway.pay({ ...large, merchantTransactionId: 'large-ones' })).body.id)
  })

  it('above its bytes is refused by name, and brings nothing', async () => {
    for (const reply of [
      await search({ limit: '500' }),
      await search({ limit: '500', includeLinkedTransactions: 'true' }),
      await gateway.get('/v1/query', { entityId: sandbox.entityId, merchantTransactionId: 'large-ones' }),
    ]) {
      assert.equal(told(reply), '400 200.300.404')
      assert.deepEqual(wrong(reply), ['limit'])
      assert.ok(reply.text.length < 1000)
    }
  })
  it('of fewer records comes piece by piece, and all of them are there', async () => {
    const pages = [await search({ limit: '40' }), await search({ limit: '40', pageNo: '2' })]
    for (const page of pages) {
      assert.equal(told(page), '200 000.000.100')
      assert.equal(page.body.pages, '2')
      assert.equal(page.headers.get('content-length'), null)
    }
    assert.deepEqual(
      pages.flatMap(({ body }) => body.records.map(({ id }: Body) => id)),
      ids,
    )
  })
  it('of one record comes however large it is', async () => {
    const page = await search({ limit: '1', pageNo: String(count) })
    assert.deepEqual([told(page), page.body.records[0].id], ['200 000.000.100', ids.at(-1)])
    assert.equal(page.headers.get('content-length'), String(page.text.length))
  })
  it('that nobody can need is not counted to', async () => {
    const deepest = { limit: '500', pageNo: String(limits.searchReach / 500) }
    assert.deepEqual(told(await search(deepest)), '400 700.400.580')
    for (const fields of [{ limit: '500', pageNo: String(limits.searchReach / 500 + 1) }, { pageNo: '999999' }]) {
      const reply = await search(fields)
      assert.deepEqual([told(reply), wrong(reply)], ['400 200.300.404', ['pageNo']])
    }
  })
})

describe('searches of a token that the database does not answer', () => {
  it('hold one connection of their own, end in time, and the rest are told to come again', async () => {
    const locked = await gateway.pool.connect()
    try {
      await locked.query('begin; lock table payments in access exclusive mode')
      const asked = Array.from({ length: 40 }, () => search({ limit: '1' }))
      const early: Reply[] = []
      for (const one of asked) one.then(reply => early.push(reply)).catch(() => {})
      await eventually(async () => early.length >= 5, 'some of them are refused at once')
      for (const reply of early.slice(0, 5)) {
        assert.equal(told(reply), '429 800.120.100')
        assert.ok(Number(reply.headers.get('retry-after')) > 0)
      }
      await untilWaiting(gateway.pool)
      assert.equal((await lockWaiters(gateway.pool)).filter(({ name }) => name === 'tollgate searches').length, 1)
      assert.equal((await fetch(`${gateway.baseUrl}/health`)).status, 200)
      await eventually(
        async () => early.some(reply => told(reply) === '503 800.800.801'),
        'the one that waits is told to come again',
      )
      await locked.query('rollback')
      for (const reply of await Promise.all(asked)) assert.match(told(reply), /^(200|429|503) /)
    } finally {
      await locked.query('rollback')
      locked.release()
    }
  })
})

describe('searches of a merchant with many tokens', () => {
  it('hold one connection, and beside it one that looks for named payments: others find one', async () => {
    const locked = await gateway.pool.connect()
    const ask = (token: string, fields: Fields) =>
      gateway.get('/v3/query', { entityId: manyChannelId, ...fields }, { Authorization: `Bearer ${token}` })
    const days = { 'date.from': '2030-01-01', 'date.to': '2030-12-31' }
    const named = { merchantTransactionId: 'looked-for' }
    const waiting = async () => {
      const names = (await lockWaiters(gateway.pool)).map(({ name }) => name)
      return ['searches', 'lookups'].map(pool => names.filter(name => name === `tollgate ${pool}`).length)
    }
    try {
      await locked.query('begin; lock table payments in access exclusive mode')
      const asked = manyTokens.flatMap(token => [ask(token, days), ask(token, named)])
      await eventually(async () => String(await waiting()) === '1,1', 'one of each waits')
      asked.push(search({ limit: '1' }), gateway.get('/v3/query', { entityId: sandbox.entityId, ...named }))
      await eventually(async () => String(await waiting()) === '2,2', 'those of another merchant have connections')
      await locked.query('rollback')
      for (const reply of await Promise.all(asked)) assert.match(told(reply), /^(200|400 700.400.580|429|503)/)
    } finally {
      await locked.query('rollback')
      locked.release()
    }
  })
})

describe('requests of a token in a minute', () => {
  const read = (token: string) =>
    gateway.get(`/v1/payments/${'0'.repeat(32)}`, { entityId: channelId }, { Authorization: `Bearer ${token}` })
  it('are limited where the merchant says so, each token for itself', async () => {
    const [first, second] = tokens
    for (let at = 0; at < 3; at++) assert.equal((await read(first)).status, 404)
    const refused = await read(first)
    assert.equal(told(refused), '429 800.120.100')
    assert.equal(refused.headers.get('retry-after'), '20')
    assert.equal((await read(second)).status, 404)
    now += 19_999
    assert.equal((await read(first)).headers.get('retry-after'), '1')
    now += 1
    assert.equal((await read(first)).status, 404)
    assert.equal((await read(first)).status, 429)
    now += 3_600_000
    for (let at = 0; at < 3; at++) assert.equal((await read(first)).status, 404)
    assert.equal((await read(first)).status, 429)
  })
})
