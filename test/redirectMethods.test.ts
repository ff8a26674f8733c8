// What the wallet is sent, what a configured redirect method may be, and the small parts that pages stand on.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { readRedirectMethods } from '../src/connectors/bankTransfer/redirectMethods.ts'
import { transfer } from '../src/connectors/bankTransfer/transfer.ts'
import type { Operation, Reply } from '../src/connectors/connector.ts'
import { readDirectoryFile, readWalletFile } from '../src/connectors/partners.ts'
import { NotSent, type Transport } from '../src/connectors/transport.ts'
import { followUpRequest, items, readPairs, setCheckout } from '../src/connectors/wallet/nvp.ts'
import { wallet } from '../src/connectors/wallet/paypal.ts'
import { type Form, readForm } from '../src/contract/form.ts'
import { formChecker } from '../src/contract/formCheck.ts'
import { limits } from '../src/contract/limits.ts'
import { requests } from '../src/contract/requests.ts'
import type { HttpParts } from '../src/http/parts.ts'
import { merchantOfTail, merchantTail } from '../src/merchants/merchantTail.ts'
import { channelSettings } from '../src/merchants/settings.ts'
import { html } from '../src/pages/html.ts'
import { shopAddress } from '../src/pages/shopper/redirect.ts'
import { operationOf } from '../src/payments/execute.ts'
import type { Payment } from '../src/payments/payment.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { read } from '../src/platform/schema.ts'
import { readConfig } from '../src/start/config.ts'
import { sandbox, testGateway } from './support/gateway.ts'
import { makeShopper } from './support/shopper.ts'

const addresses = {
  page: 'https://pay.example/r/a.b',
  back: 'https://pay.example/r/return/a.b',
  cancel: 'https://pay.example/r/cancel/a.b',
  notice: 'https://pay.example/r/notice/c.b',
  method: '',
  methodDone: '',
}
const operation = (fields: Record<string, string>, more: Partial<Operation> = {}): Operation => ({
  type: 'DB',
  merchantId: '0'.repeat(32),
  paymentId: '1'.repeat(32),
  channel: { id: '2'.repeat(32), settings: read(channelSettings, {}, 'test') },
  shopName: 'Shop',
  mode: 'external',
  brand: 'PAYPAL',
  amount: 9200,
  currency: 'EUR',
  fields: new Map(Object.entries(fields)),
  receivedAt: 0,
  attempt: 1,
  addresses,
  ...more,
})

describe('what the wallet is sent', () => {
  const cart = (prices: readonly string[], shipping?: string) =>
    Object.fromEntries(
      prices.flatMap((price, at) => [
        [`cart.items[${at}].name`, `Item ${at}`],
        [`cart.items[${at}].price`, price],
        ...(shipping !== undefined && at === 0 ? [[`cart.items[${at}].shipping`, shipping] as [string, string]] : []),
      ]),
    )
  it('names our transaction id as invoice, and never the invoice id', () => {
    const pairs = setCheckout(operation({ merchantTransactionId: 'order-0001', 'customer.email': 'jane@buyer.example' }))
    assert.deepEqual(pairs, {
      PAYMENTREQUEST_0_PAYMENTACTION: 'Sale',
      PAYMENTREQUEST_0_AMT: '92.00',
      PAYMENTREQUEST_0_CURRENCYCODE: 'EUR',
      PAYMENTREQUEST_0_INVNUM: 'order-0001',
      RETURNURL: addresses.back,
      CANCELURL: addresses.cancel,
      EMAIL: 'jane@buyer.example',
      BRANDNAME: 'Shop',
    })
    assert.equal(setCheckout(operation({}, { type: 'PA' })).PAYMENTREQUEST_0_PAYMENTACTION, 'Authorization')
  })
  it('has the cart when it adds up to the hundredth, and else none of it', () => {
    assert.equal(items(operation(cart(['90.00', '2.00']))).PAYMENTREQUEST_0_ITEMAMT, '92.00')
    assert.deepEqual(items(operation(cart(['90.00', '2.01']))), {})
    assert.deepEqual(items(operation(cart(['90.00', '1.99']))), {})
    const shipped = items(operation(cart(['90.00'], '2.00')))
    assert.deepEqual([shipped.PAYMENTREQUEST_0_ITEMAMT, shipped.PAYMENTREQUEST_0_SHIPPINGAMT], ['90.00', '2.00'])
  })
  it('refunds a capture under the capture’s id, a sale under its own', () => {
    const reference = { paymentId: 'p', type: 'PA' as const, amount: 9200, receivedAt: 0, kept: { TRANSACTIONID: 'AUTH' } }
    const refund = followUpRequest(
      operation({}, { type: 'RF', amount: 100, reference: { ...reference, captureKept: { TRANSACTIONID: 'CAP' } } }),
    )
    assert.deepEqual(
      [refund.method, refund.pairs.TRANSACTIONID, refund.pairs.REFUNDTYPE, refund.pairs.AMT],
      ['RefundTransaction', 'CAP', 'Partial', '1.00'],
    )
    assert.equal(followUpRequest(operation({}, { type: 'RV', reference })).method, 'DoVoid')
    assert.equal(followUpRequest(operation({}, { type: 'RV', reference: { ...reference, type: 'DB' } })).pairs.REFUNDTYPE, 'Full')
  })
  it('takes a capture back under the capture’s transaction, and never under the message id of the capture itself', () => {
    const reference = { paymentId: 'p', type: 'CP' as const, amount: 9200, receivedAt: 0, kept: { TRANSACTIONID: 'CAP' } }
    const { method, pairs } = followUpRequest(operation({}, { type: 'RV', recovering: true, reference }))
    assert.deepEqual([method, pairs.TRANSACTIONID, pairs.MSGSUBID], ['RefundTransaction', 'CAP', `${operation({}).paymentId}-RV`])
  })
})

it('no connector is given the invoice id', () => {
  const { channel, ...known } = operation({})
  const gateway = {
    directory: { entity: () => ({ ...channel, kind: 'channel' }), merchant: () => undefined },
  } as unknown as HttpParts
  const fields = [
    ['merchantInvoiceId', 'invoice-secret'],
    ['merchantTransactionId', 'order-0001'],
  ]
  const payment = { ...known, channelId: channel.id, record: { ndc: '', fields } } as unknown as Payment
  assert.deepEqual([...operationOf(gateway, payment, { attempt: 1 }).fields], [['merchantTransactionId', 'order-0001']])
})

describe('how the wallet’s answers are read', () => {
  const settings = {
    endpoint: 'https://wallet.example/nvp',
    checkout: 'https://wallet.example/checkout',
    credentials: { default: { user: 'u', password: 'p', signature: 's' } },
  }
  const done =
    'ACK=Success&PAYMENTINFO_0_TRANSACTIONID=T1&PAYMENTINFO_0_AMT=92.00&PAYMENTINFO_0_CURRENCYCODE=EUR&PAYMENTINFO_0_PAYMENTSTATUS=Completed&CORRELATIONID=c'
  const details = 'ACK=Success&PAYERID=B1&EMAIL=jane@buyer.example&FIRSTNAME=Jane'
  const asked: string[] = []
  /** The connector with an other side that gives these answers one after the other. */
  const answering = (answers: readonly (string | Error)[]) => {
    const left = [...answers]
    asked.length = 0
    const transport: Transport = async ({ body }) => {
      asked.push(readPairs(body!).METHOD!)
      const next = left.shift()!
      if (typeof next !== 'string') throw next
      return { status: 200, body: next }
    }
    return wallet('external', () => settings, transport)
  }
  const data = { token: 'EC-1' }
  const forever = new AbortController().signal
  const play = async (...answers: readonly (string | Error)[]) =>
    answering(answers).resume!(operation({}), { step: 'wallet', data, event: { payerId: 'B1' } }, forever)
  const recover = (...answers: readonly (string | Error)[]) =>
    answering(answers).perform(operation({}, { attempt: 2, continued: data }), forever)
  const takeBack = (reference: Partial<NonNullable<Operation['reference']>>, ...answers: readonly string[]) => {
    const whole = { paymentId: 'p', type: 'DB' as const, amount: 9200, receivedAt: 0, kept: {}, ...reference }
    return answering(answers).perform(operation({}, { type: 'RV', recovering: true, reference: whole }), forever)
  }
  const failure = (code: string) => `ACK=Failure&L_ERRORCODE0=${code}`
  it('a reading that fails is no decline: the money may have moved', async () => {
    for (const code of ['10001', '10002', '10007', '10411', '81100'])
      assert.equal((await recover(failure(code))).kind, 'unknown', code)
    assert.equal((await play(failure('10001'))).kind, 'unknown')
    assert.equal((await play(details, failure('10001'))).kind, 'unknown')
    const ended = await recover(failure('10411'))
    assert.ok(ended.kind === 'unknown' && ended.needsDecision, 'a token that has expired is never read again')
    const refusedBack = await takeBack({ kept: { TRANSACTIONID: 'T1' } }, failure('10009'))
    assert.ok(refusedBack.kind === 'unknown' && refusedBack.answered)
    const paid = await recover(details, done)
    assert.ok(paid.kind === 'answer' && paid.result === 'succeeded' && paid.transaction === 'T1')
  })
  it('an answer about another checkout or another invoice says nothing', async () => {
    const again = `${details}&CHECKOUTSTATUS=PaymentActionCompleted&PAYMENTREQUEST_0_TRANSACTIONID=T1&PAYMENTREQUEST_0_AMT=92.00&PAYMENTREQUEST_0_CURRENCYCODE=EUR`
    for (const [names, kind] of [
      ['&TOKEN=EC-1&INVNUM=order-0001&PAYMENTREQUEST_0_INVNUM=order-0001', 'succeeded'],
      ['&TOKEN=EC-2', 'unknown'],
      ['&TOKEN=', 'unknown'],
      ['&INVNUM=order-0002', 'unknown'],
      ['&PAYMENTREQUEST_0_INVNUM=order-0002', 'unknown'],
    ] as const) {
      const asked = operation({ merchantTransactionId: 'order-0001' })
      const returned = (...answers: string[]) =>
        kindOf(answering(answers).resume!(asked, { step: 'wallet', data, event: { payerId: 'B1' } }, forever))
      const { addresses: _away, ...alone } = asked
      const recovered = (...answers: string[]) =>
        kindOf(answering(answers).perform({ ...alone, attempt: 2, continued: data }, forever))
      for (const go of [returned, recovered]) {
        assert.equal(await go(details + names, done), kind, names)
        assert.equal(await go(details, done + names), kind, names)
        assert.equal(await go(details, failure('10415'), again + names), kind, names)
      }
    }
  })
  it('an approval without a transaction is none', async () =>
    assert.equal((await play(details, done.replace('TRANSACTIONID=T1', 'TRANSACTIONID='))).kind, 'unknown'))
  it('nothing is called taken back without a message, and a refund is never refunded', async () => {
    for (const reference of [{}, { type: 'RF' as const, kept: { TRANSACTIONID: 'R1' } }]) {
      assert.equal((await takeBack(reference)).kind, 'unknown')
      assert.deepEqual(asked, [])
    }
    const voided = await takeBack({ type: 'PA', kept: { TRANSACTIONID: 'T1' } }, 'ACK=Success&AUTHORIZATIONID=T1')
    assert.ok(voided.kind === 'answer' && voided.result === 'succeeded')
    assert.deepEqual(asked, ['DoVoid'])
    assert.equal((await takeBack({ kept: { TRANSACTIONID: 'T1' } }, failure('10009'))).kind, 'unknown')
    assert.deepEqual(asked, ['RefundTransaction'])
  })
  it('10415 after a lost answer: done, under the transaction that the wallet names', async () => {
    const again = `${details}&CHECKOUTSTATUS=PaymentActionCompleted&PAYMENTREQUEST_0_TRANSACTIONID=T1&PAYMENTREQUEST_0_AMT=92.00&PAYMENTREQUEST_0_CURRENCYCODE=EUR`
    const reply = await play(details, 'ACK=Failure&L_ERRORCODE0=10415', again)
    assert.ok(reply.kind === 'answer' && reply.result === 'succeeded' && reply.kept.TRANSACTIONID === 'T1')
    const unfinished = again.replace('PaymentActionCompleted', 'PaymentActionInProgress')
    assert.equal((await play(details, 'ACK=Failure&L_ERRORCODE0=10415', unfinished)).kind, 'unknown')
  })
  const kindOf = async (reply: Promise<Reply>) => {
    const told = await reply
    return told.kind === 'answer' ? told.result : told.kind
  }
  it('only what the wallet calls completed is paid', async () => {
    const saying = (status: string, reason = 'None') =>
      kindOf(play(details, done.replace('Completed', `${status}&PAYMENTINFO_0_PENDINGREASON=${reason}`)))
    for (const status of ['Completed', 'Processed', 'Completed-Funds-Held'])
      assert.equal(await saying(status), 'succeeded', status)
    for (const status of ['Denied', 'Failed', 'Voided', 'Expired']) assert.equal(await saying(status), 'declinedByWallet', status)
    for (const status of ['In-Progress', 'Reversed', 'Refunded', 'None', '', 'xyz', 'constructor'])
      assert.equal(await saying(status), 'unknown', status)
    assert.equal(await kindOf(play(details, done.replace('&PAYMENTINFO_0_PAYMENTSTATUS=Completed', ''))), 'unknown')
    assert.equal(await saying('pending', 'echeck'), 'reviewStillPending')
    assert.equal(await saying('Pending', 'authorization'), 'unknown', 'a sale that only holds')
    assert.equal(await kindOf(play(details, `${done}&PAYMENTINFO_0_ACK=Failure`)), 'unknown')
  })
  it('an answer that says neither yes nor no is no decline, and one that names nothing is no yes', async () => {
    const odd = [
      'ACK=Failure&L_ERRORCODE0=10001',
      'ACK=Failure',
      'ACK=',
      'ACK=success',
      'ACK=PartialSuccess',
      '<p>sorry &ACK=</p>',
    ]
    const follow = (type: 'CP' | 'RF' | 'RV', of: 'PA' | 'DB', answer: string) => {
      const reference = { paymentId: 'p', type: of, amount: 9200, receivedAt: 0, kept: { TRANSACTIONID: 'T1' } }
      return kindOf(answering([answer]).perform(operation({}, { type, reference }), forever))
    }
    for (const answer of odd) {
      assert.equal(await kindOf(play(details, answer)), 'unknown', answer)
      for (const [type, of] of [
        ['CP', 'PA'],
        ['RF', 'DB'],
        ['RV', 'PA'],
        ['RV', 'DB'],
      ] as const)
        assert.equal(await follow(type, of, answer), 'unknown', `${type} ${answer}`)
    }
    const captured = 'ACK=Success&TRANSACTIONID=C1&AMT=92.00&CURRENCYCODE=EUR'
    for (const [answer, expected] of [
      ['&PAYMENTSTATUS=Completed', 'succeeded'],
      ['&PAYMENTSTATUS=Denied', 'declinedByWallet'],
      ['&PAYMENTSTATUS=Pending', 'reviewStillPending'],
      ['', 'unknown'],
    ] as const)
      assert.equal(await follow('CP', 'PA', captured + answer), expected, answer)
    for (const type of ['CP', 'RF', 'RV'] as const) assert.equal(await follow(type, 'PA', 'ACK=Success'), 'unknown', type)
    const refunded = 'ACK=Success&REFUNDTRANSACTIONID=R1&GROSSREFUNDAMT=92.00&CURRENCYCODE=EUR'
    for (const [answer, expected] of [
      ['', 'succeeded'],
      ['&REFUNDSTATUS=Instant', 'succeeded'],
      ['&REFUNDSTATUS=None', 'declinedByWallet'],
      ['&REFUNDSTATUS=xyz', 'unknown'],
    ] as const)
      assert.equal(await follow('RF', 'DB', refunded + answer), expected, answer)
  })
  it('10411: the token has expired', async () => {
    const reply = await play('ACK=Failure&L_ERRORCODE0=10411&L_LONGMESSAGE0=expired')
    assert.ok(reply.kind === 'answer' && reply.result === 'pendingTimedOut')
  })
  it('10486 and 10422: the buyer goes back', async () => {
    for (const code of ['10486', '10422'])
      assert.equal((await play(details, `ACK=Failure&L_ERRORCODE0=${code}`)).kind, 'redirect')
  })
  it('a payer other than the one that the wallet names pays nothing, whatever the wallet would say', async () => {
    const reply = await play(details.replace('B1', 'B2'), done)
    assert.ok(reply.kind === 'answer' && reply.result === 'declinedByWallet')
    assert.deepEqual(asked, ['GetExpressCheckoutDetails'])
  })
  it('another amount is told as it came', async () => {
    const reply = await play(details, done.replace('92.00', '91.99'))
    assert.ok(reply.kind === 'answer' && reply.amount === 9199)
  })
  it('an amount that is none, and a currency that is none, confirm nothing', async () => {
    for (const said of ['AMT=9.5', 'AMT=1,234.56', 'AMT=', 'AMT=9e1'])
      assert.equal((await play(details, done.replace('AMT=92.00', said))).kind, 'unknown', said)
    assert.equal((await play(details, done.replace('PAYMENTINFO_0_AMT=92.00&', ''))).kind, 'unknown')
    assert.equal((await play(details, done.replace('=EUR', '=euro'))).kind, 'unknown')
  })
  it('no connection is not sent, anything else is unknown', async () => {
    assert.equal((await play(new NotSent('ECONNREFUSED'))).kind, 'notSent')
    assert.equal((await play(details, new Error('reset'))).kind, 'unknown')
    assert.equal((await play(details, '<html>')).kind, 'unknown')
    const noConnection = await play(details, new NotSent('ECONNREFUSED'))
    assert.equal(noConnection.kind, 'notSent')
  })
  it('one of more pairs than a cart has is none, and one of as many is read', async () => {
    const pairs = (count: number) => `${done}${'&L_NAME=x'.repeat(count - done.split('&').length)}`
    assert.equal((await play(details, pairs(20_001))).kind, 'answer')
    assert.equal((await play(details, pairs(20_002))).kind, 'unknown')
    const ofLength = (length: number) => `${done}&NOTE=${'x'.repeat(length - done.length - 6)}`
    assert.equal((await play(details, ofLength(3 * 1024 * 1024))).kind, 'answer')
    assert.equal((await play(details, ofLength(3 * 1024 * 1024 + 1))).kind, 'unknown')
  })
  it('the largest cart that a request may hold is read as the wallet says it again', async () => {
    // In windows-1252 a letter of one byte can be one of nine signs in what the wallet says.
    const count = limits.indexMax + 1
    const name = '€'.repeat(127)
    const body = Array.from(
      { length: count },
      (_, at) => `cart.items[${at}].name=${'\x80'.repeat(127)}&cart.items[${at}].price=12345678.00`,
    ).join('&')
    assert.ok(body.length <= limits.bodyMaxBytes)
    const { values } = formChecker(requests.payment)(readForm(body, 'windows-1252') as Form, false)
    const sent = items(operation({}, { fields: values, amount: 1_234_567_800 * count })) as Record<string, string>
    assert.equal(sent[`L_PAYMENTREQUEST_0_NAME${count - 1}`], name)
    const again = new URLSearchParams()
    for (let at = 0; at < count; at++)
      for (const field of [
        'NAME',
        'AMT',
        'QTY',
        'DESC',
        'TAXAMT',
        ...['WEIGHT', 'LENGTH', 'WIDTH', 'HEIGHT'].map(of => `ITEM${of}VALUE`),
      ])
        for (const before of ['L_', 'L_PAYMENTREQUEST_0_'])
          again.append(`${before}${field}${at}`, sent[`L_PAYMENTREQUEST_0_${field}${at}`] ?? '0.00000')
    assert.equal((await play(`${details}&${again}`, done)).kind, 'answer')
  })
  it('names are read without a prototype', () => assert.equal(readPairs('__proto__=x&ACK=Success').ACK, 'Success'))
})

describe('the files of redirect methods and partners', () => {
  const own = readFileSync(new URL('../src/connectors/bankTransfer/redirectMethods.json', import.meta.url), 'utf8')
  const changed = (change: object) => {
    const { SOFORTUEBERWEISUNG } = JSON.parse(own)
    return JSON.stringify({ SOFORTUEBERWEISUNG: { ...SOFORTUEBERWEISUNG, ...change } })
  }
  it('ours is good', () =>
    assert.deepEqual(
      readRedirectMethods(own, 'own').map(({ brand }) => brand),
      ['SOFORTUEBERWEISUNG', 'GIROPAY'],
    ))
  it('a bad one names the brand and the setting', () => {
    for (const [change, name] of [
      [{ types: ['RF'] }, 'types'],
      [{ currencies: ['euro'] }, 'currencies'],
      [{ endsAfterSeconds: 59 }, 'endsAfterSeconds'],
      [{ endsAfterSeconds: 86_401 }, 'endsAfterSeconds'],
      [{ statuses: { paid: '000.000.999' } }, 'statuses'],
      [{ internal: { start: 'ftp://x', status: 'https://x' } }, 'internal'],
      [{ answer: { status: 's' } }, 'answer'],
      [{ colour: 'red' }, 'colour'],
      [{ types: ['PA', 'DB'] }, 'types'],
      [{ fields: { total: '{amont}' } }, 'fields.total has the unknown placeholder {amont}'],
      [{ fields: { card: '{card.number}' } }, 'fields.card has the unknown placeholder {card.number}'],
      [{ fields: { bill: '{merchantInvoiceId}' } }, 'fields.bill has the unknown placeholder {merchantInvoiceId}'],
      [
        { live: { start: 'https://b.example/{simulator}', status: 'https://b.example/' } },
        'live.start has the unknown placeholder {simulator}',
      ],
      [
        { live: { start: 'https://b.example/', status: 'https://b.example/{id}' } },
        'live.status has the unknown placeholder {id}',
      ],
      [
        { live: { start: 'https://b.example/', status: 'https://b.example/', refund: 'https://b.example/{x}' } },
        'live.refund has the unknown placeholder {x}',
      ],
    ] as const)
      assert.throws(
        () => readRedirectMethods(changed(change), 'file'),
        (error: Error) =>
          error instanceof OperatorError && error.message.includes('SOFORTUEBERWEISUNG') && error.message.includes(name),
      )
    assert.throws(() => readRedirectMethods('{', 'file'), OperatorError)
  })
  it('wallet and directory files are checked without telling their secrets', () => {
    const live = {
      endpoint: 'https://w.example/nvp',
      checkout: 'https://w.example',
      credentials: { default: { user: 'u', password: 'geheim', signature: 's' } },
    }
    assert.ok(readWalletFile(JSON.stringify({ live }), 'f').live)
    for (const bad of [
      { live: { ...live, endpoint: 'http://w.example/' } },
      { live: { ...live, credentials: { default: { password: 'geheim' } } } },
      { internal: live },
    ])
      assert.throws(
        () => readWalletFile(JSON.stringify(bad), 'f'),
        (error: Error) => error instanceof OperatorError && !error.message.includes('geheim'),
      )
    assert.throws(() => readDirectoryFile(JSON.stringify({ live: { url: 'https://ds.example' } }), 'f'), OperatorError)
  })
  it('a bad file keeps the gateway from starting', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-methods-'))
    const path = join(folder, 'methods.json')
    writeFileSync(path, '{"X1":{"fields":{}}}')
    assert.throws(() => readConfig({ REDIRECT_METHODS_FILE: path }, folder), OperatorError)
    rmSync(folder, { recursive: true })
  })
})

describe('how a bank’s answers are read', () => {
  const method = {
    types: ['DB'],
    fields: {},
    external: {
      start: 'https://bank.example/begin',
      status: 'https://bank.example/look/{transactionId}',
      refund: 'https://bank.example/back',
    },
    answer: { transactionId: 'ref', redirect: 'go', status: 'state', amount: 'sum', currency: 'cur' },
    statuses: { PAID: '000.000.000', WAITING: '000.200.000', NO: '800.100.100' },
  }
  const methods = readRedirectMethods(JSON.stringify({ TEST_BANK: method }), 'methods')
  const forever = new AbortController().signal
  const saying = (body: string, status = 200) =>
    transfer(
      'external',
      methods,
      () => '',
      async () => ({ status, body }),
    )
  const answering = (body: unknown, status?: number) => saying(JSON.stringify(body), status)
  it('numbers of transactions count to their last digit, however long they are', async () => {
    const begun = async (ref: string) => {
      const reply = await saying(`{"ref":${ref},"go":"https://bank.example/go"}`).perform(
        operation({}, { brand: 'TEST_BANK' }),
        forever,
      )
      return reply.kind === 'redirect' && reply.transaction
    }
    for (const ref of ['7', '9007199254740991', '9007199254740992', '9007199254740993', '1234567890'.repeat(5)])
      assert.equal(await begun(ref), ref)
    const about = (ref: string) =>
      saying(`{"ref":${ref},"state":"PAID","sum":"92.00","cur":"EUR"}`).resume!(
        operation({}, { brand: 'TEST_BANK' }),
        { step: 'transfer', data: { transactionId: '9007199254740993' }, event: {} },
        forever,
      )
    assert.equal(await told(about('9007199254740993')), 'succeeded')
    assert.equal(await told(about('9007199254740992')), 'unknown')
  })
  const told = async (reply: Promise<Reply>) => {
    const said = await reply
    return said.kind === 'answer' ? said.result : said.kind
  }
  const begin = (body: unknown, status?: number) =>
    answering(body, status).perform(operation({}, { brand: 'TEST_BANK' }), forever)
  const look = (body: unknown, status?: number) => lookAt(JSON.stringify(body), status)
  const lookAt = (body: string, status?: number) =>
    told(
      saying(body, status).resume!(
        operation({}, { brand: 'TEST_BANK' }),
        { step: 'transfer', data: { transactionId: 't' }, event: {} },
        forever,
      ),
    )
  const refund = (body: unknown, status?: number) => {
    const reference = { paymentId: 'p', type: 'DB' as const, amount: 9200, receivedAt: 0, kept: { transactionId: 't' } }
    return told(answering(body, status).perform(operation({}, { brand: 'TEST_BANK', type: 'RF', reference }), forever))
  }
  const paid = { state: 'PAID', sum: '92.00', cur: 'EUR' }

  it('a transfer that begins as paid, and sends nobody anywhere, is somebody’s to decide', async () => {
    for (const body of [
      { state: 'PAID' },
      { ...paid, ref: 'x', go: '/pay/x' },
      { state: 'WAITING' },
      { ...paid, ref: 'a\u0000', go: 'https://bank.example' },
      { ...paid, ref: '.', go: 'https://bank.example' },
      { ...paid, ref: '..', go: 'https://bank.example' },
    ]) {
      const reply = await begin(body)
      assert.ok(reply.kind === 'unknown' && reply.needsDecision, JSON.stringify(body))
    }
    assert.equal(await told(begin({ state: 'NO' })), 'declined')
    for (const ref of ['x', '...', '.x']) assert.equal((await begin({ ref, go: 'https://bank.example' })).kind, 'redirect')
  })
  it('a status counts only as the bank wrote it, whole, in an answer that is no error', async () => {
    assert.equal(await look(paid), 'succeeded')
    for (const body of [
      { ...paid, sum: '9\n2.00' },
      { ...paid, sum: [[92]] },
      { ...paid, cur: 'E\u0000UR' },
      { ...paid, state: 'P\u200bAID' },
      { state: 'PAID', sum: '92.00' },
      { ...paid, cur: null },
    ])
      assert.equal(await look(body), 'unknown', JSON.stringify(body))
    assert.equal(await look({ ...paid, ref: 't' }), 'succeeded')
    for (const ref of ['other', '', 'T', { t: 1 }])
      for (const state of ['PAID', 'NO', 'WAITING'])
        assert.equal(await look({ ...paid, state, ref }), 'unknown', JSON.stringify(ref))
    for (const status of [302, 401, 404, 429]) {
      assert.equal(await look(paid, status), 'unknown', String(status))
      assert.equal(await look({ state: 'NO' }, status), 'unknown', String(status))
    }
  })
  it('an answer of a thousand parts is read, and one of more says nothing, whatever it says', async () => {
    // What it begins with, its other members, and the list itself.
    const withParts = (count: number) => ({ ...paid, more: Array(count - 4).fill(0) })
    for (const [count, result] of [
      [1000, 'succeeded'],
      [1001, 'unknown'],
      [30_000, 'unknown'],
    ] as const)
      assert.equal(await look(withParts(count)), result, `${count}`)
    assert.equal(await look({ ...paid, more: 'x'.repeat(65_000) }), 'succeeded')
    assert.equal(await look({ ...paid, more: 'x'.repeat(65_536) }), 'unknown')
  })
  it('a list is no answer, and declines nothing', async () => {
    const lists = [[], [0], [paid], [{ state: 'NO' }], Array(400_000).fill(0)].map(list => JSON.stringify(list))
    for (const body of [...lists, '['.repeat(200_000), `${'['.repeat(900)}${']'.repeat(900)}`]) {
      const begun = saying(body).perform(operation({}, { brand: 'TEST_BANK' }), forever)
      assert.equal(await told(begun), 'unknown', body.slice(0, 40))
      assert.equal(await lookAt(body), 'unknown')
    }
  })
  it('a refund that is neither done nor refused is asked about again, and not told as declined', async () => {
    assert.equal(await refund({ ...paid, sum: '92.00' }), 'succeeded')
    assert.equal(await refund({ state: 'NO' }, 422), 'declined')
    for (const [body, status] of [
      [{ state: 'DONE', sum: '92.00', cur: 'EUR' }, 200],
      [{}, 200],
      [{ error: 'slow down' }, 429],
      [{}, 401],
      [paid, 404],
      [paid, 302],
    ] as const)
      assert.equal(await refund(body, status), 'unknown', `${status} ${JSON.stringify(body)}`)
  })
})

describe('a redirect method that is only configured', () => {
  it('goes from the call to the final status without a line of code', async () => {
    // Somebody else's API: other field names, other words, an API key.
    const asked: { url: string; key: string | undefined; body: string }[] = []
    let [said, sum, cur, why]: [string, unknown, string, string | undefined] = ['WAITING', '92.00', 'EUR', undefined]
    const payments: { sum: unknown; cur: string; why: string | undefined }[] = []
    const bank = http.createServer((incoming, outgoing) => {
      if (incoming.method === 'POST') payments.push({ sum, cur, why })
      const number = Number(/tx%20(\d+)/.exec(incoming.url!)?.[1] ?? payments.length)
      const begun = { ref: `tx ${number}/2`, go: `http://127.0.0.1:${(bank.address() as AddressInfo).port}/shopper/中` }
      text(incoming)
        .then(body => {
          asked.push({ url: incoming.url!, key: incoming.headers['x-api-key'] as string | undefined, body })
          outgoing.end(JSON.stringify(incoming.method === 'POST' ? begun : { state: said, ...payments[number - 1] }))
        })
        .catch(() => outgoing.destroy())
    })
    await new Promise<void>(resolve => bank.listen(0, '127.0.0.1', resolve))
    const base = `http://127.0.0.1:${(bank.address() as AddressInfo).port}`
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-methods-'))
    const path = join(folder, 'methods.json')
    const method = {
      needs: ['shopperResultUrl', 'virtualAccount.accountId'],
      external: { start: `${base}/begin`, status: `${base}/look/{transactionId}`, headers: { 'X-Api-Key': 'k1' } },
      fields: {
        total: '{amount}',
        return: '{back}',
        hook: '{notice}',
        who: '{virtualAccount.accountId}',
        item: '{cart.items[0].name}',
      },
      answer: { transactionId: 'ref', redirect: 'go', status: 'state', amount: 'sum', currency: 'cur', reason: 'why' },
      statuses: { PAID: '000.000.000', WAITING: '000.200.000', NO: '800.100.100' },
    }
    writeFileSync(path, JSON.stringify({ PAYSTAR: method }))
    const bankAccount = { holder: 'Sandbox shop', number: 'DE89370400440532013000', bic: 'MARKDEF1100', country: 'DE' }
    const seed = {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [
        {
          id: sandbox.divisionId,
          name: 'Sandbox division',
          merchants: [
            {
              id: sandbox.merchantId,
              name: 'Sandbox merchant',
              channels: [{ id: sandbox.entityId, name: 'Sandbox strict', settings: { bankAccount } }],
            },
          ],
        },
      ],
    }
    const gateway = await testGateway({ environment: { REDIRECT_METHODS_FILE: path }, seed })
    try {
      const fields = {
        entityId: sandbox.entityId,
        paymentType: 'DB',
        amount: '92.00',
        currency: 'EUR',
        paymentBrand: 'PAYSTAR',
        testMode: 'EXTERNAL',
        shopperResultUrl: 'https://shop.example/',
        merchantInvoiceId: 'invoice-secret',
      }
      const refused = await gateway.post('/v1/payments', fields)
      assert.deepEqual([refused.status, refused.body.result.parameterErrors[0].name], [400, 'virtualAccount.accountId'])
      assert.equal(asked.length, 0)
      const { body } = await gateway.post('/v1/payments', { ...fields, 'virtualAccount.accountId': 'jane' })
      assert.equal(body.result.code, '000.200.000')
      assert.equal(asked[0]!.key, 'k1')
      assert.match(asked[0]!.body, /total=92\.00.*who=jane/)
      assert.doesNotMatch(asked[0]!.body, /invoice/)
      const shopper = makeShopper()
      assert.equal((await shopper.open(body.redirect.url)).location, `${base}/shopper/%E4%B8%AD`)
      const back = body.redirect.url.replace('/r/', '/r/return/')
      // Not decided yet: the shopper goes to the shop, the payment stays open.
      assert.match((await shopper.open(back)).location!, /^https:\/\/shop\.example\/\?id=/)
      said = 'PAID'
      assert.match((await shopper.open(back)).location!, /^https:\/\/shop\.example\/\?id=/)
      assert.equal(asked.at(-1)!.url, '/look/tx%201%2F2')
      const final = (await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })).body
      assert.equal(final.result.code, '000.100.112')
      assert.deepEqual(final.merchant.bankAccount, bankAccount)
      // Another amount than was asked for is no success, nor another currency.
      for ([sum, cur] of [
        ['91.99', 'EUR'],
        ['92.00', 'USD'],
      ] as const) {
        const other = (await gateway.post('/v1/payments', { ...fields, 'virtualAccount.accountId': 'jane' })).body
        await shopper.open(other.redirect.url)
        await shopper.open(other.redirect.url.replace('/r/', '/r/return/'))
        const ended = (await gateway.get(`/v1/payments/${other.id}`, { entityId: sandbox.entityId })).body
        assert.equal(ended.result.code, '100.550.701')
      }
      // Numbers as JSON writes them are amounts; what is none confirms none, and what is no currency neither. A shopper waits for those together.
      const begun: { id: string; url: string; code: string; told: [unknown, string, string | undefined] }[] = []
      for ([sum, cur, why] of [
        [92, 'EUR', undefined],
        [0.5, 'EUR', undefined],
        ['0,50', 'EUR', undefined],
        ['', 'EUR', undefined],
        [{ a: 1 }, 'EUR', undefined],
        [undefined, 'EUR', undefined],
        ['92.000', 'EUR', undefined],
        ['92.00', 'eur', undefined],
        ['91.99', 'EUR', `a\u0000b\u001b[2J${'x'.repeat(1000)}`],
      ] as const) {
        const { id, redirect } = (await gateway.post('/v1/payments', { ...fields, 'virtualAccount.accountId': 'jane' })).body
        const read = typeof sum === 'number' || why !== undefined
        const code = sum === 92 ? '000.100.112' : read ? '100.550.701' : '000.200.000'
        begun.push({ id, url: redirect.url, code, told: [sum, cur, why] })
      }
      await Promise.all(
        begun.map(async ({ id, url, code, told }) => {
          await shopper.open(url)
          await shopper.open(url.replace('/r/', '/r/return/'))
          const { result, resultDetails } = (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body
          assert.equal(result.code, code, JSON.stringify(told))
          if (told[2] !== undefined) assert.equal(resultDetails.ExtendedDescription, `ab[2J${'x'.repeat(250)}`)
        }),
      )
      // In the sandbox's own mode nobody answers for it.
      const internal = await gateway.post('/v1/payments', { ...fields, 'virtualAccount.accountId': 'jane', testMode: 'INTERNAL' })
      assert.deepEqual([internal.status, internal.body.result.code], [400, '600.200.201'])
      // It can take no preauthorization: nothing could capture it or give it back.
      for (const paymentType of ['PA', 'PA.CP']) {
        const refused = await gateway.post('/v1/payments', { ...fields, 'virtualAccount.accountId': 'jane', paymentType })
        assert.equal(refused.body.result.code, '600.200.310')
      }
    } finally {
      await gateway.stop()
      bank.close()
      rmSync(folder, { recursive: true })
    }
  })
})

describe('small parts', () => {
  it('the shop’s address keeps what it has', () => {
    const of = (url: string) => shopAddress(url, 'i', '/v1/payments/i')
    const tail = 'id=i&resourcePath=%2Fv1%2Fpayments%2Fi'
    assert.equal(of('https://shop.example'), `https://shop.example/?${tail}`)
    assert.equal(of('https://shop.example/a?b=c'), `https://shop.example/a?b=c&${tail}`)
    assert.equal(of('https://shop.example/a?'), `https://shop.example/a?${tail}`)
    assert.equal(of('https://shop.example/a?b=c#d?e'), `https://shop.example/a?b=c&${tail}#d?e`)
    assert.equal(of('https://shop.example/ü'), `https://shop.example/%C3%BC?${tail}`)
    assert.equal(of('https://shop.example/#中'), `https://shop.example/?${tail}#%E4%B8%AD`)
    assert.equal(of('myapp://back/ü#中'), `myapp://back/%C3%BC?${tail}#%E4%B8%AD`)
  })
  it('a merchant’s tail leads back to it, and nothing else does', () => {
    for (const id of [sandbox.merchantId, '0'.repeat(32), 'f'.repeat(32), `${'0'.repeat(31)}1`])
      assert.equal(merchantOfTail(merchantTail(id)), id)
    for (const tail of ['', '-', 'A', 'z'.repeat(25), 'z'.repeat(26), '00', `0${merchantTail(sandbox.merchantId)}`])
      assert.equal(merchantOfTail(tail), undefined, tail)
  })
  it('texts are escaped, pieces of html are not', () => {
    const hostile = `<script>"'&`
    assert.equal(
      html`<p title="${hostile}">${html`<b>${hostile}</b>`}${false}${undefined}</p>`.html,
      '<p title="&lt;script&gt;&quot;&#39;&amp;"><b>&lt;script&gt;&quot;&#39;&amp;</b></p>',
    )
  })
})
