// Money that comes after its payment has ended: it goes back once, whoever hears of it how often, and not before the other side has taken it
// back. What counts is what the bank and the wallet were asked, not our own books.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, it } from 'node:test'
import { examine } from '../src/payments/ledger/doctor.ts'
import { takeUp } from '../src/payments/redirects/resume.ts'
import { takeContinuation } from '../src/payments/redirects/store.ts'
import { addLateApproval } from '../src/payments/store/lateApprovals.ts'
import { findPayment } from '../src/payments/store/read.ts'
import { systemClock } from '../src/platform/clock.ts'
import type { Simulators } from '../src/sandbox/serve.ts'
import { simulatorCredentials } from '../src/sandbox/wallet/paypal.ts'
import { closeCaseOf, openCases as openCasesOf } from './support/cases.ts'
import { type Body, eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { makeShopper } from './support/shopper.ts'
import { testSimulators } from './support/simulators.ts'

/** A bank that says what a test wants it to say, and writes down what it is asked to give back. */
const bank = {
  status: 'WAITING',
  sum: '92.00',
  /** How it answers the next refunds: PAID, NO, or `silence`, which carries it out and says nothing. Then PAID. */
  refundSays: [] as string[],
  /** What it says that it has refunded; else nothing of it. */
  refundSum: undefined as string | undefined,
  refunds: [] as { amount: string; reference: string; said: string }[],
  hook: '',
  begun: 0,
}
const server = http.createServer((incoming, outgoing) => {
  let text = ''
  incoming.on('data', chunk => {
    text += chunk
  })
  incoming.on('end', () => {
    const form = new URLSearchParams(text)
    const say = (json: object) => outgoing.end(JSON.stringify(json))
    if (incoming.url === '/begin') {
      bank.hook = form.get('hook')!
      return say({ ref: `tx${++bank.begun}`, go: 'https://bank.example/shopper', state: 'WAITING' })
    }
    if (incoming.url !== `/refund/tx${bank.begun}`)
      return say({ ref: `tx${bank.begun}`, state: bank.status, sum: bank.sum, cur: 'EUR' })
    const said = bank.refundSays.shift() ?? 'PAID'
    bank.refunds.push({ amount: form.get('amount')!, reference: form.get('reference')!, said })
    if (said === 'silence') return void incoming.socket.destroy()
    say({ ref: 'refund1', state: said, ...(bank.refundSum !== undefined && { sum: bank.refundSum, cur: 'EUR' }) })
  })
})

/** What the wallet says instead of its own. */
let walletSays: Readonly<Record<string, string>> = {}
/** Between the gateway and the wallet: changes its words. */
const changing = http.createServer((incoming, outgoing) => {
  const { method, headers, url } = incoming
  const asked = http.request(`${simulators.url}${url}`, { method, headers }, answer => {
    text(answer)
      .then(said => {
        const { 'content-length': _, ...kept } = answer.headers
        outgoing.writeHead(answer.statusCode!, kept)
        const changed = Object.entries(walletSays).reduce(
          (words, [name, value]) => words.replace(new RegExp(`(\\b${name}=)[^&]+`), `$1${value}`),
          said,
        )
        outgoing.end(changed)
      })
      .catch(() => outgoing.destroy())
  })
  incoming.pipe(asked.on('error', () => outgoing.destroy()))
})

let gateway: TestGateway
let simulators: Simulators
let folder: string
before(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  folder = mkdtempSync(join(tmpdir(), 'tollgate-late-'))
  const method = {
    external: { start: `${base}/begin`, status: `${base}/look`, refund: `${base}/refund/{transactionId}` },
    fields: { total: '{amount}', hook: '{notice}' },
    answer: { transactionId: 'ref', redirect: 'go', status: 'state', amount: 'sum', currency: 'cur' },
    statuses: { PAID: '000.000.000', WAITING: '000.200.000', NO: '800.100.100' },
  }
  writeFileSync(join(folder, 'methods.json'), JSON.stringify({ PAYSTAR: method }))
  simulators = await testSimulators(() => gateway)
  const environment = { REDIRECT_METHODS_FILE: join(folder, 'methods.json') }
  await new Promise<void>(resolve => changing.listen(0, '127.0.0.1', resolve))
  const simulatorsUrl = `http://127.0.0.1:${(changing.address() as AddressInfo).port}`
  gateway = await testGateway({ environment, simulatorsUrl })
})
after(async () => {
  await gateway.stop()
  await simulators.stop()
  changing.closeAllConnections()
  changing.close()
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  walletSays = {}
  Object.assign(bank, { status: 'WAITING', sum: '92.00', refundSays: [], refundSum: undefined, refunds: [], hook: '' })
})

const read = async (id: string): Promise<string> =>
  (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body.result.code

const walletOf92 = {
  entityId: sandbox.entityId,
  paymentType: 'DB',
  amount: '92.00',
  currency: 'EUR',
  paymentBrand: 'PAYPAL',
  shopperResultUrl: 'https://shop.example/',
}
const transferOf92 = { ...walletOf92, paymentBrand: 'PAYSTAR', testMode: 'EXTERNAL' }

/** A transfer that nobody made in time. */
async function ended(): Promise<Body> {
  const { body } = await gateway.post('/v1/payments', transferOf92)
  assert.equal(body.result.code, '000.200.000')
  await gateway.advance('31m')
  assert.equal(await read(body.id), '100.395.501')
  return body
}

const notice = async () => assert.equal((await fetch(bank.hook, { method: 'POST', body: 'paid' })).status, 200)

/** The notice has been worked off: nothing is left to do for the payment. */
async function atRest(id: string): Promise<void> {
  await eventually(async () => {
    await gateway.advance('15m')
    const { rows } = await gateway.pool.query('select 1 from due_work where subject_id = $1', [id])
    return rows.length === 0
  }, 'nothing is left to do')
}

describe('a transfer that is paid too late', () => {
  it('is given back once, however many notices come, also after a restart', async () => {
    const { id } = await ended()
    bank.status = 'PAID'
    await Promise.all([notice(), notice()])
    await atRest(id)
    await notice()
    await atRest(id)
    // A process that had asked the bank before the others were done hears of it last.
    assert.equal(
      await addLateApproval(gateway.pool, sandbox.merchantId, id, { transactionId: `tx${bank.begun}` }, Date.now()),
      false,
    )
    await atRest(id)
    const hook = new URL(bank.hook).pathname
    await gateway.restart()
    bank.hook = `${gateway.baseUrl}${hook}`
    await notice()
    await atRest(id)
    assert.deepEqual(bank.refunds, [{ amount: '92.00', reference: id, said: 'PAID' }])
    assert.equal(await read(id), '100.395.501')
    assert.deepEqual((await examine(gateway.pool)).findings, [])
  })
  it('is asked back until the bank agrees: a refusal gives nothing back', async () => {
    const { id } = await ended()
    bank.status = 'PAID'
    bank.refundSays = ['NO', 'NO']
    await notice()
    await atRest(id)
    await notice()
    await atRest(id)
    assert.deepEqual(
      bank.refunds.map(({ said }) => said),
      ['NO', 'NO', 'PAID'],
    )
  })
  it('is asked back again under the same reference when the bank’s answer is lost', async () => {
    const { id } = await ended()
    bank.status = 'PAID'
    bank.refundSays = ['silence']
    await notice()
    await atRest(id)
    assert.deepEqual(
      bank.refunds.map(({ said, reference }) => [said, reference]),
      [
        ['silence', id],
        ['PAID', id],
      ],
    )
  })
  it('is given back as it came when another amount came', async () => {
    const { id } = await ended()
    Object.assign(bank, { status: 'PAID', sum: '95.50' })
    await notice()
    await atRest(id)
    await notice()
    await atRest(id)
    assert.deepEqual(
      bank.refunds.map(({ amount }) => amount),
      ['95.50'],
    )
  })
})

describe('another amount than was asked for', () => {
  it('is no success, and goes back as it came, once', async () => {
    const { body } = await gateway.post('/v1/payments', transferOf92)
    Object.assign(bank, { status: 'PAID', sum: '90.00' })
    await notice()
    await eventually(async () => (await read(body.id)) === '100.550.701', 'the payment ends')
    await atRest(body.id)
    await notice()
    await atRest(body.id)
    assert.deepEqual(
      bank.refunds.map(({ amount }) => amount),
      ['90.00'],
    )
  })
  for (const [came, given] of [
    ['90.00', '1.00'],
    ['184.00', '92.00'],
  ] as const) {
    it(`of which another amount is given back is a case, and is asked back on (${given} of ${came}, a bank)`, async () => {
      const { body } = await gateway.post('/v1/payments', transferOf92)
      Object.assign(bank, { status: 'PAID', sum: came, refundSum: given })
      await notice()
      await eventually(async () => (await openCases(body.id))[0] === 'reversalOpen', 'a case')
      bank.refundSum = came
      await atRest(body.id)
      assert.deepEqual(await openCases(body.id), [])
      assert.ok(bank.refunds.length >= 2)
      assert.ok(bank.refunds.every(({ amount, reference }) => amount === came && reference === body.id))
    })
    it(`and so at a wallet (${given} of ${came})`, async () => {
      walletSays = { PAYMENTINFO_0_AMT: came, GROSSREFUNDAMT: given }
      const { body } = await gateway.post('/v1/payments', walletOf92)
      await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
      assert.equal(await read(body.id), '100.550.701')
      await eventually(async () => (await openCases(body.id))[0] === 'reversalOpen', 'a case')
      walletSays = { GROSSREFUNDAMT: came }
      await atRest(body.id)
      assert.deepEqual(await openCases(body.id), [])
    })
  }
  it('that a wallet holds is voided, and no amount is named', async () => {
    walletSays = { PAYMENTINFO_0_AMT: '90.00' }
    const { body } = await gateway.post('/v1/payments', { ...walletOf92, paymentType: 'PA' })
    await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
    assert.equal(await read(body.id), '100.550.701')
    await atRest(body.id)
    assert.deepEqual(await openCases(body.id), [])
  })
})

/** A transfer that came as it was asked for. */
async function paid(): Promise<Body> {
  const { body } = await gateway.post('/v1/payments', transferOf92)
  bank.status = 'PAID'
  await notice()
  await eventually(async () => (await read(body.id)) === '000.100.112', 'it is paid')
  return body
}

const openCases = (subject: string) => openCasesOf(gateway.pool, subject)

describe('a refund that is answered with another amount', () => {
  const refund = (id: string, amount: string) => gateway.refer(id, { paymentType: 'RF', amount, currency: 'EUR' })
  const isCounted = async (of: string, refundId: string, amount: string) => {
    assert.equal(await read(refundId), '000.200.000')
    assert.deepEqual(await openCases(refundId), ['answerUnproven'])
    await gateway.advance('15m')
    assert.equal((await refund(of, amount)).body.result.code, '700.400.200')
    await closeCaseOf(gateway, refundId, 'they gave back what was asked', 'carriedOut')
    await gateway.advance('15m')
    assert.match(await read(refundId), /^000\.100\.11[02]$/)
    assert.equal((await refund(of, amount)).body.result.code, '700.400.200')
  }
  it('by a bank counts until somebody has asked, as it cannot be taken back', async () => {
    const { id } = await paid()
    bank.refundSum = '92.00'
    await isCounted(id, (await refund(id, '30.00')).body.id, '62.01')
    assert.deepEqual(
      bank.refunds.map(({ amount }) => amount),
      ['30.00'],
    )
  })
  it('by a wallet too', async () => {
    const { body } = await gateway.post('/v1/payments', walletOf92)
    await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
    assert.equal(await read(body.id), '000.100.110')
    walletSays = { GROSSREFUNDAMT: '92.00' }
    const { id } = (await refund(body.id, '30.00')).body
    await isCounted(body.id, id, '62.01')
  })
})

it('a capture in part of which somebody has said that a wallet carried it out leaves nothing to release: it was its last', async () => {
  const { body } = await gateway.post('/v1/payments', { ...walletOf92, paymentType: 'PA' })
  await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
  walletSays = { PAYMENTSTATUS: 'In-Progress' }
  const captured = await gateway.refer(body.id, { paymentType: 'CP', amount: '30.00', currency: 'EUR' })
  assert.equal(captured.body.result.code, '000.200.000')
  await eventually(async () => {
    await gateway.advance('15m')
    return (await openCases(captured.body.id))[0] === 'stillUnknown'
  }, 'a case')
  await closeCaseOf(gateway, captured.body.id, 'they have captured it', 'carriedOut')
  await atRest(captured.body.id)
  assert.match(await read(captured.body.id), /^000\.100\.11[02]$/)
  assert.deepEqual(await openCases(captured.body.id), [])
})

/** What somebody else learns at the wallet. */
async function atWallet(METHOD: string, pairs: Record<string, string>): Promise<Record<string, string>> {
  const { user, password, signature } = simulatorCredentials
  const form = new URLSearchParams({ USER: user, PWD: password, SIGNATURE: signature, VERSION: '124.0', METHOD, ...pairs })
  const response = await fetch(`${simulators.url}/wallet/nvp`, { method: 'POST', body: form })
  return Object.fromEntries(new URLSearchParams(await response.text()))
}

describe('a wallet payment that is approved too late', () => {
  for (const [paymentType, probe, code] of [
    ['DB', (transaction: string) => atWallet('RefundTransaction', { TRANSACTIONID: transaction, REFUNDTYPE: 'Full' }), '10009'],
    ['PA', (transaction: string) => atWallet('DoCapture', { AUTHORIZATIONID: transaction, AMT: '92.00' }), '10609'],
  ] as const) {
    it(`${paymentType}: the wallet is told to take its own transaction back`, async () => {
      const { body } = await gateway.post('/v1/payments', {
        entityId: sandbox.entityId,
        paymentType,
        amount: '92.00',
        currency: 'EUR',
        paymentBrand: 'PAYPAL',
        shopperResultUrl: 'https://shop.example/',
      })
      const TOKEN = body.redirect.parameters[1].value
      const walking = makeShopper().walk(`${body.redirect.url}?auto=slow`, gateway.baseUrl)
      await eventually(async () => {
        const { rows } = await gateway.pool.query('select 1 from continuations where payment_id = $1', [body.id])
        return rows.length === 0
      }, 'the wallet is asked, and takes its time')
      // The answer of another process, which has stored it while the wallet took its time: simulated by the row that it leaves.
      await gateway.pool.query(
        `insert into answers (merchant_id, payment_id, result, approved, reply, body, answered_at)
         values ($1, $2, 'pendingTimedOut', false, '{}', $3, now()) on conflict do nothing`,
        [sandbox.merchantId, body.id, JSON.stringify(body)],
      )
      await walking
      const { PAYMENTREQUEST_0_TRANSACTIONID: transaction } = await atWallet('GetExpressCheckoutDetails', { TOKEN })
      assert.ok(transaction)
      await eventually(async () => {
        const { rows } = await gateway.pool.query(`select 1 from due_work where kind = 'reverse' and subject_id = $1`, [body.id])
        return rows.length === 0
      }, 'the reversal is done')
      assert.equal((await probe(transaction)).L_ERRORCODE0, code)
    })
  }
})

describe('a continuation', () => {
  it('belongs to whoever takes it, also when a connection is cut between the taking and its answer', async () => {
    /** `cut`: how many of the first statements nobody hears the end of, and whether they were carried out. */
    const takers = async (cut: number, isCarriedOut: boolean, takers = 1) => {
      const { body } = await gateway.post('/v1/payments', walletOf92)
      const payment = (await findPayment(gateway.pool, sandbox.merchantId, body.id))!
      const take = async () => {
        let asked = 0
        const query = async (text: string, values: unknown[]) => {
          const isCut = text.includes('with taken') && asked++ < cut
          const said = isCut && !isCarriedOut ? undefined : await gateway.pool.query(text, values)
          if (isCut) throw new Error('Connection terminated unexpectedly')
          return said
        }
        const parts = {
          database: { work: { query } },
          connectors: new Map(),
          clock: systemClock,
          random: { uuid: randomUUID },
        } as never
        const returned = { step: 'wallet', event: {}, publicUrl: '', now: Date.now() + 1000 }
        return (await takeUp(parts, payment, returned)) !== undefined
      }
      const all = await Promise.allSettled(Array.from({ length: takers }, take))
      return all.map(one => (one.status === 'fulfilled' ? one.value : 'failed')).sort()
    }
    assert.deepEqual(await takers(1, true), [true], 'it is known who has it')
    assert.deepEqual(await takers(2, false), [true], 'it is tried again')
    assert.deepEqual(await takers(3, false), ['failed'], 'not for ever')
    assert.deepEqual(await takers(1, true, 2), [false, true], 'of two who hear nothing one has it')
  })
  it('belongs to whoever returns until its deadline, and to the end of time from then on', async () => {
    const { body } = await gateway.post('/v1/payments', walletOf92)
    const { rows } = await gateway.pool.query<{ deadline: number }>(
      'select extract(epoch from deadline)::float8 * 1000 as deadline from continuations where payment_id = $1',
      [body.id],
    )
    const deadline = Math.round(rows[0]!.deadline)
    const take = async (now: number, ended: boolean) =>
      (await takeContinuation(gateway.pool, sandbox.merchantId, body.id, 'a test', 'wallet', now, now + 90_000, ended, '')) !==
      undefined
    assert.equal(await take(deadline, false), false, 'a return at the deadline comes too late')
    assert.equal(await take(deadline - 1, true), false, 'the end does not come before')
    assert.equal(await take(deadline - 1, false), true)
    assert.equal(await take(deadline - 1, false), false, 'nobody takes it twice')
  })
})
