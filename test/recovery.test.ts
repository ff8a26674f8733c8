// Recovery as the acquirer sees it: which messages reach it when an approval comes after everything was decided, when a payment is still waited
// for, and when its process died.

import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Message } from '../src/connectors/cards/iso8583/codec.ts'
import type { Connector, Operation, Reply } from '../src/connectors/connector.ts'
import { execute } from '../src/payments/execute.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import type { PaymentParts } from '../src/payments/parts.ts'
import { answerLane } from '../src/payments/store/answers.ts'
import { writePatienceSeconds } from '../src/payments/store/payments.ts'
import { findPayment } from '../src/payments/store/read.ts'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { eventually, type Fields, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile } from './support/host.ts'
import { untilWaiting } from './support/locks.ts'
import { answerAll, type Peer, startPeer } from './support/peer.ts'

let ahead = 0
let gateway: TestGateway
let peer: Peer
let file: AcquirersFile
/** What has reached the acquirer, oldest first. */
let received: { readonly type: string; answer(): void }[] = []
/** Answered by themselves; all others when the test wants it, on the line that stands then. */
let answered: (message: Message) => boolean

before(async () => {
  let line: Socket
  peer = await startPeer((socket, message) => {
    line = socket
    received.push({ type: message.type, answer: () => answerAll(line, message) })
    if (answered(message)) answerAll(line, message)
  })
  file = acquirersFile({ north: [peer.port] }, { answerWithinSeconds: 60, recoverAfterSeconds: 0.1 })
  gateway = await testGateway({ clock: clockWith(() => Date.now() + ahead), environment: { ACQUIRERS_FILE: file.path } })
})
beforeEach(() => {
  received = []
  answered = () => true
})
after(async () => {
  await gateway.stop()
  peer.stop()
  file.remove()
})

const pay = (fields: Fields = {}) => gateway.pay({ testMode: 'EXTERNAL', ...fields })
const codeOf = async (id: string): Promise<string> =>
  (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body.result.code
const reached = (count: number) => eventually(async () => received.length >= count, `${count} messages reach the acquirer`)
const isReversal = ({ type }: { readonly type: string }) => /^042[01]$/.test(type)
const nothingDue = (id: string) =>
  eventually(
    async () => (await gateway.pool.query('select 1 from due_work where subject_id = $1', [id])).rows.length === 0,
    'nothing is left to do',
  )
const booksAgree = async () => assert.deepEqual((await examine(gateway.pool)).findings, [])

/** As if the process had died after its first write: recovery is due. */
async function diedBeforeItsAnswer(id: string): Promise<void> {
  for (const statement of [
    'delete from answers where payment_id = $1',
    'delete from events where payment_id = $1',
    `delete from journal where payment_id = $1 and state <> 'pending'`,
  ])
    await gateway.pool.query(statement, [id])
  assert.equal(await codeOf(id), pending)
  await gateway.pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at) select 'recover', merchant_id, id, recorded_at from payments where id = $1`,
    [id],
  )
}

const success = '000.100.112'
const pending = '000.200.000'
const timedOut = '900.100.301'

describe('an approval that comes after recovery has decided', () => {
  /** A debit that the acquirer keeps to itself while the line is cut. */
  async function unknown(): Promise<string> {
    const asked = pay()
    await reached(1)
    peer.cut()
    const { body } = await asked
    assert.equal(body.result.code, pending)
    return body.id
  }

  it('is reversed again when its reversal was acknowledged already', async () => {
    answered = isReversal
    const id = await unknown()
    await reached(2)
    await nothingDue(id)
    assert.equal(await codeOf(id), timedOut)
    received[0]!.answer()
    await reached(3)
    assert.ok(isReversal(received[2]!))
    await nothingDue(id)
    assert.equal(await codeOf(id), timedOut)
    await booksAgree()
  })

  it('is reversed again when its reversal is under way: that one may have been there before it', async () => {
    answered = () => false
    const id = await unknown()
    await reached(2)
    received[0]!.answer()
    await eventually(async () => gateway.logged.some(line => line.includes('is reversed') && line.includes(id)), 'it was taken')
    answered = isReversal
    received[1]!.answer()
    await reached(3)
    assert.ok(isReversal(received[2]!))
    await nothingDue(id)
    assert.equal(await codeOf(id), timedOut)
  })
})

describe('an operation without an answer', () => {
  it('is settled later when its recovery fails', async () => {
    const { body } = await gateway.pay({ 'customParameters[simulateAnswer]': 'none' })
    await gateway.pool.query('alter table answers rename to gone')
    try {
      ahead += 20_000
      await eventually(
        async () => gateway.logged.some(line => line.includes('due work failed') && line.includes(body.id)),
        'recovery has failed',
      )
    } finally {
      await gateway.pool.query('alter table gone rename to answers')
    }
    ahead += 60_000
    await eventually(async () => (await codeOf(body.id)) === timedOut, 'it is settled')
  })

  for (const [what, send] of [
    ['a payment', () => pay()],
    ['a refund', (id: string) => gateway.refer(id, { paymentType: 'RF', amount: '1.00', currency: 'EUR' })],
  ] as const)
    it(`is not sent when it was stored too late: ${what}`, async t => {
      const { body: before } = await pay()
      const holder = await gateway.pool.connect()
      await holder.query('begin; lock table payments in exclusive mode')
      const sent = send(before.id)
      await untilWaiting(gateway.pool)
      const { now } = performance
      t.mock.method(performance, 'now', () => now.call(performance) + (writePatienceSeconds + 1) * 1000)
      await holder.query('rollback')
      holder.release()
      const { body } = await sent
      assert.deepEqual([body.result.code, body.amount], ['900.100.600', what === 'a refund' ? '1.00' : '92.00'])
      assert.deepEqual(
        received.map(({ type }) => type),
        ['0200'],
      )
      await booksAgree()
    })

  it('takes the answer of a connector that brings it after its time', async () => {
    const { body } = await gateway.pay({ 'customParameters[simulateAnswer]': 'none' })
    await gateway.pool.query('delete from due_work where subject_id = $1', [body.id]) // no recovery may be faster
    const payment = (await findPayment(gateway.pool, sandbox.merchantId, body.id))!
    const { amount, currency } = payment
    const clock = clockWith(() => Date.now() + ahead) // the gateway's, or its recovery is due at once
    const parts = {
      clock,
      random: systemRandom,
      keys: testKeys,
      build: 'test',
      log: { warn() {}, info() {} },
      directory: { businessTime: clock.real },
      database: { work: gateway.pool },
      connectors: new Map(),
      insertAnswer: answerLane(gateway.pool, clock),
    } as unknown as PaymentParts
    const reply: Reply = { kind: 'answer', result: 'succeeded', amount, currency, details: {}, kept: {} }
    let bring = (_: Reply) => {}
    const connector: Connector = {
      name: 'patient',
      answerWithinSeconds: 0.05,
      operations: { DB: { how: 'reverse', afterSeconds: 60 } },
      partialReversal: () => false,
      perform: () => new Promise(resolve => (bring = resolve)),
    }
    const said = await execute(parts, { payment, rootType: 'DB', connector, operation: { type: 'DB' } as Operation })
    assert.equal(said.outcome, 'pending')
    bring(reply)
    await eventually(async () => (await codeOf(body.id)) === '000.100.110', 'the late answer is stored')
  })

  it('is nobody’s orphan while it is waited for: its process may yet bring the answer', async () => {
    // One whose process died long ago shows when the search has passed.
    const { body: orphan } = await gateway.pay({ 'customParameters[simulateAnswer]': 'none' })
    await gateway.pool.query('delete from due_work where subject_id = $1', [orphan.id])
    await gateway.pool.query('insert into unanswered select merchant_id, id, recorded_at from payments where id = $1', [
      orphan.id,
    ])
    ahead += 50_000
    answered = isReversal
    const asked = pay()
    await reached(1)
    ahead += 60_000 // as long as the acquirer may take
    await eventually(async () => (await codeOf(orphan.id)) === timedOut, 'the search has passed')
    await eventually(
      async () => (await gateway.pool.query(`select 1 from due_work where kind = 'recover'`)).rows.length === 0,
      'all that it found is settled',
    )
    received[0]!.answer()
    assert.equal((await asked).body.result.code, success)
    assert.equal(received.length, 1)
  })

  for (const testMode of ['EXTERNAL', 'INTERNAL'])
    it(`that was refused here is not carried out by recovery (${testMode})`, async () => {
      const { body: debit } = await pay({ testMode })
      const before = received.length
      const { body: refused } = await gateway.refer(debit.id, { paymentType: 'RF', amount: '92.01', currency: 'EUR' })
      assert.equal(refused.result.code, '700.400.200')
      await diedBeforeItsAnswer(refused.id)
      await eventually(async () => (await codeOf(refused.id)) !== pending, 'recovery settles it')
      assert.equal(await codeOf(refused.id), '900.100.310')
      assert.equal(received.length, before)
      await booksAgree()
    })

  it('is closed here by recovery too, when its hold is older than 72 hours: the acquirer hears nothing', async () => {
    const { body: hold } = await pay({ paymentType: 'PA' })
    await gateway.advance('73h')
    const { body: closed } = await gateway.refer(hold.id, { paymentType: 'RV' })
    assert.equal(closed.result.code, success)
    await diedBeforeItsAnswer(closed.id)
    await eventually(async () => (await codeOf(closed.id)) === success, 'recovery closes it')
    assert.deepEqual(
      received.map(({ type }) => type),
      ['0100'],
    )
    await booksAgree()
  })
})

it('a start looks for what was left behind before it takes requests: the first payment is nobody’s orphan', async () => {
  const other = await testGateway()
  const holder = await other.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('lock table unanswered')
    let up = false
    const restarted = other.restart().then(() => {
      up = true
    })
    // Not the search of the gateway that is stopped.
    const waiting = `select 1 from pg_locks join pg_stat_activity using (pid)
                      where not granted and relation = 'unanswered'::regclass and datname = current_database()
                        and backend_start > (select xact_start from pg_stat_activity where pid = $1)`
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
    await eventually(async () => (await other.pool.query(waiting, [rows[0]!.pid])).rowCount === 1, 'the search waits')
    assert.equal(up, false)
    await holder.query('commit')
    await restarted
  } finally {
    holder.release()
    await other.stop()
  }
})
