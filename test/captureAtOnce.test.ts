// PA.CP: who asks what became of it hears of the whole, the capture too, and what is not captured is not held.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { completeCapture } from '../src/payments/followUps/followUp.ts'
import { forbids } from '../src/payments/followUps/rules.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import type { PaymentState } from '../src/payments/payment.ts'
import { closeCaseOf, openCases } from './support/cases.ts'
import { eventually, type Fields, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'
import { makeShopper } from './support/shopper.ts'

const id = (end: string) => `7e57c0de${end.padStart(24, '0')}`
const [merchantId, entityId] = [id('1'), id('a')]
const header = { Authorization: 'Bearer token-of-the-one-channel' }
const declined = '800.100.152'
const seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: id('d1'),
      name: 'Division',
      merchants: [
        {
          id: merchantId,
          name: 'Merchant',
          channels: [
            {
              id: entityId,
              name: 'Channel',
              settings: {
                simulatorRules: [
                  ...['66.00', '67.00'].map(amount => ({ match: { paymentType: 'CP', amount }, code: declined })),
                  { match: { paymentType: 'RV', amount: '67.00' }, code: declined },
                ],
              },
            },
          ],
        },
      ],
    },
  ],
  tokens: [{ label: 'test', token: 'token-of-the-one-channel', entities: [entityId] }],
} as const

let gateway: TestGateway
let host: Awaited<ReturnType<typeof testHost>>
let isDeaf = false
let isDeafToTakingBack = false
let captures: 'otherAmount' | 'otherCurrency' | undefined
before(async () => {
  host = await testHost({
    faults({ type }) {
      if (type.slice(1, 3) === '42') return isDeafToTakingBack ? 'requestLost' : undefined
      return type.slice(1, 3) === '22' ? (isDeaf ? 'requestLost' : captures) : undefined
    },
  })
  const { path } = acquirersFile({ north: [host.port] }, { answerWithinSeconds: 3, recoverAfterSeconds: 70 })
  gateway = await testGateway({ seed: seed as never, environment: { ACQUIRERS_FILE: path } })
})
after(async () => {
  await gateway.stop()
  await host.stop()
})

const wanted = (fields: Fields = {}): Fields => ({ paymentType: 'PA.CP', amount: '66.00', currency: 'EUR', ...fields })
const send = (fields: Fields, key?: string) =>
  gateway.post(
    '/v1/payments',
    { entityId, ...visa, ...wanted(fields) },
    { ...header, ...(key !== undefined && { 'Idempotency-Key': key }) },
  )
const advance = async (by: string) =>
  assert.equal((await gateway.post('/sandbox/clock', { entityId, advance: by }, header)).status, 200)
const read = async (payment: string) => (await gateway.get(`/v1/payments/${payment}`, { entityId }, header)).body
const codes = async (root: string) => {
  const { rows } = await gateway.pool.query<{ said: string }>(
    `select concat_ws(' ', p.payment_type, coalesce(a.approved::text, 'open')) as said
       from payments p left join answers a on a.payment_id = p.id where p.id = $1 or p.root_id = $1 order by p.id`,
    [root],
  )
  return rows.map(({ said }) => said)
}
/** Nothing refers to it until it is let go. */
const holdChain = async (root: string) => {
  const lock = await gateway.pool.connect()
  await lock.query('begin')
  await lock.query('select 1 from payments where merchant_id = $1 and id = $2 for no key update', [merchantId, root])
  return async () => {
    await lock.query('rollback')
    lock.release()
  }
}
/** As they are for a moment, and after a crash until recovery has seen them: written, and not answered. */
const forgetRefusals = (root: string) =>
  gateway.pool.query(
    `delete from answers a using payments p where p.merchant_id = a.merchant_id and p.id = a.payment_id and p.root_id = $1 and p.connector = ''`,
    [root],
  )
/** As it is where the process died before these. */
const forget = async (root: string, types: readonly string[]) => {
  for (const table of ['answers', 'journal'])
    await gateway.pool.query(
      `delete from ${table} a using payments p where p.id = a.payment_id and p.root_id = $1 and p.payment_type = any ($2)`,
      [root, types],
    )
  await gateway.pool.query('delete from payments where root_id = $1 and payment_type = any ($2)', [root, types])
}
const challenged = {
  'card.number': '4200000000000018',
  'customParameters[3DS2_enrolled]': 'true',
  shopperResultUrl: 'https://shop.example/back',
}

describe('after a challenge', () => {
  it('a declined capture is what the merchant reads, under the id that was given, and nothing is held', async () => {
    const { body } = await send(challenged)
    await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
    const found = await eventually(async () => {
      const { result, ...found } = await read(body.id)
      assert.notEqual(result.code, '000.100.110')
      return result.code === declined && found
    }, 'its end is read')
    assert.deepEqual([found.id, found.paymentType, found.amount], [body.id, 'PA', '66.00'])
    const { body: one } = await gateway.get(`/v1/query/${body.id}`, { entityId }, header)
    const { body: found3 } = await gateway.get(`/v3/query/${body.id}`, { entityId }, header)
    assert.deepEqual([one.result.code, found3.records[0].result.code], [declined, declined])
    await eventually(async () => (await codes(body.id)).includes('RV true'), 'the hold is taken back')
    assert.deepEqual(await codes(body.id), ['PA true', 'CP false', 'RV true'])
    assert.deepEqual((await examine(gateway.pool)).findings, [])
  })
  it('an approved capture makes it a success', async () => {
    const { body } = await send({ ...challenged, amount: '65.00' })
    await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
    await eventually(async () => (await read(body.id)).result.code === '000.100.110', 'its end is read')
    assert.deepEqual(await codes(body.id), ['PA true', 'CP true'])
  })
})

it('a capture that the merchant asked for too early is not the one that it waits for', async () => {
  const { body } = await send({ ...challenged, amount: '65.00' })
  const early = await gateway.post(
    `/v1/payments/${body.id}`,
    { entityId, paymentType: 'CP', amount: '65.00', currency: 'EUR' },
    header,
  )
  assert.equal(early.body.result.code, '700.400.570')
  await forgetRefusals(body.id)
  const letGo = await holdChain(body.id)
  const walking = makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
  await eventually(async () => (await codes(body.id)).includes('PA true'), 'it is authorized')
  const meanwhile = await read(body.id)
  await letGo()
  await walking
  assert.deepEqual([meanwhile.result.code, (await read(body.id)).result.code], ['000.200.000', '000.100.110'])
  assert.deepEqual(await codes(body.id), ['PA true', 'CP open', 'CP true'])
})

it('a shopper who comes from a challenge goes to the shop when the capture is answered, and not before', async () => {
  const { body } = await send({ ...challenged, amount: '65.00' })
  const letGo = await holdChain(body.id)
  let seen: Awaited<ReturnType<ReturnType<typeof makeShopper>['walk']>> | undefined
  const walking = makeShopper()
    .walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
    .then(found => {
      seen = found
    })
  await eventually(async () => (await codes(body.id)).includes('PA true'), 'it is authorized')
  await new Promise(resolve => setTimeout(resolve, 1500))
  assert.deepEqual([seen, await codes(body.id)], [undefined, ['PA true']])
  await letGo()
  await walking
  assert.match(seen!.location ?? '', /^https:\/\/shop\.example\/back/)
  assert.deepEqual(await codes(body.id), ['PA true', 'CP true'])
})

describe('a checkout', () => {
  for (const how of ['at once', 'after a challenge'])
    it(`whose capture is declined ${how} is open for another attempt, and says so`, async () => {
      const is3D = how !== 'at once'
      const asked = { ...wanted({ shopperResultUrl: 'https://shop.example/back' }), ...(is3D && challenged) }
      const { 'card.number': _, ...fields } = asked as Fields
      const { body: checkout } = await gateway.post('/v1/checkouts', { entityId, ...fields }, header)
      const path = `/v1/checkouts/${checkout.id}/payment`
      const press = async (card: Fields) =>
        await gateway.post(path, { ...visa, ...card }, { Authorization: '', Accept: 'application/json' })
      const { body: first } = await press(is3D ? { 'card.number': challenged['card.number'] } : {})
      if (is3D) await makeShopper().walk(`${first.redirect.url}?auto=approve`, gateway.baseUrl)
      const status = async () => (await gateway.get(path, { entityId }, header)).body
      const told = await eventually(async () => {
        const { result, paymentType } = await status()
        return result.code !== '000.200.000' && [result.code, paymentType]
      }, 'the merchant reads its end')
      assert.deepEqual(told, [declined, 'PA'])
      const again = await press({ 'card.number': '4200000000000000' })
      assert.notEqual(again.body.result.code, '200.300.404', 'the checkout is open')
    })
})

describe('while nobody knows what became of the capture', () => {
  const order = (amount: string) => ({ testMode: 'EXTERNAL', amount, 'card.number': '4200000000000000' })
  /** Its capture is not heard, and nobody has asked again. */
  async function unheard(amount: string, key: string): Promise<string> {
    isDeaf = true
    const [first, twin] = [await send(order(amount), key), await send(order(amount), key)]
    for (const { status, body } of [first, twin])
      assert.deepEqual([status, body.result.code, body.paymentType, body.id], [200, '000.200.000', 'PA', first.body.id])
    // Its own step is due, and there is nothing to be done yet.
    await advance('62s')
    assert.equal((await read(first.body.id)).result.code, '000.200.000')
    assert.deepEqual(await codes(first.body.id), ['PA true', 'CP open'])
    isDeaf = false
    return first.body.id
  }

  it('the payment is pending for all who ask, and a success when it was captured after all', async () => {
    const root = await unheard('91.00', 'captured')
    await advance('20s')
    await eventually(async () => (await read(root)).result.code === '000.100.112', 'it was captured')
    assert.deepEqual(await codes(root), ['PA true', 'CP true'])
    const { body } = await send(order('91.00'), 'captured')
    assert.deepEqual([body.result.code, body.id], ['000.100.112', root])
  })

  it('the hold is taken back when it was declined after all, however late', async () => {
    const root = await unheard('92.00', 'declined')
    const [hold] = [...host.ledger.entries()].filter(({ line, held }) => line.kind === 'hold' && held > 0n)
    hold!.held = 1n
    const found = await eventually(async () => {
      await advance('20s')
      const found = await codes(root)
      return found.includes('RV true') && found
    }, 'the hold is taken back')
    assert.deepEqual(found, ['PA true', 'CP false', 'RV true'])
    assert.ok(hold!.reversed, 'the bank has taken it back')
    const { result } = await read(root)
    const { body, status } = await send(order('92.00'), 'declined')
    assert.deepEqual([status, body.result.code, body.paymentType], [400, result.code, 'CP'])
  })
})

for (const asks of [false, true])
  it(`a twin of one that was torn apart is told nothing before it is captured${asks ? ', whatever the merchant asked for before' : ''}`, async () => {
    const order = { 'customParameters[simulateDelay]': '2000', ...(asks && { amount: '65.00' }) }
    const key = asks ? 'torn-and-asked' : 'torn'
    const first = send(order, key)
    const root = await eventually(async () => {
      const { rows } = await gateway.pool.query<{ id: string }>(
        `select id from payments p where payment_type = 'PA' and merchant_id = $1 and not exists (select 1 from answers a where a.payment_id = p.id)
         and not exists (select 1 from continuations c where c.payment_id = p.id)`,
        [merchantId],
      )
      return rows[0]?.id
    }, 'it is written')
    const refused = async (fields: Fields) => {
      const { body } = await gateway.post(`/v1/payments/${root}`, { entityId, ...fields }, header)
      assert.equal(body.result.code, '700.400.570', fields.paymentType)
    }
    const capture = { paymentType: 'CP', amount: '65.00', currency: 'EUR' }
    if (asks) await refused(capture)
    const letGo = await holdChain(root)
    assert.equal((await first).status, 503)
    await letGo()
    if (asks) for (const fields of [capture, { paymentType: 'RV' }]) await refused(fields)
    const early = asks ? ['CP false', 'CP false', 'RV false'] : []
    assert.deepEqual(await codes(root), ['PA true', ...early])
    const { body } = await send(order, key)
    assert.deepEqual([body.result.code, body.id], ['000.200.000', root])
    assert.equal((await read(root)).result.code, '000.200.000')
    await forgetRefusals(root)
    await advance('2m')
    assert.deepEqual((await codes(root)).slice(1 + early.length), asks ? ['CP true'] : ['CP false', 'RV true'])
    assert.equal((await send(order, key)).body.result.code, asks ? '000.100.110' : declined)
  })

const state = (type: string, result: string | undefined, record = {}, connector = 'simulator') =>
  ({
    type,
    amount: 6600,
    channelId: entityId,
    connector,
    record,
    ...(result !== undefined && { answer: { result, approved: result === 'succeeded' } }),
  }) as unknown as PaymentState
const authorized = state('PA', 'succeeded', { captureAtOnce: true })

it('one whose capture was declined is captured by nobody before its hold goes back', () => {
  const [failed, reversal] = [state('CP', 'invalidCard'), state('RV', 'invalidCard')]
  const forbidden = (type: 'CP' | 'RV', ...followers: PaymentState[]) =>
    forbids(
      { type, channelId: entityId, now: 0, ...(type === 'CP' && { amount: 6600 }) },
      { reference: authorized, root: authorized, followers },
      { offered: true, partialReversal: true },
    )
  assert.deepEqual([forbidden('CP'), forbidden('RV')], ['referencePending', 'referencePending'])
  assert.deepEqual([forbidden('CP', failed), forbidden('RV', failed)], ['referencePending', undefined])
  // A reversal that was declined gives nothing back, a part not all of it.
  for (const one of [reversal, { ...state('RV', 'succeeded'), amount: 6500 }])
    assert.deepEqual([forbidden('CP', failed, one), forbidden('RV', failed, one)], ['referencePending', undefined])
  assert.equal(forbidden('CP', failed, state('RV', 'succeeded')), 'authorizationReversed')
  const asked = state('CP', 'invalidCard', { asked: true })
  assert.deepEqual([forbidden('CP', asked), forbidden('RV', asked)], ['referencePending', 'referencePending'])
  // What was refused changes nothing, answered or not; what became of our own reversal does.
  for (const result of [undefined, 'reversalAboveOpen']) {
    const [capture, theirs] = [state('CP', result, { asked: true }, ''), state('RV', result, { asked: true }, '')]
    assert.deepEqual(
      [forbidden('CP', capture, theirs), forbidden('RV', capture, theirs)],
      ['referencePending', 'referencePending'],
    )
    assert.deepEqual([forbidden('CP', failed, theirs), forbidden('RV', failed, theirs)], ['referencePending', undefined])
    assert.equal(forbidden('CP', failed, state('RV', result, {}, '')), 'referencePending')
  }
})

it('our own step goes into a chain that takes nothing more', () => {
  const followers = [
    state('CP', 'invalidCard'),
    ...Array.from({ length: 999 }, () => state('RV', 'invalidCard', { asked: true })),
  ]
  const forbidden = (completes?: true) =>
    forbids(
      { type: 'RV', channelId: entityId, now: 0, ...(completes && { completes }) },
      { reference: authorized, root: authorized, followers },
      { offered: true, partialReversal: true },
    )
  assert.deepEqual([forbidden(), forbidden(true)], ['chainFull', undefined])
})

it('one whose connector is gone holds what it holds, and makes no record of each look', async () => {
  const parts = { database: { work: { query: async () => ({ rows: [] }) } }, connectors: new Map() } as never
  const chain = [authorized, state('CP', 'invalidCard')]
  assert.deepEqual(await completeCapture(parts, undefined as never, authorized, chain), {
    held: 'operationNotOffered',
    isUnsent: true,
  })
})

it('one of whose reversal nobody has heard is not over', async () => {
  const end = (...chain: PaymentState[]) => completeCapture(undefined as never, undefined as never, authorized, chain)
  const failed = state('CP', 'invalidCard')
  for (const before of [[], [failed]]) {
    assert.equal(await end(...before, state('RV', undefined)), 'again')
    assert.equal(await end(...before, state('RV', 'succeeded')), 'over')
  }
})

describe('one whose capture is declined', () => {
  const reverse = (root: string, amount: string) =>
    gateway.post(`/v1/payments/${root}`, { entityId, paymentType: 'RV', amount, currency: 'EUR' }, header)

  it('gives back the rest of its hold as well where the shop has reversed a part before', async () => {
    const { body } = await send({})
    assert.equal(body.result.code, declined)
    const root = body.referencedId
    assert.deepEqual(await codes(root), ['PA true', 'CP false', 'RV true'])
    await forget(root, ['RV'])
    assert.equal((await reverse(root, '10.00')).body.result.code, '000.100.110')
    await advance('2m')
    const { rows } = await gateway.pool.query(
      `select p.amount::int, a.approved from payments p join answers a on a.payment_id = p.id where p.root_id = $1 and p.payment_type = 'RV' order by p.id`,
      [root],
    )
    assert.deepEqual(rows, [
      { amount: 1000, approved: true },
      { amount: 5600, approved: true },
    ])
  })

  it('and is a case still where the shop reverses it when no message reaches the issuer any more', async () => {
    const { body } = await send({ amount: '67.00' })
    const root = body.referencedId
    await advance('2m')
    await eventually(async () => {
      await advance('20s')
      return (await openCases(gateway.pool, root)).length === 1
    }, 'recovery has asked for the reversal')
    await advance('73h')
    assert.equal((await reverse(root, '67.00')).body.result.code, '000.100.110')
    assert.deepEqual(await openCases(gateway.pool, root), ['reversalOpen'])
  })

  for (const torn of [false, true])
    it(`and whose reversal is declined too is a case for somebody: its hold stands${torn ? ', also where recovery made both' : ''}`, async () => {
      const { body } = await send({ amount: '67.00' })
      assert.equal(body.result.code, declined)
      const root = body.referencedId
      assert.deepEqual(await codes(root), ['PA true', 'CP false', 'RV false'])
      if (torn) {
        await forget(root, ['CP', 'RV'])
      }
      await advance('2m')
      const isCase = async () => (await openCases(gateway.pool, root)).length === 1
      await eventually(async () => {
        await advance('20s')
        return isCase()
      }, 'recovery has asked for the reversal')
      assert.deepEqual((await codes(root)).slice(0, 4), ['PA true', 'CP false', 'RV false', 'RV false'])
      const { rows } = await gateway.pool.query(
        `select kind, details::jsonb->>'why' as why from operator_cases where subject = $1`,
        [root],
      )
      assert.deepEqual(rows, [
        { kind: 'reversalOpen', why: 'the capture failed, and so did the reversal: declinedByAuthorization' },
      ])
      // So often nobody could be asked before: what is declined counts by itself.
      if (!torn) await gateway.pool.query('update due_work set attempts = 23 where subject_id = $1', [root])
      let asked = 0
      await eventually(async () => {
        const before = asked
        await advance('11m')
        asked = (await codes(root)).length
        return asked > 10 && asked === before
      }, 'nobody asks again and again')
      assert.ok(asked < 18, `${asked}`)
      assert.equal(await isCase(), true)
      if (!torn) {
        const part = (amount: string) => reverse(root, amount)
        assert.equal((await part('60.00')).body.result.code, '000.100.110')
        assert.equal(await isCase(), true, 'a part of it is held')
        assert.equal((await part('7.00')).body.result.code, '000.100.110')
        assert.equal(await isCase(), false)
        return
      }
      // As it is while it is asked for: whoever closes the case says that nobody asks any more.
      const due = `select 1 from due_work where kind = 'capture' and subject_id = $1`
      await gateway.pool.query(
        `insert into due_work (kind, merchant_id, subject_id, due_at, details) values ('capture', $1, $2, '2099-01-01', '{}')`,
        [merchantId, root],
      )
      await closeCaseOf(gateway, root, 'the shop has it back')
      assert.equal((await gateway.pool.query(due, [root])).rowCount, 0)
    })
})

it('one whose reversal can be sent to nobody gives its hold back when somebody is there again', async () => {
  const { body } = await send({})
  assert.equal(body.result.code, declined)
  const root = body.referencedId
  await forget(root, ['RV'])
  const isCarriedBy = (connector: string) =>
    gateway.pool.query('update payments set connector = $2 where id = $1', [root, connector])
  await isCarriedBy('cards external')
  await eventually(async () => {
    await advance('70s')
    return (await codes(root)).includes('RV false')
  }, 'it is tried, and nobody is there')
  const openCases = async () =>
    (await gateway.pool.query('select from operator_cases where subject = $1 and closed_at is null', [root])).rowCount
  assert.equal(await openCases(), 0, 'it may be there again in a moment')
  await eventually(async () => {
    await advance('11m')
    return (await openCases()) === 1
  }, 'somebody has to look')
  await isCarriedBy('simulator')
  await eventually(async () => {
    await advance('11m')
    return (await codes(root)).includes('RV true')
  }, 'it is tried again')
  await advance('2h')
  assert.equal((await codes(root)).filter(code => code === 'RV true').length, 1)
  assert.equal(await openCases(), 0, 'nobody has to do anything more')
})

for (const paymentType of ['PA.CP', 'PA'])
  it(`a capture of a ${paymentType} that is taken back is waited for before anything else of its hold`, async () => {
    const before = host.ledger.totals().get('978')
    const order = { paymentType, testMode: 'EXTERNAL', amount: '95.00', 'card.number': '4200000000000000' }
    const refer = (fields: Fields) => gateway.post(`/v1/payments/${root}`, { entityId, ...fields }, header)
    const capture = { paymentType: 'CP', amount: '95.00', currency: 'EUR' }
    captures = 'otherAmount'
    isDeafToTakingBack = true
    let { body } = await send(order)
    const root = paymentType === 'PA' ? body.id : body.referencedId
    if (paymentType === 'PA') body = (await refer(capture)).body
    captures = undefined
    assert.equal(body.result.code, '100.550.701')
    for (const fields of [{ paymentType: 'RV' }, { paymentType: 'RV', amount: '10.00', currency: 'EUR' }, capture])
      assert.equal((await refer(fields)).body.result.code, '700.400.570')
    isDeafToTakingBack = false
    const isReversed = async () => (await codes(root)).includes('RV true')
    await eventually(async () => {
      await advance('70s')
      if (paymentType === 'PA' && (await refer({ paymentType: 'RV' })).body.result.code === '700.400.570') return false
      return isReversed()
    }, 'the hold is given back')
    assert.deepEqual(host.ledger.totals().get('978'), { ...before, held: before?.held ?? 0n, cleared: before?.cleared ?? 0n })
  })

for (const fault of ['otherAmount', 'otherCurrency'] as const)
  it(`one whose capture comes back otherwise (${fault}) holds nothing in the end: the capture is taken back before the hold`, async () => {
    captures = fault
    const before = host.ledger.totals().get('978')
    const { body } = await send({ testMode: 'EXTERNAL', amount: '93.00', 'card.number': '4200000000000000' })
    captures = undefined
    assert.equal(body.result.code, '100.550.701')
    const root = body.referencedId
    await eventually(async () => {
      await advance('70s')
      return (await codes(root)).includes('RV true')
    }, 'the hold is given back')
    assert.deepEqual(host.ledger.totals().get('978'), { ...before, held: before?.held ?? 0n, cleared: before?.cleared ?? 0n })
    assert.deepEqual((await examine(gateway.pool)).findings, [])
  })
