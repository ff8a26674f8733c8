// What slips need of requests, days and refunds: pure rules, both sides of each.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { readSlipsFile, type SlipAccount } from '../src/connectors/slips/accounts.ts'
import { dueOn, todayAt } from '../src/connectors/slips/request.ts'
import { accountFor } from '../src/connectors/slips/slip.ts'
import { bankText, isPlain } from '../src/connectors/slips/text.ts'
import { isWorkingDay, nextWorkingDay, plusWorkingDays } from '../src/connectors/slips/workingDays.ts'
import { forbids } from '../src/payments/followUps/rules.ts'
import type { PaymentState } from '../src/payments/payment.ts'
import { stateOf } from '../src/slips/state.ts'

const beneficiary = { name: 'Loja', taxId: '11222333000181', street: 'Rua 1', city: 'Recife', state: 'PE', postcode: '50030230' }
const itau = {
  name: 'itau',
  bank: '341',
  modes: ['live'],
  agency: '0057',
  account: '12345',
  accountDigit: '7',
  wallet: '110',
  beneficiary,
}
const oxxo = { name: 'oxxo', modes: ['live'], prefix: '20' }
const read = (file: object) => readSlipsFile(JSON.stringify(file), 'slips.json')
const [bank, chain] = [...read({ banks: [itau], chains: [oxxo] }).values()] as [SlipAccount, SlipAccount]

describe('days', () => {
  it('of Brazil and Mexico: weekends, fixed days, days after Easter, Mondays', () => {
    const off = (country: 'BR' | 'MX', days: string) => days.split(' ').filter(day => isWorkingDay(day, country))
    assert.deepEqual(off('BR', '2026-02-16 2026-02-17 2026-04-03 2026-06-04 2026-11-20 2026-12-25 2027-02-08 2026-11-21'), [])
    assert.deepEqual(off('MX', '2026-02-02 2026-03-16 2026-04-02 2026-04-03 2026-11-16 2026-12-12 2027-02-01'), [])
    assert.deepEqual(
      off('MX', '2026-02-09 2026-03-09 2026-11-20 2026-02-16'),
      '2026-02-09 2026-03-09 2026-11-20 2026-02-16'.split(' '),
    )
    assert.deepEqual(off('BR', '2026-02-18 2026-04-02'), ['2026-02-18', '2026-04-02'])
  })

  it('an account may have days without work of its own, and then those alone', () => {
    assert.ok(isWorkingDay('2026-12-25', 'MX', ['12-24']))
    assert.ok(!isWorkingDay('2026-12-24', 'MX', ['12-24']))
    assert.ok(!isWorkingDay('2026-12-24', 'MX', ['2026-12-24']))
    assert.ok(isWorkingDay('2027-12-24', 'MX', ['2026-12-24']))
  })

  it('are counted: three working days from a Thursday before Easter', () => {
    assert.equal(plusWorkingDays('2026-04-01', 3, 'MX'), '2026-04-08')
    assert.equal(nextWorkingDay('2026-04-02', 'MX'), '2026-04-06')
    assert.equal(plusWorkingDays('2026-04-04', 0, 'MX'), '2026-04-04')
  })

  it('are those of the place of the account: a slip of the late evening is of the same day', () => {
    const late = Date.parse('2026-12-01T02:59:59Z')
    assert.deepEqual(
      [todayAt(bank, late), todayAt(bank, late + 1000), todayAt(chain, late)],
      ['2026-11-30', '2026-12-01', '2026-11-30'],
    )
  })

  it('a due date is read as people and as older clients write it; absent it is the account’s', () => {
    const now = Date.parse('2026-11-20T12:00:00Z') // a Friday
    const of = (account: SlipAccount, fields: Record<string, string>) => dueOn(new Map(Object.entries(fields)), account, now)
    assert.equal(of(bank, { 'customParameters[CUSTOM_due_date]': '1/12/2026' }), '2026-12-01')
    assert.equal(of(bank, { 'customParameters[CUSTOM_due_date]': '01122026 120000' }), '2026-12-01')
    assert.equal(of(bank, { 'customParameters[CUSTOM_due_date]': '' }), '2026-11-23')
    assert.equal(of(chain, {}), '2026-11-25')
  })
})

describe('texts', () => {
  it('what banks take, and what they do not', () => {
    for (const text of ["D'Ávila", 'São João, 12 - apto. 4', 'ÇÃÉ ç ã é', 'Łódź', 'O’Neill', '']) assert.ok(isPlain(text), text)
    for (const text of [
      '!',
      '@',
      '#',
      '$',
      '%',
      '&',
      '(',
      ')',
      '_',
      '+',
      '=',
      '/',
      '|',
      '\\',
      '{',
      '}',
      '™',
      '°',
      'ª\u0301!',
      'Ж',
      '玛',
      '\n',
    ])
      assert.ok(!isPlain(`a ${text}`), text)
  })

  it('are folded to what banks print, and cut', () => {
    assert.equal(bankText("  José d'Ávila & Cia. – Nº 5/7  "), 'JOSE D AVILA CIA. NO 5/7')
    assert.equal(bankText('São Paulo', 4), 'SAO')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text => /^([A-Z0-9.\-/]+( [A-Z0-9.\-/]+)*)?$/.test(bankText(text))),
      { numRuns: 300 },
    )
  })
})

describe('the file', () => {
  const wrong: readonly (readonly [what: string, file: object, says: RegExp])[] = [
    ['a bank that there is not', { banks: [{ ...itau, bank: '999' }] }, /banks\[0\]\.bank must be one of 341, 001/],
    [
      'an account too short for its bank',
      { banks: [{ ...itau, account: '1234' }] },
      /itau: account must have 5 characters at bank 341/,
    ],
    ['a name twice', { banks: [itau, itau] }, /holds itau twice/],
    [
      'a brand of both kinds',
      { banks: [itau], chains: [{ ...oxxo, brand: 'BOLETO' }] },
      /BOLETO is a brand of a bank and of a chain/,
    ],
    [
      'a wrong tax id',
      { banks: [{ ...itau, beneficiary: { ...beneficiary, taxId: '11222333000182' } }] },
      /beneficiary\.taxId must be a CPF or a CNPJ/,
    ],
    ['a day that there is not', { chains: [{ ...oxxo, holidays: ['02-30'] }] }, /holidays\[0\] must be a day that there is/],
    [
      'a word that nobody knows',
      { chains: [{ ...oxxo, prefx: '20' }] },
      /chains\[0\]\.prefx is not known: did you mean prefix\?/,
    ],
  ]
  for (const [what, file, says] of wrong) it(`${what} is named`, () => assert.throws(() => read(file), says))
})

describe('the account of a channel', () => {
  const accounts = read({
    banks: [itau, { ...itau, name: 'other' }, { ...itau, name: 'trial', modes: ['internal'] }],
    chains: [oxxo],
  })
  const chosen = (slipAccounts: Record<string, string[]>, mode: 'live' | 'internal' | 'external' = 'live') =>
    accountFor(accounts, { slipAccounts }, 'BOLETO', mode)?.name

  it('is the first of the brand and the mode, or the first that it names', () => {
    assert.deepEqual([chosen({}), chosen({}, 'internal'), chosen({}, 'external')], ['itau', 'trial', undefined])
    assert.deepEqual(
      [chosen({ BOLETO: ['trial', 'other'] }), chosen({ BOLETO: ['gone'] }), chosen({ BOLETO: ['oxxo'] })],
      ['other', undefined, undefined],
    )
    assert.equal(chosen({ OXXO: ['oxxo'] }), 'itau')
  })
})

describe('how a slip stands', () => {
  const slip = { amount: 1000, dueOn: '2026-11-21' } // a Saturday
  const root = {
    id: 'a',
    type: 'PA',
    amount: 1000,
    record: { slip: true, fields: [], ndc: '' },
    answer: { approved: true },
  } as unknown as PaymentState
  const one = (type: string, amount: number) =>
    ({ type, amount, answer: { approved: true }, record: {} }) as unknown as PaymentState
  const cases: readonly (readonly [followers: PaymentState[], today: string, state: string])[] = [
    [[], '2026-11-21', 'payable'],
    [[], '2026-11-23', 'payable'], // the next working day
    [[], '2026-11-24', 'overdue'],
    [[one('RC', 999)], '2026-11-24', 'part'],
    [[one('RC', 999), one('RC', 1)], '2026-11-20', 'paid'],
    [[one('RC', 1500)], '2026-11-24', 'paid'],
    [[one('RV', 1000)], '2026-11-20', 'writtenOff'],
    [[one('RV', 1000), one('RC', 1000)], '2026-11-20', 'paid'],
  ]
  for (const [followers, today, state] of cases)
    it(`${followers.map(({ type, amount }) => `${type} ${amount}`).join(', ') || 'nothing'} on ${today}: ${state}`, () =>
      assert.equal(stateOf(slip, root, followers, today, bank), state))
})

describe('refunds of receipts', () => {
  const answered = { result: 'succeeded', approved: true }
  const payment = (id: string, type: string, amount: number, more: object = {}) =>
    ({
      id,
      type,
      amount,
      channelId: 'c',
      currency: 'BRL',
      mode: 'live',
      receivedAt: 0,
      record: {},
      answer: answered,
      ...more,
    }) as unknown as PaymentState
  const root = payment('slip', 'PA', 1000, { record: { slip: true } })
  const [first, second] = [
    payment('one', 'RC', 1000, { referenceId: 'slip' }),
    payment('two', 'RC', 700, { referenceId: 'slip' }),
  ]
  const refund = (receipt: PaymentState, amount: number, ...before: PaymentState[]) =>
    forbids(
      { type: 'RF', channelId: 'c', amount, currency: 'BRL', now: 0 },
      { reference: receipt, root, followers: [first, second, ...before] },
      { offered: true, partialReversal: false },
    )
  const earlier = (of: PaymentState, amount: number, more: object = {}) =>
    payment('rf', 'RF', amount, { referenceId: of.id, ...more })

  it('go up to what was paid with the receipt, not above', () => {
    assert.equal(refund(second, 700), undefined)
    assert.equal(refund(second, 701), 'refundAboveCleared')
  })

  it('count those of the same receipt, also pending ones, and no others', () => {
    assert.equal(refund(second, 700, earlier(first, 1000)), undefined)
    assert.equal(refund(second, 400, earlier(second, 300)), undefined)
    assert.equal(refund(second, 401, earlier(second, 300)), 'refundAboveCleared')
    assert.equal(refund(second, 401, earlier(second, 300, { answer: undefined })), 'refundAboveCleared')
    assert.equal(refund(second, 401, earlier(second, 300, { answer: { ...answered, approved: false } })), undefined)
    assert.equal(refund(second, 1, earlier(second, 700)), 'alreadyRefunded')
  })
})
