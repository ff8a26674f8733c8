// What an answer proves: repeats, reversals, answers without a code and answers that come long after. What counts is what the acquirer's host was
// sent, what its own books say then, and what the merchant reads.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, beforeEach, describe, it } from 'node:test'
import { cardRouting } from '../src/connectors/cards/routing.ts'
import { readSeed, type Seed, sandboxSeed } from '../src/merchants/seed.ts'
import { type CaseDecision, DecisionMissing } from '../src/payments/cases/cases.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { closeCaseOf, openCases as openCasesOf } from './support/cases.ts'
import { eventually, type Fields, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile } from './support/host.ts'
import { patientClock } from './support/patientClock.ts'
import { type ToldHost, toldHost } from './support/toldHost.ts'

let ahead = 0
const clock = patientClock(() => Date.now() + ahead)
const answerWithinSeconds = 20
let gateway: TestGateway
let host: ToldHost
let file: AcquirersFile

before(async () => {
  host = await toldHost({ silent: () => clock.endDeadlines(answerWithinSeconds * 1000) })
  file = acquirersFile({ north: [host.port] }, { answerWithinSeconds, recoverAfterSeconds: 0.1, breakerTimeouts: 1000 })
  gateway = await testGateway({ clock, environment: { ACQUIRERS_FILE: file.path }, seed: takingParts() })
})
beforeEach(() => host.clear())
after(async () => {
  await gateway.stop()
  host.stop()
  file.remove()
})

/** The lenient channel of the sandbox, as one that takes approvals of a part. */
function takingParts(): Seed {
  const seed = readSeed(sandboxSeed)
  for (const { id, settings } of seed.divisions![0]!.merchants![0]!.channels!)
    if (id === sandbox.lenientEntityId) Object.assign(settings!, { partialApprovals: true })
  return seed
}

const success = '000.100.112'
const pending = '000.200.000'
const timedOut = '900.100.301'

const pay = (fields: Fields = {}) => gateway.pay({ testMode: 'EXTERNAL', ...fields })
const refund = (id: string) => gateway.refer(id, { paymentType: 'RF', amount: '92.00', currency: 'EUR' })
/** An acquirer of the file. */
type Row = {
  name: string
  answerWithinSeconds?: number
  recoverAfterSeconds?: number
  partialReversal?: boolean
  terminals?: string[]
}

const codeOf = async (id: string): Promise<string> =>
  (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body.result.code
/** Lets time pass until it holds: what waits for its next attempt gets it. */
const later = <Value>(look: () => Promise<Value | undefined | false>, what: string) =>
  eventually(async () => {
    const found = await look()
    if (!found) ahead += 660_000
    return found
  }, what)
const atRest = (id: string) =>
  later(
    async () => (await gateway.pool.query('select 1 from due_work where subject_id = $1', [id])).rowCount === 0,
    'nothing is left to do',
  )
const openCases = (subject: string) => openCasesOf(gateway.pool, subject)
const close = (subject: string, reason: string, decision?: CaseDecision) =>
  closeCaseOf({ pool: gateway.pool, clock }, subject, reason, decision)
const booksAgree = async () => assert.deepEqual((await examine(gateway.pool, clock.real() + 1)).findings, [])
const isTakeBack = (type: string) => type.startsWith('042')

/** Each operation that is repeated until it is answered: its first message, and what makes it. */
const repeated: readonly (readonly [string, string, () => Promise<{ body: { id: string; result: { code: string } } }>])[] = [
  ['RF', '0200', async () => refund((await pay()).body.id)],
  ['CD', '0200', () => pay({ paymentType: 'CD' })],
  [
    'CP',
    '0220',
    async () =>
      gateway.refer((await pay({ paymentType: 'PA' })).body.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' }),
  ],
  ['RV', '0400', async () => gateway.refer((await pay({ paymentType: 'PA' })).body.id, { paymentType: 'RV' })],
]
const isCredit = (message: { fields: ReadonlyMap<number, string> }) => message.fields.get(3) === '200000'
/** Whether a message is one of the operation that the test is about, and not what came before. */
const concerns = (type: string, first: string, message: { type: string; fields: ReadonlyMap<number, string> }) =>
  message.type.slice(0, 3) === first.slice(0, 3) && (first !== '0200' || type === 'CD' || isCredit(message))

const undecided = [
  ['12', 'carriedOut', success],
  ['25', 'notCarriedOut', '900.100.200'],
  ['30', 'carriedOut', success],
  ['77', 'notCarriedOut', '900.100.200'],
] as const

describe('the answer to a repeat', () => {
  for (const [type, first, make] of repeated) {
    it(`${type}: 94 says that it was carried out, once`, async () => {
      host.tell = message =>
        concerns(type, first, message) ? (message.type === first ? { code: 'silence', books: true } : '94') : '00'
      const { body } = await make()
      assert.equal(body.result.code, pending)
      const stands = host.totals()
      await atRest(body.id)
      assert.equal(await codeOf(body.id), success)
      assert.deepEqual(host.totals(), stands)
      await booksAgree()
    })

    for (const code of type === 'RF' ? ['09', '19', '68', '91', '92', '96', 'none'] : ['96'])
      it(`${type}: ${code} says nothing: it is sent again`, async () => {
        host.tell = (message, seen) =>
          !concerns(type, first, message)
            ? '00'
            : message.type === first
              ? { code: 'silence', books: true }
              : { code: seen < 2 ? code : '00', books: false }
        const { body } = await make()
        assert.equal(body.result.code, pending)
        await atRest(body.id)
        assert.equal(await codeOf(body.id), success)
        assert.equal(host.received.filter(one => one.type === `${first.slice(0, 3)}1`).length, 3)
        await booksAgree()
      })

    it(`${type}: 91 that comes when nobody waits for it is no decline: it may answer a repeat`, async () => {
      let isBack = false
      host.tell = message =>
        !concerns(type, first, message) ? '00' : isBack ? '94' : { code: 'silence', books: message.type === first }
      const { body } = await make()
      assert.equal(body.result.code, pending)
      const sent = host.received.find(({ message }) => concerns(type, first, message) && message.type === first)!
      host.answer(sent.message, { code: '91', books: false })
      await new Promise(resolve => setTimeout(resolve, 200))
      assert.equal(await codeOf(body.id), pending)
      isBack = true
      await atRest(body.id)
      assert.equal(await codeOf(body.id), success)
      await booksAgree()
    })

    for (const [code, decision, expected] of type === 'RF' ? undecided : undecided.slice(0, 2))
      it(`${type}: ${code} is nobody’s decline: somebody decides, and the payment waits until then`, async () => {
        host.tell = message => (concerns(type, first, message) ? (message.type === first ? 'silence' : code) : '00')
        const { body } = await make()
        await atRest(body.id)
        assert.deepEqual([await codeOf(body.id), await openCases(body.id)], [pending, ['answerUnproven']])
        const sent = host.received.length
        await booksAgree()
        await assert.rejects(close(body.id, 'without saying what became of it'), DecisionMissing)
        await close(body.id, 'the acquirer looked it up', decision)
        await atRest(body.id)
        assert.equal(await codeOf(body.id), expected)
        assert.equal(host.received.length, sent)
        await booksAgree()
      })
  }

  it('96 again and again is a case, is asked on all the same, and closes its case when it is answered', async () => {
    let code = '96'
    host.tell = message =>
      !isCredit(message) ? '00' : message.type === '0200' ? { code: 'silence', books: true } : { code, books: false }
    const { body } = await refund((await pay()).body.id)
    await later(async () => (await openCases(body.id))[0] === 'stillUnknown', 'a case')
    const asked = host.types().filter(one => one === '0201').length
    assert.ok(asked >= 5, String(asked))
    code = '94'
    await atRest(body.id)
    assert.deepEqual([await codeOf(body.id), await openCases(body.id)], [success, []])
    await booksAgree()
  })

  it('an operator decides what goes on being unknown', async () => {
    host.tell = message => (!isCredit(message) ? '00' : { code: message.type === '0200' ? 'silence' : '96', books: false })
    const { body } = await refund((await pay()).body.id)
    await later(async () => (await openCases(body.id))[0] === 'stillUnknown', 'a case')
    await close(body.id, 'asked by telephone', 'notCarriedOut')
    await atRest(body.id)
    assert.deepEqual([await codeOf(body.id), await openCases(body.id)], ['900.100.200', []])
    await booksAgree()
  })

  it('a refund that the host has, though its answer says 94, is not paid again', async () => {
    host.tell = message => (isCredit(message) ? (message.type === '0200' ? { code: 'silence', books: true } : '94') : '00')
    const { body: debit } = await pay()
    const { body: first } = await refund(debit.id)
    assert.equal((await refund(debit.id)).body.result.code, '700.400.200')
    await atRest(first.id)
    assert.equal((await refund(debit.id)).body.result.code, '700.400.200')
    assert.deepEqual(host.totals(), { held: 0, cleared: 0 })
    await booksAgree()
  })

  it('94 with another amount proves nothing', async () => {
    host.tell = message =>
      isCredit(message)
        ? message.type === '0200'
          ? { code: 'silence', books: true }
          : { code: '94', more: [[4, '000000000100']] }
        : '00'
    const { body } = await refund((await pay()).body.id)
    await atRest(body.id)
    assert.deepEqual([await codeOf(body.id), await openCases(body.id)], [pending, ['answerUnproven']])
    await close(body.id, 'looked up', 'carriedOut')
    await atRest(body.id)
  })

  it('a refusal that was given again is a refusal', async () => {
    host.tell = message => (isCredit(message) ? (message.type === '0200' ? 'silence' : '57') : '00')
    const { body } = await refund((await pay()).body.id)
    await atRest(body.id)
    assert.equal(await codeOf(body.id), '800.100.170')
    await booksAgree()
  })
})

describe('the answer to a first message', () => {
  for (const code of ['94', '09', 'none'])
    it(`${code} of an authorization: it is taken back, and nothing stands`, async () => {
      host.tell = message =>
        isTakeBack(message.type) ? '00' : { code, books: true, more: code === 'none' ? [[38, '123456']] : [] }
      const { body } = await pay()
      assert.equal(body.result.code, pending)
      await later(async () => (await codeOf(body.id)) === timedOut, 'it is taken back')
      await atRest(body.id)
      assert.deepEqual(host.totals(), { held: 0, cleared: 0 })
    })
  it('68 and codes that nobody knows are declines, and what may have been done goes back', async () => {
    for (const code of ['68', '77']) {
      host.tell = message => (isTakeBack(message.type) ? '00' : { code, books: true })
      const { body } = await pay()
      assert.equal(body.result.code, code === '68' ? '900.100.400' : '800.100.100')
      await atRest(body.id)
      assert.deepEqual(host.totals(), { held: 0, cleared: 0 })
    }
  })
  it('94 of a refund is somebody’s to decide: its trace is not this refund’s alone', async () => {
    host.tell = message => (isCredit(message) ? '94' : '00')
    const { body } = await refund((await pay()).body.id)
    await atRest(body.id)
    assert.deepEqual([await codeOf(body.id), await openCases(body.id)], [pending, ['answerUnproven']])
    assert.deepEqual(host.types(), ['0200', '0200'])
    await close(body.id, 'looked up', 'notCarriedOut')
    await atRest(body.id)
  })
})

describe('a reversal of ours', () => {
  for (const code of ['96', '91', '30', '12', '63', '94', '05', '68', '08', '77', 'none'])
    it(`is not ended by ${code}`, async () => {
      host.tell = (message, seen) =>
        !isTakeBack(message.type) ? { code: 'silence', books: true } : message.type === '0420' || seen === 0 ? code : '00'
      const { body } = await pay()
      await later(async () => host.totals().cleared === 0, 'it is taken back')
      await atRest(body.id)
      assert.deepEqual(host.types(), ['0200', '0420', '0421', '0421'])
    })
  for (const [name, other] of [
    ['amount', [4, '000000000100']],
    ['currency', [49, '840']],
  ] as const)
    it(`is not ended by 00 with another ${name}: nobody knows what still stands, and it is a case`, async () => {
      let isRight = false
      let seen = 0
      host.tell = message => {
        if (!isTakeBack(message.type)) return { code: 'silence', books: true }
        if (isRight) return '00'
        // The next times it says nothing, and that it knows of nothing.
        return [{ code: '00', books: false, more: [other] }, 'silence'][seen++] ?? '25'
      }
      const { body } = await pay()
      await later(async () => (await openCases(body.id))[0] === 'reversalOpen', 'a case')
      assert.equal(seen, 1, 'at the first answer')
      await later(async () => seen >= 4, 'it is asked on')
      assert.deepEqual(await openCases(body.id), ['reversalOpen'])
      isRight = true
      await atRest(body.id)
      assert.deepEqual([host.totals().cleared, await openCases(body.id)], [0, []])
    })
  for (const [name, code] of [
    ['another amount that came', '00'],
    ['a part that was approved', '10'],
  ] as const)
    it(`is ended by what went back of ${name}`, async () => {
      host.tell = message => ({ code: isTakeBack(message.type) ? '00' : code, books: true, more: [[4, '000000009100']] })
      const { body } = await pay()
      assert.notEqual(body.result.code, success)
      await atRest(body.id)
      assert.deepEqual([host.types(), await openCases(body.id)], [['0200', '0420'], []])
    })
  it('that one of two has heard otherwise is not ended by the other, which knows of nothing', async () => {
    const asked: string[] = []
    const acquirer = (name: string, says: () => object) => ({
      options: { name, answerWithinSeconds: 1, recoverAfterSeconds: 1 },
      exchange: async () => {
        asked.push(name)
        return { kind: 'answer', result: 'succeeded', amount: 9200, currency: 'EUR', details: {}, ...says() }
      },
    })
    const north = acquirer('north', () => ({ amount: asked.length > 3 ? 9200 : 100, kept: { acquirer: 'north' } }))
    const south = acquirer('south', () => ({ amount: 0, kept: { acquirer: 'south', nothing: 'true' } }))
    const { perform } = cardRouting('external', [north, south] as never)
    const prepared = ['north', 'south'].map(name => ({ acquirer: name, terminal: 'T', stan: '1', at: '0' }))
    const operation = {
      type: 'RV',
      recovering: true,
      amount: 9200,
      currency: 'EUR',
      prepared,
      reference: { kept: {} },
      attempt: 1,
    }
    const first = await perform(operation as never, AbortSignal.timeout(1000))
    assert.deepEqual([first.kind, 'progress' in first && first.progress], ['unknown', { north: 'otherwise', south: 'nothing' }])
    const again = async (progress: object) => perform({ ...operation, attempt: 2, progress } as never, AbortSignal.timeout(1000))
    assert.equal((await again({ north: 'otherwise', south: 'nothing' })).kind, 'unknown')
    const last = await again({ north: 'otherwise', south: 'nothing' })
    assert.deepEqual(
      [last.kind, last.kind === 'answer' && last.kept.acquirer, asked],
      ['answer', 'north', ['north', 'south', 'north', 'north']],
    )
    const heard = await again({ north: 'heard' })
    assert.deepEqual(heard.kind === 'answer' && [heard.amount, heard.kept], [9200, { acquirer: 'north' }])
  })
  it('is a repeat when the one before was sent and not answered', async () => {
    host.tell = message =>
      !isTakeBack(message.type) ? { code: 'silence', books: true } : message.type === '0420' ? 'silence' : '00'
    const { body } = await pay()
    await later(async () => host.totals().cleared === 0, 'it is taken back')
    await atRest(body.id)
    assert.deepEqual(host.types(), ['0200', '0420', '0421'])
  })
  it('is ended by 25: there is nothing, whatever amount it names', async () => {
    host.tell = message => (isTakeBack(message.type) ? { code: '25', more: [[4, '000000000000']] } : 'silence')
    const { body } = await pay()
    await later(async () => (await codeOf(body.id)) === timedOut, 'recovery')
    await atRest(body.id)
    assert.deepEqual(host.types(), ['0200', '0420'])
  })
  it('becomes a case when it is answered so again and again, goes on all the same, and closes its case itself', async () => {
    let code = '96'
    host.tell = message => (isTakeBack(message.type) ? code : { code: 'silence', books: true })
    const { body } = await pay()
    await later(async () => (await openCases(body.id))[0] === 'reversalOpen', 'a case')
    assert.ok(host.types().filter(isTakeBack).length >= 5)
    const { findings } = await examine(gateway.pool, clock.real() + 1)
    assert.match(findings.join(), new RegExp(`${body.id} of .* reversal is not acknowledged after`))
    code = '00'
    await atRest(body.id)
    assert.deepEqual([host.totals().cleared, await openCases(body.id)], [0, []])
  })
  it('becomes a case when nobody answers for about an hour, and goes on all the same', async () => {
    let isBack = false
    host.tell = message => (isTakeBack(message.type) && isBack ? '00' : { code: 'silence', books: !isTakeBack(message.type) })
    const { body } = await pay()
    await later(async () => (await openCases(body.id))[0] === 'reversalOpen', 'a case')
    assert.ok(host.types().filter(isTakeBack).length >= 13)
    isBack = true
    await atRest(body.id)
    assert.deepEqual([host.totals().cleared, await openCases(body.id)], [0, []])
  })
  it('ends when an operator closes its case', async () => {
    host.tell = message => (isTakeBack(message.type) ? '96' : { code: 'silence', books: true })
    const { body } = await pay()
    await later(async () => (await openCases(body.id)).length === 1, 'a case')
    await close(body.id, 'given back by hand')
    await atRest(body.id)
    assert.equal(host.totals().cleared, 9200)
  })
  it('goes out as a repeat only when the first went out', async () => {
    host.tell = message => (isTakeBack(message.type) ? '00' : { code: 'silence', books: true })
    const { body } = await pay()
    const { rows } = await gateway.pool.query('select 1 from due_work where subject_id = $1', [body.id])
    assert.equal(rows.length, 1)
    // As after attempts that found no line: they were counted, and left no progress.
    await later(async () => {
      await gateway.pool.query('update due_work set attempts = 7 where subject_id = $1', [body.id])
      return host.totals().cleared === 0
    }, 'it is taken back')
    await atRest(body.id)
    assert.deepEqual(host.types(), ['0200', '0420'])
  })
})

describe('a refund that is answered with another amount', () => {
  it('is taken back, and until then the money is refunded by nobody', async () => {
    const { body } = await pay()
    let isWell = false
    host.tell = message => {
      if (isTakeBack(message.type)) return isWell ? '00' : '96'
      return isCredit(message) && !isWell ? { code: '00', more: [[4, '000000009201']] } : '00'
    }
    assert.equal((await refund(body.id)).body.result.code, '100.550.701')
    for (let press = 0; press < 3; press++) {
      assert.equal((await refund(body.id)).body.result.code, '700.400.570')
      ahead += 660_000
    }
    assert.equal(host.received.filter(({ message, type }) => isCredit(message) && type === '0200').length, 1)
    isWell = true
    await later(async () => host.totals().cleared === 9200, 'it is taken back')
    await later(async () => (await refund(body.id)).body.result.code === success, 'it can be refunded again')
    assert.equal(host.totals().cleared, 0)
    await booksAgree()
  })
})

describe('a capture that is approved when somebody has been told that it was declined', () => {
  for (const [type, isReversed] of [
    ['PA', true],
    ['PA', false],
    ['PA, whose reversal is not answered yet', true],
    ['PA, reversed by a gateway whose clock is behind', true],
    ['PA.CP', true],
  ] as const)
    it(`is taken back${isReversed ? ', and is a case where the hold was reversed meanwhile' : ''} (${type})`, async () => {
      const isSlow = type.includes('not answered')
      host.tell = message => {
        if (message.type.startsWith('022')) return { code: '05', books: false }
        return message.type === '0400' && isSlow ? '09' : '00'
      }
      const isPlain = type !== 'PA.CP'
      const paid = await pay({ paymentType: type.slice(0, isPlain ? 2 : 5) })
      const root = isPlain ? paid.body.id : paid.body.referencedId
      const captured = isPlain ? await gateway.refer(root, { paymentType: 'CP', amount: '92.00', currency: 'EUR' }) : paid
      assert.equal(captured.status, 400)
      if (type.includes('clock')) ahead -= 2000
      if (isPlain && isReversed)
        assert.equal((await gateway.refer(root, { paymentType: 'RV' })).body.result.code, isSlow ? pending : success)
      const { message } = host.received.find(({ type }) => type.startsWith('022'))!
      host.answer(message, { code: '00', books: true })
      await later(async () => host.types().some(isTakeBack), 'it is taken back')
      await Promise.all([atRest(captured.body.id), atRest(root)])
      assert.deepEqual(await openCases(captured.body.id), isReversed ? ['reversalOpen'] : [])
    })
})

for (const isClosed of [true, false])
  it(`a capture of a failed PA.CP that is approved late ${isClosed ? 'is a case again where somebody had closed that of its hold' : 'gives its hold back where that is a case'}`, async () => {
    let declines = true
    host.tell = message => (message.type.startsWith('022') || (message.type === '0400' && declines) ? '05' : '00')
    const { body } = await pay({ paymentType: 'PA.CP' })
    const root = body.referencedId
    await later(async () => (await openCases(root))[0] === 'reversalOpen', 'its hold stands')
    if (isClosed) await close(root, 'they hold nothing')
    declines = false
    const [captured] = host.received.filter(({ type }) => type.startsWith('022'))
    host.answer(captured!.message, { code: '00', books: true })
    await later(async () => host.types().some(isTakeBack), 'it is taken back')
    await Promise.all([atRest(body.id), atRest(root)])
    assert.deepEqual([await openCases(body.id), await openCases(root)], [isClosed ? ['reversalOpen'] : [], []])
    const types = host.types()
    assert.equal(types.slice(types.findIndex(isTakeBack)).includes('0400'), !isClosed, 'the hold is given back')
    assert.equal(host.totals().cleared, 0)
  })

it('a capture that is approved late behind another one is taken back, and a case: its amount may be held again', async () => {
  host.tell = (message, seen) => (message.type.startsWith('022') && seen === 0 ? { code: '05', books: false } : '00')
  const { body } = await pay({ paymentType: 'PA' })
  const capture = () => gateway.refer(body.id, { paymentType: 'CP', amount: '30.00', currency: 'EUR' })
  const [late, good] = [await capture(), await capture()]
  assert.deepEqual([late.status, good.body.result.code], [400, success])
  await atRest(good.body.id)
  host.answer(host.received.find(({ type }) => type.startsWith('022'))!.message, { code: '00', books: true })
  await later(async () => (await openCases(late.body.id)).includes('reversalOpen'), 'somebody has to look')
  await atRest(late.body.id)
  assert.deepEqual(await openCases(good.body.id), [])
})

describe('the rest of a hold that is released', () => {
  for (const [amount, isDone, reversed] of [
    ['000000009200', true],
    ['000000003000', true],
    ['000000006200', true],
    ['000000000100', false],
    ['000000009200', true, '20.00'],
    ['000000007200', true, '20.00'],
    ['000000003000', true, '20.00'],
    ['000000004200', true, '20.00'],
    ['000000006200', true, '20.00'],
    ['000000002000', false, '20.00'],
  ] as const)
    it(`${isDone ? 'is' : 'is not'} when the host answers ${Number(amount) / 100} of 92.00, of which 30.00 was captured${reversed ? ` and ${reversed} reversed before` : ''}`, async () => {
      let isRight = isDone
      host.tell = message =>
        isTakeBack(message.type) ? { code: '00', books: isRight, more: isRight ? [] : [[4, amount]] } : '00'
      if (isDone) host.tell = message => (isTakeBack(message.type) ? { code: '00', more: [[4, amount]] } : '00')
      const { body } = await pay({ paymentType: 'PA' })
      if (reversed) await gateway.refer(body.id, { paymentType: 'RV', amount: reversed, currency: 'EUR' })
      const captured = await gateway.refer(body.id, { paymentType: 'CP', amount: '30.00', currency: 'EUR' })
      if (!isDone) await later(async () => (await openCases(captured.body.id))[0] === 'reversalOpen', 'a case')
      isRight = true
      await atRest(captured.body.id)
      assert.equal(host.types().filter(isTakeBack).length, isDone ? 1 : 2)
      assert.deepEqual(await openCases(captured.body.id), [])
    })
})

describe('an approval that comes late', () => {
  it('while its reversal is under way, which then finds nothing: it is reversed', async () => {
    host.tell = message =>
      message.type === '0420' && host.totals().cleared === 0 ? 'silence' : message.type === '0200' ? 'silence' : '00'
    const { body } = await pay()
    await later(async () => host.types().includes('0420'), 'the reversal is under way')
    const [request, reversal] = host.received
    host.answer(request!.message, { code: '00' })
    await eventually(
      async () => gateway.logged.some(line => line.includes(body.id) && line.includes('is reversed')),
      'it was heard',
    )
    host.answer(reversal!.message, { code: '25' })
    await later(async () => host.totals().cleared === 0, 'it is taken back')
    await atRest(body.id)
    assert.equal(await codeOf(body.id), timedOut)
  })

  it('of a part, where the channel takes those: what was approved is taken back', async () => {
    host.tell = message => {
      if (!isTakeBack(message.type)) return 'silence'
      return host.totals().cleared === 0 ? '25' : { code: '00', more: [[4, '000000004600']] }
    }
    const { body } = await pay({ entityId: sandbox.lenientEntityId })
    await later(async () => (await codeOf(body.id)) === timedOut, 'recovery')
    await atRest(body.id)
    host.answer(host.received[0]!.message, { code: '10', books: true, more: [[4, '000000004600']] })
    await later(async () => host.totals().cleared === 0, 'it is taken back')
    await atRest(body.id)
    assert.deepEqual(await openCases(body.id), [])
  })

  it('to a process that was started since: its payment is found in the database, and it is reversed', async () => {
    host.tell = message =>
      message.type === '0420' && host.totals().cleared === 0 ? '25' : message.type === '0200' ? 'silence' : '00'
    const { body } = await pay()
    await later(async () => (await codeOf(body.id)) === timedOut, 'recovery')
    await atRest(body.id)
    await gateway.restart()
    // The new process has a line when it has paid something.
    const { tell } = host
    host.tell = () => '00'
    const { body: other } = await pay({ paymentType: 'PA' })
    assert.equal(other.result.code, success)
    host.tell = tell
    const [{ message, trace }] = host.received as [(typeof host.received)[number]]
    host.answer(message, { code: '00', more: [[38, '123456']] })
    assert.equal(host.totals().cleared, 9200)
    await later(async () => host.totals().cleared === 0, 'it is taken back')
    await atRest(body.id)
    assert.equal(await codeOf(body.id), timedOut)
    const [stan] = trace.split(' ')
    assert.ok(gateway.logged.some(line => line.includes('came very late') && line.includes(stan!) && line.includes(body.id)))
    await booksAgree()
  })

  it('an answer to nothing that was ever sent changes nothing', async () => {
    const { body } = await pay()
    const { message } = host.received[0]!
    host.answer({ ...message, fields: new Map([...message.fields, [11, '999999']]) }, { code: '00', books: false })
    await eventually(async () => gateway.logged.some(line => line.includes('belongs to no payment')), 'it was heard')
    assert.equal(await codeOf(body.id), success)
  })
})

describe('an acquirer that has left the file', () => {
  const original = () => JSON.parse(readFileSync(file.path, 'utf8')) as { acquirers: Row[] }
  /** A gateway reads its file when it starts. */
  const restartWith = async (acquirers: readonly Row[]) => {
    writeFileSync(file.path, JSON.stringify({ acquirers }))
    await gateway.restart()
  }
  it('keeps what is open with it: that waits, visible, until it is back', async () => {
    const { acquirers } = original()
    host.tell = message =>
      message.type === '0200' && message.fields.get(4) === '000000009200' && !isCredit(message) ? '00' : 'silence'
    const { body: refunded } = await refund((await pay()).body.id)
    host.tell = message => ({ code: 'silence', books: !isTakeBack(message.type) })
    const { body: debit } = await pay({ amount: '12.00' })
    await later(async () => host.types().includes('0420') && host.types().includes('0201'), 'first attempts')
    await restartWith(acquirers.map(one => ({ ...one, name: 'south' })))
    const sent = host.received.length
    await later(async () => (await openCases(debit.id))[0] === 'reversalOpen', 'a case')
    assert.deepEqual([host.received.length, await codeOf(refunded.id)], [sent, pending])
    assert.ok(!gateway.logged.some(line => line.includes(debit.id) && line.includes('acknowledged')))
    host.tell = () => '00'
    await restartWith(acquirers)
    await later(async () => host.totals().cleared === 0, 'both are settled')
    await atRest(debit.id)
    await atRest(refunded.id)
    assert.deepEqual([await openCases(debit.id), await codeOf(refunded.id)], [[], success])
    await booksAgree()
  })

  it('is waited for as long as it may take, whatever another may', { timeout: 50_000 }, async () => {
    const { acquirers } = original()
    const [north] = acquirers as [Row]
    await restartWith([north, { ...north, name: 'slow', answerWithinSeconds: 60, recoverAfterSeconds: 3600 }])
    host.tell = () => 'silence'
    const { body } = await pay()
    assert.equal(body.result.code, pending)
    // And recovered as soon as its own acquirer wants it.
    host.tell = () => '00'
    await eventually(async () => (await codeOf(body.id)) === '900.100.301', 'it is taken back')
    await restartWith(acquirers)
  })
})

describe('an acquirer without partial reversals', () => {
  it('is told nothing after a partial capture', async () => {
    const own = await toldHost()
    const without = acquirersFile({ north: [own.port] }, { partialReversal: false, answerWithinSeconds: 2 })
    const other = await testGateway({ environment: { ACQUIRERS_FILE: without.path } })
    try {
      const { body: hold } = await other.pay({ testMode: 'EXTERNAL', paymentType: 'PA' })
      const { body } = await other.refer(hold.id, { paymentType: 'CP', amount: '50.00', currency: 'EUR' })
      assert.equal(body.result.code, success)
      await eventually(
        async () => (await other.pool.query('select 1 from due_work where subject_id = $1', [body.id])).rowCount === 0,
        'nothing is left to do',
      )
      assert.deepEqual(own.types(), ['0100', '0220'])
      const { body: debit } = await other.pay({ testMode: 'EXTERNAL' })
      const part = { paymentType: 'RV', amount: '5.00', currency: 'EUR' }
      assert.equal((await other.refer(debit.id, part)).body.result.code, '700.300.800')
      // Of one that another acquirer carried it is not refused.
      const { acquirers } = JSON.parse(readFileSync(without.path, 'utf8')) as { acquirers: [Row] }
      const [north] = acquirers
      writeFileSync(
        without.path,
        JSON.stringify({ acquirers: [{ ...north, name: 'south', partialReversal: true, terminals: ['SOUTH001'] }, north] }),
      )
      await other.restart()
      const { body: carried } = await other.pay({ testMode: 'EXTERNAL' })
      assert.equal((await other.refer(carried.id, part)).body.result.code, success)
      assert.equal((await other.refer(debit.id, part)).body.result.code, '700.300.800')
    } finally {
      await other.stop()
      own.stop()
      without.remove()
    }
  })
})

describe('a reversal that is answered with another amount or currency', () => {
  for (const [name, other] of [
    ['amount', [4, '000000009201']],
    ['currency', [49, '840']],
  ] as const)
    for (const part of [undefined, '30.00'])
      it(`is not known to be one, counts until somebody has asked, and nothing takes it back (${name}${part ? ', of a part' : ''})`, async () => {
        const { body } = await pay()
        host.tell = message => (message.type.startsWith('04') ? { code: '00', more: [other] } : '00')
        const reversed = await gateway.refer(body.id, {
          paymentType: 'RV',
          ...(part && { amount: part, currency: 'EUR' }),
        })
        assert.equal(reversed.body.result.code, pending)
        assert.deepEqual(await openCases(reversed.body.id), ['answerUnproven'])
        host.tell = () => '00'
        ahead += 660_000
        await atRest(reversed.body.id)
        const sent = host.received.length
        assert.equal((await refund(body.id)).body.result.code, '700.400.200')
        assert.equal(host.received.length, sent, 'the bank is asked for nothing more')
        await close(reversed.body.id, 'they have given it back', 'carriedOut')
        await later(async () => (await codeOf(reversed.body.id)) === success, 'it is decided')
        assert.equal((await refund(body.id)).body.result.code, '700.400.200')
        assert.deepEqual(host.totals(), { held: 0, cleared: part ? 6200 : 0 })
        await booksAgree()
      })

  async function unproven() {
    const { body } = await pay()
    host.tell = message => (message.type.startsWith('04') ? { code: '00', more: [[4, '000000009201']] } : '00')
    const reversed = await gateway.refer(body.id, { paymentType: 'RV' })
    assert.equal(reversed.body.result.code, pending)
    const { message } = host.received.find(({ type }) => type.startsWith('04'))!
    return { paid: body.id, reversal: reversed.body.id, answerRightly: () => host.answer(message, { code: '00', books: false }) }
  }

  it('and is answered rightly afterwards is one, and nobody’s case any more', async () => {
    const { reversal, answerRightly } = await unproven()
    answerRightly()
    await later(async () => (await codeOf(reversal)) === success, 'it is answered')
    await later(async () => (await openCases(reversal)).length === 0, 'its case is closed')
  })

  it('and is answered rightly when somebody has said that it was not carried out is a case: nothing takes it back', async () => {
    const { reversal, answerRightly } = await unproven()
    await close(reversal, 'they know of none', 'notCarriedOut')
    await later(async () => (await codeOf(reversal)) === '900.100.200', 'it is decided')
    const before = host.types().length
    answerRightly()
    await later(async () => (await openCases(reversal)).includes('answersContradict'), 'somebody has to look again')
    await atRest(reversal)
    assert.equal(host.types().length, before)
  })
})
